"""What the commands decide and tell beside their tables, each by a document or a stand-in made by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from commands import Invoke

import smrlab as lab
from smrlab import _core, devices, kept, keys, outdir, tables, targets, text, urls
from smrlab.cli import complete, picture, run, study, trace, validate
from smrlab.devices import Device
from smrlab.errors import InputError
from smrlab.executors import ExecutorLost
from smrlab.papers import figures
from smrlab.plots import drives as of_drives
from smrlab.plots import figures as drawn
from smrlab.simulation import Ran
from smrlab.sweeps import run as running
from smrlab.sweeps import summary, task
from smrlab.sweeps.identity import fingerprint
from smrlab.sweeps.inputs import PREFILLS, STATES, Prefill
from smrlab.sweeps.run import Outcome, Plan, run_points
from smrlab.sweeps.store import Store


def test_a_picture_puts_each_cell_where_its_time_and_address_are() -> None:
    """256 columns of 1 s and 3 rows of 8 blocks: the first row is the lowest, and column 255 is the last second."""
    cells = [{"reads": 0, "writes": 0} for _ in range(256 * 3)]
    cells[0]["reads"] = 9
    cells[256 * 2 + 255]["writes"] = 9
    grid = {"cells": cells, "column_ns": 10**9, "row_blocks": 8}
    lines = [line[11:] for line in picture.picture(grid, 255.5, 3 * 4096)]
    assert len(lines[0]) == min(picture.PICTURE[0], 256)
    dark = [
        (i, line.index(c)) for i, line in enumerate(lines[:3]) for c in set(line) if c != " " and line.count(c) == 1
    ]
    assert dark == [(0, len(lines[0]) - 1), (2, 0)]


@pytest.mark.parametrize(
    ("typed", "passes"), [("disk\n", True), ("Disk\n", False), ("other\n", False), ("\n", False), ("", False)]
)
def test_data_are_lost_only_where_the_name_was_typed(
    typed: str, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "disk"
    file.write_bytes(b"0")
    terminal = io.StringIO(typed)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    if passes:
        targets.confirm("disk", str(file), yes=False)
    else:
        with pytest.raises(InputError, match="the name typed is another"):
            targets.confirm("disk", str(file), yes=False)


def test_a_trace_is_known_by_its_file(tmp_path: Path) -> None:
    """Whatever it is called: it is not to be written over while it is read."""
    real, link, other = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    for file in (real, other):
        file.write_text("")
    link.symlink_to(real)
    sources = (f"{real}", f"{real}:msr,time=5", f"{link}", f"{other}", "synth:zipf")
    assert [trace._is_source(source, link) for source in sources] == [True, True, True, False, False]


def test_a_trace_of_many_files_is_not_written_among_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither over one of them, nor beside them, where it would be read with them the next time."""
    monkeypatch.chdir(tmp_path)
    Path("d", "e").mkdir(parents=True)
    Path("d", "a.csv").touch()
    new, old, deep, hidden, away = (Path(p) for p in ("d/all.parquet", "d/a.csv", "d/e/x.csv", "d/.x", "all.parquet"))
    for source, files in (
        ("d", [new, old]), (f"{tmp_path}/d:csv,x=1", [new, old]), ("d/*", [new, old, hidden]), ("d/*.csv:msr", [old]),
        ("./d/?.csv", [old]), ("*", [away]), ("d/e", [deep]),
    ):  # fmt: skip
        assert [file for file in (new, old, deep, hidden, away) if trace._is_source(source, file)] == files, source


def test_a_state_names_what_a_run_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = {"array": "raid5", "drive": "tiny", "layer": "cmr", "metadata": "8MiB", "blocks": 7}
    monkeypatch.setattr(_core, "state_json", lambda _: json.dumps(doc))
    assert run._state_of("f", "from_state") == {k: v for k, v in doc.items() if k != "blocks"}


def test_logs_that_were_brought_back_are_written_side_by_side(tmp_path: Path) -> None:
    ran = Ran("{}", {}, {"media.parquet": b"1", "host.parquet": b"2"})
    ran.write(tmp_path / "out")
    ran.write(None)
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == ran.logs


def test_numbers_have_three_digits_and_no_exponent() -> None:
    shown = [text.number(n) for n in (0.1234, 99.94, 99.96, 100.4, 999.6, 1234567)]
    assert shown == ["0.123", "99.9", "100", "100", "1,000", "1,234,567"]


def test_names_are_completed_from_their_beginning() -> None:
    assert complete.layers("cache") == []
    assert complete.layers("persistent-c") == ["persistent-cache"]


@pytest.mark.parametrize("kind", ["histograms", "bars"])
def test_a_papers_figure_is_drawn_as_it_says(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_histograms", "_bars"):
        monkeypatch.setattr(figures, name, lambda *_, name=name: Path(name))
    figure: Any = SimpleNamespace(kind=kind, experiment="e", id="f")
    runs: Any = {"e": []}
    assert figures.draw(figure, runs, Path()) == Path(f"_{kind}")


def test_a_page_says_at_which_value_a_metric_is_least() -> None:
    effect = [{"value": v, "mean": m, "count": 1} for v, m in (("a", 3.0), ("b", 1.0), ("c", 2.0))]
    one = {
        "metric": "iops",
        "logarithm": False,
        "settings": [{"setting": "layer", "share": 0.5, "effect": effect}],
        "least": {"value": 1.0, "layer": "b"},
        "most": {"value": 3.0, "layer": "a"},
    }
    page = summary.page({"runs": 3, "metrics": [one]})
    assert "| layer | 50% | b (1) | a (3) |" in page


def test_a_study_whose_workers_were_lost_counts_again_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first time the workers are lost; what is planned afterwards is what is done."""
    plans: list[Plan] = []
    used: list[Plan] = []

    def planned(*_: Any) -> Plan:
        plans.append(Plan([], {}))
        return plans[-1]

    class Study:
        table = SimpleNamespace(write=lambda: None)
        finished = 2

        def __init__(self, plan: Plan, *_: Any) -> None:
            used.append(plan)

        def run(self) -> Outcome:
            if len(used) == 1:
                raise ExecutorLost("gone")
            # One was there before this call, two since the attempt that was lost.
            return Outcome(5, 3, 1, {}, False)

    monkeypatch.setattr(running, "planned", planned)
    monkeypatch.setattr(running, "_Study", Study)
    executor: Any = SimpleNamespace(back=lambda: None)
    outcome = run_points([], Store(tmp_path), executor)
    assert (outcome.reused, outcome.finished) == (1, 3)
    assert len(plans) == 2
    assert all(a is b for a, b in zip(plans, used, strict=True))


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_runs_share_stays_for_those_that_are_left(
    interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = SimpleNamespace(run=lambda: Outcome(0, 0, 0, {}, interrupted))
    monkeypatch.setattr(running, "planned", lambda *_: Plan([], {}))
    monkeypatch.setattr(running, "_Study", lambda *_: ended)
    store = Store(tmp_path)
    shared = [f"{what}/k" for what in (PREFILLS, STATES)]
    for name in shared:
        store.write(name, b"x")
    run_points([], store, cast("Any", None))
    assert [store.read(name) is not None for name in shared] == [interrupted] * 2


def test_a_sweep_runs_as_many_at_a_time_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def chosen(*how: Any) -> Any:
        seen.append(how)
        raise InputError("enough")

    monkeypatch.setattr("smrlab.api.chosen", chosen)
    spec = {"base": {"drive": "tiny", "layer": "cmr", "trace": ["synth:uniform"]}, "seeds": 1}
    with pytest.raises(InputError, match="enough"):
        lab.sweep(spec, out=tmp_path, jobs=3)
    assert [how[1] for how in seen] == [3]


def test_a_server_that_wrote_no_number_is_not_waited_for(tmp_path: Path) -> None:
    device = Device(tmp_path)
    (tmp_path / "pid").write_text("")
    device._await_end()


def test_a_key_file_names_the_user_of_a_tls_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    psk = tmp_path / "keys"
    psk.write_text("alice:00ff\n")
    monkeypatch.setattr(Device, "tcp", lambda _: ("host", 10809))
    monkeypatch.setattr(Device, "server", lambda _: {"listen": "tcp:host:10809", "tls": {"psk": str(psk)}})
    assert Device(tmp_path).uri() == f"nbds://alice@host:10809/?tls-psk-file={psk}"


def test_a_device_that_died_shows_its_last_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smrlab: Invoke
) -> None:
    events = [{"time": float(n), "kind": "error", "text": f"number {n}"} for n in range(devices.LAST + 3)]
    device = Device(tmp_path / "d")
    for name, value in (("running", False), ("died", True), ("summary", {}), ("last_events", events), ("uri", "u")):
        monkeypatch.setattr(Device, name, lambda *_, value=value: value)
    monkeypatch.setattr(Device, "named", classmethod(lambda *_: device))
    monkeypatch.setattr("smrlab.cli.device._clock", lambda _: "now")
    doc = smrlab("device", "info", "d", "--json").json()
    shown = doc["last_events"]
    assert (len(shown), shown[-1]) == (devices.LAST, f"now error: number {devices.LAST + 2}")


def test_a_band_without_a_unit_is_told_where_a_device_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smrlab: Invoke
) -> None:
    made = SimpleNamespace(name="d", path=tmp_path)
    monkeypatch.setattr(Device, "create", classmethod(lambda *_: made))
    monkeypatch.setattr("smrlab.cli.device._made", lambda *_: None)
    done = smrlab("device", "create", "d", "--drive", "tiny", "--layer", "rmw,band=16", "--size", "64MiB")
    assert "16 of rmw means 16 tracks" in " ".join(done.err.split())


def test_measurements_that_are_no_text_are_refused_in_a_sentence(smrlab: Invoke, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    done = smrlab("geometry", "fit", tmp_path / "x.json", "--out", tmp_path / "d.toml")
    assert done.status == 2
    assert "x.json: is no text; give extraction.json" in done.err
    done = smrlab("validate", "tiny", tmp_path / "x.json")
    assert (done.status, "\0" in done.err, r"line 1: '��\0' is not a measured request" in done.err) == (2, False, True)


def test_a_comparison_needs_a_layer(smrlab: Invoke) -> None:
    done = smrlab("compare", "--drive", "tiny", "--trace", "synth:uniform,requests=10")
    assert (done.status, "give --layer NAME at least once" in done.err) == (2, True)


def test_a_key_counted_in_bytes_is_written_with_its_unit() -> None:
    path = next(name for name, key in keys.every().items() if key["unit"] == "bytes" and "*" not in name)
    assert keys.written(path, 3 * 1024**2) == text.size(3 * 1024**2) != text.number(3 * 1024**2)


def test_why_a_run_failed_is_its_message() -> None:
    assert task.reason(InputError("no such drive"), None, "cmr") == "no such drive"


def test_a_halving_by_an_unknown_column_names_those_near(tmp_path: Path) -> None:
    spec = {
        "base": {"drive": "tiny", "layer": "cmr", "trace": ["synth:uniform,requests=50"], "wrap": "capacity"},
        "seeds": 2,
        "halving": {"metric": "response_ms.none", "first": 20, "requests": 40, "keep": 0.5},
    }
    with pytest.raises(InputError, match=r"near it: response_ms\.\w+") as e:
        lab.sweep(spec, out=tmp_path)
    assert "iops" not in str(e.value)


def test_the_heads_position_is_drawn_from_its_own_series() -> None:
    timeline = {"t": [1.0, 2.0, 3.0], "head": [5.0, 7.0, 6.0], "head_min": [1, 1, 1], "head_max": [9, 9, 9]}
    payload: Any = [{"name": "a", "timeline": {**timeline, "backlog": [0.0, 0.0, 0.0]}, "histogram": None}]
    figure = drawn.head(payload)
    assert figure is not None
    (axes,) = figure.axes
    assert np.array_equal(np.asarray(axes.lines[0].get_ydata()), [5.0, 7.0, 6.0])
    assert axes.get_ylabel() == "head position (track)"


def test_a_table_without_a_request_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no row"):
        tables.stored({"arrival_ns": [], "op": [], "lba": [], "blocks": []}, str(tmp_path / "t.parquet"))
    one = {"arrival_ns": [0], "op": ["r"], "lba": [0], "blocks": [1]}
    assert tables.stored(one, str(tmp_path / "t.parquet")) == 1


def test_what_is_given_already_is_not_offered_again() -> None:
    layers = complete.item("layers")
    all_of = layers("log,")
    assert "log,band=" in all_of
    again = layers("log,band=4tracks,")
    assert [text.removeprefix("log,band=4tracks,") for text in again] == [
        text.removeprefix("log,") for text in all_of if text != "log,band="
    ]


def test_a_plan_is_told_with_its_own_figures() -> None:
    told = list(
        study.plan(
            {
                "runs": 3, "done": 1, "requests": 12_345, "cpu_s": 60.0, "basis": "a guess",
                "memory_bytes_a_run": 2 << 20, "trace_bytes": 3 << 20, "result_bytes": 5 << 20,
                "time_s": {"1": 60.0, "16": 4.0},
            }
        )
    )  # fmt: skip
    assert told[0] == "3 runs, 1 of them there; 12,345 requests"
    for line, part in zip(
        told[1:], ("by a guess", "2 MiB at most", "3 MiB of traces", "on 1 core ", "on 16 cores "), strict=True
    ):
        assert part in line.replace("2.0 M", "2 M").replace("3.0 M", "3 M"), line
    assert text.size(5 << 20) in told[3]


def test_no_prefill_is_shared_where_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMRLAB_PREFILL_CACHE", raising=False)
    assert kept.shared("k") is not None
    monkeypatch.setenv("SMRLAB_PREFILL_CACHE", "off")
    assert (kept.shared("k"), kept.keep()) == (None, None)
    # Who asks for a folder gets it all the same.
    assert kept.keep("/there") is not None


def test_folders_and_patterns_stand_for_their_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    for name in ("a1.csv", "a2.csv", "b.csv", "a3.csv/c.csv"):
        system.pipe_file(f"/listed/{name}", b"x")
    every = ["memory:///listed/a1.csv", "memory:///listed/a2.csv", "memory:///listed/b.csv"]
    # A folder in a folder is none of its objects, whatever it is called.
    assert sorted(urls.listed("memory://listed/") or []) == every
    assert urls.listed("memory://listed/a*.csv") == every[:2]
    assert urls.listed("memory://listed/a?.csv") == every[:2]
    assert urls.listed("memory://listed/a1.csv") is None
    # On the web a question mark is no pattern.
    assert urls.listed("https://somewhere/t?name=a.csv") is None
    found = [{"name": f"https://somewhere/{n}", "type": t} for n, t in (("a.csv", "file"), ("deep/", "directory"))]
    web = SimpleNamespace(ls=lambda *_, **__: found, unstrip_protocol=lambda n: f"x:{n}")
    monkeypatch.setattr(urls, "filesystem", lambda url: (web, url))
    assert urls.listed("https://somewhere/") == ["x:https://somewhere/a.csv"]


def test_results_of_more_runs_are_of_another_experiment(tmp_path: Path) -> None:
    one, other = {"layer": "cmr", "seed": 1}, {"layer": "cmr", "seed": 2}
    (tmp_path / "result.json").write_text(json.dumps({"runs": [{"spec": one}, {"spec": other}]}))

    def refusal(*specs: dict[str, Any]) -> str:
        try:
            outdir.guard(tmp_path, lambda: [json.dumps(spec) for spec in specs])
        except InputError as refused:
            return str(refused).partition("(other ")[2].partition(")")[0]
        return ""

    assert refusal(one, other) == ""
    assert refusal(one) == "runs"
    assert refusal(one, other, one) == "runs"
    assert refusal(one, {**other, "layer": "rmw"}) == "layer"
    assert refusal(other, one) == "seed"


def test_a_fit_is_told_before_and_after(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"seeks_of": "reads", "from_cylinders": 3, "to_cylinders": None, "ms": 1.5, "standard_error_ms": 0.25}
    halves = [{"before_ms": 4.0, "after_ms": 3.0}, {"before_ms": 6.0, "after_ms": 5.0}]
    doc = {"fitted": 2, "changes": [{"settle_after": "read", "ms": 0.5}, {**change, "requests": 40}], "halves": halves}
    monkeypatch.setattr(_core, "fit", lambda *_: ("a drive", json.dumps(doc)))
    to = tmp_path / "fitted.toml"
    validate._fit("tiny", str(tmp_path / "t.csv:csv"), "service", to, False)
    assert to.read_text() == "a drive"
    told = " ".join(capsys.readouterr().out.split())
    for part in (
        "settling after a read: 0.5 ms",
        "seeks of reads over 3 and more cylinders: +1.50 ms (± 0.25, 40 requests)",
        "2 figures fitted",
    ):
        assert part in told, told
    assert "first half, fitted to 4 3 second half, judged on 6 5" in told, told
    # Not over its own trace, whatever its format is said to be.
    trace = tmp_path / "t.csv"
    trace.write_text("x")
    with pytest.raises(InputError):
        validate._fit("tiny", f"{trace}:csv", "service", trace, False)
    assert trace.read_text() == "x"


def test_the_zones_of_a_drive_are_drawn_up_to_its_end() -> None:
    zones = [{"first_pba": 0, "mb_per_s": 200.0}, {"first_pba": 10**9, "mb_per_s": 100.0}]
    figure = of_drives.zones({"zones": zones, "medium_blocks": 3 * 10**9, "name": "d", "summary": "s"})
    (axes,) = figure.axes
    # Blocks of 512 bytes, in TB.
    assert axes.get_xlim() == (0.0, 1.536)
    stairs: Any = axes.patches[0]
    values, edges, _ = stairs.get_data()
    assert (list(values), list(edges)) == ([200.0, 100.0], [0.0, 0.512, 1.536])
    assert axes.get_title() == "d: s"


def test_a_prefill_is_made_once_and_taken_from_the_store_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SMRLAB_PREFILL_CACHE", raising=False)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    made: list[str] = []

    def run(spec: str, *_: Any) -> None:
        made.append(spec)
        (first / "b").write_bytes(b"12345")
        (first / "a").write_bytes(b"123")

    # Asked before: it is what runs say, and is kept for all tests that follow.
    fingerprint()
    monkeypatch.setattr(_core, "run", run)
    prefill = Prefill("k", "{}", Store(tmp_path / "store"))
    assert prefill._make(first) == {"files": ["a", "b"], "moved": 0}
    # Another machine: so many bytes came from the store.
    assert prefill._make(second) == {"files": ["a", "b"], "moved": 8}
    assert {p.name: p.read_bytes() for p in second.iterdir()} == {"a": b"123", "b": b"12345"}
    assert made == ["{}"]
