"""Settings as numbers: `1%`, `25MB`, `4KiB`, `10ms`, 8."""

from __future__ import annotations

import re
from typing import Any

_NUMBER = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*([A-Za-z%]*)")
# Factor and dimension of a unit; powers of ten and of two are both sizes.
_UNITS = {
    "": (1.0, ""),
    "%": (1.0, "%"),
    "B": (1.0, "B"),
    "blk": (512.0, "B"),
    **{f"{p}B": (1000.0**i, "B") for i, p in enumerate("kMGT", 1)},
    **{f"{p}iB": (1024.0**i, "B") for i, p in enumerate("KMGT", 1)},
    **{u: (f, "s") for u, f in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0))},
}


def quantity(value: Any) -> tuple[float, str] | None:
    """A setting as a number and its dimension: `1%`, `25MB`, `4KiB`, `10ms`, 8; None where it is a word."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value), ""
    found = _NUMBER.fullmatch(str(value).strip())
    unit = _UNITS.get(found[2]) if found else None
    return (float(found[1].replace("_", "")) * unit[0], unit[1]) if found and unit else None


def unit_of(value: Any) -> tuple[float, str]:
    """The factor and the unit that a quantity is written with."""
    found = _NUMBER.fullmatch(str(value).strip())
    name = found[2] if found else ""
    return _UNITS[name][0], name


def order(value: Any) -> tuple[int, float, str]:
    """Numbers by their value, then words."""
    number = quantity(value)
    return (0, number[0], "") if number else (1, 0.0, str(value))
