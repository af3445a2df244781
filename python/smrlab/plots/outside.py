"""Figures of drives seen from outside: zones and skew as in figures 11 and 12 of the emulator's paper, and evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from .style import COLORS, legend, new_figure, save_svg

Points = Sequence[tuple[float, float]]


def zones(runs: Sequence[tuple[int, int]], measured: Points = (), curve: Points = ()) -> Figure:
    """Track size against track number (figure 11): `runs` of (tracks, sectors), measured sizes, a fitted curve."""
    figure, (axes,) = new_figure()
    if measured:
        xs, ys = zip(*measured, strict=True)
        axes.plot(xs, ys, ".", color="#999999", markersize=1.5, label="measured", rasterized=True)
    if curve:
        xs, ys = zip(*curve, strict=True)
        axes.plot(xs, ys, "--", color=COLORS[1], label="polynomial")
    edges, sizes = [0], []
    for tracks, sectors in runs:
        edges.append(edges[-1] + tracks)
        sizes.append(sectors)
    axes.stairs(sizes, edges, color=COLORS[0], baseline=None, label="zones")
    axes.set_xlabel("track, in LBA order")
    axes.set_ylabel("sectors")
    axes.set_ylim(bottom=0)
    legend(figure, axes, 1 + bool(measured) + bool(curve))
    return figure


def skew(whole: Points, near: Points) -> Figure:
    """Time from the first sector to each track's first sector (figure 12): the whole drive, and 100 tracks."""
    figure, panels = new_figure(2)
    for axes, points in zip(panels, (whole, near), strict=True):
        if points:
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, ".", color=COLORS[0], markersize=2)
        axes.set_xlabel("track, in LBA order")
        axes.set_ylabel("milliseconds")
    return figure


def seeks(seek: dict[str, Any]) -> Figure:
    """Seek time against distance of an extraction's `seek`; towards higher LBAs as a line, back dashed."""
    figure, (axes,) = new_figure()
    named = 0
    for i, name in enumerate(("read", "write")):
        ways: Sequence[Points] = seek.get(f"{name}_by_direction", [seek[name]])
        for points, line, way in zip(ways, ("o-", "o--"), ("up", "back"), strict=False):
            if points:
                xs, ys = zip(*points, strict=True)
                label = f"{name}s, {way}" if len(ways) > 1 else f"{name}s"
                axes.plot(xs, [y / 1e6 for y in ys], line, color=COLORS[i], markersize=1.5, linewidth=0.7, label=label)
                named += 1
    axes.set_xlabel("cylinders")
    axes.set_ylabel("milliseconds")
    axes.set_ylim(bottom=0)
    legend(figure, axes, named)
    return figure


def evidence(doc: dict[str, Any], folder: Path) -> list[Path]:
    """The patterns of a probe that have numbers, one picture each."""
    saved = []
    for item in doc["evidence"]:
        if not item["points"]:
            continue
        figure, (axes,) = new_figure()
        xs, ys = zip(*item["points"], strict=True)
        axes.plot(xs, ys, ".-" if len(xs) < 100 else ".", color=COLORS[0], markersize=3, linewidth=0.6)
        axes.set_xlabel(item["axes"][0])
        axes.set_ylabel(item["axes"][1])
        axes.set_ylim(bottom=0)
        path = folder / f"probe-{re.sub('[^a-z]+', '-', item['test'].lower())}.svg"
        save_svg(figure, path)
        saved.append(path)
    return saved
