"""Unmodified file systems on served devices, through FUSE and a loop device."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from served import Make, layer_exists, need, run

ROOT = Path(__file__).resolve().parents[2]
FILESYSTEMS = {
    "ext4": (["mkfs.ext4", "-q", "-F"], ["e2fsck", "-fn"]),
    "xfs": (["mkfs.xfs", "-q", "-f"], ["xfs_repair", "-n"]),
    "btrfs": (["mkfs.btrfs", "-q", "-f"], ["btrfs", "check"]),
}


def can_loop() -> None:
    """Skips where loop devices and FUSE cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices")
    if not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        pytest.skip("needs /dev/fuse and /dev/loop-control")


def same(a: Path, b: Path) -> bool:
    """Whether two trees are equal."""
    diff = subprocess.run(["diff", "-r", "--no-dereference", str(a), str(b)], capture_output=True, check=False)
    return diff.returncode == 0


@pytest.mark.parametrize(("kind", "layer"), [
    ("ext4", "cmr"), ("ext4", "static-R(4123)"), ("xfs", "static-R(4123)"), ("btrfs", "cmr"),
    ("ext4", "disk-cache"), ("xfs", "s-block"), ("btrfs", "s-block"),
])  # fmt: skip
def test_file_system(make: Make, tmp_path: Path, kind: str, layer: str) -> None:
    can_loop()
    if not layer_exists(layer):
        pytest.skip(f"no layer {layer} yet")
    mkfs, fsck = FILESYSTEMS[kind]
    need(mkfs[0], fsck[0], "losetup")
    device = make(layer=layer, size=512 << 20)
    (tmp_path / "m").mkdir()
    (tmp_path / "fs").mkdir()
    _, loop = device.mount(tmp_path / "m")
    assert loop is not None
    mounted = False
    try:
        run(*mkfs, loop)
        run("mount", loop, tmp_path / "fs")
        mounted = True
        for i in range(3):
            shutil.copytree(ROOT / "crates", tmp_path / "fs" / f"c{i}")
        shutil.rmtree(tmp_path / "fs" / "c1")
        run("umount", tmp_path / "fs")
        mounted = False
        run("blockdev", "--flushbufs", loop)
        run(*fsck, loop)
        run("mount", loop, tmp_path / "fs")
        mounted = True
        assert same(ROOT / "crates", tmp_path / "fs" / "c2")
        run("umount", tmp_path / "fs")
        mounted = False
    finally:
        if mounted:
            run("umount", "-l", tmp_path / "fs", check=False)
        device.unmount(tmp_path / "m")


def test_raw_ruins_a_file_system_and_fsck_finds_it(make: Make, tmp_path: Path) -> None:
    """The negative control: what is proven above would fail on a medium that keeps no data."""
    can_loop()
    need("mkfs.ext4", "e2fsck", "losetup")
    device = make(layer="raw,tracks=64", size=256 << 20)
    (tmp_path / "m").mkdir()
    (tmp_path / "fs").mkdir()
    _, loop = device.mount(tmp_path / "m")
    assert loop is not None
    try:
        run("mkfs.ext4", "-q", "-F", loop)
        # The page cache would hide what was destroyed.
        run("blockdev", "--flushbufs", loop)
        mounted = run("mount", loop, tmp_path / "fs", check=False).returncode == 0
        if mounted:
            for i in range(8000):
                (tmp_path / "fs" / f"f{i}").write_text("a few bytes\n" * 40)
            run("umount", tmp_path / "fs")
        run("blockdev", "--flushbufs", loop)
        found = run("e2fsck", "-fn", loop, check=False)
        assert found.returncode != 0, found.stdout
    finally:
        device.unmount(tmp_path / "m")


def test_store_on_a_block_device(make: Make, tmp_path: Path) -> None:
    """LBA = PBA on it: what is written to the device lies at the same place of the disk."""
    can_loop()
    need("losetup", "qemu-io")
    disk = tmp_path / "disk"
    with disk.open("wb") as f:
        f.truncate(80 << 20)
    loop = run("losetup", "-f", "--show", disk).stdout.strip()
    try:
        device = make(store=loop, layer="raw,tracks=3")
        run("qemu-io", "-f", "raw", device.uri(), "-c", "write -P 66 3M 4k", "-c", "flush")
        device.stop()
        with disk.open("rb") as f:
            f.seek(3 << 20)
            assert f.read(4096) == b"B" * 4096
        device.start()
        assert device.ask("stats")["medium"]["runs"] == 1
        device.stop()
    finally:
        run("losetup", "-d", loop)
