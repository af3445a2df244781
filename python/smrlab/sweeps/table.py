"""One table of all results of a sweep, and plots of any metric against any parameter."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from smrlab import keys
from smrlab.errors import InputError

_NO_METRICS = {"schema", "spec", "provenance", "name", "members"}


def _flat(value: Any, path: str) -> Iterator[tuple[str, float | int]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def results_table(out: Path) -> pa.Table:
    """A row for every finished point: its settings, its address, and every number of its result by dotted key.

    Raises InputError where `out` holds no sweep.
    """
    try:
        index = json.loads((out / "sweep.json").read_text())["points"]
    except (OSError, ValueError, KeyError) as fault:
        raise InputError(f"{out}: holds no sweep (sweep.json: {fault})") from None
    rows = []
    for entry in index:
        path = out / "points" / entry["point"] / "result.json"
        if path.is_file():
            document = json.loads(path.read_text())
            metrics = {k: v for k, v in document.items() if k not in _NO_METRICS}
            rows.append({**entry["settings"], "point": entry["point"], **dict(_flat(metrics, ""))})
    return pa.Table.from_pylist(_aligned(rows))


def _aligned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every row with every column, and one type a column: whole numbers become real where others are."""
    columns: dict[str, type] = {}
    for row in rows:
        for key, value in row.items():
            known = columns.setdefault(key, type(value))
            if known is not type(value):
                columns[key] = float if {known, type(value)} <= {int, float} else str
    return [{key: None if key not in row else kind(row[key]) for key, kind in columns.items()} for row in rows]


def write_table(out: Path) -> pa.Table:
    """Writes `results.parquet` under a temporary name, renames it, and returns the table."""
    table = results_table(out)
    temporary = out / ".results.parquet.partial"
    pq.write_table(table, temporary)
    temporary.replace(out / "results.parquet")
    return table


# A key of these groups that is absent says that nothing of the kind happened.
_COUNTED = ("cleaning.", "stalls.", "cache.", "media.by_cause.", "time_by_cause_s.", "cleaning_share", "overload.")
# From this ratio of the largest to the smallest value on, an axis is logarithmic.
_WIDE = 50.0


def plot(table: pa.Table, metric: str, against: str, path: Path, by: str | None = None) -> None:
    """Draws `metric` over the setting `against` into `path` (SVG, PDF or PNG by its ending), one line for each `by`.

    Several rows with the same settings (seeds) are drawn as their mean with the range as a bar. The points that are
    drawn are written beside it as CSV: setting, line, mean, least, most, rows.
    Raises InputError for a column that the table does not have.
    """
    for column in (metric, against, by):
        if column is not None and column not in table.column_names:
            raise InputError(f"the sweep has no column '{column}'; it has: {', '.join(table.column_names)}")
    points = _points(table.to_pylist(), metric, against, by)
    _draw(points, (metric, against, by), path)
    with path.with_suffix(".csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([against, by or "line", metric, "least", "most", "rows"])
        for name, line in points.items():
            for x, values in line.items():
                mean = sum(values) / len(values)
                out.writerow([x, "" if name is None else name, mean, min(values), max(values), len(values)])


def _points(rows: list[dict[str, Any]], metric: str, against: str, by: str | None) -> dict[Any, dict[Any, list[float]]]:
    """The values at each setting of each line, settings ascending; what did not happen is 0 and no gap."""
    found: dict[Any, dict[Any, list[float]]] = {}
    for row in rows:
        value = row[metric]
        if value is None and metric.startswith(_COUNTED):
            value = 0
        if value is not None:
            found.setdefault(row[by] if by else None, {}).setdefault(row[against], []).append(value)
    ordered = {name: {x: line[x] for x in sorted(line, key=_order)} for name, line in found.items()}
    return {name: ordered[name] for name in sorted(ordered, key=_order)}


_NUMBER = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:e[0-9]+)?)\s*([A-Za-z%]*)")
# Factor and dimension of a unit; powers of ten and of two are both sizes.
_UNITS = {
    "": (1.0, ""),
    "%": (1.0, "%"),
    "B": (1.0, "B"),
    "blk": (512.0, "B"),
    **{f"{p}B": (1000.0**i, "B") for i, p in enumerate("kMGT", 1)},
    **{f"{p}iB": (1024.0**i, "B") for i, p in enumerate("KMGT", 1)},
    **{u: (f, "s") for u, f in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0))},
}


def quantity(value: Any) -> tuple[float, str] | None:
    """A setting as a number and its dimension: `1%`, `25MB`, `4KiB`, `10ms`, 8; None where it is a word."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value), ""
    found = _NUMBER.fullmatch(str(value).strip())
    unit = _UNITS.get(found[2]) if found else None
    return (float(found[1].replace("_", "")) * unit[0], unit[1]) if found and unit else None


def called(setting: str) -> str:
    """A setting as people call it: `layer.cache` is the cache of the layer, `scale_time` scale time."""
    of, dot, name = setting.rpartition(".")
    words = name.replace("_", " ")
    return f"{words} ({of})" if dot else words


def _order(value: Any) -> tuple[int, float, str]:
    number = quantity(value)
    return (0, number[0], "") if number else (1, 0.0, str(value))


def _scale(values: Sequence[float]) -> str:
    above = [v for v in values if v > 0]
    return "log" if len(above) == len(values) > 2 and max(above) / min(above) >= _WIDE else "linear"


def _draw(points: dict[Any, dict[Any, list[float]]], names: tuple[str, str, str | None], path: Path) -> None:
    """The figure; settings that are numbers of one dimension stand where they belong, words beside each other."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from ..plots.style import line_style

    metric, against, by = names
    settings = list({x: None for line in points.values() for x in line})
    settings.sort(key=_order)
    numbers = {x: quantity(x) for x in settings}
    dimensions = {n[1] for n in numbers.values() if n}
    numeric = bool(settings) and all(numbers.values()) and len(dimensions) == 1
    place = {x: (n[0] if numeric and n else float(i)) for i, (x, n) in enumerate(numbers.items())}
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    means = []
    for i, (name, line) in enumerate(points.items()):
        mean = [sum(v) / len(v) for v in line.values()]
        means += mean
        low = [m - min(v) for m, v in zip(mean, line.values(), strict=True)]
        high = [max(v) - m for m, v in zip(mean, line.values(), strict=True)]
        label = None if name is None or by is None else f"{called(by)}: {name}"
        at, marker = [place[x] for x in line], "osD^v<>PX*"[i % 10]
        axes.errorbar(at, mean, yerr=[low, high], marker=marker, capsize=3, label=label, **line_style(i))
    if numeric and _scale(list(place.values())) == "log":
        axes.set_xscale("log")
    if len(settings) <= 12:
        axes.set_xticks([place[x] for x in settings], [str(x) for x in settings])
        axes.minorticks_off()
    if _scale(means) == "log":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(called(against))
    axes.set_ylabel(keys.axis(metric))
    axes.grid(alpha=0.3)
    if by:
        axes.legend()
    figure.savefig(path)
    plt.close(figure)
