"""What NBD's requests carry reaches the device as it is: flags, offsets beyond 32 bits, lengths."""

from __future__ import annotations

import pytest
from nbdclient import FLUSH, FUA, READ, TRIM, WRITE, ZERO, Client
from served import Make

from smrlab.devices import Device

GIB = 1 << 30
BLOCK = 4096


def count(device: Device, what: str) -> int:
    """One of the counters of what clients did."""
    found: int = device.ask("stats")["host"][what]
    return found


@pytest.mark.parametrize("layer", ["cmr", "s-block", "raw,tracks=1"])
def test_a_request_with_fua_is_durable_and_others_are_not(make: Make, layer: str) -> None:
    """Each is passed on as it is, and none is a flush of its own."""
    device = make(layer=layer)
    with Client(device.socket()) as client:
        trims = device.ask("info")["can_trim"]
        for kind in [WRITE, ZERO, *([TRIM] if trims else [])]:
            data = b"a" * BLOCK if kind == WRITE else b""
            before = count(device, "fua")
            assert client.ask(kind, 0, BLOCK, data)[0] == 0
            assert count(device, "fua") == before, f"kind {kind} without FUA"
            assert client.ask(kind, BLOCK, BLOCK, data, FUA)[0] == 0
            assert count(device, "fua") == before + 1, f"kind {kind} with FUA"
        assert count(device, "flushes") == 0
        before = count(device, "flushes")
        assert client.ask(FLUSH, 0, 0)[0] == 0
        assert count(device, "flushes") == before + 1


@pytest.mark.parametrize("layer", ["cmr", "raw,tracks=1"])
def test_offsets_beyond_4_gib(make: Make, layer: str) -> None:
    """Nothing is cut to 32 bits, in any request: a sparse device of 8 GiB."""
    device = make(drive="modern-7200", layer=layer, size=None, host_size=8 * GIB)
    low, high = 3 * BLOCK, 4 * GIB + 3 * BLOCK
    size = 8 * GIB
    with Client(device.socket()) as client:
        assert client.size == size
        assert client.ask(WRITE, low, BLOCK, b"l" * BLOCK)[0] == 0
        assert client.ask(READ, high, BLOCK) == (0, bytes(BLOCK))
        assert client.ask(WRITE, high, BLOCK, b"h" * BLOCK)[0] == 0
        assert client.ask(READ, low, BLOCK) == (0, b"l" * BLOCK)
        assert client.ask(READ, high, BLOCK) == (0, b"h" * BLOCK)
        assert client.ask(ZERO, high, BLOCK)[0] == 0
        assert client.ask(READ, low, BLOCK) == (0, b"l" * BLOCK)
        assert client.ask(READ, high, BLOCK) == (0, bytes(BLOCK))
        # The last block is there, and nothing behind it.
        assert client.ask(WRITE, size - BLOCK, BLOCK, b"e" * BLOCK)[0] == 0
        assert client.ask(READ, size - BLOCK, BLOCK) == (0, b"e" * BLOCK)
        assert client.ask(WRITE, size, BLOCK, b"x" * BLOCK)[0] != 0
        assert count(device, "bytes_written") == 3 * BLOCK
    taken = sum(p.stat().st_blocks * 512 for p in device.path.glob("store/data.*"))
    assert taken < 1 << 20


def test_discards_beyond_4_gib(make: Make) -> None:
    device = make(drive="modern-7200", layer="s-block", size=None, host_size=8 * GIB)
    low, high = 1 << 20, 4 * GIB + (1 << 20)
    with Client(device.socket()) as client:
        for at, byte in ((low, b"l"), (high, b"h")):
            assert client.ask(WRITE, at, BLOCK, byte * BLOCK)[0] == 0
        assert client.ask(TRIM, high, BLOCK)[0] == 0
        assert client.ask(READ, low, BLOCK) == (0, b"l" * BLOCK)
        assert client.ask(READ, high, BLOCK) == (0, bytes(BLOCK))
