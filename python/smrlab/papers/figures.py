"""A paper's figures and tables, drawn from the runs of its reproduction."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_whole
from ..plots import style
from .paper import Figure, Table
from .runs import Run, Runs

Series = tuple[str, list[float], list[float]]
# The four time scales of a histogram of response times: bins of 1, 10, 100 and 1000 ms.
SCALES_MS = (1.0, 10.0, 100.0, 1000.0)
BINS = 40
# Up to so many values of x each have a tick of their own, if they do not lie close together.
TICKS = 6


def _number(value: object) -> float:
    text = str(value)
    return float(text[:-1]) if text.endswith("%") else float(text)


def series(figure: Figure, runs: Runs, others: Mapping[str, Runs]) -> list[Series]:
    """The lines of a figure: name, x, y."""
    chosen = runs.where(**figure.where) if figure.where else runs
    keys = figure.keys or {"": figure.y}
    if figure.kind == "curves":
        return [
            (key or _name(figure, run), run.items(figure.x), run.items(y)) for run in chosen for key, y in keys.items()
        ]
    lines = []
    for name in dict.fromkeys(_name(figure, run) for run in chosen):
        members = [run for run in chosen if _name(figure, run) == name]
        for key, y in keys.items():
            title = f"{name}, {key}" if key and figure.series else key or name
            lines.append((title, [_number(r.point[figure.x]) for r in members], [r.value(y) for r in members]))
    across = sorted({x for _, xs, _ in lines for x in xs})
    for level in figure.levels:
        if level in others:
            lines.append(
                (figure.names.get(level, level), [across[0], across[-1]], [others[level][0].value(figure.y)] * 2)
            )
    return lines


def _name(figure: Figure, run: Run) -> str:
    value = str(run.point[figure.series]) if figure.series else figure.experiment
    plain = f"{figure.series} {value}" if value.isdecimal() else value
    return figure.names.get(value, plain)


def _windows(figure: Figure, run: Run) -> tuple[list[float], list[float]]:
    table = run.result.timeline()
    start = [float(v) for v in table.column("start_s").to_pylist()]
    width = (start[1] - start[0]) if len(start) > 1 else 1.0
    values = [float(v or 0) for v in table.column(figure.y).to_pylist()]
    if 0 < run.value("makespan_s") < start[-1] + width and len(start) > 1:
        # The run ended within the last window, whose count would look like a fall.
        start, values = start[:-1], values[:-1]
    start = [at for at in start if at < figure.until_s]
    values = values[: len(start)]
    return start, [v / width for v in values] if figure.unit == "IOPS" else values


def draw(figure: Figure, experiments: Mapping[str, Runs], folder: Path) -> Path:
    """Writes the figure as SVG and its data as CSV beside it; gives the SVG's path."""
    runs = experiments[figure.experiment]
    if figure.kind in ("histograms", "bars"):
        return (_histograms if figure.kind == "histograms" else _bars)(figure, runs, folder)
    if figure.kind == "windows":
        return _over_time(figure, runs, folder)
    if figure.kind not in ("lines", "curves"):
        raise InputError(f"figure {figure.id}: unknown kind '{figure.kind}'")
    lines = series(figure, runs, experiments)
    drawing, (axes,) = style.new_figure()
    points = figure.kind == "lines"
    levels = {figure.names.get(level, level) for level in figure.levels}
    for i, (name, x, y) in enumerate(lines):
        marker = style.MARKERS[i % len(style.MARKERS)] if points and name not in levels else ""
        axes.plot(x, y, label=name, marker=marker, markersize=3, **style.line_style(i))
    axes.set_xlabel(_label(figure))
    axes.set_ylabel(figure.unit)
    values = sorted({v for _, xs, _ in lines for v in xs})
    if figure.log_x:
        style.log_axis(axes, "x")
    elif (
        points and 1 < len(values) <= TICKS and min(b - a for a, b in pairwise(values)) > (values[-1] - values[0]) / 12
    ):
        axes.set_xticks(values, [f"{v:g}" for v in values])
    if figure.log:
        style.log_axis(axes)
    else:
        axes.set_ylim(bottom=0)
    style.legend(drawing, axes, len(lines))
    path = folder / f"{figure.id}.svg"
    style.save_svg(drawing, path)
    _data(path, ("series", figure.x, figure.y or "value"),
          [(name, a, b) for name, x, y in lines for a, b in zip(x, y, strict=True)])  # fmt: skip
    return path


def _over_time(figure: Figure, runs: Runs, folder: Path) -> Path:
    """A panel for each run: what jumps from window to window would hide another line."""
    chosen = runs.where(**figure.where) if figure.where else runs
    drawing, panels = style.stacked(len(chosen))
    rows: list[tuple[Any, ...]] = []
    for i, (axes, run) in enumerate(zip(panels, chosen, strict=True)):
        name, (x, y) = _name(figure, run), _windows(figure, run)
        axes.plot(x, y, color=style.COLORS[i % len(style.COLORS)], linewidth=0.8)
        axes.set_title(name, loc="left", fontsize=7)
        axes.set_ylabel(figure.unit)
        rows += [(name, a, b) for a, b in zip(x, y, strict=True)]
    panels[0].set_ylim(bottom=0)
    panels[-1].set_xlabel("time [s]")
    path = folder / f"{figure.id}.svg"
    style.save_svg(drawing, path)
    _data(path, ("series", "time_s", figure.y), rows)
    return path


def _label(figure: Figure) -> str:
    name = figure.x.replace("_", " ")
    return figure.x_label or (f"{name} [{figure.x_unit}]" if figure.x_unit else name)


# Characters that names of bars may have in all, to stand side by side.
MOST = 90


def _bars(figure: Figure, runs: Runs, folder: Path) -> Path:
    """A group for each value of the grid, a bar in it for each key or each value of the series."""
    drawing, (axes,) = style.new_figure()
    runs = runs.where(**figure.where) if figure.where else runs
    names = list(dict.fromkeys(str(run.point[figure.x]) for run in runs))
    if figure.series:
        labels = dict.fromkeys(str(run.point[figure.series]) for run in runs)
        bars = {label: runs.where(**{figure.series: label}).values(figure.y) for label in labels}
    else:
        bars = {label: runs.values(key) for label, key in figure.keys.items()}
    width = 0.8 / len(bars)
    rows: list[tuple[Any, ...]] = []
    for i, (label, heights) in enumerate(bars.items()):
        at = [j + (i - (len(bars) - 1) / 2) * width for j in range(len(names))]
        axes.bar(at, heights, width * 0.92, label=label, color=style.COLORS[i], hatch=style.HATCHES[i],
                 edgecolor="white", linewidth=0.4)  # fmt: skip
        rows += [(label, name, value) for name, value in zip(names, heights, strict=True)]
    # Names that would run into each other stand aslant.
    aslant: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(names)), names, **(aslant if sum(map(len, names)) > MOST else {}))
    axes.set_ylabel(figure.unit)
    if figure.log:
        style.log_axis(axes)
    style.legend(drawing, axes, len(bars))
    path = folder / f"{figure.id}.svg"
    style.save_svg(drawing, path)
    _data(path, ("bar", figure.x, "value"), rows)
    return path


def _histograms(figure: Figure, runs: Runs, folder: Path) -> Path:
    """Requests by response time on four axes, each ten times as long as the one before."""
    import numpy as np

    drawing, panels = style.new_figure(4)
    rows: list[tuple[Any, ...]] = []
    chosen = runs.where(**figure.where) if figure.where else runs
    for panel, (axes, width) in enumerate(zip(panels, SCALES_MS, strict=True)):
        for i, run in enumerate(chosen):
            counts, edges = np.histogram(run.responses(), bins=BINS, range=(0, BINS * width))
            axes.stairs(np.where(counts > 0, counts, np.nan), edges, label=_name(figure, run), **style.line_style(i))
            rows += [(_name(figure, run), width, float(a), int(n)) for a, n in zip(edges, counts, strict=False)]
        style.log_axis(axes)
        axes.set_xlabel(f"ms, bins of {width:g}")
        if panel == 0:
            axes.set_ylabel(figure.unit)
    style.legend(drawing, panels[0], len(chosen))
    path = folder / f"{figure.id}.svg"
    style.save_svg(drawing, path)
    _data(path, ("series", "bin_ms", "from_ms", "requests"), rows)
    return path


def _data(path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(head)
    out.writerows(rows)
    write_whole(path.with_suffix(".csv"), text.getvalue().encode())


def tabulate(table: Table, experiments: Mapping[str, Runs], folder: Path) -> list[list[str]]:
    """The cells of a table, head first, our rows before the paper's; written as CSV too."""
    cells = [[table.row, *table.columns]]
    keys = table.row.split(", ")
    rows = [(", ".join(str(run.point[key]) for key in keys), run) for run in experiments[table.experiment]]
    rows += [(name, experiments[name][0]) for name in table.also if name in experiments]
    cells += [[name, *(_cell(run.value(key)) for key in table.columns.values())] for name, run in rows]
    for row in table.paper:
        cells.append([f"paper: {row['name']}", *(str(row.get(column, "")) for column in table.columns)])
    _data(folder / f"{table.id}.csv", cells[0], cells[1:])
    return cells


def _cell(value: float) -> str:
    return f"{value:.0f}" if value == int(value) or abs(value) >= 1e4 else f"{value:.4g}"
