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
from walk import Walk, faults

import smrlab
from smrlab.errors import InputError

SEED, DRIVES = int(os.environ.get("WALK_SEED", "1")), int(os.environ.get("WALK_DRIVES", "4"))
LAYERS = [
    "raw", "rmw", "log", "disk-cache", "s-block", "segment", "static-1234", "static-124R(3)", "static-R(4123)",
    "static-14R(23)", "h-swd", "laz-raz", "virtualguard", "smart", "e-region", "steady-log", "floating",
]  # fmt: skip

FILE = """
schema = 1
name = "walked"
summary = "a random drive"
reference = "made for this test"
[geometry]
surfaces = {surfaces}
layout = "{layout}"
{group}
track_skew = {track_skew!r}
cylinder_skew = {cylinder_skew!r}
[geometry.zones]
list = {zones}
{defects}
[interference]
s_id = {s_id}
s_od = {s_od}
[mechanics]
model = "full"
rpm = {rpm}
seek_over = "cylinders"
head_switch = "{head_switch} ns"
write_settle = "{settle} ns"
read_overhead = "{read_overhead} ns"
write_overhead = "{write_overhead} ns"
[mechanics.read_seek]
{seek}
"""


def seek_curve(rng: Random, shortest: int, cylinders: int) -> str:
    longest = shortest * rng.randint(3, 12)
    kind = rng.choice(("constant", "sqrt", "three-point", "table"))
    if kind == "constant":
        return f'curve = "constant"\ntime = "{shortest} ns"'
    if kind == "sqrt":
        return f'curve = "sqrt"\nbase = "{shortest} ns"\nspan = "{longest} ns"'
    if kind == "three-point":
        times = f'single = "{shortest} ns"\naverage = "{longest // 2} ns"\nfull_stroke = "{longest} ns"'
        return f'curve = "three-point"\n{times}'
    points = sorted({1, 2, *(rng.randint(3, cylinders + 3) for _ in range(3))})
    return f'curve = "table"\nlist = {[[d, shortest + rng.randint(0, longest) * (d > 1)] for d in points]}'


def random_drive(rng: Random) -> str:
    surfaces = rng.randint(1, 4)
    layout = rng.choice(("surface", "cylinder", "cylinder-alternate", "hybrid"))
    zones = []
    for _ in range(rng.randint(1, 3)):
        sectors, cylinders = rng.choice((37, 96, rng.randint(20, 150))), rng.randint(20, 60)
        zones.append([cylinders, sectors, rng.choice((0, 0, rng.randint(0, 3))), rng.choice((0, 0, rng.randint(0, 2)))])
    rpm = rng.choice((5400, 7200, 10_000, 10_045))
    turn = 60e9 / rpm
    shortest, settle = rng.randint(0, int(turn / 4)), rng.choice((0, rng.randint(0, 300_000)))
    # Skews that just cover the switch, that do not quite, and any.
    covers = min((shortest + settle) / turn + rng.choice((1e-9, 1e-9, -1e-6)), 0.9)
    skew = rng.choice((0.0, covers, covers, rng.random() * 0.3))
    defects = []
    if layout != "hybrid" and rng.random() < 0.3:
        defects = [[rng.randrange(zones[0][0]), rng.randrange(surfaces), rng.randrange(3, 9)] for _ in range(4)]
    return FILE.format(
        surfaces=surfaces,
        layout=layout,
        group=f"group_cylinders = {rng.randint(3, 30)}" if layout == "hybrid" else "",
        track_skew=max(rng.choice((skew, rng.random() * 0.5)), 0.0),
        cylinder_skew=max(skew, 0.0),
        zones=zones,
        defects=f"[geometry.defects]\nlist = {defects}" if defects else "",
        s_id=rng.choice((1, 2, 2, 3)),
        s_od=1,
        rpm=rpm,
        head_switch=rng.choice((0, rng.randint(0, int(turn / 3)))),
        settle=settle,
        read_overhead=rng.choice((0, 50_000, rng.randint(0, 400_000))),
        write_overhead=rng.choice((0, 70_000)),
        seek=seek_curve(rng, shortest, sum(z[0] for z in zones)),
    )


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
