"""What a figure holds, for tests of what is drawn."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator


def saved(patch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved from now on."""
    made: list[Figure] = []
    save = Figure.savefig

    def kept(figure: Figure, path: Path) -> None:
        made.append(figure)
        save(figure, path)

    patch.setattr(Figure, "savefig", kept)
    return made


def curves(axes: Axes) -> list[tuple[list[float], list[float]]]:
    """The curves without the dots of what stands alone."""
    lines = [line for line in axes.lines if line.get_marker() != "."]
    return [(np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()) for line in lines]


def bars(axes: Axes) -> list[list[tuple[float, float, float, float]]]:
    """Left, bottom, width and height of each bar, by what they were drawn together with."""
    return [
        [tuple(round(float(v), 9) for v in (*bar.get_xy(), bar.get_width(), bar.get_height())) for bar in group]  # type: ignore[misc]
        for group in axes.containers
    ]


def named(figure: Figure) -> list[str]:
    """What its legend names."""
    return [text.get_text() for of in figure.legends for text in of.get_texts()]


def rows(path: Path) -> list[list[str]]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.reader(file))


def seen(figure: Figure) -> Iterator[str]:
    """All that a reader sees of a figure, line by line: sizes, axes, what is drawn where and in which colour."""
    yield f"figure {_short(figure.get_size_inches())}"
    for legend in figure.legends:
        texts = [t.get_text() for t in legend.get_texts()]
        yield f"legend {texts} columns={legend._ncols} frame={legend.get_frame_on()} size={legend._fontsize}"  # type: ignore[attr-defined]
    for axes in figure.axes:
        yield f"axes {axes.get_title()!r} {axes.get_title('left')!r}" + ("" if axes.get_visible() else " hidden")
        both: list[tuple[str, Any]] = [("x", axes.xaxis), ("y", axes.yaxis)]
        for name, axis in both:
            grid = axis.get_gridlines()
            major = axis.get_major_locator()
            ticks = [t.get_text() for t in axis.get_ticklabels()] if isinstance(major, FixedLocator) else ""
            ends = _short(axis.get_view_interval())
            label = axis.get_label()
            number = axis.get_major_formatter()(12345.0, 0)
            yield (
                f"  {name} {label.get_text()!r} {axis.get_scale()} {ends} {type(major).__name__} {ticks} "
                f"{type(axis.get_minor_locator()).__name__} {number!r} "
                f"sizes={label.get_fontsize():g},{[t.get_fontsize() for t in axis.get_ticklabels()[:1]]} "
                f"turned={[t.get_rotation() for t in axis.get_ticklabels()[:1]]} "
                f"grid={axis._major_tick_kw.get('gridOn')} alpha={[g.get_alpha() for g in grid[:1]]}"
            )
        if inside := axes.get_legend():
            yield f"  legend {[t.get_text() for t in inside.get_texts()]}"
        yield from _grid_over(axes)
        for line in axes.lines:
            yield (
                f"  line {line.get_label()!r} {line.get_color()} {line.get_linestyle()!r}{line._unscaled_dash_pattern} "  # type: ignore[attr-defined]
                f"{line.get_linewidth():g} {line.get_marker()!r} {line.get_markersize():g} "
                f"{_short(line.get_xdata())} {_short(line.get_ydata())}"
            )
        for patch in axes.patches:
            corners = patch.get_path().transformed(patch.get_patch_transform()).vertices
            face = patch.get_facecolor()
            yield (
                f"  patch {patch.get_label()!r} {_short(face)} {_short(patch.get_edgecolor())} {patch.get_hatch()!r} "
                f"{patch.get_linewidth():g} {patch.get_alpha()} {_short(np.asarray(corners))}"
            )
        for shape in axes.collections:
            faces = [] if isinstance(shape, QuadMesh | PathCollection) else shape.get_facecolor()
            for path in shape.get_paths():
                colour = f"{shape.get_alpha()} {_short(shape.get_linewidth())} {_short(faces)}"
                yield f"  area {colour} {_short(path.vertices)}"
        for image in axes.images:
            held: Any = np.ma.filled(np.ma.asarray(image.get_array()), np.nan)
            scale = f"{image.cmap.name} {image.norm.vmin} {image.norm.vmax} {image.origin}"
            yield f"  image {image.get_extent()} {scale} {_short(held)}"


def _grid_over(axes: Axes) -> Iterator[str]:
    """Says it where lines of the grid hide parts of bars, curves, or areas that are not seen through."""
    shown = [a for a in (*axes.lines, *axes.patches, *axes.collections) if a.get_alpha() in (None, 1)]
    order = [artist.get_zorder() for artist in shown]
    both: list[Any] = [axes.xaxis, axes.yaxis]
    grids = [axis.get_zorder() for axis in both if axis._major_tick_kw.get("gridOn")]
    if min(order, default=9) < max(grids, default=0):
        yield "  the grid lies over what is drawn"


def _short(values: Any) -> str:
    """Numbers with four digits."""
    return " ".join(f"{v:.4g}" for v in np.ravel(np.asarray(values, float)))
