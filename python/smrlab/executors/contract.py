"""What an executor is: who does pieces of work, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from .. import _core
from ..kept import Choice, keep, shared

T = TypeVar("T")
Work = Callable[["_core.Control"], T]

# How often the waiting thread looks at progress and signals, in seconds.
PERIOD_S = 0.1


class Input(Protocol):
    """A large thing that runs share: made once a machine, kept there."""

    @property
    def key(self) -> str:
        """Tells it from all others."""

    def here(self) -> Any:
        """Makes it on this machine, unless it is there; what it is."""


@dataclass(frozen=True)
class Piece(Generic[T]):
    """A piece of work. Executors that are no threads of this process pickle it."""

    name: str
    work: Work[T] = field(repr=False)
    # The same key is the same work: clients of one cluster share it. Empty: nobody else can want it.
    key: str = ""
    # What it reads; it is placed where that is.
    inputs: tuple[Input, ...] = ()
    # Bytes of memory that it needs by estimate.
    memory: int = 0
    # The prefill that it shares with others of its study; empty: prefills are kept as for any run.
    prefill: str = ""


def control(piece: Piece[Any], prefills: Choice) -> _core.Control:
    """What a piece is watched and cancelled by."""
    kept = shared(piece.prefill) if piece.prefill else keep(prefills)
    return _core.Control(kept) if kept else _core.Control()


@dataclass(frozen=True)
class Failed:
    """What a piece raised instead of giving a value."""

    error: BaseException


@dataclass(frozen=True)
class Running:
    """A piece under way: its number, how much of it is done (0 to 1), and whether it still writes its prefill."""

    number: int
    share: float
    prefills: bool = False


# What is told of each piece that ends: its number, and its value or what it raised.
Each = Callable[[int, Any], None]
Tick = Callable[[Sequence[Running]], None]


class Executor(Protocol):
    """Does pieces of work, in any order, as many at a time as it can."""

    @property
    def remote(self) -> bool:
        """Whether the work is done by other processes, which may see other files."""

    @property
    def owner(self) -> str:
        """Who does the work: never two pieces of one key at a time."""

    def run(self, pieces: Sequence[Piece[Any]], each: Each, tick: Tick | None = None, prefills: Choice = True) -> bool:
        """Does all pieces and tells `each` as they end, on the caller's thread; True where Ctrl-C ended it before.

        What `each` raises ends it, too. Prefills are kept as `prefills` says.
        """


class ExecutorLost(ConnectionError):
    """The executor is gone: what it has not told is not done."""
