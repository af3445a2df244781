"""What a figure holds, for tests of what is drawn."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure


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
