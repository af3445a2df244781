"""Servers killed in the middle of writing: what a client was told is durable is there, whatever the layer."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import threading
import time
from pathlib import Path

import pytest
from nbdclient import FLUSH, FUA, READ, TRIM, WRITE, ZERO, Client, Gone
from served import Make, need, run

from smrlab.devices import Device

SECTOR = 512
# Layers that survive cuts, and a bare disk: ten, each killed five times.
LAYERS = [
    "raw,tracks=1",
    "cmr",
    "rmw,journal=on",
    "rmw,mode=partial,journal=on",
    "static-1234,journal=on",
    "static-R(4123),journal=on",
    "disk-cache,journal=on",
    "disk-cache,journal=on,cleaning=partial,clean_bands=2,idle=10ms",
    "s-block",
    "s-block,policy=most-cached,sections=2",
]
KILLS = 5
DEPTH = 16


def content(stamp: int, sector: int) -> bytes:
    """What write number `stamp` puts there; number 0, and a negative one, is zeroes."""
    return struct.pack("<QQ", stamp, sector) * (SECTOR // 16) if stamp > 0 else bytes(SECTOR)


class Writer:
    """Writes, zeroes, trims and flushes at random; knows what each sector may hold.

    A sector holds its last durable version, or any that was sent after it.
    """

    def __init__(self, size: int, trims: bool, seed: int) -> None:
        self.rng = random.Random(seed)
        self.sectors = size // SECTOR
        self.trims = trims
        self.stamp = 0
        # Versions since and with the last durable one; negative stamps are zeroing.
        self.versions: dict[int, list[int]] = {}
        self.durable = 0
        self.flushed = 0

    def may_hold(self, sector: int) -> list[int]:
        return self.versions.get(sector, [0])

    def settle(self, spans: list[tuple[int, int, int]]) -> None:
        """These are durable: nothing older may be seen any more."""
        for first, count, stamp in spans:
            for s in range(first, first + count):
                held = self.versions[s]
                if stamp in held:
                    del held[: held.index(stamp)]
        self.durable += len(spans)

    def pick(self, busy: set[int]) -> tuple[int, int]:
        """A range that no request in flight touches; a quarter of the space gets most of them."""
        while True:
            count = self.rng.choice([1, 8, 8, 8, 16, 64, 200])
            limit = self.sectors // (4 if self.rng.random() < 0.8 else 1)
            first = self.rng.randrange(limit - count)
            if busy.isdisjoint(range(first, first + count)):
                return first, count

    def run(self, client: Client, device: Device) -> None:
        """Goes on until the server is gone, which is some time after a few flushes."""
        target, timer = self.flushed + self.rng.randrange(1, 12), None
        flying: dict[int, tuple[int, int, int, bool]] = {}
        flushes: dict[int, list[tuple[int, int, int]]] = {}
        answered: list[tuple[int, int, int]] = []
        busy: set[int] = set()
        while True:
            while len(flying) + len(flushes) < DEPTH:
                if self.rng.random() < 0.03:
                    flushes[client.send(FLUSH, 0, 0)] = list(answered)
                    continue
                first, count = self.pick(busy)
                self.stamp += 1
                fua = self.rng.random() < 0.05
                kind = self.rng.choices([WRITE, ZERO, TRIM if self.trims else ZERO], [90, 5, 5])[0]
                stamp = self.stamp if kind == WRITE else -self.stamp
                span = range(first, first + count)
                data = b"".join(content(stamp, s) for s in span) if kind == WRITE else b""
                for s in span:
                    self.versions.setdefault(s, [0]).append(stamp)
                busy.update(span)
                cookie = client.send(kind, first * SECTOR, count * SECTOR, data, FUA if fua else 0)
                flying[cookie] = (first, count, stamp, fua)
            if timer is None and self.flushed >= target:
                timer = kill(device, self.rng.uniform(0, 0.1))
            cookie, error, _ = client.reply()
            assert error == 0, f"error {error}"
            if cookie in flushes:
                self.settle(flushes.pop(cookie))
                self.flushed += 1
                answered.clear()
            else:
                first, count, stamp, fua = flying.pop(cookie)
                busy.difference_update(range(first, first + count))
                if fua:
                    self.settle([(first, count, stamp)])
                else:
                    answered.append((first, count, stamp))

    def check(self, client: Client) -> None:
        """Reads everything; what is found is what is known from now on."""
        step = 1 << 20
        for at in range(0, self.sectors * SECTOR, step):
            length = min(step, self.sectors * SECTOR - at)
            error, data = client.ask(READ, at, length)
            assert error == 0
            for i in range(0, length, SECTOR):
                sector = (at + i) // SECTOR
                held = self.may_hold(sector)
                found = data[i : i + SECTOR]
                match = [v for v in held if content(v, sector) == found]
                assert match, f"sector {sector} holds {found[:16].hex()}, not one of {held}"
                if sector in self.versions:
                    self.versions[sector] = [match[-1]]


def kill(device: Device, after_s: float) -> threading.Timer:
    """Kills the server in a while."""
    pid = device.pid()
    assert pid is not None
    timer = threading.Timer(after_s, os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


@pytest.mark.parametrize("layer", LAYERS)
def test_kill_9_loses_nothing_that_was_durable(make: Make, fast: Path, layer: str) -> None:
    device = make(layer=layer, size=24 << 20, store=str(fast / "store"))
    writer = Writer(device.ask("info")["size"], device.ask("info")["can_trim"], seed=len(layer))
    for _ in range(KILLS):
        with Client(device.socket()) as client, pytest.raises(Gone):
            writer.run(client, device)
        device.start()
        with Client(device.socket()) as client:
            writer.check(client)
    assert writer.flushed >= KILLS
    assert writer.durable > 50


@pytest.mark.parametrize(
    "array",
    [
        {"array": "raid5,disks=4,chunk=8KiB"},
        {"array": "raid5,disks=3,chunk=16KiB,ssd_write=256KiB,ssd_read=128KiB"},
        {"array": "dvs,overprovision=0%,disks=4,chunk=8KiB,segment=16,journal=on,ssd_write=256KiB"},
        {"array": "raid5,disks=4,chunk=8KiB,journal=on", "timing": "model", "speed": 30.0, "scheduler": "sptf,depth=8"},
        {"array": "raid5,disks=3,ssd_write=256KiB", "timing": "model", "speed": 30.0, "scheduler": "sptf,depth=8"},
    ],
    ids=lambda config: config["array"] + config.get("timing", ""),
)
def test_kill_9_of_an_array(make: Make, fast: Path, array: dict[str, object]) -> None:
    """With a disk dead for the second half, where a journal holds what was under way."""
    device = make(layer="s-block", size=None, host_size=16 << 20, store=str(fast / "store"), **array)
    info = device.ask("info")
    writer = Writer(info["size"], info["can_trim"], seed=3)
    for round_ in range(4):
        if round_ == 2 and "journal" in str(array):
            device.ask("fail", disk=1)
        with Client(device.socket()) as client, pytest.raises(Gone):
            writer.run(client, device)
        device.start()
        with Client(device.socket()) as client:
            writer.check(client)
    assert writer.flushed >= 4
    # Parity that is made good again fits.
    while device.ask("stats")["array"].get("rows_in_doubt"):
        time.sleep(0.1)
    if "journal" not in str(array):
        device.ask("fail", disk=0)
    with Client(device.socket()) as client:
        writer.check(client)


def test_the_check_can_fail(make: Make) -> None:
    """The same on a medium that destroys: the check sees it."""
    device = make(layer="raw,tracks=2", size=24 << 20)
    writer = Writer(device.ask("info")["size"], False, seed=1)
    with Client(device.socket()) as client, pytest.raises(Gone):
        writer.run(client, device)
    device.start()
    with Client(device.socket()) as client, pytest.raises(AssertionError, match="holds"):
        writer.check(client)


@pytest.mark.parametrize("layer", ["cmr", "s-block", "disk-cache,journal=on", "static-R(4123),journal=on"])
def test_kill_9_in_the_middle_of_fio(make: Make, fast: Path, tmp_path: Path, layer: str) -> None:
    """fio's own way: at its trigger it notes what was completed, then kills the server; afterwards it verifies that.

    Depth 1: fio takes for completed whatever was sent `depth` requests before the last one to complete, which need not
    be so where one request waits while others pass it. At its rate it takes four seconds: on a busy machine the trigger
    of the first second comes late.
    """
    need("fio")
    device = make(layer=layer, size=48 << 20, store=str(fast / "store"))
    job = ["fio", "--name=v", "--ioengine=nbd", f"--uri={device.uri()}", "--rw=randwrite", "--bs=4k", "--size=24m",
           "--iodepth=1", "--rate_iops=1500", "--fsync=64", "--verify=crc32c", "--verify_fatal=1"]  # fmt: skip
    for seed in range(2):
        kill = ["--verify_state_save=1", "--trigger-timeout=1", f"--trigger=kill -9 {device.pid()}"]
        told = run(*job, f"--randseed={seed}", *kill, check=False, cwd=tmp_path)
        # On a busy machine fio may be gone before the server is that it killed.
        until = time.monotonic() + 10
        while device.running() and time.monotonic() < until:
            time.sleep(0.01)
        assert not device.running(), f"fio did not kill it: {told.stdout}{told.stderr}"
        device.start()
        states = list(tmp_path.glob("*verify.state"))
        assert states, "fio kept no state"
        verify = ["--verify_only", "--verify_state_load=1", "--output-format=json"]
        done = run(*job, f"--randseed={seed}", *verify, cwd=tmp_path)
        read = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]
        assert read["total_ios"] > 100
        for state in states:
            state.unlink()
