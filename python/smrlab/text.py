"""Numbers as people read them."""

from __future__ import annotations

from typing import Any

ABSENT = "–"


def dig(doc: Any, path: str) -> Any:
    """The value at a dotted path, or None where a key does not apply."""
    for key in path.split("."):
        if not isinstance(doc, dict) or key not in doc:
            return None
        doc = doc[key]
    return doc


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits, never an exponent between 0.001 and a million."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def milliseconds(value: float | None) -> str:
    """A time with the unit that fits."""
    if value is None:
        return ABSENT
    for factor, unit in ((3.6e6, "h"), (6e4, "min"), (1e3, "s"), (1, "ms")):
        # As it is told: 999.6 ms is a second.
        if value / factor >= 3 if factor > 1e3 else round(value / factor, 3) >= 1:
            return f"{number(value / factor)} {unit}"
    return f"{number(value * 1e3)} µs"


def share(value: float | None) -> str:
    """Per cent."""
    return ABSENT if value is None else f"{number(value * 100)} %"


def size(value: float | None) -> str:
    """Bytes in binary units."""
    if value is None:
        return ABSENT
    for unit in ("B", "KiB", "MiB", "GiB"):
        if round(value) < 1024:
            return f"{number(value)} {unit}"
        value /= 1024
    return f"{number(value)} TiB"


def counted(n: int, noun: str) -> str:
    """So many of a thing: "1 surface", "2,000 tracks"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
