"""Pages and pictures that commands make, whole and by hand: of papers, traces, measured drives and studies."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from commands import Invoke
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Drawing

from smrlab import InputError, _core, plots, targets
from smrlab.cli import geometry, picture, study
from smrlab.papers import page, record
from smrlab.papers.claims import Verdict
from smrlab.papers.paper import Claim, Experiment, Figure, Paper, Table
from smrlab.papers.reproduce import NOT_ASKED, Reproduction
from smrlab.papers.runs import Run, Runs
from smrlab.plots import outside, style
from smrlab.results import Result
from smrlab.sweeps import plan, summary
from smrlab.sweeps.grid import Point
from smrlab.trace_info import TraceInfo

CLAIMS = tuple(
    Claim(i, f"says `{i}`", "5", "t", "True", "", figure=figure)
    for i, figure in (("A", "f"), ("B", "t"), ("C", None), ("D", None))
)
PAPER = Paper(
    id="p", title="A & B", citation="c<1>", setting="a `setting`", folder=Path("/x/papers/p"),
    experiments=(
        Experiment("e", "about `e`", {}, grid={"n": [1, 2]}), Experiment("g", "g", {}, measure="m.py:f"),
        Experiment("h", "h", {}),
    ),
    figures=(Figure(id="f", title="F1", experiment="e", kind="lines", unit="u", x="n", y="iops", levels=("g",)),),
    tables=(
        Table(id="t", title="T1", experiment="g", row="n", columns={"of": "iops"}, also=("e",)),
        Table(id="no", title="T2", experiment="h", row="n", columns={}),
    ),
    claims=CLAIMS,
)  # fmt: skip


def reproduction() -> Reproduction:
    """Two runs of `e`, one of `g`; none of `h`. Claim D was not asked for."""
    runs = {
        "e": Runs("e", [Run({"n": n}, Result("r", {"iops": 10.0 * n})) for n in (1, 2)]),
        "g": Runs("g", [Run({"n": 7}, Result("r", {"iops": 0.25}))]),
    }
    words = {"A": "reproduced", "B": "not", "C": "not run", "D": "not run"}
    whys = {"C": "no `x`", "D": NOT_ASKED}
    verdicts = [
        Verdict(c.id, c.statement, c.paper, f"ours {c.id}", c.tolerance, words[c.id], whys.get(c.id, ""))
        for c in CLAIMS
    ]
    specs: dict[str, dict[str, Any]] = {"e": {"drive": "tiny", "seeds": [1, 2]}, "g": {"on": True, "of": {"a": "b"}}}
    return Reproduction(PAPER, "quick", None, runs, verdicts, specs)


def texts(page_of: str) -> str:
    """What a reader of a page sees, a blank between parts; words that are set apart are there."""
    assert re.findall(r"<(em|strong|code|p|h[1-6]|pre|figcaption)\b[^>]*></\1>", page_of) == []
    return " ".join(
        html.unescape(re.sub(r"<style>.*?</style>|<svg.*?</svg>|<[^>]+>", " ", page_of, flags=re.S)).split()
    )


def test_the_page_of_a_paper_has_each_figure_with_its_claims(tmp_path: Path) -> None:
    """What was not run is not drawn, what was not asked for is not told, and what has no figure comes last."""
    path = page.write_page(reproduction(), tmp_path / "p")
    made = path.read_text()
    head = "claim statement paper ours accepted verdict"
    assert (path.name, made.count("<svg")) == ("p.html", 1)
    assert texts(made) == " ".join(
        f"""A & B A & B c<1> a setting smrlab paper run p --quick
        F1 about e smrlab paper run p --quick --figure f specification
        # 2 runs; the first one's specification: drive = "tiny" seeds = [1, 2] # n: 1, 2
        {head} A says A 5 ours A t reproduced
        T1 n of 7 0.25 1 10 g smrlab paper run p --quick --figure t specification
        # 1 run; the first one's specification: # measured by papers/p/m.py:f on = true of = {{ a = "b" }}
        {head} B says B 5 ours B t not
        Other claims {head} C says C no x 5 ours C t not run""".split()
    ).replace("7 0.25 1 10", "7 0.25 e 10")
    drawn = reproduction()
    assert drawn.verdicts.pop(2).id == "C"
    beside = dataclasses.replace(drawn.paper, claims=tuple(c for c in drawn.paper.claims if c.id != "C"))
    assert "Other claims" not in page.write_page(dataclasses.replace(drawn, paper=beside), tmp_path / "q").read_text()
    assert [made.count(f"<tr class='{kind}'>") for kind in ("reproduced", "not", "not-run")] == [1, 1, 1]
    assert page.write_index([(PAPER, reproduction().verdicts, path)], tmp_path) == tmp_path / "index.html"
    index = (tmp_path / "index.html").read_text()
    assert "<a href='p/p.html'>A &amp; B</a>" in index
    assert texts(index).endswith("A & B 1 reproduced, 1 not, 2 not run")


def test_a_figure_needs_what_it_draws_and_what_its_claims_use() -> None:
    """Lines at a level and rows beside are drawn, too."""
    assert [PAPER.experiments_of(part) for part in ("f", "t", "no")] == [["e", "g"], ["e", "g"], ["h"]]
    with pytest.raises(InputError, match="p has no figure 'x': one of f, t, no"):
        PAPER.experiments_of("x")


def test_a_record_tells_what_each_scale_found() -> None:
    """A claim that one scale has not run is told by the other; of one verdict the larger scale's reason."""
    full = {
        "A": {"verdict": "partly", "ours": "1", "why": "at full"}, "B": {"verdict": "not run", "ours": "", "why": "x"},
        "C": {"verdict": "not", "ours": "3", "why": ""}, "D": {"verdict": "not run", "ours": "", "why": ""},
    }  # fmt: skip
    quick = {
        "A": {"verdict": "partly", "ours": "2", "why": "at quick"}, "B": {"verdict": "not", "ours": "", "why": "why"},
        "D": {"verdict": "not run", "ours": "", "why": ""},
    }  # fmt: skip
    told = record._part(PAPER, {"full": full, "quick": quick}, "z-")
    assert told == [
        "| claim | what it says | full scale | quick scale |", "|---|---|---|---|",
        "| [A](#z-a) | says `A` | **partly** | **partly** |", "| [B](#z-b) | says `B` | **not run** | **not** |",
        "| [C](#z-c) | says `C` | **not** |  |",
        "", "Not run on these: D.",
        "", '<a id="z-a"></a>**A. says `A`.**', "", "- paper: 5", "- accepted: t", "- full scale: 1: **partly**",
        "- quick scale: 2: **partly**", "- at full",
        "", '<a id="z-b"></a>**B. says `B`.**', "", "- paper: 5", "- accepted: t", "- x", "- why",
        "", '<a id="z-c"></a>**C. says `C`.**', "", "- paper: 5", "- accepted: t", "- full scale: 3: **not**",
    ]  # fmt: skip


def test_a_trace_is_told_with_its_picture(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is a grid."""
    cells = [{"reads": 0, "writes": 0} for _ in range(256)]
    cells[1]["reads"] = 3
    doc: dict[str, Any] = {"requests": 3, "reads": 3, "span_s": 2.5, "max_offset_bytes": 4096}
    picture.show("a.csv", TraceInfo(doc))
    plain = capsys.readouterr().out
    assert (plain.split()[0], "Requests by time" in plain) == ("a.csv", False)
    picture.show("a.csv", TraceInfo({**doc, "grid": {"cells": cells, "column_ns": 10**9, "row_blocks": 8}}))
    told = capsys.readouterr().out
    assert " ".join(told.split()).startswith("a.csv requests 3 reads 3 duration 2.5 s highest address 4 KiB")
    assert told.splitlines()[-3:] == ["    4 KiB │ █ ", "        0 └───", "           0 2.5 s"]


def test_what_was_validated_is_kept(smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document, and both pictures."""
    part = {"demerit_ms": 1.5}
    doc = {"layer": "cmr", **part, "reads": part, "writes": part}
    monkeypatch.setattr(_core, "validate", lambda *_: (json.dumps(doc), [(True, 1_000_000, 2_000_000)]))
    ended = smrlab("validate", "d", "t", "--out", tmp_path / "o", "--json")
    assert ended.json() == {"schema": 1, **doc}
    assert json.loads((tmp_path / "o/result.json").read_text()) == doc
    assert sorted(p.name for p in (tmp_path / "o").glob("*.svg")) == ["differences.svg", "distribution.svg"]


def test_a_measurement_is_shown_as_what_it_is(smrlab: Invoke, tmp_path: Path) -> None:
    """A drive, or what was extracted from one; anything else is refused."""
    doc = smrlab("geometry", "show", "tiny", "--json").json()
    (tmp_path / "x.json").write_text(json.dumps(doc))
    assert smrlab("geometry", "show", tmp_path / "x.json", "--json").json() == doc
    ended = smrlab("geometry", "show", tmp_path / "x.json", "--out", tmp_path / "o")
    assert f"figures: {tmp_path}/o/*.svg" in "".join(ended.out.split("\n"))
    drawn = {p.stem for p in (tmp_path / "o").iterdir()}
    assert drawn == {"zones"} | {name for name in ("seeks", "skew") if name.rstrip("s") in " ".join(doc)}
    (tmp_path / "x.json").write_text("{}")
    ended = smrlab("geometry", "show", tmp_path / "x.json")
    assert (ended.status, "not an extraction: it has no zones" in ended.err) == (2, True)


def test_data_are_asked_for_by_the_name_that_was_given(
    smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody can be asked, nothing is measured."""
    (tmp_path / "disk").write_bytes(bytes(4096))
    monkeypatch.setattr(targets, "resolve", lambda _: str(tmp_path / "disk"))
    for words in (("probe", "mine"), ("geometry", "extract", "mine")):
        ended = smrlab(*words, "--destroy")
        assert (ended.status, "--destroy loses all data on mine: add --yes" in " ".join(ended.err.split())) == (2, True)


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> dict[str, Drawing]:
    """Figures by the names under which they were saved."""
    made: dict[str, Drawing] = {}
    monkeypatch.setattr(style, "save_svg", lambda drawing, path: made.setdefault(Path(path).name, drawing))
    return made


def axes_of(figure: Drawing) -> list[tuple[str, str, str]]:
    """The labels of each panel, and whether it begins at 0."""
    return [(a.get_xlabel(), a.get_ylabel(), "from 0" if a.get_ylim()[0] == 0 else "") for a in figure.axes]


def test_pictures_of_a_measurement_have_their_units(saved: dict[str, Drawing]) -> None:
    """A cylinder's skew of a quarter of a turn of 8 ms is 2 ms a track, and begins again after four."""
    curve = [[1, 2e6], [9, 4e6]]
    doc = {
        "zones": [{"tracks": 3, "usable": 100}], "seek": {"read": curve, "write": curve}, "rpm": {"value": 7500.0},
        "skew": {"cylinder": {"value": 0.25}},
    }  # fmt: skip
    geometry._pictures(doc, Path())
    assert list(saved) == ["zones.svg", "seeks.svg", "skew.svg"]
    assert axes_of(saved["zones.svg"]) == [("track, in LBA order", "sectors", "from 0")]
    assert axes_of(saved["seeks.svg"]) == [("cylinders", "milliseconds", "from 0")]
    assert [label for label, *_ in axes_of(saved["skew.svg"])] == ["track, in LBA order"] * 2
    points = [list(cast("Any", a.lines[0].get_ydata())) for a in saved["skew.svg"].axes]
    assert (points[0][:6], [len(p) for p in points]) == ([0, 2, 4, 6, 0, 2], [1000, 100])
    assert [t.get_text() for of in saved["seeks.svg"].legends for t in of.get_texts()] == ["reads", "writes"]
    saved.clear()
    times = [[n, n / 10] for n in range(1000)]
    geometry._fitted({"runs": [[3, 100]], "measured": [[0, 99]], "curve": [[0, 98]], "times": times}, Path("a/b"), 500)
    assert list(saved) == ["b-zones.svg", "b-skew.svg"]
    near = list(cast("Any", saved["b-skew.svg"].axes[1].lines[0].get_xdata()))
    assert (near[0], near[-1]) == (500, 599)
    of_zones = [(of.get_marker(), of.get_linestyle()) for of in saved["b-zones.svg"].axes[0].lines]
    assert of_zones == [(".", "None"), ("None", "--")]
    named = [t.get_text() for of in saved["b-zones.svg"].legends for t in of.get_texts()]
    assert named == ["measured", "polynomial", "zones"]
    assert outside.zones([(3, 100)]).legends == []


def test_a_plan_measures_each_layer_that_nobody_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of its points, not the first ones alone; what there is no time for is taken to be like the others."""
    probed: list[list[int]] = []
    clock = iter([0.0, 1.0, plan.PATIENCE_S])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr(plan, "_known", lambda _: {"log": plan._Cost(1.0, 0.5, 10.0)})

    def measure(points: list[Point], _: float) -> plan._Cost:
        probed.append([p.settings["n"] for p in points])  # type: ignore[misc]
        return plan._Cost(3.0, 1.5, 30.0)

    monkeypatch.setattr(plan, "_probed", measure)
    many = [Point({"n": n}, {}) for n in range(100)]
    shares: list[float] = []
    costs, basis = plan._costs({"rmw": many, "log": many, "cmr": many[:1]}, cast("Any", "here"), shares.append)
    assert costs == {
        "rmw": plan._Cost(3.0, 1.5, 30.0),
        "log": plan._Cost(1.0, 0.5, 10.0),
        "cmr": plan._Cost(2.0, 1.0, 20.0),
    }
    assert (basis, shares) == ("the runs in here and 16 short runs", [0, 1 / 3, 2 / 3])
    assert probed == [[3 + 6 * i for i in range(16)]]


def test_what_requests_cost_is_the_difference_of_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of the points; one that fails says nothing, and a trace that ends early gives all to its requests."""
    took = {1: [(3.0, 100, 7), (12.0, 1000, 9)], 2: [(4.0, 50, 1), (4.0, 50, 3)]}

    def timed(point: Point, requests: int) -> tuple[float, int, int]:
        if point.settings["n"] == 3:
            raise InputError("no")
        return took[cast("int", point.settings["n"])][requests == plan.LONG]

    monkeypatch.setattr(plan, "_timed", timed)
    points = [Point({"n": n}, {}) for n in (1, 2, 3)]
    assert plan._probed(points, float("inf")) == plan._Cost((2.0 + 0.0) / 2, (0.01 + 0.08) / 2, (9 + 3) / 2)
    assert plan._probed(points[2:], float("inf")) == plan._Cost(0.0, 0.0, 0.0)
    assert plan._probed(points, 0.0) == plan._Cost(2.0, 0.01, 9.0)


def test_a_study_is_told_in_lines() -> None:
    """Before it runs, while it does, and after."""
    told = {
        "runs": 12, "done": 3, "requests": 1_234_567, "cpu_s": 7200.0, "basis": "48 short runs",
        "memory_bytes_a_run": 3 << 30, "trace_bytes": 2048, "result_bytes": 5 << 20,
        "time_s": {"1": 7200.0, "64": 90.0},
    }  # fmt: skip
    assert [" ".join(line.split()) for line in study.plan(told)] == [
        "12 runs, 3 of them there; 1,234,567 requests", "processor time 2.0 h (by 48 short runs)",
        "memory a run 3 GiB at most, by estimate", "bytes 2 KiB of traces, read once a machine; 5 MiB of results",
        "on 1 core 2.0 h", "on 64 cores 1.5 min",
    ]  # fmt: skip
    at = {
        "runs": 9, "done": 4, "failed": 1, "left": 3, "runs_per_s": 0.5, "left_s": 120.0,
        "running": [{"host": "h", "settings": {"n": 1, "m": "x"}}], "failures": [{"settings": {}, "reason": "why"}],
    }  # fmt: skip
    assert list(study.status(at)) == [
        "9 runs: 4 done, 1 running, 1 failed, 3 left", "0.5 runs/s, 2.0 min left", "running on h: n=1 m=x",
        "failed: the only point: why",
    ]  # fmt: skip


def test_the_picture_of_a_summary_has_a_panel_for_each_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three beside each other; six names of values at most; a band from the least to the most about the mean."""
    rows = [{f"s{k}": n % (k + 2) for k in range(4)} | {"layer.x": n, "iops": 1.0 + n} for n in range(8)]
    found = summary.measured(rows, "iops", [*(f"s{k}" for k in range(4)), "layer.x"])
    made: list[Drawing] = []
    monkeypatch.setattr(FigureCanvasSVG, "print_svg", lambda self, *_, **__: made.append(self.figure))
    summary.picture(found)
    (figure,) = made
    assert figure.get_size_inches().tolist() == pytest.approx([3 * 3.4, 2 * 2.8])
    panels = [a for a in figure.axes if a.get_visible()]
    assert (len(panels), len(figure.axes)) == (5, 6)
    assert panels[0].get_title() == "x (layer): 100%"
    assert [a.get_ylabel() for a in figure.axes] == ["IOPS (requests/s)", "", ""] * 2
    assert [t.get_text() for t in panels[0].get_xticklabels()] == ["0", "2", "4", "6"]
    assert list(cast("Any", panels[0].lines[0].get_ydata())) == [1.0 + n for n in range(8)]
    by = next(a for a in panels if a.get_title().startswith("s0"))
    (band,) = by.collections
    corners = {(x, y) for x, y in cast("Any", band.get_paths()[0].vertices).tolist()}
    assert corners == {(0, 1), (0, 7), (1, 2), (1, 8)}


def test_each_figure_has_a_method_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which draws it, and saves it where that is asked for."""
    drawn: list[tuple[str, str]] = []

    def noted(name: str) -> Any:
        return lambda payload: (payload, name)

    monkeypatch.setattr(plots, "FIGURES", {name: noted(name) for name in plots.FIGURES})
    monkeypatch.setattr(plots, "runs_payload", lambda runs: f"of {len(runs)}")
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append((figure[1], str(path))))
    plotter = plots.Plotter([cast("Any", "a"), cast("Any", "b")])
    methods = [name for name in dir(plots.Plotter) if not name.startswith("_") and name not in ("draw", "save_all")]
    assert {getattr(plotter, name)("x.svg") for name in methods} == {
        ("of 2", name.replace("_", "-")) for name in methods
    }
    assert sorted(drawn) == [(name.replace("_", "-"), "x.svg") for name in sorted(methods)]


def test_what_mattered_is_told_of_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the usual metrics those that differ; of settings those that vary, alike ones without a picture."""
    rows = [
        {"status": "done", "n": n, "m": 1, "iops": 50.0, "response_ms.mean": float(n), "write_amplification": 1.0}
        for n in (1, 2, 3)
    ]
    wrote: dict[str, bytes] = {}
    index = {"points": [{"settings": {"n": 1, "m": 1}}]}
    store = cast("Any", SimpleNamespace(document=lambda _: index, write=wrote.__setitem__))
    monkeypatch.setattr(summary, "results_table", lambda _: pa.Table.from_pylist([*rows, {"status": "failed"}]))
    monkeypatch.setattr(summary, "picture", lambda found: found["metric"].encode())
    document, _ = summary.write_summary(store)
    assert (document["runs"], [m["metric"] for m in document["metrics"]]) == (3, ["response_ms.mean"])
    assert [e["setting"] for e in document["metrics"][0]["settings"]] == ["n"]
    assert list(wrote) == ["summary-response_ms.mean.svg", "summary.json", "summary.md"]
    assert json.loads(wrote["summary.json"]) == document
    wrote.clear()
    summary.write_summary(store, ["iops"])
    assert list(wrote) == ["summary.json", "summary.md"]
    for row in rows:
        row["n"] = 1
    with pytest.raises(InputError, match="nothing varies in this sweep"):
        summary.write_summary(store)
