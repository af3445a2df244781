"""What the figures show, computed once from result files; the HTML report and the SVG figures both draw from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .summary import derived

Floats = NDArray[np.float64]

MAX_WINDOWS = 1200
MAX_BUCKETS = 400
# Times that no request took are seen from this ratio on.
FAR = 1.05
MAX_HEAT = (240, 96)
KINDS = ("response", "read_response", "write_response", "service")

# The engine keeps reads and writes apart and leaves their sum to the reader.
_ALIASES = {"read": "read_response", "write": "write_response"}

# How windows that are merged for display combine: column -> rule.
_SUMS = (
    "arrivals",
    "completions",
    "read_blocks",
    "write_blocks",
    "media_blocks_read",
    "media_blocks_written",
    "zone_resets",
    "refused",
)
# Weighted by the width of their windows.
_SHARES = ("busy_share", "cleaning_share", "stalled_share", "iops", "mb_per_s")


class Recorded(Protocol):
    """What is drawn: a run's name, its document, and its tables."""

    @property
    def name(self) -> str:
        """What the run is called."""

    @property
    def doc(self) -> Mapping[str, Any]:
        """The document as plain data."""

    def table(self, name: str) -> pa.Table | None:
        """The named table, or None where the run did not record it."""


def runs_payload(runs: Sequence[Recorded]) -> list[dict[str, Any]]:
    """One entry a run; a table that is absent gives None, and its figures say so."""
    return [
        {
            "name": run.name,
            "doc": derived(run.doc),
            "timeline": timeline(
                run.table("timeline"), len(run.doc.get("members") or [None]), run.doc.get("makespan_s")
            ),
            "drives": drives(run.table("members"), run.doc.get("makespan_s")),
            "histogram": histogram(run.table("histogram")),
            "heat": heatmap(run.table("heatmap")),
        }
        for run in runs
    ]


def columns(table: pa.Table) -> dict[str, Floats]:
    """The numeric columns as floats; nulls become NaN."""
    out = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            out[name] = floats(column)
    return out


def floats(column: pa.ChunkedArray) -> Floats:
    """Numbers as floats, nulls as NaN. `to_numpy` does the same, and first loads pandas wherever that is installed."""
    parts = [np.empty(0)]
    for chunk in filter(len, column.cast(pa.float64()).chunks):
        bitmap, data = chunk.buffers()
        part = np.frombuffer(data, np.float64)[chunk.offset :][: len(chunk)]
        if chunk.null_count:
            there = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")[chunk.offset :][: len(chunk)]
            part = np.where(there, part, np.nan)
        parts.append(part)
    return np.concatenate(parts)


def timeline(
    table: pa.Table | None, drives: int = 1, until: float | None = None
) -> dict[str, list[float | None]] | None:
    """Series over time: `t` (window middles, s), `iops`, `mean`/`max` (ms), `wa`, shares, `backlog`, head, zones.

    What the `drives` of an array did at the same time adds up in its table; here it is their mean. The run ended
    `until` so many seconds, mostly within the last window: rates and shares there are of the time that there was.
    """
    if table is None or table.num_rows == 0:
        return None
    merged = merge_windows(columns(table), math.ceil(table.num_rows / MAX_WINDOWS))
    start, end = merged["start_s"], merged["end_s"]
    width = np.maximum(end - start, 1e-12)
    lived = lived_widths(start, width, until)
    series: dict[str, Floats] = {"t": (start + end) / 2}
    names = {
        "mean": "response_ms_mean",
        "max": "response_ms_max",
        "busy": "busy_share",
        "clean": "cleaning_share",
        "stalled": "stalled_share",
        "cache": "cache_share",
        "backlog": "backlog",
        "head_min": "head_track_min",
        "head_max": "head_track_max",
        "head": "head_track_mean",
        "zones_open": "open_zones",
        "zones_closed": "closed_zones",
        "zones_full": "full_zones",
    }
    series |= {short: merged[long] for short, long in names.items() if long in merged}
    series |= {short: series[short] / drives for short in ("busy", "clean") if short in series}
    # Background work may go on after the last completion.
    shares = (short for short in ("busy", "clean", "stalled") if short in series)
    series |= {short: np.minimum(series[short] * width / lived, 1) for short in shares}
    if "completions" in merged:
        # From the counts, which add up over windows.
        series["iops"] = merged["completions"] / lived
    if "write_blocks" in merged and "media_blocks_written" in merged:
        host = merged["write_blocks"]
        series["wa"] = np.where(host > 0, merged["media_blocks_written"] / np.maximum(host, 1), np.nan)
    for short, long in (("resets", "zone_resets"), ("refused", "refused")):
        if long in merged:
            series[short] = merged[long] / lived
    if not merged.get("refused", np.zeros(1)).any():
        series.pop("refused", None)
    # A column without a value is no series: a layer without a cache has no cache that fills.
    return {name: rounded(values) for name, values in series.items() if not np.isnan(values).all()}


def lived_widths(start: Floats, width: Floats, until: float | None) -> Floats:
    """The widths of windows, the last one's up to the run's end at `until`.

    NaN where that is less than half of it, and not all there is: a rate of so short a time says nothing.
    """
    lived = width.copy()
    if until is not None and start[-1] < until < start[-1] + width[-1]:
        rest = until - start[-1]
        lived[-1] = rest if len(lived) == 1 or rest >= width[0] / 2 else np.nan
    return lived


def drives(table: pa.Table | None, until: float | None = None) -> list[dict[str, list[float | None]]] | None:
    """Of each drive of an array `t` (s), `busy` and `clean` (shares); None for one drive."""
    if table is None or table.num_rows == 0:
        return None
    # By arrow alone: what goes over numpy or Python's numbers loads pandas.
    disk = table.column("disk")
    mine = (table.filter(pc.equal(disk, number)) for number in disk.unique().sort())
    each = (timeline(one, until=until) or {} for one in mine)
    return [{name: series[name] for name in ("t", "busy", "clean") if name in series} for series in each]


def merge_windows(cols: dict[str, Floats], factor: int) -> dict[str, Floats]:
    """Merges each `factor` neighbouring windows: counts add, means are weighted, extremes stay extremes."""
    if factor <= 1:
        return cols
    n = len(cols["start_s"])
    cuts = np.arange(0, n, factor)
    last = np.minimum(cuts + factor, n) - 1
    width = cols["end_s"] - cols["start_s"]
    weight = cols.get("completions", np.ones(n))
    out = {"start_s": cols["start_s"][cuts], "end_s": cols["end_s"][last]}
    for name, values in cols.items():
        if name in _SUMS:
            # Missing where it does not apply, and then everywhere.
            out[name] = values[cuts] if np.isnan(values).all() else np.add.reduceat(np.nan_to_num(values), cuts)
        elif name in _SHARES:
            out[name] = _weighted(values, width, cuts)
        elif name.endswith("_max"):
            out[name] = np.fmax.reduceat(values, cuts)
        elif name.endswith("_min"):
            out[name] = np.fmin.reduceat(values, cuts)
        elif name.endswith("_mean"):
            out[name] = _weighted(values, weight if name.startswith("response") else width, cuts)
        elif name not in out:
            out[name] = values[last]
    return out


def _weighted(values: Floats, weight: Floats, cuts: NDArray[np.int64]) -> Floats:
    weight = np.where(np.isnan(values), 0.0, weight)
    total = np.add.reduceat(weight, cuts)
    mean = np.add.reduceat(np.nan_to_num(values) * weight, cuts) / np.maximum(total, 1e-300)
    return np.where(total > 0, mean, np.nan)


def histogram(table: pa.Table | None) -> dict[str, dict[str, list[float | None]]] | None:
    """Per kind: upper edges in ms (`x`) and the share of requests at or below them (`f`), with the total `n`."""
    if table is None or table.num_rows == 0:
        return None
    kinds = np.array([_ALIASES.get(k, k) for k in table.column("kind").to_pylist()], dtype=object)
    cols = columns(table)
    picked = {kind: kinds == kind for kind in KINDS}
    if not picked["response"].any():
        picked["response"] = picked["read_response"] | picked["write_response"]
    out = {}
    for kind, mine in picked.items():
        if cols["count"][mine].sum() > 0:
            out[kind] = _distribution(*_merged(cols["lo_ms"][mine], cols["hi_ms"][mine], cols["count"][mine]))
    return out or None


def _merged(lo: Floats, hi: Floats, count: Floats) -> tuple[Floats, Floats, Floats]:
    """Ascending buckets; those with the same edges, of reads and of writes, become one."""
    edges, where = np.unique(lo, return_inverse=True)
    upper = np.zeros(len(edges))
    np.maximum.at(upper, where, hi)
    return edges, upper, np.bincount(where, count, len(edges)).astype(np.float64)


def _distribution(lo: Floats, hi: Floats, count: Floats) -> dict[str, list[float | None]]:
    cumulated = np.cumsum(count)
    total = cumulated[-1]
    step = math.ceil(len(hi) / MAX_BUCKETS)
    # Over times that no request took the curve is flat: it has a point at either end of them.
    before = np.flatnonzero(lo[1:] > FAR * hi[:-1])
    keep = np.unique(np.concatenate([np.arange(step - 1, len(hi), step), before, [len(hi) - 1]]))
    x = np.concatenate([[max(lo[0], hi[0] / 2)], hi[keep], lo[before + 1]])
    reached = np.concatenate([[0.0], cumulated[keep], cumulated[before]])
    order = np.lexsort((reached, x))
    x, reached = x[order], reached[order]
    left = (total - reached) / total
    return {"x": rounded(x), "f": rounded(reached / total, 7), "tail": rounded(left), "n": [float(total)]}


def heatmap(table: pa.Table | None) -> dict[str, Any] | None:
    """Requests per window and LBA range as dense rows of `cols` windows, lowest LBA first."""
    if table is None or table.num_rows == 0:
        return None
    c = columns(table)
    window, bin_ = c["window"].astype(np.int64), c["bin"].astype(np.int64)
    wide, high = (math.ceil((v.max() + 1) / m) for v, m in zip((window, bin_), MAX_HEAT, strict=True))
    n_cols, n_rows = int(window.max() // wide) + 1, int(bin_.max() // high) + 1
    cell = (bin_ // high) * n_cols + window // wide
    t0, t1 = _extent(window, c["start_s"], wide, n_cols)
    return {
        "cols": n_cols,
        "rows": n_rows,
        "t0": t0,
        "t1": t1,
        "lba0": float(c["lba_lo"].min()),
        "lba1": float(c["lba_hi"].max()),
        **{k: rounded(np.bincount(cell, c[k], n_cols * n_rows).astype(np.float64), 4) for k in ("reads", "writes")},
    }


def _extent(window: NDArray[np.int64], start_s: Floats, wide: int, n_cols: int) -> tuple[float, float]:
    """Where in time the first column starts and the last one ends, from the slope of start over window number."""
    first, last = int(window.argmin()), int(window.argmax())
    steps = window[last] - window[first]
    slope = (start_s[last] - start_s[first]) / steps if steps else max(float(start_s[first]), 1.0)
    t0 = float(start_s[first] - slope * window[first])
    return t0, t0 + float(slope) * wide * n_cols


def rounded(values: Floats, digits: int = 5) -> list[float | None]:
    """Significant digits enough to draw, so that the file stays small; NaN becomes None."""
    return [_number(v, digits) for v in values.tolist()]


def _number(value: float, digits: int) -> float | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
