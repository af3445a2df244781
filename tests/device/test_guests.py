"""Served host-managed disks under an unmodified kernel: what it sees, fio, file systems; servers killed in between."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from formats import DmZoned, zonefs
from guest import ROOT, Answers, Guest
from served import Make, need
from test_iscsi import serve, url

from smrlab.devices import Device

# 85 zones, of which 11 are conventional: with 6, mkfs.btrfs 6.2 dies on any disk, on the kernel's null_blk too.
SIZE = 1 << 30
LAYER = "zoned,zone=8MiB,conventional=12%,max_open=16"


@pytest.fixture
def guest(make: Make, fast: Path, tmp_path: Path) -> tuple[Guest, Device, Answers]:
    """A guest with a host-managed disk, and how its server is killed and started again."""
    machine = Guest(tmp_path)
    device, port = serve(make, store=str(fast / "s"), drive="modern-7200", layer=LAYER, size=SIZE)
    machine.scsi(url(device, port))

    def kill() -> None:
        device.kill()
        device.start()

    return machine, device, {"kill": kill}


def test_zones_as_the_kernel_sees_them_and_fio_on_them(guest: tuple[Guest, Device, Answers]) -> None:
    machine, device, answers = guest
    zones = device.ask("zones")["zones"]
    first = next(i for i, z in enumerate(zones) if not z["conventional"])
    machine.run("zones.sh", 240, answers, ZONES=len(zones), FIRST=first, SECTORS=zones[first]["blocks"], OPEN=16)


def test_btrfs_over_kills(guest: tuple[Guest, Device, Answers]) -> None:
    machine, _, answers = guest
    machine.run("btrfs.sh", 240, answers)


def test_zonefs_f2fs_and_dm_zoned_over_kills(guest: tuple[Guest, Device, Answers]) -> None:
    need("mkfs.f2fs", "dmsetup", "mkfs.ext4")
    machine, device, answers = guest
    zones = device.ask("zones")["zones"]
    random = sum(z["conventional"] for z in zones)
    target = DmZoned(len(zones), random, zones[0]["blocks"] * 512)
    (machine.shared / "dm-zoned").write_bytes(target.image())
    (machine.shared / "zonefs").write_bytes(zonefs())
    machine.run("others.sh", 300, answers, SECTORS=target.sectors)


@pytest.mark.full
def test_block_devices_of_the_kernel_over_kills(tmp_path: Path) -> None:
    """The server runs in the guest, whose kernel has ublk."""
    need("nbdkit", "mkfs.ext4", "mkfs.btrfs")
    machine = Guest(tmp_path, memory_mib=1536)
    machine.run("ublk.sh", 400, PYTHON=sys.executable, ROOT=ROOT)
