"""In a guest: served devices attached by ublk, used, their servers killed and started again, and detached."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from smrlab import attached
from smrlab.devices import Device
from smrlab.errors import InputError

FS = Path("/mnt/fs")


def step(text: str) -> None:
    """Says what follows, and when."""
    print(f"guest: {Path('/proc/uptime').read_text().split()[0]} s: {text}", flush=True)


def run(*command: str) -> str:
    """Runs a program; its output, and what it says where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-500:]}{done.stderr[-1500:]}"
    return done.stdout


def queue(path: str, name: str) -> str:
    """What the kernel knows of a block device."""
    return Path(f"/sys/block/{Path(path).name}/queue/{name}").read_text().strip()


def served(name: str, **config: Any) -> tuple[Device, str]:
    """A device with its bytes in files, and its block device."""
    whole = {"name": name, "drive": "modern-7200", **config}
    device = Device.create(name, whole, f"/mnt/tmp/{name}", None, {})
    return device, attached.attach(device)


def filled(n: int) -> dict[str, str]:
    """Files, synced one by one, and their sums."""
    sums = {}
    for i in range(n):
        data = os.urandom(100_000 + 4096 * i)
        with (FS / f"file.{i}").open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        sums[f"file.{i}"] = hashlib.sha256(data).hexdigest()
    return sums


def check(sums: dict[str, str]) -> None:
    """All files are as they were."""
    for name, expected in sums.items():
        assert hashlib.sha256((FS / name).read_bytes()).hexdigest() == expected, name


def over_a_kill(device: Device, path: str) -> None:
    """Files are written while the server is killed and started again; all are there after a new mount."""
    sums: dict[str, str] = {}
    writer = threading.Thread(target=lambda: sums.update(filled(20)))
    writer.start()
    time.sleep(1)
    device.kill()
    step("killed")
    device.start()
    step("started again")
    writer.join()
    assert len(sums) == 20
    run("umount", str(FS))
    run("mount", path, str(FS))
    check(sums)
    said = ""
    try:
        device.stop()
    except InputError as e:
        said = str(e)
    assert f"{path} is in use" in said, "stopped while it is mounted"
    run("umount", str(FS))


def gone(device: Device, path: str) -> None:
    """Detached, and no node remains."""
    attached.detach(device)
    assert not Path(path).exists()
    assert not list(attached.NODES.iterdir())


def ordinary() -> None:
    """A drive-managed drive with ext4: FUA, flushes and discards arrive."""
    step("an ordinary disk with ext4")
    device, path = served("d", layer="s-block", size=192 << 20)
    assert queue(path, "zoned") == "none"
    assert (queue(path, "fua"), queue(path, "write_cache"), queue(path, "rotational")) == ("1", "write back", "1")
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1", path)
    run("mount", path, str(FS))
    check(filled(3))
    run("fstrim", str(FS))
    host = device.ask("stats")["host"]
    assert host["fua"] > 0, host
    assert host["flushes"] > 0, host
    assert host["trims"] > 0, host
    over_a_kill(device, path)
    run("e2fsck", "-f", "-n", path)
    gone(device, path)


def zoned() -> None:
    """A host-managed drive: zones, fio with verification, btrfs."""
    step("a host-managed disk")
    device, path = served("z", layer="zoned,zone=8MiB,conventional=12%,max_open=16", size=1 << 30)
    zones = device.ask("zones")["zones"]
    assert queue(path, "zoned") == "host-managed"
    assert (queue(path, "nr_zones"), queue(path, "chunk_sectors")) == (str(len(zones)), "16384")
    assert (queue(path, "max_open_zones"), queue(path, "physical_block_size")) == ("16", "4096")
    assert (queue(path, "logical_block_size"), queue(path, "zone_write_granularity")) == ("4096", "4096")
    first = next(z["start"] for z in zones if not z["conventional"])
    run("blkzone", "open", "-o", str(first), "-c", "2", path)
    run("blkzone", "finish", "-o", str(first), "-c", "1", path)
    now = device.ask("zones")["zones"]
    at = next(i for i, z in enumerate(zones) if not z["conventional"])
    assert [z["condition"] for z in now[at : at + 3]] == ["full", "explicitly-open", "empty"]
    assert len(run("blkzone", "report", path).splitlines()) == len(zones)
    run("blkzone", "reset", path)
    assert all(z["condition"] == "empty" for z in device.ask("zones")["zones"][at:])
    step("fio")
    run("fio", "--name=v", f"--filename={path}", "--direct=1", "--ioengine=libaio", "--iodepth=32", "--zonemode=zbd",
        "--max_open_zones=8", "--rw=randwrite", "--bs=16k", f"--offset={first * 512}", "--size=64m", "--io_size=16m",
        "--verify=crc32c", "--thread")  # fmt: skip
    step("btrfs")
    run("mkfs.btrfs", "-q", "-f", path)
    run("mount", path, str(FS))
    over_a_kill(device, path)
    run("btrfs", "check", path)
    gone(device, path)


def timed() -> None:
    """Modelled time: several requests are with the drive at once, and each takes its time."""
    step("modelled time")
    device, path = served("t", layer="cmr", size=64 << 20, timing="model", scheduler="sptf,depth=16")
    began = time.monotonic()
    run("fio", "--name=r", f"--filename={path}", "--direct=1", "--ioengine=libaio", "--iodepth=16", "--rw=randread",
        "--bs=4k", "--size=64m", "--io_size=1m", "--thread")  # fmt: skip
    assert time.monotonic() - began > 0.3, "256 reads at random of a disk"
    assert device.ask("stats")["host"]["reads"] >= 256
    gone(device, path)
    device.stop()


ordinary()
zoned()
timed()
