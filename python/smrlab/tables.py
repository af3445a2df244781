"""Tables of requests in memory, stored so that the engine can read them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .errors import InputError

BLOCK = 512
# What the host asks for, by number.
OPERATIONS = ("read", "write", "flush", "discard", "append", "zone-close", "zone-finish", "zone-open", "zone-reset")
_FIRST_OF_ZONES = OPERATIONS.index("zone-close")
_WORDS = {"r": 0, "w": 1, "f": 2, "d": 3, "trim": 3} | {name: n for n, name in enumerate(OPERATIONS)}


def stored(data: Any, path: str) -> int:
    """Writes a table of requests to `path` as Parquet; the number of rows. Raises InputError, naming the column."""
    try:
        table = pa.table(data)
    except (TypeError, ValueError) as fault:
        # As of a table of pandas with a name twice, or of one column by itself.
        raise InputError(f"the table of requests cannot be read: {fault}") from None
    if table.num_rows == 0:
        raise InputError("the table of requests has no row")
    columns = {
        "arrival_ns": _arrivals(table),
        "op": _operations(table),
        "lba": _whole(table, "lba", pa.int64()) if "lba" in table.column_names else None,
        "blocks": _whole(table, "blocks", pa.int64()) if "blocks" in table.column_names else None,
    }
    if columns["lba"] is None or columns["blocks"] is None:
        columns |= _touched(table)
    # A zone command without a length is for the zone at its place.
    for_zone = pc.and_(pc.greater_equal(columns["op"], _FIRST_OF_ZONES), pc.equal(columns["blocks"], 0))
    columns["blocks"] = pc.if_else(for_zone, 1, columns["blocks"])
    for name in ("device", "stream"):
        if name in table.column_names:
            columns[name] = _whole(table, name, pa.int32())
    if "fua" in table.column_names:
        columns["fua"] = _as(table, "fua", pa.bool_())
    made = pa.table({k: v for k, v in columns.items() if v is not None})
    kinds = {"arrival_ns": pa.int64(), "lba": pa.int64(), "blocks": pa.int64(), "fua": pa.bool_()}
    made = made.cast(pa.schema([(n, kinds.get(n, pa.int32())) for n in made.schema.names]))
    order = pc.sort_indices(made, sort_keys=[("arrival_ns", "ascending")])
    pq.write_table(made.take(order), path)
    return int(made.num_rows)


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise InputError(
            f"the table has no column '{name}' (it has {', '.join(table.column_names)}); needed: arrival_ns or time_s, "
            "op, lba and blocks (or offset and size in bytes)"
        )
    if table.column_names.count(name) > 1:
        raise InputError(f"the table has several columns '{name}'")
    column = table.column(name)
    if column.null_count:
        raise InputError(f"column '{name}' of the table has {column.null_count} nulls")
    return column


def _as(table: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    return _cast(_column(table, name), name, kind)


def _cast(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as fault:
        raise InputError(f"column '{name}' of the table: {fault}") from None


def _whole(table: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    column = _as(table, name, kind)
    if pc.min(column).as_py() < 0:
        raise InputError(f"column '{name}' of the table has negative numbers")
    return column


def _arrivals(table: pa.Table) -> pa.ChunkedArray:
    name = "arrival_ns" if "arrival_ns" in table.column_names or "time_s" not in table.column_names else "time_s"
    if pa.types.is_timestamp(kind := _column(table, name).type):
        # Dates count from the first of them, as those in files do.
        times = _as(table, name, pa.timestamp("ns", kind.tz)).cast(pa.int64())
        return pc.subtract(times, pc.min(times))
    if pa.types.is_duration(kind):
        table = pa.table({"arrival_ns": _as(table, name, pa.duration("ns"))})
        name = "arrival_ns"
    if name == "arrival_ns":
        return _whole(table, name, pa.int64())
    seconds = _as(table, "time_s", pa.float64())
    rounded = _cast(pc.round(pc.multiply(seconds, 1e9)), "time_s", pa.int64())
    if pc.min(rounded).as_py() < 0:
        raise InputError("column 'time_s' of the table has negative numbers")
    return rounded


def _operations(table: pa.Table) -> pa.ChunkedArray:
    column = _column(table, "op")
    if pa.types.is_string_view(column.type):
        # As polars has texts: these cannot be told apart before they are plain ones.
        column = column.cast(pa.large_string())
    if _is_text(column.type):
        column = column.dictionary_encode()
    if not (pa.types.is_dictionary(column.type) and _is_text(column.type.value_type)):
        return _whole(table, "op", pa.int32())
    return pa.chunked_array([_numbers(chunk) for chunk in column.chunks])


def _numbers(words: pa.DictionaryArray) -> pa.Array:
    """The operations that words stand for; a category that no row has may be anything."""
    known = [_WORDS.get(w.strip().lower()) for w in words.dictionary.to_pylist()]
    unknown = [i for i in pc.unique(words.indices).to_pylist() if known[i] is None]
    if unknown:
        word = words.dictionary[unknown[0]].as_py()
        raise InputError(f"column 'op' of the table has '{word}': {', '.join(OPERATIONS)}")
    return pa.array(known, pa.int32()).take(words.indices)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _touched(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The blocks that bytes touch."""
    offset, size = (_whole(table, name, pa.int64()) for name in ("offset", "size"))
    first = pc.divide(offset, BLOCK)
    end = pc.divide(pc.add(pc.add(offset, size), BLOCK - 1), BLOCK)
    # A flush has no length; everything else that touches nothing is refused by the engine.
    return {"lba": first, "blocks": pc.if_else(pc.equal(size, 0), 0, pc.subtract(end, first))}
