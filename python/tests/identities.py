"""What the figures of a run have to say of each other: its result against its tables, without the simulator."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

Columns = dict[str, list[Any]]
DIRECTIONS = ("reads", "writes", "blocks_read", "blocks_written", "adjusted_reads", "adjusted_writes")
PARTS = ("seek_ns", "rotation_ns", "transfer_ns", "clean_ns", "other_ns")


class Faults(list[str]):
    """What is not as it has to be."""

    def same(self, what: str, told: Any, true: Any) -> None:
        if told != true:
            self.append(f"{what} is {told}, not {true}")

    def near(self, what: str, told: float, true: float, relative: float = 1e-9) -> None:
        if not math.isclose(told, true, rel_tol=relative, abs_tol=1e-6):
            self.append(f"{what} is {told}, not {true}")


def union(spans: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Length and number of the spans that these make together."""
    length, apart, until = 0, 0, -1
    for start, end in sorted(spans):
        apart += start > until
        length += max(end - max(start, until), 0)
        until = max(until, end)
    return length, apart


def faults(result: Any) -> Faults:
    """What is wrong in a result that has its requests and its media log."""
    wrong, doc = Faults(), dict(result.doc)
    requests, media, timeline = (t.to_pydict() for t in (result.requests(), result.media(), result.timeline()))
    _host(wrong, doc, requests, timeline)
    _times(wrong, doc, requests, timeline)
    _medium(wrong, doc, media, timeline)
    _members(wrong, doc, media)
    if (members := result.table("members")) is not None:
        windows = list(zip(timeline["start_s"], timeline["end_s"], strict=True))
        each = list(zip(*(members.to_pydict()[k] for k in ("start_s", "end_s")), strict=True))
        wrong.same("windows of members", each, windows * len(doc["members"]))
    return wrong


def _host(wrong: Faults, doc: dict[str, Any], requests: Columns, timeline: Columns) -> None:
    rows = list(zip(requests["op"], requests["blocks"], requests["refusal"], strict=True))
    host = doc["host"]
    for side, ops in (("read", ("read",)), ("written", ("write", "append"))):
        of_side = [(blocks, refusal) for op, blocks, refusal in rows if op in ops]
        wrong.same(f"host.{side}", host["reads" if side == "read" else "writes"], len(of_side))
        wrong.same(f"host.blocks_{side}", host[f"blocks_{side}"], sum(b for b, _ in of_side))
        refused = sum(b for b, why in of_side if why)
        wrong.same(f"host.refused_blocks_{side}", host.get(f"refused_blocks_{side}", 0), refused)
    refusals = sum(bool(why) for _, _, why in rows)
    told = doc.get("refusals", {"count": 0, "by_reason": {}})
    wrong.same("refusals", (told["count"], sum(told["by_reason"].values())), (refusals, refusals))
    for column, true in (
        ("arrivals", len(rows)),
        ("completions", len(rows)),
        ("refused", refusals),
        ("read_blocks", host["blocks_read"]),
        ("write_blocks", host["blocks_written"]),
    ):
        wrong.same(f"timeline {column}", sum(timeline[column]), true)
    moved = host["blocks_read"] + host["blocks_written"]
    moved -= host.get("refused_blocks_read", 0) + host.get("refused_blocks_written", 0)
    if doc["makespan_s"] > 0:
        wrong.near("iops", doc["iops"], len(rows) / doc["makespan_s"])
        wrong.near("mb_per_s", doc["mb_per_s"], 512e-6 * moved / doc["makespan_s"])
    widths = [end - start for start, end in zip(timeline["start_s"], timeline["end_s"], strict=True)]
    megabytes = sum(rate * width for rate, width in zip(timeline["mb_per_s"], widths, strict=True))
    wrong.near("timeline mb_per_s", megabytes, 512e-6 * moved)


def _times(wrong: Faults, doc: dict[str, Any], requests: Columns, timeline: Columns) -> None:
    columns = (requests[k] for k in ("arrival_ns", "start_ns", "completion_ns", "op"))
    rows = list(zip(*columns, strict=True))
    for i, (arrival, start, end, _) in enumerate(rows):
        if not arrival <= start <= end:
            wrong.append(f"request {i} comes at {arrival}, begins at {start}, ends at {end}")
        parts = [requests[k][i] for k in PARTS]
        if min(parts) < 0 or sum(parts) not in (end - arrival, end - start):
            wrong.append(f"request {i}: {parts} are neither {end - arrival} nor {end - start}")
    for key, times in (
        ("response_ms", [end - arrival for arrival, _, end, _ in rows]),
        ("read_response_ms", [end - arrival for arrival, _, end, op in rows if op == "read"]),
        ("write_response_ms", [end - arrival for arrival, _, end, op in rows if op in ("write", "append")]),
        ("service_ms", [end - start for _, start, end, _ in rows]),
    ):
        wrong.same(f"whether there is {key}", key in doc, bool(times))
        if times and key in doc:
            told, ordered = doc[key], sorted(times)
            wrong.near(f"{key}.mean", told["mean"], sum(times) / len(times) / 1e6)
            wrong.near(f"{key}.max", told["max"], ordered[-1] / 1e6)
            for name, share in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)):
                true = ordered[math.ceil(share * len(ordered)) - 1] / 1e6
                wrong.near(f"{key}.{name}", told[name], true, doc["histogram_relative_error"])
            percentiles = [told[k] for k in ("p50", "p90", "p95", "p99", "p999", "max")]
            wrong.same(f"{key} in order", percentiles, sorted(percentiles))
    begin = min(row[0] for row in rows)
    wrong.near("makespan_s", doc["makespan_s"], (max(row[2] for row in rows) - begin) / 1e9)
    stalls = doc["stalls"]
    waits = [(a, e) for a, _, e, _ in rows if e - a > round(stalls["threshold_s"] * 1e9)]
    waiting, episodes = union(waits)
    wrong.same("stalls.count", stalls["count"], len(waits))
    if waits:
        wrong.same("stalls.episodes", stalls["episodes"], episodes)
        wrong.near("stalls.total_s", stalls["total_s"], sum(e - a for a, e in waits) / 1e9)
        wrong.near("stalls.max_s", stalls["max_s"], max(e - a for a, e in waits) / 1e9)
        wrong.near("stalls.first_s", stalls["first_s"], (min(waits)[0] - begin) / 1e9)
    if "backlog_max" in doc and doc["backlog_exact"]:
        wrong.same("backlog_max", doc["backlog_max"], _most(rows))
    wrong.near("stalls.share", stalls["share"] * doc["makespan_s"], waiting / 1e9)
    shares = zip(timeline["stalled_share"], timeline["start_s"], timeline["end_s"], strict=True)
    wrong.near("timeline stalled_share", sum(s * (end - start) for s, start, end in shares), waiting / 1e9, 1e-6)


def _most(rows: list[tuple[int, int, int, str]]) -> int:
    """The most requests that had come and were not answered, of all instants at which one came."""
    return max(1, *(sum(came <= t < end for came, _, end, _ in rows) for t in {row[0] for row in rows}))


def _medium(wrong: Faults, doc: dict[str, Any], media: Columns, timeline: Columns) -> None:
    told = doc["media"]
    for side in ("read", "write"):
        blocks = [b for op, b in zip(media["op"], media["blocks"], strict=True) if op == side]
        name = "read" if side == "read" else "written"
        wrong.same(f"media.{side}s", told[f"{side}s"], len(blocks))
        wrong.same(f"media.blocks_{name}", told[f"blocks_{name}"], sum(blocks))
        if "busy_before_s" not in doc:
            wrong.same(f"timeline media_blocks_{name}", sum(timeline[f"media_blocks_{name}"]), sum(blocks))
    for key in DIRECTIONS:
        wrong.same(f"by_cause of {key}", sum(c[key] for c in told["by_cause"].values()), told[key])
    host = doc["host"]
    written = host["blocks_written"] - host.get("refused_blocks_written", 0)
    if written:
        wrong.near("write_amplification", doc["write_amplification"], told["blocks_written"] / written)
    busy = zip(timeline["busy_share"], timeline["start_s"], timeline["end_s"], strict=True)
    inside = doc["busy_s"] - doc.get("busy_before_s", 0)
    wrong.near("timeline busy_share", sum(s * (end - start) for s, start, end in busy), inside, 1e-6)
    spent = sum(doc.get(key, {}).get("total_s", 0.0) for key in ("cleaning", "cleaning_given_up"))
    shares = zip(timeline["cleaning_share"], timeline["start_s"], timeline["end_s"], strict=True)
    wrong.near("timeline cleaning_share", sum(s * (end - start) for s, start, end in shares), spent, 1e-6)
    known = sum(doc.get("time_by_cause_s", {}).get(cause, 0.0) for cause in ("clean", "destage", "defrag"))
    if "members" not in doc and spent < known - 1e-6:
        wrong.append(f"cleaning took {spent} s, less than its operations and pauses, {known} s")
    if (cleaning := doc.get("cleaning")) is not None:
        kinds = cleaning["by_kind"].values()
        for key in ("count", "relocated_blocks"):
            wrong.same(f"cleaning.{key}", cleaning[key], sum(k[key] for k in kinds))
    _apart(wrong, media)


def _apart(wrong: Faults, media: Columns) -> None:
    """Whether a drive does one thing at a time."""
    spans = defaultdict(list)
    for disk, start, end in zip(media["disk"], media["start_ns"], media["end_ns"], strict=True):
        spans[disk].append((start, end))
    for disk, each in spans.items():
        each.sort()
        for (_, end), (start, _) in pairwise(each):
            if start < end:
                wrong.append(f"disk {disk} begins an operation at {start}, within one that ends at {end}")


def _members(wrong: Faults, doc: dict[str, Any], media: Columns) -> None:
    members = doc.get("members") or []
    for disk, member in enumerate(members):
        own = sum(op == "write" and d == disk for op, d in zip(media["op"], media["disk"], strict=True))
        wrong.same(f"members[{disk}].media.writes", member["media"]["writes"], own)
    if members:
        for key in DIRECTIONS:
            wrong.same(f"members' {key}", sum(m["media"][key] for m in members), doc["media"][key])
        wrong.near("members' busy_s", sum(m["busy_s"] for m in members), doc["busy_s"])
