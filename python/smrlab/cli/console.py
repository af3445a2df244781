"""How commands speak: results on stdout, everything else on stderr, progress only to a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# Rich is imported where it is used: a command that prints JSON, or nothing, starts without it.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.table import Table

    from ..sweeps import Follow, Progress
    from ..work import Job, Watch

# Characters by which a text could command a terminal.
_COMMANDS = dict.fromkeys({*range(32), *range(127, 160)} - set(b"\n\t"), "\ufffd")
# Where stdout is no terminal, lines are as long as they need to be.
PIPED_WIDTH = 200


def out() -> Console:
    """The console for results."""
    from rich.console import Console

    class Printing(Console):
        """Where nobody reads any more, Rich itself would end the program with the status of a failed check."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Printing(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, soft_wrap=False)


def escape(value: str) -> str:
    """Text that is printed as it is, brackets and all."""
    from rich.markup import escape as escaped

    return escaped(value)


def fail(message: str) -> None:
    """One message on stderr."""
    note(f"smrlab: {message}")


def note(message: str) -> None:
    """A remark on stderr. What it has from names and files cannot command the terminal."""
    print(message.translate(_COMMANDS), file=sys.stderr)


# The version of the documents that commands print.
SCHEMA = 1


def print_json(doc: Any, *, line: bool = False) -> None:
    """One JSON document, and nothing else, on stdout; an object says its schema first. `line`: in one line, at once."""
    if isinstance(doc, Mapping):
        doc = {"schema": SCHEMA, **doc}
    # In one piece: where Python does not buffer, each of a hundred thousand numbers would be a write of its own.
    sys.stdout.write(json.dumps(doc, indent=None if line else 1) + "\n")
    if line:
        sys.stdout.flush()


def table(title: str, columns: Sequence[str], *, numeric: bool = False) -> Table:
    """An empty table; with `numeric` all columns but the first are set to the right."""
    from rich import box
    from rich.table import Table

    made = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for i, column in enumerate(columns):
        right = numeric and i > 0
        made.add_column(column, justify="right" if right else "left", no_wrap=i == 0, overflow="fold")
    return made


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def bar(name: str) -> Iterator[Callable[[float], None] | None]:
    """Shows how much of one thing is done while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with _bars() as bars:
        task = bars.add_task(name, total=1.0)
        yield lambda share: bars.update(task, completed=share)


@contextmanager
def progress() -> Iterator[Watch | None]:
    """Shows the work under way while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with _bars() as bars:
        tasks: dict[int, Any] = {}

        def watch(jobs: Sequence[Job]) -> None:
            for i, job in enumerate(jobs):
                if i not in tasks:
                    tasks[i] = bars.add_task(job.name, total=1.0)
                bars.update(tasks[i], completed=job.share, description=job.title)

        yield watch


@contextmanager
def study() -> Iterator[Follow | None]:
    """Shows how far a study is while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from . import study as shown

    with _bars() as bars:
        task = bars.add_task("", total=1.0)

        def follow(progress: Progress) -> None:
            ended = progress.done + progress.failed
            bars.update(task, completed=ended, total=max(progress.points, 1), description=shown.line(progress))

        yield follow


def report(out: str | os.PathLike[str] | None, *, quiet: bool, svg: bool = True) -> None:
    """Draws the report where there are result files, and says where it is."""
    if out is None:
        return
    from ..report import report_at

    path = report_at(out, svg=svg)
    if not quiet:
        note(f"Report: {path}")
