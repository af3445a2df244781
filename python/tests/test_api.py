"""The Python side: results as attributes and tables, traces as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import TINY

import smrlab
from smrlab import InputError


def test_results_are_attributes_and_arrow_tables() -> None:
    result = smrlab.run(TINY, drive="modern-7200", layer="rmw")
    assert result.response_ms.p50 <= result.response_ms.p99 <= result.response_ms.max
    timeline = result.timeline()
    assert sum(timeline.column("completions").to_pylist()) == 2000
    assert timeline.schema.field("start_s").type == "double"
    assert sum(result.histogram().column("count").to_pylist()) >= 2000
    with pytest.raises(AttributeError, match=r"it has: .*iops"):
        _ = result.iosp
    with pytest.raises(smrlab.InputError, match="--requests"):
        result.requests()


PARTS = ("seek_ns", "rotation_ns", "transfer_ns", "clean_ns", "other_ns")


@pytest.mark.parametrize(
    "drive", ["modern-7200", "modern-7200,cache=on", "seagate-st5000as0011", "seagate-st8000as0002"]
)
def test_the_parts_of_a_requests_time_are_the_whole(tmp_path: Path, drive: str) -> None:
    layer = "persistent-cache" if "seagate" in drive else "cmr"
    ran = smrlab.run(TINY, drive=drive, layer=layer, requests=True, out=tmp_path)
    rows = ran.requests().to_pylist()
    assert len(rows) == 2000
    for row in rows:
        assert sum(row[part] for part in PARTS) == row["completion_ns"] - row["start_ns"]
        assert row["rotation_ns"] < 60e9 / 5000
    means = {part: sum(row[part] for row in rows) / len(rows) / 1e6 for part in PARTS}
    if drive == "modern-7200":
        # Half a turn of 8.33 ms on average.
        assert means["rotation_ns"] == pytest.approx(25 / 6, rel=0.05)
        assert means["clean_ns"] == 0
    if drive == "modern-7200,cache=on":
        written = [row for row in rows if row["op"] == "write"]
        assert all(row["seek_ns"] + row["rotation_ns"] + row["transfer_ns"] == 0 for row in written), (
            "acknowledged early"
        )


def test_of_an_array_they_add_up_along_the_drives_that_a_request_waited_for(tmp_path: Path) -> None:
    ran = smrlab.run(TINY, drive="modern-7200", array="raid5,disks=3", window="10s", requests=True, out=tmp_path)
    rows = ran.requests().to_pylist()
    assert all(sum(row[part] for part in PARTS) == row["completion_ns"] - row["start_ns"] for row in rows)
    # A small write reads and writes: a turn between the two.
    turns = [row["rotation_ns"] / (25 / 3 * 1e6) for row in rows if row["op"] == "write"]
    assert 1.2 < sum(turns) / len(turns) < 1.8
    each = ran.member_timelines().to_pylist()
    assert {row["disk"] for row in each} == {0, 1, 2}
    written = sum(row["media_blocks_written"] for row in each)
    assert written == sum(row["media_blocks_written"] for row in ran.timeline().to_pylist())


def test_a_trace_is_a_value_that_transformations_leave_alone() -> None:
    trace = smrlab.Trace(TINY)
    short = trace.head(500)
    assert short.info()["requests"] == 500
    assert trace.info()["requests"] == 2000
    slow = short.scale_time(2).table().column("arrival_ns").to_pylist()
    assert slow == [2 * t for t in short.table().column("arrival_ns").to_pylist()]
    small = short.wrap(1000).table()
    ends = zip(small.column("lba").to_pylist(), small.column("blocks").to_pylist(), strict=True)
    assert max(lba + blocks for lba, blocks in ends) <= 1000


def test_a_trace_that_is_not_there_is_refused_when_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(smrlab.InputError, match="the name of a trace: it is empty"):
        smrlab.Trace.open(" ")
    with pytest.raises(smrlab.InputError, match="no such file"):
        smrlab.Trace.open(tmp_path / "nowhere.csv")


def test_compared_runs_are_found_by_name_and_saved_whole(tmp_path: Path) -> None:
    results = smrlab.compare(TINY, drive="modern-7200", layers=["rmw", "rmw", "cmr"], out=tmp_path / "out")
    assert [r.name for r in results] == ["rmw", "rmw #2", "cmr"]
    assert results["rmw"].doc == results["rmw #2"].doc
    again = smrlab.load_results(tmp_path / "out")
    assert [dict(r.doc)["iops"] for r in again] == [r.iops for r in results]
    assert again[2].timeline().equals(results["cmr"].timeline())
    assert results.plot.iops(tmp_path / "iops.svg") is not None
    assert (tmp_path / "iops.svg").read_text().startswith("<?xml")
    # What it is called is what it is.
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        results.plot.iops(tmp_path / f"iops.{ending}")
        assert (tmp_path / f"iops.{ending}").read_bytes().startswith(start)
    for wrong in ("iops.txt", "iops"):
        with pytest.raises(InputError, match=rf"{wrong}: a figure ends in \.svg, \.pdf, \.png"):
            results.plot.iops(tmp_path / wrong)
    with pytest.raises(InputError, match=r"no figure 'iop'; there are: iops, response, "):
        results.plot.draw("iop")


def test_every_fault_of_a_specification_is_told_at_once() -> None:
    with pytest.raises(smrlab.InputError) as raised:
        smrlab.run(TINY, drive="modern-720", layer="rmw", scheduler="stpf", window="5 parsecs")
    assert all(field in str(raised.value) for field in ("drive:", "scheduler:", "window:"))


def test_results_print_as_tables_at_a_prompt_and_in_a_notebook() -> None:
    trace = smrlab.Trace.synth("uniform", requests=500, write="70%", interarrival="20ms", span="1GB")
    one = smrlab.run(trace, drive="modern-7200", layer="rmw", name="<rmw>")
    assert all(words in repr(one) for words in ("<rmw>", "response, worst", "time stalled", "IOPS"))
    shown = one._repr_html_()
    assert "&lt;rmw&gt;" in shown
    assert "<rmw>" not in shown
    assert 'title="share of the run in which at least one stalled request was waiting"' in shown
    both = smrlab.compare(trace, drive="modern-7200", layers=["cmr", "rmw"])
    assert [line.split()[0] for line in repr(both).splitlines()[2:]] == ["cmr", "rmw"]
    assert both._repr_html_().count("<tr>") == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), b"2", [1, float("nan")]])
def test_a_value_that_no_specification_has_is_told_with_its_field(value: object) -> None:
    for go in (smrlab.run, lambda *a, **k: smrlab.compare(*a, layers=["cmr"], **k)):
        with pytest.raises(InputError, match=r"^scale_time: .* is not accepted: a text, a number, true or false$"):
            go(TINY, drive="tiny", scale_time=value)


def test_what_is_no_list_of_layers_and_no_name_of_a_trace_is_understood_or_told() -> None:
    assert len(smrlab.compare(TINY, drive="modern-7200", layers="cmr")) == 1
    for wrong in (None, 3, ["a.csv"], b"a.csv", {"a": 1}):
        with pytest.raises(InputError, match=r"is no name of a trace: .*, several as Trace\.open\(a, b\)"):
            smrlab.Trace.open(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^prefill: 0\.5 is not accepted: a text: put it in quotes$"):
        smrlab.run(TINY, drive="modern-7200", prefill=0.5)


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    result = smrlab.run(TINY, drive="modern-7200", limit=numpy.int64(7), scale_time=numpy.float32(2))
    assert (result.doc["spec"]["limit"], result.doc["spec"]["scale_time"]) == (7, 2)


@pytest.mark.parametrize("jobs", [0, -1, "2", 1.5])
def test_runs_at_a_time_are_a_whole_number(jobs: Any, tmp_path: Path) -> None:
    for go in (
        lambda: smrlab.compare(TINY, drive="modern-7200", layers=["cmr"], jobs=jobs),
        lambda: smrlab.sweep({"base": {"trace": TINY}}, out=tmp_path, jobs=jobs),
    ):
        with pytest.raises(InputError, match=f"jobs: {jobs!r} is not accepted: a whole number from 1 on"):
            go()


def test_arguments_of_the_wrong_type_are_told_by_their_name() -> None:
    for go in (lambda: smrlab.run(TINY, out=5), lambda: smrlab.sweep({"base": {"trace": TINY}}, out=5)):  # type: ignore[arg-type]
        with pytest.raises(InputError, match="out: 5 is no folder"):
            go()
    with pytest.raises(InputError, match=r"layer: a comparison has several: give layers="):
        smrlab.compare(TINY, layers=["cmr"], layer="rmw")
    for wrong in ("2", float("nan"), None):
        with pytest.raises(InputError, match=f"scale_time: {wrong!r} is not accepted: a number"):
            smrlab.Trace(TINY).scale_time(wrong)  # type: ignore[arg-type]
    column = pa.table({"lba": [1]}).column("lba")
    with pytest.raises(InputError, match="the table of requests cannot be read: "):
        smrlab.Trace.from_table(column)
