"""The paper's map, as published: a table of sectors, for the exact counts of its work and of its errors.

Small disks, sector by sector; what is served by smrlab keeps no such table.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

Doc = dict[str, Any]
# Tracks and sectors of three zones, skew period of four tracks.
ZONES = ((4, 28), (5, 20), (4, 16))
PERIOD = 4


class Disk:
    """Tracks of one surface with a skew of a whole turn every `PERIOD` tracks (section 3.2.1)."""

    def __init__(self) -> None:
        self.sectors = [ts for tracks, ts in ZONES for _ in range(tracks)]
        self.start = [sum(self.sectors[:t]) for t in range(len(self.sectors))]
        self.blocks = sum(self.sectors)
        self.track = [t for t, ts in enumerate(self.sectors) for _ in range(ts)]

    def skew(self, t: int) -> int:
        """Sectors past the reference line."""
        ts = self.sectors[t]
        return (t % PERIOD * ts * 2 + PERIOD) // (2 * PERIOD) % ts

    def victim(self, lba: int, u: int) -> int:
        """The sector of track u at the angle of `lba`: the formula as it has to be."""
        t = self.track[lba]
        ts, us = self.sectors[t], self.sectors[u]
        angle = (lba - self.start[t] + self.skew(t)) % ts
        return self.start[u] + (angle * us // ts - self.skew(u)) % us

    def printed(self, lba: int, u: int) -> int:
        """The same as printed, its rescaling done in real numbers and in the right order."""
        t = self.track[lba]
        ts, us = self.sectors[t], self.sectors[u]
        pos = lba - self.start[t] + self.skew(t)
        angle = (pos - ts if pos > ts else pos) * us // ts
        skew = self.skew(u)
        return self.start[u] + (angle - skew if skew < angle else us - skew + angle)

    def victims(self, lba: int, k: int) -> list[int]:
        """All sectors that writing `lba` destroys."""
        t = self.track[lba]
        return [self.victim(lba, u) for u in range(t + 1, min(t + k, len(self.sectors)))]


class Map:
    """`map[victim] = writer`; every look-up, erasure and insertion is counted."""

    def __init__(self, disk: Disk, k: int) -> None:
        self.disk, self.k = disk, k
        self.entries: dict[int, int] = {}
        self.lookups = self.erases = self.inserts = self.most = 0

    def write(self, lba: int) -> None:
        """A sector: its own entry goes, those of what it destroys come."""
        self.erases += 1
        self.entries.pop(lba, None)
        for victim in self.disk.victims(lba, self.k):
            self.inserts += 1
            self.entries[victim] = lba
        self.most = max(self.most, len(self.entries))

    def read(self, lba: int) -> int:
        """Where the data of a sector come from."""
        self.lookups += 1
        return self.entries.get(lba, lba)


def work(spec: Doc, _: object) -> Doc:
    """A sequential write of the whole disk and a read of it: operations of the map a sector, and entries."""
    disk = Disk()
    table = Map(disk, spec["k"])
    inner = sum(disk.track[lba] + spec["k"] <= len(disk.sectors) for lba in range(disk.blocks))
    inserts = erases = 0
    for lba in range(disk.blocks):
        table.write(lba)
        if lba == inner - 1:
            erases, inserts = table.erases, table.inserts
    redirected = sum(table.read(lba) != lba for lba in range(disk.blocks))
    return {
        "erases": erases / inner, "inserts": inserts / inner, "lookups": table.lookups / disk.blocks,
        "entries_at_most": table.most, "entries_left": len(table.entries), "redirected": redirected,
        "longest_track": max(disk.sectors),
    }  # fmt: skip


def exact(spec: Doc, _: object) -> Doc:
    """Random writes against a medium that really loses what is destroyed: sectors that read differently."""
    rng, disk, wrong, reads = random.Random(1), Disk(), 0, 0
    for _trial in range(spec["trials"]):
        k = rng.randrange(1, 5)
        table, medium, store = Map(disk, k), {}, {}
        for number in range(200):
            lba = rng.randrange(disk.blocks)
            table.write(lba)
            store[lba] = medium[lba] = number
            for victim in disk.victims(lba, k):
                medium[victim] = number
        reads += disk.blocks
        wrong += sum(store.get(table.read(lba)) != medium.get(lba) for lba in range(disk.blocks))
    return {"reads": reads, "wrong": wrong}


def pieces(_: Doc, __: object) -> Doc:
    """Figure 5 in the first zone, k = 3: writes 1, 2 and 3 on arcs of tracks 1 to 3, then a read of track 3."""
    disk = Disk()
    table = Map(disk, 3)
    for t, first, count in ((0, 0, 28), (1, 6, 18), (2, 6, 10)):
        for angle in range(first, first + count):
            table.write(disk.start[t] + (angle - disk.skew(t)) % disk.sectors[t])
    sources = [table.read(disk.start[2] + (angle - disk.skew(2)) % disk.sectors[2]) for angle in range(28)]
    tracks = [disk.track[s] for s in sources]
    return {"pieces": 1 + sum(a != b for a, b in pairwise(tracks)), "tracks": len(set(tracks))}


def formula(spec: Doc, _: object) -> Doc:
    """The printed formula against the corrected one: victims that differ, those outside their track, bijections."""
    disk, k = Disk(), spec["k"]
    victims = differ = outside = pairs = whole = whole_corrected = 0
    for t in range(len(disk.sectors)):
        lbas = range(disk.start[t], disk.start[t] + disk.sectors[t])
        for u in range(t + 1, min(t + k, len(disk.sectors))):
            target = range(disk.start[u], disk.start[u] + disk.sectors[u])
            printed = [disk.printed(lba, u) for lba in lbas]
            right = [disk.victim(lba, u) for lba in lbas]
            victims += len(right)
            differ += sum(a != b for a, b in zip(printed, right, strict=True))
            outside += sum(a not in target for a in printed)
            if disk.sectors[t] == disk.sectors[u]:
                pairs += 1
                whole += set(printed) == set(target)
                whole_corrected += set(right) == set(target)
    return {"victims": victims, "differ": differ, "outside": outside, "pairs": pairs, "whole": whole,
            "whole_corrected": whole_corrected}  # fmt: skip
