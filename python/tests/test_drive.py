"""Drives of one's own: made after another, checked, shown, run."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import TINY, Invoke

from smrlab import _core
from smrlab.cli import complete, shell

SMRLAB = Path(sys.executable).with_name("smrlab")
NEW = ("drive", "new", "--capacity", "2TB", "--rpm", "5400", "--zones", "25", "--rate", "210MB/s..100MB/s")


@pytest.fixture
def mine(smrlab: Invoke, tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    ended = smrlab(*NEW, "--out", path)
    assert (ended.status, ended.err) == (0, f"{path} written\n")
    assert "written" not in ended.out
    return path


def test_a_drive_made_after_another_is_what_was_asked_for(smrlab: Invoke, mine: Path) -> None:
    doc = smrlab("drive", "check", mine, "--json").json()
    assert 2.0e12 <= doc["bytes"] < 2.001e12
    assert doc["rpm"] == 5400
    assert abs(doc["zones"][0]["mb_per_s"] - 210) < 0.1
    assert abs(doc["zones"][-1]["mb_per_s"] - 100) < 0.1
    assert len({z["blocks_a_track"] for z in doc["zones"]}) == 25
    assert {n["kind"] for n in doc["numbers"]} == {"assumed"}
    run = smrlab("run", "--trace", TINY, "--drive", mine, "--layer", "rmw", "--json")
    assert run.status == 0, run.err


def test_an_import_replaces_a_file_only_by_force(smrlab: Invoke, mine: Path, tmp_path: Path) -> None:
    before = mine.read_text()
    given = ("drive", "import", "disksim", tmp_path / "none.parv", "--out", mine)
    ended = smrlab(*given)
    assert (ended.status, mine.read_text()) == (2, before)
    assert "mine.toml: is there already; give another --out, or --force" in ended.err
    ended = smrlab(*given, "--force")
    assert (ended.status, mine.read_text()) == (2, before)
    assert "none.parv" in ended.err
    assert "already" not in ended.err


def test_an_import_says_beside_its_result_what_it_left_out(
    smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has from the file cannot command the terminal."""
    monkeypatch.setattr(_core, "import_disksim", lambda file: (f"of {file}", ["Bus = \x1b[2J", "a cache"]))
    ended = smrlab("drive", "import", "disksim", "a.parv", "--out", tmp_path / "d.toml")
    said = f"left out: Bus = \ufffd[2J\nleft out: a cache\n{tmp_path / 'd.toml'} written\n"
    assert (ended.status, ended.out, ended.err) == (0, "", said)
    assert (tmp_path / "d.toml").read_text() == "of a.parv"


def test_check_says_size_zones_bands_and_draws_them(smrlab: Invoke, mine: Path, tmp_path: Path) -> None:
    ended = smrlab("drive", "check", mine, "--out", tmp_path / "mine.svg")
    assert ended.status == 0, ended.err
    for words in ("2 TB", "5,400 rpm", "210 to 100 MB/s in 25 zones", "bands", "assumed", "█"):
        assert words in ended.out, words
    # First of all which file it is, and what drive.
    assert ended.out.startswith(f"{mine}: ")
    assert "2 TB, 5400 rpm, 2 surfaces" in ended.out.splitlines()[0]
    assert all(name in smrlab("drive", "list").out for name in ("modern-7200", "he2014-example"))
    assert "<svg" in (tmp_path / "mine.svg").read_text()
    assert "as in modern-7200" in smrlab("drive", "show", mine).out


def test_a_small_drive_has_small_units(smrlab: Invoke) -> None:
    said = smrlab("drive", "check", "tiny").out
    for words in ("1.475 MB (1.41 MiB)", "120 tracks on 1 surface;", "1.64 to 0.819 MB/s in 3 zones"):
        assert words in said, said


def test_faults_of_a_file_come_all_at_once(smrlab: Invoke, mine: Path) -> None:
    text = mine.read_text().replace("rpm = {", "rmp = {").replace('model = "full"', 'model = "ful"')
    mine.write_text(text)
    ended = smrlab("drive", "check", mine)
    assert ended.status == 2
    for words in ("mechanics.rmp: unknown field (did you mean 'rpm'?)", "did you mean 'full'?"):
        assert words in ended.err, ended.err


def test_bands_that_a_file_asks_for_and_that_do_not_fit_are_its_fault(smrlab: Invoke, tmp_path: Path) -> None:
    tiny = Path(__file__).parents[2] / "drives" / "tiny.toml"
    own = tmp_path / "own.toml"
    own.write_text(tiny.read_text().replace("[bands]\ntracks = { value = 4,", "[bands]\ntracks = { value = 1000,"))
    for more in ([], ["--json"]):
        ended = smrlab("drive", "check", own, *more)
        assert ended.status == 2
        assert f"{own}: bands: no band of 1000 + 1 tracks fits" in ended.err
        assert "three zones" in ended.out, "what drive it is comes first"
    # Bands that nobody asked for are no fault of a drive that has room for none.
    text = tiny.read_text().replace("[[40, 32], [40, 24], [40, 16]]", "[[2, 32]]")
    own.write_text(text[: text.index("[bands]")] + text[text.index("[mechanics]") :])
    assert "problem" in smrlab("drive", "check", own, "--json").json()["bands"]
    for drive in (own, "tiny", "cassuto2010-307gb"):
        ended = smrlab("drive", "check", drive)
        assert (ended.status, ended.err) == (0, "")


def test_a_number_may_stand_alone(smrlab: Invoke, mine: Path) -> None:
    lines = [("rpm = 5400" if line.startswith("rpm = ") else line) for line in mine.read_text().splitlines()]
    mine.write_text("\n".join(lines))
    doc = smrlab("drive", "check", mine, "--json").json()
    rpm = next(n for n in doc["numbers"] if n["field"] == "mechanics.rpm")
    assert (rpm["kind"], rpm["source"]) == ("assumed", "not stated in the file")


def test_what_makes_no_drive_is_refused_by_option(smrlab: Invoke, mine: Path, tmp_path: Path) -> None:
    assert "--force" in smrlab(*NEW, "--out", mine).err
    other = tmp_path / "other.toml"
    assert "210MB/s..100MB/s" in smrlab("drive", "new", "--rate", "fast", "--out", other).err
    assert smrlab("drive", "new", "--rate", "1MB/s", "--rpm", "100000", "--out", other).status == 2
    assert not other.exists()


def test_the_shell_offers_names_parameters_and_their_words() -> None:
    assert complete.layers("disk-c") == ["disk-cache"]
    assert "disk-cache,cleaning=" in complete.layers("disk-cache,cle")
    assert complete.layers("disk-cache,cleaning=p") == ["disk-cache,cleaning=partial"]
    assert complete.drives("seagate-st5") == ["seagate-st5000as0011"]
    assert complete.traces("synth:zi") == ["synth:zipf"]
    assert complete.traces("a.gz:msr") == ["a.gz:msr", "a.gz:msr-cut"]
    assert "a.gz:csv,columns=" in complete.traces("a.gz:csv,col")
    assert complete.generators("zipf,th") == ["zipf,theta="]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("device create d --timing m", ["model"]),
        ("device create d --metadata ", ["nv", "media"]),
        ("device create d --mode p", ["performance"]),
        ("device create d --scheduler sp", ["sptf"]),
        ("run --arrivals cl", ["closed"]),
        ("run --wrap ", ["capacity", "prefilled"]),
        ("run --metadata m", ["media"]),
        ("list sched", ["schedulers"]),
        ("trace info synth:zi", ["synth:zipf"]),
        ("trace interleave synth:zi", ["synth:zipf"]),
        ("trace head synth:zi", ["synth:zipf"]),
        ("trace synth zi", ["zipf"]),
    ],
)
def test_the_shell_offers_words_where_they_belong(line: str, offered: list[str]) -> None:
    words = ["smrlab", *line.split(" ")]
    asked = {"_SMRLAB_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    told = subprocess.run([SMRLAB], env=os.environ | asked, check=False, capture_output=True, text=True).stdout
    # Bash has what stands before the last colon already.
    assert told.split() == [word.rpartition(":")[2] for word in offered]


def _set(incomplete: str, **named: Any) -> list[str]:
    context = SimpleNamespace(params=named)
    return complete.settings(context, incomplete)  # type: ignore[arg-type]


def test_the_shell_offers_what_can_be_set() -> None:
    assert _set("se") == ["seed="]
    assert _set("layer.pol", layer=["s-block,cache=1%"]) == ["layer.policy="]
    assert _set("layer.cleaning=p", layer="disk-cache") == ["layer.cleaning=partial"]
    # Of the layer that is named, or of any.
    assert "layer.streams=" not in _set("layer.", layer="s-block")
    assert {"layer.streams=", "layer.sections="} <= set(_set("layer."))
    assert _set("array.overp", array="dvs") == ["array.overprovision="]
    assert _set("arrivals.d") == ["arrivals.depth="]
    assert _set("drive=seagate-st5") == ["drive=seagate-st5000as0011"]
    assert _set("drive.x") == []


def _tab(*words: str) -> str:
    """What bash puts behind these words, which it took apart."""
    env = {"_SMRLAB_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    program = Path(sys.executable).with_name("smrlab")
    if not program.is_file():
        pytest.skip("smrlab is not installed here")
    return subprocess.run([program], env=os.environ | env, capture_output=True, text=True, check=False).stdout


def test_bash_completes_behind_what_it_takes_for_the_end_of_a_word() -> None:
    assert _tab("smrlab", "run", "--layer", "s-block,rules", "=", "l") == "literal \n"
    assert _tab("smrlab", "run", "--layer", "s-block", "--set", "layer.rules", "=") == "literal \nrepaired \n"
    assert _tab("smrlab", "run", "--trace", "synth", ":", "hotc", "--set", "se") == "seed=\n"
    assert shell.joined(["--set", "a", "=", "b", "c", "=", ""]) == ["--set", "a=b", "c=", ""]


def test_a_drive_file_is_there_whole_or_not_at_all(
    smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for write in (Path.write_bytes, Path.write_text):

        def full(self: Path, data: Any, write: Any = write) -> int:
            write(self, data[:100])
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, write.__name__, full)
    ended = smrlab("drive", "new", "--like", "tiny", "--out", tmp_path / "mine.toml")
    assert (ended.status, "free space or choose another --out" in ended.err) == (3, True), ended.err
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    # Folders are not made.
    ended = smrlab("drive", "new", "--like", "tiny", "--out", tmp_path / "none/mine.toml")
    assert (ended.status, "choose another --out" in ended.err) == (3, True), ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_is_none_is_told_with_its_option(smrlab: Invoke, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    ended = smrlab("drive", "new", "--capacity", "-2TB", "--out", other)
    assert (ended.status, "--capacity: '-2TB' is not a size: " in ended.err) == (2, True), ended.err
    for option in ("--size", "--medium-size", "--map-budget"):
        ended = smrlab("device", "create", "d", option, "-8GiB")
        assert (ended.status, f"{option}: '-8GiB' is not a size: " in ended.err) == (2, True), ended.err
