"""What is at the edge of what the package decides: the first and the last, none, the same twice, another's."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from smrlab import (
    Trace,
    _core,
    devicemap,
    devices,
    errors,
    faults,
    listening,
    mounts,
    outdir,
    payload,
    recording,
    results,
    stores,
    sysfs,
    tables,
    targets,
    text,
)
from smrlab.cli import console, finish, options
from smrlab.devices import Device
from smrlab.errors import InputError
from smrlab.executors import Failed, Piece
from smrlab.executors.local import LocalPool
from smrlab.executors.memory import Room
from smrlab.papers import claims, page, record
from smrlab.papers.grid import find
from smrlab.papers.reproduce import NOT_ASKED, Reproduction
from smrlab.plots import figures
from smrlab.results import Result, Results
from smrlab.sweeps import identity, plan
from smrlab.sweeps.grid import Point
from smrlab.sweeps.store import Store
from smrlab.sweeps.table import Table


def stored(**columns: list[int]) -> bytes:
    """A table as a run has it."""
    made = io.BytesIO()
    pq.write_table(pa.table(cast("Any", columns)), made)
    return made.getvalue()


def test_things_are_counted_as_they_are_spoken_of() -> None:
    """Of one thing alone the noun has no s."""
    assert [text.counted(n, "track") for n in (0, 1, 2, 2000)] == ["0 tracks", "1 track", "2 tracks", "2,000 tracks"]


def test_results_come_back_as_they_were_saved(tmp_path: Path) -> None:
    """Of each run its name, figures and tables, of two with one name, too; by their numbers where some are missing."""
    runs = [Result(name, {"schema": 1, "iops": i}, None, {"requests": stored(n=[i])}) for i, name in enumerate("aba")]
    for numbers, folders in ((None, ["01-a", "02-b", "03-a"]), ((2, 4, 7), ["02-a", "04-b", "07-a"])):
        at = Results(runs).save(tmp_path / str(numbers), numbers)
        assert sorted(p.name for p in (at / "runs").iterdir()) == folders
        back = Results(results.load_results(at))
        assert [(r.name, r.iops, r.requests()["n"].to_pylist()) for r in back] == [
            ("a", 0, [0]),
            ("b", 1, [1]),
            ("a", 2, [2]),
        ]
        assert back["a"].iops == 0
        with pytest.raises(KeyError, match="no run 'c'; there are: a, b, a"):
            back["c"]
    (tmp_path / "result.json").write_text('{"schema": 2, "runs": []}')
    with pytest.raises(InputError, match=r"result\.json: result schema 2 is not 1; run again"):
        results.load_results(tmp_path)
    assert [results.title_of(spec) for spec in ({"array": "raid5"}, {"stack": ["a", "b"], "layer": "c"}, {})] == [
        "raid5 / cmr", "a / b", "cmr"
    ]  # fmt: skip


def test_a_new_disk_is_a_folder_for_results(tmp_path: Path) -> None:
    """What every ext4 has, and what a run left that was killed, is no other's; anything else is."""
    (tmp_path / "lost+found").mkdir()
    (tmp_path / f"{outdir._PARTIAL}.x.1").mkdir()
    outdir._check(tmp_path)
    (tmp_path / "notes").mkdir()
    with pytest.raises(InputError, match="holds something else than a result"):
        outdir._check(tmp_path)


def test_the_document_is_the_last_that_is_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what earlier runs left is gone before; what is the user's stays."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, names in ((old, ("result.json", "iops.svg", "mine.txt")), (new, ("z.parquet", "result.json", "a.svg"))):
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
    moved: list[str] = []
    rename = Path.rename

    def renamed(self: Path, to: Path) -> Path:
        moved.append(self.name)
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", renamed)
    outdir._replace(new, old)
    assert (moved[-1], sorted(p.name for p in old.iterdir())) == (
        "result.json", ["a.svg", "mine.txt", "result.json", "z.parquet"]
    )  # fmt: skip


def test_each_class_of_error_has_its_status() -> None:
    """As the manual has it: a check 1, input 2, what is missing 3, Ctrl-C 130."""
    of = {errors.CheckFailed: 1, InputError: 2, errors.SmrlabError: 2, errors.MissingError: 3, errors.Interrupted: 130}
    assert {kind: kind("x").exit_status for kind in of} == of


def test_a_device_listens_where_one_can() -> None:
    """Ports from 1 to 65535; secrets are for iSCSI."""
    assert [listening.address(f"tcp:h:{port}") for port in (1, 65535)] == [("h", 1), ("h", 65535)]
    assert [listening.address(at) for at in (None, "unix:/s", "iscsi:[::1]:3260")] == [None] * 3
    for at in ("tcp:h:0", "tcp:h:65536", "tcp:h", "udp:h:1", "unix:", "iscsi:h:0"):
        with pytest.raises(InputError, match=f"--listen {at}: write unix:PATH"):
            listening.address(at)


def test_secrets_are_for_iscsi_and_must_be_there(tmp_path: Path) -> None:
    """Nobody would read them elsewhere."""
    chap = tmp_path / "chap"
    with pytest.raises(InputError, match="no such file; write 'initiator NAME SECRET'"):
        listening.check_chap("iscsi:h:1", chap)
    chap.touch()
    assert listening.check_chap("iscsi:h:1", chap) == str(chap)
    assert listening.check_chap(None, None) is None
    for at in (None, "tcp:h:1"):
        with pytest.raises(InputError, match="--chap is for --listen iscsi:HOST:PORT"):
            listening.check_chap(at, chap)


def test_names_of_devices_are_those_of_folders() -> None:
    """From one character to 64, beginning with a letter or digit."""
    for name in ("a", "0", "a" * 64, "a.b-c_D"):
        devices.check_name(name, "name")
    for name in ("", "a" * 65, ".a", "-a", "_a", "a/b", "a b", "ä"):
        with pytest.raises(InputError, match="is no name: up to 64 letters"):
            devices.check_name(name, "name")


def test_recordings_are_put_aside_one_after_the_other(tmp_path: Path) -> None:
    """None is written over."""
    record_at = tmp_path / "r.parquet"
    for number in (1, 2, 3):
        record_at.write_text(str(number))
        assert recording.put_aside(str(record_at)) == tmp_path / f"r.{number}.parquet"
    assert recording.put_aside(str(record_at)) is None
    assert [(tmp_path / f"r.{n}.parquet").read_text() for n in (1, 2, 3)] == ["1", "2", "3"]


def test_one_block_is_unreadable_where_no_number_is_given() -> None:
    """FIRST+BLOCKS, BLOCKS being 1."""
    asked = [faults.faults(said, None, None, None, False)["unreadable"] for said in ("7", "7+1", "7+3")]
    assert asked == [[7, 8], [7, 8], [7, 10]]


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({"zoned": "host-aware", "zbc_page": "drive-managed"}, "host-aware"),
        ({"zbc_page": "drive-managed"}, "drive-managed"),
        ({"zoned": "host-managed", "identify_zones": "host-aware"}, "host-managed"),
        ({"inquiry_type": 20}, "host-managed"),
        ({"zoned": "none"}, None),
    ],
)
def test_what_a_drive_says_of_its_zones_is_its_kind(found: dict[str, Any], kind: str | None) -> None:
    """Of two words the one that promises the host more."""
    assert sysfs._follows(found).get("kind") == kind


def test_trim_of_a_disk_that_turns_is_a_hint() -> None:
    """Unless it said what it is."""

    def hint(**found: Any) -> bool:
        return "hint" in sysfs._follows(found)

    assert hint(rotational=True, trim=True)
    assert hint(rotational=True, unmap=True)
    assert not any((hint(rotational=True), hint(trim=True), hint(rotational=True, trim=True, solid_state=True)))
    assert not hint(rotational=True, trim=True, zoned="host-aware")


def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A system with these lines in its table of mounts: source and place."""
    (tmp_path / "proc/self").mkdir(parents=True)
    table = "".join(f"1 2 0:3 / {at} rw - fuse {source} rw\n" for source, at in (line.split(" ", 1) for line in lines))
    (tmp_path / "proc/self/mountinfo").write_text(table)
    monkeypatch.setattr(mounts, "Path", lambda at: tmp_path / str(at).lstrip("/"))


def test_a_mount_is_ours_at_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the source's name and the place together; blanks are written as numbers there."""
    mounted(tmp_path, monkeypatch, r"smrlab-a /m/with\040blank", "smrlab-b /m/b", "other /m/c")
    at = {name: mounts.is_mount(Path(f"/m/{name}")) for name in ("with blank", "b", "c", "d", "")}
    assert at == {"with blank": True, "b": True, "c": False, "d": False, "": False}


def test_loop_devices_are_those_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file is gone; a file system on one of their partitions is in use."""
    mounted(tmp_path, monkeypatch, "/dev/loop1p2 /mnt", "/dev/loop12 /other")
    of = {0: "/d/disk\n", 1: "/d/disk (deleted)\n", 2: "/d/disk2\n", 3: "/e/disk\n"}
    for number, name in of.items():
        backing = tmp_path / f"sys/block/loop{number}/loop/backing_file"
        backing.parent.mkdir(parents=True)
        backing.write_text(name)
    assert mounts.loops(Path("/d")) == ["/dev/loop0", "/dev/loop1"]
    with pytest.raises(InputError, match="/dev/loop1p2 is mounted at /mnt: umount /mnt first"):
        mounts.check_unused(Path("/d"))
    mounts.check_unused(Path("/e"))


def test_a_served_drive_tells_its_zones() -> None:
    """How many, its limits, and what kind it is; what does not apply is left out."""
    said = {"model": "host-aware", "zones": [{}, {}, {}], "max_open": 128, "max_active": None}
    assert targets.told("d", "nbd://h", said) == {"zones": {"count": 3, "max_open": 128}, "kind": "host-aware"}


def test_who_says_yes_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anybody of a simulated drive; where nobody can be asked it is refused."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    targets.confirm("d", "/dev/d", yes=True)
    targets.confirm("sim:tiny", "sim:tiny", yes=False)
    with pytest.raises(InputError, match="--destroy loses all data on d: add --yes"):
        targets.confirm("d", "/dev/d", yes=False)


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


def test_a_clone_has_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sockets, events and store are its own, and it records nothing; all else is as it was."""
    monkeypatch.setenv("SMRLAB_STATE", str(tmp_path))
    origin = Device(devices.home() / "a")
    origin.path.mkdir(parents=True)
    (origin.path / "store").mkdir()
    config = {"name": "a", "layer": "rmw", "seed": 7, "control": "c", "events": "e", "record": "/r.parquet"}
    origin._write(config | {"store": {"directory": str(origin.path / "store")}}, {"listen": "tcp:h:1", "tls": {}})
    monkeypatch.setattr(devices, "copy_store", lambda _, to, __: to.mkdir())
    monkeypatch.setattr(Device, "start", lambda _: None)
    made = devices.clone("a", "b")
    at = devices.home() / "b"
    assert made.config() == {
        "name": "b", "layer": "rmw", "seed": 7, "control": str(at / "control.sock"), "record": None,
        "events": str(at / "events.jsonl"), "store": {"directory": str(at / "store")},
    }  # fmt: skip
    assert made.server() == {"listen": None, "tls": {}}
    with pytest.raises(InputError, match="there is a device 'b' already"):
        devices.clone("a", "b")


@pytest.mark.parametrize(("own", "delete", "kept", "deleted"), [(True, 0, 0, 0), (False, 0, 1, 0), (False, 1, 0, 1)])
def test_the_users_store_is_kept(
    own: bool, delete: int, kept: int, deleted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is to go as well; the device's own goes with it, and nothing is said of that."""
    device = Device(tmp_path / "d")
    store = device.path / "store" if own else tmp_path / "mine"
    store.mkdir(parents=True)
    (store / "header").touch()
    device.path.mkdir(exist_ok=True)
    device._write({"store": {"directory": str(store)}}, {"listen": None, "tls": {}})
    gone: list[Path] = []
    monkeypatch.setattr(devices, "delete_store", gone.append)
    assert device.remove(delete_own=bool(delete)) == (store if kept else None)
    assert (gone, device.path.exists()) == ([store] if deleted else [], False)


def test_files_of_a_store_are_known_by_their_names() -> None:
    """And what only looks like one is not."""
    own = ("header", "lock", "spill", "data.0", "log.12", "checkpoint.3", "header.new", "checkpoint.3.new")
    assert all(map(stores.FILES.fullmatch, own))
    assert not any(
        map(stores.FILES.fullmatch, ("data", "data.x", "my.data.0", "header.txt", "log", "spill.1", "lock.new"))
    )


def test_a_verdict_is_worse_than_those_before_it() -> None:
    """Reproduced, partly, not; what was not run is not judged."""
    order = ("reproduced", "partly", "not", "not run")
    worse = {
        (new, old) for new in order for old in order if claims.worse(cast("Any", SimpleNamespace(verdict=new)), old)
    }
    assert worse == {("partly", "reproduced"), ("not", "reproduced"), ("not", "partly")}
    assert not claims.worse(cast("Any", SimpleNamespace(verdict="not")), None)
    four = [1.0, 2.0, 3.0, 4.0]
    assert [claims.percentile(four, share) for share in (0, 0.25, 0.26, 0.5, 0.99, 1)] == [1, 1, 2, 2, 4, 4]


def test_the_record_of_one_scale_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick before full, then those with traces; texts with quotes come back."""
    monkeypatch.setattr(record, "markdown_path", lambda _: tmp_path / "page.md")
    monkeypatch.setattr(record, "markdown", lambda *_: "")
    paper = cast("Any", SimpleNamespace(folder=tmp_path))

    def verdict(ours: str) -> claims.Verdict:
        return claims.Verdict("c1", "s", "p", ours, "t", "partly", 'a "b" \\ c')

    for scale in ("traces-full", "full", "quick"):
        record.record(paper, scale, [verdict(scale)])
    found = record.recorded(paper)
    assert list(found) == ["quick", "full", "traces-full"]
    assert {scale: rows["c1"]["ours"] for scale, rows in found.items()} == {scale: scale for scale in found}
    assert found["full"]["c1"] == {"verdict": "partly", "ours": "full", "why": 'a "b" \\ c'}


def test_a_trace_is_found_however_it_is_packed(tmp_path: Path) -> None:
    """Under its own name first, then unpacked, then packed in another way, then in a folder below."""
    (tmp_path / "below").mkdir()
    for name in ("below/t.csv.gz", "t.csv.zst", "t.csv", "t.csv.gz"):
        (tmp_path / name).touch()
        assert find(tmp_path, "t.csv.gz") == tmp_path / name
    assert find(tmp_path, "other.csv") is None


def test_the_axis_of_time_ends_with_the_longest_run_of_like_length() -> None:
    """A run four times as long as the one in the middle squeezes nobody."""
    assert [figures.shown_end(ends) for ends in ([5.0], [1, 2, 3], [1, 2, 8], [1, 2, 9], [10, 30])] == [5, 3, 8, 2, 30]
    assert [figures.time_unit(s) for s in (0.5, 2.9, 3, 200, 10_800, 300_000)] == [
        (1e-3, "ms"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"), (86400.0, "d")
    ]  # fmt: skip


def test_figures_of_runs_show_their_causes_and_their_requests() -> None:
    """Causes in an order of their own, one behind the other; reads and writes of a cell together."""
    seconds = {"seek": 4.0, "clean": 2.0, "host": 1.0, "other": 8.0, "fill": 0.0}
    runs: Any = [{"name": "a", "doc": {"time_by_cause_s": seconds}}]
    figure = cast("Any", figures.causes(runs))
    (axes,) = figure.axes
    bars = [(c.get_label(), c[0].get_x(), c[0].get_width()) for c in axes.containers]
    assert bars == [("host", 0, 1), ("clean", 1, 2), ("seek", 3, 4), ("other", 7, 8)]
    heat = {
        "cols": 2,
        "rows": 2,
        "t0": 0,
        "t1": 60,
        "lba0": 8,
        "lba1": 24,
        "reads": [1, 0, 2, 0],
        "writes": [4, 0, 0, 8],
    }
    image = cast("Any", figures.heat([{"heat": None}, {"heat": heat}])).axes[0].images[0]
    assert image.get_array().filled(0).tolist() == [[5, 0], [2, 8]]
    assert image.get_extent() == [0, 60, 8, 24]


def test_cells_of_a_medium_are_what_most_concerns_who_looks() -> None:
    """Loss before anything; a guard only where nothing is written; append points in their own row."""
    cells = [[0, 0, 0], [0.5, 0, 0], [0.5, 0.1, 0.4], [0.1, 0, 0.9], [0.5, 0, 0.5], [0, 0, 0], [0.3, 0, 0]]
    band = {"guard": 50, "end": 70, "append": 25}
    assert devicemap.states({"blocks": 70, "cells": cells, "bands": [band]}) == [0, 1, 2, 3, 1, 4, 1]
    rows = {"blocks": 128, "cells": [[0, 0, 0]] * 128, "bands": [{"guard": 127, "end": 128, "append": 66}]}
    assert f'<rect x="{devicemap.LEFT + 2 * devicemap.CELL:.1f}" y="{devicemap.CELL}" width="2"' in devicemap.svg(
        rows, "d"
    )


def test_a_page_of_results_is_found_by_its_document(tmp_path: Path) -> None:
    """What is no JSON, or of no schema, is refused by its place."""
    with pytest.raises(InputError, match="no such file; give a folder that --out"):
        results.load_results(tmp_path)
    for written, said in (
        ("{", "not a readable result"),
        ("[]", "result schema None"),
        (json.dumps({}), "schema None"),
    ):
        (tmp_path / "result.json").write_text(written)
        with pytest.raises(InputError, match=f"{tmp_path}/result.json: .*{said}"):
            results.load_results(tmp_path)


def test_a_condition_is_asked_for_once() -> None:
    """Others hold with it; a second one of the same key would take its place unseen."""
    trace = Trace("a").where(op="write").where(size="..4KiB")
    for more in ({"op": "read"}, {"lba": "1GB..", "size": "8KiB.."}):
        with pytest.raises(InputError, match=r"where\(\) was called with (op|size)= already: save\(\) the trace"):
            trace.where(**more)


def test_what_was_not_given_says_nothing() -> None:
    """A switch that is off and a list without a value are not given; 0 and an empty text are."""
    assert options.given({"a": False, "b": None, "c": [], "from_": 0, "e": "", "f": True}) == {
        "from": 0,
        "e": "",
        "f": True,
    }


def test_the_run_with_most_reads_of_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """From one in a hundred on."""
    told: list[str] = []
    monkeypatch.setattr(console, "note", told.append)
    runs = [("a", {"host": {"reads": 100, "reads_unwritten": n}}) for n in (0, 5, 1)]
    finish.warn_unwritten(runs)
    finish.warn_unwritten([runs[2]])
    assert [note.partition(" of the reads")[0] for note in told] == ["5 %"]


def test_windows_without_a_write_amplify_nothing() -> None:
    """There is no share of nothing; elsewhere it is what the medium wrote for what the host did."""
    times = {"start_s": [0.0, 1.0, 2.0], "end_s": [1.0, 2.0, 3.0]}
    table = pa.table({**times, "write_blocks": [0, 8, 4], "media_blocks_written": [8, 16, 2]})
    series = payload.timeline(table)
    assert series is not None
    assert series["wa"] == [None, 2, 0.5]


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
    for name, held in (("t.csv", "1"), ("copy.csv", "1"), ("other.csv", "2"), ("d.toml", "3"), ("e.toml", "3")):
        (tmp_path / name).write_text(held)

    def of(trace: str, drive: str = "d.toml") -> str:
        spec = {"trace": [f"{tmp_path}/{trace}"], "drive": f"{tmp_path}/{drive}", "layer": "rmw"}
        return identity.address(json.dumps(spec), identity.Digests(Store(tmp_path / "study")))

    assert of("t.csv") == of("copy.csv") == of("t.csv", "e.toml")
    assert len({of("t.csv"), of("other.csv"), of("t.csv:spc"), of("t.csv:disksim"), of("t.csv", "d.toml,zone=1")}) == 5


def test_a_study_takes_as_long_as_its_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where runs are short; three of them at 4 ms each, however many cores there are."""
    monkeypatch.setattr(plan, "_costs", lambda *_: ({"rmw": plan._Cost(0.008, 0.0, 1.0)}, ""))
    points = [Point({"n": n}, {"drive": "tiny", "layer": "rmw", "trace": "synth:uniform"}) for n in range(3)]
    told = plan.plan_of(cast("Any", SimpleNamespace(points=points)))
    assert told["time_s"] == {"1": pytest.approx(0.024), **{n: pytest.approx(0.012) for n in ("8", "64", "512")}}


def test_a_page_leaves_out_claims_that_nobody_asked_for(tmp_path: Path) -> None:
    """What could not be run is there with its reason."""
    verdicts = [
        claims.Verdict(f"claim{n}", "s", "p", "", "t", "not run", why)
        for n, why in enumerate((NOT_ASKED, "the trace x is not there"))
    ]
    paper = SimpleNamespace(id="p", title="T", citation="", setting="", parts=(), claims=[None, None])
    found = Reproduction(cast("Any", paper), "quick", None, {}, verdicts, {})
    text = page.write_page(found, tmp_path).read_text()
    assert ("claim0" in text, "claim1" in text, "the trace x is not there" in text) == (False, True, True)
    assert "<code>smrlab paper run p --quick</code>" in text


def test_a_key_that_does_not_apply_is_told_with_its_neighbours() -> None:
    """And with its place; what Python itself asks for is no key."""
    result = Result("r", {"iops": 1, "response_ms": {"mean": 2.0}, "_own": 3})
    with pytest.raises(AttributeError, match=r"^response_ms has no 'p99' .* it has: mean$"):
        _ = result.response_ms.p99
    with pytest.raises(AttributeError, match=r"^this result has no 'war' .* it has: iops, response_ms, _own$"):
        _ = result.war
    assert not hasattr(result, "_own")
    assert (result["_own"], result.response_ms.mean) == (3, 2.0)


def test_one_number_below_zero_is_refused_with_its_column(tmp_path: Path) -> None:
    """Wherever it stands; seconds become the nearest nanosecond."""
    path = tmp_path / "t.parquet"
    rows: dict[str, Any] = {
        "time_s": [1.9e-9, 2.4e-9],
        "op": ["r", "w"],
        "lba": [0, 1],
        "blocks": [1, 1],
        "stream": [0, 0],
    }
    for name in ("time_s", "lba", "blocks", "stream"):
        with pytest.raises(InputError, match=f"column '{name}' of the table has negative numbers"):
            tables.stored({**rows, name: [5, -1]}, str(path))
    tables.stored(rows, str(path))
    assert pq.read_table(path)["arrival_ns"].to_pylist() == [2, 2]
