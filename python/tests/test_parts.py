"""Parts of studies, each by itself and by hand."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from smrlab import (
    _core,
)
from smrlab.errors import InputError, Interrupted, MissingError
from smrlab.executors import Failed, Piece, memory
from smrlab.executors.contract import Running
from smrlab.executors.local import LocalPool
from smrlab.executors.memory import Room
from smrlab.sweeps import identity, inputs, plan, settings, table
from smrlab.sweeps import run as running
from smrlab.sweeps.grid import Point, with_parameter
from smrlab.sweeps.run import REFUSED, Plan, Progress, planned
from smrlab.sweeps.store import Store
from smrlab.sweeps.table import Table
from smrlab.sweeps.task import Task, Told


def test_what_is_left_is_neither_done_nor_failed() -> None:
    """At the rate so far; unknown before the first run."""
    assert Progress(10, 4, 2, [], 2.0).left_s == 2.0
    assert Progress(10, 10, 0, [], 2.0).left_s == 0.0
    assert Progress(10, 4, 2, []).left_s is None


def test_some_runs_of_each_part_of_a_large_study_say_what_runs_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many results are read, not all of the first layer's."""
    points = [f"{i}" for i in range(5 * plan.PROBES)]
    monkeypatch.setattr(plan, "runs_table", lambda _: pa.table({"point": points, "cpu_s": [2.0] * len(points)}))
    monkeypatch.setattr(plan, "results_table", lambda _: pa.table({"point": points, "host.reads": [4] * len(points)}))
    read: list[str] = []

    def document(name: str) -> dict[str, Any]:
        read.append(name)
        return {"spec": {"layer": "rmw,band=2" if int(name.split("/")[1]) < len(points) // 2 else "log"}}

    known = plan._known(cast("Store", SimpleNamespace(document=document)))
    assert len(read) == plan.PROBES
    assert {layer: cost.request_s for layer, cost in known.items()} == {"rmw": 0.5, "log": 0.5}


def task(address: str, store: Store) -> Task:
    return Task(address, f"n={address}", {"layer": "rmw"}, store, "owner", asker="me")


def test_what_has_ended_is_not_under_way(tmp_path: Path) -> None:
    """Who follows a study sees what is under way by its name, as far as it is, and nothing of it behind the end."""
    store, seen = Store(tmp_path), list[Progress]()
    tasks = {a: task(a, store) for a in "ab"}

    def run(pieces: Sequence[Any], each: Callable[[int, Any], None], tick: Callable[[Sequence[Running]], None]) -> bool:
        assert len(pieces) == 2
        tick([Running(0, 0.25), Running(1, 0.5)])
        each(0, Told("a", {"iops": 1.0}, asker="me"))
        tick([Running(1, 0.75)])
        each(1, Told("b", {"iops": 1.0}, asker="me"))
        return False

    plan = Plan([(Point({}, {}), a) for a in tasks], tasks)
    study = running._Study(plan, store, cast("Any", SimpleNamespace(run=run)), seen.append)
    assert study._pass(list(tasks.values())) is False
    told = [p.running for p in seen]
    assert [t for t in told if t][:2] == [[("n=a", 0.25), ("n=b", 0.5)], [("n=b", 0.75)]]
    assert (seen[-1].running, seen[-1].done, seen[-1].left_s) == ([], 2, 0.0)


def test_ends_of_runs_are_counted_by_who_did_them(tmp_path: Path) -> None:
    """What was there, or another study did, is found; what somebody is at, or a store was away for, is tried again."""
    store = Store(tmp_path)
    tasks = {a: task(a, store) for a in "abcdefg"}
    plan = Plan([(Point({}, {}), a) for a in tasks], tasks)
    study = running._Study(plan, store, cast("Any", None), None)
    document = {"iops": 1.0}
    ends: dict[str, Told | Failed] = {
        "a": Told("a", document, asker="me"), "b": Told("b", document, found=True),
        "c": Told("c", document, asker="other"),
        "d": Told("d", busy=True), "e": Told("e", fault="no room"), "f": Failed(Interrupted("x")),
        "g": Failed(InputError("wrong")),
    }  # fmt: skip
    for a, value in ends.items():
        study._ended(tasks[a], value)
    assert (study.finished, study.found, [t.address for t in study.busy]) == (1, 2, ["d", "f"])
    assert study.failed == {"n=e": "no room", "n=g": "wrong"}
    assert json.loads((tmp_path / "points/g/failed.json").read_text()) == {"reason": "wrong"}
    rows = [(r["point"], r["status"]) for r in study.table.table().to_pylist()]
    assert rows == [("a", "done"), ("b", "done"), ("c", "done"), ("e", "failed"), ("g", "failed")]
    away = Failed(MissingError("away"))
    for _ in range(REFUSED - 1):
        study._ended(tasks["f"], away)
    study._ended(tasks["a"], Told("a", document, asker="me"))
    for _ in range(REFUSED - 1):
        study._ended(tasks["f"], away)
    with pytest.raises(MissingError, match="away"):
        study._ended(tasks["f"], away)


def test_a_plan_shares_what_two_runs_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prefill of one run alone is its own; what failed before is tried again, what is there is done."""
    for module in (identity, running):
        monkeypatch.setattr(module, "fingerprint", lambda: "engine")
    keys = {1: "k", 2: "k", 3: "other", 4: None}
    made = lambda _, __, spec, ___: SimpleNamespace(key=keys[spec["seed"]]) if keys[spec["seed"]] else None  # noqa: E731
    monkeypatch.setattr(running, "prefill_of", made)
    base = {"drive": "tiny", "layer": "cmr", "trace": ["synth:uniform,requests=5"]}
    points = [Point({"seed": n}, {**base, "seed": n}) for n in (1, 2, 3, 4, 1)]
    store, executor = Store(tmp_path), cast("Any", SimpleNamespace(remote=True, owner="o"))
    first = planned(points, store, executor)
    assert [bool(t.prefill) for t in first.tasks.values()] == [True, True, False, False]
    assert (len(first.points), len(first.missing), first.points[0][1]) == (5, 4, first.points[4][1])
    done, failed, *_ = first.tasks
    store.write(f"points/{done}/result.json", b"{}")
    store.write(f"points/{failed}/failed.json", b"{}")
    again = planned(points, store, executor)
    assert (again.done, [t.failed for t in again.missing]) == ({done}, [True, False, False])


def test_a_store_is_the_same_with_a_slash_behind_it(tmp_path: Path) -> None:
    """What is cut in it is no document; what fills it keeps its folders, and the last comes last."""
    assert [Store(url).url for url in ("s3://b/x/", "s3://b/x", "file:///x")] == ["s3://b/x", "s3://b/x", "/x"]
    store = Store(tmp_path / "s")
    store.write("cut.json", b'{"a":')
    assert (store.document("cut.json"), store.document("none.json")) == (None, None)
    with store.filling("", "a.json") as folder:
        (folder / "runs").mkdir()
        for name in ("a.json", "runs/b", "z"):
            (folder / name).write_text(name)
    assert {p: store.read(p) for p in ("a.json", "runs/b", "z")} == {p: p.encode() for p in ("a.json", "runs/b", "z")}
    assert sorted(store.times("", "b")) == ["runs/b"]
    assert not [p for p in (tmp_path / "s").iterdir() if p.name.startswith(".partial")]


def test_a_trace_with_bad_lines_is_read_as_it_is() -> None:
    """Nor is one of several made columns: what was passed over, and where one begins, is told of the trace itself."""
    digests = cast("Any", SimpleNamespace(files=lambda f: [f], stamp=lambda _: "s"))

    def alone(**spec: Any) -> list[bool]:
        return [
            c.alone
            for c in inputs.columns_of(
                spec,
                digests,
            )
        ]

    assert alone(trace="memory://a.spc") == alone(trace=["memory://a.spc"], skip_bad=0) == [True]
    assert alone(trace="memory://a.spc", skip_bad="3") == alone(trace="memory://a.spc:spc,skip_bad=1") == [False]
    assert alone(trace=["memory://a", "memory://b", "here"]) == [False, False]


def test_settings_are_read_in_the_order_of_their_files(tmp_path: Path) -> None:
    """Tables of items become parameters; an empty cell sets nothing."""
    (tmp_path / "b.toml").write_text('n = 1\n[layer]\ncache = "1%"\n')
    (tmp_path / "a.toml").write_text("n = 2\n")
    (tmp_path / "c.csv").write_text("n,layer.cache,x\n3,,0.5\n4,2%,w\n")
    (tmp_path / "d.json").write_text('[{"n": 5}, {"n": 6, "layer": {"cache": 7}}]')
    pq.write_table(pa.table({"n": [8, None], "m": [None, "y"]}), tmp_path / "e.parquet")
    assert settings.settings_of(["*.toml", "c.csv", "d.json", "e.parquet"], "x", tmp_path) == [
        {"n": 2}, {"n": 1, "layer.cache": "1%"}, {"n": 3, "x": 0.5}, {"n": 4, "layer.cache": "2%", "x": "w"},
        {"n": 5}, {"n": 6, "layer.cache": 7}, {"n": 8}, {"m": "y"},
    ]  # fmt: skip
    (tmp_path / "f.txt").touch()
    (tmp_path / "g.csv").write_text("\ufeffn,m\n1,2\n")
    assert settings.settings_of("g.csv", "x", tmp_path) == [{"n": 1, "m": 2}]
    wrongs = {"h.csv": "n,m\n1,2\n1,2,\n", "i.csv": "n,m\n1,2\n1\n", "j.json": "[5]", "k.json": "null"}
    for name, text in wrongs.items():
        (tmp_path / name).write_text(text)
    for given, said in (
        (["h.csv"], "h.csv: settings that cannot be read: line 3 has more cells than the first, or fewer"),
        (["i.csv"], "i.csv: settings that cannot be read: line 3 has more cells than the first, or fewer"),
        (["j.json"], "j.json: settings that cannot be read: a table of settings, or a list of such"),
        (["k.json"], "k.json: settings that cannot be read: a table of settings, or a list of such"),
        (["none*"], "no file is called none"),
        (["f.txt"], "f.txt: settings that cannot be read"),
        ([], "files is a list"),
    ):
        with pytest.raises(InputError, match=said):
            settings.settings_of(given, "x", tmp_path)


def test_a_parameter_takes_the_place_of_the_one_before_it() -> None:
    """Commas in brackets part nothing; switches are on or off."""
    for item, told in (
        ("a", "a,x=1"), ("a,x=2,y=3", "a,y=3,x=1"), ("static-R(4,1,2)", "static-R(4,1,2),x=1"),
        ("a,of=[1,2],x=exp(3,4)", "a,of=[1,2],x=1"), ("a,xx=2", "a,xx=2,x=1"),
    ):  # fmt: skip
        assert with_parameter(item, "x", 1) == told
    # Of a stack it goes into the part that has it; the others stay.
    for item, told in (
        ("a,x=2,y=3 / b,y=1", "a,y=3,x=1 / b,y=1"),
        ("a / b,x=2 / c,z=(1 / 2)", "a / b,x=1 / c,z=(1 / 2)"),
    ):
        assert with_parameter(item, "x", 1) == told
    for item, number in (("a / b,y=1", "none gives"), ("a,x=1 / b,x=2", "several give")):
        with pytest.raises(InputError, match=f"of the parts of '{item}' {number} x=: write it in the one"):
            with_parameter(item, "x", 1)
    assert [with_parameter("a", "x", on) for on in (True, False)] == ["a,x=on", "a,x=off"]


def test_columns_have_one_type() -> None:
    """Whole numbers beside real ones are real, other kinds beside each other texts; what lacks or is None is none."""
    rows: list[dict[str, Any]] = [{"a": 1, "b": 1, "c": 1, "e": None, "f": None},
                                  {"a": 2.5, "b": "x", "d": True, "e": 3, "f": None}]  # fmt: skip
    assert table._aligned(rows) == [
        {"a": 1.0, "b": "1", "c": 1, "d": None, "e": None, "f": None},
        {"a": 2.5, "b": "x", "c": None, "d": True, "e": 3, "f": None},
    ]
    assert table._aligned([*rows, {"e": None}])[1]["e"] == 3
    scales = [table._scale(v) for v in ([1, 2, 50], [1, 2, 49], [1, 50], [0, 1, 99], [])]
    assert scales == ["log", "linear", "linear", "linear", "linear"]


def test_a_folder_stands_for_the_files_that_are_seen(tmp_path: Path) -> None:
    """Neither folders in it nor hidden files; a pattern for those that it fits."""
    for name in ("b.csv", "a.csv", ".hidden.csv"):
        (tmp_path / name).touch()
    (tmp_path / "deep").mkdir()
    seen = [f"{tmp_path}/a.csv", f"{tmp_path}/b.csv"]
    assert sorted(identity.files_of(str(tmp_path))) == sorted(identity.files_of(f"{tmp_path}/[ab]*")) == seen
    assert identity.files_of(seen[0]) == seen[:1]


def test_runs_that_fill_the_memory_exactly_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more waits; a run alone has room however large it is."""
    room = Room()
    waited: list[bool] = []
    wait_for = room._changed.wait_for

    def seen(there_is: Any, timeout: float | None = None) -> bool:
        waited.append(not there_is())
        return True if waited[-1] else wait_for(there_is, timeout)

    monkeypatch.setattr(room._changed, "wait_for", seen)
    with room.taken(100, 10), room.taken(0, 10):
        pass
    with room.taken(6, 10), room.taken(4, 10), room.taken(1, 10), room.taken(9, 0):
        pass
    assert waited == [False, True, False, False, True, False]
    assert room._taken == 0


def test_all_that_fit_go_when_room_is_made() -> None:
    """Two that waited for one go together: the second does not wait until the first is done."""
    room, together = Room(), threading.Barrier(2)

    def go() -> None:
        with room.taken(5, 10):
            together.wait(10)

    threads = [threading.Thread(target=go) for _ in range(2)]
    with room.taken(10, 10):
        for thread in threads:
            thread.start()
        end = time.monotonic() + 10
        while len(room._changed._waiters) < 2 and time.monotonic() < end:  # type: ignore[attr-defined]
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert (together.broken, room._taken) == (False, 0)


def test_pieces_that_have_not_begun_when_it_is_stopped_are_not_done() -> None:
    """Of one thread the first piece ends the run; what it raised, and what the others give, is told in their order."""
    done: list[int] = []
    told: list[tuple[int, Any]] = []

    begun = threading.Event()

    def piece(number: int) -> Piece[int]:
        def work(control: _core.Control) -> int:
            done.append(number)
            # The second is under way until it is stopped.
            end = time.monotonic() + 10
            if number == 1:
                begun.set()
            while number == 1 and not control.cancelled() and time.monotonic() < end:
                time.sleep(0.001)
            return number

        return Piece(str(number), work)

    def stop(number: int, value: Any) -> None:
        told.append((number, value))
        begun.wait(10)
        raise KeyboardInterrupt

    assert LocalPool(1).run([piece(n) for n in range(9)], stop)
    assert (done, told) == ([0, 1], [(0, 0)])
    told.clear()
    fault = ValueError("x")

    def work(_: Any) -> int:
        raise fault

    assert not LocalPool(2).run([Piece("a", work), Piece("b", lambda _: 7)], lambda n, v: told.append((n, v)))
    assert sorted(told, key=lambda one: one[0]) == [(0, Failed(fault)), (1, 7)]


def test_a_run_that_failed_once_is_done_when_it_is_there(tmp_path: Path) -> None:
    """What the table says of it is of then; what it said of others stays."""
    store = Store(tmp_path)
    points = [(Point({"n": n}, {}), a) for n, a in enumerate("abc")]
    before = Table(store, points)
    before.fails("a", "why")
    before._rows["b"] = {"point": "b", "status": "done", "iops": 7.0}
    before.write()
    for a in "ab":
        store.write(f"points/{a}/result.json", json.dumps({"schema": 1, "iops": 5.0}).encode())
    after = Table(store, points)
    after.take({"a", "b"})
    rows = [(r["n"], r["point"], r["status"], r["iops"]) for r in after.table().to_pylist()]
    assert rows == [(0, "a", "done", 5.0), (1, "b", "done", 7.0)]


def test_a_run_is_known_by_what_its_files_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they lie and whatever they are called; how they are read and what is overridden counts."""
    monkeypatch.setattr(identity, "fingerprint", lambda: "engine")
    for name, held in (
        ("t.csv", "1"),
        ("copy.csv", "1"),
        ("other.csv", "2"),
        ("d.toml", "3"),
        ("e.toml", "3"),
        ("f", "4"),
    ):
        (tmp_path / name).write_text(held)

    def of(trace: str, drive: str = "d.toml") -> str:
        spec = {"trace": [f"{tmp_path}/{trace}"], "drive": f"{tmp_path}/{drive}", "layer": "rmw"}
        return identity.address(json.dumps(spec), identity.Digests(Store(tmp_path / "study")))

    assert of("t.csv") == of("copy.csv") == of("t.csv", "e.toml")
    assert len({of("t.csv"), of("other.csv"), of("t.csv:spc"), of("t.csv:disksim"), of("t.csv", "d.toml,zone=1")}) == 5
    # A drive file is one without an ending, too.
    before = of("t.csv", "f")
    (tmp_path / "f").write_text("5.")
    assert of("t.csv", "f") != before


def test_a_study_takes_as_long_as_its_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where runs are short; three of them at 4 ms each, however many cores there are."""
    monkeypatch.setattr(plan, "_costs", lambda *_: ({"rmw": plan._Cost(0.008, 0.0, 1.0)}, ""))
    points = [Point({"n": n}, {"drive": "tiny", "layer": "rmw", "trace": "synth:uniform"}) for n in range(3)]
    told = plan.plan_of(cast("Any", SimpleNamespace(points=points)))
    assert told["time_s"] == {"1": pytest.approx(0.024), **{n: pytest.approx(0.012) for n in ("8", "64", "512")}}


def test_runs_share_what_the_machine_or_its_control_group_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever is less; a group without a limit says `max`."""
    monkeypatch.setattr(memory, "Path", lambda _, name: tmp_path / name)
    machine = memory.installed()
    assert machine == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = tmp_path / "memory.max"
    for text, bytes_ in (("max\n", machine), ("1000\n", 1000), (f"{1 << 62}\n", machine)):
        limit.write_text(text)
        assert memory.installed() == bytes_


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://bucket/a.csv", ("s3://bucket/a.csv", "")),
        ("s3://bucket/a.csv:spc", ("s3://bucket/a.csv", ":spc")),
        ("s3://bucket/12:30/a.csv", ("s3://bucket/12:30/a.csv", "")),
        ("s3://bucket/at:noon/a.csv", ("s3://bucket/at:noon/a.csv", "")),
        ("http://host:9000", ("http://host:9000", "")),
    ],
)
def test_a_colon_in_a_url_is_part_of_it_unless_a_format_follows(text: str, found: tuple[str, str]) -> None:
    assert list(identity.parts(text)) == [found]
