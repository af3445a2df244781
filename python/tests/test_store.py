"""What a study's store promises, of a folder and of an object store alike."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest

import smrlab as lab
from smrlab import InputError, MissingError, report
from smrlab.sweeps import claims, identity, inputs
from smrlab.sweeps import run as running
from smrlab.sweeps import store as stores
from smrlab.sweeps.store import Store


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty one of each kind. What engine it is takes seconds to find out."""
    for module in (identity, inputs, running):
        monkeypatch.setattr(module, "fingerprint", lambda: "engine")
    name = uuid.uuid4().hex
    yield Store(tmp_path / "store" if request.param == "folder" else f"memory://{name}/a/")
    if request.param == "memory":
        fsspec.filesystem("memory").store.clear()


def noting(seen: list[str], of: Callable[..., str], do: Callable[..., Any]) -> Callable[..., Any]:
    """The same, which notes beforehand what it does it to."""

    def noted(*given: Any) -> Any:
        seen.append(of(*given))
        return do(*given)

    return noted


def test_files_are_there_whole_until_they_are_removed(store: Store) -> None:
    """Written over, created once; what is no document is none."""
    assert (store.read("x/y"), store.document("x/y"), store.there("x/y")) == (None, None, False)
    store.write("x/y", b'{"a": 1}')
    assert (store.read("x/y"), store.document("x/y"), store.there("x/y"), store.there("x")) == (
        b'{"a": 1}', {"a": 1}, True, False
    )  # fmt: skip
    store.write("x/y", b"{")
    assert (store.read("x/y"), store.document("x/y")) == (b"{", None)
    assert (store.create("c/n", b"1"), store.create("c/n", b"2"), store.read("c/n")) == (True, False, b"1")
    store.remove("x/y")
    store.remove("x/y")
    assert (store.there("x/y"), store.there("c/n")) == (False, True)


def test_a_tree_is_removed_with_all_that_is_in_it(store: Store) -> None:
    """And nothing beside it."""
    for name in ("points/a/result.json", "points/a/logs/media.parquet", "points/b/result.json"):
        store.write(name, b"1")
    store.remove("points/a", tree=True)
    store.remove("points/none", tree=True)
    assert [store.there(f"points/{p}/result.json") for p in "ab"] == [False, True]
    assert not store.there("points/a/logs/media.parquet")


def test_a_run_is_claimed_by_one_at_a_time(store: Store) -> None:
    """Not from another who is at work; from who is gone, and from oneself in an earlier attempt."""
    with claims.claimed(store, "a", "me") as mine, claims.claimed(store, "a", "other") as theirs:
        assert (mine, theirs) == (True, False)
        assert list(store.times("claims")) == ["a.json"]
        with claims.claimed(store, "a", "me") as again, claims.claimed(store, "b", "other") as another:
            assert (again, another) == (True, True)
    assert store.times("claims") == {}
    for at, free in ((time.time() - claims.DEAD_S - 1, True), (time.time(), False)):
        store.write("claims/a.json", json.dumps({"owner": "other", "host": "elsewhere", "at": at}).encode())
        with claims.claimed(store, "a", "me") as mine:
            assert mine == free


def test_a_claim_is_gone_though_it_was_being_renewed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The renewal is at work as the run ends, and writes after that."""
    begun, go, written, write = threading.Event(), threading.Event(), threading.Event(), store.write

    def slowly(name: str, data: bytes) -> None:
        begun.set()
        go.wait(10)
        write(name, data)
        written.set()

    monkeypatch.setattr(claims, "RENEWED_S", 0.001)
    with claims.claimed(store, "a", "me"):
        monkeypatch.setattr(store, "write", slowly)
        assert begun.wait(10)
        threading.Timer(0.2, go.set).start()
    assert written.wait(10)
    assert store.times("claims") == {}


def test_times_are_those_of_the_files_below(store: Store) -> None:
    """By their names there; only those that end so, and none where there is nothing."""
    before = time.time()
    for name in ("points/a/result.json", "points/a/failed.json", "points/b/result.json", "claims/c.json"):
        store.write(name, b"1")
    found = store.times("points", "result.json")
    assert sorted(found) == ["a/result.json", "b/result.json"]
    assert all(before - 1 <= at <= time.time() + 1 for at in found.values())
    assert sorted(store.times("points", ".json")) == ["a/failed.json", "a/result.json", "b/result.json"]
    assert (list(store.times("claims")), store.times("none")) == (["c.json"], {})


def test_a_folder_comes_with_its_last_file_last(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run fails on the way, nothing of it is there."""
    moved: list[str] = []
    monkeypatch.setattr(Store, "_put", noting(moved, lambda _, __, name: name, Store._put))
    monkeypatch.setattr(Path, "replace", noting(moved, lambda _, to: str(to), Path.replace))
    with store.filling("points/p") as folder:
        for name in ("result.json", "z.parquet", "logs/a.parquet"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(name.encode())
        assert store.times("points", "result.json") == {}
    assert [name.rpartition("/")[2] for name in moved] == ["a.parquet", "z.parquet", "result.json"]
    assert store.read("points/p/logs/a.parquet") == b"logs/a.parquet"
    made = store.filling("points/q")
    folder = made.__enter__()
    (folder / "result.json").touch()
    assert made.__exit__(KeyError, KeyError(), None) is False
    assert not store.there("points/q/result.json")
    assert not folder.exists()
    made = store.filling("points/r")
    shutil.rmtree(made.__enter__())
    assert made.__exit__(KeyError, KeyError(), None) is False, "the fault is told, and not that the folder is missing"


def test_files_go_there_and_come_back_whole(store: Store, tmp_path: Path) -> None:
    """What stops on the way leaves nothing behind."""
    file, to = tmp_path / "state", tmp_path / "new" / "state"
    file.write_bytes(b"bytes")
    store.put(file, "states/s")
    assert (store.read("states/s"), file.exists()) == (b"bytes", True)
    assert (store.fetch("states/s", to), to.read_bytes()) == (True, b"bytes")
    assert not store.fetch("states/none", to)
    assert [p.name for p in to.parent.iterdir()] == ["state"]
    if store.local:
        assert [p.name for p in (store.local / "states").iterdir()] == ["s"]


def test_a_copy_that_stops_on_the_way_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither there nor here."""
    store, copy = Store(tmp_path / "s"), shutil.copyfile
    (tmp_path / "file").write_bytes(b"bytes")
    store.put(tmp_path / "file", "there")

    def stops(source: Path, to: Path) -> None:
        copy(source, to)
        raise OSError(28, "no space left")

    monkeypatch.setattr("shutil.copyfile", stops)
    with pytest.raises(MissingError, match="s/new: cannot be written"):
        store.put(tmp_path / "file", "new")
    with pytest.raises(OSError, match="no space"):
        store.fetch("there", tmp_path / "back")
    assert not store.there("new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "s"]


def test_what_changed_in_a_mirror_comes_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else is written."""
    for name in ("result.json", "runs/a/t.parquet"):
        store.write(name, b"old")
    wrote: list[str] = []
    with store.mirrored() as folder:
        monkeypatch.setattr(Store, "write", noting(wrote, lambda _, name, __: name, Store.write))
        assert (folder / "runs/a/t.parquet").read_bytes() == b"old"
        (folder / "result.json").write_bytes(b"new")
        (folder / "runs/report.html").write_bytes(b"page")
    assert (store.read("result.json"), store.read("runs/report.html")) == (b"new", b"page")
    assert sorted(wrote) == ([] if store.local else ["result.json", "runs/report.html"])


def test_a_study_is_the_same_in_a_folder_and_in_a_store(store: Store) -> None:
    """Run, run again and read; its report is written beside its result."""
    spec = {"base": {"drive": "tiny", "layer": "cmr", "trace": "synth:uniform,requests=9,span=1MiB"}, "seeds": 2}
    first, again = (lab.sweep(spec, out=store.url).outcome for _ in range(2))
    assert [(o.points, o.finished, o.reused, o.failed) for o in (first, again)] == [(2, 2, 0, {}), (2, 0, 2, {})]
    rows = pq.read_table(io.BytesIO(store.read("results.parquet") or b"")).to_pylist()
    assert [(r["seed"], r["status"]) for r in rows] == [(1, "done"), (2, "done")]
    assert store.times("claims") == {}
    folder = Store(f"{store.url}/points/{rows[0]['point']}")
    assert report.report_at(folder.url, svg=False) == f"{folder.url}/report.html"
    assert json.loads(folder.read("result.json") or b"")["host"]["reads"] == rows[0]["host.reads"]
    assert b"<title>smrlab: " in (folder.read("report.html") or b"")


def test_a_store_travels_by_its_address(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder by its absolute one; what stands in its place is refused."""
    store.write("x", b"1")
    assert pickle.loads(pickle.dumps(store)).read("x") == b"1"
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(Store("here"))
    monkeypatch.chdir("/")
    assert pickle.loads(sent).local == tmp_path / "here"
    (tmp_path / "file").touch()
    Store(tmp_path).check()
    with pytest.raises(InputError, match="exists and is not a folder"):
        Store(tmp_path / "file").check()


def test_stores_tell_the_time_in_their_own_words() -> None:
    """A date or seconds; none is the beginning."""
    at = datetime(2026, 1, 2, tzinfo=UTC)
    infos = (
        {"LastModified": at},
        {"mtime": 5},
        {"created": at, "size": 3},
        {"size": 3},
        {"updated": "x", "mtime": 2.5},
    )
    assert [stores._seconds(i) for i in infos] == [at.timestamp(), 5.0, at.timestamp(), 0.0, 2.5]
