"""Served devices against nbdkit's own plugins: throughput in pairs, and the server's CPU time for each I/O.

As it is, `make bench-device` takes about ten minutes on a quiet machine and leaves out/bench-device.json.

Server and client share one core (unpinned, the same job varies several times over); contestants take turns within
every round, and medians over the rounds are compared. One contestant runs twice: what differs there is noise.
With --before PLUGIN another build of ours takes part in the same rounds, which is the only fair way to compare two.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from serving import Figures, Nbdkit

SIZE_MB = 512
# How often a medium is written first, where a layer moves what it writes: it goes on taking memory for long.
FILLS = 16
# name: fio's rw, block size, depth; reads come first, on a medium that was written, so that memory was taken
JOBS = {
    "4k randread d1": ("randread", "4k", 1),
    "4k randread d16": ("randread", "4k", 16),
    "4k read d16": ("read", "4k", 16),
    "128k read d16": ("read", "128k", 16),
    "1m read d16": ("read", "1m", 16),
    "4k write d16": ("write", "4k", 16),
    "128k write d16": ("write", "128k", 16),
    "1m write d16": ("write", "1m", 16),
    "4k randwrite d1": ("randwrite", "4k", 1),
    "4k randwrite d16": ("randwrite", "4k", 16),
    "4k randread d16, aged": ("randread", "4k", 16),
}
RANDOM = ["4k randread d16", "128k write d16", "4k randwrite d16", "4k randread d16, aged"]
# Layers that log are judged by small random writes, by the processor time of each. Asked: 0.7 of the memory plugin,
# 0.95 of it for cmr and raw at every size and depth. Most is lost where bytes are copied that only stay where they are.
LOGGED = ["4k randwrite d1", "4k randwrite d16", "4k randread d16", "128k write d16"]
BOTH = ["4k randread d16", "1m read d16", "128k write d16", "1m write d16", "4k randwrite d16"]


class Contestant(NamedTuple):
    """What is served, and what is asked of it."""

    layer: str | None  # none: a plugin of nbdkit
    store: str
    jobs: list[str]
    medium_mb: int = SIZE_MB + 64  # layers need room of their own
    plugin: Path | None = None  # instead of the one that is measured


CONTESTANTS = {
    "nbdkit memory": Contestant(None, "memory", list(JOBS)),
    "nbdkit memory again": Contestant(None, "memory", list(JOBS)),
    "raw k=1": Contestant("raw,tracks=1", "memory", RANDOM),
    "raw k=3": Contestant("raw,tracks=3", "memory", list(JOBS)),
    "raw k=8": Contestant("raw,tracks=8", "memory", RANDOM),
    "nbdkit file": Contestant(None, "file", BOTH),
    "raw k=3 file": Contestant("raw,tracks=3", "file", BOTH),
    "s-block": Contestant("s-block", "memory", [*BOTH, "4k randwrite d1"], 4 * SIZE_MB),
    "disk-cache": Contestant("disk-cache", "memory", LOGGED, 4 * SIZE_MB),
    "log": Contestant("log,band=32tracks", "memory", LOGGED, 4 * SIZE_MB),
    "persistent-cache": Contestant("persistent-cache,band=16tracks", "memory", LOGGED, 4 * SIZE_MB),
    "rmw": Contestant("rmw,band=32tracks", "memory", LOGGED, 4 * SIZE_MB),
    "cmr": Contestant("cmr", "memory", list(JOBS)),
}


class Server(Nbdkit):
    """One contestant, serving."""

    def __init__(self, name: str, plugin: Path, directory: Path, core: str) -> None:
        self.name = name
        layer, store, _, medium_mb, instead = CONTESTANTS[name]
        if layer is None and store == "memory":
            what = ["memory", f"{SIZE_MB}M"]
        elif layer is None:
            with (directory / "disk").open("wb") as f:
                f.truncate(SIZE_MB << 20)
            what = ["file", str(directory / "disk")]
        else:
            config = {
                "name": "bench", "drive": "modern-7200", "layer": layer, "size": medium_mb << 20,
                "store": "memory" if store == "memory" else {"directory": str(directory / "store")},
            }  # fmt: skip
            (directory / "config.json").write_text(json.dumps(config))
            what = [str(instead or plugin), f"config={directory / 'config.json'}"]
        super().__init__(directory, core, *what)


def fio(server: Server, rw: str, block: str, depth: int, core: str, limit: list[str]) -> Figures:
    """Runs a job within the size that all have."""
    options = [f"--bs={block}", f"--iodepth={depth}", f"--size={SIZE_MB}m", "--randrepeat=1", *limit]
    return server.fio(core, rw, *options)


def measure(
    names: list[str], rounds: int, seconds: float, plugin: Path, core: str
) -> dict[str, dict[str, list[Figures]]]:
    """All jobs of all contestants, taking turns."""
    found: dict[str, dict[str, list[Figures]]] = {
        job: {n: [] for n in names if job in CONTESTANTS[n].jobs} for job in JOBS
    }
    for number in range(rounds):
        servers, directories = [], []
        for name in names[number % len(names) :] + names[: number % len(names)]:
            directories.append(Path(tempfile.mkdtemp(prefix="bd-", dir="/dev/shm")))
            servers.append(Server(name, plugin, directories[-1], core))
        try:
            for server in servers:
                moves = CONTESTANTS[server.name].medium_mb >= 2 * SIZE_MB
                fio(server, "write", "1m", 4, core, [f"--loops={FILLS if moves else 1}"])
            for job, (rw, block, depth) in JOBS.items():
                for server in (s for s in servers if s.name in found[job]):
                    limit = [f"--runtime={round(seconds * 1000)}ms", "--time_based"]
                    found[job][server.name].append(fio(server, rw, block, depth, core, limit))
                print(f"round {number + 1} of {rounds}: {job}", file=sys.stderr, end="\r")
        finally:
            for server, directory in zip(servers, directories, strict=True):
                server.stop()
                shutil.rmtree(directory)
    print(file=sys.stderr)
    return found


def report(found: dict[str, dict[str, list[Figures]]]) -> dict[str, object]:
    """Prints the table of medians; a ratio is the median over rounds of the pairs' ratios."""
    result: dict[str, object] = {}
    for job, by_name in found.items():
        print(f"\n{job}")
        for name, runs in by_name.items():
            base = by_name["nbdkit file" if CONTESTANTS[name].store == "file" else "nbdkit memory"]
            iops, mbps, cpu = (statistics.median(r[i] for r in runs) for i in range(3))
            ratio = statistics.median(r[0] / b[0] for r, b in zip(runs, base, strict=True))
            saved = statistics.median(r[2] / max(b[2], 1e-9) for r, b in zip(runs, base, strict=True))
            print(f"  {name:24} {iops / 1e3:8.1f} k/s {mbps:8.0f} MB/s  x{ratio:.3f}  {cpu:7.1f} us CPU  x{saved:.3f}")
            result[f"{job}/{name}"] = {
                "iops": iops, "mb_per_s": mbps, "cpu_us": cpu, "ratio": ratio, "cpu_ratio": saved,
                "rounds": [r[0] for r in runs],
            }  # fmt: skip
    return result


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.8, help="of each job in each round")
    parser.add_argument("--core", default="0")
    parser.add_argument("--only", nargs="*", default=list(CONTESTANTS))
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), help="jobs to run, by name")
    parser.add_argument("--plugin", type=Path, required=True)
    parser.add_argument("--before", type=Path, help="the plugin of another build, for each of --only that is ours")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    for job in set(JOBS) - set(args.jobs):
        del JOBS[job]
    missing = [p for p in ("nbdkit", "fio", "taskset") if shutil.which(p) is None]
    if missing:
        print(f"missing: {', '.join(missing)}: apt-get install nbdkit fio util-linux", file=sys.stderr)
        sys.exit(3)
    names = list(
        dict.fromkeys(["nbdkit memory", *(["nbdkit file"] if any("file" in n for n in args.only) else []), *args.only])
    )
    if args.before:
        for name in [n for n in names if CONTESTANTS[n].layer]:
            CONTESTANTS[f"{name} before"] = CONTESTANTS[name]._replace(plugin=args.before)
            names.append(f"{name} before")
    result = report(measure(names, args.rounds, args.seconds, args.plugin, args.core))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        document = {"load": os.getloadavg(), "rounds": args.rounds, "seconds": args.seconds, "jobs": result}
        args.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
