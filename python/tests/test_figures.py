"""What figures draw: every curve, bar and axis against numbers that were worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from drawn import bars, curves, named
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from smrlab import payload, report, results
from smrlab.plots import FIGURES, figures, style

MINUTES = [60.0, 120.0, 600.0]


def run(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "timeline": None, "histogram": None, "heat": None, "drives": None, "doc": {}, **more}


def timed(name: str, times: list[float] = MINUTES, **series: Any) -> dict[str, Any]:
    return run(name, timeline={"t": times, **series})


def drawn(name: str, *runs: dict[str, Any]) -> Figure:
    figure = FIGURES[name](list(runs))
    assert figure is not None
    return figure


@pytest.mark.parametrize(
    ("name", "series", "factor", "label", "log"),
    [
        ("iops", "iops", 1, "requests completed (1/s)", False),
        ("response", "mean", 1, "mean response time", True),
        ("response-max", "max", 1, "longest response time", True),
        ("write-amplification", "wa", 1, "media blocks written\nper host block written", False),
        ("cleaning", "clean", 100, "time spent cleaning (%)", False),
        ("stalls", "stalled", 100, "time with a stalled request (%)", False),
        ("cache", "cache", 100, "cache fill (%)", False),
        ("backlog", "backlog", 1, "requests waiting", False),
        ("head", "head", 1, "head position (track)", False),
    ],
)
def test_a_series_is_drawn_over_time(name: str, series: str, factor: float, label: str, log: bool) -> None:
    """Of three runs one lacks the series. The first takes more than four times as long: the axis is for the other."""
    other: dict[str, Any] = {
        key: [9.0] * 3 for key in ("iops", "mean", "max", "wa", "clean", "stalled", "cache", "backlog", "head")
    }
    first = timed("first", **{**other, series: [0.25, 0.5, None]})
    second = timed("second", [30.0, 60.0, 90.0], **{**other, series: [0.125, 0.75, 0.5]})
    figure = drawn(name, first, timed("lacks it", x=[0.0] * 3), second)
    (axes,) = figure.axes
    (x, y), (x2, y2) = curves(axes)
    assert (x, y[:2], np.isnan(y[2])) == (MINUTES, [0.25 * factor, 0.5 * factor], True)
    assert (x2, y2) == ([30, 60, 90], [0.125 * factor, 0.75 * factor, 0.5 * factor])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (s)", label)
    assert axes.get_yscale() == ("log" if log else "linear")
    assert axes.get_xlim() == pytest.approx((-0.9, 90.9))
    assert log or axes.get_ylim()[0] == 0
    assert named(figure) == ["first", "second"]
    # A run keeps its colour in all figures, also where one before it is missing.
    assert [line.get_color() for line in axes.lines[::2]] == [style.COLORS[0], style.COLORS[2]]
    if log:
        assert axes.yaxis.get_major_formatter()(1000.0, 0) == "1 s"
    else:
        assert axes.yaxis.get_major_formatter()(1000.0, 0) == "1,000"
    assert FIGURES[name]([timed("lacks it", x=[0.0] * 3), run("has no time")]) is None


def test_what_stands_alone_is_a_dot_in_the_colour_of_its_run() -> None:
    (axes,) = drawn("iops", timed("a", iops=[1.0, None, 3.0])).axes
    dots = axes.lines[1]
    assert (dots.get_marker(), dots.get_color()) == (".", style.COLORS[0])
    assert (np.asarray(dots.get_xdata()).tolist(), np.asarray(dots.get_ydata()).tolist()) == ([1, 10], [1, 3])
    assert axes.figure.legends == [], "one run needs no name"


def test_a_span_has_the_unit_in_which_it_has_a_few_steps() -> None:
    spans = (0.002, 2.9, 3, 179, 180, 10_799, 10_800, 259_199, 259_200)
    assert [figures.time_unit(s)[1] for s in spans] == ["ms", "ms", "s", "s", "min", "min", "h", "h", "d"]
    assert [figures.time_unit(s)[0] for s in (0.002, 3, 180, 10_800, 259_200)] == [1e-3, 1, 60, 3600, 86_400]


def test_the_head_goes_between_its_ends() -> None:
    (axes,) = drawn("head", timed("a", head=[5.0, 7.0, 6.0], head_min=[1.0, 2.0, 3.0], head_max=[9.0, 8.0, 7.0])).axes
    (band,) = axes.collections
    corners = {tuple(p) for p in np.asarray(band.get_paths()[0].vertices).tolist()}
    assert {(1, 1), (2, 2), (10, 3), (1, 9), (2, 8), (10, 7)} <= corners
    assert len(drawn("head", timed("a", head=[5.0, 7.0, 6.0])).axes[0].collections) == 0


def test_a_last_window_lived_as_long_as_the_run() -> None:
    """Of less than half a window nothing is told, but where it is all there is."""

    def lived(widths: list[float], until: float | None) -> list[float]:
        starts = np.cumsum([0.0, *widths[:-1]])
        found = payload.lived_widths(starts, np.array(widths, float), until)
        return [float(width) for width in np.nan_to_num(found, nan=-1)]

    for until, last in ((None, 10), (10, 10), (12.5, -1), (14.9, -1), (15, 5), (19, 9), (20, 10), (25, 10)):
        assert lived([10, 10], until) == [10, last]
    assert lived([20, 10], 26) == [20, -1], "half of a whole one"
    assert (lived([10], 1), lived([10], 30)) == ([1], [10])


def test_axes_of_panels_and_bands_are_for_the_run_that_is_not_much_longer() -> None:
    """As the curves of a series."""
    long, short = [60.0, 120.0, 60_000.0], [30.0, 60.0, 90.0]
    line: dict[str, Any] = {"zones_open": [1.0] * 3, "head": [5.0] * 3, "head_min": [1.0] * 3, "head_max": [9.0] * 3}
    both = timed("a", long, **line), timed("b", short, **line)
    for axes in drawn("zones", *both).axes:
        assert axes.get_xlim() == pytest.approx((-0.9, 90.9))
    (axes,) = drawn("head", *both).axes
    ends = [max(np.asarray(band.get_paths()[0].vertices)[:, 0]) for band in axes.collections]
    assert ends == [60_000, 90], "seconds, as the curves"


def test_the_drives_of_the_first_array_have_a_curve_each() -> None:
    each = [{"t": MINUTES, "busy": [0.5, 0.25, 1.0]}, {"t": MINUTES, "busy": [0.125] * 3}]
    figure = drawn("drives", run("alone"), run("array", drives=each), run("other", drives=each[:1]))
    assert [y for _, y in curves(figure.axes[0])] == [[50, 25, 100], [12.5] * 3]
    assert named(figure) == ["disk 0", "disk 1"]
    assert figure.axes[0].get_ylabel() == "time in which a drive worked (%)"
    assert FIGURES["drives"]([run("alone")]) is None


def test_zones_have_a_panel_for_each_of_their_series() -> None:
    """What did not happen is a line of zeroes."""
    zoned = timed("z", zones_open=[1.0, 2.0, 3.0], zones_full=[4.0, 5.0, 6.0], refused=[0.5, 0.0, 0.25])
    figure = drawn("zones", timed("plain", iops=[1.0] * 3), zoned, timed("y", zones_open=[9.0] * 3))
    panels = figure.axes
    labels = ["open zones", "full zones", "zone resets (1/s)", "refused requests (1/s)"]
    assert [a.get_ylabel() for a in panels] == labels
    assert [curves(a)[0][1] for a in panels] == [[1, 2, 3], [4, 5, 6], [0, 0, 0], [0.5, 0, 0.25]]
    assert curves(panels[0])[0][0] == [1, 2, 10]
    assert [a.get_xlabel() for a in panels] == ["", "", "time (min)", "time (min)"]
    assert named(figure) == ["z", "y"]
    assert panels[3].get_xlim() == pytest.approx((-0.1, 10.1))
    assert [a.get_ylim()[0] for a in panels] == [0] * 4
    assert FIGURES["zones"]([timed("plain", iops=[1.0] * 3)]) is None


def test_a_distribution_is_drawn_from_below_and_from_above() -> None:
    h = {"response": {"x": [1, 2, 8], "f": [0, 0.75, 1], "tail": [1, 0.25, 0], "n": [4]}}
    figure = drawn("distribution", run("a", histogram=h), run("none"), run("b", histogram=h))
    below, above = figure.axes
    assert curves(below)[0] == ([1, 2, 8], [0, 75, 100])
    x, y = curves(above)[1]
    assert (x, y[:2], np.isnan(y[2])) == ([1, 2, 8], [100, 25], True)
    assert (below.get_xscale(), above.get_xscale(), below.get_yscale(), above.get_yscale()) == (
        "log", "log", "linear", "log"
    )  # fmt: skip
    assert (below.get_ylim(), named(figure)) == ((0, 101), ["a", "b"])
    assert [a.get_xlabel() for a in (below, above)] == ["response time (ms)"] * 2
    labels = ["requests at most that long (%)", "requests longer than that (%)"]
    assert [a.get_ylabel() for a in (below, above)] == labels
    assert FIGURES["distribution"]([run("a", histogram={"service": {}}), run("none")]) is None


def test_the_time_of_a_run_is_stacked_by_cause() -> None:
    """In the order of CAUSES, others behind them; what took no time is not named."""
    runs = [
        run("a", doc={"time_by_cause_s": {"seek": 4.0, "host": 2.0, "clean": 0.0, "odd": 1.0}}),
        run("none", doc={"time_by_cause_s": {}}),
        run("b", doc={"time_by_cause_s": {"host": 3.0, "journal": 5.0}}),
    ]
    figure = drawn("causes", *runs)
    (axes,) = figure.axes
    assert named(figure) == ["host", "odd", "journal", "seek"], "host, journal, seek; odd below"
    across = [[(left, width) for left, _, width, _ in group] for group in bars(axes)]
    assert across == [[(0, 2), (0, 3)], [(2, 0), (3, 5)], [(2, 4), (8, 0)], [(6, 1), (8, 0)]]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "b"]
    assert (axes.get_xlabel(), axes.yaxis_inverted()) == ("busy time (s)", True)
    assert figure.get_figheight() == pytest.approx(1.1 + 0.3 * 2)
    hatches = [group[0].get_hatch() for group in axes.containers]
    assert hatches[1:] == list(style.HATCHES[1:4])
    assert FIGURES["causes"]([run("none", doc={})]) is None


def test_the_heat_map_is_the_first_that_was_recorded() -> None:
    grid = {"rows": 2, "cols": 3, "t0": 60, "t1": 660, "lba0": 8, "lba1": 800}
    heat = {**grid, "reads": [1, 0, 2, 0, 0, 30], "writes": [1, 0, 0, 5, 0, 1]}
    figure = drawn("heatmap", run("none"), run("a", heat=heat), run("b", heat={**heat, "reads": [9] * 6}))
    axes = figure.axes[0]
    (image,) = axes.images
    assert image.get_array().filled(0).tolist() == [[2, 0, 2], [5, 0, 31]]  # type: ignore[union-attr]
    # From 1 to 11 minutes: a span of ten.
    assert (list(image.get_extent()), image.origin) == ([1, 11, 8, 800], "lower")
    assert (image.norm.vmin, image.norm.vmax) == (1, 31)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (min)", "LBA (blocks of 512 B)")
    assert figure.axes[1].get_ylabel() == "requests"
    few = drawn("heatmap", run("a", heat={**heat, "reads": [1] * 6, "writes": [0] * 6}))
    assert few.axes[0].images[0].norm.vmax == 10, "few requests are not dark"
    assert FIGURES["heatmap"]([run("none")]) is None


def test_space_and_memory_stand_beside_each_other() -> None:
    runs = [
        run("a", doc={"space": {"efficiency": 0.75, "map_bytes_peak": 3 * 2**20}}),
        run("b", doc={"space": {"map_bytes_peak": 2**19}}),
        run("c", doc={}),
    ]
    figure = drawn("space", *runs)
    left, right = figure.axes
    assert [[(b[0], b[2]) for b in bars(a)[0]] for a in (left, right)] == [
        [(0, 75), (0, 0), (0, 0)],
        [(0, 3), (0, 0.5), (0, 0)],
    ]
    assert [a.get_xlabel() for a in (left, right)] == ["space efficiency (%)", "peak map memory (MiB)"]
    assert ([t.get_text() for t in left.get_yticklabels()], list(right.get_yticks())) == (["a", "b", "c"], [])
    assert (left.yaxis_inverted(), right.yaxis_inverted()) == (True, True)
    assert figure.get_figheight() == pytest.approx(0.9 + 0.26 * 3)
    alone = drawn("space", runs[1])
    assert [a.get_xlabel() for a in alone.axes] == ["peak map memory (MiB)"]
    assert FIGURES["space"]([runs[2]]) is None


def test_names_beside_bars_and_in_legends_take_the_room_they_need() -> None:
    long = "ssd-cache,write=64KiB / raid5,disks=3 / ssd-cache,write=64KiB"
    assert style.in_lines(long).splitlines() == ["ssd-cache,write=64KiB /", "raid5,disks=3 /", "ssd-cache,write=64KiB"]
    figure, (axes,) = style.new_figure(height=2.0)
    style.beside(axes, ["short", long])
    assert figure.get_figheight() == pytest.approx(2.0 + 0.14 * 2)

    def legend(names: Iterable[str]) -> Any:
        figure, (axes,) = style.new_figure()
        for name in names:
            axes.plot([0, 1], [0, 1], label=name)
        style.legend(figure, axes, len(axes.lines))
        return figure

    def columns(names: list[str]) -> Any:
        return vars(legend(names).legends[0])["_ncols"]

    # As many as fit into 75 characters, three at most, and no more than there are.
    assert [columns(["a" * n] * 4) for n in (25, 26, 37, 38, 80)] == [3, 2, 2, 1, 1]
    assert columns(["a", "b"]) == 2
    # Line by line they are in order, as columns are filled: abc over de, ab over c.
    assert [named(legend(names)) for names in ("abcde", ["a", "b", "c" * 30])] == [list("adbec"), ["a", "c" * 30, "b"]]


def test_a_logarithmic_axis_shows_two_numbers_at_least() -> None:
    def axis(low: float, high: float) -> Axes:
        _, (axes,) = style.new_figure()
        axes.plot([1, 2], [low, high])
        style.log_axis(axes)
        return axes

    def shown(axes: Axes) -> list[float]:
        low, high = axes.get_ylim()
        return [float(v) for v in axes.yaxis.get_major_locator()() if low <= v <= high]

    assert axis(0.0, 0.0).get_yscale() == "linear"
    narrow, wide = axis(10.0, 20.0), axis(1.0, 5000.0)
    assert (narrow.get_yscale(), wide.get_yscale()) == ("log", "log")
    low, high = narrow.get_ylim()
    assert low < 7
    assert high > 29
    assert wide.get_ylim()[0] > 0.5
    assert wide.yaxis.get_major_formatter()(2500.0, 0) == "2,500"
    # From 13 000 to 500 000 there is one power of ten; where there are two, they suffice.
    for low, high, numbers in (
        (10.0, 20.0, [7, 10, 15, 20, 30]),
        (10.0, 25.0, [10, 20]),
        (90.0, 110.0, [70, 100, 150]),
        (13e3, 500e3, [20e3, 50e3, 100e3, 200e3, 500e3]),
        (3.0, 50.0, [5, 10, 20, 50]),
        (2.0, 59.0, [2, 5, 10, 20, 50]),
        (0.9, 25.0, [1, 10]),
        (1.0, 5000.0, [1, 10, 100, 1000]),
    ):
        assert shown(axis(low, high)) == pytest.approx(numbers)
    # However close its values are, wherever they lie.
    for n in range(50):
        low = 10 ** (n / 50)
        for high in (low, 1.001 * low, 2 * low, 3 * low, 5 * low):
            assert len(shown(axis(low, high))) > 1, (low, high)
    _, (across,) = style.new_figure()
    across.plot([1, 5000], [1, 1])
    style.log_axis(across, "x")
    assert (across.get_xscale(), across.get_yscale()) == ("log", "linear")


def test_long_names_below_an_axis_say_what_tells_them_apart() -> None:
    long = ["/data/traces/web_0.csv.gz", "/data/traces/usr_0.csv.gz"]
    for names, shown in (
        (["1%", "2%"], ["1%", "2%"]),
        (long, ["web_0", "usr_0"]),
        (["s-block,cache=1%,sections=10", "s-block"], ["s-block,cache=1%,\nsections=10", "s-block"]),
        (["synth:zipf,size=4KiB,write=70%"] * 2, ["synth:zipf,\nsize=4KiB,write=70%"] * 2),
        ([], []),
    ):
        assert style.told_apart(names) == shown
    # A word that is longer than a line has one of its own.
    assert style.told_apart(["aaaaaaaa,b,c", "zzzzzzzz,b,d"], 6) == ["aaaaaaaa,\nb,c", "zzzzzzzz,\nb,d"]
    # A line is full at its width, not before.
    assert style.told_apart(["aa,bb,cc,dd", "zz,bb,cc,yy"], 6) == ["aa,bb,\ncc,dd", "zz,bb,\ncc,yy"]


def test_large_numbers_are_written_in_full() -> None:
    for high, text in ((9_000, None), (20_000, "12,000")):
        _, (axes,) = style.new_figure()
        axes.set_ylim(0, high)
        style.plain_numbers(axes)
        assert text is None or axes.yaxis.get_major_formatter()(12_000, 0) == text
    figure, (axes,) = style.new_figure()
    axes.plot([0, 2e7], [0, 2e6])
    drawn = style.svg(figure).decode()
    assert ("<!-- 20M -->" in drawn, "<!-- 2,000,000 -->" in drawn, "<!-- 1e" in drawn) == (True, True, False)
    colours = [style.line_style(i)["color"] for i in range(9)]
    assert len(set(colours)) == 8
    assert colours[8] == colours[0]
    dashes = [style.line_style(i)["linestyle"] for i in (0, 1, 8)]
    assert dashes == [style.DASHES[0], style.DASHES[1], style.DASHES[1]], "the ninth differs from the first"


# What all figures are drawn from.


def test_distributions_without_a_request_are_none() -> None:
    rows = [{"kind": "response", "lo_ms": 1.0, "hi_ms": 2.0, "count": n} for n in (0, 0)]
    assert payload.histogram(pa.Table.from_pylist(rows)) is None
    one = payload.histogram(pa.Table.from_pylist([*rows, {"kind": "service", "lo_ms": 4.0, "hi_ms": 6.0, "count": 1}]))
    assert one == {"service": {"x": [4, 6], "f": [0, 1], "tail": [1, 0], "n": [1]}}


def test_many_buckets_become_fewer_and_keep_the_last() -> None:
    rows = [{"kind": "service", "lo_ms": float(i), "hi_ms": i + 1.0, "count": 1} for i in range(1, 902)]
    found = payload.histogram(pa.Table.from_pylist(rows))
    assert found is not None
    x, f = found["service"]["x"], found["service"]["f"]
    # Three become one: 300 of them, and the last bucket.
    assert (len(x), x[:3], x[-2:], f[-1]) == (302, [1, 4, 7], [901, 902], 1)
    assert f[1] == pytest.approx(3 / 901, rel=1e-6)
    # What lies apart keeps its place, and the curve is flat before it.
    apart = payload.histogram(pa.Table.from_pylist([{**rows[0], "lo_ms": 0.0, "hi_ms": 1e-6}, *rows[1:]]))
    assert apart is not None
    x, f = apart["service"]["x"], apart["service"]["f"]
    assert (x[:4], f[:3]) == ([5e-7, 1e-6, 2, 4], [0, f[2], pytest.approx(1 / 901, rel=1e-6)])


def test_one_window_of_heat_is_as_long_as_it_began_late() -> None:
    row = {"window": 0, "start_s": 5.0, "bin": 0, "lba_lo": 0, "lba_hi": 8, "reads": 1, "writes": 2}
    grid = payload.heatmap(pa.Table.from_pylist([row]))
    assert grid == {"cols": 1, "rows": 1, "t0": 5, "t1": 10, "lba0": 0, "lba1": 8, "reads": [1], "writes": [2]}
    later = [{**row, "window": w, "start_s": 10.0 * w} for w in (2, 481)]
    grid = payload.heatmap(pa.Table.from_pylist(later))
    assert grid is not None
    # 482 windows: three become a column of 30 s.
    assert (grid["cols"], grid["t0"], grid["t1"]) == (161, 0, 4830)
    assert [i for i, n in enumerate(grid["reads"]) if n] == [0, 160]
    assert (payload.heatmap(None), payload.timeline(None), payload.histogram(None)) == (None, None, None)


def test_a_page_says_what_it_is_of() -> None:
    """Names shortened and as they are written; trace and drive of the first run; where it comes from."""
    spec = {"trace": ["a", "b"], "drive": "d", "layer": "x", "scheduler": {"depth": 2}}
    made = {"version": "1", "git": None, "seed": 0}
    runs = [results.Result(name, {"spec": spec, "provenance": made}) for name in ("<a>", "b")]
    assert report.title(runs) == "smrlab: <a>, b"
    assert [report.title([results.Result("x" * n, {})])[8:] for n in (90, 91)] == ["x" * 90, "x" * 89 + "…"]
    assert report.title([results.Result("x" * 45, {})] * 2) == "smrlab: 2 runs compared"
    assert report.subtitle(runs[0]) == 'trace a + b · drive d · scheduler {"depth": 2}'
    array, single = (results.Result("a", {"spec": {"drive": "d", "array": a}}) for a in ("mirror,disks=2", "single"))
    assert [report.subtitle(run) for run in (array, single)] == ["array mirror,disks=2 · drive d", "drive d"]
    assert report.footer(runs[0]) == "smrlab version 1 · seed 0"
    assert [report._short("y" * n) for n in (120, 121)] == ["y" * 120, "y" * 117 + "…"]
    page = report.render(runs)
    assert "<title>smrlab: &lt;a&gt;, b</title>" in page
    assert "<a>, b" not in page


def test_heat_maps_that_are_the_same_are_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others name the run that has it; nothing in the data ends the script."""
    heats = [None, {"r": [1]}, {"r": [2]}, {"r": [1]}, None, {"r": [2]}]
    monkeypatch.setattr(report, "runs_payload", lambda _: [{"name": "</script>", "heat": heat} for heat in heats])
    text = report.embedded([])
    assert [run["heat"] for run in json.loads(text)] == [None, {"r": [1]}, {"r": [2]}, 1, None, 2]
    assert "<" not in text


def test_the_distribution_is_that_of_all_requests() -> None:
    """From below in per cent, and what is longer; where a run has reads alone beside them, too."""
    of = {"x": [1.0, 2.0, 4.0], "f": [0.0, 0.25, 1.0], "tail": [1.0, 0.75, 0.0]}
    reads = {"x": [9.0], "f": [1.0], "tail": [0.0]}
    figure = figures.distribution([{"name": "a", "histogram": {"response": of, "read_response": reads}}])
    assert figure is not None
    below, above = (np.asarray(axes.lines[0].get_xydata()) for axes in figure.axes)
    assert below.tolist() == [[1, 0], [2, 25], [4, 100]]
    assert above[:2].tolist() == [[1, 100], [2, 75]]
    assert np.isnan(above[2, 1])
