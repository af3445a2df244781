"""Successive halving: all points on the beginning of the trace, the better ones on more of it, the best on all.

Jamieson, Talwalkar: Non-stochastic Best Arm Identification and Hyperparameter Optimization (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from smrlab import _core
from smrlab.errors import InputError
from smrlab.executors import Executor

from .grid import Point
from .run import Follow, Outcome, run_points
from .store import Store
from .table import results_table

# The column of the table that says how many requests of the trace a run saw; empty: all.
PREFIX = "limit"


@dataclass(frozen=True)
class Halving:
    """What is sought (`metric`, least or most), how much of the trace is first, and how the points get fewer."""

    metric: str
    first: int
    requests: int
    keep: float
    most: bool = False

    @classmethod
    def of(cls, table: Any, where: str) -> Halving:
        """From a `[halving]` table: `metric`, `goal` (min, max), `first` and `requests`, `keep` (share)."""
        known = {"metric", "goal", "first", "requests", "keep"}
        if not isinstance(table, dict) or set(table) - known:
            raise InputError(f"{where}: halving has {', '.join(sorted(known))}")
        missing = [key for key in ("metric", "first", "requests") if key not in table]
        if missing:
            raise InputError(
                f'{where}: halving.{missing[0]} is missing; for example metric = "response_ms.p99", first = "10k" '
                'requests at first, requests = "1M" at last'
            )
        first, requests = (_core.count(str(table[key])) for key in ("first", "requests"))
        keep, goal = table.get("keep", 1 / 3), table.get("goal", "min")
        share = isinstance(keep, int | float) and 0 < keep < 1
        if not 0 < first <= requests or not share or goal not in ("min", "max"):
            raise InputError(f"{where}: halving: first is at most requests, keep between 0 and 1, goal min or max")
        return cls(str(table["metric"]), first, requests, float(keep), goal == "max")

    def rounds(self, points: int) -> list[tuple[int, int]]:
        """Points and requests of each round; the last has all requests."""
        found = [(points, self.first)]
        while found[-1][1] < self.requests:
            left, seen = found[-1]
            more = max(round(seen / self.keep), seen + 1)
            found.append((max(round(left * self.keep), 1), min(more, self.requests)))
        return found


def run_halving(
    points: Sequence[Point], halving: Halving, store: Store, executor: Executor, follow: Follow | None = None
) -> Outcome:
    """Runs the rounds; the table has all of them, and `limit` says which."""
    left = list(points)
    everything: list[Point] = []
    total = Outcome(0, 0, 0, {}, False)
    for number, requests in halving.rounds(len(points)):
        if number < len(left):
            left = _best(left, halving, store)[:number]
        seen = [_short(point, requests) for point in left]
        everything += seen
        known = total.points
        outcome = run_points(everything, store, executor, follow)
        total = Outcome(
            outcome.points,
            total.reused + outcome.reused - known,
            total.finished + outcome.finished,
            {**total.failed, **outcome.failed},
            outcome.interrupted,
            total.note or outcome.note,
        )
        if outcome.interrupted:
            break
    return total


def _short(point: Point, requests: int) -> Point:
    settings = {**point.settings, PREFIX: requests}
    return replace(point, settings=settings, spec={**point.spec, "limit": requests})


def _best(left: list[Point], halving: Halving, store: Store) -> list[Point]:
    """The points of the last round, the best first; those without a value last, in the order given."""
    table = results_table(store)
    if halving.metric not in table.column_names:
        known = ", ".join(c for c in table.column_names if c.startswith(halving.metric.partition(".")[0]))
        raise InputError(f"halving.metric: no column '{halving.metric}' in the table; near it: {known or 'none'}")
    # Every point has a row by now, in the order of the points.
    rows = table.to_pylist()[-len(left) :]
    sign = -1 if halving.most else 1

    def place(i: int) -> tuple[bool, float, int]:
        value = rows[i].get(halving.metric)
        return value is None, sign * value if value is not None else 0.0, i

    return [left[i] for i in sorted(range(len(left)), key=place)]
