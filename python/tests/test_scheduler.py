"""What a cluster is asked for, and what becomes of its answers: with a scheduler that answers from a table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from smrlab import InputError, MissingError, _core
from smrlab.executors import ExecutorLost, Failed, Piece, Running, cluster
from smrlab.executors.cluster import Cluster, Handle


class KilledWorker(Exception):
    """As Dask calls it."""


class Client:
    """Ends each task at once: with its own value, or with what the table says of its key."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.status, self.keys, self.done = answers, "running", [], []  # type: ignore[var-annotated]
        self.workers: dict[str, Any] = {"w": ("engine", "host")}

    def nthreads(self) -> dict[str, int]:
        return {"a": 1, "b": 1}

    def scheduler_info(self, n_workers: int) -> dict[str, str]:
        assert n_workers == 0
        return {"id": "S-1"}

    def run(self, what: Callable[..., Any], *given: Any, on_error: str) -> dict[str, Any]:
        self.done.append((what.__name__, *given, on_error))
        return self.workers

    def submit(self, what: Callable[..., Any], *given: Any, key: str, pure: bool) -> Any:
        assert not pure
        self.keys.append(key)
        if what is cluster.prepare:
            return key
        order, number, *handles = given
        answer = self.answers.get(key, f"value {number} of {order.piece.name}")
        state = "error" if isinstance(answer, Exception) else answer if answer == "cancelled" else "finished"
        return SimpleNamespace(
            status=state, exception=lambda: answer, value=(answer, handles), add_done_callback=lambda call: call(None)
        )

    def gather(self, futures: list[Any]) -> list[Any]:
        if "gather" in self.answers:
            raise self.answers["gather"]
        return [f.value for f in futures]

    def cancel(self, futures: list[Any]) -> None:
        self.done.append(("cancel", len(futures)))

    def subscribe_topic(self, topic: str, heard: Callable[[Any], None]) -> None:
        self.heard = heard
        self.done.append(("subscribe", topic))

    def unsubscribe_topic(self, topic: str) -> None:
        self.done.append(("unsubscribe", topic))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pieces at a time; one engine everywhere."""
    for name, value in (("WINDOW", 1), ("WINDOW_A_THREAD", 1), ("PERIOD_S", 0.01)):
        monkeypatch.setattr(cluster, name, value)
    monkeypatch.setattr(cluster, "about", lambda: ("engine", "host"))
    monkeypatch.setattr("smrlab.sweeps.identity.fingerprint", lambda: "engine")


def pieces(count: int, *inputs: Any) -> list[Piece[Any]]:
    """With keys `k0`, `k1`, ... and these inputs, of which the last is of the first piece alone."""
    return [
        Piece(f"p{n}", cast("Any", None), key=f"k{n}", inputs=inputs if n == 0 else inputs[:-1]) for n in range(count)
    ]


def told(client: Any, work: list[Piece[Any]]) -> list[tuple[int, Any]]:
    """What a cluster tells of pieces."""
    found: list[tuple[int, Any]] = []
    assert not Cluster(client).run(work, lambda number, value: found.append((number, value)))
    return found


def test_a_piece_has_its_inputs_which_are_made_once_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the last piece that needs them; two pieces are under way at a time."""
    client, calls, held = Client(), list[Any](), list[Any]()
    made = cluster._Call.__init__

    def begin(self: Any, *given: Any) -> None:
        made(self, *given)
        calls.append(self)

    monkeypatch.setattr(cluster._Call, "__init__", begin)
    both, one = SimpleNamespace(key="both"), SimpleNamespace(key="one")
    found: list[Any] = []

    def each(number: int, value: Any) -> None:
        found.append((number, value))
        held.append((set(calls[0].handles), len(calls[0].futures)))

    assert Cluster(client).run(pieces(3, both, one), each) is False
    assert found == [
        (0, ("value 0 of p0", ["input-both", "input-one"])), (1, ("value 1 of p1", ["input-both"])),
        (2, ("value 2 of p2", ["input-both"])),
    ]  # fmt: skip
    assert client.keys == ["input-both", "input-one", "k0-0", "k1-0", "k2-0"]
    assert held == [({"both"}, 1), ({"both"}, 0), (set(), 0)]
    (_, topic), *_, last = client.done[1:]
    assert (topic.startswith("smrlab-"), last) == (True, ("unsubscribe", topic))


def test_a_piece_is_tried_again_where_its_workers_died() -> None:
    """Three times in all; what it raised itself is told at once."""
    client = Client(
        **{"k0-0": KilledWorker("x"), "k1-0": ValueError("no"), **{f"k2-{n}": KilledWorker("x") for n in range(9)}}
    )
    found = dict(told(client, pieces(3)))
    assert found[0] == ("value 0 of p0", [])
    assert [str(found[n].error) for n in (1, 2)] == [
        "ValueError: no",
        "its workers died under it, again and again: it takes more memory than they have, or crashes",
    ]
    assert sorted(client.keys) == ["k0-0", "k0-1", "k1-0", "k2-0", "k2-1", "k2-2"]


def test_what_the_scheduler_lost_is_not_done() -> None:
    """Nor is anything where it is gone; what is under way is cancelled where somebody is there to be told."""
    for client, why in (
        (Client(**{"k0-0": "cancelled"}), "the scheduler has lost what it was given"),
        (Client(gather=OSError("x")), "results were lost on their way: OSError"),
    ):
        with pytest.raises(ExecutorLost, match=why):
            told(client, pieces(1))
        assert [what for what, *_ in client.done[2:]] == ["cancel", "cancel", "unsubscribe"]
    client = Client()
    client.submit = lambda *_, **__: SimpleNamespace(add_done_callback=lambda _: None)  # type: ignore[method-assign]
    client.status = "closed"
    with pytest.raises(ExecutorLost, match="the connection to the scheduler is lost"):
        told(client, pieces(1))
    assert [what for what, *_ in client.done[2:]] == ["unsubscribe"], "who asks it waits for it"

    def interrupts(*_: Any) -> None:
        raise KeyboardInterrupt

    client = Client()
    assert Cluster(client).run(pieces(2), interrupts)
    assert [what for what, *_ in client.done[2:]] == ["cancel", "cancel", "unsubscribe"]


def test_shares_are_told_of_what_is_under_way() -> None:
    """In the order of the pieces, the latest of each."""
    client, ticks = Client(), list[Any]()
    waiting: list[Any] = []
    client.submit = lambda *_, **__: SimpleNamespace(  # type: ignore[method-assign]
        status="finished", value=1, add_done_callback=waiting.append
    )

    def tick(running: Any) -> None:
        ticks.append(list(running))
        if len(ticks) == 1:
            for event in ((1, 0.25, True), (0, 0.5, False), (0, 0.75, False), (7, 0.5, False)):
                client.heard((0, event))
        elif waiting:
            waiting.pop(0)(None)

    assert not Cluster(client).run(pieces(2), lambda *_: None, tick)
    assert ticks == [[], [Running(0, 0.75), Running(1, 0.25, True)], [Running(1, 0.25, True)], []]


def test_workers_that_would_answer_otherwise_are_refused() -> None:
    """One that died meanwhile is none; the owner is the scheduler's."""
    client = Client()
    client.workers = {"a": ("engine", "h"), "b": OSError("gone")}
    assert Cluster(client).owner == "dask-S-1"
    client.workers["c"] = ("other", "h")
    with pytest.raises(MissingError, match=r"worker c has another engine \(smrlab other, here engine\)"):
        Cluster(client)
    client.workers["c"] = ImportError("none")
    with pytest.raises(MissingError, match="worker c has no smrlab that this one can talk to"):
        Cluster(client)


def test_a_worker_does_what_fits_and_tells_what_it_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses what another engine asks, and what needs more memory than it has; a panic is told in words."""
    worker = SimpleNamespace(address="w", memory_manager=SimpleNamespace(memory_limit=2 << 30))
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    monkeypatch.setattr(cluster, "control", lambda *_: _core.Control())

    class Panic(BaseException):
        """Nothing that can be sent."""

        lock = threading.Lock()

        def __reduce__(self) -> Any:
            raise TypeError

    def done(work: Callable[[Any], Any], memory: int = 0, engine: str = "engine") -> Any:
        order = cluster._Order(Piece("p", work, memory=memory), "call", False, engine)
        assert repr(order) == "run of p"
        return cluster.perform(order, 0)

    def fails(error: BaseException) -> Callable[[Any], Any]:
        def work(_: Any) -> Any:
            raise error

        return work

    ends: list[threading.Event] = []
    monkeypatch.setattr(cluster, "_tell", lambda *given: ends.append(given[4]))
    seen: list[int] = []
    assert done(lambda _: seen.append(len(cluster._running["call"])) or 7, 2 << 30) == 7  # type: ignore[func-returns-value]
    assert (seen, cluster._running["call"]) == ([1], set())
    errors = [
        done(lambda _: 7, engine="other").error, done(lambda _: 7, (2 << 30) + 1).error,
        done(fails(InputError("no"))).error, done(fails(Panic("deep"))).error, done(fails(SystemExit(3))).error,
    ]  # fmt: skip
    assert [(type(e), str(e)) for e in errors] == [
        (MissingError, cluster.another("w", "engine", "other")),
        (InputError, cluster.too_large((2 << 30) + 1, 2 << 30)),
        (InputError, "no"), (RuntimeError, "Panic: deep"), (RuntimeError, "SystemExit: 3"),
    ]  # fmt: skip
    assert [end.is_set() for end in ends] == [True] * 4, "whatever became of it, nobody tells of it any more"
    cancelled: list[Any] = []
    watched = type("Watched", (), {"cancel": lambda self: cancelled.append(self)})
    cluster._running.update({"call": {watched(), watched()}, "other": {watched()}})
    cluster.cancel("call")
    cluster.cancel("none")
    assert set(cancelled) == cluster._running["call"], "all that a worker does for one call, and no other"
    thing = cast("Any", SimpleNamespace(here=lambda: SimpleNamespace(bytes=5000)))
    assert [Handle(thing, n).__sizeof__() for n in (5, 5000)] == [64, 5000]
    made = cluster.prepare(thing)
    assert isinstance(made, Handle)
    assert made.weight == 5000
    assert isinstance(cluster.prepare(cast("Any", SimpleNamespace(here=lambda: 1 / 0))), Failed)


def test_a_run_tells_again_and_again_how_far_it_is() -> None:
    """Until it ended; that nobody could be told stops nothing."""
    ends, told = iter([False, False, False, True]), list[Any]()

    def log_event(*event: Any) -> None:
        told.append(event)
        if len(told) == 2:
            raise OSError

    worker: Any = SimpleNamespace(log_event=log_event)
    order: Any = SimpleNamespace(call="call")
    watched: Any = SimpleNamespace(share=lambda: len(told) / 4, prefills=lambda: True)
    cluster._tell(worker, order, 3, watched, cast("Any", SimpleNamespace(wait=lambda _: next(ends))))
    assert told == [("call", (3, n / 4, True)) for n in range(3)]


@pytest.mark.parametrize(("refused", "comes"), [(0, True), (3, True), (200, False)])
def test_a_scheduler_that_was_lost_is_waited_for(refused: int, comes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its address, with its keys, for a minute; what comes back is greeted again."""
    seen: dict[str, Any] = {"asked": [], "waits": [], "now": 1000.0, "closed": []}

    class Again(Client):
        def __init__(self, address: str, *, timeout: float, name: str, security: Any) -> None:
            super().__init__()
            seen["asked"].append((address, timeout, name, security))
            seen["now"] += 1.0
            if len(seen["asked"]) <= refused:
                raise OSError if refused % 2 else TimeoutError

        def wait_for_workers(self, n: int, timeout: float) -> None:
            seen["waits"].append((n, timeout))

    class Lost(Client):
        scheduler, security, _start_arg = SimpleNamespace(address="tls://h:1"), "keys", "other"

        def close(self, timeout: float) -> None:
            seen["closed"].append(timeout)
            raise OSError("it is gone")

    clock = SimpleNamespace(monotonic=lambda: seen["now"], sleep=lambda s: seen.__setitem__("now", seen["now"] + s))
    monkeypatch.setattr(cluster, "time", clock)
    monkeypatch.setattr("distributed.Client", Again)
    workers = Cluster(Lost())
    workers.owner = ""
    if comes:
        workers.back()
        assert isinstance(workers.client, Again)
        assert workers.owner == "dask-S-1"
        assert seen["waits"] == [(1, 60 - 1 - 1.5 * refused)]
    else:
        with pytest.raises(ExecutorLost, match="tls://h:1 is gone, and did not come back within 60 s"):
            workers.back()
        assert seen["now"] == 1060
    assert seen["asked"] == [("tls://h:1", 5, "smrlab", "keys")] * (refused + 1 if comes else 40)
    assert seen["closed"] == [1]
    lost = Lost()
    lost.scheduler = None  # type: ignore[assignment]
    seen.update(asked=[], now=0.0)
    workers.client = lost
    if comes:
        workers.back()
        assert {address for address, *_ in seen["asked"]} == {"other"}
