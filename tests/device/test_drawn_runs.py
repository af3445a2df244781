"""Stacks by lot: served, they do what a run of the same requests does.

`make soak` looks at others: IDENTITIES_SEED is the first seed, IDENTITIES_RUNS how many there are.
"""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn_drives import random_drive
from drawn_stacks import drawn, keeps_data, works_when_idle
from nbdclient import FLUSH, FUA, READ, TRIM, WRITE, Client
from served import Make
from test_identities import REACH, RUNS, SEED, requests

import smrlab
from smrlab.errors import InputError, MissingError

# What a server says of itself.
SEND_TRIM = 1 << 5
KINDS = {"read": READ, "write": WRITE, "flush": FLUSH, "discard": TRIM}


def ask(client: Client, rows: list[str]) -> None:
    """The requests of a trace, each when the one before it is answered."""
    for row in csv.DictReader(rows):
        size = int(row["blocks"]) * 512
        data = bytes([1]) * size if row["op"] == "write" else b""
        flags = FUA if row["fua"] == "true" else 0
        error, _ = client.ask(KINDS[row["op"]], int(row["lba"]) * 512, size, data, flags)
        assert error == 0, row


def aligned(rows: list[str], unit: int) -> list[str]:
    """The same requests, of whole units of so many blocks."""
    head, *cells = (row.split(",") for row in rows)
    for row in cells:
        row[2], row[3] = str(int(row[2]) // unit * unit), str(-(-int(row[3]) // unit) * unit)
    return [",".join(row) for row in (head, *cells)]


def fits(stack: str) -> bool:
    """Whether nothing happens but what requests ask for, each of which is done, whichever stream it is of.

    An SSD is emptied in the time between them, and where a block floats to hangs on the angle of the head. A client
    has one stream.
    """
    above, _, layer = stack.rpartition(" / ")
    befalls = ("fail=", "timeout=", "ssd", "floating", "dedicated", "streams=")
    shows_zones = not above and layer.startswith("zoned")
    return not (shows_zones or works_when_idle(stack) or any(word in stack for word in befalls)) and keeps_data(stack)


@pytest.mark.parametrize("first", range(0, RUNS, 20))
def test_a_served_stack_does_what_a_run_does(first: int, make: Make, tmp_path: Path) -> None:
    """The same next, that is: with their states both do the same with other requests."""
    file, trace = tmp_path / "drive.toml", tmp_path / "trace.csv"
    states = [tmp_path / "run.state", tmp_path / "served.state"]
    looked = 0
    for seed in range(SEED + first, SEED + min(first + 20, RUNS)):
        rng = Random(seed)
        stack = next(filter(fits, (drawn(rng) for _ in range(1000))))
        file.write_text(random_drive(rng))
        drive, block = rng.choice(("tiny", str(file))), rng.choice((512, 4096))
        before, after = (requests(rng, zoned=False).splitlines() for _ in range(2))
        before = aligned(before, block // 512)
        above, _, layer = stack.rpartition(" / ")
        try:
            device = make(f"d{seed}", "memory", drive=drive, layer=layer, array=above or None, size=None, block=block)
        except (InputError, MissingError):
            continue
        with Client(device.socket()) as client:
            if client.size < REACH * 512:
                continue
            if not client.flags & SEND_TRIM:
                before = [row for row in before if "discard" not in row]
            ask(client, before)
        device.ask("state", path=str(states[1]))
        device.stop(force=True)

        def go(rows: list[str], drive: str = drive, stack: str = stack, **more: object) -> dict[str, Any]:
            trace.write_text("\n".join(rows) + "\n")
            asked = {"drive": drive, "stack": stack, "wrap": "capacity", "arrivals": "closed", **more}
            doc: dict[str, Any] = smrlab.run(f"{trace}:csv", **asked).doc
            return doc

        if len(before) > 1:
            go(before, save_state=states[0])
            one, other = (go(after, from_state=state) for state in states)
            for part in ("media", "movement", "cache"):
                assert one.get(part) == other.get(part), f"seed {seed}: {stack} on {drive}: {part}"
            looked += 1
    assert looked > 0
