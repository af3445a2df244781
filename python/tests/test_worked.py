"""Figures and texts of the package, each worked out by hand from a few numbers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from smrlab import InputError, Trace, api, outdir, payload, results, summary
from smrlab.cli import console, finish, kept, zones
from smrlab.plots import outside
from smrlab.sweeps import estimate, halving, plan, quantity, samples, status
from smrlab.sweeps.grid import Point
from smrlab.sweeps.inputs import prefill_of


def test_settings_are_numbers_of_a_dimension() -> None:
    """Powers of ten and of two are told apart; a block has 512 bytes; words are no numbers."""
    of = {
        "1%": (1, "%"), "2blk": (1024, "B"), "3kB": (3e3, "B"), "3KiB": (3072, "B"), "2MB": (2e6, "B"),
        "2MiB": (2 << 20, "B"), "1TB": (1e12, "B"), "1TiB": (2**40, "B"), "7B": (7, "B"), "500us": (5e-4, "s"),
        "3ns": (3e-9, "s"), "2ms": (2e-3, "s"), "2s": (2, "s"), "3min": (180, "s"), "2h": (7200, "s"),
        "1_000": (1000, ""), "1e3": (1000, ""), 8: (8, ""), 0.5: (0.5, ""),
    }  # fmt: skip
    for text, (value, dimension) in of.items():
        found = quantity.quantity(text)
        assert found is not None
        assert found[0] == pytest.approx(value), text
        assert found[1] == dimension, text
    assert [quantity.quantity(v) for v in ("rmw", "1 parsec", "", True, None)] == [None] * 5
    assert sorted(["10%", "rmw", "9%", "cmr"], key=quantity.order) == ["9%", "10%", "cmr", "rmw"]


def zone(condition: str, start: int, pointer: int | None) -> dict[str, Any]:
    return {"condition": condition, "start": start, "blocks": 700, "pointer": pointer}


def test_a_zone_is_as_full_as_its_pointer_says() -> None:
    """A seventh of 700 blocks is a step; neighbours of one condition are a row, with what all of them hold."""
    cells = [zones.cell(zone("closed", 1400, 1400 + n)) for n in (0, 99, 100, 350, 699, 700)]
    assert cells == ["▁", "▁", "▂", "▄", "▇", "▇"]
    marks = ["empty", "full", "read-only", "offline", "not-write-pointer"]
    assert [zones.cell(zone(mark, 0, None)) for mark in marks] == ["·", "█", "r", "x", "c"]
    closed = [zone("closed", 700, 800), zone("closed", 1400, 1450)]
    rows = zones.alike([zone("not-write-pointer", 0, None), *closed, zone("full", 2100, 2800)])
    assert [(a, b, z["start"], n) for a, b, z, n in rows] == [(0, 0, 0, 0), (1, 2, 700, 150), (3, 3, 2100, 700)]


def test_rounds_and_the_better_half_of_a_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the points on three times the requests; rows of the last round judge; who has no value is last."""
    least, most = halving.Halving("m", 10, 100, 1 / 3), halving.Halving("m", 10, 100, 0.5, most=True)
    assert least.rounds(9) == [(9, 10), (3, 30), (1, 90), (1, 100)]
    assert most.rounds(9) == [(9, 10), (4, 20), (2, 40), (1, 80), (1, 100)]
    of = {"metric": "m", "first": "10", "requests": 100}
    assert halving.Halving.of(of, "x") == least
    wrongs: tuple[dict[str, Any], ...] = ({"keep": "x"}, {"keep": 1}, {"first": 101}, {"first": 0}, {"goal": "least"})
    for wrong in wrongs:
        with pytest.raises(
            InputError, match="x: halving: first is at most requests, keep between 0 and 1, goal min or"
        ):
            halving.Halving.of({**of, **wrong}, "x")
    table = pa.table({"m": [1.0, 2.0, 3.0, None, 5.0, 4.0, 4.0]})
    monkeypatch.setattr(halving, "results_table", lambda _: table)
    left = cast("Any", ["a", "b", "c", "d"])
    assert "".join(map(str, halving._best(left, least, cast("Any", None)))) == "cdba"
    assert "".join(map(str, halving._best(left, most, cast("Any", None)))) == "bcda"


def test_draws_are_at_their_share_of_the_range() -> None:
    """Whole numbers are rounded; both ends are told in the unit of the first; logarithms have a root in the middle."""
    for low, high, scale, values in (
        (1, 4, "linear", [1, 2, 2, 3, 4]),
        ("1MiB", "2GiB", "linear", ["1MiB", "512.8MiB", "1024MiB", "1536MiB", "2048MiB"]),
        ("1ms", "10s", "log", ["1ms", "10ms", "100ms", "1000ms", "10000ms"]),
    ):
        draw = samples._draw({"from": low, "to": high, "scale": scale}, "x")
        assert [draw(share) for share in (0, 0.25, 0.5, 0.75, 1)] == values
    draw = samples._draw(["a", "b", "c"], "x")
    assert [draw(share) for share in (0, 0.34, 0.66, 0.67, 1)] == ["a", "b", "b", "c", "c"]


def test_memory_of_a_run_is_bounded_by_one_drive_only() -> None:
    """160 bytes a request and 256 MiB; the drive has 2880 blocks, an array may have several drives."""
    for of, requests in (
        ({"requests": "1k"}, 1000),
        ({"requests": "1k", "limit": "500"}, 500),
        ({"requests": "1M", "limit": "2k", "array": "single"}, 2000),
        ({"requests": "1M"}, 2880),
        ({"requests": "1M", "array": "raid5,drives=5"}, 1_000_000),
    ):
        spec = {"drive": "tiny", "trace": f"synth:uniform,requests={of['requests']}", **of}
        assert estimate.memory_of(spec) == (256 << 20) + 160 * requests


def test_a_result_is_there_when_its_tables_are(tmp_path: Path) -> None:
    """The document is last; runs of several are numbered from 1."""
    seen: list[list[Path]] = []
    tables = lambda at: seen.append([*at.iterdir()])  # noqa: E731
    results.save_single(tmp_path, cast("Any", SimpleNamespace(name="a b", doc={"schema": 1}, write_tables=tables)))
    assert seen == [[]]
    assert results.run_folder(1, "a b/c, 10 %") == "runs/01-a_b_c_10"


def test_all_kinds_of_requests_are_requests() -> None:
    """Each kind adds to their number."""
    kinds = ("reads", "writes", "flushes", "discards", "zone_commands")
    assert summary.derived({"host": {kind: 1 << i for i, kind in enumerate(kinds)}})["requests"] == 31


def test_a_heat_map_reaches_to_the_highest_address() -> None:
    """Rows in any order: windows of 2 s from 4 s on, ranges of 10 blocks."""
    table = pa.table({
        "window": [2, 4, 3], "bin": [0, 3, 1], "start_s": [4.0, 8.0, 6.0],
        "lba_lo": [0, 30, 10], "lba_hi": [10, 40, 20], "reads": [1, 2, 4], "writes": [8, 16, 32],
    })  # fmt: skip
    heat = payload.heatmap(table)
    assert heat is not None
    assert [heat[k] for k in ("cols", "rows", "t0", "t1", "lba0", "lba1")] == [5, 4, 0, 10, 0, 40]
    assert [(i, n) for i, n in enumerate(heat["reads"]) if n] == [(2, 1), (8, 4), (19, 2)]
    assert [(i, n) for i, n in enumerate(heat["writes"]) if n] == [(2, 8), (8, 32), (19, 16)]


def test_a_plan_adds_what_each_point_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 100 requests take 3 s, 1000 take 12 s: 2 s a run and 10 ms a request."""
    timed = {3000: (3.0, 100, 7), 30_000: (12.0, 1000, 9)}
    monkeypatch.setattr(plan, "_timed", lambda _, n: timed[n])
    spec = {"drive": "tiny", "layer": "rmw"}
    points = [
        Point({"n": 1}, {**spec, "trace": "synth:uniform,requests=500"}, 7 << 30),
        Point({"n": 2}, {**spec, "trace": ["synth:uniform,requests=500", "synth:zipf,requests=300"], "limit": "600"}),
        Point({"n": 3}, {**spec, "trace": "synth:uniform,requests=20"}),
    ]
    told = plan.plan_of(cast("Any", SimpleNamespace(points=points)))
    assert told["cpu_s"] == pytest.approx(3 * 2 + (500 + 600 + 20) / 100)
    assert [told[k] for k in ("runs", "requests", "memory_bytes_a_run", "result_bytes")] == [3, 1120, 7 << 30, 27]
    assert told["time_s"] == {str(n): pytest.approx(told["cpu_s"] / n) for n in (1, 8, 64, 512)}
    # Where one of three is done, two thirds are left, of each layer and in all.
    monkeypatch.setattr(plan, "_done", lambda _: 1)
    points[2] = Point({"n": 3}, {**points[2].spec, "layer": "cmr"})
    left = plan.plan_of(cast("Any", SimpleNamespace(points=points)))
    assert (left["cpu_s"], left["result_bytes"]) == (pytest.approx(told["cpu_s"] * 2 / 3), 18)
    assert left["cpu_s_by_layer"] == {"rmw": pytest.approx((4 + 11) * 2 / 3), "cmr": pytest.approx(2.2 * 2 / 3)}


class Study:
    """Six runs: `a`, `b` done, `b` failed before, `c` failed, `d` under way, `e` on a machine that is gone."""

    def document(self, name: str) -> dict[str, Any]:
        """What is in one of its files."""
        if name == "sweep.json":
            return {"schema": 2, "engine": "x", "points": [{"point": p, "settings": {"n": p}} for p in "abcdef"]}
        if name.startswith("points/"):
            return {"reason": f"{name} says why"}
        old = "/e." in name
        return {"host": "elsewhere", "at": time.time() - (10_000 if old else 1)}

    def times(self, folder: str, _end: str = "") -> dict[str, float]:
        """When its files changed."""
        now = time.time()
        if folder == "claims":
            return {f"{p}.json": now for p in "ade"}
        return {"a/result.json": now - 20, "b/result.json": now - 10, "b/failed.json": now - 60, "c/failed.json": now}


def test_a_study_tells_how_far_it_is() -> None:
    """What was done since it failed is done; a claim on what is done, or of who is gone, is no run under way."""
    said = status.status(cast("Any", Study()))
    assert [said[key] for key in ("runs", "done", "failed", "left")] == [6, 2, 1, 3]
    assert said["running"] == [{"settings": {"n": "d"}, "point": "d", "host": "elsewhere"}]
    assert said["failures"] == [{"settings": {"n": "c"}, "reason": "points/c/failed.json says why"}]
    assert said["runs_per_s"] == pytest.approx(1 / 20, rel=0.05)
    assert said["left_s"] == pytest.approx(60, rel=0.05)


def test_steps_of_a_trace_add_up() -> None:
    """Conditions hold together, the smaller of two heads counts, scales multiply."""
    trace = Trace("a").between("1s", "2s").where(op="write").where(size="..4KiB", lba="1GB..")
    trace = trace.head("1k").head(7).head(9).scale_time(2).scale_time(3).wrap(5)
    steps = "between: from 1s until 2s, where: op=write,size=..4KiB,lba=1GB.., head: 7, scale_time: 6.0, wrap: 5"
    assert repr(trace) == f"Trace(source: a, {steps})"


def test_runs_share_a_prefill_where_all_before_it_is_the_same(tmp_path: Path) -> None:
    """What is done after it may differ; the trace counts where addresses are wrapped into what was written."""
    base = {"drive": "tiny", "layer": "rmw", "prefill": "90%", "array": "single", "scheduler": "fcfs", "limit": 5}

    def key(trace: str = "t", **more: Any) -> str | None:
        found = prefill_of(base | more, trace, {}, cast("Any", tmp_path))
        return found.key if found else None

    assert key() == key(trace="u", scheduler="sptf", limit=7, scale_time=2.0)
    others: list[dict[str, Any]] = [
        {},
        {"layer": "s-block"},
        {"drive": "modern-7200"},
        {"prefill": "80%"},
        {"seed": 2},
        {"wrap": "prefilled"},
    ]
    assert len({key(**other) for other in others}) == len(others)
    assert key(wrap="prefilled") != key(wrap="prefilled", trace="u")
    none: list[dict[str, Any]] = [
        {"prefill": "0%"},
        {"prefill": "read"},
        {"layer": "a.py:B"},
        {"array": "raid5"},
        {"verify_media": True},
    ]
    assert [key(**other) for other in none] == [None] * len(none)


def test_notes_below_runs_have_their_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest scale counts; a share of reads is of reads; 100 s of 4 drives at half their load came in 50 s."""
    told: list[str] = []
    monkeypatch.setattr(console, "note", told.append)

    def notes(*docs: dict[str, Any]) -> list[str]:
        told.clear()
        base = {"host": {"writes": 0}, "spec": {"layer": "rmw", "array": "single"}}
        finish._tell([(f"run{i}", base | doc) for i, doc in enumerate(docs)])
        return told

    late = [{"offered_load": load, "overload": {"suggested_scale_time": scale}} for load, scale in ((1.5, 5), (3, 2))]
    (note,) = notes(*late)
    assert "run0 (1.5 times its capacity), run1 (3 times its capacity)" in note
    assert "--scale-time 5," in note
    (note,) = notes({"offered_load": 1.01}, {"offered_load": 2})
    assert "--scale-time 2.8," in note
    behind = {"members": [1, 2, 3, 4], "offered_load": 0.5, "busy_s": 100.0, "makespan_s": 100.0, "requests": 1000}
    (note,) = notes(behind | {"response_ms": {"mean": 6000.0}})
    assert "--scale-time 2.8," in note
    for more in ({"response_ms": {"mean": 4999.0}}, {"requests": 999}, {"makespan_s": 60.0}):
        assert notes(behind | {"response_ms": {"mean": 6000.0}} | more) == []
    (note,) = notes({"requests": 1000, "host": {"writes": 900, "reads": 100, "reads_unwritten": 2}})
    assert note.startswith("2 % of the reads")
    assert notes({"requests": 1000, "host": {"writes": 900, "reads": 100, "reads_unwritten": 1}}) == []
    dvs = {
        "host": {"writes": 1, "blocks_written": 100}, "spec": {"layer": "cmr", "array": "dvs,overprovision=9%"},
        "media": {"by_cause": {"host": {"blocks_written": 120}}},
    }  # fmt: skip
    moved = {"cleaning": {"by_kind": {"group-collection": {"relocated_blocks": 300}}}}
    (note,) = notes(dvs | moved)
    assert "collections moved 2.5" in note
    assert "above 9%" in note
    told.clear()
    caches = [{"spec": {"prefill": p}, "cache": {"cache_blocks": 2048}} for p in ("50%,of=cache", "0%,of=cache")]
    finish.tell_filled([("a", caches[0]), ("b", caches[1])])
    assert told == ["Written before the run: a 50% of its cache (1 MiB); b nothing, it has no cache."]


def test_a_replay_names_what_is_not_usual() -> None:
    """Options that a served drive leaves as they are are left out; the drive is what the engine says."""
    config = {
        "record": "/t/a b.csv",
        "drive": "x.toml",
        "layer": "rmw",
        "array": None,
        "scheduler": "fcfs",
        "metadata": "pm",
        "seed": 0,
    }
    command = "smrlab run --trace '/t/a b.csv' --drive y.toml --layer rmw --metadata pm --seed 0"
    for server, there in (({}, ""), ({"folder": str(Path.cwd())}, ""), ({"folder": "/a b"}, "cd '/a b' && ")):
        served = SimpleNamespace(
            config=lambda: config, ask=lambda _: {"engine": {"drive": "y.toml"}}, server=lambda server=server: server
        )
        assert kept.recorded(cast("Any", served)) == ("/t/a b.csv", there + command)
    assert kept.recorded(cast("Any", SimpleNamespace(config=dict))) is None


def test_runs_of_one_layer_have_numbers() -> None:
    """Each has a name of its own."""
    with pytest.raises(InputError, match="layer 5: a text, or a class"):
        api.layer_class(cast("Any", 5))
    assert api.unique_names(["rmw", "cmr", "rmw", "rmw"]) == ["rmw", "cmr", "rmw #2", "rmw #3"]
    assert api.unique_names(["a #2", "a", "a", "a #2"]) == ["a #2", "a", "a #3", "a #2 #2"]


def test_what_is_done_to_several_traces_is_one_thing() -> None:
    """What differs between them is refused; it would be done to all."""
    both = api.make_spec([Trace("a").head(5), Trace("b").head(5)], {"drive": "tiny", "layer": None})
    assert both == {"trace": ["a", "b"], "limit": 5, "drive": "tiny"}
    with pytest.raises(InputError, match=r"one has limit 5, another 9: save\(\) them first"):
        api.make_spec([Trace("a").head(5), Trace("b").head(9)], {})


def test_what_a_dead_run_left_is_removed_alone(tmp_path: Path) -> None:
    """Folders of runs under way, told by their process, and what has no number stay."""
    for name in (os.getpid(), 2**22 + 1, "x"):
        (tmp_path / f"{outdir._PARTIAL}.{name}").mkdir()
    outdir._sweep(tmp_path)
    assert sorted(p.name.rpartition(".")[2] for p in tmp_path.iterdir()) == sorted([str(os.getpid()), "x"])


def test_pictures_of_measured_drives_show_what_was_measured() -> None:
    """Seeks up and back, reads and writes, in milliseconds; zones one behind the other."""
    up, back = [[1, 1e6], [9, 2e6]], [[1, 3e6], [9, 4e6]]
    (axes,) = outside.seeks({"read": up, "read_by_direction": [up, back], "write": back}).axes
    assert [list(cast("Any", line.get_ydata())) for line in axes.lines] == [[1, 2], [3, 4], [3, 4]]
    assert [line.get_label() for line in axes.lines] == ["reads, up", "reads, back", "writes"]
    (axes,) = outside.zones([(90, 200), (60, 150), (30, 100)]).axes
    steps = cast("Any", axes.patches[0]).get_data()
    assert (list(steps.values), list(steps.edges)) == ([200, 150, 100], [0, 90, 150, 180])


def test_numbers_of_a_table_stand_below_each_other() -> None:
    """Its first column is of names, which are not folded."""
    for numeric, sides in ((True, ["left", "right", "right"]), (False, ["left"] * 3)):
        columns = console.table("t", ["a", "b", "c"], numeric=numeric).columns
        assert [c.justify for c in columns] == sides
        assert [c.no_wrap for c in columns] == [True, False, False]


def test_parts_of_a_hypercube_come_in_an_order_that_is_drawn() -> None:
    """Each setting has one of its own, and takes each part once, anywhere in it."""
    rows = samples.sampled({"points": 40, **{key: {"from": 0.0, "to": 40.0} for key in "ab"}}, "x")
    parts = {key: [int(row[key]) for row in rows] for key in "ab"}
    assert all(sorted(order) == list(range(40)) for order in parts.values())
    assert list(range(40)) not in parts.values()
    assert parts["a"] != parts["b"]
    within = [row["a"] % 1 for row in rows]
    assert (min(within) < 0.2, max(within) > 0.8) == (True, True)
    assert samples.sampled({"points": 40, "seed": 2, "a": {"from": 0.0, "to": 40.0}}, "x")[0]["a"] != rows[0]["a"]
