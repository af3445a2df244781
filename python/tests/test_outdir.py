"""Where results are written while a run goes on."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from commands import Invoke

import smrlab
from smrlab.errors import InputError, MissingError
from smrlab.files import write_whole
from smrlab.outdir import filling
from smrlab.trace import Trace


def fill(wanted: Path, document: str) -> Path:
    with filling(wanted) as folder:
        (folder / "result.json").write_text(document)
        (folder / "timeline.parquet").write_text(document)
    return folder


def test_a_folder_that_exists_is_filled_from_within(tmp_path: Path) -> None:
    """A mount point is another file system than the folder around it: nothing may be renamed into it from outside."""
    wanted = tmp_path / "mounted"
    wanted.mkdir()
    inside = fill(wanted, "one")
    assert inside.parent == wanted
    assert sorted(p.name for p in wanted.iterdir()) == ["result.json", "timeline.parquet"]
    fill(wanted, "two")
    assert (wanted / "result.json").read_text() == "two"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mounted"]


def test_what_a_killed_run_left_does_not_block_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".smrlab-partial.out.123").mkdir()
    fill(tmp_path, "one")
    assert (tmp_path / "result.json").read_text() == "one"


def test_two_runs_do_not_fill_one_folder_at_once(tmp_path: Path) -> None:
    """Neither where it is new nor where it is there. Those that write the same may, and others when one has ended."""
    for wanted in (tmp_path / "new", tmp_path / "new"):
        with filling(wanted) as folder:
            (folder / "result.json").write_text("first")
            with pytest.raises(InputError, match="another run, which has not ended, writes its results there; wait"):
                fill(wanted, "second")
            fill(tmp_path / "other", "neighbour")
            assert (folder / "result.json").read_text() == "first"
        assert (wanted / "result.json").read_text() == "first"
        with filling(wanted, shared=True), filling(wanted) as folder:
            (folder / "result.json").write_text("third")
        assert not list(tmp_path.rglob(".*"))


def test_a_run_that_was_killed_holds_no_lock(tmp_path: Path) -> None:
    """What it left goes with the next run, into this folder or beside it."""
    code = (
        "import os, sys; from smrlab.outdir import filling\n"
        "with filling(sys.argv[1]) as f: (f / 'x').mkdir(); print(flush=True); sys.stdin.read()"
    )
    for wanted, after in ((tmp_path / "out", tmp_path / "out"), (tmp_path / "else", tmp_path / "beside")):
        command = [sys.executable, "-c", code, str(wanted)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout
            other.stdout.readline()
            with pytest.raises(InputError, match="another run"):
                fill(wanted, "refused")
            other.kill()
        fill(after, "one")
        assert [p.name for p in after.iterdir() if p.suffix == ""] == []
        assert not list(tmp_path.rglob(".*"))


def test_results_that_another_run_wrote_meanwhile_are_kept(tmp_path: Path) -> None:
    """They are looked at when nobody else writes any more."""

    def run() -> None:
        smrlab.run("synth:uniform,requests=10,span=1MiB", drive="tiny", layer="cmr", out=tmp_path / "out")

    with filling(tmp_path / "out") as folder:
        with pytest.raises(InputError, match="another run"):
            run()
        (folder / "result.json").write_text('{"spec": {"layer": "rmw"}}')
    with pytest.raises(InputError, match="another experiment"):
        run()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="something else"):
        fill(tmp_path, "one")


def test_nothing_is_left_of_a_run_that_failed(tmp_path: Path) -> None:
    wanted = tmp_path / "out"
    with pytest.raises(ZeroDivisionError), filling(wanted) as folder:
        (folder / "result.json").write_text(str(1 // 0))
    assert not list(tmp_path.iterdir())


def test_a_run_of_a_table_or_of_standard_input_is_the_same_experiment_again(tmp_path: Path) -> None:
    rows = {"arrival_ns": [0, 10**7], "op": ["write", "read"], "lba": [0, 800], "blocks": [8, 8]}

    def run(lba: int) -> None:
        table = pa.table({**rows, "lba": [0, lba]})
        smrlab.run(table, drive="tiny", layer="cmr", wrap="capacity", out=tmp_path / "out")

    run(800)
    run(800)
    with pytest.raises(InputError, match="another experiment"):
        run(808)


def test_standard_input_of_a_comparison_keeps_its_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "smrlab", "compare", "--trace", "-:csv,columns=time:ms;op;lba;size", "--drive",
               "tiny", "--layer", "cmr", "--layer", "rmw", "--out", str(tmp_path / "out")]  # fmt: skip
    command += ["--skip-bad", "1", "--no-svg", "--json"]
    for _ in "ab":
        done = subprocess.run(command, input=b"0,W,0,512\nrubbish\n5,R,8,512\n", capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    for run in json.loads(done.stdout)["runs"]:
        assert run["provenance"]["skipped_bad"] == 1
        assert run["spec"]["trace"] == ["-:csv,columns=time:ms;op;lba;size"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(MissingError, match="cannot be written"):
        write_whole(tmp_path / "a", b"all of it")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "free space or choose another --out"), (errno.EROFS, "; choose another --out")]
)
def test_free_space_is_asked_for_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    # As in a file system that can only be read, where nothing can be removed either.
    monkeypatch.setattr(Path, "write_bytes", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(MissingError, match=f"a: cannot be written: {os.strerror(number)}.*{said}$"):
        write_whole(tmp_path / "a", b"")


@pytest.mark.parametrize("kind", ["pipe", "stdout"])
def test_no_file_takes_the_place_of_a_device_or_a_pipe(smrlab: Invoke, tmp_path: Path, kind: str) -> None:
    """A rename over /dev/stdout or /dev/full takes it from all programs, where root asks for it."""
    at = tmp_path / "special"
    os.mkfifo(at) if kind == "pipe" else at.symlink_to("/proc/self/fd/1")
    synth = "synth:uniform,requests=10,span=1GB"
    before = at.lstat()
    ended = smrlab("trace", "convert", synth, "--out", at)
    told = f"smrlab: {at} is no regular file, and would be replaced by one: name another file\n"
    assert (ended.status, ended.err) == (2, told)
    with pytest.raises(InputError, match="no regular file"):
        Trace.open(synth).save(at)
    with pytest.raises(InputError, match="no regular file"):
        write_whole(at, b"a figure")
    assert at.lstat() == before
    assert list(tmp_path.iterdir()) == [at]


def test_a_link_to_a_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"all of it")
    assert (tmp_path / "link").read_bytes() == b"all of it"
