"""Unmodified file systems on served devices: through FUSE and a loop device, and through nbdfuse and a loop device."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Make, can_loop, need, run

from smrlab.devices import Device

FILESYSTEMS = {
    "ext4": (["mkfs.ext4", "-q", "-F"], ["e2fsck", "-fn"]),
    "xfs": (["mkfs.xfs", "-q", "-f"], ["xfs_repair", "-n"]),
    "btrfs": (["mkfs.btrfs", "-q", "-f"], ["btrfs", "check"]),
}
LAYERS = ["cmr", "static-R(4123)", "disk-cache", "s-block"]
# mkfs.xfs wants 300 MB of the host's space, and a static map of the example drive gives a fifth less than the medium.
SIZE = 480 << 20


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source tree: most of Python's standard library, about 600 files and 13 MB."""
    path = tmp_path_factory.mktemp("tree") / "lib"
    skip = shutil.ignore_patterns(
        "__pycache__", "test", "site-packages", "dist-packages", "lib-dynload", "config-*",
        "ensurepip", "idlelib", "lib2to3", "tkinter", "encodings",
    )  # fmt: skip
    shutil.copytree(sysconfig.get_path("stdlib"), path, symlinks=True, ignore=skip)
    return path


def same(a: Path, b: Path) -> bool:
    """Whether two trees are equal."""
    diff = subprocess.run(["diff", "-r", "--no-dereference", str(a), str(b)], capture_output=True, check=False)
    return diff.returncode == 0


@contextlib.contextmanager
def mounted(loop: str, at: Path) -> Iterator[Path]:
    """Mounts the file system on `loop`."""
    at.mkdir(exist_ok=True)
    run("mount", loop, at)
    try:
        yield at
        run("umount", at)
    finally:
        run("umount", "-l", at, check=False)


@contextlib.contextmanager
def through_fuse(device: Device, at: Path) -> Iterator[str]:
    """A loop device on `smrlab device mount`."""
    at.mkdir(exist_ok=True)
    _, loop = device.mount(at)
    assert loop is not None
    try:
        yield loop
    finally:
        device.unmount(at)


@contextlib.contextmanager
def through_nbdfuse(device: Device, at: Path) -> Iterator[str]:
    """A loop device on nbdfuse."""
    at.mkdir(exist_ok=True)
    fuse = subprocess.Popen(["nbdfuse", str(at / "disk"), device.uri()])
    try:
        end = time.monotonic() + 10
        while not (at / "disk").exists():
            assert fuse.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        loop = run("losetup", "--show", "-f", at / "disk").stdout.strip()
        try:
            yield loop
        finally:
            run("losetup", "-d", loop)
    finally:
        run("fusermount3", "-u", at, check=False)
        fuse.wait(10)


def fill(kind: str, loop: str, at: Path, tree: Path, discards: bool) -> None:
    """Makes a file system, fills it, deletes a part of it, trims what is free."""
    run(*FILESYSTEMS[kind][0], loop)
    with mounted(loop, at) as fs:
        for name in ("old", "new"):
            shutil.copytree(tree, fs / name, symlinks=True)
        shutil.rmtree(fs / "old")
        if discards:
            os.sync()
            assert "trimmed" in run("fstrim", "-v", fs).stdout
    run("blockdev", "--flushbufs", loop)


def check(kind: str, loop: str, at: Path, tree: Path) -> None:
    """fsck has nothing to say, and every file is what it was."""
    run(*FILESYSTEMS[kind][1], loop)
    with mounted(loop, at) as fs:
        assert same(tree, fs / "new")
        assert not (fs / "old").exists()


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("kind", FILESYSTEMS)
def test_every_file_system_on_every_layer(make: Make, tmp_path: Path, tree: Path, kind: str, layer: str) -> None:
    can_loop()
    need(FILESYSTEMS[kind][0][0], FILESYSTEMS[kind][1][0], "losetup", "fstrim")
    device = make(layer=layer, size=SIZE)
    discards = device.ask("info")["can_trim"]
    with through_fuse(device, tmp_path / "m") as loop:
        fill(kind, loop, tmp_path / "fs", tree, discards)
        check(kind, loop, tmp_path / "fs", tree)
        assert not discards or device.ask("stats")["host"]["trims"] > 0
    device.stop()
    device.start()
    with through_fuse(device, tmp_path / "m") as loop:
        check(kind, loop, tmp_path / "fs", tree)


@pytest.mark.parametrize(("kind", "layer"), [("ext4", "disk-cache"), ("xfs", "s-block"), ("btrfs", "static-R(4123)")])
def test_file_systems_through_nbdfuse(make: Make, tmp_path: Path, tree: Path, kind: str, layer: str) -> None:
    can_loop()
    need(FILESYSTEMS[kind][0][0], FILESYSTEMS[kind][1][0], "losetup", "fstrim", "nbdfuse", "fusermount3")
    device = make(layer=layer, size=SIZE)
    with through_nbdfuse(device, tmp_path / "m") as loop:
        fill(kind, loop, tmp_path / "fs", tree, True)
        check(kind, loop, tmp_path / "fs", tree)
    assert device.ask("stats")["host"]["trims"] > 0
    device.crash()
    device.start()
    with through_nbdfuse(device, tmp_path / "m") as loop:
        check(kind, loop, tmp_path / "fs", tree)


def test_a_file_system_on_sectors_of_4096(make: Make, tmp_path: Path, tree: Path) -> None:
    can_loop()
    need("mkfs.ext4", "e2fsck", "losetup")
    device = make(layer="s-block", size=SIZE, block=4096)
    with through_fuse(device, tmp_path / "m") as loop:
        assert run("blockdev", "--getss", loop).stdout.strip() == "4096"
        fill("ext4", loop, tmp_path / "fs", tree, True)
        check("ext4", loop, tmp_path / "fs", tree)


def test_raw_ruins_a_file_system_and_fsck_finds_it(make: Make, tmp_path: Path) -> None:
    """The negative control: what is proven above would fail on a medium that keeps no data."""
    can_loop()
    need("mkfs.ext4", "e2fsck", "losetup")
    device = make(layer="raw,tracks=64", size=256 << 20)
    with through_fuse(device, tmp_path / "m") as loop:
        run("mkfs.ext4", "-q", "-F", loop)
        # The page cache would hide what was destroyed.
        run("blockdev", "--flushbufs", loop)
        (tmp_path / "fs").mkdir()
        if run("mount", loop, tmp_path / "fs", check=False).returncode == 0:
            # What the kernel writes destroys what it reads next: it may refuse any of these.
            with contextlib.suppress(OSError):
                for i in range(8000):
                    (tmp_path / "fs" / f"f{i}").write_text("a few bytes\n" * 40)
            run("umount", tmp_path / "fs")
        run("blockdev", "--flushbufs", loop)
        found = run("e2fsck", "-fn", loop, check=False)
        assert found.returncode != 0, found.stdout
