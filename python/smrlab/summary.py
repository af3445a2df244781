"""Results as tables for people: which keys are shown, and the same table for a terminal, a prompt and a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from . import keys, plain, text

# The columns of a comparison, where they apply; names and units are the registry's ('smrlab explain KEY').
COLUMNS = (
    "refusals.count",
    "iops",
    "response_ms.mean",
    "response_ms.p99",
    "response_ms.max",
    "stalls.share",
    "cleaning.first_s",
    "cleaning.clean_again_s",
    "cleaning_share",
    "array.rebuild_ms",
    "array.disks_dead",
    "write_amplification",
    "war.per_write",
    "write_overloading",
    "space.efficiency",
)

# The rows of one run.
DETAILS = (
    "requests",
    "refusals.count",
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
    "array.deaths",
    "array.rebuild_ms",
    "array.disks_dead",
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

# What an array counts of drives that die: left out where none did.
OF_DEATHS = {"deaths", "rebuild_ms", "disks_dead"}

# Kinds of requests, which a result counts under `host`.
REQUESTS = ("reads", "writes", "flushes", "discards", "zone_commands")


def derived(source: Mapping[str, Any]) -> dict[str, Any]:
    """A result's document with the few figures that the tables add."""
    doc = dict(source)
    host, cleaning, busy = doc.get("host", {}), text.dig(doc, "cleaning.total_s"), doc.get("busy_s")
    doc["requests"] = sum(host.get(k, 0) for k in REQUESTS)
    if cleaning is not None and busy:
        doc["cleaning_share"] = _drives_cleaning(doc, cleaning) / busy
    if "array" in doc:
        doc["array"] = {k: v for k, v in doc["array"].items() if v or k not in OF_DEATHS}
    if _full_at_start(doc):
        doc["caches_full_at_start"] = True
    return doc


def _drives_cleaning(doc: Mapping[str, Any], total_s: float) -> float:
    """Seconds of drives that went into cleaning.

    What an array collects itself is counted from beginning to end, with waiting, and several collections go on at once:
    of these it is the time that their media operations took.
    """
    members = doc.get("members")
    if not members:
        return total_s
    own = sum(text.dig(member, "cleaning.total_s") or 0.0 for member in members)
    return own or text.dig(doc, "time_by_cause_s.clean") or 0.0


# Cleaning that begins within so many requests of the first one began with caches that were full.
_AT_ONCE = 10


def _full_at_start(doc: Mapping[str, Any]) -> bool:
    """Whether a run that began with something written began with caches that were full; not those of an array."""
    members = doc.get("members")
    if members and not any(text.dig(member, "cleaning.count") for member in members):
        return False
    written = text.dig(doc, "spec.prefill") or text.dig(doc, "spec.from_state")
    first, rate = text.dig(doc, "cleaning.first_s"), doc.get("iops")
    return bool(written) and first is not None and rate is not None and first * rate < _AT_ONCE


def comparison(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    """The keys that apply to any of the runs (name and document of each), and a row of texts for each run."""
    docs = [derived(doc) for _, doc in runs]
    paths = [c for c in COLUMNS if any(text.dig(d, c) is not None for d in docs)]
    names = [name for name, _ in runs]
    rows = [[n, *(_shown(d, p, text.dig(d, p)) for p in paths)] for n, d in zip(names, docs, strict=True)]
    return paths, rows


def details(source: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Key, label and value of each figure that applies to one run."""
    doc = derived(source)
    found = [(path, text.dig(doc, path)) for path in (*DETAILS, *_of_array(doc))]
    return [(path, label(path), _shown(doc, path, value)) for path, value in found if value is not None]


def _of_array(doc: Mapping[str, Any]) -> list[str]:
    """Keys of what an array counted beside what every run has; what never happened is left out."""
    counts = doc.get("array") or {}
    paths = [path for path in keys.every() if path.startswith("array.") and path not in DETAILS]
    return [path for path in paths if isinstance(value := counts.get(path[6:]), int | float) and value]


def _shown(doc: Mapping[str, Any], path: str, value: Any) -> str:
    """A figure as people read it.

    A backlog that was not counted request by request is a lower bound, and says so. A first cleaning a moment after the
    first request is none that requests filled caches for.
    """
    if path == "cleaning.first_s" and doc.get("caches_full_at_start"):
        return "at the start"
    shown = keys.written(path, value)
    return f"≥ {shown}" if path == "backlog_max" and doc.get("backlog_exact") is False else shown


def label(path: str) -> str:
    """What a row is called."""
    return f"response, {keys.title(path)}" if path.startswith("response_ms") else keys.title(path)


def plainly(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """For a prompt: one run a figure a line, several a run a line."""
    if len(runs) == 1:
        name, doc = runs[0]
        return "\n".join([name, *plain.table([row[1:] for row in details(doc)], line=120)])
    paths, rows = comparison(runs)
    return "\n".join(plain.table(rows, ["run", *map(keys.title, paths)], line=240))


def as_html(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """For a notebook; what a figure means shows where the pointer rests on its name."""

    def head(path: str, words: str) -> str:
        tip = html.escape(str(keys.of(path)["summary"]))
        return f'<th style="text-align:left" title="{tip}">{html.escape(words)}</th>'

    def cell(words: str) -> str:
        return f'<td style="text-align:right">{html.escape(words)}</td>'

    if len(runs) == 1:
        name, doc = runs[0]
        body = "".join(f"<tr>{head(path, words)}{cell(value)}</tr>" for path, words, value in details(doc))
        return f"<table><caption>{html.escape(name)}</caption>{body}</table>"
    paths, rows = comparison(runs)
    heads = "".join(head(path, keys.title(path)) for path in paths)
    body = "".join(f"<tr><th>{html.escape(row[0])}</th>{''.join(map(cell, row[1:]))}</tr>" for row in rows)
    return f"<table><tr><th></th>{heads}</tr>{body}</table>"
