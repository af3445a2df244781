"""What commands say in one line, and what they decide on the way: with stand-ins for devices, clocks and stores."""

from __future__ import annotations

import itertools
import json
import math
import shlex
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Invoke
from drawn import curves, named

from smrlab import InputError, __version__, cli, mounts, outdir, stores, tables
from smrlab.cli import probe, validate
from smrlab.devices import Device
from smrlab.plots import style
from smrlab.sweeps import task
from smrlab.sweeps.inputs import Columns
from smrlab.sweeps.samples import sampled
from smrlab.sweeps.store import Store
from smrlab.work import Job


def test_the_version_is_told(smrlab: Invoke) -> None:
    ended = smrlab("--version")
    assert (ended.status, ended.out.startswith(f"smrlab {__version__} ("), ended.err) == (0, True, "")


@pytest.fixture
def array(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a served array of four disks is asked for, and says."""
    states: dict[str, Any] = {"losses": 1, "states": ["whole"] * 4, "asked": []}

    def disks() -> list[dict[str, Any]]:
        return [{"disk": i, "state": state} for i, state in enumerate(states["states"])]

    def ask(_: Device, what: str, **more: Any) -> Any:
        states["asked"].append((what, *more.values()))
        match what:
            case "fail":
                states["states"][more["disk"]] = "dead"
            case "replace":
                states["states"][more["disk"]] = "rebuilding"
                return disks()
            case "info":
                found = disks()
                if states.get("ends"):
                    states["states"] = [states["ends"] if s == "rebuilding" else s for s in states["states"]]
                return {"engine": {"disks": found, "losses": states["losses"]}}
        return None

    monkeypatch.setattr(Device, "named", classmethod(lambda _, name: Device(Path(name))))
    monkeypatch.setattr(Device, "ask", ask)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return states


def test_a_dead_disk_is_told_with_what_to_do(smrlab: Invoke, array: dict[str, Any]) -> None:
    """The array stands one loss: of the second what was on them may be gone."""
    first, second = (smrlab("device", "fail", "d", "--disk", n) for n in ("2", "0"))
    assert "disk 2 of d is dead; a fresh one: smrlab device replace d --disk 2" in " ".join(first.err.split())
    said = " ".join(second.err.split())
    assert "disk 0 of d is dead. The array stands the loss of 1 for certain, and not whole are now 0, 2:" in said
    assert array["asked"] == [("fail", 2), ("info",), ("fail", 0), ("info",)]


def test_a_disk_is_replaced_and_waited_for(smrlab: Invoke, array: dict[str, Any]) -> None:
    at_once = smrlab("device", "replace", "d", "--disk", "1")
    assert "disk 1 of d is being rebuilt: smrlab device info d shows how far it is" in " ".join(at_once.err.split())
    assert array["asked"] == [("replace", 1)]
    array["ends"] = "whole"
    waited = smrlab("device", "replace", "d", "--disk", "1", "--wait")
    assert (waited.status, array["asked"][2:]) == (0, [("info",), ("info",)])
    array["ends"] = "dead"
    lost = smrlab("device", "replace", "d", "--disk", "1", "--wait")
    assert (lost.status, "disk 1 of d is dead: smrlab device events d" in " ".join(lost.err.split())) == (2, True)


def test_a_mount_of_a_server_that_is_gone_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[Path] = []
    monkeypatch.setattr(mounts, "clear", cleared.append)
    monkeypatch.setattr(Device, "running", lambda _: False)
    for is_mount in (True, False):
        monkeypatch.setattr(mounts, "is_mount", lambda _, is_mount=is_mount: is_mount)
        if is_mount:
            Device(tmp_path / "d").unmount(tmp_path)
        else:
            with pytest.raises(InputError, match="is not a mount of d"):
                Device(tmp_path / "d").unmount(tmp_path)
    assert cleared == [tmp_path.resolve()]


def test_a_store_is_deleted_with_the_stores_in_it_and_nothing_else(tmp_path: Path) -> None:
    """Disks of an array and what has a header of ours, but no other folder, and not what a link leads to."""
    store, other = tmp_path / "store", tmp_path / "other"
    for folder in (store, store / "disk.0", store / "ssd", store / "own", store / "notes", store / "bad", other):
        folder.mkdir()
        (folder / "data.0").write_bytes(b"1")
    (store / "own" / "header").write_bytes(b"smrlab-store 1\n")
    (store / "notes" / "header").write_bytes(b"something")
    (store / "disk.1").symlink_to(other)
    (store / "mine.txt").write_text("kept")
    (store / "log.7").mkdir()
    stores.delete_store(store)
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert left == [
        "other", "other/data.0", "store", "store/bad", "store/bad/data.0", "store/disk.1", "store/log.7",
        "store/mine.txt", "store/notes", "store/notes/data.0", "store/notes/header",
    ]  # fmt: skip


def test_results_by_url_are_those_of_another_experiment_too() -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/told/result.json", b'{"schema": 1}')
    assert outdir._document("memory://told") == b'{"schema": 1}'
    assert outdir._document("memory://nothing") == b""


def test_a_job_is_named_with_its_prefill_while_it_is_at_it() -> None:
    assert [Job("a").title, Job("a", prefills=True).title, Job("a", done=True, prefills=True).title] == [
        "a", "a (prefill)", "a"
    ]  # fmt: skip


def test_a_run_tells_how_long_it_took_and_how_long_its_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walls, cpus = iter([10.0, 13.0]), iter([1.0, 1.5])
    clock: Any = SimpleNamespace(perf_counter=lambda: next(walls), thread_time=lambda: next(cpus))
    monkeypatch.setattr(task, "time", clock)
    monkeypatch.setattr(task.Task, "_run", lambda *_: {"iops": 1.0})
    control: Any = None
    told = task.Task("a", "t", {}, Store(tmp_path), "me", asker="x")(control)
    assert (told.seconds, told.cpu_s, told.asker, told.document) == (3.0, 0.5, "x", {"iops": 1.0})


def test_what_is_drawn_of_a_text_is_a_text_and_of_numbers_numbers() -> None:
    def of(low: Any, high: Any) -> set[type]:
        rows = sampled({"points": 4, "a": {"from": low, "to": high}}, "x")
        return {type(row["a"]) for row in rows}

    assert [of("0.5", "0.75"), of("1%", "2%"), of(1, 9), of(0.5, 0.75)] == [{str}, {str}, {int}, {float}]
    (row,) = sampled({"points": 1, "a": {"from": "4MiB", "to": "4MiB", "scale": "log"}}, "x")
    assert row["a"] == "4MiB"
    assert math.isclose(sampled({"points": 1, "a": {"from": 2.0, "to": 2.0}}, "x")[0]["a"], 2.0)


def test_a_table_without_lengths_is_read_by_its_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    columns = {"arrival_ns": [0], "op": ["r"], "offset": [512 * 7], "size": [1024]}
    for more in ({}, {"lba": [3]}, {"blocks": [9]}):
        tables.stored({**columns, **more}, path)
        row = pq.read_table(path).to_pylist()[0]
        assert (row["lba"], row["blocks"]) == (7, 2)
    tables.stored({**columns, "lba": [3], "blocks": [9]}, path)
    row = pq.read_table(path).to_pylist()[0]
    assert (row["lba"], row["blocks"]) == (3, 9)
    with pytest.raises(InputError, match="no column 'offset'"):
        tables.stored(pa.table({"arrival_ns": [0], "op": ["r"], "lba": [1]}), path)


def test_a_probe_that_was_stopped_says_what_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "probe.json"
    assert probe._where(kept, "sim:tiny").startswith("nothing is kept of a simulated drive")
    assert probe._where(None, "/dev/sdz") == "nothing is kept without --out"
    assert probe._where(kept, "/dev/sdz") == "nothing was found out yet"
    kept.write_text("{}")
    assert probe._where(kept, "/dev/sdz") == f"what was found out is in {kept}; the same command goes on"


def test_what_was_validated_is_drawn_in_milliseconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are of a direction, a measured and a simulated time in ns."""
    saved: list[Any] = []
    monkeypatch.setattr(style, "save_svg", lambda figure, path: saved.append((path.name, figure)))
    validate._draw([(False, 4_000_000, 5_000_000), (True, 1_000_000, 9_000_000)], tmp_path)
    (first, both), (second, apart) = saved
    assert (first, second) == ("distribution.svg", "differences.svg")
    (axes,) = both.axes
    assert curves(axes) == [([1, 4], [0.25, 0.75]), ([5, 9], [0.25, 0.75])]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["measured", "simulated"]
    assert (axes.get_xlabel(), axes.get_ylabel(), named(both)) == ("service time (ms)", "share of requests", [])
    (axes,) = apart.axes
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == [1, 8]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("request", "simulated less measured (ms)")
    assert [validate._cell(v) for v in (None, 0.123456, 7, "x")] == ["", "0.1235", "7", "x"]


def test_events_of_a_device_are_lines(smrlab: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that is served what it says, of one that died what was written down, with a word on that."""
    events = [
        {"time_s": 3723, "kind": "destroyed-read", "block": 0, "text": "a [read]"},
        {"time_s": 86399, "kind": "cut", "block": None, "text": "x" * 200},
    ]
    lines = f"01:02:03 destroyed-read block 0: a [read]\n23:59:59 cut: {'x' * 200}\n"
    state = {"runs": True}
    monkeypatch.setattr("time.localtime", time.gmtime)
    monkeypatch.setattr(Device, "named", classmethod(lambda _, name: Device(Path(name))))
    monkeypatch.setattr(Device, "running", lambda _: state["runs"])
    monkeypatch.setattr(Device, "died", lambda _: not state["runs"])
    death = {"time_s": 0, "kind": "died", "block": None, "text": "the server ended"}
    monkeypatch.setattr(Device, "death", lambda _: None if state["runs"] else death)
    monkeypatch.setattr(Device, "ask", lambda _, what: events if what == "events" else None)
    monkeypatch.setattr(Device, "last_events", lambda _: events[1:])
    ended = smrlab("device", "events", "d")
    assert (ended.status, ended.out, ended.err) == (0, lines, "")
    state["runs"] = False
    ended = smrlab("device", "events", "d")
    assert (ended.status, ended.out) == (0, lines.splitlines(keepends=True)[1] + "00:00:00 died: the server ended\n")
    assert ended.err == "d died, restart with: smrlab device start d; these are its last events\n"
    assert json.loads(smrlab("device", "events", "d", "--json").out)["events"] == [events[1], death]


def test_the_demo_shows_the_command_that_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What is run is what is shown, and takes the place of what was there."""
    from smrlab.cli import demo

    ran: list[list[str]] = []

    def build(words: list[str]) -> Any:
        assert words[0] == "compare"
        return lambda all_words, standalone_mode: ran.append([*all_words, str(standalone_mode)])

    monkeypatch.setattr(cli, "build", build)
    monkeypatch.chdir(tmp_path)
    demo.demo(Path("some where"))
    (words,) = ran
    shown = shlex.split(capsys.readouterr().out)
    assert (shown[:3], words) == (["$", "smrlab", "compare"], [*shown[2:], "--force", "False"])
    options = list(itertools.pairwise(shown))
    assert ("--out", "some where") in options
    assert [value for name, value in options if name == "--layer"] == list(demo.LAYERS)
    (trace,) = [value for name, value in options if name == "--trace"]
    assert Path(trace).samefile(demo.trace())
    assert all(pair in options for pair in zip(demo.HOW[::2], demo.HOW[1::2], strict=True))


def test_a_figure_of_a_sweep_needs_an_axis(smrlab: Invoke, tmp_path: Path) -> None:
    """One without the other is refused before anything runs, even before a file is read."""
    spec = tmp_path / "s.toml"
    spec.write_text(
        '[base]\ndrive = "tiny"\ntrace = ["synth:uniform,requests=20"]\nlayer = "cmr"\n'
        '[grid]\nstall = ["100ms", "500ms"]\n'
    )
    refused = smrlab("sweep", "run", spec, "--out", tmp_path / "r", "--plot", "response_mean_ms")
    assert (refused.status, refused.out, (tmp_path / "r").exists()) == (2, "", False)
    assert "--plot needs --against SETTING: what is on the x axis" in refused.err
    for words in (["--against", "stall"], ["--plot", "response_mean_ms", "--against", "stall"], []):
        assert "--out DIR or URL is missing" in smrlab("sweep", "run", spec, *words).err


def test_who_runs_on_a_cluster_is_named_after_its_scheduler() -> None:
    """Two schedulers never take each other's runs for their own."""
    pytest.importorskip("distributed")
    from smrlab.executors.cluster import Cluster

    def owner(scheduler: str) -> str:
        client = SimpleNamespace(scheduler_info=lambda **_: {"id": scheduler}, run=lambda *_, **__: {})
        return Cluster(client).owner

    assert [owner(name) for name in ("Scheduler-1", "Scheduler-2")] == ["dask-Scheduler-1", "dask-Scheduler-2"]


def test_files_of_a_recording_are_copied_beside_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the order of their names, each with its bytes, and a pattern that names all of them in the trace's place."""
    monkeypatch.setenv("SMRLAB_INPUTS", str(tmp_path))
    there = fsspec.filesystem("memory")
    texts = {"b.spc": b"0,8,512,w,0.5\n" * 3, "a.spc": b"0,0,512,w,0.25\n"}
    for name, text in texts.items():
        there.pipe_file(f"/recording/{name}", text)
    for source, names, pattern in (
        ("*.spc", ["a.spc", "b.spc"], "[0-9][0-9][0-9][0-9]-*"),
        ("b.spc", ["b.spc"], "0000-b.spc"),
    ):
        columns = Columns(f"memory://recording/{source}:spc", "stamp", alone=False)
        made = columns.here()
        copies = {f"{i:04}-{name}": texts[name] for i, name in enumerate(names)}
        found = {p.name: p.read_bytes() for p in made.place.iterdir() if p.name != "note.json"}
        assert found == copies
        assert columns.instead(made) == f"{made.place}/{pattern}:spc"
        assert sorted(p.name for p in made.place.glob(pattern)) == sorted(copies)
        assert made.bytes == made.note["moved"] == sum(map(len, copies.values()))
        assert len(made.note["digests"]) == len(set(made.note["digests"])) == len(names)
