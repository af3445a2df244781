"""Running the engine on other threads, or machines, while this one stays open to Ctrl-C and progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import Interrupted
from .executors import Executor, Failed, Piece, Running, Work
from .executors.local import LocalPool
from .kept import Choice

T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """One piece of work, for those who show progress."""

    name: str
    share: float = 0.0
    done: bool = False
    prefills: bool = False

    @property
    def title(self) -> str:
        """What is under way: the prefill of a run is named."""
        return f"{self.name} (prefill)" if not self.done and self.prefills else self.name


Watch = Callable[[Sequence[Job]], None]


def attended(work: Work[T], name: str = "run", watch: Watch | None = None, prefills: Choice = True) -> T:
    """The value of `work`, done on a thread; Ctrl-C cancels it and raises KeyboardInterrupt."""
    results, _ = attend([Piece(name, work)], LocalPool(1), watch, prefills)
    if not results:
        raise KeyboardInterrupt
    return results[0][1]


def attend(
    pieces: Sequence[Piece[T]],
    executor: Executor,
    watch: Watch | None = None,
    prefills: Choice = True,
    each: Callable[[int, T], None] | None = None,
) -> tuple[list[tuple[int, T]], bool]:
    """Does all pieces on `executor`, prefills being kept as `prefills` says.

    `each` is told of those that are finished, on the caller's thread. Gives what was finished, with its number, in the
    order given, and whether Ctrl-C came. The first error cancels the rest and is raised.
    """
    done: dict[int, T] = {}

    def ended(number: int, value: Any) -> None:
        if isinstance(value, Failed):
            raise value.error
        done[number] = value
        if each:
            each(number, value)

    def tick(running: Sequence[Running]) -> None:
        under_way = {r.number: r for r in running}
        jobs = []
        for i, piece in enumerate(pieces):
            at = under_way.get(i)
            share = 1.0 if i in done else at.share if at else 0.0
            jobs.append(Job(piece.name, share, i in done, bool(at and at.prefills)))
        if watch:
            watch(jobs)

    interrupted = executor.run(pieces, ended, tick if watch else None, prefills)
    if not interrupted and len(done) < len(pieces):
        raise Interrupted("interrupted")
    return sorted(done.items()), interrupted
