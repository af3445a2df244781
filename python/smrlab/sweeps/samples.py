"""Points between bounds: at random, or a Latin hypercube, in which every setting takes each part of its range once.

McKay, Beckman, Conover: A Comparison of Three Methods for Selecting Values of Input Variables (1979).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from smrlab.errors import InputError

from .quantity import quantity, unit_of

# Digits of a value that is drawn.
DIGITS = 4
# Points of a study at most: each takes about a kilobyte before the first one runs.
MOST = 1_000_000


def few(points: int, where: str) -> None:
    """Refuses more points than a study can hold, before they are made."""
    if points > MOST:
        raise InputError(f"{where}: {points} points are more than a study can hold ({MOST}): draw some with [sample]")


def sampled(table: Any, where: str) -> list[dict[str, Any]]:
    """The settings of a `[sample]` table: `method` (random, latin-hypercube), `points`, `seed`, and what is drawn.

    Each other key is a setting: a list of which one value is taken, or `{from, to, scale}` with `linear` or `log`.
    """
    if not isinstance(table, dict):
        raise InputError(f"{where}: sample is a table")
    table = dict(table)
    method = table.pop("method", "latin-hypercube")
    points, seed = table.pop("points", None), table.pop("seed", 1)
    if method not in ("random", "latin-hypercube"):
        raise InputError(f"{where}: sample.method: '{method}' is not accepted: random or latin-hypercube")
    if not isinstance(points, int) or isinstance(points, bool) or points < 1:
        raise InputError(f"{where}: sample.points says how many points: a whole number from 1 on")
    few(points, where)
    if not table:
        raise InputError(f'{where}: sample: nothing to draw; for example "layer.cache" = {{from = "1%", to = "10%"}}')
    draws = {key: _draw(values, f"{where}: sample.{key}") for key, values in table.items()}
    rng = random.Random(f"smrlab {seed}")
    shares = {key: _shares(rng, points, method) for key in draws}
    return [{key: draw(shares[key][i]) for key, draw in draws.items()} for i in range(points)]


def _shares(rng: random.Random, points: int, method: str) -> list[float]:
    """A number from 0 to 1 for each point."""
    if method == "random":
        return [rng.random() for _ in range(points)]
    # One in each of as many equal parts, in an order that is drawn; random() alone is the same in every Python.
    order = sorted(range(points), key=[rng.random() for _ in range(points)].__getitem__)
    return [(part + rng.random()) / points for part in order]


def _draw(values: Any, where: str) -> Callable[[float], Any]:
    """The value at a share of the range."""
    if isinstance(values, list) and values:
        return lambda share: values[min(int(share * len(values)), len(values) - 1)]
    if not isinstance(values, dict) or not {"from", "to"} <= set(values) <= {"from", "to", "scale"}:
        raise InputError(f'{where}: a list of values, or {{from = "1%", to = "10%", scale = "log"}}')
    low, high, scale = values["from"], values["to"], values.get("scale", "linear")
    ends = quantity(low), quantity(high)
    if not (ends[0] and ends[1]) or ends[0][1] != ends[1][1]:
        raise InputError(f"{where}: {low!r} and {high!r} are no two quantities of one kind")
    factor, unit = unit_of(low)
    first, last = ends[0][0] / factor, ends[1][0] / factor
    if scale not in ("linear", "log") or (scale == "log" and min(first, last) <= 0):
        raise InputError(f"{where}: scale is linear or log, log above 0 only")
    whole = isinstance(low, int) and isinstance(high, int)

    def draw(share: float) -> Any:
        at = first + share * (last - first) if scale == "linear" else first * math.exp(share * math.log(last / first))
        if whole:
            return round(at)
        value = float(f"{at:.{DIGITS}g}")
        return f"{value:g}{unit}" if unit or isinstance(low, str) else value

    return draw
