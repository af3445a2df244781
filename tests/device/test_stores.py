"""Where the bytes lie: on a block device, on a disk that is full, in a store that is served already."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbdclient import FLUSH, READ, WRITE, Client
from served import Make, can_loop, need, run

from smrlab import devices
from smrlab.errors import InputError, MissingError


@contextlib.contextmanager
def loop_on(path: Path, size: int) -> Iterator[str]:
    """A loop device on a new file."""
    with path.open("wb") as f:
        f.truncate(size)
    loop = run("losetup", "-f", "--show", path).stdout.strip()
    try:
        yield loop
    finally:
        run("losetup", "-d", loop)


def test_on_a_block_device_lba_is_pba(make: Make, tmp_path: Path) -> None:
    """What is written to the device lies at the same place of the disk, and nothing else does; the state survives."""
    can_loop()
    need("losetup")
    rng = random.Random(5)
    disk = tmp_path / "disk"
    with loop_on(disk, 80 << 20) as loop:
        device = make(store=loop, layer="raw,tracks=3")
        want = bytearray(80 << 20)
        with Client(device.socket()) as client:
            for _ in range(300):
                at, length = rng.randrange(client.size // 512 - 64) * 512, rng.randrange(1, 64) * 512
                data = rng.randbytes(length)
                want[at : at + length] = data
                assert client.ask(WRITE, at, length, data)[0] == 0
            assert client.ask(FLUSH, 0, 0)[0] == 0
            seen = client.ask(READ, 0, 32 << 20)[1]
        assert disk.read_bytes() == want
        assert seen != want[: len(seen)], "nothing was destroyed"
        runs = device.ask("stats")["medium"]["runs"]
        device.crash()
        device.start()
        assert device.ask("stats")["medium"]["runs"] == runs
        with Client(device.socket()) as client:
            assert client.ask(READ, 0, 32 << 20)[1] == seen
        with pytest.raises(InputError, match="busy"):
            make("second", store=loop, layer="raw,tracks=3")
        device.stop()


def test_a_block_device_that_is_too_small(make: Make, tmp_path: Path) -> None:
    can_loop()
    need("losetup")
    with loop_on(tmp_path / "disk", 8 << 20) as loop, pytest.raises(InputError, match="shorten the drive with --size"):
        make(store=loop)


def test_a_full_disk_fails_the_write_and_damages_nothing(make: Make, tmp_path: Path) -> None:
    can_loop()
    need("mount")
    (tmp_path / "small").mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", tmp_path / "small")
    try:
        device = make(store=str(tmp_path / "small/store"), layer="raw,tracks=1")
        written = []
        with Client(device.socket()) as client:
            for at in range(0, 32 << 20, 1 << 20):
                error, _ = client.ask(WRITE, at, 1 << 20, bytes([at >> 20 | 128]) * (1 << 20))
                if error:
                    assert error == 28
                    break
                written.append(at)
            assert 2 < len(written) < 12
            for at in written:
                assert client.ask(READ, at, 1 << 20) == (0, bytes([at >> 20 | 128]) * (1 << 20))
        assert any("free some space" in e["text"] for e in device.ask("events"))
        device.stop()
        run("mount", "-o", "remount,size=60m", tmp_path / "small")
        device.start()
        with Client(device.socket()) as client:
            for at in written:
                assert client.ask(READ, at, 1 << 20) == (0, bytes([at >> 20 | 128]) * (1 << 20))
            assert client.ask(WRITE, 31 << 20, 512, bytes(512))[0] == 0
        device.stop()
    finally:
        run("umount", "-l", tmp_path / "small")


def test_a_drive_that_is_a_pipe_into_which_nobody_writes(make: Make, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match=r"pipe\.toml: is a pipe, and nobody writes into it"):
        make(drive=str(tmp_path / "pipe.toml"))


@pytest.mark.parametrize("room", ["4k", "64k"])
def test_a_device_for_which_there_is_no_room(room: str, make: Make, tmp_path: Path) -> None:
    """That is nothing that was asked for wrongly; and nothing of it stays."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    small = tmp_path / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", small)
    try:
        with pytest.raises(MissingError, match="No space left on device"):
            make(store=str(small / "store"), layer="raw,tracks=1")
        assert list(small.iterdir()) == []
        assert devices.every() == []
    finally:
        run("umount", "-l", small)


@pytest.mark.parametrize("layer", ["rmw,band=8tracks", "disk-cache", "segment,band=8tracks", "s-block"])
def test_what_a_layer_moves_in_memory_reads_as_written(make: Make, layer: str) -> None:
    """A store in memory does not copy what moves or stays: every byte is there all the same."""
    rng = random.Random(7)
    device = make(store="memory", layer=layer)
    with Client(device.socket()) as client:
        want = bytearray(client.size)
        for number in range(4000):
            blocks = rng.choice([1, 8, 8, 8, 64, 300])
            at = rng.randrange(client.size // 512 - blocks)
            if rng.random() < 0.7:
                at = at // 8 * 8
            data = rng.randbytes(blocks * 512)
            want[at * 512 : (at + blocks) * 512] = data
            assert client.ask(WRITE, at * 512, blocks * 512, data)[0] == 0
            if number % 50 == 0:
                at = rng.randrange(client.size // 512 - 512)
                assert client.ask(READ, at * 512, 512 * 512)[1] == want[at * 512 : (at + 512) * 512], number
        for at in range(0, client.size, 4 << 20):
            length = min(4 << 20, client.size - at)
            assert client.ask(READ, at, length)[1] == want[at : at + length], at
