"""Tables of requests in memory become the requests that they say, in order of time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from smrlab import InputError, Trace, run


def test_bytes_become_every_block_that_they_touch() -> None:
    table = pa.table(
        {
            "time_s": [0.0, 1.0, 2.0, 3.0],
            "op": ["read", "W", "trim", "flush"],
            "offset": [100, 512, 1024, 0],
            "size": [512, 512, 1, 0],
        }
    )
    rows = Trace.from_table(table).table().to_pydict()
    assert (rows["lba"], rows["blocks"]) == ([0, 1, 2, 0], [2, 1, 1, 0])
    assert (rows["op"], rows["arrival_ns"]) == ([0, 1, 3, 2], [0, 10**9, 2 * 10**9, 3 * 10**9])


def test_who_asked_and_what_goes_past_the_cache_are_kept() -> None:
    """The rows turn round: device, stream and FUA go with theirs; FUA is of writes alone."""
    table = pa.table({
        "arrival_ns": [30, 20, 10], "op": [1, 1, 0], "lba": [3, 2, 1], "blocks": [1, 1, 1],
        "device": [7, 8, 9], "stream": [4, 5, 6], "fua": [True, False, True],
    })  # fmt: skip
    rows = Trace.from_table(table).table().to_pydict()
    assert (rows["lba"], rows["device"], rows["stream"]) == ([1, 2, 3], [9, 8, 7], [6, 5, 4])
    assert rows["fua"] == [False, False, True]


def test_rows_are_sorted_by_their_time_and_equals_keep_their_order() -> None:
    table = pa.table({"arrival_ns": [30, 10, 20, 10], "op": [0, 1, 0, 1], "lba": [3, 1, 2, 9], "blocks": [1, 1, 1, 2]})
    rows = Trace.from_table(table).table().to_pydict()
    assert (rows["arrival_ns"], rows["lba"], rows["blocks"]) == ([10, 10, 20, 30], [1, 9, 2, 3], [1, 2, 1, 1])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"lba": [-1]}, "'lba' of the table has negative"),
        ({"op": ["wirte"]}, "'wirte'"),
        ({"lba": [None]}, "1 nulls"),
        ({"blocks": [0.5]}, "'blocks'"),
        ({"lba": [[0]]}, "'lba' of the table: Unsupported cast from list"),
        ({"arrival_ns": ["soon"]}, "'arrival_ns' of the table"),
    ],
)
def test_what_no_request_can_have_is_named(column: dict[str, list[object]], message: str) -> None:
    good: dict[str, list[object]] = {"arrival_ns": [0], "op": ["read"], "lba": [0], "blocks": [1]}
    with pytest.raises(InputError, match=message):
        Trace.from_table(pa.table({**good, **column}))


WORDS = ["read", "W", "read"]


@pytest.mark.parametrize(
    "op",
    [
        pa.array(WORDS, pa.string_view()),  # polars
        pa.array(WORDS).dictionary_encode(),  # pandas: category
        pa.DictionaryArray.from_arrays(
            pa.array([1, 2, 1], pa.uint32()), pa.array(["x", "read", "W"], pa.string_view())
        ),
        pa.chunked_array([pa.array(WORDS[:1]).dictionary_encode(), pa.array(WORDS[1:]).dictionary_encode()]),
        pa.array([0, 1, 0], pa.uint8()),
    ],
)
def test_words_are_read_as_every_library_has_them(op: pa.Array) -> None:
    table = pa.table({"arrival_ns": [0, 1, 2], "op": op, "lba": [0, 1, 2], "blocks": [1, 1, 1]})
    assert Trace.from_table(table).table().to_pydict()["op"] == [0, 1, 0]


@pytest.mark.parametrize("given", [{"op": ["read"]}, 5, object()])
def test_what_is_no_table_is_refused(given: object) -> None:
    with pytest.raises(InputError, match=f"{type(given).__name__} is no trace"):
        run(given, drive="tiny", layer="cmr")  # type: ignore[arg-type]


def test_times_before_the_start_are_named() -> None:
    table = pa.table({"time_s": [0.0, -0.5], "op": [0, 0], "lba": [0, 0], "blocks": [1, 1]})
    with pytest.raises(InputError, match="'time_s' of the table has negative"):
        Trace.from_table(table)


@pytest.mark.parametrize("name", ["arrival_ns", "time_s"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_and_spans_of_time_have_a_unit_of_their_own(name: str, unit: str) -> None:
    """As pandas and polars have them; dates count from the first one."""
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    for kind, first in ((pa.duration(unit), 0), (pa.timestamp(unit), 1_700_000_000), (pa.timestamp(unit, "UTC"), 5)):
        times = pa.array([(first + s) * second for s in (2, 0)], kind)
        rows = Trace.from_table(pa.table({name: times, "op": [1, 0], "lba": [8, 0], "blocks": [1, 1]})).table()
        assert rows.to_pydict()["arrival_ns"] == [0, 2 * 10**9]
    times = pa.array([2**62], pa.duration("us"))
    with pytest.raises(InputError, match=f"'{name}' of the table: Casting from duration"):
        Trace.from_table(pa.table({name: times, "op": [1], "lba": [8], "blocks": [1]}))


def test_appends_and_zone_commands_are_taken() -> None:
    words = ["append", "zone-open", "zone-close", "zone-finish", "zone-reset", "Zone-Reset"]
    places = {"offset": [0, 4096, 4096, 4096, 8192, 8192], "size": [512, 0, 1, 512, 0, 1024]}
    rows = Trace.from_table(pa.table({"arrival_ns": range(6), "op": words, **places})).table().to_pydict()
    assert rows["op"] == [4, 7, 5, 6, 8, 8]
    assert (rows["lba"], rows["blocks"]) == ([0, 8, 8, 8, 16, 16], [1, 1, 1, 1, 1, 2])


def test_a_zone_command_may_be_for_all_zones() -> None:
    everything = 2**32 - 1
    writes = {"arrival_ns": [0, 1, 2], "op": [1, 1, 8], "lba": [0, 512, 0], "blocks": [8, 8, everything]}
    done = run(Trace.from_table(pa.table(writes)), drive="tiny", layer="zoned,zone=256KiB,conventional=0%")
    assert done["host"]["zone_commands"] == 1
    assert done["cache"]["zone_resets"] == 2
