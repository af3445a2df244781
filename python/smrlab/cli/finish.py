"""What `run` and `compare` print when they are done."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from .. import _core, keys, summary, text
from ..results import Result, Results
from ..text import counted
from . import console

# Above this share of reads of never-written blocks there is a note.
UNWRITTEN = 0.01
# Above this share of the busy time that went into reading the rest of units there is a note.
FILLS = 0.1


def show_comparison(results: Results) -> None:
    """One row a run."""
    paths, rows = summary.comparison([(run.name, run.doc) for run in results])
    table = console.table("", ["layer", *map(keys.title, paths)], numeric=True)
    for row in rows:
        table.add_row(*map(console.escape, row))
    console.out().print(table)
    named = [(run.name, summary.derived(run.doc)) for run in results]
    tell_filled(named)
    _tell(named)


def show_run(run: Result) -> None:
    """One row a figure."""
    table = console.table(console.escape(run.name), ["", ""], numeric=True)
    table.show_header = False
    for _, words, value in summary.details(run.doc):
        table.add_row(words, value)
    console.out().print(table)
    _tell([(run.name, summary.derived(run.doc))])


def _tell(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """All notes that hold for one run as for several."""
    tell_full(runs)
    tell_spares(runs)
    tell_refused(runs)
    tell_conventional(runs)
    tell_bare_bands(str(text.dig(doc, "spec.layer")) for _, doc in runs)
    tell_parts_of_units(runs)
    warn_overload(runs)
    warn_crowded(runs)
    warn_unwritten(runs)


def tell_filled(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says what was written before where a comparison fills caches: a layer without one begins as it is."""
    given = [(name, str(text.dig(doc, "spec.prefill") or "")) for name, doc in runs]
    if not any("of=cache" in prefill for _, prefill in given):
        return
    cached = {name: text.dig(doc, "cache.cache_blocks") for name, doc in runs}
    parts = []
    for name, prefill in given:
        of = cached[name]
        size = f" ({text.size(of * 512)})" if of else ""
        share = prefill.partition(",")[0]
        parts.append(f"{name} nothing, it has no cache" if share == "0%" else f"{name} {share} of its cache{size}")
    console.note("Written before the run: " + "; ".join(parts) + ".")


def tell_full(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says why the first cleaning came with the first requests."""
    at_once = [(name, doc) for name, doc in runs if doc.get("caches_full_at_start")]
    full = [name for name, doc in at_once if text.dig(doc, "cache.cached_blocks") is not None]
    others = [name for name, _ in at_once if name not in full]
    empty = "--prefill 0%"
    if any(text.dig(doc, "spec.from_state") for _, doc in at_once):
        empty += " without --from-state"
    if others:
        console.note(
            f"What was written before the run fills {', '.join(others)}, so cleaning began with the first requests. "
            f"To see it begin: {empty}."
        )
    if full:
        console.note(
            f"The caches of {', '.join(full)} were full at the start: what was written before the run had filled them, "
            f"so cleaning began with the first requests. To see them fill: {empty}, or --prefill 50%,of=cache."
        )


# Requests of an array came faster than they were served where the mean response is more than this share of the whole
# run, and the run so many times as long as its arrivals.
BEHIND = 0.05
LONGER = 1.2
# Shorter runs may end while their first requests wait.
MANY = 1000

# A dvs array whose collections move more than this for each block that the host writes is told to have more room.
CROWDED = 1.0


def warn_crowded(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says where the groups of a dvs array are so full that their collections move more than the host writes."""
    for name, doc in runs:
        array = str(text.dig(doc, "spec.array") or "")
        moved = text.dig(doc, "cleaning.by_kind.group-collection.relocated_blocks") or 0
        # Small writes make whole chunks, and a collection moves whole ones.
        chunks = text.dig(doc, "media.by_cause.host.blocks_written") or 0
        written = max(chunks, text.dig(doc, "host.blocks_written") or 0)
        if not array.startswith("dvs") or not written or moved / written <= CROWDED:
            continue
        now = re.search(r"overprovision=([^,]+)", array)
        console.note(
            f"{name}: the array's groups are nearly full: for each block that was written for the host, collections "
            f"moved {text.number(moved / written)}. Leave more of their space free: set overprovision= above "
            f"{now[1] if now else 'its default'}; the default, 70%, moves less than is written."
        )


def tell_spares(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says where more drives of an array died than it had fresh ones for, so that a drive stayed dead."""
    for name, doc in runs:
        outer, of_arrays, _ = str(text.dig(doc, "spec.array") or "").partition(" / ")
        spares, replace = (re.search(rf",{key}=([^,]+)", outer) for key in ("spares", "replace"))
        died = text.dig(doc, "array.deaths") or 0
        if spares and replace and died > int(spares[1]) and text.dig(doc, "array.disks_dead"):
            told = f"{name}: {counted(died, 'drive')} died; spares={spares[1]} says how many fresh ones there are."
            whole = " A member that is an array takes one for each drive of its own." if of_arrays else ""
            console.note(told + whole)


# Reasons to refuse that only drives have whose zones the host must keep in order.
_OF_ZONES = {"not-at-pointer", "crosses-zone", "gap", "above-pointer", "zone-full", "too-many-open"}


def tell_refused(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says how many requests were refused and why, and what would serve them."""
    for name, doc in runs:
        if not (refused := text.dig(doc, "refusals.count")):
            continue
        by_reason = text.dig(doc, "refusals.by_reason")
        reasons = ", ".join(f"{n:,} {why}" for why, n in by_reason.items())
        told = f"{name} refused {refused:,} of {counted(doc['requests'], 'request')} ({reasons})"
        if by_reason.keys() & _OF_ZONES:
            told += (
                ": a host-managed drive takes writes at the write pointers of its zones alone. Between an ordinary "
                "trace and such a drive belongs a host that puts writes in order: --stack 'dm-zoned / "
                "zoned,conventional=5%', or 'zone-log / zoned' as a zoned file system does; synth:zoned writes in "
                "order by itself."
            )
        elif dead := text.dig(doc, "array.dead"):
            told += (
                f": at the end drives {', '.join(map(str, dead))} were dead, and what was on them is lost. IOPS, MB/s "
                "and response times count refused requests, which are answered at once."
            )
        else:
            told += ". IOPS, MB/s and response times count them."
        console.note(told)


_SEQUENTIAL = ("zone_resets", "zones_closed_for_others", "open_zones", "used_zones_closed", "used_zones_full")


def tell_parts_of_units(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says which layers read a large share of the time what the host's writes leave of units of the map."""
    told = []
    for name, doc in runs:
        share = (text.dig(doc, "time_by_cause_s.fill") or 0) / (doc.get("busy_s") or math.inf)
        if share > FILLS and "granularity" in _parameters(str(text.dig(doc, "spec.layer")).partition(",")[0]):
            told.append(f"{name} {text.share(share)}")
    if told:
        console.note(
            f"Writes that cover units of the map in part made the drive read the rest of them first: {', '.join(told)} "
            "of its busy time. The layer's granularity= is their size; requests of a multiple of it, at a multiple of "
            "it, need no such reads."
        )


def _parameters(layer: str) -> list[str]:
    """The names of a layer's parameters; none where the registry has no such layer."""
    known = json.loads(_core.list_json("layers"))
    return [p["name"] for entry in known if entry["name"] == layer for p in entry["params"]]


def tell_conventional(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says where all that a host wrote to a drive with zones fell into those that are not shingled."""
    named = []
    for name, doc in runs:
        zones = doc.get("cache") or {}
        written = doc["host"]["writes"] - (text.dig(doc, "refusals.count") or 0) if "free_zones" in zones else 0
        if written > 0 and text.dig(doc, "spec.array") == "single" and not any(map(zones.get, _SEQUENTIAL)):
            named.append(name)
    if named:
        console.note(
            f"All writes to {', '.join(named)} fell into the conventional zones in front, which are not shingled: "
            "these are the figures of a conventional drive. To see what its other zones cost an ordinary trace: "
            "--stack 'zone-log / zoned,conventional=0%'."
        )


def tell_own_layer(run: Result) -> None:
    """Says that a drive whose file describes a layer ran without it, where none was named."""
    drive = str(text.dig(run.doc, "spec.drive"))
    if text.dig(run.doc, "spec.layer") == "cmr" and (own := _core.own_layer(drive)) != "cmr":
        console.note(
            f"{drive} is a drive-managed shingled drive, but without --layer it runs as a conventional one (cmr). With "
            f"the layer that its file describes: --layer {own}."
        )


def tell_bare_bands(layers: Iterable[str]) -> None:
    """Asks for a unit where the size of a band has none: it means tracks in one layer and blocks in another."""
    found = {layer: re.search(r",band=([\d_.eE+]+[kKmMgG]?)(?=,|$)", layer) for layer in layers}
    bare = {layer.partition(",")[0]: bare[1] for layer, bare in found.items() if bare}
    if not bare:
        return
    docs = {
        entry["name"]: parameter["doc"]
        for entry in json.loads(_core.list_json("layers"))
        for parameter in entry["params"]
        if parameter["name"] == "band"
    }
    means = {name: re.search(r"bare number means (\w+)", docs.get(name, "")) for name in bare}
    told = [f"{n} of {name} means {n} {unit[1]}" for name, n in bare.items() if (unit := means[name])]
    if told:
        console.note(f"band={'; band='.join(told)}. Give a unit: 64tracks, 50000blk or 25MB.")


def warn_overload(runs: list[tuple[str, dict[str, Any]]]) -> None:
    """Says which drives cannot keep up with the trace, and what to do about it."""
    late = [(name, doc["offered_load"]) for name, doc in runs if doc.get("offered_load", 0) > 1 or "overload" in doc]
    known = {name for name, _ in late}
    for name, doc in runs:
        if name not in known:
            _warn_behind(name, doc)
    if not late:
        return
    loads = ", ".join(f"{name} ({text.number(load)} times its capacity)" for name, load in late)
    scale = max(text.dig(doc, "overload.suggested_scale_time") or 0 for _, doc in runs)
    scale = scale or math.ceil(max(load for _, load in late) * 14) / 10
    can = "cannot" if any(load > 1 for _, load in late) else "can hardly"
    console.note(
        f"These {can} keep up with the arrivals of the trace: {loads}.\n"
        f"Their response times grow with its length. To compare at a load that all sustain: --scale-time {scale:g}, "
        "or --arrivals closed."
    )


def _warn_behind(name: str, doc: dict[str, Any]) -> None:
    """Says where an array fell behind the arrivals of the trace with drives that were not busy all the time."""
    mean, whole = (text.dig(doc, "response_ms.mean") or 0) / 1e3, doc.get("makespan_s") or 0
    drives, load = len(doc.get("members") or []), doc.get("offered_load") or 0
    if not drives or not load or doc.get("requests", 0) < MANY or mean <= BEHIND * whole:
        return
    # The load is the drives' busy time, in the mean, of the time in which requests arrived.
    longer = whole / (doc["busy_s"] / drives / load)
    if longer <= LONGER:
        return
    console.note(
        f"{name} falls behind the arrivals of the trace, though its drives are not busy all the time: its requests "
        f"wait for each other, {text.milliseconds(mean * 1e3)} in the mean, and longer the longer the trace is. To "
        f"compare at a load that it sustains: --scale-time {math.ceil(longer * 14) / 10:g}, or --arrivals closed."
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
