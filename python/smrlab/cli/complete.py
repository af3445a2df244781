"""What the shell offers while a name, or a parameter of it, is being typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from .. import _core, shelf


def item(kind: str) -> Callable[[str], list[str]]:
    """Offers the names of a registry and, behind a comma, the parameters of the name, then their words."""

    def offer(incomplete: str) -> list[str]:
        entries = json.loads(_core.list_json(kind))
        name, comma, _ = incomplete.partition(",")
        if not comma:
            return [e["name"] for e in entries if e["name"].startswith(incomplete)]
        entry = next((e for e in entries if name in (e["name"], *e.get("aliases", ()))), None)
        before, _, part = incomplete.rpartition(",")
        key, equals, value = part.partition("=")
        if equals:
            accepts = next((p["accepts"] for p in (entry or {}).get("params", []) if p["name"] == key), "")
            words = accepts.removeprefix("one of ").split(", ") if accepts.startswith("one of ") else []
            return [f"{before},{key}={w}" for w in words if w.startswith(value)]
        used = {pair.partition("=")[0] for pair in before.split(",")[1:]}
        names = [p["name"] for p in (entry or {}).get("params", [])]
        return [f"{before},{n}=" for n in names if n.startswith(part) and n not in used]

    return offer


def files(incomplete: str, ending: str = "") -> list[str]:
    """Files and folders that begin so; files only with that ending."""
    folder, _, name = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder or "/" if incomplete.startswith("/") else folder or ".").iterdir())
    except OSError:
        return []
    lead = f"{folder}/" if "/" in incomplete else ""
    fits = (p for p in found if p.name.startswith(name) and (name or not p.name.startswith(".")))
    return [f"{lead}{p.name}{'/' if p.is_dir() else ''}" for p in fits if p.is_dir() or p.name.endswith(ending)]


def drives(incomplete: str) -> list[str]:
    """Presets, and drive files."""
    return item("drives")(incomplete) + files(incomplete, ".toml")


def traces(incomplete: str) -> list[str]:
    """Generators, and files."""
    return item("generators")(incomplete) + files(incomplete)


def names(incomplete: str) -> list[str]:
    """Whatever can be explained."""
    kinds = ("layers", "drives", "arrays", "formats", "generators", "schedulers", "metrics")
    return [name for kind in kinds for name in item(kind)(incomplete)] + papers(incomplete)


def papers(incomplete: str) -> list[str]:
    """The papers, where they are there."""
    names = [paper["name"] for paper in shelf.listed()] if shelf.there() else []
    return [name for name in names if name.startswith(incomplete)]


OF_FIELD: dict[str, Callable[[str], list[str]]] = {
    "trace": traces,
    "drive": drives,
    "array": item("arrays"),
    "scheduler": item("schedulers"),
}
layers = item("layers")
