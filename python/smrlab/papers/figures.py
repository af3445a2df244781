"""A paper's figures, drawn from the runs of its reproduction."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ..outdir import write_whole
from ..plots import style
from .paper import Figure
from .runs import Run, Runs

Series = tuple[str, list[float], list[float]]


def _number(value: object) -> float:
    text = str(value)
    return float(text[:-1]) if text.endswith("%") else float(text)


def series(figure: Figure, runs: Runs) -> list[Series]:
    """The lines of a figure: name, x, y."""
    chosen = runs.where(**figure.where) if figure.where else runs
    if figure.kind == "windows":
        return [(_name(figure, run), *_windows(figure, run)) for run in chosen]
    names = list(dict.fromkeys(_name(figure, run) for run in chosen))
    lines = []
    for name in names:
        members = [run for run in chosen if _name(figure, run) == name]
        lines.append((name, [_number(r.point[figure.x]) for r in members], [r.value(figure.y) for r in members]))
    return lines


def _name(figure: Figure, run: Run) -> str:
    if not figure.series:
        return figure.experiment
    value = str(run.point[figure.series])
    return f"{figure.series} {value}" if value.isdecimal() else value


def _windows(figure: Figure, run: Run) -> tuple[list[float], list[float]]:
    table = run.result.timeline()
    start = [float(v) for v in table.column("start_s").to_pylist()]
    width = (start[1] - start[0]) if len(start) > 1 else 1.0
    start = [at for at in start if at < figure.until_s]
    values = [float(v or 0) for v in table.column(figure.y).to_pylist()][: len(start)]
    return start, [v / width for v in values] if figure.unit == "IOPS" else values


def draw(figure: Figure, runs: Runs, folder: Path) -> Path:
    """Writes the figure as SVG and its data as CSV beside it; gives the SVG's path."""
    lines = series(figure, runs)
    drawing, (axes,) = style.new_figure()
    for i, (name, x, y) in enumerate(lines):
        marker = "" if figure.kind == "windows" else "o"
        axes.plot(x, y, label=name, marker=marker, markersize=3, **style.line_style(i))
    axes.set_xlabel(f"time [{figure.x_unit or 's'}]" if figure.kind == "windows" else f"{figure.x} [{figure.x_unit}]")
    axes.set_ylabel(f"{figure.title} [{figure.unit}]" if len(figure.title) < 28 else figure.unit)
    if figure.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    style.legend(drawing, axes, len(lines))
    path = folder / f"{figure.id}.svg"
    style.save_svg(drawing, path)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["series", figure.x or "time_s", figure.y])
    for name, x, y in lines:
        rows.writerows((name, a, b) for a, b in zip(x, y, strict=True))
    write_whole(folder / f"{figure.id}.csv", text.getvalue().encode())
    return path
