"""Media logs are what a walk from the drive file alone says: random drives, layers, buffers and arrays.

`make soak` walks over others: WALK_SEED is the first seed, WALK_DRIVES how many drives there are.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from drawn_drives import random_drive
from walk import Walk, faults

import smrlab
from smrlab.errors import InputError

SEED, DRIVES = int(os.environ.get("WALK_SEED", "1")), int(os.environ.get("WALK_DRIVES", "4"))
LAYERS = [
    "raw", "rmw", "log", "disk-cache", "s-block", "segment", "static-1234", "static-124R(3)", "static-R(4123)",
    "static-14R(23)", "h-swd", "laz-raz", "virtualguard", "smart", "e-region", "steady-log", "floating",
]  # fmt: skip


def requests(rng: Random, blocks: int, count: int) -> pa.Table:
    """Streams, requests anywhere, some of them longer than tracks; the first one often to block 0 at time 0."""
    rows: dict[str, list[Any]] = {"arrival_ns": [], "op": [], "lba": [], "blocks": []}
    at, lba = 0, 0
    for i in range(count):
        length = rng.choice((1, 8, 8, 64, rng.randint(1, 400)))
        if rng.random() < 0.5 and i:
            lba = rng.randrange(blocks)
        lba = lba if lba + length <= blocks else 0
        for key, value in zip(rows, (at, rng.choice(("read", "write")), lba, length), strict=True):
            rows[key].append(value)
        lba += length
        at += rng.choice((0, 0, rng.randint(0, 30_000_000)))
    return pa.table(rows)


def walked(folder: Path, toml: str, rng: Random, late: bool = False, switches: str = "", **options: Any) -> int:
    """Runs requests on a drive and walks over its log; answers how many operations there were."""
    file = folder / "drive.toml"
    file.write_text(toml)
    blocks = sum(t.blocks for t in Walk(tomllib.loads(toml)).tracks)
    arrivals = rng.choice(("trace", "closed"))
    trace = smrlab.Trace.from_table(requests(rng, blocks // 3, 200))
    out = folder / "out"
    smrlab.run(trace, drive=f"{file}{switches}", arrivals=arrivals, media_log=True, out=out, force=True, **options)
    count, wrong = faults(file, out / "media.parquet", late)
    assert not wrong, f"{options} {switches} {arrivals}: {len(wrong)} of {count}\n" + "\n".join(wrong[:5]) + toml
    return count


@pytest.mark.parametrize("seed", range(SEED, SEED + DRIVES))
def test_the_walk_agrees(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    toml = random_drive(rng)
    operations, left = walked(tmp_path, toml, rng, layer="cmr"), 3
    for layer in rng.sample(LAYERS, len(LAYERS)):
        try:
            operations += walked(tmp_path, toml, rng, layer=layer)
            left -= 1
        except InputError as e:
            # Some have no room on a drive so small.
            if "unknown layer" in str(e):
                raise
        if left == 0:
            break
    assert left < 3, toml
    # Members of an array, and what a buffer of its own sends to the medium.
    operations += walked(tmp_path, toml, rng, layer="cmr", array="raid5,disks=3")
    buffered = ",read_ahead=off,write_cache=" + rng.choice(("on", "off")) + rng.choice(("", ",bus=20"))
    operations += walked(tmp_path, toml, rng, late=True, switches=buffered, layer="cmr")
    assert operations > 400
