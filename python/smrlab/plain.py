"""Tables of texts, set without Rich, for commands that are to answer at once."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence

GAP = "  "
# No line of prose is longer: it is hard to read.
LONGEST = 120
# No column is folded below so many characters.
NARROWEST = 16


def bold(text: str) -> str:
    """Bold on a terminal."""
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text


def width() -> int:
    """Characters in a line: the terminal's, or as many as a line needs where stdout is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 200


def prose(text: str) -> str:
    """Paragraphs and items of lists, set anew in lines that fit; what is indented keeps its lines."""
    room = min(width(), LONGEST)

    def fill(part: str) -> str:
        if part[0] in " |>":
            return part
        words = " ".join(part.split())
        return textwrap.fill(words, room, subsequent_indent="  " * part.startswith("- "), break_on_hyphens=False)

    # A list's items follow each other without an empty line.
    parts = re.split(r"(\n\s*\n|\n(?=- ))", text.strip())
    return "".join(part if part.isspace() else fill(part) for part in parts)


def table(rows: Sequence[Sequence[str]], head: Sequence[str] | None = None, line: int | None = None) -> list[str]:
    """Lines of at most `line` characters; long cells are folded inside their column, the widest columns first."""
    every = [list(head), *map(list, rows)] if head else [list(row) for row in rows]
    if not every:
        return []
    widths = [max(1, *(len(row[i]) for row in every)) for i in range(len(every[0]))]
    room = (line or width()) - len(GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > NARROWEST:
        widest = widths.index(max(widths))
        others = sum(widths) - widths[widest]
        second = max([w for i, w in enumerate(widths) if i != widest], default=0)
        widths[widest] = max(NARROWEST, min(second - 1, widths[widest] - 1) if others >= room else room - others)
    lines = [part for row in every for part in _row(row, widths)]
    if head:
        lines.insert(len(_row(every[0], widths)), GAP.join("-" * w for w in widths))
    return lines


def _row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
    high = max(map(len, cells))
    filled = [cell + [""] * (high - len(cell)) for cell in cells]
    return [
        GAP.join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip()
        for parts in zip(*filled, strict=True)
    ]
