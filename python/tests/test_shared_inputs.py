"""Traces and states of a study that are in stores: read once, the same runs as with files, and shown as they go."""

from __future__ import annotations

import gzip
import hashlib
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest

import smrlab as lab
from smrlab import Trace, _core, urls
from smrlab.cli import console
from smrlab.sweeps import identity, inputs, machine, task
from smrlab.sweeps import run as running
from smrlab.sweeps.store import Store
from smrlab.work import Job

TRACE = "".join(f"0,{8 * n},4096,{'wr'[n % 3 == 0]},{n / 100}\n" for n in range(30))


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The machine's folder of inputs; one engine, which takes seconds to find out."""
    for module in (identity, inputs, running):
        monkeypatch.setattr(module, "fingerprint", lambda: "engine")
    monkeypatch.setenv("SMRLAB_INPUTS", str(tmp_path / "inputs"))
    yield tmp_path / "inputs"
    fsspec.filesystem("memory").store.clear()


def test_a_trace_in_a_store_is_the_same_as_in_a_file(kept: Path, tmp_path: Path) -> None:
    """Packed or not, alone or beside another; its columns are made once, and runs have the addresses of their bytes."""
    files = {"a.spc": TRACE.encode(), "b.spc.gz": gzip.compress(TRACE.replace("w,", "r,").encode(), mtime=0)}
    memory = fsspec.filesystem("memory")
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        memory.pipe_file(f"/traces/{name}", data)
    Trace.open(tmp_path / "a.spc", format="spc").save(tmp_path / "c.parquet")
    memory.pipe_file("/traces/c.parquet", (tmp_path / "c.parquet").read_bytes())

    def rows(place: str, names: list[str], out: str) -> list[dict[str, Any]]:
        trace = [f"{place}/{name}" for name in names]
        spec = {"base": {"drive": "tiny", "wrap": "capacity", "trace": trace}, "grid": {"layer": ["cmr", "rmw"]}}
        done = lab.sweep(spec, out=tmp_path / out)
        assert done.outcome.failed == {}
        return [{k: v for k, v in row.items() if "seconds" not in k} for row in done.table().to_pylist()]

    for n, names in enumerate((["a.spc:spc"], ["b.spc.gz:spc"], ["c.parquet"], ["a.spc:spc", "b.spc.gz:spc"])):
        here, there = rows(str(tmp_path), names, f"here{n}"), rows("memory://traces", names, f"there{n}")
        assert [r["host.writes"] for r in there] == [[20, 0, 20, 20][n]] * 2
        for key in ("point", "host.reads", "iops", "response_ms.mean"):
            assert [r[key] for r in here] == [r[key] for r in there], (names, key)
        result = Store(tmp_path / f"there{n}").document(f"points/{there[0]['point']}/result.json")
        assert result["spec"]["trace"] == [f"memory://traces/{name}" for name in names]
    made = sorted(p.name for p in kept.iterdir() if p.name.startswith("trace-"))
    # Each by itself, and two of which copies lie beside each other.
    assert len(made) == 5
    notes = [machine.noted(kept / name) or {} for name in made]
    assert all(note["bytes"] == sum(f.stat().st_size for f in (kept / name).iterdir() if f.name != "note.json")
               for note, name in zip(notes, made, strict=True))  # fmt: skip


def test_a_state_is_told_by_where_it_is_kept(kept: Path, tmp_path: Path) -> None:
    """Not by the copy that a run on another machine begins from, which nobody else of that machine reads."""
    spec: dict[str, Any] = {"drive": "tiny", "layer": "rmw,band=2", "trace": ["synth:uniform,requests=40"]}
    name, store = str(tmp_path / "aged.state"), Store(tmp_path / "study")
    lab.run(**spec, save_state=name)
    state = inputs.state_of({"from_state": name}, identity.Digests(store), store)
    assert state is not None
    (tmp_path / "aged.state").write_bytes(b"another by now")
    told = task.Task("a", "t", {**spec, "from_state": name}, store, "me", state=state)(_core.Control())
    assert told.document is not None, told.fault
    assert told.document["spec"]["from_state"] == name
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700


def test_a_run_reads_the_columns_that_are_kept(kept: Path, tmp_path: Path) -> None:
    """Not the trace in its store, which another run of the machine has read; its result names that one."""
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/t/a.spc", TRACE.encode())
    spec: dict[str, Any] = {"drive": "tiny", "wrap": "capacity", "trace": ["memory://t/a.spc:spc"], "layer": "cmr"}
    store = Store(tmp_path / "study")
    columns = inputs.columns_of(spec, identity.Digests(store))
    columns[0].here()
    memory.rm("/t/a.spc")
    told = task.Task("a", "t", spec, store, "me", columns=columns)(_core.Control())
    assert told.document is not None, told.fault
    assert told.document["spec"]["trace"] == spec["trace"]


def test_what_a_store_holds_is_read_again_where_it_changed(kept: Path, tmp_path: Path) -> None:
    """Told by its stamp; a digest that another has found is taken."""
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/t/a", b"one")
    digests = identity.Digests(Store(tmp_path))
    assert digests.of("memory://t/a") is None
    digests.learn("memory://t/a", digests.stamp("memory://t/a"), "d1")
    digests.save()
    assert (digests.of("memory://t/a"), identity.Digests(Store(tmp_path)).of("memory://t/a")) == ("d1", "d1")
    memory.pipe_file("/t/a", b"another")
    assert identity.Digests(Store(tmp_path)).of("memory://t/a") is None
    with urls.Hashing("memory://t/a") as source:
        assert source.read(0, 3) == b"ano"
        assert source.digest() == hashlib.sha256(b"another").hexdigest()


def test_a_state_goes_through_the_store(kept: Path, tmp_path: Path) -> None:
    """Put there once, by what is in it; one that is gone is no fault of the run."""
    (tmp_path / "state").write_bytes(b"state")
    store = Store("memory://states-of")
    digests = identity.Digests(store)
    made = inputs.state_of({"from_state": str(tmp_path / "state")}, digests, store)
    assert made is not None
    assert store.read(f"states/{made.digest}") == b"state"
    assert inputs.state_of({}, digests, store) is None
    (tmp_path / "state").write_bytes(b"other")
    with made.held() as file:
        assert file.read_bytes() == b"state"
    assert made.here().place == kept / f"state-{made.digest[:16]}"
    gone = inputs.State("x", "0" * 64, store)
    with pytest.raises(lab.MissingError, match="the state x is not there any more"):
        gone.here()
    assert not (kept / gone.key).exists()


def test_what_several_runs_need_is_made_once(kept: Path) -> None:
    """By the first; the others wait for it. What failed is made again."""
    made: list[int] = []

    def make(place: Path) -> dict[str, Any]:
        made.append(1)
        time.sleep(0.05)
        (place / "data").write_bytes(bytes(7))
        if len(made) == 1:
            raise ValueError("no")
        return {}

    with pytest.raises(ValueError, match="no"), machine.held("k", make):
        pass
    assert machine.noted(kept / "k") is None
    seen: list[Any] = []

    def use() -> None:
        with machine.held("k", make) as (place, note):
            seen.append((place.name, note))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), seen) == (2, [("k", {"bytes": 7})] * 4)


def test_what_was_being_made_when_its_maker_died_is_made_anew(kept: Path) -> None:
    """Nothing of it is kept."""
    left = kept / ".k.partial"
    left.mkdir(parents=True)
    (left / "half").write_bytes(bytes(100))

    def make(place: Path) -> dict[str, Any]:
        (place / "data").write_bytes(bytes(7))
        return {}

    with machine.held("k", make) as (place, note):
        assert (note, sorted(p.name for p in place.iterdir())) == ({"bytes": 7}, ["data", "note.json"])
    assert not left.exists()


@pytest.mark.parametrize("note", [None, '{"byt'])
def test_what_lost_its_note_is_made_anew(kept: Path, note: str | None) -> None:
    """Nobody knows what is there: its removal, or the power, ended half way."""
    there = kept / "k"
    there.mkdir(parents=True)
    (there / "half").write_bytes(bytes(100))
    if note is not None:
        (there / "note.json").write_text(note)

    def make(place: Path) -> dict[str, Any]:
        (place / "data").write_bytes(bytes(7))
        return {}

    with machine.held("k", make) as (place, found):
        assert (found, sorted(p.name for p in place.iterdir())) == ({"bytes": 7}, ["data", "note.json"])


class Bars:
    """What Rich is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def add_task(self, name: str, total: float) -> int:
        self.told.append(("new", name, total))
        return len(self.told)

    def update(self, task: int, **more: Any) -> None:
        self.told.append((task, *sorted(more.items())))


def test_bars_show_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one thing, of runs side by side, of a study: on a terminal alone."""
    bars = Bars()

    @contextmanager
    def shown() -> Iterator[Bars]:
        bars.told.clear()
        yield bars

    monkeypatch.setattr(console, "_bars", shown)
    ways: list[Callable[[], Any]] = [lambda: console.bar("n"), console.progress, console.study]
    for way in ways:
        with way() as nothing:
            assert nothing is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with console.bar("n") as one:
        assert one
        one(0.5)
    assert bars.told == [("new", "n", 1.0), (1, ("completed", 0.5))]
    with console.progress() as watch:
        assert watch
        watch([Job("a", 0.25), Job("b", 0.5, prefills=True)])
        watch([Job("a", 1.0, done=True)])
    assert bars.told == [
        ("new", "a", 1.0), (1, ("completed", 0.25), ("description", "a")),
        ("new", "b", 1.0), (3, ("completed", 0.5), ("description", "b (prefill)")),
        (1, ("completed", 1.0), ("description", "a")),
    ]  # fmt: skip
    with console.study() as follow:
        assert follow
        follow(running.Progress(9, 3, 1, [], None))
    assert bars.told[1] == (1, ("completed", 4), ("description", "3 of 9 done, 1 failed"), ("total", 9))


def test_bars_are_no_result_and_leave_nothing_behind() -> None:
    """Beside what a command prints for other programs."""
    bars = console._bars()
    assert (bars.console.stderr, bars.live.transient) == (True, True)
    with pytest.raises(BrokenPipeError):
        console.out().on_broken_pipe()


def test_all_faults_of_a_specification_name_its_file(tmp_path: Path) -> None:
    """A line each."""
    from smrlab.cli.run import _from_file

    (tmp_path / "s.toml").write_text("nothing = 1\nnone = 2\nseed = 3\n")
    with pytest.raises(lab.InputError) as told:
        _from_file(tmp_path / "s.toml")
    lines = str(told.value).splitlines()
    assert [line.startswith(f"{tmp_path}/s.toml: ") for line in lines] == [True] * len(lines)
    assert [word in str(told.value) for word in ("nothing", "none")] == [True, True]
