"""Papers are reproduced by one command, and a verdict can turn red."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import Invoke

from smrlab import papers
from smrlab.papers import record
from smrlab.papers.claims import Verdict, judge, percentile, worse
from smrlab.papers.paper import Claim


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.mark.parametrize("name", ["arrays-interleaving", "cassuto2010", "he2014"])
def test_a_quick_reproduction_is_no_worse_than_the_record(name: str, cache: Path, smrlab: Invoke) -> None:
    done = smrlab("paper", "run", name, "--quick", "--json", "--out", cache)
    assert done.status == 0, done.err
    doc = done.json()
    assert (doc["schema"], doc["paper"]) == (1, name)
    paper = papers.load(name)
    assert [c["id"] for c in doc["claims"]] == [c.id for c in paper.claims]
    recorded = record.recorded(paper)["quick"]
    assert {c["id"]: c["verdict"] for c in doc["claims"]} == {i: row["verdict"] for i, row in recorded.items()}
    text = (cache / name / f"{name}.html").read_text()
    assert text.count("<svg") == len(paper.figures)
    assert "<script" not in text


def test_claims_that_need_traces_say_so(cache: Path) -> None:
    paper = papers.load("cassuto2010")
    found = {v.id: v for v in papers.reproduce(paper, "quick", cache / "runs").verdicts}
    assert found["001-S1"].verdict == "not run"
    assert "--traces" in found["001-S1"].why
    assert found["001-S5"].verdict == "reproduced"


def test_another_mapping_turns_claims_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smrlab: Invoke) -> None:
    home = tmp_path / "papers"
    shutil.copytree(papers.load("he2014").folder, home / "he2014")
    spec = home / "he2014" / "paper.toml"
    # A head that is a track wider than the mapping is made for: updates destroy more than they should.
    spec.write_text(spec.read_text().replace('drive = "he2014-example"', 'drive = "he2014-example,k=3"', 1))
    monkeypatch.setenv("SMRLAB_PAPERS", str(home))
    done = smrlab("paper", "run", "he2014", "--quick", "--figure", "f2", "--out", tmp_path / "out")
    assert done.status == 1
    assert "worse than recorded" in done.err
    assert "003-B5" in done.err


def test_pages_are_made_from_the_record() -> None:
    for paper in map(papers.load, papers.known()):
        path = record.markdown_path(paper)
        assert path.read_text() == record.markdown(paper, record.recorded(paper)), f"{path} is stale: run with --record"


def test_verdicts_by_hand() -> None:
    claim = Claim("9-X", "s", "p", "t", holds="v > 1", partly="v > 0", ours="{v:.1f}", let={"v": "2 - 1.5"})
    paper = papers.load("he2014")
    verdict = judge(paper, claim, {}, {}, "quick")
    assert (verdict.verdict, verdict.ours) == ("partly", "0.5")
    assert worse(verdict, "reproduced")
    assert not worse(verdict, "not")
    assert not worse(verdict, None)
    gone = Verdict("9-X", "s", "p", "", "t", "not run", "")
    assert not worse(gone, "reproduced")
    assert [percentile([1.0, 2.0, 3.0, 4.0], p) for p in (0.5, 0.75, 0.76, 1.0)] == [2.0, 3.0, 4.0, 4.0]


def test_an_unknown_paper_names_those_that_there_are(smrlab: Invoke) -> None:
    done = smrlab("paper", "run", "cassuto")
    assert done.status == 2
    assert "he2014" in done.err
    assert "Traceback" not in done.err
