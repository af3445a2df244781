"""Figures 7 to 10 of the emulator's paper (Pitchumani 2012), from our own runs on served devices.

Bandwidth without timing shows what the emulator costs: `nbdkit memory` is the bare store, served by the same program.
Server and client share one core; contestants take turns in every round, ratios are medians over the rounds' pairs, and
the bare store runs twice, which shows the noise. Bandwidth in modelled time (`--timing model`) shows what the disk's
mechanics do to banded writes. Each figure leaves `fN.json`; what is there is not run again (`--again` does).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "device"))

from nbdclient import WRITE, Client  # noqa: E402
from serving import Nbdkit  # noqa: E402

SIZE = 128 << 20
DRIVE = "modern-7200"
BARE, AGAIN = "bare store", "bare store again"
BLOCKS = [4 << 10 << i for i in range(9)]
BANDS = [1, 2, 4, 8, 16, 32, 64]
DEPTH = 16
# In modelled time so many wait that a client that is held up for a tenth of a second leaves no gap.
QUEUE = 32
FIGURES = ("f7", "f8", "f9", "f10")
Run = dict[str, float]


class Server(Nbdkit):
    """A contestant that serves: the bare store, or a raw device with head width k."""

    def __init__(self, name: str, plugin: Path, core: str, **config: Any) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="df-", dir="/dev/shm"))
        what = ["memory", str(SIZE)]
        if not name.startswith(BARE):
            path = self.directory / "config.json"
            layer = f"raw,tracks={name.removeprefix('k=')}"
            doc = {"name": "figure", "drive": DRIVE, "layer": layer, "store": "memory", "size": SIZE + (64 << 20)}
            path.write_text(json.dumps(doc | config))
            what = [str(plugin), f"config={path}"]
        super().__init__(self.directory, core, "--threads", "64", *what)

    def stop(self) -> None:
        """Ends it, and leaves nothing behind."""
        super().stop()
        shutil.rmtree(self.directory)


@contextmanager
def serving(names: list[str], plugin: Path, core: str) -> Iterator[dict[str, Server]]:
    """All contestants at once."""
    servers: dict[str, Server] = {}
    try:
        for name in names:
            servers[name] = Server(name, plugin, core)
        yield servers
    finally:
        for server in servers.values():
            server.stop()


def fio(server: Server, core: str, rw: str, block: int, seconds: float, jobs: int = 1, depth: int = DEPTH) -> Run:
    """Runs a job, or several that each write a band of their own; gives MB/s and the server's us of CPU an I/O."""
    each = SIZE // jobs // block * block
    limit = [f"--runtime={seconds}", "--time_based"] if seconds else []
    found = server.fio(
        core, rw, f"--bs={block}", f"--iodepth={max(1, depth // jobs)}", f"--size={each}", "--thread",
        f"--numjobs={jobs}", f"--offset_increment={each}", "--group_reporting", *limit,
    )  # fmt: skip
    return {"mb_per_s": found.mb_per_s, "cpu_us": found.cpu_us}


def pairs(
    names: list[str], jobs: dict[str, dict[str, Any]], plugin: Path, core: str, rounds: int, seconds: float
) -> dict[str, dict[str, Run]]:
    """Every job on every contestant, in turns: medians, and ratios to the bare store of the same round."""
    runs: dict[str, dict[str, list[Run]]] = {j: {n: [] for n in names} for j in jobs}
    for number in range(rounds):
        order = names[number % len(names) :] + names[: number % len(names)]
        with serving(order, plugin, core) as servers:
            for server in servers.values():
                fio(server, core, "write", 1 << 20, 0)
            for job, how in jobs.items():
                for name, server in servers.items():
                    runs[job][name].append(fio(server, core, seconds=seconds, **how))
                print(f"round {number + 1} of {rounds}: {job:24}", file=sys.stderr, end="\r")
    print(file=sys.stderr)
    found: dict[str, dict[str, Run]] = {}
    for job, by_name in runs.items():
        found[job] = {}
        for name, of_name in by_name.items():
            both = list(zip(of_name, by_name[BARE], strict=True))
            found[job][name] = {
                "mb_per_s": statistics.median(r["mb_per_s"] for r in of_name),
                "cpu_us": statistics.median(r["cpu_us"] for r in of_name),
                "ratio": statistics.median(r["mb_per_s"] / b["mb_per_s"] for r, b in both),
                "cpu_ratio": statistics.median(r["cpu_us"] / max(b["cpu_us"], 1e-9) for r, b in both),
            }
    return found


def speed(bands: int, block: int) -> float:
    """How much faster than the wall's the modelled time may run, such that the client is never what is waited for."""
    if bands == 1:
        return 0.1
    return 2.0 if bands >= 4 and block <= 64 << 10 else 1.0


def modelled(k: int, bands: int, block: int, plugin: Path, seconds: float) -> float:
    """MB/s of modelled time: writes go to a band chosen at random, in order within each; the same ones for every k."""
    factor = speed(bands, block)
    writes = int(seconds * (1000 if bands == 1 else 80 * factor + 60))
    server = Server(f"k={k}", plugin, "0,1", timing="model", speed=factor, size=None)
    rng = random.Random(1)
    try:
        with Client(server.socket) as client:
            length = client.size // bands // block * block
            at = [band * length for band in range(bands)]
            data = bytes(block)
            sent = done = 0
            begin = time.monotonic()
            while done < writes:
                while sent < writes and sent < done + QUEUE:
                    band = rng.randrange(bands)
                    client.send(WRITE, at[band], block, data)
                    at[band] += block
                    sent += 1
                if client.reply()[1]:
                    raise RuntimeError("a write failed")
                done += 1
        return writes * block / ((time.monotonic() - begin) * factor) / 1e6
    finally:
        server.stop()


def banded(key: str, plugin: Path, core: str, seconds: float) -> dict[str, Any]:
    """Figures 9 (block sizes on 16 bands) and 10 (numbers of bands with blocks of 32 KiB)."""
    cases = [(16, b) for b in BLOCKS] if key == "f9" else [(n, 32 << 10) for n in BANDS]
    label = (lambda c: f"{c[1] >> 10} KiB") if key == "f9" else (lambda c: f"{c[0]} bands")
    jobs = {label(c): {"rw": "write", "block": c[1], "jobs": c[0]} for c in cases}
    doc: dict[str, Any] = {"cost": pairs([BARE, AGAIN, "k=3"], jobs, plugin, core, 5, seconds / 2), "modelled": {}}
    for case in cases:
        doc["modelled"][label(case)] = {f"k={k}": modelled(k, *case, plugin, seconds) for k in (1, 3)}
        print(f"modelled: {label(case):24}", file=sys.stderr, end="\r")
    return doc


def measure(key: str, plugin: Path, core: str, seconds: float) -> dict[str, Any]:
    """One figure's data."""
    if key in ("f9", "f10"):
        return banded(key, plugin, core, seconds)
    rws = ("read", "write", "randread", "randwrite") if key == "f7" else ("read", "write")
    names = [BARE, AGAIN, *(["k=3"] if key == "f7" else [f"k={k}" for k in range(1, 9)])]
    jobs = {rw: {"rw": rw, "block": 4096} for rw in rws}
    if key == "f8":
        jobs["write 1 MiB"] = {"rw": "write", "block": 1 << 20}
    return {"cost": pairs(names, jobs, plugin, core, 5, seconds / 2)}


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", default=FIGURES, help="f7, f8, f9, f10; all without")
    parser.add_argument("--out", type=Path, default=ROOT / "papers" / "dm-shingle", help="where the data go")
    parser.add_argument("--plugin", type=Path, default=ROOT / "python/smrlab/libsmrlab_nbdkit.so")
    parser.add_argument("--core", default="0", help="processor of server and client")
    parser.add_argument("--seconds", type=float, default=0.7, help="scales the length of every run")
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--draw", action="store_true", help="only draw, and rewrite the claims, from the data")
    args = parser.parse_args()
    for key in set(args.figures) - set(FIGURES):
        parser.error(f"unknown figure {key}")
    missing = [p for p in ("nbdkit", "fio", "taskset") if shutil.which(p) is None]
    if missing and not args.draw:
        print(f"missing: {', '.join(missing)}: apt-get install nbdkit fio util-linux", file=sys.stderr)
        sys.exit(3)
    args.out.mkdir(parents=True, exist_ok=True)
    for key in args.figures:
        path = args.out / f"{key}.json"
        if not args.draw and (args.again or not path.exists()):
            start, load = time.monotonic(), os.getloadavg()[0]
            doc = {"figure": key, "drive": DRIVE, "load_before": round(load, 1)}
            doc |= measure(key, args.plugin, args.core, args.seconds)
            path.write_text(json.dumps(doc, indent=1) + "\n")
            print(f"{key}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    from claims import write

    write(args.out, ROOT / "docs" / "papers" / "dm-shingle.md")


if __name__ == "__main__":
    main()
