"""`smrlab validate`: a drive against what a real one took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import _core, files, outdir
from ..errors import InputError
from ..text import counted
from ..work import attended
from . import complete, console
from . import options as o
from .console import escape

HELP = """Replay a measured trace on a drive, and compare the distributions of service times.

TRACE is a DiskSim validation trace (R|W Hit|Miss LBN blocks service_us gap_us), replayed one request at a time with
its pauses; or X.input.csv with X.latency.csv beside it, the answers of a reference model. The demerit is the root mean
square of the distance between the two distributions over 10 000 quantiles.

[bold]Examples[/bold]

  smrlab drive import disksim atlas10k.parv --out atlas10k.toml

  smrlab validate atlas10k.toml atlas10k.trace.zst --out out

  smrlab validate cheetah4LP.toml cheetah4LP.trace.zst --fit fitted.toml

--fit adds to the seeks and to the settling of the head what the first half of the trace asks for, and tells what the
second half says to that.
"""

KEYS = ("requests", "demerit_ms", "demerit_percent", "measured_mean_ms", "simulated_mean_ms", "mean_error_percent")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("validate", help=HELP)(validate)


def validate(
    drive: Annotated[
        str, typer.Argument(help="A preset's name, or the path of a drive file.", autocompletion=complete.drives)
    ],
    trace: Annotated[str, typer.Argument(help="The measured trace, compressed or not.")],
    layer: Annotated[
        str | None,
        typer.Option(
            help="NAME[,k=v...]. Default: persistent-cache of a drive with a cache on the medium, else cmr.",
            show_default=False,
            metavar="L",
        ),
    ] = None,
    reference: Annotated[
        str, typer.Option(help="Of a reference model with two answers: rep (repaired) or rel (as released).")
    ] = "rep",
    fit: Annotated[
        str | None,
        typer.Option(help="Drive file to make: DRIVE fitted to the first half of the trace.", metavar="FILE"),
    ] = None,
    out: o.OutOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Replay a measured trace on a drive, and compare the distributions of service times."""
    if fit is not None:
        if layer is not None or out is not None:
            raise InputError("--fit makes a drive file and takes neither --layer nor --out: only the arm is fitted")
        _fit(drive, trace, reference, Path(fit), as_json)
        return
    if out is not None:
        outdir.guard_runs(out)
    text, rows = attended(lambda _: _core.validate(drive, trace, layer, reference))
    doc: dict[str, Any] = json.loads(text)
    if out is not None:
        with outdir.filling(Path(out)) as folder:
            _draw(rows, folder)
            (folder / "result.json").write_text(json.dumps(doc, indent=1) + "\n")
    if as_json:
        console.print_json(doc)
        return
    table = console.table("", ["", "all", "reads", "writes"])
    for key in (*KEYS, "per_request_mae_ms"):
        parts = (doc, doc["reads"], doc["writes"])
        table.add_row(key, *(_cell(part.get(key)) for part in parts))
    title = f"[bold]{escape(drive)}[/bold] with the layer [bold]{escape(doc['layer'])}[/bold] against {escape(trace)}"
    console.out().print(title, table)


def _fit(drive: str, trace: str, reference: str, to: Path, as_json: bool) -> None:
    """Writes the fitted drive, and tells what was fitted and what it brought."""
    files.not_over(to, drive.split(",")[0], trace.split(":")[0])
    toml, text = attended(lambda _: _core.fit(drive, trace, reference))
    files.write_whole(to, toml.encode())
    doc: dict[str, Any] = json.loads(text)
    if as_json:
        console.print_json(doc)
        return
    for change in doc["changes"]:
        if "settle_after" in change:
            what = f"settling after a {change['settle_after']}: {change['ms']:.1f} ms"
        else:
            last = change["to_cylinders"]
            far = f"{change['from_cylinders']} to {last}" if last else f"{change['from_cylinders']} and more"
            error, number = change["standard_error_ms"], change["requests"]
            what = f"seeks of {change['seeks_of']} over {far} cylinders: {change['ms']:+.2f} ms"
            what += f" (± {error:.2f}, {counted(number, 'request')})"
        console.out().print(f"fitted: {escape(what)}")
    table = console.table("", ["demerit, ms", "before", "after"])
    for name, half in zip(("first half, fitted to", "second half, judged on"), doc["halves"], strict=True):
        table.add_row(name, _cell(half["before_ms"]), _cell(half["after_ms"]))
    console.out().print(f"[bold]{escape(str(to))}[/bold]: {counted(doc['fitted'], 'figure')} fitted", table)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _draw(rows: list[tuple[bool, int, int]], folder: Path) -> None:
    """Both distributions, and the differences over the requests."""
    from matplotlib.figure import Figure

    from ..plots.style import save_svg

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    share = [(i + 0.5) / len(rows) for i in range(len(rows))]
    for name, at, dashes in (("measured", 1, "-"), ("simulated", 2, "--")):
        axes.plot(sorted(row[at] / 1e6 for row in rows), share, dashes, label=name)
    axes.set_xlabel("service time (ms)")
    axes.set_ylabel("share of requests")
    axes.legend()
    save_svg(figure, folder / "distribution.svg")
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([(row[2] - row[1]) / 1e6 for row in rows], ",")
    axes.set_xlabel("request")
    axes.set_ylabel("simulated less measured (ms)")
    save_svg(figure, folder / "differences.svg")
