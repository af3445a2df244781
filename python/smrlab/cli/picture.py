"""The characterisation of a trace as a table and a picture in the terminal."""

from __future__ import annotations

from typing import Any

from . import console, text

BLOCKS = " ▁▂▃▄▅▆▇█"


def show(name: str, doc: dict[str, Any]) -> None:
    """Prints every figure, and lists of numbers as bars."""
    out = console.out()
    table = console.table(name, ["", ""], numeric=True)
    table.show_header = False
    pictures = []
    for key, value in _flat(doc):
        if isinstance(value, list):
            pictures.append((key, value))
        else:
            table.add_row(key.replace("_", " "), _write(key, value))
    out.print(table)
    for key, values in pictures:
        numbers = [v for v in values if isinstance(v, int | float)]
        if numbers:
            out.print(f"{key.replace('_', ' ')}\n{bars(numbers)}\n")


def bars(values: list[float]) -> str:
    """One character a value, its height by the share of the largest."""
    most = max(values)
    if most <= 0:
        return BLOCKS[0] * len(values)
    return "".join(BLOCKS[0 if v <= 0 else max(1, round(v / most * (len(BLOCKS) - 1)))] for v in values)


def _flat(doc: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in doc.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{key}: ")
        elif key != "schema":
            rows.append((prefix + key, value))
    return rows


def _write(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if key.endswith("_bytes"):
        return text.size(value)
    if key.endswith("_share"):
        return text.share(value)
    if key.endswith("_ms"):
        return text.milliseconds(value)
    return f"{value:,}" if isinstance(value, int) else text.number(value, 4)
