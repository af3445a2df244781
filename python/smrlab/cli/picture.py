"""The characterisation of a trace as a table and a picture in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import text
from ..trace_info import COLUMNS, TraceInfo
from . import console

SHADES = " ░▒▓█"
PICTURE = (72, 16)


def show(name: str, doc: TraceInfo) -> None:
    """Prints the figures, and where in time and address the requests fell."""
    out = console.out()
    table = console.table(name, ["", ""], numeric=True)
    table.show_header = False
    for label, value in doc.rows():
        table.add_row(label, value)
    out.print(table)
    grid = doc.get("grid")
    if grid:
        out.print("Requests by time (to the right) and address (upwards):", highlight=False)
        for line in picture(grid, doc["span_s"], doc["max_offset_bytes"]):
            out.print(line, markup=False)


def picture(grid: dict[str, Any], span_s: float, highest_bytes: int) -> list[str]:
    """The grid as lines of characters between axes, darker where there are more requests."""
    columns = COLUMNS
    wide = min(columns, max(1, int(span_s * 1e9 // grid["column_ns"]) + 1))
    high = min(len(grid["cells"]) // columns, max(1, -(-highest_bytes // 512 // grid["row_blocks"])))
    across, up = min(PICTURE[0], wide), min(PICTURE[1], high)
    sums = [[0] * across for _ in range(up)]
    for i, cell in enumerate(grid["cells"]):
        row, column = divmod(i, columns)
        if row < high and column < wide:
            sums[row * up // high][column * across // wide] += cell["reads"] + cell["writes"]
    most = max(max(row) for row in sums) or 1
    label = text.size(highest_bytes)
    lines = [
        f"{label if i == 0 else '':>9} │{''.join(_shade(v, most) for v in row)}" for i, row in enumerate(reversed(sums))
    ]
    lines.append(f"{'0':>9} └{'─' * across}")
    end = text.milliseconds(span_s * 1e3)
    lines.append(f"{'':>11}0{end:>{max(across - 1, len(end) + 1)}}")
    return lines


def _shade(value: int, most: int) -> str:
    """On a scale of square roots, so that few requests are seen beside many."""
    if value == 0:
        return SHADES[0]
    return SHADES[max(1, round((value / most) ** 0.5 * (len(SHADES) - 1)))]


def rates(zones: Sequence[tuple[int, float]], blocks: int) -> list[str]:
    """Rate over address as a skyline: `zones` are first blocks and MB/s."""
    across, up = PICTURE[0], 10
    most = max(rate for _, rate in zones)
    columns = []
    for x in range(across):
        at = (x + 0.5) * blocks / across
        columns.append([rate for first, rate in zones if first <= at][-1] / most * up)
    blocks_of = " ▁▂▃▄▅▆▇█"
    lines = []
    for row in range(up - 1, -1, -1):
        cells = "".join(blocks_of[round(min(max(height - row, 0), 1) * 8)] for height in columns)
        label = f"{most:.0f} MB/s" if row == up - 1 else ""
        lines.append(f"{label:>9} │{cells}")
    end = text.size(blocks * 512)
    return [*lines, f"{'0':>9} └{'─' * across}", f"{'':>11}0{end:>{across - 1}}"]
