"""One table of all results of a sweep, and plots of any metric against any parameter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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


def plot(table: pa.Table, metric: str, against: str, path: Path, by: str | None = None) -> None:
    """Draws `metric` over the setting `against` into `path` (SVG, PDF or PNG by its ending), one line for each `by`.

    Several rows with the same settings (seeds) are drawn as their mean with the range as a bar.
    Raises InputError for a column that the table does not have.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    for column in (metric, against, by):
        if column is not None and column not in table.column_names:
            raise InputError(f"the sweep has no column '{column}'; it has: {', '.join(table.column_names)}")
    groups: dict[Any, dict[Any, list[float]]] = {}
    for row in table.to_pylist():
        if row[metric] is not None:
            line = groups.setdefault(row[by] if by else None, {})
            line.setdefault(row[against], []).append(row[metric])
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    markers = "osD^v<>PX*"
    for i, (name, line) in enumerate(groups.items()):
        xs = sorted(line) if all(isinstance(x, (int, float)) for x in line) else list(line)
        means = [sum(line[x]) / len(line[x]) for x in xs]
        bars = [
            [m - min(line[x]) for x, m in zip(xs, means, strict=True)],
            [max(line[x]) - m for x, m in zip(xs, means, strict=True)],
        ]
        axes.errorbar(
            xs,
            means,
            yerr=bars,
            marker=markers[i % len(markers)],
            capsize=3,
            label=None if name is None else f"{by} = {name}",
        )
    axes.set_xlabel(against)
    axes.set_ylabel(metric)
    axes.grid(alpha=0.3)
    if by:
        axes.legend()
    figure.savefig(path)
    plt.close(figure)
