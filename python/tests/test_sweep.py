"""Sweeps: expansion, content addresses, resumption, the table."""

from __future__ import annotations

import datetime
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import smrlab
from smrlab import InputError, _core, sweeps
from smrlab.executors.local import LocalPool
from smrlab.sweeps import identity, samples
from smrlab.sweeps.identity import Digests, address
from smrlab.sweeps.quantity import quantity
from smrlab.sweeps.table import plot

BASE = {"drive": "tiny", "trace": ["synth:uniform,requests=500"], "layer": "rmw", "wrap": "capacity"}


def expand(**tables: Any) -> list[sweeps.Point]:
    return sweeps.expand({"base": BASE, **tables}, "test.toml")


def run(points: list[sweeps.Point], out: Path, jobs: int | None = None) -> sweeps.Outcome:
    return sweeps.run_points(points, sweeps.Store(out), LocalPool(jobs))


def test_grid_list_and_seeds_multiply_in_a_stable_order() -> None:
    points = expand(grid={"layer.band": [2, 4]}, list=[{"scale_time": 1.0}, {"scale_time": 2.0}], seeds=2)
    assert len(points) == 8
    assert points[0].settings == {"scale_time": 1.0, "layer.band": 2, "seed": 1}
    assert points[-1].spec["layer"] == "rmw,band=4"


def test_a_parameter_applies_to_the_item_that_the_same_point_chooses() -> None:
    points = expand(grid={"layer.journal": [True], "layer": ["rmw,band=2,journal=off", "static-1234"]})
    assert [p.spec["layer"] for p in points] == ["rmw,band=2,journal=on", "static-1234,journal=on"]
    (point,) = expand(grid={"layer.band": [3], "layer": ["rmw,band_x=1,band=2"]})
    assert point.spec["layer"] == "rmw,band_x=1,band=3"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"base": BASE, "gird": {}}, "unknown table 'gird'"),
        ({"grid": {}}, r"\[base\] is missing"),
        ({"base": BASE, "grid": {"seed": 3}}, "needs a list"),
        ({"base": BASE, "seeds": 0}, "seeds is a number"),
        ({"base": BASE, "seeds": 10**12}, "more than a study can hold"),
        ({"base": BASE, "grid": {k: list(range(9999)) for k in ("seed", "limit", "burst")}}, "more than a study can"),
        ({"base": BASE, "grid": {k: list(range(999)) for k in ("seed", "limit")}, "seeds": 99}, "more than a study"),
        ({"base": BASE, "sample": {"points": 10**12, "seed": [1]}}, "more than a study can hold"),
        ({"base": BASE, "grid": {"limit": [datetime.date(2026, 1, 1)]}}, "limit: 2026-01-01 is not accepted"),
        ({"base": {**BASE, "limit": math.nan}}, "limit: nan is not accepted"),
        ({"base": BASE, "list": [3]}, r"\[\[list\]\]"),
        ({"base": BASE, "grid": {"policy.x": [1]}}, "sets a parameter of 'policy'"),
        ({"base": BASE, "grid": [1]}, "grid is a table of lists"),
        ({"base": BASE, "files": [5]}, "files is a list of names"),
    ],
)
def test_bad_sweeps_say_what_is_wrong(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sweeps.expand(document, "test.toml")


def test_a_wrong_point_is_named_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"point layer\.bnad=2: .*did you mean 'band'"):
        run(expand(grid={"layer.bnad": [2]}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("layer", [3, ["cmr"]])
def test_a_layer_that_is_no_text_is_refused(layer: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"layer: .* is not accepted: a text"):
        run(expand(grid={"layer": [layer]}), tmp_path / "out")


def test_what_python_calls_numbers_and_lists_is_what_the_file_would_say(tmp_path: Path) -> None:
    base = {"drive": np.str_("tiny"), "trace": "synth:uniform,requests=20", "wrap": "capacity", "layer": "rmw"}
    for i, limits in enumerate(([np.int64(5), 6], np.array([5, 6]), range(5, 7), (5, 6), pl.Series([5, 6]))):
        study = {"base": base, "grid": {"limit": limits}, "seeds": np.int32(1)}
        table = smrlab.sweep(study, out=tmp_path / str(i)).table()
        assert (table["limit"].to_pylist(), table["seed"].to_pylist()) == ([5, 6], [1, 1])
    for wrong in (None, [study], 3):
        with pytest.raises(InputError, match=r"the sweep: .* is none: give its file's name"):
            smrlab.sweep(wrong, out=tmp_path / "no")  # type: ignore[arg-type]


def test_what_is_there_is_kept_and_what_changed_is_run(tmp_path: Path) -> None:
    first = run(expand(grid={"layer.band": [2, 4]}, seeds=2), tmp_path)
    assert (first.points, first.finished, first.reused) == (4, 4, 0)
    (victim, *kept) = sorted((tmp_path / "points").iterdir())
    (victim / "result.json").unlink()
    times = {p: (p / "result.json").stat().st_mtime_ns for p in kept}
    second = run(expand(grid={"layer.band": [2, 4, 6]}, seeds=2), tmp_path)
    assert (second.points, second.finished, second.reused) == (6, 3, 3)
    assert times == {p: (p / "result.json").stat().st_mtime_ns for p in kept}


def test_a_point_that_fails_is_told_and_run_again(tmp_path: Path) -> None:
    """The drive has 2880 blocks: of two traces one goes beyond them."""
    for name, lba in (("good", 8), ("bad", 4000)):
        (tmp_path / name).write_text(f"0.0 0 {lba} 8 0\n")
    traces = [f"{tmp_path / name}:disksim" for name in ("good", "bad")]
    base = {"drive": "tiny", "layer": "rmw"}
    points = sweeps.expand({"base": base, "grid": {"trace": traces}}, "test.toml")
    for finished, reused in ((1, 0), (0, 1)):
        outcome = run(points, tmp_path / "out")
        assert (outcome.points, outcome.finished, outcome.reused) == (2, finished, reused)
        assert [("bad" in title, "wrap" in fault) for title, fault in outcome.failed.items()] == [(True, True)]


def test_what_failed_before_and_goes_well_now_has_failed_no_more(tmp_path: Path) -> None:
    points = expand(grid={"layer.band": [2, 4]})
    run(points, tmp_path)
    victim = sorted((tmp_path / "points").iterdir())[0]
    (victim / "result.json").unlink()
    (victim / "failed.json").write_text(json.dumps({"reason": "the disk was full"}))
    outcome = run(points, tmp_path)
    assert (outcome.finished, outcome.reused, outcome.failed) == (1, 1, {})
    assert sorted(p.name for p in victim.iterdir() if p.suffix == ".json") == ["result.json"]


def test_another_version_of_the_engine_is_another_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = _core.resolved(json.dumps(BASE), None)
    digests = Digests(sweeps.Store(tmp_path))
    before = address(resolved, digests)
    assert address(resolved, digests) == before
    monkeypatch.setattr(identity, "fingerprint", lambda: "0.0.0 another")
    assert address(resolved, digests) != before


def test_a_trace_whose_content_changed_is_another_point(tmp_path: Path) -> None:
    trace = tmp_path / "t.trace"
    spec = {**BASE, "trace": [f"{trace}:disksim"]}
    trace.write_text("0.0 0 0 8 0\n1.0 0 8 8 0\n")
    points = sweeps.expand({"base": spec}, "test.toml")
    run(points, tmp_path / "out")
    trace.write_text("0.0 0 0 8 0\n1.0 0 8 8 0\n2.0 0 16 8 0\n")
    again = run(points, tmp_path / "out")
    assert (again.finished, again.reused) == (1, 0)


def test_a_trace_that_changed_and_kept_its_size_is_another_point(tmp_path: Path) -> None:
    trace = tmp_path / "t.trace"
    points = sweeps.expand({"base": {**BASE, "trace": [f"{trace}:disksim"]}}, "test.toml")
    made = []
    for lba in (8, 9):
        trace.write_text(f"0.0 0 0 8 0\n1.0 0 {lba} 8 0\n")
        os.utime(trace, ns=(lba * 10**9, lba * 10**9))
        outcome = run(points, tmp_path / "out")
        made.append((outcome.finished, outcome.reused))
    assert made == [(1, 0), (1, 0)]


@pytest.mark.parametrize(
    "other",
    [
        {"drive": "he2014-example"},
        {"layer": "rmw,journal=on"},
        {"trace": ["synth:uniform,requests=501"]},
        {"array": "striped,disks=2"},
        {"arrivals": "closed"},
        {"scheduler": "sptf"},
        {"mechanics": "no-rotation"},
        {"metadata": "media"},
        {"prefill": "10%"},
        {"wrap": "prefilled", "prefill": "100%"},
        {"scale_time": 2.0},
        {"seed": 2},
        {"limit": 100},
        {"from": "1s"},
        {"until": "1s"},
        {"filter": "op=write"},
        {"host_blocks": 1000},
        {"window": "1s"},
        {"stall": "1s"},
        {"adjusted_blocks": 10},
        {"adjusted_rule": "floor+1"},
        {"verify_media": True},
        {"requests": True},
        {"media_log": True},
    ],
)
def test_every_field_is_in_the_address_of_a_point(other: dict[str, Any], tmp_path: Path) -> None:
    digests = Digests(sweeps.Store(tmp_path))
    plain, changed = (_core.resolved(json.dumps({**BASE, **more}), None) for more in ({}, other))
    assert address(plain, digests) != address(changed, digests)


def test_a_python_layer_is_a_point_and_another_one_when_its_file_changes(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text((Path(__file__).parents[2] / "examples" / "greedy_log.py").read_text())
    points = expand(grid={"layer": ["rmw", f"{mine}:GreedyLog"]})
    assert run(points, tmp_path / "out").finished == 2
    assert run(points, tmp_path / "out").reused == 2
    mine.write_text(mine.read_text().replace("self.home = {}", "self.home = 1 / 0"))
    with pytest.raises(ZeroDivisionError):
        run(points, tmp_path / "out")
    mine.write_text(mine.read_text().replace("self.home = 1 / 0", "self.home = {}").replace("* 9 // 10", "// 2"))
    again = run(points, tmp_path / "out")
    assert (again.finished, again.reused) == (1, 1)


def test_the_table_has_a_row_a_point_with_settings_and_numbers(tmp_path: Path) -> None:
    run(expand(grid={"layer.band": [2, 4]}, seeds=2), tmp_path)
    rows = sweeps.results_table(tmp_path).to_pylist()
    assert [(r["layer.band"], r["seed"]) for r in rows] == [(2, 1), (2, 2), (4, 1), (4, 2)]
    point = json.loads((tmp_path / "points" / rows[0]["point"] / "result.json").read_text())
    assert rows[0]["response_ms.p99"] == point["response_ms"]["p99"]
    sweeps.plot(sweeps.results_table(tmp_path), "response_ms.mean", "layer.band", tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")
    with pytest.raises(InputError, match="no column 'nothing'"):
        sweeps.plot(sweeps.results_table(tmp_path), "nothing", "layer.band", tmp_path / "plot.svg")


def test_a_setting_that_is_varied_no_more_has_no_column(tmp_path: Path) -> None:
    """The same runs by other settings: those of the study as it was are not told."""
    run(expand(grid={"layer.band": ["4tracks", "8tracks"]}), tmp_path)
    layers = [f"rmw,band={n}tracks" for n in (4, 8)]
    done = run(expand(grid={"layer": layers}), tmp_path)
    table = sweeps.results_table(tmp_path)
    assert (done.reused, table["layer"].to_pylist(), "layer.band" in table.column_names) == (2, layers, False)
    assert table["response_ms.mean"].null_count == 0


def test_columns_do_not_depend_on_what_failed(tmp_path: Path) -> None:
    """Nor on which run is the first, nor on whether the rows were there before."""
    (tmp_path / "far").write_text("0.0 0 4000 8 0\n")
    traces = ["synth:uniform,requests=100", f"{tmp_path / 'far'}:disksim"]
    schemas = []
    for i, grid in enumerate((traces[:1], traces, traces[::-1])):
        points = sweeps.expand({"base": {"drive": "tiny", "layer": "rmw"}, "grid": {"trace": grid}}, "test.toml")
        for _ in range(2):
            run(points, tmp_path / str(i))
            table = sweeps.results_table(tmp_path / str(i))
            assert [bool(r["reason"]) for r in table.to_pylist()] == [t != traces[0] for t in grid]
            schemas.append(table.schema)
    assert schemas[0].names[:4] == ["trace", "point", "status", "reason"]
    assert all(schema.equals(schemas[0]) for schema in schemas)


def test_one_thread_and_two_give_the_same_results(tmp_path: Path) -> None:
    points = expand(grid={"layer.band": [2, 4]}, seeds=2)
    for jobs in (1, 2):
        run(points, tmp_path / str(jobs), jobs=jobs)
    assert sweeps.results_table(tmp_path / "1").equals(sweeps.results_table(tmp_path / "2"))


def test_a_plot_has_numbers_where_they_belong_zeros_for_what_did_not_happen_and_a_csv(tmp_path: Path) -> None:
    rows = [
        {"layer.cache": "10%", "seed": 1, "stalls.max_s": 4.0, "layer": "a"},
        {"layer.cache": "1%", "seed": 1, "stalls.max_s": None, "layer": "a"},
        {"layer.cache": "2%", "seed": 1, "stalls.max_s": 1.0, "layer": "a"},
        {"layer.cache": "2%", "seed": 2, "stalls.max_s": 3.0, "layer": "a"},
    ]
    table = pa.Table.from_pylist(rows)
    plot(table, "stalls.max_s", "layer.cache", tmp_path / "f.svg")
    lines = (tmp_path / "f.csv").read_text().splitlines()
    assert lines[0] == "layer.cache,line,stalls.max_s,least,most,rows"
    assert lines[1:] == ["1%,,0.0,0,0,1", "2%,,2.0,1.0,3.0,2", "10%,,4.0,4.0,4.0,1"]
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    # Traces that are joined are one setting.
    table = pa.Table.from_pylist([{"trace": ["a", "b"], "iops": 1.0}, {"trace": ["c"], "iops": 2.0}])
    plot(table, "iops", "trace", tmp_path / "f.svg", "trace")
    assert (tmp_path / "f.csv").read_text().splitlines()[1:] == ["a + b,a + b,1.0,1.0,1.0,1", "c,c,2.0,2.0,2.0,1"]


def test_a_plot_joins_numbers_and_not_words_and_has_seconds_for_many_milliseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, _: drawn.append(self))
    rows = [
        {"layer": layer, "layer.cache": cache, "array.rebuild_ms": ms * (i + 1)}
        for i, layer in enumerate(("cmr", "log"))
        for cache, ms in (("1%", 2000.0), ("2%", 10_000.0))
    ]
    table = pa.Table.from_pylist(rows)
    plot(table, "array.rebuild_ms", "layer.cache", tmp_path / "f.svg", "layer")
    plot(table, "array.rebuild_ms", "layer", tmp_path / "f.svg", "layer.cache")
    plot(table.slice(0, 2), "array.rebuild_ms", "layer.cache", tmp_path / "f.svg")
    axes = [figure.axes[0] for figure in drawn]
    assert [a.get_ylabel() for a in axes] == ["rebuild time (s)", "rebuild time (s)", "rebuild time (ms)"]
    numbers, words, short = ([bars[0] for bars in a.containers] for a in axes)
    # Numbers stand where they are, words side by side around their places.
    assert [np.asarray(line.get_xdata(), float).tolist() for line in numbers] == [[1.0, 2.0]] * 2
    assert [list(line.get_xdata()) for line in words] == [[-0.125, 0.875], [0.125, 1.125]]
    assert [list(line.get_ydata()) for line in words] == [[2.0, 4.0], [10.0, 20.0]]
    assert [line.get_linestyle() for line in words] == ["None", "None"]
    assert "None" not in [line.get_linestyle() for line in numbers]
    assert [list(line.get_ydata()) for line in short] == [[2000.0, 10_000.0]]


def test_settings_are_read_as_numbers_with_their_dimension() -> None:
    assert quantity("4KiB") == (4096.0, "B")
    assert quantity("2000blk") == (1_024_000.0, "B")
    assert quantity("10ms") == (0.01, "s")
    assert quantity(8) == (8.0, "")
    assert quantity("s-block") is None
    assert quantity(True) is None


def test_from_python_a_sweep_is_run_read_and_drawn_by_one_name(tmp_path: Path) -> None:
    spec = {"base": BASE, "grid": {"layer.band": [2, 4]}}
    done = smrlab.sweep(spec, out=tmp_path, jobs=1)
    assert (done.outcome.finished, done.outcome.failed) == (2, {})
    assert done.table().column("layer.band").to_pylist() == [2, 4]
    drawn = done.plot("response_ms.mean", "layer.band")
    assert drawn == tmp_path / "response_ms.mean-layer.band.svg"
    assert drawn.is_file()
    file = tmp_path / "same.toml"
    tables = '[base]\ndrive = "tiny"\ntrace = ["synth:uniform,requests=500"]\nlayer = "rmw"\nwrap = "capacity"\n'
    file.write_text(tables + '[grid]\n"layer.band" = [2, 4, 8]\n')
    assert smrlab.sweep(file, out=tmp_path).outcome == sweeps.Outcome(3, 2, 1, {}, False)


def test_a_table_that_is_not_of_a_study_is_not_written_over(tmp_path: Path) -> None:
    other = tmp_path / "results.parquet"
    other.write_bytes(b"of somebody else")
    spec = {"base": BASE, "grid": {"layer.band": [2]}}
    with pytest.raises(InputError, match=r"holds a results\.parquet that is no study's; choose another --out"):
        smrlab.sweep(spec, out=tmp_path, jobs=1)
    assert [p.name for p in tmp_path.iterdir()] == [other.name]
    assert other.read_bytes() == b"of somebody else"
    other.unlink()
    assert smrlab.sweep(spec, out=tmp_path, jobs=1).outcome.finished == 1
    assert smrlab.sweep(spec, out=tmp_path, jobs=1).outcome.reused == 1


def test_a_parameter_with_commas_in_brackets_is_one() -> None:
    item = "static,order=124R(3,5),band=4"
    assert sweeps.grid.with_parameter(item, "band", 8) == "static,order=124R(3,5),band=8"
    assert sweeps.grid.with_parameter(item, "order", "14R(23)") == "static,band=4,order=14R(23)"
    assert sweeps.grid.with_parameter(item, "cache", True) == f"{item},cache=on"


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_no_specification_can_hold_is_refused(value: float) -> None:
    """TOML has these numbers; JSON, which runs are described in, has not."""
    with pytest.raises(InputError, match=r"scale_time: .* is not accepted"):
        expand(list=[{"scale_time": value}])


def test_a_study_has_as_many_points_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST", 4)
    assert len(expand(grid={"layer.band": [2, 4]}, seeds=2)) == 4
    with pytest.raises(InputError, match=r"5 points are more than a study can hold \(4\)"):
        expand(seeds=5)


def test_a_torn_table_is_made_again(tmp_path: Path) -> None:
    """Its runs are there, and are not done again."""
    points = expand(seeds=3)
    run(points, tmp_path)
    table = sweeps.results_table(tmp_path)
    (tmp_path / "results.parquet").write_bytes(b"PAR1 and no more")
    assert run(points, tmp_path).reused == 3
    assert sweeps.results_table(tmp_path).equals(table)
