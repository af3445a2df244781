"""What `run` and `compare` print when they are done."""

from __future__ import annotations

import math
from typing import Any

from .. import keys, text
from ..results import Result, Results
from . import console

# The columns of a comparison, where they apply; names and units are the registry's ('smrlab explain KEY').
COLUMNS = (
    "iops",
    "response_ms.mean",
    "response_ms.p99",
    "response_ms.max",
    "stalls.share",
    "cleaning.first_s",
    "cleaning.clean_again_s",
    "cleaning_share",
    "write_amplification",
    "war.per_write",
    "write_overloading",
    "space.efficiency",
)

# The rows of one run.
DETAILS = (
    "requests",
    "iops",
    "mb_per_s",
    "response_ms.mean",
    "response_ms.p50",
    "response_ms.p99",
    "response_ms.p999",
    "response_ms.max",
    "read_response_ms.mean",
    "write_response_ms.mean",
    "stalls.count",
    "stalls.first_s",
    "stalls.max_s",
    "stalls.share",
    "cleaning.first_s",
    "cleaning.max_s",
    "cleaning_share",
    "cleaning.clean_again_s",
    "write_amplification",
    "war.per_update",
    "war.per_write",
    "write_overloading",
    "makespan_s",
    "offered_load",
    "backlog_max",
    "space.efficiency",
    "space.map_bytes_peak",
)


# Above this share of reads of never-written blocks there is a note.
UNWRITTEN = 0.01


def derived(run: Result) -> dict[str, Any]:
    """The document with the few figures that the tables add."""
    doc = dict(run.doc)
    host, cleaning, busy = doc.get("host", {}), text.dig(doc, "cleaning.total_s"), doc.get("busy_s")
    doc["requests"] = sum(host.get(k, 0) for k in ("reads", "writes", "flushes", "discards"))
    if cleaning is not None and busy:
        doc["cleaning_share"] = cleaning / busy
    return doc


def show_comparison(results: Results) -> None:
    """One row a run."""
    docs = [derived(run) for run in results]
    columns = [c for c in COLUMNS if any(text.dig(d, c) is not None for d in docs)]
    table = console.table("", ["layer", *map(keys.title, columns)], numeric=True)
    for run, doc in zip(results, docs, strict=True):
        table.add_row(console.escape(run.name), *(keys.written(path, text.dig(doc, path)) for path in columns))
    console.out().print(table)
    named = [(run.name, doc) for run, doc in zip(results, docs, strict=True)]
    warn_overload(named)
    warn_unwritten(named)


def show_run(run: Result) -> None:
    """One row a figure."""
    doc = derived(run)
    table = console.table(console.escape(run.name), ["", ""], numeric=True)
    table.show_header = False
    for path in DETAILS:
        value = text.dig(doc, path)
        if value is not None:
            label = f"response, {keys.title(path)}" if path.startswith("response_ms") else keys.title(path)
            table.add_row(label, keys.written(path, value))
    console.out().print(table)
    warn_overload([(run.name, doc)])
    warn_unwritten([(run.name, doc)])


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


def warn_unwritten(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says where many reads were of blocks that nobody wrote: layers that log serve them faster than others."""
    shares = [
        (text.dig(doc, "host.reads_unwritten") or 0) / max(text.dig(doc, "host.reads") or 0, 1) for _, doc in runs
    ]
    share = max(shares, default=0.0)
    if share <= UNWRITTEN:
        return
    console.note(
        f"{text.share(share)} of the reads were of blocks that were never written, which makes layers that log look "
        "fast. Write the space first with --prefill 100%, or what the trace reads with --prefill read."
    )
