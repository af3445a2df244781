"""In the guest of ublk.py: fio on the kernel's own zoned memory and on served devices, in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from smrlab import attached
from smrlab.devices import Device

SIZE_MB = 256
# name: fio's rw, block size, commands in flight; reads come first, when all is written.
JOBS = {
    "128k read d16": ("read", "128k", 16),
    "1m read d16": ("read", "1m", 16),
    "4k write d16": ("write", "4k", 16),
    "128k write d16": ("write", "128k", 16),
    "1m write d16": ("write", "1m", 16),
}
# Of the served disk; ublk.py gives null_blk the same zones.
LAYER = "zoned,zone=16MiB,conventional=0%"


def fio(path: str, rw: str, block: str, depth: int, *limit: str) -> float:
    """Runs a job; MB/s."""
    done = subprocess.run(
        ["fio", "--name=j", f"--filename={path}", "--direct=1", "--ioengine=libaio", "--thread",
         "--clocksource=clock_gettime", "--zonemode=zbd",
         f"--rw={rw}", f"--bs={block}", f"--iodepth={depth}", f"--size={SIZE_MB}m", "--output-format=json", *limit],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{path}: {done.stdout[-500:]}{done.stderr[-1500:]}"
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    return float(job[rw]["bw_bytes"]) / 1e6


def main() -> None:
    """The program."""
    rounds, seconds, out = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    disks = {"null_blk": "/dev/nullb0", "null_blk again": "/dev/nullb1"}
    served: list[Device] = []
    for name, plugin in zip(("zoned", "zoned before"), sys.argv[4:], strict=False):
        os.environ["SMRLAB_NBDKIT_PLUGIN"] = plugin
        config = {"name": "z", "drive": "modern-7200", "layer": LAYER, "size": 2 * SIZE_MB << 20}
        served.append(Device.create(f"z{len(served)}", config, "memory", None, {}))
        disks[name] = attached.attach(served[-1])
    names = list(disks)
    found: dict[str, dict[str, list[float]]] = {job: {name: [] for name in names} for job in JOBS}

    def fill() -> None:
        for path in disks.values():
            fio(path, "write", "1m", 4)

    # Memory that nobody had before costs the guest and its host.
    fill()
    for number in range(rounds):
        fill()
        at = number % len(names)
        for job, (rw, block, depth) in JOBS.items():
            for name in names[at:] + names[:at]:
                limit = [f"--runtime={round(seconds * 1000)}ms", "--time_based"]
                found[job][name].append(fio(disks[name], rw, block, depth, *limit))
        print(f"guest: round {number + 1} of {rounds}", flush=True)
    out.write_text(json.dumps(found))
    for device in served:
        attached.detach(device)
        device.stop()


main()
