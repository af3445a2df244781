"""Figures of random runs add up: results against their tables.

`make soak` looks at others: IDENTITIES_SEED is the first seed, IDENTITIES_RUNS how many there are.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn_drives import random_drive
from drawn_stacks import drawn, keeps_data, works_when_idle
from identities import faults

import smrlab
from smrlab.errors import InputError

SEED, RUNS = int(os.environ.get("IDENTITIES_SEED", "1")), int(os.environ.get("IDENTITIES_RUNS", "40"))
SMALL = "chunk=4KiB"
STACKS = [
    *("cmr", "rmw", "static-1234", "static-R(4123)", "disk-cache,cache=10%,idle=5ms", "s-block,sblock_blocks=160"),
    *("log", "laz-raz", "segment", "persistent-cache", "virtualguard", "smart", "e-region", "host-aware", "steady-log"),
    *("zoned,zone=96blk,conventional=10%", "zoned,zone=96blk,conventional=0%,max_open=3"),
    *("zone-log / zoned,zone=128blk", "dm-zoned,reserved=2 / zoned,zone=96blk,conventional=30%"),
    *("ssd-cache,write=64KiB,read=64KiB,page=4KiB / rmw", f"striped,disks=3,{SMALL} / log", "dedicated,disks=2 / log"),
    *(f"raid5,disks=3,{SMALL} / disk-cache,cache=10%", f"raid6,disks=4,{SMALL} / log", f"mirror,disks=2,{SMALL} / rmw"),
    *(f"raid5,disks=4,{SMALL},fail=1@50ms,replace=10ms / cmr", f"dvs,disks=4,{SMALL},segment=20 / cmr"),
    *(f"full-stripe,disks=4,{SMALL},segment=8 / cmr", f"raid4s,disks=4,{SMALL} / log"),
    *(f"mirror,disks=2,{SMALL},fail=0@20ms / log", f"raid6,disks=5,{SMALL},fail=2@77ms,replace=5ms / cmr"),
    *(f"dvs,disks=4,{SMALL},segment=20,fail=1@0ms,replace=1ms / cmr", f"raid4s,disks=4,{SMALL},fail=0@30ms / cmr"),
    *(f"striped,disks=2,{SMALL} / raid5,disks=3,{SMALL} / cmr", f"bus,rate=1 / striped,disks=2,{SMALL} / cmr"),
]
# No request of these reaches further.
REACH = 400 + 199
ZONES = ("append", "zone-reset", "zone-open", "zone-finish")


def requests(rng: Random, zoned: bool) -> str:
    """Reads, writes and the rest, close together, all at once or far apart."""
    ops = ["read"] * 4 + ["write"] * 6 + rng.choice(([], ["flush", "discard"])) + [*ZONES] * zoned
    gap, at = rng.choice((0, 5_000_000, 80_000_000)), 0
    rows = ["arrival_ns,op,lba,blocks,stream,fua"]
    for _ in range(rng.choice((1, 2, 30, 200))):
        op, blocks = rng.choice(ops), rng.choice((1, 8, 8, 16, rng.randint(1, 199)))
        lba = rng.randrange(rng.choice((120, 400)))
        if op == "flush":
            lba = blocks = 0
        fua = str(op == "write" and rng.random() < 0.1).lower()
        rows.append(f"{at},{op},{lba},{blocks},{rng.randrange(2)},{fua}")
        at += rng.randint(0, gap)
    return "\n".join(rows) + "\n"


def options(rng: Random, folder: Path) -> dict[str, Any]:
    """What a user may ask for beside a stack."""
    drawn = {
        "scheduler": rng.choice(("fcfs,depth=4", "sstf", "c-look", "sptf,depth=8")),
        "arrivals": rng.choice(("closed", "closed,depth=4", "closed,depth=3,think=5ms")),
        "prefill": rng.choice(("50%", "100%", "read")),
        "window": rng.choice(("1ms", "37ms", "1s")),
        "stall": rng.choice(("1ms", "20ms")),
        "metadata": "media",
    }
    buffer = rng.choice(("cache_size=64KiB,segments=8", "cache_size=2blk,segments=2", "zero_latency=on"))
    file = folder / "drive.toml"
    file.write_text(random_drive(rng))
    drive = rng.choice(("tiny", "tiny", str(file)))
    memory = rng.choice(("", f",write_cache=on,{buffer}", ",write_cache=off,read_ahead=two-tracks"))
    return {"drive": drive + memory} | {k: v for k, v in drawn.items() if rng.random() < 0.4}


def test_every_stack_runs() -> None:
    """One that is always refused would never be looked at below."""
    for stack in STACKS:
        smrlab.run("synth:uniform,requests=1,span=4KiB", drive="tiny", stack=stack)


@pytest.mark.parametrize("first", range(0, RUNS, 10))
def test_the_figures_add_up(first: int, tmp_path: Path) -> None:
    ran = 0
    for seed in range(SEED + first, SEED + min(first + 10, RUNS)):
        rng = Random(seed)
        stack = drawn(rng) if seed % 2 else rng.choice(STACKS)
        asked = options(rng, tmp_path) | {"verify_media": keeps_data(stack) and rng.random() < 0.5}
        trace = tmp_path / "trace.csv"
        trace.write_text(requests(rng, "zoned" in stack or "host-aware" in stack))
        try:
            result = smrlab.run(
                f"{trace}:csv",
                stack=stack,
                wrap="capacity",
                requests=True,
                media_log=True,
                out=tmp_path / "out",
                force=True,
                seed=seed,
                **asked,
            )
        except InputError:
            # Not every stack takes every option; too many refusals would leave nothing to look at.
            continue
        ran += 1
        wrong = faults(result)
        assert not wrong, f"seed {seed}: {stack} {asked}\n" + "\n".join(wrong[:8])
    assert ran > 2


def figures(result: Any) -> Any:
    """What came out of a run, without what was asked for."""
    doc = dict(result.doc)
    doc["space"] = {key: value for key, value in doc["space"].items() if key != "host_blocks"}
    return {key: value for key, value in doc.items() if key != "spec"}


def test_a_comparison_has_the_figures_of_its_runs(tmp_path: Path) -> None:
    """All see the space of the smallest, in which all of these requests lie."""
    trace = tmp_path / "trace.csv"
    for seed in range(SEED, SEED + max(RUNS // 10, 3)):
        rng = Random(seed)
        stacks = rng.sample([s for s in STACKS if "zone" not in s and "dedicated" not in s], 3)
        trace.write_text(requests(rng, zoned=False))
        asked = options(rng, tmp_path) | {"seed": seed, "wrap": "capacity", "prefill": None}
        try:
            compared = smrlab.compare(f"{trace}:csv", layers=stacks, jobs=1, **asked)
        except InputError:
            continue
        if min(result.doc["space"]["host_blocks"] for result in compared) < REACH:
            continue
        for stack, result in zip(stacks, compared, strict=True):
            alone = smrlab.run(f"{trace}:csv", stack=stack, **asked)
            assert figures(result) == figures(alone), f"seed {seed}: {stack} {asked}"


def test_two_halves_of_a_trace_with_a_state_between_are_the_whole(tmp_path: Path) -> None:
    """A host that waits for each answer leaves a drive no idle time; an array's drives wait for each other.

    Left out is what a state does not hold (docs/arrays.md, aged arrays): disks that die once, the order in which
    pages of an SSD were used, which groups full-stripe was filling; and zones that are open, which a restart closes.
    """
    changed = ("fail=", "ssd", "dm-zoned", "full-stripe", "max_open")
    state, looked = tmp_path / "s.state", 0
    for seed in range(SEED, SEED + max(RUNS // 4, 10)):
        rng = Random(seed)
        stack = drawn(rng) if seed % 2 else rng.choice(STACKS)
        if any(c in stack for c in changed) or (" / " in stack and works_when_idle(stack)):
            continue
        head, *rows = requests(rng, "zone" in stack).splitlines()
        halves = (rows, rows[: len(rows) // 2], rows[len(rows) // 2 :])
        if len(rows) < 2:
            continue
        docs = []
        for part, more in zip(halves, ({}, {"save_state": state}, {"from_state": state}), strict=True):
            trace = tmp_path / "trace.csv"
            trace.write_text("\n".join([head, *part]) + "\n")
            asked: dict[str, Any] = {"drive": "tiny", "wrap": "capacity", "arrivals": "closed", "seed": seed} | more
            try:
                docs.append(smrlab.run(f"{trace}:csv", stack=stack, **asked).doc)
            except InputError:
                # Which a half could meet that the whole did not.
                assert not docs, f"seed {seed}: {stack}"
                break
        if not docs:
            continue
        for where in ("host", "media"):
            for key in ("reads", "writes", "blocks_read", "blocks_written"):
                whole, first, second = (doc[where][key] for doc in docs)
                assert whole == first + second, f"seed {seed}: {stack}: {where}.{key}"
        looked += 1
    assert looked > 2


@pytest.mark.parametrize("stack", ["host-aware,zone=96blk,map_trigger=1", "persistent-cache,log_late=1"])
@pytest.mark.parametrize("memory", ["write_cache=off,read_ahead=two-tracks", "write_cache=on,zero_latency=on"])
def test_schedulers_look_again_where_requests_begin(stack: str, memory: str, tmp_path: Path) -> None:
    """Reads from the drive's memory and pauses of cleaning move that: a build that checks itself ends otherwise."""
    trace = tmp_path / "trace.csv"
    for seed in range(12):
        trace.write_text(requests(Random(seed), zoned=False))
        for scheduler in ("sptf,depth=8", "c-look"):
            smrlab.run(
                f"{trace}:csv",
                drive=f"tiny,{memory}",
                stack=stack,
                scheduler=scheduler,
                arrivals="closed,depth=4",
                prefill="50%",
                wrap="capacity",
            )
