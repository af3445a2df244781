"""The rules of the published drive-managed model (Shafaei et al. 2017, errors repaired), written down a second time.

Nothing of the project is used but the seek tables in the drive's file. Sizes are in blocks of 4 KiB, times in
milliseconds.
A request takes seek + rotation + transfer + cleaning + journal.
"""

from __future__ import annotations

import bisect
import random
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TURN = 60_000 / 5980
ZONES, ZONE_TRACKS, LAST_ZONE_TRACKS = 223, 15_460, 31_769
OUTER = 464  # blocks in an outer track
BAND = 20  # tracks
MEMORY = 14 * 256  # blocks merged at once
SCRATCH = 20  # outer tracks in a scratch band
SLOT = np.float32(0.4)  # of a turn
LATE = 36  # blocks: what passes within so many of the previous end is missed


class Tracks:
    """Tracks in the order of addresses: one block fewer a zone."""

    def __init__(self) -> None:
        self.size = [OUTER - z for z in range(ZONES)]
        self.first, self.block = [0], [0]
        for z, size in enumerate(self.size):
            n = ZONE_TRACKS if z + 1 < ZONES else LAST_ZONE_TRACKS
            self.first.append(self.first[-1] + n)
            self.block.append(self.block[-1] + n * size)

    def of(self, block: int) -> tuple[int, int, int]:
        """Track of a block, its offset in there, and the track's size."""
        z = bisect.bisect_right(self.block, block) - 1
        track, offset = divmod(block - self.block[z], self.size[z])
        return self.first[z] + track, offset, self.size[z]

    def start(self, track: int) -> int:
        z = bisect.bisect_right(self.first, track) - 1
        return self.block[z] + (track - self.first[z]) * self.size[z]

    def size_of(self, track: int) -> int:
        return self.size[bisect.bisect_right(self.first, track) - 1]


@dataclass
class Step:
    """One thing that a request waits for while a round of cleaning is open."""

    time: float
    collected: frozenset[int] = frozenset()


class Model:
    """A drive that serves one request at a time."""

    def __init__(self, drive: Path, trigger: int = 22_986, limit: int = 23_000, seed: int = 17) -> None:
        curve = tomllib.loads(drive.read_text())["mechanics"]["read_seek"]
        # The file counts cylinders, guards included: 21 for 20 tracks.
        self.seeks = [[(d * 20 / 21, t / 1e6) for d, t in curve[k]["list"]] for k in ("rising", "falling")]
        self.tracks, self.random = Tracks(), random.Random(seed)
        self.trigger, self.limit = trigger, limit
        self.cached: dict[int, int] = {}  # block: slot
        self.slots: dict[int, set[int]] = {}  # slot: its live blocks, oldest slot first
        self.next = 0
        self.track: int | None = None  # under the head; None: the cache
        self.slot: int | None = None  # read last
        self.journal = 0
        self.jobs: list[list[Step]] = []
        self.pressure = False
        self.scratch = 0

    def seek(self, a: int, b: int) -> float:
        """The measured pair that is nearest in distance, scaled to the distance."""
        d = abs(a - b)
        at, time = min(self.seeks[b < a], key=lambda e: abs(e[0] - d))
        return float(time * d / at)

    def kill(self, block: int) -> None:
        slot = self.cached.pop(block, None)
        if slot is not None:
            self.slots[slot].discard(block)
            if not self.slots[slot]:
                del self.slots[slot]

    def write(self, block: int, n: int) -> float:
        to_cache = 0.7 if self.track is None else self.seek(self.track, 1) + self.random.random() * TURN
        self.track = None
        stall = 0.0
        if self.journal == 240:
            stall, self.journal = 300.0, 0
        self.journal += 1
        for b in range(block, block + n):
            self.kill(b)
            self.cached[b] = self.next
        self.slots[self.next] = set(range(block, block + n))
        self.next += 1
        self.begin_if_due()
        self.pressure |= len(self.slots) >= self.limit
        return to_cache + 2.4 * TURN + stall + self.wait()

    def read(self, block: int, n: int) -> float:
        collected = self.jobs[0][0].collected if self.jobs else frozenset()
        free = all(b in collected for b in range(block, block + n))
        time = 0.0
        for i in range(n):
            slot = self.cached.get(block + i)
            time += self.to_native(block + i, i == 0) if slot is None else self.to_slot(slot, i == 0)
        if not free:
            time += self.wait()
            self.begin_if_due()
        return time

    def to_slot(self, slot: int, first: bool) -> float:
        """To a block in the cache, and its transfer."""
        time = TURN / OUTER
        if self.track is not None:
            time += self.seek(self.track, 1) + self.random.random() * TURN
        elif self.slot is None:
            time += self.random.random() * TURN
        elif first or slot != self.slot:
            # In single precision: at 0.2 of a turn it is the rounding that decides, as in the published runs.
            apart = float(SLOT * slot % 1 - SLOT * self.slot % 1)
            time += TURN if abs(apart) < 0.2 else apart % 1 * TURN
        self.track, self.slot = None, slot
        return time

    def to_native(self, block: int, first: bool) -> float:
        track, offset, size = self.tracks.of(block)
        time = TURN / size
        if self.track is None:
            time += self.seek(1, track) + self.random.random() * TURN
        elif first or track != self.track:
            gap = offset / size if track != self.track and offset >= LATE else 1.0
            time += self.seek(self.track, track) + gap * TURN
        self.track = track
        return time

    def begin_if_due(self) -> None:
        """A round of two bands, each that of the highest block of the oldest live slot."""
        if self.jobs or not self.slots or self.next - next(iter(self.slots)) <= self.trigger:
            return
        for _ in range(2):
            if self.slots:
                band = self.tracks.of(max(self.slots[next(iter(self.slots))]))[0] // BAND
                start, end = (self.tracks.start(t) for t in (band * BAND, band * BAND + BAND))
                taken = {b: self.cached[b] for b in range(start, end) if b in self.cached}
                for b in taken:
                    self.kill(b)
                self.jobs.append(self.steps(band, taken))
        if len(self.slots) <= self.trigger:
            self.pressure = False

    def steps(self, band: int, taken: dict[int, int]) -> list[Step]:
        size, start = self.tracks.size_of(band * BAND), self.tracks.start(band * BAND)
        low = (min(taken) - start) // size
        n, way = BAND - low, self.seek(band * BAND, 1)
        each = MEMORY // size
        phases = min(3, -(-n * size // MEMORY))
        # A slot counts once, with the track of its highest block.
        last = {slot: (block - start) // size for block, slot in sorted(taken.items())}
        out: list[Step] = []

        def collect(track: int) -> None:
            now = {slot for slot, t in last.items() if t <= track}
            for slot in now:
                del last[slot]
            if now:
                blocks = frozenset(b for b, slot in taken.items() if slot in now)
                out.append(Step(0.2 * TURN * len(now), blocks))

        used: float = self.scratch
        for p in range(phases):
            end = p + 1 == phases
            tracks = n - each * p if end else each
            out.append(Step(tracks * TURN + 2 * way))
            need, room = tracks * size / OUTER, SCRATCH - used
            if need > room:
                collect(low + each * p + int(room * OUTER // size))
                if room > 0:
                    out.append(Step(room * TURN))
                need, used = need - room, 0
            collect(BAND if end else low + each * (p + 1))
            out.append(Step(need * TURN))
            used += need
            out.append(Step((tracks if end else tracks - 1) * TURN + 2 * way))
        self.scratch = int(self.scratch + n * size / OUTER) % SCRATCH
        return out

    def wait(self) -> float:
        """One step of an open round; under pressure all that is left."""
        time = 0.0
        while self.jobs:
            time += self.jobs[0].pop(0).time
            self.jobs = [job for job in self.jobs if job]
            if not self.pressure:
                break
        return time
