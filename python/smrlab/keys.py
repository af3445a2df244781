"""The keys of a result, as the engine describes them: what they are called, in which unit, and how they are written."""

from __future__ import annotations

import functools
import json
from typing import Any

from . import _core, text


@functools.cache
def every() -> dict[str, dict[str, Any]]:
    """All entries by path; a `*` in a path stands for any one name."""
    return {k["name"]: k for k in json.loads(_core.list_json("metrics"))}


@functools.cache
def of(path: str) -> dict[str, Any]:
    """The entry of a dotted key; that of an unknown one has the key as its title."""
    steps = path.split(".")
    for entry in every().values():
        form = entry["name"].split(".")
        if len(form) == len(steps) and all(f in ("*", s) for f, s in zip(form, steps, strict=True)):
            return entry
    return {"name": path, "title": path, "unit": "", "summary": ""}


def title(path: str) -> str:
    """What a key is called at the head of a column."""
    entry = of(path)
    return f"{entry['title']}, {path.rpartition('.')[2]}" if entry["name"].endswith("*") else str(entry["title"])


def axis(path: str) -> str:
    """The same with the unit, for an axis."""
    unit = unit_of(path)
    full = f"response, {title(path)}" if path.startswith("response_ms.") else title(path)
    return f"{full} ({unit})" if unit else full


def unit_of(path: str) -> str:
    """What a key is counted in; that of a key with a unit in its name is the unit there."""
    group, _, _ = path.partition(".")
    return str(of(path)["unit"]) or ("ms" if group.endswith("_ms") else "")


def written(path: str, value: Any) -> str:
    """A value as people read it, with the unit that fits."""
    match unit_of(path):
        case _ if value is None:
            return text.ABSENT
        case "ms":
            return text.milliseconds(value)
        case "s":
            return text.milliseconds(value * 1e3)
        case "share":
            return text.share(value)
        case "bytes":
            return text.size(value)
        case "blocks of 512 B":
            return text.size(value * 512)
        case _:
            return text.number(value)
