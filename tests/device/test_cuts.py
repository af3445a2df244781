"""Power cuts on a served device, in the middle of every media operation of a small workload, through the server."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from nbdclient import FLUSH, FUA, READ, TRIM, WRITE, Client, Gone
from served import Make

from smrlab.devices import Device

LAYERS = [
    "cmr",
    "rmw,journal=on",
    "static-R(4123),journal=on",
    "disk-cache,journal=on,band=16",
    "s-block,cache=5%,sblock_blocks=16",
]
SECTOR = 512
# Writes before the cut, so that the layer has something to clean, and during it.
BEFORE, DURING = 500, 6


class History:
    """Which versions every sector may show: the last durable one and those sent since."""

    def __init__(self, sectors: int) -> None:
        self.may: list[list[int]] = [[0] for _ in range(sectors)]
        self.sent = 0

    def content(self, version: int, sector: int) -> bytes:
        word = version.to_bytes(4, "little") + sector.to_bytes(4, "little")
        return (word if version else bytes(8)) * (SECTOR // 8)

    def write(self, client: Client, first: int, count: int, kind: int, flags: int) -> None:
        """Sends one request and waits for it."""
        self.sent += 1
        version = self.sent if kind == WRITE else 0
        for s in range(first, first + count):
            self.may[s].append(version)
        data = b"".join(self.content(version, s) for s in range(first, first + count)) if kind == WRITE else b""
        assert client.ask(kind, first * SECTOR, count * SECTOR, data, flags)[0] == 0
        if flags & FUA:
            for s in range(first, first + count):
                self.may[s] = [version]

    def flush(self, client: Client) -> None:
        assert client.ask(FLUSH, 0, 0)[0] == 0
        self.may = [held[-1:] for held in self.may]

    def check(self, client: Client) -> None:
        """What is found is what is known from now on."""
        error, data = client.ask(READ, 0, len(self.may) * SECTOR)
        assert error == 0
        for s, held in enumerate(self.may):
            found = data[s * SECTOR : (s + 1) * SECTOR]
            match = [v for v in held if found == self.content(v, s)]
            assert match, f"sector {s} holds {found[:8].hex()}, not {held}"
            self.may[s] = match[-1:]


def work(history: History, client: Client, seed: int, count: int, trims: bool) -> None:
    """Writes, trims and flushes at random, in the first half of the space."""
    rng = random.Random(seed)
    for i in range(count):
        length = rng.choice([1, 4, 8, 8, 24])
        first = rng.randrange(len(history.may) // 2 - length)
        kind = TRIM if trims and rng.random() < 0.1 else WRITE
        history.write(client, first, length, kind, FUA if rng.random() < 0.1 else 0)
        if i % 5 == 4:
            history.flush(client)


def operations(device: Device) -> int:
    """Media operations so far."""
    by_cause = device.ask("stats")["media"]["by_cause"]
    return sum(c["reads"] + c["writes"] for c in by_cause.values())


@pytest.mark.parametrize("layer", LAYERS)
def test_a_cut_at_every_media_operation(make: Make, fast: Path, layer: str) -> None:
    aged, store = fast / "aged", fast / "store"
    device = make(drive="tiny", size=None, layer=layer, store=str(store))
    assert device.ask("info")["engine"]["survives_cut"]
    trims = device.ask("info")["can_trim"]
    begun = History(device.ask("info")["size"] // SECTOR)
    with Client(device.socket()) as client:
        work(begun, client, 1, BEFORE, trims)
        begun.flush(client)
    device.stop()
    shutil.copytree(store, aged)

    def again() -> History:
        """The device as it was before, served, and what it may hold."""
        shutil.rmtree(store)
        shutil.copytree(aged, store)
        device.start()
        history = History(0)
        history.may, history.sent = [list(h) for h in begun.may], begun.sent
        return history

    history = again()
    before = operations(device)
    with Client(device.socket()) as client:
        work(history, client, 2, DURING, trims)
    total = operations(device) - before
    device.kill()
    assert total >= DURING // 2
    for n in range(1, total + 1):
        history = again()
        device.ask("inject", cut_at=n)
        with Client(device.socket()) as client, pytest.raises(Gone):
            work(history, client, 2, DURING, trims)
        device.start()
        with Client(device.socket()) as client:
            history.check(client)
            work(history, client, n, 5, trims)
            history.check(client)
        device.kill()


def test_in_place_without_a_journal_loses(make: Make, fast: Path) -> None:
    """As the papers admit or leave unsaid: a cut in the middle of a band's rewrite."""
    lost = 0
    device = make(drive="tiny", size=None, layer="rmw", store=str(fast / "s"))
    assert not device.ask("info")["engine"]["survives_cut"]
    for n in (2, 3, 4):
        history = History(device.ask("info")["size"] // SECTOR)
        with Client(device.socket()) as client:
            for first in range(0, len(history.may) // 2, 16):
                history.write(client, first, 16, WRITE, 0)
            history.flush(client)
            device.ask("inject", cut_at=n)
            with pytest.raises(Gone):
                work(history, client, n, 20, False)
        device.start()
        with Client(device.socket()) as client:
            try:
                history.check(client)
            except AssertionError:
                lost += 1
    assert lost > 0
