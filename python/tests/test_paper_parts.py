"""Parts of papers' reproductions, each by itself and by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from smrlab.errors import InputError
from smrlab.papers import claims, figures, page, record
from smrlab.papers.paper import Claim, Experiment
from smrlab.papers.reproduce import NOT_ASKED, Reproduction, _plan
from smrlab.papers.runs import Run, Runs
from smrlab.results import Result


def a_run(n: int, **doc: Any) -> Run:
    return Run({"n": n, "layer": "rmw"}, Result("r", doc), {"twice": "2 * v('iops')"})


def test_values_of_runs_are_those_of_their_documents() -> None:
    """What does not apply is 0; computed ones may use others; the only run is one."""
    runs = Runs("e", [a_run(1, iops=3.0, cleaning={"count": 7}), a_run(2, iops=4.0)])
    assert (runs.values("cleaning.count"), runs.values("twice")) == ([7.0, 0.0], [6.0, 8.0])
    assert (runs.where(n="2").value("iops"), runs[0].value("iops.more")) == (4.0, 0.0)
    for ask in (lambda: runs.where(n=3), lambda: runs.value("iops")):
        with pytest.raises(InputError, match="experiment e: "):
            ask()


def test_response_times_are_in_milliseconds_from_a_time_on() -> None:
    """Requests that arrive at that very time count; ascending."""
    requests = pa.table(
        {"arrival_ns": [0, 10**9, 2 * 10**9], "completion_ns": [5_000_000, 10**9 + 3_000_000, 2 * 10**9 + 1]}
    )
    run = Run({}, cast("Any", SimpleNamespace(requests=lambda: requests)))
    assert run.responses() == [1e-6, 3.0, 5.0]
    assert run.responses(1.0) == [1e-6, 3.0]


def test_a_claim_is_judged_at_its_scale() -> None:
    """And where all that it uses was run; partly, where it says how."""
    paper = cast("Any", SimpleNamespace(id="p"))
    runs = {"e": Runs("e", [a_run(1, iops=3.0)])}

    def verdict(scale: str = "full", absent: Any = None, **more: Any) -> tuple[str, str, str]:
        of = {"holds": "x > 5", "ours": "{x:.0f}", "let": {"x": "e.value('iops')"}, **more}
        found = claims.judge(paper, Claim("c", "s", "p", "t", **of), runs, absent or {}, scale)
        return found.verdict, found.ours, found.why

    assert [verdict(holds=f"x > {n}", partly="x > 2")[0] for n in (2, 3, 5)] == ["reproduced", "partly", "partly"]
    assert verdict(why="is {x}") == ("not", "3", "is 3.0")
    assert verdict(only="full") == ("not", "3", "")
    assert verdict("quick", only="full") == ("not run", "", "only at full scale")
    assert verdict(absent={"e": "no trace", "f": "other"}) == ("not run", "", "no trace")
    # What only `partly` asks for is asked for.
    assert verdict(partly="g.value('iops') > 2", absent={"g": "no trace"}) == ("not run", "", "no trace")


def test_a_plan_of_a_paper_leaves_out_what_it_cannot_run(tmp_path: Path) -> None:
    """What was not asked for, what the program lacks, what needs a trace that is not there: each with its reason."""
    spec = {"drive": "tiny", "layer": "cmr", "trace": ["synth:uniform"]}
    experiments = (
        Experiment("a", "", spec, grid={"seed": [1, 2]}), Experiment("b", "", spec, missing="no such thing"),
        Experiment("c", "", spec, needs=("t.csv",)),
    )  # fmt: skip
    paper = cast("Any", SimpleNamespace(id="p", folder=tmp_path, experiments=experiments, scale={}, names={}))
    found, absent = _plan(paper, "quick", tmp_path, None, ())
    assert [(p.experiment.id, p.point) for p in found] == [("a", {"seed": 1}), ("a", {"seed": 2})]
    assert absent == {"b": "no such thing", "c": "the trace t.csv is not there (--traces DIR)"}
    found, absent = _plan(paper, "quick", tmp_path, None, ["c"])
    assert (found, absent["a"], absent["b"]) == ([], NOT_ASKED, NOT_ASKED)


def test_texts_of_a_papers_page() -> None:
    """Backticks are code, markup is text; the command makes this very page; per cent are numbers."""
    assert page._prose("`a<b` & `c`") == "<code>a&lt;b</code> &amp; <code>c</code>"

    def of(scale: str, traces: Path | None) -> str:
        found = SimpleNamespace(paper=SimpleNamespace(id="p"), scale=scale, traces=traces)
        return page.command(cast("Any", found), "f")

    assert of("quick", None) == "smrlab paper run p --quick --figure f"
    assert of("full", Path("t")) == "smrlab paper run p --figure f --traces t"
    assert [figures._number(v) for v in ("5%", 7, "0.5")] == [5.0, 7.0, 0.5]
    assert [figures._cell(v) for v in (3.0, 3.14159, 12345.6, -0.5)] == ["3", "3.142", "12346", "-0.5"]


def test_the_page_of_a_record_has_the_larger_scale_first() -> None:
    """A bar in a text ends no cell; of one verdict at both scales the larger one's reason is told."""

    def row(verdict: str, why: str, ours: str = "5") -> dict[str, str]:
        return {"verdict": verdict, "ours": ours, "why": why}

    found = {
        "quick": {"c1": row("not", "few"), "c2": row("partly", "small"), "c3": row("not run", "", "")},
        "full": {"c1": row("not", "many"), "c2": row("reproduced", "")},
    }
    each = [SimpleNamespace(id=f"c{n}", statement=f"a | b{n}", paper="p", tolerance="t") for n in (1, 2, 3)]
    paper = SimpleNamespace(id="p", title="T", citation="C", setting="S", claims=each)
    lines = record.markdown(cast("Any", paper), found).splitlines()
    assert "| claim | what it says | full scale | quick scale |" in lines
    assert "| [c1](#c1) | a \\| b1 | **not** | **not** |" in lines
    assert [line for line in lines if line in ("- many", "- few", "- small")] == ["- many", "- small"]
    assert "Not run on these: c3." in lines


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
