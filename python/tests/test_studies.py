"""Studies: files of settings, samples, successive halving, what mattered, plans, status, the table while it grows."""

from __future__ import annotations

import json
import os
import re
import time
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Invoke

import smrlab as lab
from smrlab import InputError, _core, sweeps
from smrlab.executors import Failed, Piece
from smrlab.executors.local import LocalPool
from smrlab.secret import hidden
from smrlab.sweeps import halving, machine
from smrlab.sweeps.halving import Halving
from smrlab.sweeps.quantity import quantity
from smrlab.sweeps.samples import sampled
from smrlab.sweeps.summary import alike, measured, page, table_of

BASE = {"drive": "tiny", "trace": ["synth:uniform,requests=400"], "layer": "rmw", "wrap": "capacity"}
RANGE = {"from": "1%", "to": "16%", "scale": "log"}


def test_a_latin_hypercube_takes_each_part_of_each_range_once() -> None:
    table = {"points": 8, "layer.cache": RANGE, "seed": 3, "scale_time": {"from": 1, "to": 80}}
    rows = sampled(dict(table), "x")
    shares = [quantity(r["layer.cache"])[0] for r in rows]  # type: ignore[index]
    # Each eighth of the range, in logarithms: from 1 to 16 by factors of the square root of two.
    assert sorted(int((__import__("math").log2(s)) * 2) for s in shares) == list(range(8))
    assert sorted((r["scale_time"] - 1) * 8 // 79.0001 for r in rows) == list(range(8))
    assert rows == sampled(dict(table), "x")
    assert rows != sampled({**table, "seed": 4}, "x")
    assert all(r["layer.cache"].endswith("%") for r in rows)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"points": 2}, "nothing to draw"),
        ({"points": 0, "seed": 1, "x": [1]}, "whole number from 1"),
        ({"points": 2, "method": "grid", "x": [1]}, "random or latin-hypercube"),
        ({"points": 2, "x": {"from": "1%", "to": "2MB"}}, "no two quantities of one kind"),
        ({"points": 2, "x": {"from": 0, "to": 2, "scale": "log"}}, "above 0 only"),
    ],
)
def test_samples_that_cannot_be_say_why(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sweeps.expand({"base": BASE, "sample": table}, "x")


def test_settings_come_from_files_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('scale_time = 2.0\n[layer]\nband = "2tracks"\n')
    (tmp_path / "b.json").write_text('[{"scale_time": 3.0}]')
    (tmp_path / "c.csv").write_text("scale_time,layer.band\n4,4tracks\n5,\n")
    pq.write_table(pa.table({"scale_time": [6.0]}), tmp_path / "d.parquet")
    points = sweeps.expand({"base": BASE, "files": ["*.*"]}, "x", tmp_path)
    assert [p.settings["scale_time"] for p in points] == [2.0, 3.0, 4, 5, 6.0]
    assert [p.spec["layer"] for p in points] == ["rmw,band=2tracks", "rmw", "rmw,band=4tracks", "rmw", "rmw"]
    with pytest.raises(InputError, match="no file is called"):
        sweeps.expand({"base": BASE, "files": ["z*"]}, "x", tmp_path)


def test_those_that_go_on_are_the_better_ones_of_the_last_round(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"iops": [1.0, 2.0, 9.0, 3.0, None]})
    monkeypatch.setattr(halving, "results_table", lambda _: table)
    points = [sweeps.Point({"n": n}, {}) for n in range(3)]
    best = halving._best(points, Halving("iops", 1, 2, 0.5), cast("Any", None))
    assert [p.settings["n"] for p in best] == [1, 0, 2]


def test_halving_runs_the_better_ones_on_more_of_the_trace(tmp_path: Path) -> None:
    rounds = Halving("response_ms.mean", 100, 400, 0.5).rounds(4)
    assert rounds == [(4, 100), (2, 200), (1, 400)]
    # Where a share more is not a request more, it is one all the same.
    assert Halving("iops", 1, 4, 0.9).rounds(2) == [(2, 1), (2, 2), (2, 3), (2, 4)]
    spec = {
        "base": BASE,
        "grid": {"layer.band": [2, 3, 4, 6]},
        "halving": {"metric": "response_ms.mean", "first": 100, "requests": 400, "keep": 0.5},
    }
    done = lab.sweep(spec, out=tmp_path)
    assert (done.outcome.points, done.outcome.finished) == (7, 7)
    rows = done.table().to_pylist()
    assert [(r["layer.band"], r["limit"], r["host.reads"] + r["host.writes"]) for r in rows[:4]] == [
        (b, 100, 100) for b in (2, 3, 4, 6)
    ]
    first = sorted(rows[:4], key=lambda r: r["response_ms.mean"])
    assert [r["layer.band"] for r in rows[4:6]] == [r["layer.band"] for r in first[:2]]
    second = min(rows[4:6], key=lambda r: r["response_ms.mean"])
    assert (rows[6]["layer.band"], rows[6]["limit"]) == (second["layer.band"], 400)
    again = lab.sweep(spec, out=tmp_path)
    assert (again.outcome.finished, again.outcome.reused) == (0, 7)


def test_a_halving_over_results_of_another_engine_says_so(tmp_path: Path) -> None:
    """The first round finds them and writes its own beside; the word of it is that of the whole study."""
    spec = {
        "base": BASE,
        "grid": {"layer.band": [2, 3, 4, 6]},
        "halving": {"metric": "response_ms.mean", "first": 50, "requests": 200, "keep": 0.5},
    }
    assert lab.sweep(spec, out=tmp_path).outcome.note == ""
    index = tmp_path / "sweep.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "engine": "0.0.0 another"}))
    again = lab.sweep(spec, out=tmp_path)
    assert (again.outcome.reused, "holds results of 0.0.0 another" in again.outcome.note) == (7, True)


def test_what_explains_a_metric_is_told_first() -> None:
    rows = [{"a": a, "b": b, "m": 10.0 * a + b} for a in (1, 2, 3) for b in (0, 1)]
    found = measured(rows, "m", ["b", "a"])
    assert [e["setting"] for e in found["settings"]] == ["a", "b"]
    # By hand: sum of squares by a is 2 * (100 + 0 + 100) = 400, by b 6 * 0.25 = 1.5, in all 401.5.
    assert [round(e["share"], 6) for e in found["settings"]] == [round(400 / 401.5, 6), round(1.5 / 401.5, 6)]
    assert found["most"] == {"value": 31.0, "b": 1, "a": 3}
    assert not found["logarithm"]
    drawn = [{"x": float(i), "m": float(i)} for i in range(40)]
    (effect,) = measured(drawn, "m", ["x"])["settings"]
    assert len(effect["effect"]) == 10
    assert 0.98 < effect["share"] < 1
    # Eight points of two settings that are drawn, twice each: halves of `a` differ by 4 of a variance of 5.25, those of
    # `b` not at all, though each value of `b` goes with one of `a`.
    rows = [{"a": a, "b": b, "seed": s, "m": float(a)} for a, b in enumerate((3, 6, 1, 4, 7, 2, 5, 0)) for s in (1, 2)]
    shares = {e["setting"]: e["share"] for e in measured(rows, "m", ["a", "b", "seed"])["settings"]}
    assert shares == {"a": pytest.approx(4 / 5.25), "b": 0, "seed": 0}


def test_the_summary_is_a_page_with_pictures(smrlab: Invoke, tmp_path: Path) -> None:
    lab.sweep({"base": BASE, "grid": {"layer.band": [2, 4]}, "seeds": 2}, out=tmp_path)
    done = smrlab("sweep", "summary", tmp_path, "--metric", "response_ms.mean", "--json")
    (metric,) = done.json()["metrics"]
    assert metric["settings"][0]["setting"] == "layer.band"
    assert "![What each setting does](summary-response_ms.mean.svg)" in (tmp_path / "summary.md").read_text()
    # A line each, for who reads it, too.
    assert '\n "metrics": [\n' in (tmp_path / "summary.json").read_text()
    assert (tmp_path / "summary-response_ms.mean.svg").read_bytes().startswith(b"<?xml")
    for metric, near in (("response_ms.none", "response_ms.mean"), ("status", "status")):
        wrong = smrlab("sweep", "summary", tmp_path, "--metric", metric)
        assert (wrong.status, f"near it: {near}" in wrong.err) == (2, True)


def test_a_summary_says_where_the_ends_of_a_metric_are() -> None:
    rows: list[dict[str, Any]] = [{"a": a, "b": None if a == 2 else "x", "m": 10.0 * a} for a in (1, 2, 3)]
    told = page({"runs": 3, "metrics": [measured(rows, "m", ["a", "b"])]})
    assert told.startswith("# What mattered\n\n3 runs. ")
    lines = told.splitlines()
    assert "Least of all: 10 (a=1, b=x)" in lines
    assert "Most of all: 30 (a=3, b=x)" in lines
    (row,) = (line for line in lines if line.startswith("| a |"))
    assert row.endswith("| 1 (10) | 3 (30) |")
    # What a run does not have is not said of it.
    (low, *_) = page({"runs": 1, "metrics": [measured(rows[1:], "m", ["a", "b"])]}).split("Most of all")
    assert "Least of all: 20 (a=2)" in low.splitlines()


def test_a_summary_says_where_means_are_geometric_and_where_nothing_mattered(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: of 1 and 100 the geometric mean is 10, of 4 and 9 it is 6; the means are 50.5 and 6.5."""
    rows: list[dict[str, Any]] = [
        {"layer": layer, "cache": i, "m": m, "iops": 25.0 + i / 10}
        for layer, values in (("a", (1.0, 100.0)), ("b", (4.0, 9.0)))
        for i, m in enumerate(values)
    ]
    far, same = (measured(rows, metric, ["layer", "cache"]) for metric in ("m", "iops"))
    told = page({"runs": 4, "metrics": [far, same]})
    assert re.search(r"\| layer \| \d+% \| b \(6\) \| a \(10\) \|", told)
    assert " ".join(told.split()).count("geometric mean") == 1
    assert "The same in all runs, within 1%: 25 to 25.1." in told
    assert "summary-iops.svg" not in told
    assert "geometric means" in table_of(far)[0]
    monkeypatch.setattr("smrlab.plain.width", lambda: 60)
    long = measured([{**r, "layer": r["layer"] * 90} for r in rows], "m", ["layer", "cache"])
    assert max(map(len, table_of(long))) <= 60, "as wide as the terminal"
    assert table_of(same) == ["IOPS (requests/s): the same in all runs, within 1%"]
    apart = measured([{**r, "iops": r["iops"] + r["cache"]} for r in rows], "iops", ["layer", "cache"])
    assert not alike(apart)


def test_a_machine_keeps_what_was_used_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for three: the one that was not used for the longest time goes; one in use and the new one stay."""
    monkeypatch.setenv("SMRLAB_INPUTS", str(tmp_path))
    monkeypatch.setenv("SMRLAB_INPUTS_BYTES", "3500")

    def make(place: Path) -> dict[str, Any]:
        (place / "data").write_bytes(bytes(1000))
        return {}

    def there() -> list[str]:
        return sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith("."))

    def use(key: str) -> list[str]:
        for note in tmp_path.glob("*/note.json"):
            os.utime(note, (note.stat().st_atime, note.stat().st_mtime - 1000))
        with machine.held(key, make) as (place, noted):
            assert (place.name, noted["bytes"]) == (key, 1000)
        return there()

    last: list[str] = []
    for key in "mcxmaxqxcbcaxmamzbkzya":
        last = [*(k for k in last if k != key), key][-3:]
        assert use(key) == sorted(last)
    # Older than all others, and in use: that after it goes.
    with machine.held(last[0], make):
        os.utime(tmp_path / last[0] / "note.json", (1, 1))
        assert use("new") == sorted([last[0], last[2], "new"])
    monkeypatch.setenv("SMRLAB_INPUTS_BYTES", "10")
    assert use("alone") == ["alone"]


def test_a_plan_counts_runs_requests_and_what_is_there(smrlab: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        '[base]\ndrive = "tiny"\ntrace = "synth:uniform,requests=5k"\nwrap = "capacity"\nlayer = "rmw"\n'
        '[grid]\n"layer.band" = ["2tracks", "4tracks"]\n'
    )
    plan = smrlab("sweep", file, "--plan", "--json").json()
    assert (plan["runs"], plan["done"], plan["requests"]) == (2, 0, 10_000)
    assert plan["cpu_s"] > 0
    assert plan["time_s"]["1"] >= plan["time_s"]["8"] > 0
    assert smrlab("sweep", file, "--out", tmp_path / "o").status == 0
    after = smrlab("sweep", file, "--plan", "--out", tmp_path / "o", "--json").json()
    assert (after["done"], after["cpu_s"]) == (2, 0)
    assert "the runs in" in after["basis"]
    assert "2 runs, 2 of them there" in smrlab("sweep", file, "--plan", "--out", tmp_path / "o").out


def test_status_tells_failures_and_who_is_at_work(smrlab: Invoke, tmp_path: Path) -> None:
    from smrlab.sweeps.claims import claimed

    (tmp_path / "far").write_text("0.0 0 4000 8 0\n")
    traces = ["synth:uniform,requests=100", f"{tmp_path / 'far'}:disksim"]
    done = lab.sweep({"base": {"drive": "tiny", "layer": "rmw"}, "grid": {"trace": traces}}, out=tmp_path / "o")
    assert len(done.outcome.failed) == 2 - done.outcome.finished
    told = smrlab("sweep", "status", tmp_path / "o", "--json").json()
    assert (told["runs"], told["failed"]) == (2, len(done.outcome.failed))
    assert all("wrap" in f["reason"] for f in told["failures"])
    rows = done.table().to_pylist()
    assert {r["status"] for r in rows if r["reason"]} == {"failed"}
    point = rows[0]["point"]
    store = sweeps.Store(tmp_path / "o")
    store.remove(f"points/{point}", tree=True)
    with claimed(store, point, "somebody"):
        told = smrlab("sweep", "status", tmp_path / "o", "--json").json()
        assert [r["point"] for r in told["running"]] == [point]
    assert "1 left" in smrlab("sweep", "status", tmp_path / "o").out
    assert smrlab("sweep", "status", tmp_path).status == 2


def test_a_study_of_an_earlier_version_says_so(smrlab: Invoke, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(json.dumps({"schema": 1, "points": []}))
    told = smrlab("sweep", "status", tmp_path)
    assert (told.status, "an earlier version made this sweep" in told.err) == (2, True)
    done = lab.sweep({"base": BASE}, out=tmp_path)
    assert "holds results of an earlier version of smrlab" in done.outcome.note
    assert not lab.sweep({"base": BASE}, out=tmp_path).outcome.note


def test_memory_is_bounded_by_what_the_drive_holds() -> None:
    from smrlab.sweeps.estimate import A_REQUEST, BASE, memory_of

    run = {"drive": "tiny", "layer": "rmw", "trace": ["synth:uniform,requests=2k"]}
    assert memory_of(run) == BASE + 2000 * A_REQUEST
    assert memory_of({**run, "limit": "1k"}) == BASE + 1000 * A_REQUEST
    # The drive has 2880 blocks.
    assert memory_of({**run, "trace": ["synth:uniform,requests=1G"]}) == BASE + 2880 * A_REQUEST


def test_a_panic_or_anything_else_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    class PanicException(BaseException):
        """As the engine's are: no Exception."""

    engine = _core.run

    def run(spec: str, *rest: Any) -> Any:
        if '"seed": 2' in spec:
            raise PanicException("index out of bounds")
        return engine(spec, *rest)

    from smrlab.sweeps import identity

    identity.fingerprint()
    monkeypatch.setattr(_core, "run", run)
    done = lab.sweep({"base": BASE, "seeds": 3}, out=tmp_path)
    assert done.outcome.finished == 2
    assert done.outcome.failed == {"seed=2": "the engine panicked, which it never should: index out of bounds"}


def test_the_table_opens_with_one_line_while_the_study_grows(tmp_path: Path) -> None:
    lab.sweep({"base": BASE, "grid": {"layer": ["rmw", "cmr", "disk-cache"]}}, out=tmp_path)
    path = tmp_path / "results.parquet"
    assert pq.read_table(path).num_rows == 3
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert len(pandas.read_parquet(path)) == 3


@pytest.mark.parametrize("tool", ["duckdb", "polars"])
def test_other_tools_open_the_table(tool: str, tmp_path: Path) -> None:
    module = pytest.importorskip(tool, reason=f"{tool} is not installed")
    lab.sweep({"base": BASE, "grid": {"layer": ["rmw", "cmr"]}}, out=tmp_path)
    path = tmp_path / "results.parquet"
    rows = module.sql(f"select * from '{path}'").fetchall() if tool == "duckdb" else module.read_parquet(path).rows()
    assert len(rows) == 2


def test_runs_that_do_not_fit_into_memory_together_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10 bytes three runs of 4 take 8 at most; one of 30 runs, but alone."""
    from threading import Lock

    lock, now, seen = Lock(), 0, list[tuple[int, int]]()

    def work(need: int, _: _core.Control) -> int:
        nonlocal now
        with lock:
            now += need
            seen.append((need, now))
        time.sleep(0.05)
        with lock:
            now -= need
        return need

    monkeypatch.setattr("smrlab.executors.local.installed", lambda: 10)
    needs = [4, 4, 4, 30, 4]
    pieces = [Piece(str(need), partial(work, need), memory=need) for need in needs]
    done: list[int] = []
    LocalPool(4).run(pieces, lambda _, value: done.append(value))
    assert sorted(done) == sorted(needs)
    assert {at for need, at in seen if need == 30} == {30}
    assert max(at for need, at in seen if need == 4) == 8


def test_two_at_the_same_study_share_what_either_does(tmp_path: Path) -> None:
    from threading import Thread

    points = sweeps.expand({"base": BASE, "seeds": 6}, "x")
    outcomes: list[sweeps.Outcome] = []

    def go() -> None:
        outcomes.append(sweeps.run_points(points, sweeps.Store(tmp_path), LocalPool(1)))

    threads = [Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(o.finished for o in outcomes) == 6
    assert [o.finished + o.reused for o in outcomes] == [6, 6]
    assert not list((tmp_path / "claims").iterdir())


def test_an_executor_tells_each_piece_and_stops_where_its_user_raises() -> None:
    told: dict[int, Any] = {}

    def work(number: int) -> Any:
        return lambda _: number if number else 1 / 0

    pieces = [Piece(str(n), work(n)) for n in range(4)]
    assert LocalPool(2).run(pieces, told.__setitem__) is False
    assert isinstance(told.pop(0), Failed)
    assert told == {1: 1, 2: 2, 3: 3}

    def refuse(number: int, value: Any) -> None:
        raise InputError(f"{number} {value}")

    with pytest.raises(InputError):
        LocalPool(1).run(pieces[1:], refuse)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:pw@host:80/a.gz?X-Amz-Signature=ab&b=c:msr is gone", "https://host:80/a.gz:msr is gone"),
        ("s3://bucket/web_?.csv:msr", "s3://bucket/web_?.csv:msr"),
        ("see 'https://h/x?token=1' and s3://k:s@b/y", "see 'https://h/x' and s3://b/y"),
        ("tcp://127.0.0.1:8786 a@b", "tcp://127.0.0.1:8786 a@b"),
    ],
)
def test_what_is_secret_in_a_url_is_not_shown(text: str, shown: str) -> None:
    assert hidden(text) == shown
    assert str(InputError(text)) == shown
