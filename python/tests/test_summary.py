"""What tables show under a name is the figure of that name."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from smrlab import keys, summary, text

TIMES = {"mean": 1.5, "p50": 2.5, "p90": 3.5, "p95": 4.5, "p99": 5.5, "p999": 6.5, "max": 7.5}
DOC: dict[str, Any] = {
    "host": {"reads": 10, "writes": 20, "flushes": 3, "discards": 4},
    "iops": 123.0,
    "mb_per_s": 45.0,
    "response_ms": TIMES,
    "read_response_ms": {k: v + 10 for k, v in TIMES.items()},
    "write_response_ms": {k: v + 20 for k, v in TIMES.items()},
    "service_ms": {k: v + 30 for k, v in TIMES.items()},
    "stalls": {"count": 8, "first_s": 61.0, "max_s": 9.0, "share": 0.25, "total_s": 77.0},
    "cleaning": {"first_s": 11.0, "max_s": 12.0, "total_s": 30.0, "clean_again_s": 14.0},
    "busy_s": 60.0,
    "write_amplification": 3.25,
    "war": {"per_update": 4.25, "per_write": 5.25, "per_request": 6.25},
    "write_overloading": 7.25,
    "makespan_s": 100.0,
    "offered_load": 0.75,
    "backlog_max": 16,
    "space": {"efficiency": 0.9, "gain": 1.8, "map_bytes_peak": 2048},
}
COMPARED = {
    "run": "a",
    "IOPS": "123",
    "mean": "1.5 ms",
    "p99": "5.5 ms",
    "worst": "7.5 ms",
    "time stalled": "25 %",
    "first cleaning": "11 s",
    "clean again": "14 s",
    "cleaning": "50 %",
    "write amplification": "3.25",
    "WAR per write": "5.25",
    "write overloading": "7.25",
    "space efficiency": "90 %",
}
ALONE = {
    "requests": "37",
    "IOPS": "123",
    "MB/s": "45",
    "response, mean": "1.5 ms",
    "response, p50": "2.5 ms",
    "response, p99": "5.5 ms",
    "response, p99.9": "6.5 ms",
    "response, worst": "7.5 ms",
    "reads, response, mean": "11.5 ms",
    "writes, response, mean": "21.5 ms",
    "stalls": "8",
    "first stall": "61 s",
    "worst stall": "9 s",
    "time stalled": "25 %",
    "first cleaning": "11 s",
    "longest cleaning": "12 s",
    "cleaning": "50 %",
    "clean again": "14 s",
    "write amplification": "3.25",
    "WAR per update": "4.25",
    "WAR per write": "5.25",
    "write overloading": "7.25",
    "simulated time": "100 s",
    "offered load": "0.75",
    "longest backlog": "16",
    "space efficiency": "90 %",
    "map memory, peak": "2 KiB",
}


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def test_every_column_of_a_comparison_is_what_its_head_says() -> None:
    lines = [line for line in summary.plainly([("a", DOC), ("b", DOC)]).splitlines() if line.strip("- ")]
    assert dict(zip(cells(lines[0]), cells(lines[1]), strict=True)) == COMPARED


def test_every_row_of_a_run_is_what_its_name_says() -> None:
    rows = {label: value for _, label, value in summary.details(DOC)}
    assert rows == ALONE
    assert "<th" in summary.as_html([("a", DOC)])


def test_a_run_tells_which_drives_died_and_how_long_their_rebuild_took() -> None:
    counts = {"deaths": 2, "rebuilds": 1, "rebuild_ms": 90_000, "disks_dead": 1, "degraded_rows": 7}
    rows = {label: value for _, label, value in summary.details({**DOC, "array": counts})}
    told = {"drives that died": "2", "rebuild time": "90 s", "drives not whole at the end": "1"}
    assert rows == {**ALONE, **told, "degraded rows": "7", "rebuilds": "1"}
    lost = {"deaths": 1, "rebuilds": 0, "rebuild_ms": 0, "disks_dead": 1}
    rows = {label: value for _, label, value in summary.details({**DOC, "array": lost})}
    assert rows == {**ALONE, "drives that died": "1", "drives not whole at the end": "1"}
    whole = dict.fromkeys(lost, 0)
    assert {label: value for _, label, value in summary.details({**DOC, "array": whole})} == ALONE
    lines = summary.plainly([("a", {**DOC, "array": counts}), ("b", {**DOC, "array": whole})]).splitlines()
    heads, a, b = (cells(line) for line in lines if line.strip("- "))
    at = heads.index("rebuild time")
    assert (heads[at : at + 2], a[at : at + 2], b[at : at + 2]) == (
        ["rebuild time", "drives not whole at the end"], ["90 s", "1"], ["–", "–"],
    )  # fmt: skip


def test_a_run_tells_what_its_array_counted() -> None:
    """In the order of the reference; lists, and what never happened, are left out."""
    counts = {"ssd_read_hits": 1234, "rebuilt_blocks": 4096, "rows_modified": 5, "logs_full": 0, "dead": [1]}
    rows = [row[1:] for row in summary.details({**DOC, "array": counts})]
    assert rows == [*ALONE.items(), ("rows modified", "5"), ("rebuilt", "2 MiB"), ("SSD read hits", "1,234")]


def test_a_key_that_nobody_knows_is_its_own_title() -> None:
    for path in ("iops.more", "response_ms", "nothing.of.that"):
        assert (keys.of(path)["title"], keys.of(path)["unit"]) == (path, "")


def test_a_backlog_that_was_not_counted_says_so() -> None:
    rows = {label: value for _, label, value in summary.details({**DOC, "backlog_exact": True})}
    assert rows == ALONE
    rows = {label: value for _, label, value in summary.details({**DOC, "backlog_exact": False})}
    assert rows == {**ALONE, "longest backlog": "≥ 16"}


def test_a_column_that_one_run_lacks_stays_for_the_others() -> None:
    without = {k: v for k, v in DOC.items() if k != "cleaning"}
    lines = [line for line in summary.plainly([("a", without), ("b", DOC)]).splitlines() if line.strip("- ")]
    rows = [dict(zip(cells(lines[0]), cells(line), strict=True)) for line in lines[1:]]
    assert (rows[0]["first cleaning"], rows[1]["first cleaning"]) == ("–", "11 s")


def test_a_first_cleaning_after_a_prefill_says_that_caches_were_full() -> None:
    def first(**more: object) -> str:
        doc = {**DOC, "iops": 100.0, **more}
        return dict(row[1:] for row in summary.details(doc))["first cleaning"]

    prefilled = {"prefill": "100%,of=space,order=sequential"}
    # At 100 requests a second the tenth comes after 0.1 s.
    at = [first(spec=prefilled, cleaning={**DOC["cleaning"], "first_s": s}) for s in (0.0, 0.09, 0.11)]
    assert at == ["at the start", "at the start", "110 ms"]
    assert first(spec={"prefill": None}, cleaning={**DOC["cleaning"], "first_s": 0.0}) == "0 µs"
    at_once = {"spec": prefilled, "cleaning": {**DOC["cleaning"], "first_s": 0.0}}
    assert first(**at_once, members=[{}, {"cleaning": {"count": 1}}]) == "at the start"
    assert first(**at_once, members=[{}, {}]) == "0 µs", "what an array collects itself is no cache"
    assert first(spec={"from_state": "f"}, cleaning={**DOC["cleaning"], "first_s": 0.0}) == "at the start"


def test_an_arrays_cleaning_is_a_share_of_its_drives_time() -> None:
    """Two drives, 10 s busy each. What an array collects is counted from beginning to end, several at once."""
    array = {**DOC, "busy_s": 20.0, "cleaning": {**DOC["cleaning"], "total_s": 38.0}}
    members = [{"busy_s": 10.0, "cleaning": {"total_s": s}} for s in (4.0, 3.0)]
    assert summary.derived({**array, "members": members})["cleaning_share"] == 0.35
    by_array = {**array, "members": [{"busy_s": 10.0}] * 2, "time_by_cause_s": {"clean": 5.0, "host": 15.0}}
    assert summary.derived(by_array)["cleaning_share"] == 0.25


def test_numbers_get_the_unit_that_fits() -> None:
    assert [text.size(n) for n in (1023, 1024, 1536, 1 << 40, 5 << 40)] == [
        "1,023 B", "1 KiB", "1.5 KiB", "1 TiB", "5 TiB"
    ]  # fmt: skip
    # Minutes from three of them on, as hours; below, the next smaller unit.
    told = {0.0005: "0.5 µs", 1: "1 ms", 999: "999 ms", 1000: "1 s", 179_000: "179 s", 180_000: "3 min", 1.08e7: "3 h"}
    assert {ms: text.milliseconds(ms) for ms in told} == told
    assert (text.share(0.5), text.share(None), text.number(0.00012345)) == ("50 %", text.ABSENT, "0.000123")


UNITS = {
    "h": 3.6e6, "min": 6e4, "s": 1e3, "ms": 1.0, "µs": 1e-3, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
    "TiB": 2.0**40, "%": 0.01, "": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("write", [text.milliseconds, text.size, text.share, text.number])
def test_what_is_written_reads_back_within_half_a_per_cent(write: Callable[[float], str]) -> None:
    """Of whatever size; a time of three units and more has the larger one, bytes of one."""
    rng = random.Random(5)
    for value in (10 ** rng.uniform(-5, 12) for _ in range(2000)):
        number, _, unit = write(value).replace(",", "").partition(" ")
        assert float(number) * UNITS[unit] == pytest.approx(value, rel=0.005), write(value)
    # A time is told in minutes from three on; it and bytes go on to the next unit where it is one.
    times = {2.9: "ms", 999: "ms", 1000: "s", 179_000: "s", 180_000: "min", 10_799_000: "min", 10_800_000: "h"}
    assert {ms: text.milliseconds(ms).split()[1] for ms in times} == times
    assert [text.size(1024.0**i).split()[1] for i in range(6)] == ["B", "KiB", "MiB", "GiB", "TiB", "TiB"]
