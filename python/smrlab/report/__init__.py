"""The report of a run or a comparison: one HTML file that works offline, and the same figures as SVG."""

from __future__ import annotations

import html
import json
import os
import string
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from .. import keys
from .._version import __version__
from ..files import write_whole
from ..payload import runs_payload
from ..results import Result, load_results

SCRIPTS = ("base.js", "charts.js", "heat.js", "page.js")


def write_report(folder: str | os.PathLike[str], *, svg: bool = True) -> Path:
    """(Re)draws `report.html`, and the SVG figures beside it, from the result files in `folder` alone.

    Raises InputError when the folder holds no readable result.
    """
    runs = load_results(folder)
    path = Path(folder) / "report.html"
    write_whole(path, render(runs).encode())
    if svg:
        from ..plots import Plotter

        Plotter(runs).save_all(Path(folder))
    return path


def report_at(place: str | os.PathLike[str], *, svg: bool = True) -> str:
    """The same in a folder or at a URL; where the report is."""
    from ..sweeps.store import Store

    store = Store(place)
    with store.mirrored() as folder:
        write_report(folder, svg=svg)
    return f"{store}/report.html"


def render(runs: Sequence[Result]) -> str:
    """The page as text."""
    asset = resources.files(__package__).joinpath("assets")
    page = string.Template(asset.joinpath("page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=html.escape(title(runs)),
        subtitle=html.escape(subtitle(runs[0])),
        footer=html.escape(footer(runs[0])),
        version=__version__,
        css=asset.joinpath("report.css").read_text(encoding="utf-8"),
        script="\n".join(asset.joinpath(s).read_text(encoding="utf-8") for s in SCRIPTS),
        data=embedded(runs),
        keys=explained(),
    )


def embedded(runs: Sequence[Result]) -> str:
    """The data as JSON that is safe inside a script element; equal heat maps are there once."""
    payload = runs_payload(runs)
    for i, run in enumerate(payload):
        same = next((j for j in range(i) if payload[j]["heat"] == run["heat"]), None)
        if run["heat"] is not None and same is not None:
            run["heat"] = same
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False, default=str)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def explained() -> str:
    """What the keys of a result mean, for the tips of tables."""
    short = {
        path: {"name": k["title"], "unit": k["unit"], "doc": k["summary"], "formula": k["formula"]}
        for path, k in keys.every().items()
    }
    return json.dumps(short, separators=(",", ":")).replace("<", "\\u003c")


def title(runs: Sequence[Result]) -> str:
    """What the page is about: the runs' names, shortened."""
    names = ", ".join(run.name for run in runs)
    if len(names) > 90:
        names = f"{len(runs)} runs compared" if len(runs) > 1 else f"{names[:89]}…"
    return f"smrlab: {names}"


def subtitle(run: Result) -> str:
    """Trace, array and drive, where the specification names them; one drive is no array."""
    spec: dict[str, Any] = dict(run.doc.get("spec") or {})
    shown = ("trace", "array", "drive", "arrivals", "scheduler")
    parts = [f"{key} {_short(spec[key])}" for key in shown if spec.get(key) and spec[key] != "single"]
    return " · ".join(parts)


def footer(run: Result) -> str:
    """Where the result comes from."""
    provenance: dict[str, Any] = dict(run.doc.get("provenance") or {})
    parts = [f"{key} {value}" for key, value in provenance.items() if value is not None]
    return "smrlab " + " · ".join(parts)


def _short(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        text = " + ".join(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 120 else text[:117] + "…"
