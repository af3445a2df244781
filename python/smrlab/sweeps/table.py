"""One table of all results of a study, and plots of any metric against any parameter."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from smrlab import keys, parquet
from smrlab.errors import InputError
from smrlab.files import FIGURES
from smrlab.secret import hidden

from .grid import Point
from .quantity import order, quantity
from .store import RESULT, Store
from .task import Told

RESULTS, RUNS = "results.parquet", "runs.parquet"
DONE, FAILED = "done", "failed"
# The table is written again when it has grown by this factor, and not before these seconds have passed.
GROWN, WRITTEN_S = 1.25, 5.0

# Where a table says which of its columns are settings.
SETTINGS = b"smrlab.settings"
# What each row has, behind its settings.
_HEAD = {"point": None, "status": None, "reason": None}
_NO_METRICS = {"schema", "spec", "provenance", "name", "members"}


def _flat(value: Any, path: str) -> Iterator[tuple[str, float | int]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


class Table:
    """The table of a study while it grows: a row for every point whose run has ended."""

    def __init__(self, store: Store, points: Sequence[tuple[Point, str]]) -> None:
        self._store = store
        self._order = [(point.settings, address) for point, address in points]
        self._rows: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, dict[str, Any]] = {}
        self._written = 0
        self._last = time.monotonic()

    def take(self, addresses: set[str]) -> None:
        """The rows of runs that are there: from the table as it was written, or from their documents."""
        known = _read(self._store, RESULTS)
        settings = {key for values, _ in self._order for key in values} | _settings(known)
        if known is not None and "status" in known.column_names:
            for row in known.drop_columns([c for c in known.column_names if c in settings]).to_pylist():
                if row["point"] in addresses and row["status"] == DONE:
                    self._rows[row["point"]] = {k: v for k, v in row.items() if v is not None}
        runs = _read(self._store, RUNS)
        self._runs = {row["point"]: row for row in runs.to_pylist()} if runs is not None else {}
        for address in sorted(addresses - set(self._rows)):
            document = self._store.document(f"points/{address}/{RESULT}")
            if document is not None:
                self._rows[address] = row_of(address, document)

    def add(self, told: Told) -> None:
        """The row of a run that has ended."""
        assert told.document is not None
        self._rows[told.address] = row_of(told.address, told.document)
        if not told.found:
            how = {"seconds": told.seconds, "cpu_s": told.cpu_s, "host": told.host}
            self._runs[told.address] = {"point": told.address, **how}
        self._grown()

    def fails(self, address: str, reason: str) -> None:
        """The row of a run that failed."""
        self._rows[address] = {"point": address, "status": FAILED, "reason": reason}
        self._grown()

    def _grown(self) -> None:
        """Writes it while it grows, so that all writing together costs no more than a few times the last."""
        enough = len(self._rows) >= self._written * GROWN
        if enough and time.monotonic() - self._last > WRITTEN_S:
            self.write()

    def table(self) -> pa.Table:
        """What there is so far, in the order of the points."""
        rows = []
        for settings, address in self._order:
            if address in self._rows:
                shown = {k: hidden(v) if isinstance(v, str) else v for k, v in settings.items()}
                rows.append({**shown, **_HEAD, **self._rows[address]})
        made = pa.Table.from_pylist(_aligned(rows))
        if not rows:
            return made
        # Where no run failed nothing tells its type.
        reason = made.column_names.index("reason")
        made = made.set_column(reason, "reason", made["reason"].cast(pa.string()))
        varied = sorted({key for values, _ in self._order for key in values})
        return made.replace_schema_metadata({SETTINGS: json.dumps(varied)})

    def write(self) -> None:
        """Writes `results.parquet` and `runs.parquet`, whole."""
        self._store.write(RESULTS, _packed(self.table()))
        if self._runs:
            self._store.write(RUNS, _packed(pa.Table.from_pylist(list(self._runs.values()))))
        self._written, self._last = len(self._rows), time.monotonic()


def row_of(address: str, document: dict[str, Any]) -> dict[str, Any]:
    """A result as a row: every number of it by its dotted key."""
    metrics = {k: v for k, v in document.items() if k not in _NO_METRICS}
    return {"point": address, "status": DONE, **dict(_flat(metrics, ""))}


def _settings(table: pa.Table | None) -> set[str]:
    """The settings of the study that wrote a table, which may be no settings of the study as it is now."""
    noted = table.schema.metadata if table is not None else None
    return set(json.loads((noted or {}).get(SETTINGS, b"[]")))


def _packed(table: pa.Table) -> bytes:
    made = io.BytesIO()
    pq.write_table(table, made, compression="zstd")
    return made.getvalue()


def _read(store: Store, name: str) -> pa.Table | None:
    data = store.read(name)
    try:
        return parquet.read(io.BytesIO(data)) if data else None
    except pa.ArrowInvalid:
        return None


def results_table(out: Store | str | os.PathLike[str]) -> pa.Table:
    """The table of a study, as it is now: settings, address, `status`, and every number of a result by dotted key.

    Raises InputError where `out` holds no study.
    """
    store = out if isinstance(out, Store) else Store(out)
    table = _read(store, RESULTS)
    if table is None:
        if store.read(RESULTS) is not None:
            raise InputError(
                f"{store}/{RESULTS} cannot be read: run the sweep again, which writes it from the runs that are done"
            )
        raise InputError(f"{store}: holds no sweep ({RESULTS} is not there)")
    return table


def words(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table with each setting as one value: a list, as of traces that are joined, as its parts."""
    return [
        {k: " + ".join(map(str, v)) if isinstance(v, list) else v for k, v in row.items()} for row in table.to_pylist()
    ]


def runs_table(store: Store) -> pa.Table | None:
    """How the runs of a study were done: seconds, processor time, host. Of those that were done through it."""
    return _read(store, RUNS)


NOTHING = type(None)


def _aligned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every row with every column, and one type a column: whole numbers become real where others are; None is none."""
    columns: dict[str, type] = {}
    for row in rows:
        for key, value in row.items():
            known, kind = columns.setdefault(key, type(value)), type(value)
            if known is NOTHING:
                columns[key] = kind
            elif kind not in (known, NOTHING):
                columns[key] = float if {known, kind} <= {int, float} else str
    return [{k: None if row.get(k) is None else kind(row[k]) for k, kind in columns.items()} for row in rows]


# A key of these groups that is absent says that nothing of the kind happened.
_COUNTED = ("cleaning.", "stalls.", "cache.", "media.by_cause.", "time_by_cause_s.", "cleaning_share", "overload.")
# From this ratio of the largest to the smallest value on, an axis is logarithmic.
_WIDE = 50.0
# From so many milliseconds on an axis is in seconds.
MANY_MS = 20_000.0
# How much of the room between two words their points take, side by side.
BESIDE = 0.5


def plot(table: pa.Table, metric: str, against: str, path: Path, by: str | None = None) -> None:
    """Draws `metric` over the setting `against` into `path` (SVG, PDF or PNG by its ending), one line for each `by`.

    Several rows with the same settings (seeds) are drawn as their mean with the range as a bar. The points that are
    drawn are written beside it as CSV: setting, line, mean, least, most, rows.
    Raises InputError for a column that the table does not have, or a file that it cannot be.
    """
    for column in (metric, against, by):
        if column is not None and column not in table.column_names:
            raise InputError(f"the sweep has no column '{column}'; it has: {', '.join(table.column_names)}")
    if pa.types.is_string(table.schema.field(metric).type):
        raise InputError(f"column '{metric}' of the sweep is of texts: name one of numbers")
    if path.suffix not in FIGURES or not path.parent.is_dir():
        raise InputError(f"{path}: write {', '.join(FIGURES)} into a folder that is there")
    points = _points(words(table), metric, against, by)
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
    ordered = {name: {x: line[x] for x in sorted(line, key=order)} for name, line in found.items()}
    return {name: ordered[name] for name in sorted(ordered, key=order)}


def called(setting: str) -> str:
    """A setting as people call it: `layer.cache` is the cache of the layer, `scale_time` scale time."""
    of, dot, name = setting.rpartition(".")
    words = name.replace("_", " ")
    return f"{words} ({of})" if dot else words


def _scale(values: Sequence[float]) -> str:
    above = [v for v in values if v > 0]
    return "log" if len(above) == len(values) > 2 and max(above) / min(above) >= _WIDE else "linear"


def _unit(metric: str, points: dict[Any, dict[Any, list[float]]]) -> tuple[str, float]:
    """The unit of the axis, and how much of it one of the metric is: many thousands of ms are seconds."""
    unit = keys.unit_of(metric)
    most = max((max(values) for line in points.values() for values in line.values()), default=0.0)
    return ("s", 1e-3) if unit == "ms" and most >= MANY_MS else (unit, 1.0)


def _draw(points: dict[Any, dict[Any, list[float]]], names: tuple[str, str, str | None], path: Path) -> None:
    """The figure; settings that are numbers of one dimension stand where they belong, words beside each other.

    What lies between two numbers lies between what was measured there; between two words there is nothing, and no line.
    """
    from matplotlib.figure import Figure

    from ..plots import style

    metric, against, by = names
    settings = list({x: None for line in points.values() for x in line})
    settings.sort(key=order)
    numbers = {x: quantity(x) for x in settings}
    dimensions = {n[1] for n in numbers.values() if n}
    numeric = bool(settings) and all(numbers.values()) and len(dimensions) == 1
    place = {x: (n[0] if numeric and n else float(i)) for i, (x, n) in enumerate(numbers.items())}
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    means = []
    unit, each = _unit(metric, points)
    shorts = style.told_apart([str(name) for name in points], style.LINE)
    for i, (short, (name, line)) in enumerate(zip(shorts, points.items(), strict=True)):
        mean = [each * sum(v) / len(v) for v in line.values()]
        means += mean
        low = [m - each * min(v) for m, v in zip(mean, line.values(), strict=True)]
        high = [each * max(v) - m for m, v in zip(mean, line.values(), strict=True)]
        label = None if name is None or by is None else f"{called(by)}: {short}"
        looks = {**style.line_style(i), "marker": "osD^v<>PX*"[i % 10], "capsize": 3, "label": label}
        aside = 0.0
        if not numeric:
            looks["linestyle"], aside = "none", BESIDE * ((i + 0.5) / len(points) - 0.5)
        axes.errorbar([place[x] + aside for x in line], mean, yerr=[low, high], **looks)
    if numeric and _scale(list(place.values())) == "log":
        axes.set_xscale("log")
    if len(settings) <= 12:
        axes.set_xticks([place[x] for x in settings], style.told_apart([str(x) for x in settings]))
        axes.minorticks_off()
    if _scale(means) == "log":
        style.log_axis(axes)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(called(against))
    axes.set_ylabel(keys.axis(metric).replace("(ms)", f"({unit})"))
    axes.grid(alpha=0.3)
    if not numeric:
        axes.set_xlim(-0.5, len(settings) - 0.5)
    if by:
        style.legend(figure, axes, max(len(points), 2))
    style.plain_numbers(axes)
    figure.savefig(path)
