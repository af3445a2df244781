"""The cores of this machine: threads, for the engine releases the interpreter."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any

from .. import _core
from ..kept import Choice
from .contract import PERIOD_S, Each, Failed, Piece, Running, Tick, control
from .memory import Room, installed

# How long work has to end after Ctrl-C, in seconds: it looks every few milliseconds.
LEAVE_S = 3.0


class LocalPool:
    """Threads of this process, by default one a core; runs that would not fit into memory together wait."""

    remote = False

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1
        self.owner = f"local-{uuid.uuid4().hex}"
        self._room, self._memory = Room(), installed()

    def run(self, pieces: Sequence[Piece[Any]], each: Each, tick: Tick | None = None, prefills: Choice = True) -> bool:
        """See `Executor.run`."""
        running: dict[int, _core.Control] = {}
        ended: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        stopped = Event()

        def do(number: int) -> None:
            with self._room.taken(pieces[number].memory, self._memory):
                perform(number)

        def perform(number: int) -> None:
            if stopped.is_set():
                return
            watched = running[number] = control(pieces[number], prefills)
            if stopped.is_set():
                watched.cancel()
            value: Any
            try:
                value = pieces[number].work(watched)
            except BaseException as error:
                # Also a panic of the engine, which is no Exception.
                value = Failed(error)
            del running[number]
            ended.put((number, value))

        pool = ThreadPoolExecutor(max(min(len(pieces), self._threads), 1))
        futures, patience = [], None
        try:
            futures = [pool.submit(do, number) for number in range(len(pieces))]
            _told(len(pieces), ended, running, each, tick)
        except KeyboardInterrupt:
            # Who waits for a pipe hears of it when something comes: that thread is left to itself.
            patience = LEAVE_S
            return True
        finally:
            stopped.set()
            for future in futures:
                future.cancel()
            for watched in list(running.values()):
                watched.cancel()
            wait(futures, patience)
            pool.shutdown(wait=False)
        return False


def _told(
    count: int,
    ended: SimpleQueue[tuple[int, Any]],
    running: dict[int, _core.Control],
    each: Each,
    tick: Tick | None,
) -> None:
    while count:
        try:
            number, value = ended.get(timeout=PERIOD_S)
            count -= 1
            each(number, value)
            if not ended.empty():
                continue
        except Empty:
            pass
        if tick:
            tick([Running(n, c.share(), c.prefills()) for n, c in sorted(running.copy().items())])
