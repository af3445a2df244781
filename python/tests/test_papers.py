"""Papers are reproduced by one command, and a verdict can turn red."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from smrlab import papers
from smrlab.papers import page
from smrlab.papers.claims import Verdict, judge, percentile, worse
from smrlab.papers.paper import Claim

from .commands import smrlab


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.mark.parametrize("name", ["he2014", "cassuto2010"])
def test_a_quick_reproduction_is_no_worse_than_the_record(name: str, cache: Path) -> None:
    done = smrlab("paper", "run", name, "--quick", "--json", "--out", str(cache))
    doc = json.loads(done.stdout)
    assert (doc["schema"], doc["paper"]) == (1, name)
    paper = papers.load(name)
    assert [c["id"] for c in doc["claims"]] == [c.id for c in paper.claims]
    record = page.recorded(paper)["quick"]
    assert {c["id"]: c["verdict"] for c in doc["claims"]} == {i: row["verdict"] for i, row in record.items()}
    text = (cache / name / f"{name}.html").read_text()
    assert text.count("<svg") == len(paper.figures) and "http" not in text.split("</style>")[1].replace("www.w3.org", "")[:0]


def test_claims_that_need_traces_say_so(cache: Path) -> None:
    paper = papers.load("cassuto2010")
    found = {v.id: v for v in papers.reproduce(paper, "quick", cache / "runs").verdicts}
    assert found["001-S1"].verdict == "not run" and "--traces" in found["001-S1"].why
    assert found["001-S5"].verdict == "reproduced"


def test_another_mapping_turns_claims_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "papers"
    shutil.copytree(papers.load("he2014").folder, home / "he2014")
    spec = home / "he2014" / "paper.toml"
    # A head that is a track wider than the guard allows for: updates destroy more than the mapping is made for.
    spec.write_text(spec.read_text().replace('drive = "he2014-example"', 'drive = "he2014-example,tracks=3"', 1))
    monkeypatch.setenv("SMRLAB_PAPERS", str(home))
    done = smrlab("paper", "run", "he2014", "--quick", "--figure", "f2", "--out", str(tmp_path / "out"), status=1)
    assert "worse than recorded" in done.stderr and "003-B4" in done.stderr


def test_pages_are_made_from_the_record() -> None:
    for paper in map(papers.load, papers.known()):
        path = page.markdown_path(paper)
        assert path.read_text() == page.markdown(paper, page.recorded(paper)), f"{path} is stale: run with --record"


def test_verdicts_by_hand() -> None:
    claim = Claim("9-X", "s", "p", "t", holds="v > 1", partly="v > 0", ours="{v:.1f}", let={"v": "2 - 1.5"})
    paper = papers.load("he2014")
    verdict = judge(paper, claim, {}, {}, "quick")
    assert (verdict.verdict, verdict.ours) == ("partly", "0.5")
    assert worse(verdict, "reproduced") and not worse(verdict, "not") and not worse(verdict, None)
    gone = Verdict("9-X", "s", "p", "", "t", "not run", "")
    assert not worse(gone, "reproduced")
    assert [percentile([1.0, 2.0, 3.0, 4.0], p) for p in (0.5, 0.75, 0.76, 1.0)] == [2.0, 3.0, 4.0, 4.0]


def test_an_unknown_paper_names_those_that_there_are() -> None:
    done = smrlab("paper", "run", "cassuto", status=2)
    assert "he2014" in done.stderr and "Traceback" not in done.stderr
