"""Sweep specifications: from a TOML file to the list of points.

A sweep file holds a run specification under ``[base]`` and what varies:

- ``[grid]``: every combination of the values;
- ``[[list]]``: explicit points, each combined with every combination of the grid;
- ``seeds``: a number of seeds (1, 2, ...) or a list of them, for every point.

A key is a field of a run specification (``drive``, ``scale_time``) or a parameter of an item (``layer.sections``,
``trace.write``), which is set in the item's text ``NAME,key=value``.
"""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrlab.errors import InputError

Value = str | int | float | bool
Settings = dict[str, Value]

_TABLES = {"base", "grid", "list", "seeds"}


@dataclass(frozen=True)
class Point:
    """One run of a sweep: what varies, and the whole run specification."""

    settings: Settings
    spec: dict[str, Any]


def load(path: Path) -> list[Point]:
    """The points of the sweep file `path`, in a stable order.

    Raises InputError where the file is unreadable, is no sweep, or has no points.
    """
    try:
        document = tomllib.loads(path.read_text())
    except OSError as fault:
        raise InputError(f"{path}: cannot be read: {fault.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise InputError(f"{path}: not valid TOML: {fault}") from None
    return expand(document, str(path))


def expand(document: dict[str, Any], where: str) -> list[Point]:
    """The points of a parsed sweep document; `where` names it in messages."""
    unknown = sorted(set(document) - _TABLES)
    if unknown:
        raise InputError(f"{where}: unknown table '{unknown[0]}'; a sweep has {', '.join(sorted(_TABLES))}")
    base = document.get("base", {})
    if not isinstance(base, dict) or not base:
        raise InputError(f"{where}: [base] is missing: it holds the run specification that all points share")
    grid = _grid(document.get("grid", {}), where)
    rows = document.get("list", [{}])
    seeds = _seeds(document.get("seeds"), where)
    points = []
    for row, combination, seed in itertools.product(rows, grid, seeds):
        settings: Settings = {**row, **combination, **seed}
        points.append(Point(settings, _apply(base, settings, where)))
    return points


def _grid(table: dict[str, Any], where: str) -> list[Settings]:
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{where}: grid.{key} needs a list of values, for example {key} = [1, 2, 4]")
    return [dict(zip(table, values, strict=True)) for values in itertools.product(*table.values())]


def _seeds(seeds: object, where: str) -> list[Settings]:
    if seeds is None:
        return [{}]
    if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
        return [{"seed": n} for n in range(1, seeds + 1)]
    if isinstance(seeds, list) and seeds and all(isinstance(n, int) for n in seeds):
        return [{"seed": n} for n in seeds]
    raise InputError(f"{where}: seeds is a number of seeds or a list of whole numbers, not {seeds!r}")


def _apply(base: dict[str, Any], settings: Settings, where: str) -> dict[str, Any]:
    spec = dict(base)
    # Whole items first: `layer = "s-block"` beside `layer.sections = 4` sets the parameter in the new item.
    for key in sorted(settings, key=lambda k: "." in k):
        item, dot, parameter = key.partition(".")
        if dot:
            if not isinstance(spec.get(item), str):
                raise InputError(f"{where}: '{key}' sets a parameter of '{item}', which [base] does not give as text")
            spec[item] = with_parameter(spec[item], parameter, settings[key])
        else:
            spec[key] = settings[key]
    return spec


def with_parameter(item: str, parameter: str, value: Value) -> str:
    """The item text `NAME,key=value,...` with one parameter set, replacing an earlier value of it."""
    text = ("on" if value else "off") if isinstance(value, bool) else str(value)
    kept = [p for p in _parts(item) if p.partition("=")[0] != parameter]
    return ",".join([*kept, f"{parameter}={text}"])


def _parts(item: str) -> list[str]:
    """Splits at commas outside parentheses, as the engine does."""
    parts, depth = [""], 0
    for char in item:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
