"""The runs of an experiment, as claims and figures ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from ..results import Result


@dataclass(frozen=True)
class Run:
    """One run and its point of the grid."""

    point: dict[str, Any]
    result: Result
    computed: Mapping[str, str] = field(default_factory=dict)

    def value(self, key: str) -> float:
        """The number under a dotted key of the result, or computed from such; 0 for a count that does not apply."""
        if key in self.computed:
            names = {"v": self.value, "min": min, "max": max, "sum": sum}
            return float(eval(self.computed[key], {"__builtins__": {}}, names))
        found: Any = self.result.doc
        for part in key.split("."):
            found = found.get(part) if isinstance(found, dict) else None
            if found is None:
                return 0.0
        return float(found)

    def items(self, key: str) -> list[Any]:
        """A list of the result's document."""
        found: Any = self.result.doc
        for part in key.split("."):
            found = found[part]
        return list(found)

    def windows(self, column: str = "completions") -> list[float]:
        """A column of the timeline, a value a window."""
        return [float(v or 0.0) for v in self.result.timeline().column(column).to_pylist()]

    def responses(self, after_s: float = 0.0) -> list[float]:
        """Response times in ms of requests that arrived at `after_s` or later, ascending (needs `requests = true`)."""
        import pyarrow.compute as pc

        table = self.result.requests()
        table = table.filter(pc.greater_equal(table.column("arrival_ns"), after_s * 1e9))
        took = pc.subtract(table.column("completion_ns"), table.column("arrival_ns"))
        return [float(ns) / 1e6 for ns in took.sort().to_pylist()]


class Runs(Sequence[Run]):
    """All runs of an experiment, in the order of its grid."""

    def __init__(self, name: str, runs: Sequence[Run]) -> None:
        self._name, self._runs = name, list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def where(self, **point: Any) -> Runs:
        """Those at these values of the grid."""
        kept = [r for r in self._runs if all(str(r.point[k]) == str(v) for k, v in point.items())]
        if not kept:
            raise InputError(f"experiment {self._name}: no run at {point}")
        return Runs(self._name, kept)

    @property
    def one(self) -> Run:
        """The only run there is."""
        if len(self._runs) != 1:
            raise InputError(f"experiment {self._name}: {len(self._runs)} runs where one is meant")
        return self._runs[0]

    def value(self, key: str) -> float:
        """The number under a key of the only run."""
        return self.one.value(key)

    def values(self, key: str) -> list[float]:
        """The numbers under a key (or computed ones), in the order of the grid."""
        return [r.value(key) for r in self._runs]
