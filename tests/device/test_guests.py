"""Served host-managed disks under an unmodified kernel: what it sees, fio, file systems; servers killed in between."""

from __future__ import annotations

import random
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from formats import DmZoned, zonefs
from guest import ROOT, Answers, Guest, Scripts
from served import Make, need
from test_iscsi import serve, url

from smrlab.devices import Device

# 85 zones, of which 11 are conventional: with 6, mkfs.btrfs 6.2 dies on any disk, on the kernel's null_blk too.
SIZE = 1 << 30
LAYER = "zoned,zone=8MiB,conventional=12%,max_open=16"


@pytest.fixture
def layer() -> str:
    """Of the guest's disk."""
    return LAYER


@pytest.fixture
def guest(make: Make, fast: Path, tmp_path: Path, layer: str) -> tuple[Guest, Device, Answers]:
    """A guest with a host-managed disk, and how its server is killed and started again."""
    machine = Guest(tmp_path, processors=1)
    device, port = serve(make, store=str(fast / "s"), drive="modern-7200", layer=layer, size=SIZE)
    machine.scsi(url(device, port))

    def kill() -> None:
        device.kill()
        device.start()

    return machine, device, {"kill": kill}


@contextmanager
def pestered(port: int) -> Iterator[None]:
    """Meanwhile others send to a port what no initiator would: bytes at random, some behind the start of a login."""
    over, rng = threading.Event(), random.Random(7)
    met = 0

    def pester() -> None:
        nonlocal met
        while not over.wait(0.05):
            head = rng.choice([b"", b"\x43\x87", b"\x01\x80"])
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as bad:
                bad.settimeout(0.1)
                bad.sendall(head + rng.randbytes(rng.choice([1, 46, 500, 70_000])))
                met += 1
                bad.recv(1000)

    thread = threading.Thread(target=pester)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert met > 20, "it was there"


def test_zones_fio_and_file_systems_over_kills_and_garbage(guest: tuple[Guest, Device, Answers]) -> None:
    """What the kernel sees, fio, zonefs, f2fs, dm-zoned with ext4, and btrfs: a machine takes seconds to start."""
    need("fio", "mkfs.f2fs", "mkfs.btrfs", "dmsetup", "mkfs.ext4")
    machine, device, answers = guest
    zones = device.ask("zones")["zones"]
    first = next(i for i, z in enumerate(zones) if not z["conventional"])
    target = DmZoned(len(zones), first, zones[0]["blocks"] * 512)
    (machine.shared / "dm-zoned").write_bytes(target.image())
    (machine.shared / "zonefs").write_bytes(zonefs())
    scripts: Scripts = {
        "zones.sh": {"ZONES": len(zones), "FIRST": first, "SECTORS": zones[first]["blocks"], "OPEN": 16},
        "others.sh": {"SECTORS": target.sectors},
        "btrfs.sh": {},
    }
    port = re.search(r":(\d+)/iqn", " ".join(machine.disks))
    assert port
    with pestered(int(port[1])):
        machine.run_all(scripts, 400, answers)


@pytest.mark.full
@pytest.mark.parametrize("layer", [f"{LAYER},capacity=6MiB"])
def test_file_systems_on_zones_with_gaps_between_them(guest: tuple[Guest, Device, Answers]) -> None:
    need("mkfs.f2fs")
    machine, device, answers = guest
    first = sum(z["conventional"] for z in device.ask("zones")["zones"])
    (machine.shared / "zonefs").write_bytes(zonefs())
    machine.run("gaps.sh", 240, answers, RANDOM_ZONES=first, SECTORS=16384, CAPACITY=12288)


@pytest.mark.full
def test_zbd_parts_of_a_disk_and_what_suites_ask(guest: tuple[Guest, Device, Answers]) -> None:
    need("zbd", "dmsetup", "fio")
    machine, device, _ = guest
    zones = device.ask("zones")["zones"]
    first = sum(z["conventional"] for z in zones)
    known = {"ZONES": len(zones), "FIRST": first, "SECTORS": zones[first]["blocks"], "OPEN": 16}
    (machine.shared / "zonefs").write_bytes(zonefs())
    machine.run_all({"tools.sh": known, "asked.sh": known}, 300)


@pytest.mark.full
def test_zones_that_fail_below_a_file_system(guest: tuple[Guest, Device, Answers]) -> None:
    machine, device, _ = guest
    zones = device.ask("zones")["zones"]
    first = next(i for i, z in enumerate(zones) if not z["conventional"])
    (machine.shared / "zonefs").write_bytes(zonefs())
    answers: Answers = {
        f"{condition} {n}": partial(device.ask, "fail-zone", lba=zone["start"], condition=condition)
        for n, zone in enumerate(zones)
        for condition in ("read-only", "offline")
    }
    known = {"ZONES": len(zones), "RANDOM_ZONES": first, "SECTORS": zones[first]["blocks"]}
    machine.run("failing.sh", 240, answers, **known)


class Detour:
    """A second way to a port, which can be cut: who is on it loses its connection."""

    def __init__(self, to: int) -> None:
        self.to = to
        self.cut_off = False
        self.open: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                if self.cut_off:
                    near.close()
                    continue
                with suppress(OSError):
                    far = socket.create_connection(("127.0.0.1", self.to))
                    self.open += [near, far]
                    for ends in ((near, far), (far, near)):
                        threading.Thread(target=self.carry, args=ends, daemon=True).start()
                    continue
                near.close()

    def carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 18):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.cut_off = True
        for end in self.open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.open = []

    def mend(self) -> None:
        self.cut_off = False


@pytest.mark.full
def test_one_disk_over_two_sessions_of_which_one_is_cut(make: Make, fast: Path, tmp_path: Path) -> None:
    """open-iscsi, dm-multipath and its daemon in the guest; the server here, which is killed and stopped as well."""
    need("iscsid", "multipathd", "mpathpersist", "udevadm", "sg_persist", "fio")
    machine = Guest(tmp_path, memory_mib=1024)
    machine.network()
    device, port = serve(make, store=str(fast / "s"), layer="s-block", size=256 << 20)
    path = Detour(port)
    target = url(device, port).split("/")[-2]
    errors: list[int] = []
    said: list[str] = []

    def again(end: Callable[[], object]) -> None:
        errors.append(device.ask("stats")["host"]["errors"])
        end()
        device.start()

    answers: Answers = {
        "cut": path.cut,
        "mend": path.mend,
        "kill": lambda: again(device.kill),
        "stop": lambda: again(lambda: device.stop(say=said.append)),
    }
    machine.run("paths.sh", 400, answers, TARGET=target, DIRECT=port, CUT=path.port)
    path.listener.close()
    errors.append(device.ask("stats")["host"]["errors"])
    assert errors == [0, 0, 0]
    assert said == [], "both sessions were logged out when they were asked to"


@pytest.mark.full
def test_btrfs_on_a_machine_that_loses_power(guest: tuple[Guest, Device, Answers]) -> None:
    """First the host alone, then its disk as well, in the middle of an operation: what was synced is there."""
    machine, device, _ = guest
    durable = machine.shared / "durable"

    def synced(files: int) -> bool:
        return durable.exists() and durable.read_text().count("\n") >= files

    machine.cut("power.sh", 120, lambda: synced(4), STEP=1, LAST=3)
    known = len(durable.read_text().splitlines())
    injected = False

    def disk_is_off() -> bool:
        nonlocal injected
        if not injected and synced(known + 4):
            device.ask("inject", cut_at=30)
            injected = True
        return injected and not device.running()

    machine.cut("power.sh", 120, disk_is_off, STEP=2, LAST=3)
    device.start()
    machine.run("power.sh", 120, STEP=3, LAST=3)
    assert len(durable.read_text().splitlines()) >= known + 4


@pytest.mark.full
def test_the_kernel_of_bookworm_sees_the_same(make: Make, fast: Path, tmp_path: Path) -> None:
    """Linux 6.1, with the same script."""
    machine = Guest(tmp_path, kernel="6.1")
    device, port = serve(make, store=str(fast / "s"), drive="modern-7200", layer=LAYER, size=SIZE)
    machine.scsi(url(device, port))

    def kill() -> None:
        device.kill()
        device.start()

    zones = device.ask("zones")["zones"]
    first = next(i for i, z in enumerate(zones) if not z["conventional"])
    known = {"ZONES": len(zones), "FIRST": first, "SECTORS": zones[first]["blocks"], "OPEN": 16}
    machine.run("zones.sh", 240, {"kill": kill}, **known)


@pytest.mark.full
def test_block_devices_of_the_kernel_over_kills(tmp_path: Path) -> None:
    """The server runs in the guest, whose kernel has ublk."""
    need("nbdkit", "mkfs.ext4", "mkfs.btrfs")
    machine = Guest(tmp_path, memory_mib=1536)
    machine.run("ublk.sh", 400, PYTHON=sys.executable, ROOT=ROOT)


@pytest.mark.full
def test_the_ten_lines_of_the_page(tmp_path: Path) -> None:
    """Every command of docs/zones.md's first example, as it stands, but for the names of the disk and the directory."""
    need("nbdkit", "iscsiadm", "mkfs.btrfs")
    page = (ROOT / "docs" / "zones.md").read_text()
    example = re.search(r"^## In ten lines\n[^\n]*\n\n((?:    [^\n]*\n)+)", page, re.MULTILINE)
    assert example, "the page has no such example"
    lines = [
        line.strip().replace("/dev/sdX", "/dev/sda").replace(" /mnt", " /mnt/fs") for line in example[1].splitlines()
    ]
    assert 6 <= len(lines) <= 10
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    shown = Guest(tmp_path, memory_mib=1536).run("ten_lines.sh", 300, PYTHON=sys.executable, ROOT=ROOT)
    assert "SEQ_WRITE_REQUIRED" in shown, "blkzone report"
    assert "conventional" in shown, "device zones"
    assert '"condition": "full"' in shown or '"condition": "implicitly-open"' in shown, shown[-3000:]
    assert "\nbtrfs\n" in shown, "mounted"
