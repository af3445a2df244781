"""What all figures share: colours that differ in grey too, line styles, sizes, and how an SVG is saved."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter, ScalarFormatter

from .. import text
from ..errors import InputError
from ..files import FIGURES, write_whole

# Alternating dark and light, so that neighbours differ without colour; the line styles differ as well.
COLORS = ("#12355b", "#e8743f", "#1b7a5a", "#b06ab3", "#6b4a00", "#4a94ec", "#8c1d2f", "#8aa12c")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)), (0, (1, 2)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo", "----", "||||")
MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")
SIZE = (5.0, 2.8)
# Characters of a legend that fit into that width, marks left out.
LINE = 75
# Characters of a run's name beside bars, which leave the bars half of the width.
BESIDE = 36
# Characters of a line of a setting's value below an axis.
NARROW = 20

SETTINGS: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "svg.hashsalt": "smrlab",
    "lines.linewidth": 1.2,
}


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of run number `index`."""
    return {"color": COLORS[index % len(COLORS)], "linestyle": DASHES[(index + index // len(COLORS)) % len(DASHES)]}


def stacked(rows: int) -> tuple[Figure, list[Axes]]:
    """A figure of paper-column width with `rows` panels over each other, on the same axes."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(SIZE[0], max(SIZE[1], 1.7 * rows)), layout="constrained")
        grid = figure.subplots(rows, 1, sharex=True, sharey=True, squeeze=False)
    return figure, list(grid[:, 0])


def new_figure(columns: int = 1, height: float = SIZE[1]) -> tuple[Figure, list[Axes]]:
    """A figure of paper-column width with `columns` panels side by side."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(SIZE[0] * (1.3 if columns > 1 else 1), height), layout="constrained")
        axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    return figure, axes


def tiled(rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A figure with panels over and beside each other that share the axis of time, row by row."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(SIZE[0] * 1.3, 2.0 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    return figure, list(grid.flat)


def log_axis(axes: Axes, which: str = "y", write: Callable[[float], str] = text.number) -> None:
    """A logarithmic axis with plain numbers, not 6.25 x 10^0; `which`: x or y. Without values above 0 it stays."""
    if not (axes.dataLim.intervaly if which == "y" else axes.dataLim.intervalx)[1] > 0:
        return
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    axis = axes.yaxis if which == "y" else axes.xaxis
    low, high = axes.get_ylim() if which == "y" else axes.get_xlim()
    if high / low < 10:
        low, high = low / 1.5, high * 1.5
        (axes.set_ylim if which == "y" else axes.set_xlim)(low, high)
    if high / low < 30 or math.floor(math.log10(high)) == math.ceil(math.log10(low)):
        # One power of ten alone names no scale: at least two numbers are seen.
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low > 5 else (1, 1.5, 2, 3, 4, 5, 7)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda v, _: write(v)))


def plain_numbers(axes: Axes) -> None:
    """Large numbers at linear axes in full upwards, and as 20k, 3M across; not as multiples of 1e6."""
    for axis, ends, write in (
        (axes.yaxis, axes.get_ylim(), FuncFormatter(lambda v, _: f"{v:,.0f}")),
        (axes.xaxis, axes.get_xlim(), EngFormatter(sep="")),
    ):
        if max(map(abs, ends)) >= 1e4 and isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(write)


def told_apart(names: list[str], width: int = NARROW) -> list[str]:
    """Names below an axis; of long ones what tells them apart, in lines of `width` characters where words allow it."""
    if max(map(len, names), default=0) <= width:
        return names
    words = [re.findall(r"[^/:,.]+[/:,.]*|[/:,.]+", name) for name in names]

    def alike(words: Iterable[list[str]]) -> int:
        return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*words, strict=False)))

    head = alike(words)
    tail = alike(w[:head:-1] for w in words)
    return [_filled(w[head : len(w) - tail] or w, width).strip("/:,.") for w in words]


def _filled(words: list[str], width: int) -> str:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1] + word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def in_lines(name: str, width: int = BESIDE) -> str:
    """A name in as many lines as it takes: stacks have long ones."""
    return textwrap.fill(name, width, break_on_hyphens=False)


def beside(axes: Axes, names: list[str]) -> None:
    """Names the bars of `axes` from the top down; the figure grows where names have several lines."""
    lines = [in_lines(name) for name in names]
    axes.set_yticks(range(len(names)), lines)
    figure = axes.get_figure(root=True)
    if figure and (more := sum(line.count("\n") for line in lines)):
        figure.set_figheight(figure.get_figheight() + 0.14 * more)


def legend(figure: Figure, axes: Axes, count: int) -> None:
    """Names the runs above the panels, where there is more than one."""
    if count > 1:
        handles, labels = axes.get_legend_handles_labels()
        labels = [in_lines(str(label), LINE) for label in labels]
        # Beside each other where they have room in the width of a figure.
        columns = max(1, min(3, count, LINE // max(map(len, labels), default=1)))
        # Columns are filled one by one, and names are read line by line.
        order = [i for first in range(columns) for i in range(first, len(labels), columns)]
        handles, labels = [handles[i] for i in order], [labels[i] for i in order]
        figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=7)


def svg(figure: Figure) -> bytes:
    """The figure as SVG, with plain numbers; the same figure gives the same bytes."""
    for axes in figure.axes:
        plain_numbers(axes)
    buffer = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        # Draws once; `savefig` would draw twice, for the layout that the first drawing makes here.
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def save_svg(figure: Figure, path: Path) -> None:
    """Writes the figure as SVG."""
    write_whole(path, svg(figure))


def save(figure: Figure, path: Path) -> None:
    """Writes the figure as its name ends. Raises InputError for an ending that no figure has."""
    if (kind := path.suffix) not in FIGURES:
        raise InputError(f"{path}: a figure ends in {', '.join(FIGURES)}")
    if kind == ".svg":
        save_svg(figure, path)
        return
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind[1:])
    write_whole(path, buffer.getvalue())
