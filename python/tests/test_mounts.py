"""Mounts of served devices and the loop devices on them, each part by itself."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from smrlab import (
    mounts,
)
from smrlab.errors import InputError


def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A system with these lines in its table of mounts: source and place."""
    (tmp_path / "proc/self").mkdir(parents=True)
    table = "".join(f"1 2 0:3 / {at} rw - fuse {source} rw\n" for source, at in (line.split(" ", 1) for line in lines))
    (tmp_path / "proc/self/mountinfo").write_text(table)
    monkeypatch.setattr(mounts, "Path", lambda at: tmp_path / str(at).lstrip("/"))


def test_a_mount_is_ours_at_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the source's name and the place together; blanks are written as numbers there."""
    mounted(tmp_path, monkeypatch, r"smrlab-a /m/with\040blank", "smrlab-b /m/b", "other /m/c")
    at = {name: mounts.is_mount(Path(f"/m/{name}")) for name in ("with blank", "b", "c", "d", "")}
    assert at == {"with blank": True, "b": True, "c": False, "d": False, "": False}


def test_loop_devices_are_those_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file is gone; a file system on one of their partitions is in use."""
    mounted(tmp_path, monkeypatch, "/dev/loop1p2 /mnt", "/dev/loop12 /other")
    of = {0: "/d/disk\n", 1: "/d/disk (deleted)\n", 2: "/d/disk2\n", 3: "/e/disk\n"}
    for number, name in of.items():
        backing = tmp_path / f"sys/block/loop{number}/loop/backing_file"
        backing.parent.mkdir(parents=True)
        backing.write_text(name)
    assert mounts.loops(Path("/d")) == ["/dev/loop0", "/dev/loop1"]
    with pytest.raises(InputError, match="/dev/loop1p2 is mounted at /mnt: umount /mnt first"):
        mounts.check_unused(Path("/d"))
    mounts.check_unused(Path("/e"))
    # What is in use keeps its loop devices and its mount.
    monkeypatch.setattr(mounts, "remove_loops", None)
    with pytest.raises(InputError, match="/dev/loop1p2 is mounted at /mnt"):
        mounts.clear(Path("/d"))


def test_a_mount_that_is_gone_is_not_one_of_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noted until somebody undoes it, and the machine may have been started anew meanwhile."""
    assert mounts.noted(tmp_path) == []
    (tmp_path / mounts.NOTE).write_text(json.dumps(["/m/there", "/m/gone"]))
    monkeypatch.setattr(mounts, "is_mount", lambda at: at == Path("/m/there"))
    assert mounts.noted(tmp_path) == [Path("/m/there")]


@pytest.mark.parametrize("block", [512, 4096])
def test_a_loop_device_has_the_blocks_of_its_device(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def losetup(command: list[str], **_: object) -> SimpleNamespace:
        asked = dict(pairwise(command))
        assert asked["--sector-size"] == str(block)
        return SimpleNamespace(returncode=0, stdout="/dev/loop7\n")

    monkeypatch.setattr("smrlab.mounts.subprocess.run", losetup)
    assert mounts.add_loop(Path("/m/disk"), block) == "/dev/loop7"
