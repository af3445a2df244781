"""Walks over a media log: from a drive file alone, where the head is, when sectors pass, and when operations end.

    python python/tests/walk.py DRIVE.toml OUT/media.parquet

Written from docs/time-model.md and docs/reference/drive-files.md; shares nothing with the simulator. Angles are exact
fractions of 1/60e9 of a turn, in which a disk turns by its rpm in a nanosecond; a time is the first whole nanosecond.
For drives in the model `full` that do not read ahead, without blocks left out; layers whose times are the mechanics'.
"""

from __future__ import annotations

import math
import sys
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

TURN = 60_000_000_000
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True)
class Track:
    """A track: its place, its sectors and where they start, those that hold no block, and its blocks."""

    cylinder: int
    surface: int
    sectors: int
    usable: int
    start: Fraction
    slipped: frozenset[int]
    first: int
    blocks: int

    def sector(self, block: int) -> int:
        """The sector of the track's `block`-th block."""
        held = (s for s in range(self.usable) if s not in self.slipped)
        return block if not self.slipped else next(s for i, s in enumerate(held) if i == block)

    def angle(self, sector: int) -> Fraction:
        return (self.start + Fraction(sector * TURN, self.sectors)) % TURN


def number(value: Any) -> Any:
    """A number of a drive file; times in nanoseconds."""
    if isinstance(value, str):
        value = dict(zip(("value", "unit"), value.split(), strict=True))
    if isinstance(value, dict):
        return Fraction(str(value["value"])) * UNITS.get(value["unit"], 1)
    return Fraction(str(value))


def order(g: dict[str, Any], outwards: bool) -> list[tuple[int, int, list[Any]]]:
    """Cylinder, surface and zone of every track in PBA order; cylinders are counted from the side where PBA 0 lies."""
    surfaces, layout = int(number(g["surfaces"])), g["layout"]
    zones, at = [], 0
    for zone in reversed(g["zones"]["list"]) if outwards else g["zones"]["list"]:
        spare = zone[3] if len(zone) > 3 else 0
        first = at + spare * outwards
        zones.append((range(first, first + zone[0] - spare), zone))
        at += zone[0]
    if layout == "surface":
        whole = [(c, z) for cylinders, z in zones for c in cylinders]
        return [(c, s, z) for s in range(surfaces) for c, z in (reversed(whole) if s % 2 else whole)]
    tracks = []
    for cylinders, z in zones:
        width = int(number(g["group_cylinders"])) if layout == "hybrid" else 1
        for group in (cylinders[i : i + width] for i in range(0, len(cylinders), width)):
            back = layout == "cylinder-alternate" and group[0] % 2
            for i in range(surfaces):
                run = reversed(group) if layout == "hybrid" and i % 2 else group
                tracks += [(c, surfaces - 1 - i if back else i, z) for c in run]
    return tracks


class Walk:
    """A drive whose head goes where a log says."""

    def __init__(self, toml: dict[str, Any]) -> None:
        g, m = toml["geometry"], toml["mechanics"]
        assert (m["model"], m["seek_over"]) == ("full", "cylinders")
        assert not {"slips", "remaps", "groups"} & set(g)
        self.rpm = int(number(m["rpm"]))
        self.overhead = [int(number(m[k])) for k in ("read_overhead", "write_overhead")]
        self.switch = [int(number(m["head_switch"])), int(number(m.get("write_head_switch", m["head_switch"])))]
        self.settle = int(number(m["write_settle"]))
        self.curves = [m["read_seek"], m.get("write_seek", m["read_seek"])]
        outwards = number(toml.get("interference", {}).get("s_od", 1)) > 1
        self.tracks = self.lay(g, outwards)
        self.firsts = [t.first for t in self.tracks]
        self.full = sum(z[0] for z in g["zones"]["list"])
        # At rest on the cylinder and the surface of PBA 0: nothing goes on from there.
        self.track, self.next, self.ready, self.ended = self.tracks[0], -1, 0, Fraction(0)

    def lay(self, g: dict[str, Any], outwards: bool) -> list[Track]:
        cylinders = sum(z[0] for z in g["zones"]["list"])
        holes: dict[tuple[int, int], set[int]] = {}
        for cylinder, surface, sector in g.get("defects", {}).get("list", []):
            holes.setdefault((cylinders - 1 - cylinder if outwards else cylinder, surface), set()).add(sector)
        skews = [round(number(g[k]) * TURN) for k in ("track_skew", "cylinder_skew")]
        tracks: list[Track] = []
        start, first = Fraction(0), 0
        for cylinder, surface, zone in order(g, outwards):
            if tracks:
                start = (start + skews[cylinder != tracks[-1].cylinder]) % TURN
            usable = zone[1] - (zone[2] if len(zone) > 2 else 0)
            slipped = frozenset(s for s in holes.get((cylinder, surface), ()) if s < usable)
            blocks = usable - len(slipped)
            tracks.append(Track(cylinder, surface, zone[1], usable, start, slipped, first, blocks))
            first += blocks
        return tracks

    def seek(self, to: Track, write: bool) -> int:
        """Nanoseconds until the head has moved to a track, settled."""
        distance, curve = abs(to.cylinder - self.track.cylinder), self.curves[write]
        t = self.curve(curve, distance) if distance else 0
        if to.surface != self.track.surface:
            t = max(t, self.switch[write])
        return t + self.settle if t and write else t

    def curve(self, curve: dict[str, Any], d: int) -> int:
        t = {k: number(v) for k, v in curve.items() if k not in ("curve", "kind", "source", "list")}
        if curve["curve"] == "constant":
            return int(t["time"])
        if curve["curve"] == "sqrt":
            return round(float(t["base"]) + float(t["span"]) / math.sqrt(self.full) * math.sqrt(d))
        if curve["curve"] == "three-point":
            third = max(self.full // 3, 2)
            single, average, longest = (float(t[k]) for k in ("single", "average", "full_stroke"))
            if d <= third:
                slope = (average - single) / (math.sqrt(third) - 1)
                return max(round(single + slope * (math.sqrt(d) - 1)), 0)
            beyond: float = (longest - average) / (max(self.full, third + 1) - third) * (d - third)
            return round(average + beyond)
        assert curve["curve"] == "table", curve
        points: list[list[int]] = curve["list"]
        i = min(max(bisect_right([p[0] for p in points], d) - 1, 0), max(len(points) - 2, 0))
        (a, at), (b, bt) = points[i], points[min(i + 1, len(points) - 1)]
        # A line that falls beyond the last point ends at 0.
        return max(round(at + Fraction((bt - at) * (d - a), b - a)), 0) if b > a else int(at)

    def end(self, start: int, write: bool, pba: int, blocks: int) -> tuple[int, bool]:
        """When an operation ends that begins at `start`, and whether next to nothing decided about a turn."""
        track = self.at(pba)
        sector = track.sector(pba - track.first)
        if pba == self.next and start == self.ready:
            at, close = self.gap(self.ended, track.angle(sector), 0 if track is self.track else self.seek(track, write))
        else:
            arrive = Fraction((start + self.overhead[write] + self.seek(track, write)) * self.rpm)
            at, close = self.gap(arrive, track.angle(sector), 0)
        while True:
            self.track = track
            last = min(pba + blocks - track.first, track.blocks) - 1
            blocks -= track.first + last + 1 - pba
            # On the way to the next track all of this one passes.
            to = track.sector(last) + 1 if blocks == 0 else track.usable
            at += Fraction((to - sector) * TURN, track.sectors)
            if blocks == 0:
                break
            pba, sector = track.first + last + 1, 0
            track = self.at(pba)
            at, near = self.gap(at, track.angle(0), self.seek(track, write))
            close |= near
        self.next, self.ended = track.first + last + 1, at
        self.ready = math.ceil(at / self.rpm)
        return self.ready, close

    def gap(self, at: Fraction, angle: Fraction, switch: int) -> tuple[Fraction, bool]:
        """When `angle` passes first, `switch` ns after `at` or later; and whether next to nothing missed it."""
        ready = at + switch * self.rpm
        wait = (angle - ready) % TURN
        return ready + wait, TURN - wait < 2

    def at(self, pba: int) -> Track:
        return self.tracks[bisect_right(self.firsts, pba) - 1]


def faults(drive: str | Path, log: str | Path, late: bool = False) -> tuple[int, list[str]]:
    """How many operations a log has, and what is wrong. `late`: a bus may keep a write from the medium for turns."""
    toml = tomllib.loads(Path(drive).read_text())
    columns = ("seq", "disk", "request_id", "start_ns", "end_ns", "op", "pba", "blocks")
    rows = list(zip(*(pq.read_table(log).column(c).to_pylist() for c in columns), strict=True))
    walks: dict[int, Walk] = {}
    wrong = []
    for seq, disk, request, start, end, op, pba, blocks in rows:
        walk = walks.setdefault(disk, Walk(toml))
        if start < walk.ready:
            wrong.append(f"operation {seq} begins at {start}, before the last one ended at {walk.ready}")
        want, close = walk.end(start, op == "write", pba, blocks)
        off = end - want
        turn = TURN / walk.rpm
        turns = round(off / turn)
        allowed = turns == 0 or (close and abs(turns) == 1) or (late and op == "write" and turns > 0)
        if abs(off - turns * turn) > 1 or not allowed:
            what = f"{op} of {blocks} at {pba}, request {request}"
            wrong.append(f"operation {seq} ({what}) from {start} on ends at {end}, not at {want}")
        walk.ended += turns * TURN
        walk.ready = end
    return len(rows), wrong


if __name__ == "__main__":
    count, found = faults(sys.argv[1], sys.argv[2])
    print(f"{count} operations, {len(found)} not as the drive file has them", *found[:20], sep="\n  ")
    sys.exit(bool(found))
