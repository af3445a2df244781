"""Served devices as block devices of the kernel (ublk): made, given back after a kill, and taken away."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from .errors import InputError, MissingError
from .server import Server

CONTROL = Path("/dev/ublk-control")
NODES = Path("/sys/class/ublk-char")


def _mark(device: Server) -> Path:
    """Where the number of its block device is kept, so that a server that follows a dead one takes it over."""
    return device.path / "ublk"


def _left(device: Server) -> int | None:
    """The number of the block device that a dead server left, if the kernel still has it."""
    try:
        number = int(_mark(device).read_text())
    except (OSError, ValueError):
        return None
    return number if (NODES / f"ublkc{number}").exists() else None


def left(device: Server) -> str | None:
    """The block device that a dead server left; who uses it waits for the next one."""
    return None if (number := _left(device)) is None else f"/dev/ublkb{number}"


def attach(device: Server) -> str:
    """Has the kernel make a block device of it; gives its path."""
    if not CONTROL.exists():
        raise MissingError(
            "this kernel offers no ublk: it takes Linux 6.5 or newer, and as root 'modprobe ublk_drv'; "
            f"without it: smrlab device mount {device.name} DIR"
        )
    if not os.access(CONTROL, os.R_OK | os.W_OK):
        raise MissingError(f"{CONTROL}: only root may attach devices, by a server that root started")
    made = device.ask("attach", number=None)
    _mark(device).write_text(f"{made['number']}\n")
    return str(made["path"])


def check_unused(path: str) -> None:
    """Refuses while the kernel uses the block device: a file system on it, a device-mapper target, swap."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except OSError as e:
        if e.errno == errno.EBUSY:
            raise InputError(f"{path} is in use: umount it first") from None


def detach(device: Server) -> None:
    """Takes the block device away."""
    if (there := device.ask("attached")) is None:
        raise InputError(f"{device.name} is not attached: smrlab device attach {device.name}")
    check_unused(there["path"])
    device.ask("detach")
    _mark(device).unlink(missing_ok=True)


def take_over(device: Server) -> None:
    """Gives a server that was just started the block device that its dead predecessor left."""
    if (number := _left(device)) is not None:
        device.ask("attach", number=number)
    else:
        _mark(device).unlink(missing_ok=True)
