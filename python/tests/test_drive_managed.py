"""The drive-managed preset against the published model's rules, written down a second time, on workloads drawn here."""

from __future__ import annotations

import itertools
import json
import random
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from drive_managed_model import Model

from smrlab import _core

ROOT = Path(__file__).resolve().parents[2]
DRIVE = ROOT / "drives/seagate-st5000as0011.toml"
GIB = 2**30 // 4096
TRIGGER, LIMIT = 4_000, 4_010
LAST = 9_767_540_736 // 8 - 20_000


@dataclass(frozen=True)
class Mix:
    """Requests of 1 to 2**most blocks of 4 KiB."""

    reads: float
    most: int
    start: float  # of the drive
    span: int
    hot: float = 0.0  # share of requests that go to a 64th of the span
    sequential: float = 0.0  # share of reads that go on behind the last such one
    stream: int = 0  # blocks of each write, which go on behind each other; 0: writes are drawn as reads are

    def draw(self, n: int, rng: random.Random) -> list[tuple[bool, int, int]]:
        base, goes_on, written, out = int(self.start * LAST), 0, 0, []
        for _ in range(n):
            read, size = rng.random() < self.reads, 2 ** rng.randint(0, self.most)
            at = rng.randrange(self.span // 64 if rng.random() < self.hot else self.span)
            if read and rng.random() < self.sequential:
                at, goes_on = goes_on % self.span, goes_on + size
            if not read and self.stream:
                at, size, written = written % self.span, self.stream, written + self.stream
            out.append((read, min(base + at, LAST), size))
        return out


MIXES = {
    "small writes over 1.5 TB, some reads": Mix(0.15, 2, 0.0, 1400 * GIB),
    "outer edge, half reads": Mix(0.5, 4, 0.0, 4 * GIB, hot=0.5),
    "inner edge, hot, mostly reads": Mix(0.7, 5, 0.95, 40 * GIB, hot=0.8),
    "streams of reads between writes": Mix(0.6, 4, 0.5, 30 * GIB, sequential=0.9),
    "the whole drive": Mix(0.4, 6, 0.0, LAST),
    # One in five of the packets that come after a read crosses the end of a track.
    "large writes in order between reads": Mix(0.5, 4, 0.0, LAST, stream=128),
}


def judged(requests: list[tuple[bool, int, int]], tmp_path: Path) -> tuple[float, list[Any], int]:
    """The RMS of all requests in percent, each one's kind, time by the rules and ours, and when cleaning begins."""
    model = Model(DRIVE, TRIGGER, LIMIT)
    asked, answers, cleaning = ["op,lba,blocks"], ["rep_ms"], len(requests)
    for i, (read, at, n) in enumerate(requests):
        asked.append(f"{'R' if read else 'W'},{at * 8},{n * 8}")
        answers.append(f"{(model.read if read else model.write)(at, n):.6f}")
        cleaning = min(cleaning, i) if model.jobs else cleaning
    for file, lines in (("input", asked), ("latency", answers)):
        (tmp_path / f"mix.{file}.csv").write_text("\n".join(lines) + "\n")
    layer = f"persistent-cache,readahead=off,map_trigger={TRIGGER},map_limit={LIMIT}"
    text, rows = _core.validate(DRIVE.stem, str(tmp_path / "mix.input.csv"), layer, "rep")
    return json.loads(text)["demerit_percent"], rows, cleaning


@pytest.mark.parametrize("name", MIXES)
def test_mixed_workloads_take_what_the_rules_say(name: str, tmp_path: Path) -> None:
    """Reads and writes apart, with room and from the first cleaning on, have means within 3 % (and two standard errors:
    the model draws rotation to and from the cache); the RMS of all requests is within 3 %."""
    requests = MIXES[name].draw(16_000, random.Random(name))
    rms, rows, cleaning = judged(requests, tmp_path)
    assert cleaning < len(requests), "the map fills"
    assert rms <= 3
    for reads in (True, False):
        for phase in (rows[:cleaning], rows[cleaning:]):
            part = [(theirs, ours) for read, theirs, ours in phase if read == reads]
            mean = statistics.fmean(theirs for theirs, _ in part)
            apart = [(ours - theirs) / mean for theirs, ours in part]
            off, error = statistics.fmean(apart), statistics.stdev(apart) / len(part) ** 0.5
            print(f"{name}: {'reads' if reads else 'writes'}, {len(part)}: mean {off:+.2%} ± {error:.2%}")
            assert len(part) > 400
            assert abs(off) <= 0.03 + 2 * error


@pytest.mark.parametrize("ordered", [True, False], ids=["in order", "the last one"])
def test_reads_of_what_was_just_written_take_what_the_rules_say(ordered: bool, tmp_path: Path) -> None:
    """From packet to packet the turn counts from the packet that was read last, whatever was written meanwhile."""
    rng, base, requests, packets, at = random.Random(5), LAST // 3, [], 0, 0
    written: list[tuple[int, int]] = []
    while packets < TRIGGER:
        if written and rng.random() < 0.5:
            lba, n = written[at if ordered else -1]
            requests.append((True, lba, n))
            at += at + 1 < len(written)
        else:
            written.append((base + packets * 16, 2 ** rng.randint(0, 4)))
            requests.append((False, *written[-1]))
            packets += 1
    rms, rows, cleaning = judged(requests, tmp_path)
    assert cleaning == len(requests), "there is room in the map"
    assert rms <= 3
    after_writes = [row[1:] for last, row in itertools.pairwise(rows) if row[0] and not last[0]]
    theirs, ours = (statistics.fmean(times) for times in zip(*after_writes, strict=True))
    print(f"{len(after_writes)} reads after writes: mean {ours / theirs - 1:+.2%}, RMS of all {rms:.2f} %")
    assert abs(ours / theirs - 1) <= 0.03
