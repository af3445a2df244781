"""Traces as users have them: standard input, several files, tables in memory, cut and filtered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from commands import Invoke

import smrlab as lab

TABLE = {"arrival_ns": [3000, 0, 5000], "op": ["write", "read", "W"], "lba": [8, 0, 16], "blocks": [8, 8, 16]}
SPC = "".join(f"0,{i * 8},4096,{'w' if i % 2 else 'r'},{i * 0.001:.6f}\n" for i in range(200))


class Other:
    """A table of another library: all that it has of Arrow is the stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def piped() -> Iterator[Callable[[str], None]]:
    """Gives the engine a standard input: the descriptor, not Python's object."""
    saved = os.dup(0)

    def give(text: str) -> None:
        read, write = os.pipe()
        with os.fdopen(write, "w") as pipe:
            pipe.write(text)
        os.dup2(read, 0)
        os.close(read)

    yield give
    os.dup2(saved, 0)
    os.close(saved)


def test_compare_reads_standard_input_once_for_all_runs(
    smrlab: Invoke, piped: Callable[[str], None], tmp_path: Path
) -> None:
    path = tmp_path / "t.spc"
    path.write_text(SPC)
    layers = ("--drive", "modern-7200", "--layer", "cmr", "--layer", "rmw", "--json")
    from_file = json.loads(smrlab("compare", "--trace", f"{path}:spc", *layers).out)
    piped(SPC)
    from_pipe = json.loads(smrlab("compare", "--trace", "-:spc", *layers).out)
    for ours, theirs in zip(from_pipe["runs"], from_file["runs"], strict=True):
        assert ours["host"] == theirs["host"]
        assert ours["host"]["reads"] + ours["host"]["writes"] == 200
        assert ours["provenance"]["trace_digest"] == theirs["provenance"]["trace_digest"]
        assert ours["spec"]["trace"] == ["-:spc"]


def test_faults_are_told_of_what_was_given_not_of_where_it_was_stored(
    smrlab: Invoke, piped: Callable[[str], None]
) -> None:
    piped("time_s,op,lba,blocks\n0,zap,1,8\n")
    layers = ("--drive", "tiny", "--layer", "cmr", "--layer", "rmw")
    assert smrlab("compare", "--trace", "-:csv", *layers).err.startswith("smrlab: -, line 2: op 'zap'")
    empty = pa.table({"time_s": [0.0], "op": ["w"], "lba": [0], "blocks": [0]})
    trace = lab.Trace.from_table(empty)
    for told in (trace.info, trace.table, lambda: lab.run(trace), lambda: lab.compare(empty, layers=["cmr"])):
        with pytest.raises(lab.InputError, match=r"^table of 1 requests, [0-9a-f]{8}: near row 1: a"):
            told()


def test_a_sweep_refuses_standard_input(smrlab: Invoke, tmp_path: Path) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text('seeds = 2\n[base]\ntrace = "-"\ndrive = "modern-7200"\nlayer = "cmr"\n')
    ended = smrlab("sweep", spec, "--out", tmp_path / "out")
    assert ended.status == 2
    assert "trace convert -" in ended.err


def test_info_takes_a_format_for_standard_input_and_bad_lines(
    smrlab: Invoke, piped: Callable[[str], None], tmp_path: Path
) -> None:
    piped(SPC)
    assert json.loads(smrlab("trace", "info", "-:spc", "--json").out)["requests"] == 200
    path = tmp_path / "bad.spc"
    path.write_text(SPC + "bad\n")
    assert smrlab("trace", "info", path).status == 2
    assert json.loads(smrlab("trace", "info", path, "--skip-bad", "1", "--json").out)["skipped"] == 1
    assert (
        json.loads(smrlab("trace", "info", path, "--skip-bad", "1", "--limit", "0.1k", "--json").out)["requests"] == 100
    )


def test_several_files_and_patterns_are_one_trace(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.spc").write_text(SPC)
    assert lab.Trace.open(tmp_path / "a.spc", tmp_path / "b.spc").info()["requests"] == 400
    assert lab.Trace.open(tmp_path, format="spc").info()["requests"] == 400
    assert lab.Trace.open(tmp_path / "*.spc").info()["requests"] == 400
    (tmp_path / "a.spc").write_text("bad\n" + SPC)
    assert lab.Trace.open(tmp_path / "a.spc", format="spc", skip_bad=1).info()["requests"] == 200
    with pytest.raises(lab.InputError, match="skip_bad"):
        lab.Trace.open(tmp_path / "a.spc", skipbad=1)


def test_parts_of_a_trace_by_time_and_by_what_requests_are(tmp_path: Path) -> None:
    path = tmp_path / "t.spc"
    path.write_text(SPC)
    trace = lab.Trace.open(path)
    part = trace.between("50ms", "60ms")
    assert part.table().column("arrival_ns").to_pylist() == [i * 1_000_000 for i in range(10)]
    writes = part.where(op="write", lba="440blk..")
    assert writes.table().column("lba").to_pylist() == [i * 8 for i in (55, 57, 59)]
    assert part.info()["requests"] == 10
    with pytest.raises(lab.InputError, match=r"between\(\) comes before head\(\)"):
        trace.head("1k").between("1s")
    run = lab.run(writes, drive="modern-7200", layer="cmr")
    assert (run.host.writes, run.host.reads) == (3, 0)


def test_traces_follow_each_other() -> None:
    burst = lab.Trace.synth("uniform", requests=10, span="1GB", interarrival="1ms")
    both = lab.Trace.chain(burst, burst, gap="10s").table().column("arrival_ns").to_pylist()
    assert both[10] - both[9] == 10_000_000_000
    with pytest.raises(lab.InputError, match="save"):
        lab.Trace.chain(burst.head(3), burst)


@pytest.mark.parametrize("kind", ["arrow", "other", "stream", "bytes", "numbers"])
def test_tables_in_memory_are_traces(kind: str) -> None:
    table = pa.table(TABLE)
    data = {
        "arrow": table,
        "other": Other(table),
        "stream": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "bytes": pa.table(
            {"time_s": [3e-6, 0, 5e-6], "op": ["w", "r", "W"], "offset": [4196, 0, 8192], "size": [3996, 4096, 8192]}
        ),
        "numbers": table.set_column(1, "op", pa.array([1, 0, 1], pa.int8())),
    }[kind]
    trace = lab.Trace.from_table(data)
    rows = trace.table()
    assert rows.column("arrival_ns").to_pylist() == [0, 3000, 5000]
    assert rows.column("op").to_pylist() == [0, 1, 1]
    assert rows.column("lba").to_pylist() == [0, 8, 16]
    assert rows.column("blocks").to_pylist() == [8, 8, 16]
    result = lab.run(trace, drive="modern-7200", layer="cmr")
    assert (result.host.writes, result.host.blocks_written) == (2, 24)
    (label,) = result.doc["spec"]["trace"]
    assert label.startswith("table of 3 requests, ")


def test_runs_take_tables_as_they_are() -> None:
    table = pa.table(TABLE)
    results = lab.compare(table, drive="modern-7200", layers=["cmr", "rmw"])
    assert [r.host.writes for r in results] == [2, 2]
    with pytest.raises(lab.InputError, match="no column 'op'"):
        lab.run(table.drop_columns(["op"]), drive="modern-7200", layer="cmr")
    with pytest.raises(lab.InputError, match="'erase'"):
        lab.run(table.set_column(1, "op", pa.array(["erase", "r", "r"])), drive="modern-7200", layer="cmr")


def test_info_prints_a_summary() -> None:
    info = lab.Trace.synth("uniform", requests="1k", span="1GB").info()
    assert info["requests"] == 1000
    assert len(repr(info).splitlines()) < 40
    assert "requests" in repr(info)
    assert "<td>1,000</td>" in info._repr_html_()


def test_a_trace_says_what_it_is_and_what_is_done_to_it() -> None:
    table = lab.Trace.from_table(pa.table(TABLE)).between("1us", "1s").where(op="write", size="..<4KiB").head(2)
    assert repr(table).startswith("Trace(source: table of 3 requests, ")
    assert "/tmp" not in repr(table)
    assert repr(table).endswith("between: from 1us until 1s, where: op=write,size=..<4KiB, head: 2)")
    shown = table.scale_time(2.5)._repr_html_()
    assert shown.count("<tr>") == 5
    assert "<td>op=write,size=..&lt;4KiB</td>" in shown
    assert "<th>scale_time</th><td>2.5</td>" in shown
    assert repr(lab.Trace.synth("uniform", requests="10k").wrap(800)) == (
        "Trace(source: synth:uniform,requests=10k, wrap: 800)"
    )
    # A step with the number 0 was asked for, too.
    none = lab.Trace.open("synth:uniform", skip_bad=0).head(0)
    assert repr(none) == "Trace(source: synth:uniform, skip_bad: 0, head: 0)"


def test_the_format_of_an_object_is_said_as_that_of_a_file_is(tmp_path: Path) -> None:
    text = "0,0,4096,w,0.1\n0,8,4096,r,0.2\n"
    (tmp_path / "a").write_text(text)
    fsspec.filesystem("memory").pipe_file("/format-of/a", text.encode())
    file, thing = (lab.Trace.open(place, format="spc") for place in (tmp_path / "a", "memory://format-of/a"))
    assert thing.table() == file.table()
    assert thing.table().num_rows == 2
    with pytest.raises(lab.InputError, match="none: there is no such file"):
        lab.Trace.open("memory://format-of/none", format="spc").info()


def test_compared_runs_are_called_by_their_labels(smrlab: Invoke, tmp_path: Path) -> None:
    few, two = "synth:uniform,requests=50", ["cmr", "rmw"]
    both = lab.compare(few, drive="tiny", layers=two, labels=["as sold", "in place"])
    assert [line.split("  ")[0] for line in repr(both).splitlines()[2:]] == ["as sold", "in place"]
    with pytest.raises(lab.InputError, match="1 label for 2 layers"):
        lab.compare(few, drive="tiny", layers=two, labels=["one"])
    given = ("--trace", few, "--drive", "tiny", "--layer", "cmr", "--layer", "cmr")
    done = smrlab(
        "compare", *given, "--label", "a b", "--label", "a b", "--out", tmp_path / "out", "--no-svg", "--json"
    )
    assert [r["name"] for r in done.json()["runs"]] == ["a b", "a b #2"]
    assert [r["name"] for r in json.loads((tmp_path / "out" / "result.json").read_text())["runs"]] == ["a b", "a b #2"]
    assert "a b #2" in (tmp_path / "out" / "report.html").read_text()


def test_steps_asked_for_twice_add_up() -> None:
    trace = lab.Trace.synth("uniform", span="1GB", requests=10)
    assert trace.head(7).head("9").fields["limit"] == trace.head(9).head(7).fields["limit"] == 7
    assert trace.scale_time(2).scale_time(0.25).fields["scale_time"] == 0.5


def test_steps_that_the_engine_does_earlier_are_refused_later() -> None:
    trace = lab.Trace.synth("uniform", span="1GB", requests=10)
    refusals: list[tuple[lab.Trace, Callable[[lab.Trace], lab.Trace], str]] = [
        (trace.head(5), lambda t: t.where(op="write"), "where() comes before head()"),
        (trace.wrap(100), lambda t: t.where(op="write"), "where() comes before wrap()"),
        (trace.head(5), lambda t: t.between("1s"), "between() comes before head()"),
        (trace.scale_time(2), lambda t: t.between("1s"), "between() comes before scale_time()"),
        (trace.between("1s"), lambda t: t.between("2s"), "between() comes before between()"),
    ]
    for done, step, later in refusals:
        with pytest.raises(lab.InputError) as refused:
            step(done)
        assert later in str(refused.value)


def test_all_that_is_wrong_with_the_steps_is_said_at_once() -> None:
    trace = lab.Trace.synth("uniform", span="1GB", requests=10)
    with pytest.raises(lab.InputError) as refused:
        trace.between("3x").where(op="frob").head(0).info()
    said = [line.split(":")[0] for line in str(refused.value).splitlines()]
    assert said == ["limit", "from", "filter"]


def test_the_grid_of_a_trace_is_told_without_its_empty_cells(smrlab: Invoke, tmp_path: Path) -> None:
    """A line each would be a megabyte."""
    path = tmp_path / "t.csv"
    path.write_text("0,W,0,8\n3,R,0,8\n3,R,16,8\n")
    name = f"{path}:csv,columns=time:ms;op;lba;size"
    made = smrlab("trace", "info", name, "--json").out
    grid = json.loads(made)["grid"]
    whole = lab.Trace(name).info()["grid"]
    assert (grid["rows"] * grid["columns"], grid["column_ns"]) == (len(whole["cells"]), whole["column_ns"])
    # Blocks 0 and 16 lie in the first row and the third; 3 ms are three columns on.
    places = [(c["row"], c["column"], c["reads"], c["writes"]) for c in grid["cells"]]
    assert places == [(0, 0, 0, 1), (0, 2, 1, 0), (2, 2, 1, 0)]
    filled = {(r * 256 + c): {"reads": reads, "writes": writes} for r, c, reads, writes in places}
    assert {i: c for i, c in enumerate(whole["cells"]) if any(c.values())} == filled
    assert len(made) < 4000
