"""The picture of a served medium: what is written, stale, destroyed; where bands end and append points are."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from rich.text import Text

from .errors import InputError

# State, character, terminal colour, colour on paper; the state with the largest share of a cell wins.
STATES = (
    ("never written", "·", "grey50", "#e4e4e0"),
    ("written", "█", "green", "#3f8f5f"),
    ("stale: written, destroyed since", "▒", "red", "#c2412d"),
    ("destroyed before it was written", "░", "yellow", "#e0a63a"),
    ("guard", "▏", "blue", "#4a6fa5"),
)
ACROSS = 64
CELL = 10


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
    """For a terminal."""
    out = Text()
    cells = states(doc)
    for first in range(0, len(cells), ACROSS):
        for state in cells[first : first + ACROSS]:
            out.append(STATES[state][1], style=STATES[state][2])
        out.append("\n")
    for name, char, style, _ in STATES:
        out.append(f"{char} {name}\n", style=style)
    out.append(f"a cell is {doc['blocks'] / len(cells) * 512 / 1e6:.3g} MB\n")
    return out


def svg(doc: dict[str, Any], name: str) -> str:
    """For paper: one square a cell, append points as strokes."""
    cells = states(doc)
    rows = -(-len(cells) // ACROSS)
    width, height = ACROSS * CELL, rows * CELL + 24 + 18 * len(STATES)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="state of the medium of {html.escape(name)}">'
    ]
    for i, state in enumerate(cells):
        x, y = i % ACROSS * CELL, i // ACROSS * CELL
        title = f"<title>cell {i}: {STATES[state][0]}</title>"
        parts.append(
            f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{STATES[state][3]}">{title}</rect>'
        )
    per = doc["blocks"] / len(cells)
    for number, band in enumerate(doc.get("bands", [])):
        at = band["append"] / per
        x, y = at % ACROSS * CELL, int(at) // ACROSS * CELL
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="2" height="{CELL}" fill="#111">'
            f"<title>append point of band {number}</title></rect>"
        )
    for i, (label, _, _, colour) in enumerate(STATES):
        y = rows * CELL + 16 + 18 * i
        parts.append(
            f'<rect x="0" y="{y}" width="12" height="12" fill="{colour}"/><text x="18" y="{y + 11}">{label}</text>'
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
    path.write_text(picture)
