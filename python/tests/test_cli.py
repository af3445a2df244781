"""The command line: what it prints, what it writes, and how it refuses bad input."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer
from commands import TINY, Invoke

from smrlab.cli import build
from smrlab.cli.options import apply_sets

RUN = ("run", "--trace", TINY, "--drive", "modern-7200")
COMPARE = ("compare", "--trace", TINY, "--drive", "modern-7200", "--layer", "cmr", "--layer", "rmw")


def test_run_prints_one_json_document_with_the_contracts_keys(smrlab: Invoke) -> None:
    ended = smrlab(*RUN, "--layer", "rmw", "--json")
    assert (ended.status, ended.err) == (0, "")
    doc = ended.json()
    assert doc["schema"] == 1
    assert {"spec", "provenance", "host", "media", "war", "response_ms", "iops", "space"} <= set(doc)
    assert doc["host"]["reads"] + doc["host"]["writes"] == 2000
    assert {"mean", "p50", "p90", "p95", "p99", "p999", "max"} <= set(doc["response_ms"])


def test_run_writes_tables_report_and_figures(smrlab: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = smrlab(*RUN, "--layer", "rmw", "--out", out, "--requests", "--media-log")
    assert ended.status == 0, ended.err
    names = {p.name for p in out.iterdir()}
    tables = {f"{t}.parquet" for t in ("timeline", "histogram", "heatmap", "requests", "media")}
    assert {"result.json", "report.html", "iops.svg"} | tables <= names
    assert pq.read_metadata(out / "requests.parquet").num_rows == 2000
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert str(out / "report.html") in ended.err
    again = smrlab(*RUN, "--layer", "rmw", "--out", out, "--no-svg")
    assert again.status == 0, again.err
    assert {p.name for p in out.iterdir()} == {"result.json", "report.html", *tables} - {
        "requests.parquet",
        "media.parquet",
    }


def test_compare_shows_a_row_for_each_layer_on_the_same_requests(smrlab: Invoke, tmp_path: Path) -> None:
    ended = smrlab(*COMPARE, "--out", tmp_path / "out", "--no-svg")
    assert ended.status == 0, ended.err
    assert all(word in ended.out for word in ("cmr", "rmw", "IOPS", "p99", "WAR"))
    runs = json.loads((tmp_path / "out" / "result.json").read_text())["runs"]
    assert [r["name"] for r in runs] == ["cmr", "rmw"]
    assert runs[0]["host"] == runs[1]["host"]
    assert runs[0]["provenance"]["trace_digest"] == runs[1]["provenance"]["trace_digest"]
    assert len(list((tmp_path / "out" / "runs").glob("*/timeline.parquet"))) == 2


def test_compared_layers_of_any_size_take_the_same_requests(smrlab: Invoke) -> None:
    """Addresses go round at the smallest space among them: the drive has 2880 blocks, `rmw` less."""
    trace = "synth:uniform,requests=200,size=1blk,span=4000blk"
    ended = smrlab("compare", "--trace", trace, "--drive", "tiny", "--layer", "cmr", "--layer", "rmw", "--json")
    assert ended.status == 0, ended.err
    assert all(run["host"]["reads"] + run["host"]["writes"] == 200 for run in ended.json()["runs"])


def test_compare_gives_the_same_bits_on_one_and_two_threads(smrlab: Invoke) -> None:
    one, two = (smrlab(*COMPARE, "--jobs", n, "--json") for n in ("1", "2"))
    assert one.out == two.out
    assert one.status == 0


def test_a_spec_file_its_options_and_set_come_together(smrlab: Invoke, tmp_path: Path) -> None:
    spec = tmp_path / "a.toml"
    spec.write_text(f'trace = "{TINY}"\ndrive = "modern-7200"\nlayer = "rmw"\nseed = 5\n')
    ended = smrlab("run", spec, "--limit", "100", "--set", "seed=9", "--json")
    assert ended.status == 0, ended.err
    doc = ended.json()
    assert doc["spec"]["seed"] == 9
    assert doc["host"]["reads"] + doc["host"]["writes"] == 100


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize("option", ["drive", "array"])
def test_of_two_drives_none_is_dropped(smrlab: Invoke, command: str, option: str) -> None:
    ended = smrlab(
        command, "--trace", "synth:uniform,requests=3", f"--{option}", "a", f"--{option}", "b", "--layer", "cmr"
    )
    assert (ended.status, ended.out) == (2, "")
    assert f"--{option}: give one" in ended.err
    assert f"{option} = ['a', 'b'] below [grid]" in ended.err


def test_an_overloaded_drive_is_said_so(smrlab: Invoke) -> None:
    busy = TINY.replace("20ms", "100us")
    ended = smrlab("run", "--trace", busy, "--drive", "modern-7200", "--layer", "rmw")
    assert ended.status == 0
    assert "cannot keep up" in ended.err
    assert "--scale-time" in ended.err


def test_a_lost_array_is_said_so_and_ranks_its_refusals_first(smrlab: Invoke) -> None:
    """What is refused is answered at once: a lost array looks fast."""
    trace = ("--trace", "synth:uniform,requests=200,interarrival=10ms", "--drive", "tiny", "--wrap", "capacity")
    ended = smrlab("run", *trace, "--array", "raid5,disks=3,chunk=4KiB,fail=0@100ms+1@200ms")
    assert "drives 0, 1 were dead" in ended.err
    assert "lost)" in ended.err
    assert "refused requests" in ended.out
    assert "refused" not in smrlab("run", *trace, "--array", "raid5,disks=3,chunk=4KiB,fail=0@100ms").err


def test_a_run_of_which_nothing_is_left_is_refused(smrlab: Invoke) -> None:
    trace = ("--trace", "synth:uniform,requests=20", "--drive", "tiny")
    for options, named in ((("--from", "1h"), "from"), (("--filter", "lba=1TB..,op=write"), "filter")):
        for array in ("single", "mirror"):
            ended = smrlab("run", *trace, *options, "--array", array)
            assert ended.status == 2
            assert f"no request of the trace is left: {named} leaves" in ended.err


def test_a_band_without_a_unit_is_told_what_it_means(smrlab: Invoke) -> None:
    """Tracks in one layer, blocks in another; with a unit, and by default, there is nothing to tell."""
    trace = ("--trace", "synth:uniform,requests=20", "--drive", "tiny")
    ended = smrlab("compare", *trace, "--layer", "rmw,band=4", "--layer", "disk-cache,band=24,cache=10%")
    assert "band=4 of rmw means 4 tracks" in ended.err
    assert "band=24 of disk-cache means 24 blocks" in ended.err
    for layer in ("rmw,band=4tracks", "rmw", "disk-cache,band=24blk,cache=10%"):
        assert "Give a unit" not in smrlab("run", *trace, "--layer", layer).err


def test_closed_arrivals_have_no_overload(smrlab: Invoke) -> None:
    ended = smrlab(*RUN, "--arrivals", "closed,depth=4", "--scheduler", "sptf", "--json")
    assert ended.status == 0, ended.err
    assert "offered_load" not in ended.json()


def test_report_redraws_from_the_result_files_alone(smrlab: Invoke, tmp_path: Path) -> None:
    smrlab(*RUN, "--layer", "cmr", "--out", tmp_path / "out")
    report = tmp_path / "out" / "report.html"
    before = report.read_text()
    report.unlink()
    ended = smrlab("report", tmp_path / "out")
    assert (ended.status, ended.out.strip()) == (0, str(report))
    assert report.read_text() == before


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


EVERY = dict(_commands(typer.main.get_command(build([]))))


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_has_help_that_shows_all_its_options(smrlab: Invoke, path: tuple[str, ...]) -> None:
    ended = smrlab(*path, "--help")
    assert (ended.status, ended.err) == (0, "")
    assert f"smrlab {' '.join(path)}".strip() in " ".join(ended.out.split())
    shown = {o for p in EVERY[path].params if not p.hidden for o in p.opts if o.startswith("--")}
    assert {o for o in shown if o not in ended.out} == set()


def test_an_option_that_commands_share_says_the_same_in_each() -> None:
    said = [next(p.help for p in EVERY[(name,)].params if p.name == "svg") for name in ("run", "compare", "report")]
    assert said == [said[0]] * 3


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("explain", "log"),
        ("explain", "write amplification"),
        ("explain", "he2014"),
        ("trace", "info", "synth:uniform,requests=5,span=1MiB"),
        ("drive", "show", "tiny"),
        ("drive", "check", "tiny"),
        ("device", "list"),
        ("paper", "list"),
    ],
    ids=" ".join,
)
def test_every_json_document_says_its_schema_first(smrlab: Invoke, words: tuple[str, ...]) -> None:
    assert next(iter(smrlab(*words, "--json").json().items())) == ("schema", 1)


def test_tables_say_when_and_how_long_a_drive_stalls(smrlab: Invoke) -> None:
    busy = TINY.replace("20ms", "5ms")
    shown = smrlab("compare", "--trace", busy, "--layer", "cmr", "--layer", "rmw").out
    assert all(head in shown for head in ("worst", "time stalled", "first cleaning"))
    table = smrlab("run", "--trace", busy, "--layer", "rmw").out
    assert all(row in table for row in ("response, worst", "first stall", "worst stall", "time stalled"))


def test_a_drive_shows_the_source_of_every_number(smrlab: Invoke) -> None:
    ended = smrlab("drive", "show", "modern-7200")
    assert ended.status == 0, ended.err
    assert "rpm" in ended.out
    assert any(kind in ended.out for kind in ("spec", "measured", "fitted", "assumed"))


BAD = {
    "unknown layer": (("--layer", "rmww"), ["did you mean 'rmw'"]),
    "unknown parameter": (("--layer", "rmw,bnad=3"), ["band"]),
    "value out of range": (("--layer", "rmw,band=many"), ["band=many"]),
    "unknown drive": (("--drive", "modern-720"), ["modern-7200"]),
    "unknown scheduler": (("--scheduler", "stpf"), ["sptf"]),
    "unknown field": (("--set", "sead=3"), ["did you mean 'seed'"]),
    "set of what is not named": (("--set", "layer.foo=1"), ["no layer is named", "--layer NAME,foo=1"]),
    "set without value": (("--set", "seed"), ["FIELD=VALUE"]),
    "bad time": (("--window", "5 parsecs"), ["window", "50us"]),
    "zero": (("--limit", "0"), ["limit"]),
    "word for a number": (("--limit", "many"), ["limit", "whole number"]),
    "table without folder": (("--requests",), ["--out"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_get_one_message_and_status_two(smrlab: Invoke, case: str) -> None:
    options, said = BAD[case]
    ended = smrlab(*RUN, *options)
    assert ended.status == 2, ended.err
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert all(word in ended.err for word in said), ended.err


def bad_traces(folder: Path) -> dict[str, tuple[str, str]]:
    """Case -> what is given as --trace, and what the message says."""
    line = "128166372003061629,hm,0,Read,9056256,4096,151\n"
    (folder / "empty.csv").write_text("")
    (folder / "broken.csv").write_text(line + "128166372003061630,hm,0,Read,here,4096,151\n")
    packed = gzip.compress(line.encode() * 5000)
    (folder / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "folder").mkdir()
    return {
        "missing": (str(folder / "nowhere.csv"), "no such file"),
        "empty name": ("", "the name of a trace: it is empty"),
        "empty": (str(folder / "empty.csv"), "empty"),
        "broken line": (f"{folder / 'broken.csv'}:msr", "line 2"),
        "truncated": (f"{folder / 'cut.csv.gz'}:msr", "truncated"),
        "directory": (str(folder / "folder"), "director"),
        "unknown format": (f"{folder / 'broken.csv'}:mrs", "msr"),
        "unknown generator": ("synth:unifrom", "uniform"),
    }


@pytest.mark.parametrize(
    "case",
    [
        "missing",
        "empty",
        "broken line",
        "truncated",
        "directory",
        "unknown format",
        "unknown generator",
    ],
)
def test_bad_traces_get_one_message_and_leave_nothing(smrlab: Invoke, tmp_path: Path, case: str) -> None:
    trace, said = bad_traces(tmp_path)[case]
    out = tmp_path / "results" / "out"
    ended = smrlab("run", "--trace", trace, "--out", out)
    assert ended.status == 2, ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert not out.exists()


def test_names_and_files_do_not_command_the_terminal(smrlab: Invoke, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\x1b[2Jwhen\ta\x9b\n1\t2\n")
    told = smrlab("trace", "info", f"{tmp_path / 't.csv'}:csv").err
    assert "Its first line is\n  \ufffd[2Jwhen\ta\ufffd\nas in" in told, told
    assert "'\ufffd[2J'" in smrlab("drive", "show", "\x1b[2J").err


def test_lbas_beyond_the_drive_suggest_wrap(smrlab: Invoke) -> None:
    ended = smrlab("run", "--trace", TINY.replace("1GB", "100TB"), "--drive", "modern-7200")
    assert ended.status == 2
    assert "wrap" in ended.err


def test_a_folder_with_something_else_in_it_is_kept(smrlab: Invoke, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    ended = smrlab(*RUN, "--out", tmp_path)
    assert ended.status == 2
    assert "something else" in ended.err
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_another_experiments_results_are_replaced_only_by_force_and_notes_are_kept(
    smrlab: Invoke, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    smrlab(*COMPARE, "--out", out)
    (out / "notes.txt").write_text("mine")
    again = smrlab(*COMPARE, "--out", out, "--window", "10s", "--no-svg")
    assert again.status == 0, "the same experiment, recorded in another way, may be done again"
    before = (out / "result.json").read_text()
    ended = smrlab(*RUN, "--out", out)
    assert ended.status == 2
    assert "--force" in ended.err
    assert "another experiment" in ended.err
    assert (out / "result.json").read_text() == before
    ended = smrlab(*RUN, "--out", out, "--force", "--no-svg")
    assert ended.status == 0, ended.err
    assert not (out / "runs").exists()
    assert (out / "notes.txt").read_text() == "mine"


def test_no_space_for_results_is_the_environments_fault(smrlab: Invoke) -> None:
    if not Path("/dev/full").exists() or os.geteuid() != 0:
        pytest.skip("needs root, to mount a small filesystem")
    folder = Path("/tmp") / f"smrlab-full-{os.getpid()}"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40k", "none", folder], check=False, capture_output=True
    )
    try:
        if mounted.returncode:
            pytest.skip("cannot mount a small filesystem here")
        ended = smrlab(*RUN, "--layer", "cmr", "--out", folder / "out")
        assert ended.status == 3, ended.err
        assert "space" in ended.err.lower()
        assert list(folder.iterdir()) == []
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", folder], check=True)
        folder.rmdir()


@pytest.mark.parametrize("place", ["/proc/smrlab", "/sys/smrlab"])
def test_where_nothing_can_be_made_no_other_run_is_waited_for(smrlab: Invoke, place: str) -> None:
    ended = smrlab(*RUN, "--layer", "cmr", "--out", place)
    assert (ended.status, f"{place}: cannot be written" in ended.err) == (3, True), ended.err


def test_a_state_folder_that_cannot_be_written_is_the_environments_fault(
    smrlab: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMRLAB_STATE", "/sys/smrlab")
    ended = smrlab("device", "create", "d", "--drive", "tiny")
    assert ended.status == 3
    assert ended.err.startswith("smrlab: /sys/smrlab")
    assert len(ended.err.splitlines()) == 1


def test_results_go_into_a_folder_that_is_a_mount_point(smrlab: Invoke, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a filesystem")
    out = tmp_path / "out"
    out.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "none", out], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount a filesystem here")
    try:
        (out / ".smrlab-partial.out.999999999").mkdir()
        for svg in ("--svg", "--no-svg"):
            ended = smrlab(*RUN, "--layer", "cmr", "--out", out, svg)
            assert ended.status == 0, ended.err
            assert not list(out.glob(".*")), "nothing partial is left, nor what a killed run left"
        assert (out / "result.json").is_file()
    finally:
        subprocess.run(["umount", out], check=True)


def test_set_takes_the_place_of_what_was_given_before() -> None:
    sets = ["layer.cache=2%", "layer.cache=3%", "layer.sections=4"]
    assert apply_sets({"layer": "s-block,cache=1%,policy=fifo"}, sets) == {
        "layer": "s-block,policy=fifo,cache=3%,sections=4"
    }
    assert apply_sets({"layer": "rmw"}, [" seed =3", "layer.band =4"]) == {"layer": "rmw,band=4", "seed": "3"}


def test_convert_and_head_and_synth_write_traces_that_read_back(smrlab: Invoke, tmp_path: Path) -> None:
    made, first = tmp_path / "made.parquet", tmp_path / "first.parquet"
    assert smrlab("trace", "synth", TINY.removeprefix("synth:"), "--out", made).status == 0
    shown = smrlab("trace", "head", made, "-n", "3").out.splitlines()
    assert shown[0].split()[:2] == ["s", "operation"]
    assert [line.split()[0] for line in shown[2:]] == ["0.000000", "0.020000", "0.040000"]
    assert smrlab("trace", "head", made, "-n", "100", "--out", first).status == 0
    info = smrlab("trace", "info", first, "--json").json()
    assert info["requests"] == 100
    same = [smrlab("run", "--trace", t, "--limit", "100", "--json").json()["host"] for t in (made, first)]
    assert same[0] == same[1]


def test_head_shows_commands_of_zones(smrlab: Invoke) -> None:
    shown = smrlab("trace", "head", "synth:zoned,requests=2000,span=16MiB,zone=1MiB,writers=1", "-n", "2000")
    assert shown.status == 0, shown.err
    assert {line.split()[1] for line in shown.out.splitlines()[2:]} == {"write", "zone-reset"}


@pytest.mark.parametrize("place", ["/sys/made.parquet", "/no-such-folder/made.parquet"])
def test_a_trace_that_cannot_be_written_is_the_environments_fault(smrlab: Invoke, place: str) -> None:
    ended = smrlab("trace", "synth", TINY.removeprefix("synth:"), "--out", place)
    assert (ended.status, ended.out) == (3, "")
    assert ended.err.startswith(f"smrlab: {place}: cannot be written: ")
    assert len(ended.err.splitlines()) == 1


def test_a_trace_is_not_written_over_itself(smrlab: Invoke, tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("time_s,op,lba,blocks,mine\n0,R,0,8,kept\n")
    for source in (own, f"{own}:csv"):
        ended = smrlab("trace", "convert", source, "--out", own)
        assert ended.status == 2
        assert "is the trace itself" in ended.err
    assert "kept" in own.read_text()


def test_a_trace_is_told_to_be_parquet_where_its_name_says_otherwise(smrlab: Invoke, tmp_path: Path) -> None:
    for name, told in (("t.csv", "2 requests, as Parquet, whatever its name ends in"), ("t.parquet", "2 requests")):
        made = smrlab("trace", "synth", "uniform,requests=2,span=1GB", "--out", tmp_path / name)
        assert made.err == f"{tmp_path / name}: {told}\n"
    refused = smrlab("trace", "scale", tmp_path / "t.csv", "nan", "--out", tmp_path / "u.parquet")
    assert (refused.status, refused.err) == (2, "smrlab: X: nan is not accepted: a number, such as 0.5\n")


def test_a_run_of_several_layers_is_told_of_compare(smrlab: Invoke) -> None:
    ended = smrlab("run", "--trace", TINY, "--layer", "cmr", "--layer", "rmw")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "smrlab: a run has one layer: give one --layer, or several to smrlab compare\n"


def test_public_traces_run(smrlab: Invoke, shared: Path) -> None:
    found = sorted((shared / "traces").rglob("*.csv.gz"))
    if not found:
        pytest.skip(f"no MSR traces in {shared / 'traces'}")
    ended = smrlab("run", "--trace", found[0], "--wrap", "capacity", "--limit", "20000", "--verify-media", "--json")
    assert ended.status == 0, ended.err
