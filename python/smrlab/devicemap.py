"""The picture of a served medium: what is written, stale, destroyed; where bands end and append points are."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from rich.text import Text

from .errors import InputError
from .files import write_whole

# State, character, terminal colour, colour on paper; the state with the largest share of a cell wins.
# Under a translation layer what was destroyed is an old copy or a guard: no loss, and no colour of one.
STATES = (
    ("never written", "·", "grey50", "#e4e4e0"),
    ("written", "█", "green", "#3f8f5f"),
    ("lost: written, destroyed since", "▒", "red", "#c2412d"),
    ("destroyed before it was written", "░", "yellow", "#e0a63a"),
    ("guard", "▏", "blue", "#4a6fa5"),
)
LAYERED = (
    *STATES[:2],
    ("old copies, which nobody reads", "▒", "cyan", "#8fb3a0"),
    ("in reach of a write, free", "░", "grey50", "#cfd6d1"),
    STATES[4],
)
ACROSS = 64
CELL = 10
LEFT = 64


def _states(doc: dict[str, Any]) -> tuple[tuple[str, str, str, str], ...]:
    """What cells are called and look like: on a bare medium, or under a layer that keeps data from harm."""
    return STATES if "bands" in doc else LAYERED


def _size(blocks: float) -> str:
    size = blocks * 512
    unit, name = next((u for u in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if size >= u[0]), (1e3, "kB"))
    return f"{size / unit:.3g} {name}"


def states(doc: dict[str, Any]) -> list[int]:
    """The state of each cell; loss shows wherever there is any."""
    found = []
    for written, stale, destroyed in doc["cells"]:
        if stale > 0:
            found.append(2)
        elif destroyed > written:
            found.append(3)
        else:
            found.append(1 if written > 0 else 0)
    per = doc["blocks"] / len(doc["cells"])
    for band in doc.get("bands", []):
        for i in range(int(band["guard"] / per), int(band["end"] / per)):
            if i < len(found) and found[i] == 0:
                found[i] = 4
    return found


def text(doc: dict[str, Any]) -> Text:
    """For a terminal: rows from PBA 0 on, with the place at which each begins."""
    out = Text()
    cells, kinds = states(doc), _states(doc)
    per = doc["blocks"] / len(cells)
    for first in range(0, len(cells), ACROSS):
        out.append(f"{_size(first * per) if first else '0':>8} │", style="grey50")
        for state in cells[first : first + ACROSS]:
            out.append(kinds[state][1], style=kinds[state][2])
        out.append("\n")
    out.append(f"{'':>8} └{'─' * ACROSS}\n", style="grey50")
    out.append(f"{'':>8}  a cell is {_size(per)}, a row {_size(per * ACROSS)}; places are on the medium\n")
    present = set(cells)
    for i, (name, char, style, _) in enumerate(kinds):
        if i in present:
            out.append(f"{char} {name}\n", style=style)
    return out


def svg(doc: dict[str, Any], name: str) -> str:
    """For paper: one square a cell, append points as strokes, an axis on the left."""
    cells, kinds = states(doc), _states(doc)
    rows = -(-len(cells) // ACROSS)
    shown = [i for i in range(len(kinds)) if i in set(cells)]
    width, height = LEFT + ACROSS * CELL, rows * CELL + 40 + 18 * len(shown)
    per = doc["blocks"] / len(cells)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="state of the medium of {html.escape(name)}">'
    ]
    for row in range(0, rows, max(1, rows // 8)):
        label = _size(row * ACROSS * per) if row else "0"
        parts.append(
            f'<text x="{LEFT - 6}" y="{row * CELL + CELL - 1}" text-anchor="end" font-size="10">{label}</text>'
        )
    for i, state in enumerate(cells):
        x, y = LEFT + i % ACROSS * CELL, i // ACROSS * CELL
        title = f"<title>{_size(i * per)}: {kinds[state][0]}</title>"
        parts.append(
            f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{kinds[state][3]}">{title}</rect>'
        )
    for number, band in enumerate(doc.get("bands", [])):
        at = band["append"] / per
        x, y = LEFT + at % ACROSS * CELL, int(at) // ACROSS * CELL
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="2" height="{CELL}" fill="#111">'
            f"<title>append point of band {number}</title></rect>"
        )
    what = f"a cell is {_size(per)}, a row {_size(per * ACROSS)}; places are on the medium"
    parts.append(f'<text x="{LEFT}" y="{rows * CELL + 16}">{what}</text>')
    for i, state in enumerate(shown):
        y = rows * CELL + 28 + 18 * i
        label, _, _, colour = kinds[state]
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="12" height="12" fill="{colour}"/>'
            f'<text x="{LEFT + 18}" y="{y + 11}">{label}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def write(doc: dict[str, Any], name: str, path: Path) -> None:
    """Writes an .svg or .html."""
    if path.suffix not in (".svg", ".html"):
        raise InputError(f"{path}: write an .svg or an .html")
    picture = svg(doc, name)
    if path.suffix == ".html":
        title = html.escape(f"{name}: state of the medium")
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
        picture = f"{head}{picture}</html>\n"
    write_whole(path, picture.encode())
