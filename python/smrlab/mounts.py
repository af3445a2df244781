"""Mounts of served devices: the FUSE file, the loop devices on it, and what uses them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from .errors import InputError

FILE = "disk"
NOTE = "mounts.json"
SOURCE = "smrlab-"


def _table() -> list[tuple[str, str]]:
    """All mounts: source and mount point."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        found.append((_plain(after.split()[1]), _plain(before.split()[4])))
    return found


def _plain(text: str) -> str:
    """Undoes the kernel's escapes, such as \\040 for a space."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def noted(device: Path) -> list[Path]:
    """Where a device was mounted and may be still; the system's table has other users' devices of that name, too."""
    try:
        directories = json.loads((device / NOTE).read_text())
    except FileNotFoundError:
        return []
    return [at for directory in directories if is_mount(at := Path(directory))]


def note(device: Path, directory: Path) -> None:
    """Keeps in mind that a device is mounted there, for when its server is gone."""
    (device / NOTE).write_text(json.dumps([*map(str, noted(device)), str(directory)]))


def is_mount(directory: Path) -> bool:
    """Whether a device is mounted there, by a server that may be gone."""
    at = str(directory.resolve())
    return any(source.startswith(SOURCE) and point == at for source, point in _table())


def is_alive(directory: Path) -> bool:
    """Whether the server of a mount still answers; the file's attributes would come from the kernel's cache."""
    try:
        os.statvfs(directory)
    except OSError:
        return False
    return True


def loops(directory: Path) -> list[str]:
    """The loop devices on the file there."""
    file = str(directory.resolve() / FILE)
    found = []
    for backing in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        try:
            name = backing.read_text().rstrip("\n").removesuffix(" (deleted)")
        except OSError:
            continue
        if name == file:
            found.append(f"/dev/{backing.parts[-3]}")
    return found


def check_unused(directory: Path) -> None:
    """Refuses while a file system is mounted from a loop device there."""
    for loop in loops(directory):
        for source, point in _table():
            if re.fullmatch(rf"{loop}(p\d+)?", source):
                raise InputError(f"{source} is mounted at {point}: umount {point} first")


def add_loop(file: Path, block: int) -> str | None:
    """Sets up a loop device with direct I/O; none where that is not to be had."""
    done = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", "--sector-size", str(block), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else None


def remove_loops(directory: Path) -> None:
    """Takes the loop devices there away."""
    for loop in loops(directory):
        subprocess.run(["losetup", "-d", loop], capture_output=True, check=False)


def clear(directory: Path) -> None:
    """Takes away what a server left that is gone: loop devices and the mount."""
    check_unused(directory)
    remove_loops(directory)
    while is_mount(directory):
        for command in (["umount", "-l"], ["fusermount3", "-uz"]):
            if subprocess.run([*command, str(directory)], capture_output=True, check=False).returncode == 0:
                break
        else:
            raise InputError(f"{directory} is left over from a server that is gone: fusermount3 -uz {directory}")
