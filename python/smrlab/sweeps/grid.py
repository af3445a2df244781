"""Study specifications: from tables to the list of points.

A study holds a run specification under ``[base]`` and what varies:

- ``[grid]``: every combination of the values;
- ``[[list]]``: explicit points; ``files``: the same from TOML, JSON, CSV or Parquet files (patterns of names);
- ``[sample]``: so many random points, or a Latin hypercube, between bounds;
- ``seeds``: a number of seeds (1, 2, ...) or a list of them, for every point.

What is given of these is combined with each other. A key is a field of a run specification (``drive``,
``scale_time``) or a parameter of an item (``layer.sections``, ``trace.write``), which is set in the item's text
``NAME,key=value``. ``memory`` is what a run needs at most, where the estimate is wrong.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrlab import _core
from smrlab.errors import InputError

from .samples import few, sampled
from .settings import settings_of

# Between the parts of a stack.
BELOW = " / "
Value = str | int | float | bool
Settings = dict[str, Value]

TABLES = ("base", "grid", "list", "files", "sample", "seeds", "memory")


@dataclass(frozen=True)
class Point:
    """One run of a study: what varies, and the whole run specification."""

    settings: Settings
    spec: dict[str, Any]
    # Bytes of memory that it needs, where its user says so.
    memory: int | None = None


def expand(document: dict[str, Any], where: str, folder: Path = Path()) -> list[Point]:
    """The points of a parsed study; `where` names it in messages, files are sought from `folder` on."""
    unknown = sorted(set(document) - set(TABLES))
    if unknown:
        raise InputError(f"{where}: unknown table '{unknown[0]}'; a sweep has {', '.join(TABLES)}, halving")
    base = document.get("base", {})
    if not isinstance(base, dict) or not base:
        raise InputError(f"{where}: [base] is missing: it holds the run specification that all points share")
    grid = _grid(document.get("grid", {}), where)
    rows = document.get("list", [{}])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where}: points one by one are tables: write each behind [[list]]")
    files = settings_of(document["files"], where, folder) if "files" in document else [{}]
    samples = sampled(document["sample"], where) if "sample" in document else [{}]
    seeds = _seeds(document.get("seeds"), where)
    memory = _bytes(document["memory"], where) if "memory" in document else None
    few(math.prod(map(len, (rows, files, grid, samples, seeds))), where)
    for given in (base, *rows, *files, *grid, *samples):
        for key, value in given.items():
            _check(value, f"{where}: {key}")
    points = []
    for row, file, combination, sample, seed in itertools.product(rows, files, grid, samples, seeds):
        settings: Settings = {**row, **file, **combination, **sample, **seed}
        points.append(Point(settings, _apply(base, settings, where), memory))
    return points


def _check(value: object, of: str) -> None:
    """Raises InputError for what no specification can hold: a date, or what is no number."""
    if isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            _check(part, of)
    elif not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{of}: {value} is not accepted: a text, a number, true or false")


def _bytes(text: object, where: str) -> int:
    try:
        return int(_core.size_bytes(str(text)))
    except InputError as fault:
        raise InputError(f"{where}: memory: {fault}") from None


def _grid(table: Any, where: str) -> list[Settings]:
    if not isinstance(table, dict):
        raise InputError(f"{where}: grid is a table of lists, for example [grid] with seed = [1, 2]")
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{where}: grid.{key} needs a list of values, for example {key} = [1, 2, 4]")
    few(math.prod(map(len, table.values())), where)
    return [dict(zip(table, values, strict=True)) for values in itertools.product(*table.values())]


def _seeds(seeds: object, where: str) -> list[Settings]:
    if seeds is None:
        return [{}]
    if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
        few(seeds, where)
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
            try:
                spec[item] = with_parameter(spec[item], parameter, settings[key])
            except InputError as fault:
                raise InputError(f"{where}: '{key}': {fault}") from None
        else:
            spec[key] = settings[key]
    return spec


def with_parameter(item: str, parameter: str, value: Value) -> str:
    """The item text `NAME,key=value,...` with one parameter set, replacing an earlier value of it.

    Of a stack of several it is set in the one that has it already: what others would make of it nobody asked for.
    """
    text = ("on" if value else "off") if isinstance(value, bool) else str(value)
    rows = [_parts(row) for row in item.split(BELOW)]
    has = [row for row in rows if any(p.partition("=")[0].strip() == parameter for p in row)]
    if len(rows) > 1 and len(has) != 1:
        number = "several give" if has else "none gives"
        raise InputError(f"of the parts of '{item}' {number} {parameter}=: write it in the one that is meant")
    row = has[0] if has else rows[0]
    row[:] = [*(p for p in row if p.partition("=")[0].strip() != parameter), f"{parameter}={text}"]
    return BELOW.join(map(",".join, rows))


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
