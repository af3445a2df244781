"""Runs the points of a study: each is addressed by what it is, and there when its `result.json` is, written last.

So a study that was killed goes on where it was, one that was edited runs only what changed, and two at a time share
what either has done. Where the runs are done is the executor's affair.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from smrlab import _core
from smrlab.errors import InputError, Interrupted, MissingError
from smrlab.executors import Executor, ExecutorLost, Failed, Piece, Running
from smrlab.layer import TranslationLayer, load
from smrlab.secret import hidden
from smrlab.trace import standard_input

from .estimate import memory_of
from .grid import Point
from .identity import Digests, address, fingerprint, parts
from .inputs import PREFILLS, STATES, Columns, columns_of, prefill_of, state_of
from .store import RESULT, Store
from .table import RESULTS, Table
from .task import FAILED, Task, Told

INDEX = "sweep.json"
SCHEMA = 2
# A run that somebody else is at is looked at again after so long, in seconds.
BUSY_S = 1.0
# So many runs in succession that the machines or the store refuse end a study.
REFUSED = 8


@dataclass(frozen=True)
class Outcome:
    """What became of a study: runs in all, there from before, done now, failed with the reason, and how it ended."""

    points: int
    reused: int
    finished: int
    failed: dict[str, str]
    interrupted: bool
    # What its user should know of the results that were there.
    note: str = ""


@dataclass(frozen=True)
class Progress:
    """How far a study is."""

    points: int
    done: int
    failed: int
    running: list[tuple[str, float]]
    rate: float | None = None

    @property
    def left_s(self) -> float | None:
        """Seconds to the end at the rate so far."""
        left = self.points - self.done - self.failed
        return left / self.rate if self.rate else None


Follow = Callable[[Progress], None]


@dataclass
class Plan:
    """The runs of a study: each point's address, and the tasks of the addresses."""

    points: list[tuple[Point, str]]
    tasks: dict[str, Task]
    done: set[str] = field(default_factory=set)

    @property
    def missing(self) -> list[Task]:
        """What is not there yet."""
        return [task for a, task in self.tasks.items() if a not in self.done]


def run_points(points: Sequence[Point], store: Store, executor: Executor, follow: Follow | None = None) -> Outcome:
    """Runs what is missing of `points` and writes the table of all.

    A point that fails does not stop the others. Ctrl-C keeps what was finished. Raises InputError, before anything
    runs, where the specification of a point is wrong.
    """
    store.check()
    if not store.there(INDEX) and store.there(RESULTS):
        raise InputError(f"{store}: holds a {RESULTS} that is no study's; choose another --out")
    note = _earlier(store)
    plan = planned(points, store, executor)
    # Done in this call before the scheduler was lost: there from before for the attempt that follows.
    before = 0
    while True:
        study = _Study(plan, store, executor, follow)
        try:
            outcome = study.run()
        except ExecutorLost as lost:
            before += study.finished
            study.table.write()
            back = getattr(executor, "back", None)
            if back is None:
                raise
            try:
                back()
            except ExecutorLost as gone:
                raise MissingError(f"{gone}; what was finished is in {store}: the same command goes on") from lost
            plan = planned(points, store, executor)
            continue
        if not outcome.interrupted:
            for what in (PREFILLS, STATES):
                store.remove(what, tree=True)
        return replace(outcome, reused=outcome.reused - before, finished=outcome.finished + before, note=note)


def _earlier(store: Store) -> str:
    """Which engine made what is there, where that is another one."""
    index = store.document(INDEX)
    made = index.get("engine", "an earlier version of smrlab") if isinstance(index, dict) else fingerprint()
    if made == fingerprint():
        return ""
    return f"{store}: holds results of {made}; here is {fingerprint()}: they stay, and are not taken for its own"


def planned(points: Sequence[Point], store: Store, executor: Executor) -> Plan:
    """Addresses all points, and looks which are there. What nobody has read yet is read for its digest."""
    if not points:
        raise InputError("the sweep has no points")
    _no_pipes(points)
    own = {layer: load(layer) for layer in {_layer(point) for point in points}}
    specs = [_resolved(point, own) for point in points]
    digests = Digests(store)
    _read(points, digests, executor)
    addresses = [address(spec, digests) for spec in specs]
    _write_index(points, addresses, store)
    digests.save()
    plan = Plan(list(zip(points, addresses, strict=True)), {}, set())
    shared: dict[str, int] = {}
    for point, spec, a in zip(points, specs, addresses, strict=True):
        if a not in plan.tasks:
            layer = own[_layer(point)]
            plan.tasks[a] = task = _task(point, spec, a, (store, executor, digests), layer)
            if task.prefill:
                shared[task.prefill.key] = shared.get(task.prefill.key, 0) + 1
    for a, task in plan.tasks.items():
        if task.prefill and shared[task.prefill.key] < 2:
            plan.tasks[a] = replace(task, prefill=None)
    for name in store.times("points", ".json"):
        a, _, file = name.partition("/")
        if a in plan.tasks and file == RESULT:
            plan.done.add(a)
        elif a in plan.tasks and file == FAILED:
            plan.tasks[a] = replace(plan.tasks[a], failed=True)
    return plan


def _task(
    point: Point,
    resolved: str,
    a: str,
    where: tuple[Store, Executor, Digests],
    own: type[TranslationLayer] | None,
) -> Task:
    store, executor, digests = where
    prefill = prefill_of(json.loads(resolved), a, point.spec, store) if executor.remote else None
    columns = columns_of(point.spec, digests)
    state = state_of(point.spec, digests, store) if executor.remote else None
    memory = point.memory or memory_of(point.spec)
    asker = uuid.uuid4().hex
    return Task(a, title(point), point.spec, store, executor.owner, own, columns, prefill, memory, asker, state=state)


def _no_pipes(points: Sequence[Point]) -> None:
    for point in points:
        traces = point.spec.get("trace") or []
        if any(standard_input(t) for t in ([traces] if isinstance(traces, str) else traces)):
            raise InputError(
                "a sweep cannot read its trace from standard input, for each point reads it, and again when it goes "
                "on: store it first (smrlab trace convert - -o t.parquet)"
            )


def _layer(point: Point) -> str:
    """The layer's text; nothing where it is none, which the engine refuses."""
    layer = point.spec.get("layer")
    return layer if isinstance(layer, str) else ""


def _resolved(point: Point, own: dict[str, type[TranslationLayer] | None]) -> str:
    try:
        return _core.resolved(json.dumps(point.spec), own[_layer(point)])
    except InputError as fault:
        raise InputError(f"point {title(point)}: {fault}") from None


def title(point: Point) -> str:
    """What a point is called: its settings."""
    return hidden(" ".join(f"{k}={v}" for k, v in point.settings.items()) or "the only point")


def _read(points: Sequence[Point], digests: Digests, executor: Executor) -> None:
    """Has every trace in a store read whose digest is not known: where it is done, its columns are for the runs."""
    unknown: dict[str, Columns] = {}
    for point in points:
        for thing in columns_of(point.spec, digests):
            ((file, _),) = parts(thing.source)
            if any(digests.of(name) is None for name in digests.files(file)):
                unknown.setdefault(thing.key, thing)
    if not unknown:
        return
    things = list(unknown.values())

    def each(number: int, value: Any) -> None:
        if isinstance(value, Failed):
            raise value.error
        ((file, _),) = parts(things[number].source)
        for name, digest in zip(digests.files(file), value, strict=True):
            digests.learn(name, digests.stamp(name), digest)

    pieces = [Piece(f"reading {hidden(t.source)}", Read(t), key=f"read-{t.key}", inputs=(t,)) for t in things]
    if executor.run(pieces, each):
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Read:
    """Makes the columns of a trace; the digest of each of its files, in the order of their names."""

    thing: Columns

    def __call__(self, control: _core.Control) -> list[str]:
        """Does so."""
        del control
        return list(self.thing.here().note["digests"])


def _write_index(points: Sequence[Point], addresses: Sequence[str], store: Store) -> None:
    """What the study consists of, for who asks how far it is, and for its table."""
    index = [
        {"settings": {k: hidden(v) if isinstance(v, str) else v for k, v in p.settings.items()}, "point": a}
        for p, a in zip(points, addresses, strict=True)
    ]
    document = {"schema": SCHEMA, "engine": fingerprint(), "points": index}
    store.write(INDEX, (json.dumps(document, indent=1) + "\n").encode())


class _Study:
    """One attempt at a plan."""

    def __init__(self, plan: Plan, store: Store, executor: Executor, follow: Follow | None) -> None:
        self.plan, self.store, self.executor, self.follow = plan, store, executor, follow
        self.table = Table(store, plan.points)
        self.reused, self.finished, self.found = len(plan.done), 0, 0
        self.failed: dict[str, str] = {}
        self.busy: list[Task] = []
        self.refused = 0
        self.running: list[tuple[str, float]] = []
        self.started = time.monotonic()

    def run(self) -> Outcome:
        self.table.take(self.plan.done)
        todo = self.plan.missing
        interrupted = False
        while todo and not interrupted:
            self.busy = []
            interrupted = self._pass(todo)
            todo = self.busy
            if todo and not interrupted:
                try:
                    time.sleep(BUSY_S)
                except KeyboardInterrupt:
                    interrupted = True
        self.table.write()
        return Outcome(len(self.plan.tasks), self.reused + self.found, self.finished, self.failed, interrupted)

    def _pass(self, todo: Sequence[Task]) -> bool:
        pieces = list(_pieces(todo))

        def each(number: int, value: Any) -> None:
            self._ended(todo[number], value)

        def tick(running: Sequence[Running]) -> None:
            self.running = [(todo[r.number].title, r.share) for r in running]
            self._tell()

        interrupted = self.executor.run(pieces, each, tick if self.follow else None)
        self.running = []
        self._tell()
        return interrupted

    def _ended(self, task: Task, value: Told | Failed) -> None:
        if isinstance(value, Failed):
            fault = value.error
            if isinstance(fault, Interrupted):
                # Another client of the cluster stopped a run that both wanted.
                self.busy.append(task)
                return
            if isinstance(fault, MissingError):
                # A store may be away for a moment, or a machine lack something that others have.
                self.refused += 1
                if self.refused >= REFUSED:
                    raise fault
                self.busy.append(task)
                return
            self._fails(task, hidden(str(fault)) or type(fault).__name__)
        elif value.busy:
            self.busy.append(task)
        elif value.document is None:
            self._fails(task, value.fault)
        else:
            self.refused = 0
            found = value.found or value.asker != task.asker
            self.found += found
            self.finished += not found
            self.table.add(value)

    def _fails(self, task: Task, why: str) -> None:
        self.failed[task.title] = why
        self.store.write(f"{task.folder}/{FAILED}", json.dumps({"reason": why}).encode())
        self.table.fails(task.address, why)

    def _tell(self) -> None:
        done = self.reused + self.found + self.finished
        took = time.monotonic() - self.started
        rate = (self.finished + self.found) / took if self.finished + self.found else None
        if self.follow:
            self.follow(Progress(len(self.plan.tasks), done, len(self.failed), self.running, rate))


def _pieces(tasks: Sequence[Task]) -> Iterator[Piece[Told]]:
    for task in tasks:
        layer = "".join(c if c.isalnum() else "_" for c in str(task.spec.get("layer", "cmr")).partition(",")[0])
        others = (thing for thing in (task.prefill, task.state) if thing)
        yield Piece(
            task.title,
            task,
            key=f"run_{layer}-{task.address}",
            inputs=(*task.columns, *others),
            memory=task.memory,
            prefill=task.prefill.key if task.prefill else "",
        )
