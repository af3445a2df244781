"""What papers and studies draw and tabulate, against numbers that were worked out by hand."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from drawn import bars, named, rows, saved
from matplotlib.figure import Figure

from smrlab import InputError
from smrlab.papers import figures as papers
from smrlab.papers import paper
from smrlab.papers.runs import Run, Runs
from smrlab.plots import style
from smrlab.sweeps import summary
from smrlab.sweeps import table as sweep_table


def of(doc: dict[str, Any], tables: dict[str, pa.Table] | None = None, **point: Any) -> Run:
    found = tables or {}
    result: Any = SimpleNamespace(
        doc=doc, timeline=lambda: found["timeline"], requests=lambda: found["requests"], table=found.get
    )
    return Run(point, result)


def figure(kind: str, **more: Any) -> paper.Figure:
    return paper.Figure(id="f", title="t", experiment="e", kind=kind, unit="u", **more)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were saved."""
    saved: list[Figure] = []
    monkeypatch.setattr(style, "save_svg", lambda drawing, _: saved.append(drawing))
    return saved


POINTS = (("10%", "x", 1.5), ("20%", "x", 2.5), ("10%", "7", 3.0), ("20%", "7", 4.0))
GRID = Runs("e", [of({"a": {"b": y}, "c": 2 * y}, size=size, layer=layer) for size, layer, y in POINTS])


def test_lines_of_a_paper_are_its_points_and_its_levels(tmp_path: Path, kept: list[Figure]) -> None:
    wanted = figure(
        "lines", y="a.b", x="size", x_unit="MB", series="layer", levels=("l", "no"), names={"x": "X", "l": "L"}
    )
    others = {"e": GRID, "l": Runs("l", [of({"a": {"b": 9.0}})])}
    path = papers.draw(wanted, others, tmp_path)
    assert path == tmp_path / "f.svg"
    assert rows(tmp_path / "f.csv") == [
        ["series", "size", "a.b"],
        ["X", "10.0", "1.5"],
        ["X", "20.0", "2.5"],
        ["layer 7", "10.0", "3.0"],
        ["layer 7", "20.0", "4.0"],
        ["L", "10.0", "9.0"],
        ["L", "20.0", "9.0"],
    ]
    (axes,) = kept[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel(), named(kept[0])) == ("size [MB]", "u", ["X", "layer 7", "L"])
    assert [line.get_marker() for line in axes.lines] == [style.MARKERS[0], style.MARKERS[1], ""]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["10", "20"]
    assert axes.get_ylim()[0] == 0


def test_a_level_goes_from_the_first_place_to_the_last() -> None:
    """Whatever lies between, and in whichever order the runs are."""
    runs = Runs("e", [of({"a": {"b": n}}, size=size, layer="x") for n, size in enumerate(("4", "1", "30", "2"))])
    wanted = figure("lines", y="a.b", x="size", series="layer", levels=("l",))
    *_, level = papers.series(wanted, runs, {"l": Runs("l", [of({"a": {"b": 9.0}})])})
    assert level == ("l", [1, 30], [9, 9])


def test_keys_are_lines_of_their_own_and_axes_are_what_is_asked_for(tmp_path: Path, kept: list[Figure]) -> None:
    wanted = figure("lines", keys={"b": "a.b", "c": "c"}, x="size", where={"layer": "x"}, log=True, log_x=True)
    papers.draw(wanted, {"e": GRID}, tmp_path)
    named_rows = rows(tmp_path / "f.csv")
    assert named_rows[0] == ["series", "size", "value"]
    assert [r[0] for r in named_rows[1:]] == ["b", "b", "c", "c"]
    assert [r[2] for r in named_rows[1:]] == ["1.5", "2.5", "3.0", "5.0"]
    (axes,) = kept[0].axes
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_xlabel()) == ("log", "log", "size")
    both = figure("lines", keys={"b": "a.b"}, x="size", x_label="how large", series="layer")
    papers.draw(both, {"e": GRID}, tmp_path)
    assert {r[0] for r in rows(tmp_path / "f.csv")[1:]} == {"x, b", "layer 7, b"}
    assert kept[1].axes[0].get_xlabel() == "how large"


def test_curves_are_lists_of_each_run(tmp_path: Path, kept: list[Figure]) -> None:
    runs = Runs("e", [of({"x": [1, 2], "y": [3, 4], "z": [5, 6]}, layer="l")])
    papers.draw(figure("curves", x="x", y="y", series="layer"), {"e": runs}, tmp_path)
    assert rows(tmp_path / "f.csv") == [["series", "x", "y"], ["l", "1", "3"], ["l", "2", "4"]]
    assert kept[0].axes[0].lines[0].get_marker() == ""
    papers.draw(figure("curves", x="x", keys={"first": "y", "second": "z"}), {"e": runs}, tmp_path)
    assert [r[0] for r in rows(tmp_path / "f.csv")[1:]] == ["first", "first", "second", "second"]


def test_bars_stand_side_by_side(tmp_path: Path, kept: list[Figure]) -> None:
    papers.draw(figure("bars", y="a.b", x="size", series="layer", log=True), {"e": GRID}, tmp_path)
    assert rows(tmp_path / "f.csv") == [
        ["bar", "size", "value"],
        ["x", "10%", "1.5"],
        ["x", "20%", "2.5"],
        ["7", "10%", "3.0"],
        ["7", "20%", "4.0"],
    ]
    (axes,) = kept[0].axes
    # Two bars share 0.8 of a place; a bar is 0.92 of its share, about its middle.
    middles = [[round(left + width / 2, 9) for left, _, width, _ in group] for group in bars(axes)]
    assert middles == [[-0.2, 0.8], [0.2, 1.2]]
    assert [b[2] for group in bars(axes) for b in group] == pytest.approx([0.4 * 0.92] * 4)
    assert [[b[3] for b in group] for group in bars(axes)] == [[1.5, 2.5], [3, 4]]
    assert (axes.get_yscale(), axes.get_ylabel(), named(kept[0])) == ("log", "u", ["x", "7"])
    assert [t.get_text() for t in axes.get_xticklabels()] == ["10%", "20%"]
    assert axes.get_xticklabels()[0].get_rotation() == 0
    papers.draw(figure("bars", keys={"B": "a.b", "C": "c"}, x="size", where={"layer": "x"}), {"e": GRID}, tmp_path)
    assert [r[::2] for r in rows(tmp_path / "f.csv")[1:]] == [["B", "1.5"], ["B", "2.5"], ["C", "3.0"], ["C", "5.0"]]
    long = Runs("e", [of({"a": 1.0}, size=n * 46) for n in "ab"])
    papers.draw(figure("bars", y="a", keys={"A": "a"}, x="size"), {"e": long}, tmp_path)
    assert kept[2].axes[0].get_xticklabels()[0].get_rotation() == 35


def timeline_of(values: list[float | None]) -> pa.Table:
    return pa.table({"start_s": [2.0 * i for i in range(len(values))], "n": pa.array(values, pa.float64())})


def test_windows_are_rates_where_iops_are_asked_for(tmp_path: Path, kept: list[Figure]) -> None:
    runs = Runs("e", [of({}, {"timeline": timeline_of([4.0, None, 8.0, 2.0])}, layer=name) for name in ("p", "q")])
    wanted = paper.Figure(
        id="f", title="t", experiment="e", kind="windows", unit="IOPS", y="n", series="layer", until_s=6
    )
    papers.draw(wanted, {"e": runs}, tmp_path)
    assert rows(tmp_path / "f.csv")[:4] == [
        ["series", "time_s", "n"],
        ["p", "0.0", "2.0"],
        ["p", "2.0", "0.0"],
        ["p", "4.0", "4.0"],
    ]
    assert len(rows(tmp_path / "f.csv")) == 1 + 2 * 3
    panels = kept[0].axes
    assert [a.get_title(loc="left") for a in panels] == ["p", "q"]
    assert [a.get_xlabel() for a in panels] == ["", "time [s]"]
    assert panels[0].get_ylim()[0] == 0
    papers.draw(figure("windows", y="n", where={"layer": "q"}), {"e": runs}, tmp_path)
    assert rows(tmp_path / "f.csv")[1:] == [
        ["e", *r] for r in (["0.0", "4.0"], ["2.0", "0.0"], ["4.0", "8.0"], ["6.0", "2.0"])
    ]


def test_the_window_in_which_a_run_ends_is_left_out(tmp_path: Path) -> None:
    for ended, seen in ((5.0, 2), (6.0, 3)):
        runs = Runs("e", [of({"makespan_s": ended}, {"timeline": timeline_of([4.0, 4.0, 2.0])})])
        papers.draw(figure("windows", y="n"), {"e": runs}, tmp_path)
        assert len(rows(tmp_path / "f.csv")) == 1 + seen


def test_responses_are_counted_on_four_scales(tmp_path: Path, kept: list[Figure]) -> None:
    """Bins of 1, 10, 100 and 1000 ms, of which there are 40."""
    ms = [0.5, 0.75, 39.5, 41.0, 350.0]
    table = pa.table({"arrival_ns": [0] * 5, "completion_ns": [int(v * 1e6) for v in ms]})
    runs = Runs("e", [of({}, {"requests": table}, layer="p"), of({}, {"requests": table}, layer="q")])
    papers.draw(figure("histograms", where={"layer": "p"}), {"e": runs}, tmp_path)
    assert (len(rows(tmp_path / "f.csv")), rows(tmp_path / "f.csv")[1][0]) == (1 + 4 * 40, "e")
    kept.clear()
    papers.draw(figure("histograms", series="layer"), {"e": runs}, tmp_path)
    counted = [
        (float(w), float(at), int(n)) for name, w, at, n in rows(tmp_path / "f.csv")[1:] if name == "p" and n != "0"
    ]
    assert counted == [
        (1, 0, 2), (1, 39, 1),
        (10, 0, 2), (10, 30, 1), (10, 40, 1), (10, 350, 1),
        (100, 0, 4), (100, 300, 1),
        (1000, 0, 5),
    ]  # fmt: skip
    assert len(rows(tmp_path / "f.csv")) == 1 + 2 * 4 * 40
    panels = kept[0].axes
    assert [a.get_xlabel() for a in panels] == [f"ms, bins of {w}" for w in (1, 10, 100, 1000)]
    assert ([a.get_ylabel() for a in panels], named(kept[0])) == (["u", "", "", ""], ["p", "q"])


def test_a_papers_table_has_our_rows_before_its_own(tmp_path: Path) -> None:
    table = paper.Table(
        id="t", title="t", experiment="e", row="size, layer", columns={"B": "a.b", "C": "c", "none": "q"},
        also=("l", "gone"), paper=({"name": "FTL", "B": 4},),
    )  # fmt: skip
    cells = papers.tabulate(table, {"e": GRID, "l": Runs("l", [of({"a": {"b": 12345.6}, "c": 0.012345})])}, tmp_path)
    assert cells == [
        ["size, layer", "B", "C", "none"],
        ["10%, x", "1.5", "3", "0"],
        ["20%, x", "2.5", "5", "0"],
        ["10%, 7", "3", "6", "0"],
        ["20%, 7", "4", "8", "0"],
        ["l", "12346", "0.01235", "0"],
        ["paper: FTL", "4", "", ""],
    ]
    assert rows(tmp_path / "t.csv") == cells
    with pytest.raises(InputError, match="figure f: unknown kind 'pie'"):
        papers.draw(figure("pie"), {"e": GRID}, tmp_path)


def test_runs_of_a_paper_are_found_by_their_place_in_the_grid() -> None:
    assert GRID.where(size="20%").values("a.b") == [2.5, 4.0]
    assert GRID.where(size="20%", layer=7).value("c") == 8.0
    with pytest.raises(InputError, match="experiment e: no run at"):
        GRID.where(size="30%")
    with pytest.raises(InputError, match="experiment e: 4 runs where one is meant"):
        GRID.value("c")
    computed = Run({}, of({"a": 3}).result, {"twice": "2 * v('a')", "most": "max(v('a'), v('none'))"})
    assert [computed.value(k) for k in ("twice", "most", "a", "none")] == [6, 3, 3, 0]


def test_responses_and_windows_of_a_run_are_those_that_were_asked_for() -> None:
    requests = pa.table(
        {"arrival_ns": [0, 10**9, 2 * 10**9], "completion_ns": [7 * 10**6, 1_003_000_000, 2_000_500_000]}
    )
    one = of({}, {"requests": requests, "timeline": timeline_of([4.0, None])})
    assert (one.responses(), one.responses(1.0), one.responses(1.5)) == ([0.5, 3, 7], [0.5, 3], [0.5])
    assert one.windows("n") == [4.0, 0.0]


def test_a_legend_of_a_study_has_whole_names_that_fit_into_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 75 characters a name is told whole; of longer ones what tells them apart."""
    seen = saved(monkeypatch)
    for length in (75, 76):
        stem = "x" * (length - len("s-block,cache=,a"))
        names = [f"s-block,cache={stem},{end}" for end in "ab"]
        table = pa.Table.from_pylist([{"on": 1, "layer": name, "iops": 8.0} for name in names])
        sweep_table.plot(table, "iops", "on", tmp_path / "p.svg", "layer")
        (legend,) = seen.pop().legends
        shown = names if length == 75 else ["a", "b"]
        told = [" ".join(t.get_text().split()) for t in legend.get_texts()]
        assert told == [f"layer: {name}" for name in shown]


def test_a_plot_of_a_study_stands_where_its_numbers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = saved(monkeypatch)
    ran = (("1GiB", "b", 8.0), ("64MiB", "a", 1.0), ("64MiB", "a", 3.0), ("1GiB", "a", 400.0), ("4MiB", "a", 5.0))
    table = pa.Table.from_pylist(
        [{"cache": cache, "layer": layer, "iops": iops, "stalls.count": None} for cache, layer, iops in ran]
    )
    sweep_table.plot(table, "iops", "cache", tmp_path / "p.svg", "layer")
    assert rows(tmp_path / "p.csv") == [
        ["cache", "layer", "iops", "least", "most", "rows"],
        ["4MiB", "a", "5.0", "5.0", "5.0", "1"],
        ["64MiB", "a", "2.0", "1.0", "3.0", "2"],
        ["1GiB", "a", "400.0", "400.0", "400.0", "1"],
        ["1GiB", "b", "8.0", "8.0", "8.0", "1"],
    ]
    (axes,) = seen[0].axes
    line = axes.containers[0]
    assert np.asarray(line[0].get_xdata()).tolist() == [2**22, 2**26, 2**30]
    assert np.asarray(line[0].get_ydata()).tolist() == [5, 2, 400]
    (whiskers,) = line[2]
    assert [tuple(p[1] for p in part) for part in whiskers.get_segments()] == [(5, 5), (1, 3), (400, 400)]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log"), "from 4 to 1024, and from 2 to 400"
    assert [t.get_text() for t in axes.get_xticklabels()] == ["4MiB", "64MiB", "1GiB"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("cache", "IOPS (requests/s)")
    (legend,) = seen[0].legends
    assert [t.get_text() for t in legend.get_texts()] == ["layer: a", "layer: b"]
    # Words stand beside each other, in one line; what did not happen is 0.
    sweep_table.plot(table, "stalls.count", "layer", tmp_path / "q.svg")
    assert rows(tmp_path / "q.csv")[1:] == [["a", "", "0.0", "0", "0", "4"], ["b", "", "0.0", "0", "0", "1"]]
    (axes,) = seen[1].axes
    assert np.asarray(axes.containers[0][0].get_xdata()).tolist() == [0, 1]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    assert (axes.get_ylim()[0], axes.get_legend()) == (0, None)
    with pytest.raises(InputError, match=r"no column 'none'; it has: cache, layer, iops, stalls\.count"):
        sweep_table.plot(table, "none", "cache", tmp_path / "p.svg")
    with pytest.raises(InputError, match="column 'layer' of the sweep is of texts: name one of numbers"):
        sweep_table.plot(table, "layer", "cache", tmp_path / "p.svg")
    for file in ("p.xyz", "none/p.svg"):
        with pytest.raises(InputError, match=f"{file}: write .svg, .pdf, .png into a folder that is there"):
            sweep_table.plot(table, "iops", "cache", tmp_path / file)
    called = [sweep_table.called(name) for name in ("layer.cache_size", "scale_time")]
    assert called == ["cache size (layer)", "scale time"]


def test_pictures_of_a_study_leave_the_callers_own_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook goes on to show its figures where it did."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setattr(mpl, "use", None)
    runs: list[dict[str, Any]] = [{"on": on, "iops": 8.0 * on} for on in (1, 2, 3)]
    sweep_table.plot(pa.Table.from_pylist(runs), "iops", "on", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert summary.picture(summary.measured(runs, "iops", ["on"])).startswith(b"<?xml")


def test_interleaved_single_requests_cannot_switch_tracks_more_often_than_pure_has_requests() -> None:
    folder = Path(__file__).parents[2] / "papers" / "arrays-interleaving"
    recorded = tomllib.loads((folder / "verdicts.toml").read_text())
    for scale, verdicts in recorded.items():
        said = verdicts["000-A1"]
        ratio = float(said["ours"].split()[0])
        requests = float(said["why"].split("between two switches (")[1].split()[0])
        # Nearly every request finds the head elsewhere: a little less than one switch for each.
        assert ratio < requests < 1.5 * ratio, scale
