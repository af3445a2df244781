"""Running the engine on other threads while this one stays open to Ctrl-C and progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

from . import _core
from .errors import Interrupted
from .kept import Choice, keep

T = TypeVar("T")
Work = Callable[["_core.Control"], T]

# How often the waiting thread looks at progress and signals, in seconds.
PERIOD_S = 0.1


@dataclass(frozen=True)
class Job:
    """One piece of work under way, for those who show progress."""

    name: str
    control: _core.Control
    done: bool

    @property
    def title(self) -> str:
        """What is under way: the prefill of a run is named."""
        return f"{self.name} (prefill)" if not self.done and self.control.prefills() else self.name

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        return 1.0 if self.done else self.control.share()


Watch = Callable[[Sequence[Job]], None]


def attended(work: Work[T], name: str = "run", watch: Watch | None = None, prefills: Choice = True) -> T:
    """The value of `work`, done on a thread; Ctrl-C cancels it and raises KeyboardInterrupt."""
    results, _ = attend([(name, work)], 1, watch, prefills)
    if not results:
        raise KeyboardInterrupt
    return results[0][1]


def attend(
    work: Sequence[tuple[str, Work[T]]],
    threads: int | None = None,
    watch: Watch | None = None,
    prefills: Choice = True,
) -> tuple[list[tuple[int, T]], bool]:
    """Does all the work on `threads` threads (default: one a core), prefills being kept as `prefills` says.

    Gives what was finished, with its number, in the order given, and whether Ctrl-C came. The first error cancels the
    rest and is raised.
    """
    kept = keep(prefills)
    controls = [_core.Control(kept) if kept else _core.Control() for _ in work]
    count = min(len(work), threads or os.cpu_count() or 1)
    interrupted = False
    futures: list[Future[T]] = []
    with ThreadPoolExecutor(max(count, 1)) as pool:
        try:
            futures += [pool.submit(do, control) for (_, do), control in zip(work, controls, strict=True)]
            _wait(work, futures, controls, watch)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            for future in futures:
                future.cancel()
            for control in controls:
                control.cancel()
    return _finished(futures, interrupted), interrupted


def _wait(
    work: Sequence[tuple[str, Work[T]]],
    futures: Sequence[Future[T]],
    controls: Sequence[_core.Control],
    watch: Watch | None,
) -> None:
    pending = set(futures)
    while pending:
        done, pending = wait(pending, PERIOD_S, FIRST_COMPLETED)
        if watch:
            names = [name for name, _ in work]
            watch([Job(n, c, f.done()) for n, c, f in zip(names, controls, futures, strict=True)])
        if any(future.exception() for future in done):
            return


def _finished(futures: Sequence[Future[T]], interrupted: bool) -> list[tuple[int, T]]:
    """The values there are; raises the error that stopped the rest, unless that was the cancelling itself."""
    finished = []
    for i, future in enumerate(futures):
        if future.cancelled():
            continue
        error = future.exception()
        if error is None:
            finished.append((i, future.result()))
        elif not isinstance(error, Interrupted):
            raise error
    if not interrupted and len(finished) < len(futures):
        raise Interrupted("interrupted")
    return finished
