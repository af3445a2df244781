"""What the shell offers while a name, or a parameter of it, is being typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from .. import _core, shelf


def item(kind: str) -> Callable[[str], list[str]]:
    """Offers the names of a registry and, behind a comma, the parameters of the name, then their words."""

    def offer(incomplete: str) -> list[str]:
        entries = json.loads(_core.list_json(kind))
        name, comma, _ = incomplete.partition(",")
        if not comma:
            return [e["name"] for e in entries if e["name"].startswith(incomplete)]
        before, _, part = incomplete.rpartition(",")
        used = {pair.partition("=")[0] for pair in before.split(",")[1:]}
        return [f"{before},{text}" for text in _pairs(_params(entries, [name]), part) if text.rstrip("=") not in used]

    return offer


def _params(entries: Any, names: Sequence[str]) -> dict[str, set[str]]:
    """The parameters of these entries of a registry, each with the words that it takes; of all where none is named."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        if not names or {entry["name"], *entry.get("aliases", ())} & set(names):
            for p in entry.get("params", []):
                accepts = p["accepts"]
                words = accepts.removeprefix("one of ").split(", ") if accepts.startswith("one of ") else []
                found.setdefault(p["name"], set()).update(["on", "off"] if accepts == "on or off" else words)
    return found


def _pairs(params: Mapping[str, set[str]], part: str) -> list[str]:
    """What may follow of `KEY=VALUE`."""
    key, equals, value = part.partition("=")
    if equals:
        return [f"{key}={word}" for word in sorted(params.get(key, ())) if word.startswith(value)]
    return [f"{name}=" for name in params if name.startswith(part)]


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


def words(*known: str) -> Callable[[str], list[str]]:
    """Offers these."""
    return lambda incomplete: [word for word in known if word.startswith(incomplete)]


def devices(incomplete: str) -> list[str]:
    """Devices that there are."""
    from ..devices import every

    return [d.name for d in every() if d.name.startswith(incomplete)]


def drives(incomplete: str) -> list[str]:
    """Presets, and drive files."""
    return item("drives")(incomplete) + files(incomplete, ".toml")


def traces(incomplete: str) -> list[str]:
    """Generators, and files; behind a file and a colon the formats, and what these take."""
    path, colon, kind = incomplete.partition(":")
    if colon and path != "synth":
        return [f"{path}:{text}" for text in item("formats")(kind)]
    return item("generators")(incomplete) + files(incomplete)


def generators(incomplete: str) -> list[str]:
    """What `trace synth` takes: generators without the word that stands before them elsewhere."""
    return [text.removeprefix("synth:") for text in item("generators")(f"synth:{incomplete.removeprefix('synth:')}")]


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
    "metadata": words("nv", "media"),
    "arrivals": words("trace", "closed", "pauses"),
    "wrap": words("capacity", "prefilled"),
    "address_space": words("overlap", "concat"),
    "join": words("time", "chain", "bursts"),
    "mechanics": words("full", "no-rotation", "instant"),
}
layers = item("layers")

# What `--set ITEM.PARAMETER=VALUE` can set of a field, by the registry that has the parameters.
_ITEMS = {"layer": "layers", "array": "arrays", "scheduler": "schedulers"}
_ARRIVALS: dict[str, set[str]] = {"depth": set(), "think": set()}


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Fields, and parameters of the layer, array or scheduler that the line names (of any where it names none)."""
    item_, dot, rest = incomplete.partition(".")
    if dot and "=" not in item_:
        if item_ == "arrivals":
            params = _ARRIVALS
        elif item_ in _ITEMS:
            chosen = ctx.params.get(item_) or ()
            texts = [chosen] if isinstance(chosen, str) else chosen
            params = _params(json.loads(_core.list_json(_ITEMS[item_])), [text.partition(",")[0] for text in texts])
        else:
            return []
        return [f"{item_}.{text}" for text in _pairs(params, rest)]
    field, equals, value = incomplete.partition("=")
    if equals:
        offer = {**OF_FIELD, "layer": layers}.get(field)
        return [f"{field}={text}" for text in offer(value)] if offer else []
    names = [f"{f['name']}=" for f in json.loads(_core.list_json("fields"))]
    return [text for text in [*names, *(f"{i}." for i in (*_ITEMS, "arrivals"))] if text.startswith(incomplete)]
