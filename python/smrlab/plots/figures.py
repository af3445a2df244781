"""The figures themselves: each takes the payload of the runs and gives a Figure, or None where nothing applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .. import text
from .style import COLORS, HATCHES, SETTINGS, beside, legend, line_style, log_axis, new_figure, tiled

Payload = list[dict[str, Any]]
Writer = Callable[[float], str]
CAUSES = ("host", "clean", "destage", "defrag", "metadata", "journal", "fill", "parity", "rebuild", "seek", "rotation")
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))


def numbers(values: Sequence[float | None]) -> np.ndarray[Any, Any]:
    """The values with None as NaN."""
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def time_unit(span: float) -> tuple[float, str]:
    """The unit in which a span of seconds has a few to some hundred steps."""
    return next((u for u in _UNITS if span >= 3 * u[0]), _UNITS[-1])


def shown_end(ends: Sequence[float]) -> float:
    """Where the time axis ends: a run that goes on much longer than the others does not squeeze them."""
    most = 4 * sorted(ends)[(len(ends) - 1) // 2]
    return max(end for end in ends if end <= most)


def isolated(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where values stand alone between missing ones: a single one, or so few that a line through them is not seen."""
    there = np.concatenate([[0], ~np.isnan(values), [0]])
    edges = np.flatnonzero(np.diff(there))
    out = np.zeros(len(values), dtype=bool)
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        out[first:end] = end - first <= max(1, len(values) // 200)
    return out


def _having(runs: Payload, key: str) -> list[tuple[int, dict[str, Any]]]:
    return [(i, r) for i, r in enumerate(runs) if r["timeline"] and key in r["timeline"]]


def over_time(
    runs: Payload, key: str, label: str, *, log: bool = False, factor: float = 1.0, write: Writer = text.number
) -> Figure | None:
    """One curve a run of a series of the timeline; `write` gives the texts of its axis."""
    found = _having(runs, key)
    if not found:
        return None
    end = shown_end([r["timeline"]["t"][-1] for _, r in found])
    unit, name = time_unit(end)
    with mpl.rc_context(SETTINGS):
        figure, (axes,) = new_figure()
        for i, run in found:
            t = numbers(run["timeline"]["t"]) / unit
            values = numbers(run["timeline"][key]) * factor
            axes.plot(t, values, label=run["name"], **line_style(i))
            lone = isolated(values)
            axes.plot(t[lone], values[lone], ".", color=COLORS[i % len(COLORS)], ms=3.5)
        # What happens at the very beginning or end is not cut by the frame.
        axes.set_xlim(-0.01 * end / unit, 1.01 * end / unit)
        axes.set_xlabel(f"time ({name})")
        axes.set_ylabel(label)
        _from_zero(axes, log, write)
        legend(figure, axes, len(found))
    return figure


def _from_zero(axes: Axes, log: bool, write: Writer) -> None:
    if log:
        log_axis(axes, "y", write)
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: write(v)))


def iops(runs: Payload) -> Figure | None:
    """Requests completed per second."""
    return over_time(runs, "iops", "requests completed (1/s)")


def response(runs: Payload) -> Figure | None:
    """Mean response time."""
    return over_time(runs, "mean", "mean response time", log=True, write=text.milliseconds)


def response_max(runs: Payload) -> Figure | None:
    """Longest response time of each window."""
    return over_time(runs, "max", "longest response time", log=True, write=text.milliseconds)


def write_amplification(runs: Payload) -> Figure | None:
    """Blocks written on the medium per block written by the host."""
    return over_time(runs, "wa", "media blocks written\nper host block written")


def cleaning(runs: Payload) -> Figure | None:
    """Share of time spent on cleaning."""
    return over_time(runs, "clean", "time spent cleaning (%)", factor=100)


def drives(runs: Payload) -> Figure | None:
    """Share of time in which each drive worked, of the first run of an array."""
    of = next((r["drives"] for r in runs if r["drives"]), None)
    if of is None:
        return None
    each = [{"name": f"disk {i}", "timeline": series} for i, series in enumerate(of)]
    return over_time(each, "busy", "time in which a drive worked (%)", factor=100)


def stalls(runs: Payload) -> Figure | None:
    """Share of time in which a request was waiting for longer than the threshold of a stall."""
    return over_time(runs, "stalled", "time with a stalled request (%)", factor=100)


def cache(runs: Payload) -> Figure | None:
    """Fill of the layer's cache."""
    return over_time(runs, "cache", "cache fill (%)", factor=100)


# What is drawn of zones: the series, and what its axis says.
ZONES = (
    ("zones_open", "open zones"),
    ("zones_full", "full zones"),
    ("resets", "zone resets (1/s)"),
    ("refused", "refused requests (1/s)"),
)


def zones(runs: Payload) -> Figure | None:
    """Open and full zones, resets and refusals over time, of the runs whose drives have zones."""
    found = _having(runs, "zones_open")
    if not found:
        return None
    end = shown_end([r["timeline"]["t"][-1] for _, r in found])
    unit, name = time_unit(end)
    with mpl.rc_context(SETTINGS):
        figure, grid = tiled(2, 2)
        for axes, (key, label) in zip(grid, ZONES, strict=True):
            for i, run in found:
                t, line = numbers(run["timeline"]["t"]) / unit, run["timeline"]
                axes.plot(t, numbers(line[key]) if key in line else 0 * t, label=run["name"], **line_style(i))
            axes.set_xlim(-0.01 * end / unit, 1.01 * end / unit)
            axes.set_ylabel(label)
            _from_zero(axes, False, text.number)
        for axes in grid[2:]:
            axes.set_xlabel(f"time ({name})")
        legend(figure, grid[0], len(found))
    return figure


def backlog(runs: Payload) -> Figure | None:
    """Requests that wait at the end of each window."""
    return over_time(runs, "backlog", "requests waiting")


def head(runs: Payload) -> Figure | None:
    """Mean head position with its range."""
    figure = over_time(runs, "head", "head position (track)")
    if figure is None:
        return None
    axes = figure.axes[0]
    found = _having(runs, "head")
    unit, _ = time_unit(shown_end([r["timeline"]["t"][-1] for _, r in found]))
    for i, run in found:
        line = run["timeline"]
        if "head_min" in line and "head_max" in line:
            low, high = numbers(line["head_min"]), numbers(line["head_max"])
            axes.fill_between(numbers(line["t"]) / unit, low, high, color=COLORS[i % len(COLORS)], alpha=0.13, lw=0)
    return figure


def distribution(runs: Payload) -> Figure | None:
    """Share of requests at or below a response time, and the share above it on a log scale."""
    found = [(i, r) for i, r in enumerate(runs) if r["histogram"] and "response" in r["histogram"]]
    if not found:
        return None
    with mpl.rc_context(SETTINGS):
        figure, (below, above) = new_figure(2)
        for i, run in found:
            h = run["histogram"]["response"]
            x, tail = numbers(h["x"]), numbers(h["tail"])
            below.plot(x, numbers(h["f"]) * 100, label=run["name"], **line_style(i))
            above.plot(x, np.where(tail > 0, tail, np.nan) * 100, **line_style(i))
        for axes, label in ((below, "requests at most that long (%)"), (above, "requests longer than that (%)")):
            if axes.dataLim.x1 > 0:
                axes.set_xscale("log")
            axes.set_xlabel("response time (ms)")
            axes.set_ylabel(label)
        below.set_ylim(0, 101)
        if above.dataLim.y1 > 0:
            above.set_yscale("log")
        legend(figure, below, len(found))
    return figure


def causes(runs: Payload) -> Figure | None:
    """Busy time of each run, stacked by cause."""
    found = [r for r in runs if r["doc"].get("time_by_cause_s")]
    if not found:
        return None
    present = {c for r in found for c, s in r["doc"]["time_by_cause_s"].items() if s > 0}
    order = [c for c in CAUSES if c in present] + sorted(present - set(CAUSES))
    with mpl.rc_context(SETTINGS):
        figure, (axes,) = new_figure(height=1.1 + 0.3 * len(found))
        left = np.zeros(len(found))
        for i, cause in enumerate(order):
            seconds = np.array([r["doc"]["time_by_cause_s"].get(cause, 0.0) for r in found])
            color, hatch = COLORS[i % len(COLORS)], HATCHES[i % len(HATCHES)]
            style: dict[str, Any] = {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0.4}
            axes.barh(range(len(found)), seconds, left=left, label=cause, height=0.62, **style)
            left += seconds
        beside(axes, [r["name"] for r in found])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("busy time (s)")
        legend(figure, axes, max(len(order), 2))
    return figure


def heat(runs: Payload) -> Figure | None:
    """Requests by time and LBA, of the first run that recorded them."""
    grid = next((r["heat"] for r in runs if r["heat"]), None)
    if grid is None:
        return None
    touched = (numbers(grid["reads"]) + numbers(grid["writes"])).reshape(grid["rows"], grid["cols"])
    unit, name = time_unit(grid["t1"] - grid["t0"])
    with mpl.rc_context(SETTINGS):
        figure, (axes,) = new_figure()
        axes.grid(visible=False)
        extent = (grid["t0"] / unit, grid["t1"] / unit, grid["lba0"], grid["lba1"])
        image = axes.imshow(
            np.where(touched > 0, touched, np.nan),
            extent=extent,
            origin="lower",
            aspect="auto",
            cmap="Blues",
            norm=LogNorm(1, max(10.0, float(touched.max()))),
            interpolation="nearest",
        )
        axes.set_xlabel(f"time ({name})")
        axes.set_ylabel("LBA (blocks of 512 B)")
        figure.colorbar(image, ax=axes, label="requests")
    return figure


def space(runs: Payload) -> Figure | None:
    """Space efficiency beside the peak memory of the maps."""
    panels = [
        ("efficiency", "space efficiency (%)", 100.0),
        ("map_bytes_peak", "peak map memory (MiB)", 1 / 2**20),
    ]
    spaces = [(r["name"], r["doc"].get("space") or {}) for r in runs]
    panels = [p for p in panels if any(p[0] in s for _, s in spaces)]
    if not panels:
        return None
    with mpl.rc_context(SETTINGS):
        figure, all_axes = new_figure(len(panels), height=0.9 + 0.26 * len(runs))
        for axes, (key, label, factor) in zip(all_axes, panels, strict=True):
            values = [s.get(key, 0) * factor for _, s in spaces]
            axes.barh(range(len(values)), values, color="#5b7fa6", height=0.6)
            if axes is all_axes[0]:
                beside(axes, [name for name, _ in spaces])
            else:
                axes.set_yticks([])
            axes.invert_yaxis()
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(label)
    return figure
