"""Results, tables, figures and messages at their edges: the first and the last, none, the same twice, another's."""

from __future__ import annotations

import io
import json
import math
import os
import signal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Invoke

from smrlab import (
    Trace,
    errors,
    files,
    outdir,
    payload,
    results,
    tables,
    targets,
    text,
)
from smrlab.cli import console, finish, options
from smrlab.errors import InputError
from smrlab.papers.grid import find
from smrlab.plots import figures
from smrlab.results import Result, Results


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
    # Saved again elsewhere, under other numbers or alone, they bring their tables along; in place they stay.
    again = results.load_results(Results(back).save(tmp_path / "again"))
    assert [(r.name, r.iops, r.requests()["n"].to_pylist()) for r in again] == [
        ("a", 0, [0]),
        ("b", 1, [1]),
        ("a", 2, [2]),
    ]
    (one,) = results.load_results(back[1].save(tmp_path / "one"))
    assert (one.name, one.requests()["n"].to_pylist(), one.save(tmp_path / "one")) == ("b", [1], tmp_path / "one")
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == ["requests.parquet", "result.json"]
    assert {"iops", "requests", "doc"} <= set(dir(one))
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


def test_who_says_yes_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anybody of a simulated drive; where nobody can be asked it is refused."""
    for stdin in (io.StringIO(""), None):
        monkeypatch.setattr("sys.stdin", stdin)
        targets.confirm("d", "/dev/d", yes=True)
        targets.confirm("sim:tiny", "sim:tiny", yes=False)
        with pytest.raises(InputError, match="--destroy loses all data on d: add --yes"):
            targets.confirm("d", "/dev/d", yes=False)


def test_a_load_that_all_sustain_is_that_of_the_slowest(capsys: pytest.CaptureFixture[str]) -> None:
    late: list[tuple[str, dict[str, Any]]] = [
        (str(n), {"offered_load": n, "overload": {"suggested_scale_time": n}}) for n in (2, 7, 3)
    ]
    for runs in (late, late[::-1]):
        finish.warn_overload(runs)
        assert "at a load that all sustain: --scale-time 7, or" in capsys.readouterr().err


def test_what_is_ignored_does_not_stop_a_measurement() -> None:
    """As under nohup; everything else does, and all is as before in the end."""
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        before = [signal.getsignal(n) for n in targets.STOPPING]
        with targets.stoppable():
            during = [signal.getsignal(n) for n in targets.STOPPING]
        assert [a == b for a, b in zip(before, during, strict=True)] == [False, False, True]
        assert [signal.getsignal(n) for n in targets.STOPPING] == before
    finally:
        signal.signal(signal.SIGHUP, old)


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
    for name, wrong in (("time_s", math.nan), ("time_s", 1e12), ("device", 2**40), ("op", 2**40)):
        with pytest.raises(InputError, match=f"column '{name}' of the table: "):
            tables.stored({**rows, name: [0, wrong]}, str(path))
    twice = pa.table([[0], ["r"], [0], [1], [2]], names=["time_s", "op", "lba", "blocks", "lba"])
    with pytest.raises(InputError, match="the table has several columns 'lba'"):
        tables.stored(twice, str(path))


def test_names_that_are_no_text_are_refused(smrlab: Invoke, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"b\xff.csv")
    odd.write_text("time,op,lba,blocks\n")
    for given, said in (
        (odd, "b\\xff.csv is not UTF-8: rename the file, or name it by a link"),
        (tmp_path, "b\ufffd.csv: the name is not UTF-8: rename the file"),
    ):
        ended = smrlab("trace", "info", given)
        assert (ended.status, ended.err) == (2, f"smrlab: {tmp_path}/{said}\n")


def test_a_text_of_the_longest_length_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST", 4)
    (tmp_path / "text").write_text("four")
    assert files.read_text(tmp_path / "text") == "four"
    (tmp_path / "text").write_text("fives")
    with pytest.raises(OSError, match="longer than"):
        files.read_text(tmp_path / "text")
