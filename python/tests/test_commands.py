"""What commands pass on, print and refuse, each with stand-ins for what takes long."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer
from commands import Invoke

from smrlab import TranslationLayer, _core, api, cli, papers, plain, sweeps
from smrlab.cli import console, device, drive, geometry, picture
from smrlab.devices import Device
from smrlab.errors import InputError
from smrlab.executors import Running
from smrlab.papers import page
from smrlab.papers import record as records
from smrlab.secret import hidden
from smrlab.sweeps.run import Outcome
from smrlab.work import Job, attend


def test_the_program_and_its_groups_by_themselves_show_what_they_know(smrlab: Invoke) -> None:
    for words, known in (((), ("compare", "device", "trace")), (("trace",), ("info", "convert"))):
        ended = smrlab(*words)
        shown = ended.out + ended.err
        assert " ".join(("Usage: smrlab", *words)) in shown
        assert all(name in shown for name in known), shown


def test_a_fit_takes_what_it_was_given(smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option under the engine's name for it."""
    asked: list[Any] = []

    def fit(text: str, options: str) -> str:
        asked.append((text, json.loads(options)))
        return json.dumps({"toml": "a drive", "runs": [[1, 2]], "notes": []})

    monkeypatch.setattr(_core, "geometry_fit", fit)
    monkeypatch.setattr(geometry, "_fitted", lambda *_: None)
    (tmp_path / "x.txt").write_text("tracks")
    own = {"least": 7, "most": 9, "degree": 3, "zones": 4, "rpm": 5400.5, "polynomial": True, "name": "n"}
    words = "--min-outlier 7 --max-outlier 9 --degree 3 --zones 4 --rpm 5400.5 --method polynomial --name n"
    assert smrlab("geometry", "fit", tmp_path / "x.txt", "--out", tmp_path / "d.toml", *words.split()).status == 0
    assert smrlab("geometry", "fit", tmp_path / "x.txt", "--out", tmp_path / "d.toml").status == 0
    usual = {"least": 1000, "most": 2200, "degree": 13, "zones": 18, "rpm": None, "polynomial": False, "name": "d"}
    assert asked == [("tracks", own), ("tracks", usual)]


def test_a_single_request_is_seen_beside_many() -> None:
    """The lightest shade is for none; the root of the share makes the others."""
    assert [picture._shade(n, 10**6) for n in (0, 1, 62_500, 250_000, 10**6)] == [" ", "░", "░", "▒", "█"]


def test_one_rate_is_that_of_all_tracks() -> None:
    """Two are those of the outermost and the innermost, in bytes a second."""
    assert drive._rates("210MB/s") == (210e6, 210e6)
    assert drive._rates("210MB/s..100MB/s") == drive._rates("210MB..100MB") == (210e6, 100e6)
    for given in ("fast", "210MB/s..", "..1MB/s"):
        with pytest.raises(InputError, match=f"--rate {given}: write the outermost"):
            drive._rates(given)


def test_reads_and_writes_are_judged_apart(smrlab: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column each, all before them."""
    parts = {name: {"demerit_ms": n, "requests": int(n)} for name, n in (("reads", 2.5), ("writes", 3.5))}
    doc = {"layer": "cmr", "demerit_ms": 1.5, "requests": 5, **parts}
    monkeypatch.setattr(_core, "validate", lambda *_: (json.dumps(doc), []))
    said = smrlab("validate", "d", "t").out
    rows = {words[0]: words[1:] for line in said.splitlines() if (words := line.split())}
    assert rows["demerit_ms"] == ["1.5", "2.5", "3.5"]
    assert rows["requests"] == ["5", "2", "3"]
    assert "d with the layer cmr against t" in said


def test_requests_are_shown_with_their_seconds(smrlab: Invoke) -> None:
    """Ten, or as many as were asked for."""
    trace = "synth:sequential,requests=12,size=8blk,write=100%,span=1MB,interarrival=250ms"
    lines = [line.split() for line in smrlab("trace", "head", trace, "-n", "3").out.splitlines()]
    assert lines[2:] == [[f"{0.25 * n:.6f}", "write", str(8 * n), "8", "0"] for n in range(3)]
    assert len(smrlab("trace", "head", trace).out.splitlines()) == 2 + 10


def test_a_sweep_with_failed_points_fails(smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a status of its own, that of Ctrl-C where it was stopped; what failed is told with its reason."""
    (tmp_path / "s.toml").write_text('[base]\nlayer = "cmr"\n')
    for failed, interrupted, status in (({}, False, 0), ({"n=1": "why"}, False, 1), ({"n=1": "why"}, True, 130)):
        outcome = Outcome(3, 1, 1, failed, interrupted)
        monkeypatch.setattr(sweeps, "run_study", lambda *_, outcome=outcome: outcome)
        ended = smrlab("sweep", tmp_path / "s.toml", "--out", tmp_path / "o")
        assert ended.status == status
        assert f"3 points: 1 run, 1 kept from before, {len(failed)} failed" in ended.err
        assert ("point n=1: why" in ended.err) == (status == 1)


def test_a_figure_alone_is_no_new_record(smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its claims are some of all; worse verdicts fail unless they are recorded."""
    paper = SimpleNamespace(id="p", title="T", experiments_of=lambda _: ["e"])
    verdict = papers.Verdict("c", "s", "p", "5", "t", "not", "")
    monkeypatch.setattr(papers, "load", lambda _: paper)
    monkeypatch.setattr(papers, "reproduce", lambda *_, **__: SimpleNamespace(verdicts=[verdict]))
    monkeypatch.setattr(page, "write_page", lambda *_: tmp_path / "p.html")
    monkeypatch.setattr(page, "write_index", lambda *_: None)
    monkeypatch.setattr(records, "recorded", lambda _: {"quick": {"c": {"verdict": "partly"}}})
    kept: list[str] = []
    monkeypatch.setattr(records, "record", lambda _, scale, __: kept.append(scale))
    run: list[str | Path] = ["paper", "run", "p", "--quick", "--out", tmp_path]
    worse = smrlab(*run)
    assert (worse.status, "c: not, was partly (5; accepted: t)" in worse.err) == (1, True)
    assert [smrlab(*run, "--record", *more).status for more in ([], ["--figure", "f"], ["--traces", "x"])] == [0, 0, 0]
    assert kept == ["quick", "traces-quick"]


@pytest.mark.parametrize(
    ("listen", "chap", "warned"),
    [
        ("iscsi:localhost:1", False, False),
        ("iscsi:127.0.0.1:1", False, False),
        ("iscsi:[::1]:1", False, False),
        ("iscsi:0.0.0.0:1", False, True),
        ("iscsi:0.0.0.0:1", True, False),
        ("tcp:127.0.0.1:1", False, True),
        ("unix:/s", False, False),
    ],
)
def test_who_serves_all_the_world_is_warned(
    listen: str, chap: bool, warned: bool, smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of iSCSI without secrets on other addresses than the machine's own, of TCP without TLS on any."""
    (tmp_path / "chap").touch()
    monkeypatch.setattr(Device, "create", classmethod(lambda *_: SimpleNamespace(name="d", path=tmp_path)))
    monkeypatch.setattr("smrlab.cli.device._made", lambda *_: None)
    secrets: list[str | Path] = ["--chap", tmp_path / "chap"] if chap else []
    done = smrlab("device", "create", "d", "--listen", listen, *secrets)
    assert (done.status, "anybody who reaches the port can read and write it" in done.err) == (0, warned)


def test_a_table_that_fits_is_not_folded() -> None:
    """A line more narrow by one folds its widest column, which keeps 16 characters."""
    rows = [["a" * 10, "word " * 5 + "word"]]
    assert plain.table(rows, line=10 + 2 + 29) == [f"{'a' * 10}  {'word ' * 5}word"]
    assert plain.table(rows, line=10 + 2 + 28) == [f"{'a' * 10}  {'word ' * 4}word", f"{'':10}  word"]
    assert max(map(len, plain.table(rows, line=5))) == 10 + 2 + 14
    assert (plain.table([]), plain.table([["a", ""], ["b", ""]])) == ([], ["a", "b"])


def test_of_urls_what_proves_something_is_hidden() -> None:
    """Users, passwords and signatures; which version of an object it is, and the format behind it, are told."""
    for text, told in (
        ("s3://u:p@h/k", "s3://h/k"),
        ("at https://h/k?X-Sig=1&b=2, twice", "at https://h/k twice"),
        ("s3://b/k?versionId=3.a-b", "s3://b/k?versionId=3.a-b"),
        ("https://h/k?sig=1:spc", "https://h/k:spc"),
        ("user@host and a/b?c=d", "user@host and a/b?c=d"),
    ):
        assert hidden(text).replace(",", "") == told


def test_blocks_of_a_layer_are_runs() -> None:
    """Those one behind the other, and those that lie nowhere."""
    found = list(TranslationLayer.runs([5, 6, None, None, None, 9, 8, 0, None, 1]))
    assert found == [(5, 2, 0), (None, 3, 2), (9, 1, 5), (8, 1, 6), (0, 1, 7), (None, 1, 8), (1, 1, 9)]
    assert list(TranslationLayer.runs([])) == []


def test_each_layer_has_a_label_or_none_has() -> None:
    """And standard input is read once."""
    for labels, told in ((["a"], "1 label"), (["a", "b", "c"], "3 labels")):
        with pytest.raises(InputError, match=f"{told} for 2 layers: give each its own"):
            api.compare("synth:uniform", layers=["cmr", "rmw"], labels=labels)
    with pytest.raises(InputError, match="standard input can be one trace only"):
        api.compare(["-", "-:spc"], layers=["cmr"])


def test_the_share_of_a_piece_is_whole_when_it_is_done() -> None:
    """What has not begun has none; what ended is told in the order given."""
    seen: list[list[Job]] = []

    class Executor:
        def run(self, _: Any, each: Any, tick: Any, __: Any) -> bool:
            each(2, "c")
            each(0, "a")
            tick([Running(1, 0.25, True)])
            each(1, "b")
            return False

    pieces = cast("Any", [SimpleNamespace(name=n) for n in "xyz"])
    done, interrupted = attend(pieces, cast("Any", Executor()), lambda jobs: seen.append([*jobs]))
    assert (done, interrupted) == ([(0, "a"), (1, "b"), (2, "c")], False)
    assert [[(j.share, j.done, j.title) for j in jobs] for jobs in seen] == [
        [(1.0, True, "x"), (0.25, False, "y (prefill)"), (1.0, True, "z")]
    ]


def test_what_a_command_cannot_do_is_refused_before_anything_is_done(smrlab: Invoke, tmp_path: Path) -> None:
    """With status 2 and what to do instead."""
    (tmp_path / "file").write_bytes(bytes(4096))
    (tmp_path / "y.json").write_text('{"zones": 5}')
    trace = "synth:uniform,requests=5"
    for words, said in (
        (["probe", tmp_path / "file"], "says nothing of itself; measuring what it is needs writes: add --destroy"),
        (
            ["compare", "--trace", trace, "--layer", "cmr", "--save-state", "x"],
            "save the state of one run (smrlab run)",
        ),
        (["trace", "interleave", trace, "-o", tmp_path / "o"], "interleave needs at least two traces"),
        (["trace", "head", trace, "-o", tmp_path / "o"], "say how much to keep: --requests N, --until T or --from T"),
        (["device", "create", "d", "--size", "1GB", "--medium-size", "1GB"], "give one of the two"),
        (["device", "create", "d", "--speed", "nan"], "--speed nan is not accepted: above 0, up to 1000000"),
        (["device", "create", "d", "--speed", "0"], "--speed 0 is not accepted"),
        (["device", "create", "d", "--size", "4095B", "--block", "4096"], "less than the smallest transfer of 4096"),
        (["drive", "check", "tiny", "--out", "x.png"], "--out x.png: the picture is an .svg"),
        (["geometry", "show", tmp_path / "y.json"], "not an extraction: it has no zones, blocks, notes or quality"),
        (["device", "create", "d", "--layer", "a.py:B"], "layers in Python run in the simulator and cannot be served"),
        (["device", "inject", "d", "--zone", "3", "--clear"], "--zone goes alone"),
        (["list", "layer"], "did you mean 'layers'?"),
    ):
        ended = smrlab(*cast("list[str | Path]", words))
        assert (ended.status, ended.out, said in " ".join(ended.err.split())) == (2, "", True), ended.err
    assert not (tmp_path / "o").exists()


def test_places_that_cannot_be_written_are_no_fault_of_the_program(
    smrlab: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the user's or the machine's they end with 3, other errors of the system as they are."""

    def fails(number: int) -> None:
        def build(_: list[str]) -> Any:
            def run(**_: str) -> None:
                raise OSError(number, "because", "/place")

            return run

        monkeypatch.setattr(cli, "build", build)

    for number in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT):
        fails(number)
        ended = smrlab("list")
        assert (ended.status, ended.err) == (3, "smrlab: /place: because\n")
    fails(errno.EIO)
    with pytest.raises(OSError, match="because"):
        smrlab("list")


def test_documents_say_their_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """Lists have none; one in a line where it is watched."""
    for doc, line, said in (({"a": 1}, True, '{"schema": 1, "a": 1}\n'), ([1], True, "[1]\n"), ([], False, "[]\n")):
        console.print_json(doc, line=line)
        assert capsys.readouterr().out == said


def test_a_place_that_there_cannot_be_is_told_and_is_no_fault_of_the_program(smrlab: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    ended = smrlab("paper", "run", "he2014", "--quick", "--out", file / "papers")
    assert (ended.status, f"--out {file}/papers: Not a directory" in ended.err) == (2, True), ended.err
    assert smrlab("paper", "run", "none", "--out", tmp_path / "none").status == 2
    assert not (tmp_path / "none").exists()


def test_the_page_of_devices_names_each_command_and_option() -> None:
    """In its synopsis, which is what people copy."""
    page = (Path(__file__).parents[2] / "docs" / "device.md").read_text()
    synopsis = page.partition("## Synopsis")[2].partition("## Examples")[0]
    words = set(re.findall(r"--?[a-z-]+|[a-z-]+", synopsis))
    group: Any = typer.main.get_command(device.app)
    for name, command in group.commands.items():
        shown = [p for p in command.params if not getattr(p, "hidden", False)]
        options = {o for p in shown for o in p.opts if o.startswith("--")} - {"--help", "--json", "--cells"}
        assert command.hidden or {name, *options} <= words, (name, {name, *options} - words)
