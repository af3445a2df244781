"""What pictures, pages and tables show, line by line, as it is on record: a change of any figure, unit, order or word
fails here. `UPDATE=1 pytest python/tests/test_on_record.py` writes `on_record.txt` again; the difference is to be read.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from drawn import saved, seen
from fakes import fake_run
from matplotlib.figure import Figure

from smrlab import payload, plots, results, summary
from smrlab.papers import figures as papers
from smrlab.papers import paper
from smrlab.papers.runs import Run, Runs
from smrlab.plots import drives, outside, style
from smrlab.sweeps import summary as mattered
from smrlab.sweeps import table as sweep_table

RECORD = Path(__file__).parent / "on_record.txt"


def tables(index: int) -> dict[str, pa.Table]:
    """Of a run with four windows of a minute, in the third of which nothing ended."""
    n = [float(i + index) for i in range(1, 5)]
    some = [None if i == 2 else v for i, v in enumerate(n)]
    timeline: dict[str, list[Any]] = {
        "start_s": [0.0, 60, 120, 180], "end_s": [60.0, 120, 180, 240], "arrivals": n,
        "completions": [600, 1200, 0, 300], "read_blocks": n, "write_blocks": [80.0, 40, 0, 10],
        "media_blocks_read": n, "media_blocks_written": [160.0, 120, 8, 15], "response_ms_mean": some,
        "response_ms_max": [None if v is None else 90 * v for v in some], "busy_share": [0.25, 0.5, 0, 1],
        "cleaning_share": [0, 0.25, 0, 0.125], "stalled_share": [0.0, 0.5, 1, 0], "cache_share": [0.1, 0.2, 0.3, 0.4],
        "backlog": [1, 0, 7, 3], "head_track_min": n, "head_track_mean": [2 * v for v in n],
        "head_track_max": [3 * v for v in n], "open_zones": [1, 2, 3, 4], "closed_zones": [4, 3, 2, 1],
        "full_zones": [0, 5, 6, 7], "zone_resets": [60, 0, 120, 0], "refused": [0, 0, 30, 0],
    }  # fmt: skip
    buckets = {"lo_ms": [1.0, 2, 4, 1, 2], "hi_ms": [2.0, 4, 8, 2, 4], "count": [800, 400, 1, 100, 500 + index],
               "kind": ["read", "read", "read", "write", "write"]}  # fmt: skip
    heat = {"window": [0, 1, 3], "bin": [0, 2, 1], "start_s": [0.0, 60, 180], "lba_lo": [0, 200, 100],
            "lba_hi": [100, 300, 200], "reads": [1, 20, 3], "writes": [4, 0, 50 + index]}  # fmt: skip
    members = {key: v * 2 for key, v in timeline.items()} | {"disk": [0] * 4 + [1] * 4}
    return {name: pa.table(of) for name, of in
            (("timeline", timeline), ("histogram", buckets), ("heatmap", heat), ("members", members))}  # fmt: skip


def recorded() -> list[Any]:
    """Two runs with all that figures show."""
    docs = [fake_run(i, layer) for i, layer in enumerate(("rmw", "s-block,band=64"))]
    return [SimpleNamespace(name=doc["spec"]["layer"], doc=doc, table=tables(i).get) for i, doc in enumerate(docs)]


def figure(name: str) -> Callable[[Any], Iterable[str]]:
    return lambda _: seen(cast("Figure", plots.FIGURES[name](payload.runs_payload(recorded()))))


POINTS = [("10%", "x", 1.5, 2), ("40%", "x", 250.0, 3), ("10%", "7", 3.0, 9), ("40%", "7", 4.0, 5)]


def of_paper(kind: str, **more: Any) -> Callable[[Any], Iterable[str]]:
    """A figure of a paper, and the file with its numbers."""

    def lines(folder: Path) -> Iterator[str]:
        runs = []
        for i, (size, layer, y, z) in enumerate(POINTS):
            doc = {"a": {"b": y}, "c": z, "xs": [z, 10 * z], "ys": [y, y + 1], "makespan_s": 200.0}
            asked = pa.table({"arrival_ns": [0] * 4, "completion_ns": [int(v * y * 1e6) for v in (1, 7, 70, 300)]})
            of: Any = SimpleNamespace(doc=doc, timeline=lambda i=i: tables(i)["timeline"], requests=lambda t=asked: t)
            runs.append(Run({"size": size, "layer": layer}, of))
        drawn: list[Figure] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(style, "save_svg", lambda made, _: drawn.append(made))
            wanted = paper.Figure(**{"id": "f", "title": "t", "experiment": "e", "kind": kind, "unit": "u", **more})
            yield papers.draw(wanted, {"e": Runs("e", runs), "l": Runs("l", runs[1:2])}, folder).name
        yield from seen(drawn[0])
        numbers = (folder / "f.csv").read_text().splitlines()
        yield from [n for n in numbers if not n.endswith(",0")] if kind == "histograms" else numbers

    return lines


KEYS = ("cache", "layer", "iops", "on", "size")
ROWS = [
    dict(zip(KEYS, row, strict=True))
    for row in (
        ("1GiB", "b", 8.0, 1, "4KiB"),
        ("64MiB", "a", 1.0, 2, "any"),
        ("64MiB", "a", 3.0, 3, "8KiB"),
        ("1GiB", "a", 400.0, 4, "9KiB"),
    )
]


def of_study(metric: str, against: str, by: str | None) -> Callable[[Any], Iterable[str]]:
    def lines(folder: Path) -> Iterator[str]:
        with pytest.MonkeyPatch.context() as patch:
            made = saved(patch)
            sweep_table.plot(pa.Table.from_pylist(ROWS), metric, against, folder / "f.svg", by)
        yield from seen(made[0])
        yield from (folder / "f.csv").read_text().splitlines()

    return lines


def of_summary(spread: float) -> Callable[[Any], Iterable[str]]:
    """The picture and the page of what mattered: eight runs, the highest `spread` times the lowest."""

    def lines(_: Path) -> Iterator[str]:
        rows = [{f"s{k}": n % (k + 2) for k in range(3)} | {"layer.x": n, "iops": spread ** (n / 7)} for n in range(8)]
        found = mattered.measured(rows, "iops", [*(f"s{k}" for k in range(3)), "layer.x"])
        with pytest.MonkeyPatch.context() as patch:
            svg, made = style.svg, dict[Figure, bytes]()
            patch.setattr(style, "svg", lambda figure: made.setdefault(figure, svg(figure)))
            mattered.picture(found)
        yield from seen(*made)
        yield from mattered.page({"runs": 8, "metrics": [found]}).splitlines()
        yield from mattered.table_of(found)

    return lines


def of_tables(folder: Path) -> Iterator[str]:
    """One run, several, and their page for a notebook."""
    runs = [(r.name, r.doc) for r in recorded()]
    for some in (runs[:1], runs):
        yield from summary.plainly(some).splitlines()
        yield from summary.as_html(some).replace("<tr>", "\n<tr>").splitlines()
    yield from sorted(p.name for p in results.Results([results.Result(n, d) for n, d in runs]).save(folder).iterdir())


ZONES = {
    "name": "d", "summary": "two zones", "medium_blocks": 4 * 10**9,
    "zones": [{"first_pba": 0, "mb_per_s": 200.0}, {"first_pba": 10**9, "mb_per_s": 100.0}],
}  # fmt: skip
SEEKS = {"read": [(0, 1e6), (9, 5e6)], "write": [(0, 2e6)], "write_by_direction": [[(1, 2e6)], [(1, 3e6), (2, 4e6)]]}
EVIDENCE = {"evidence": [
    {"test": "A test, 2 of it", "axes": ["s", "ms"], "points": [(1, 2), (3, 4)]},
    {"test": "none", "axes": ["s", "ms"], "points": []},
    {"test": "Many", "axes": ["LBA", "ms"], "points": [(float(n), float(n % 7)) for n in range(100)]},
]}  # fmt: skip


def of_evidence(folder: Path) -> Iterator[str]:
    drawn: list[Figure] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outside, "save_svg", lambda made, _: drawn.append(made))
        yield from (p.name for p in outside.evidence(EVIDENCE, folder))
    for one in drawn:
        yield from seen(one)


CASES: dict[str, Callable[[Any], Iterable[str]]] = {
    **{f"figure {name}": figure(name) for name in plots.FIGURES},
    "paper, lines": of_paper("lines", y="a.b", x="size", x_unit="MB", series="layer", levels=("l",), names={"x": "X"}),
    "paper, lines of keys, logarithmic": of_paper("lines", keys={"B": "a.b", "C": "c"}, x="size", log=True, log_x=True,
                                                  where={"layer": "x"}),
    "paper, lines of many numbers": of_paper("lines", keys={"C": "c"}, x="size", series="layer", x_label="how large"),
    "paper, curves": of_paper("curves", x="xs", y="ys", series="layer"),
    "paper, curves of keys": of_paper("curves", x="xs", keys={"B": "ys"}, where={"layer": "x"}),
    "paper, bars": of_paper("bars", y="a.b", x="size", series="layer"),
    "paper, bars of keys": of_paper("bars", keys={"B": "a.b", "C": "c"}, x="size", where={"layer": "x"}, log=True),
    "paper, windows": of_paper("windows", y="completions", series="layer", where={"size": "10%"}, unit="IOPS"),
    "paper, windows to 100 s": of_paper("windows", y="completions", series="layer", until_s=100.0),
    "paper, histograms": of_paper("histograms", series="layer", where={"size": "10%"}),
    "study, numbers": of_study("iops", "cache", "layer"),
    "study, numbers and a word": of_study("on", "size", None),
    "study, words": of_study("on", "layer", None),
    "summary": of_summary(3.0),
    "summary of logarithms": of_summary(100.0),
    "runs": of_tables,
    "drive": lambda _: seen(drives.zones(ZONES)),
    "zones of a drive": lambda _: seen(outside.zones([(10, 200), (5, 100)], [(1, 199)], [(0, 210), (15, 90)])),
    "zones alone": lambda _: seen(outside.zones([(10, 200)])),
    "skew": lambda _: seen(outside.skew([(1, 2), (3, 4)], [])),
    "seeks": lambda _: seen(outside.seeks(SEEKS)),
    "evidence": of_evidence,
}  # fmt: skip


@pytest.fixture(scope="module")
def record() -> Iterator[dict[str, list[str]]]:
    """What was seen when it was recorded, by case."""
    parts = RECORD.read_text().split("\n== ") if RECORD.is_file() else []
    found = {lines[0].removeprefix("== "): lines[1:] for lines in map(str.splitlines, parts)}
    yield found
    if os.environ.get("UPDATE"):
        RECORD.write_text("".join("\n".join([f"== {name}", *found[name], ""]) for name in CASES if name in found))


@pytest.mark.parametrize("name", CASES)
def test_what_is_seen_is_what_is_on_record(name: str, record: dict[str, list[str]], tmp_path: Path) -> None:
    now = [line.rstrip() for text in CASES[name](tmp_path) for line in text.split("\n")]
    if os.environ.get("UPDATE"):
        record[name] = now
    other = list(difflib.unified_diff(record.get(name, []), now, "recorded", "now", lineterm="", n=0))
    assert not other, "\n".join(other)
