"""What `run` and `compare` print when they are done."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..report import write_report
from ..results import Result, Results
from . import console, text

# Column, where it is in a result, how it is written.
COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("IOPS", "iops", text.number),
    ("mean", "response_ms.mean", text.milliseconds),
    ("p99", "response_ms.p99", text.milliseconds),
    ("WAR", "war.per_write", text.number),
    ("write overloading", "write_overloading", text.number),
    ("cleaning", "cleaning_share", text.share),
    ("space efficiency", "space.efficiency", text.share),
)

DETAILS: tuple[tuple[str, str, Any], ...] = (
    ("requests", "requests", text.number),
    ("IOPS", "iops", text.number),
    ("MB/s", "mb_per_s", text.number),
    ("response, mean", "response_ms.mean", text.milliseconds),
    ("response, p50", "response_ms.p50", text.milliseconds),
    ("response, p99", "response_ms.p99", text.milliseconds),
    ("response, p99.9", "response_ms.p999", text.milliseconds),
    ("response, max", "response_ms.max", text.milliseconds),
    ("reads, mean response", "read_response_ms.mean", text.milliseconds),
    ("writes, mean response", "write_response_ms.mean", text.milliseconds),
    ("WAR per update", "war.per_update", text.number),
    ("WAR per write", "war.per_write", text.number),
    ("write overloading", "write_overloading", text.number),
    ("cleaning, share of busy time", "cleaning_share", text.share),
    ("simulated time", "makespan_ms", text.milliseconds),
    ("offered load", "offered_load", text.number),
    ("longest backlog", "backlog_max", text.number),
    ("space efficiency", "space.efficiency", text.share),
    ("map memory, peak", "space.map_bytes_peak", text.size),
)


def derived(run: Result) -> dict[str, Any]:
    """The document with the few figures that the tables add."""
    doc = dict(run.doc)
    host, cleaning, busy = doc.get("host", {}), text.dig(doc, "cleaning.total_s"), doc.get("busy_s")
    doc["requests"] = sum(host.get(k, 0) for k in ("reads", "writes", "flushes", "discards"))
    if cleaning is not None and busy:
        doc["cleaning_share"] = cleaning / busy
    if "makespan_s" in doc:
        doc["makespan_ms"] = doc["makespan_s"] * 1e3
    return doc


def show_comparison(results: Results) -> None:
    """One row a run."""
    docs = [derived(run) for run in results]
    columns = [c for c in COLUMNS if any(text.dig(d, c[1]) is not None for d in docs)]
    table = console.table("", ["layer", *(c[0] for c in columns)], numeric=True)
    for run, doc in zip(results, docs, strict=True):
        table.add_row(run.name, *(write(text.dig(doc, path)) for _, path, write in columns))
    console.out().print(table)
    warn_overload([(run.name, doc) for run, doc in zip(results, docs, strict=True)])


def show_run(run: Result) -> None:
    """One row a figure."""
    doc = derived(run)
    table = console.table(run.name, ["", ""], numeric=True)
    table.show_header = False
    for label, path, write in DETAILS:
        value = text.dig(doc, path)
        if value is not None:
            table.add_row(label, write(value))
    console.out().print(table)
    warn_overload([(run.name, doc)])


def warn_overload(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says which drives cannot keep up with the trace, and what to do about it."""
    late = [(name, doc["offered_load"]) for name, doc in runs if doc.get("offered_load", 0) > 1 or "overload" in doc]
    if not late:
        return
    loads = ", ".join(f"{name} ({text.number(load)} times its capacity)" for name, load in late)
    scale = max(text.dig(doc, "overload.suggested_scale_time") or 0 for _, doc in runs)
    scale = scale or math.ceil(max(load for _, load in late) * 14) / 10
    console.note(
        f"These cannot keep up with the arrivals of the trace: {loads}.\n"
        f"Their response times grow with its length. To compare at a load that all sustain: --scale-time {scale:g}, "
        "or --arrivals closed."
    )


def report(out: Path | None, *, quiet: bool) -> None:
    """Draws the report where there are result files, and says where it is."""
    if out is None:
        return
    path = write_report(out)
    if not quiet:
        console.note(f"Report: {path}")
