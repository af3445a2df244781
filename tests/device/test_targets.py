"""`smrlab geometry` and `smrlab probe` on targets that are real and no disks, or in use: files, loop devices."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import can_loop, need, run


def smrlab(*args: str | Path, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "smrlab", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def refused(done: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    """One sentence, on standard error, and nothing else."""
    assert done.returncode == code, done.stderr
    assert words in " ".join(done.stderr.split()), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A file full of bytes that a write would change."""
    path = tmp_path / "disk"
    path.write_bytes(b"x" * (32 << 20))
    return path


@pytest.fixture
def loop(disk: Path) -> Iterator[str]:
    """A loop device on it."""
    can_loop()
    need("losetup", "mkfs.ext4", "mount")
    name = run("losetup", "--find", "--show", "--direct-io=on", disk).stdout.strip()
    yield name
    subprocess.run(["losetup", "-d", name], check=False)


def test_a_loop_device_has_no_timing_and_is_left_as_it_was(disk: Path, loop: str) -> None:
    refused(smrlab("geometry", "extract", loop), 2, "no timing of a rotating disk")
    assert disk.read_bytes() == b"x" * (32 << 20)


@pytest.mark.parametrize("command", [("geometry", "extract"), ("probe", "--destroy", "--yes")])
def test_a_mounted_device_is_refused(disk: Path, loop: str, tmp_path: Path, command: tuple[str, ...]) -> None:
    run("mkfs.ext4", "-q", loop)
    at = tmp_path / "mnt"
    at.mkdir()
    run("mount", "-o", "ro", loop, at)
    try:
        before = disk.read_bytes()
        refused(smrlab(*command, loop), 2, "mounted or in use")
        assert disk.read_bytes() == before
    finally:
        run("umount", at)


def test_a_target_too_small_is_refused(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 16384)
    refused(smrlab("geometry", "extract", small), 2, "32 blocks are too few")
    assert small.read_bytes() == b"x" * 16384
