"""Served devices for the tests: each in a state directory of its own, ended and removed afterwards."""

from __future__ import annotations

import ctypes
import gc
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Make, need

from smrlab import devices, mounts, server
from smrlab.devices import Device
from smrlab.errors import MissingError

# Where CI starts the tests in the background, Ctrl-C is ignored, and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Looking for garbage as often as Python does takes a tenth of their time.
gc.set_threshold(100_000, 50, 50)


# unshare(2), mount(2)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 1 << 18


@pytest.fixture(scope="session", autouse=True)
def own_mounts() -> None:
    """Each worker has a mount table of its own, where it may: a dead mount of one fails `mkfs.btrfs` of another."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) == 0:
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes served devices."""
    need("nbdkit")
    state = Path(tempfile.mkdtemp(prefix="sd-"))
    monkeypatch.setenv("SMRLAB_STATE", str(state))
    try:
        server.plugin()
    except MissingError as e:
        pytest.skip(str(e))
    made: list[Device] = []

    def create(
        name: str = "d",
        store: str | None = None,
        listen: str | None = None,
        tls: dict[str, str] | None = None,
        **config: object,
    ) -> Device:
        defaults: dict[str, object] = {
            "drive": str(Path(__file__).parent / "drive.toml"),
            "layer": "raw,tracks=3",
            "size": 64 << 20,
        }
        device = Device.create(name, {"name": name, **defaults, **config}, store, listen, tls or {})
        made.append(device)
        return device

    yield create
    for device in devices.every():
        held = [Path(p) for p in device.ask("mounts")] if device.running() else []
        device.kill()
        for directory in held:
            mounts.clear(directory)
    shutil.rmtree(state, ignore_errors=True)


@pytest.fixture
def fast() -> Iterator[Path]:
    """A directory in memory, where syncing costs nothing: a killed process leaves the same behind as on a disk."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="sd-", dir=memory if memory.is_dir() else None))
    yield path
    shutil.rmtree(path, ignore_errors=True)
