"""Served devices over iSCSI on loopback, in pairs: against plain memory behind the same target.

Part of `make bench-device`: a minute and a half on a quiet machine. Server and client share one core, contestants take
turns within every round, and a ratio is the median over rounds of the pairs' ratios. Plain memory runs twice: what
differs there is noise. With --before PLUGIN and --memory-before TARGET those of another build take part in the same
rounds, the only fair way to compare two.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE_MB = 256
# name: read or write, bytes, commands in flight; the disk was written from end to end before.
JOBS = {
    "128k read d16": ("read", 128 << 10, 16),
    "1m read d16": ("read", 1 << 20, 16),
    "4k write d16": ("write", 4 << 10, 16),
    "128k write d16": ("write", 128 << 10, 16),
    "1m write d16": ("write", 1 << 20, 16),
}
BASE = "memory"
LAYERS = {
    "zoned": "zoned,zone=16MiB,conventional=0%",
    "host-aware": "host-aware,zone=16MiB",
    "cmr": "cmr",
}
NAMES = [BASE, "memory again", *LAYERS]
BEFORE = " before"
TARGET = "iqn.2026-01.smrlab:bench"


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """One contestant, serving."""

    def __init__(self, name: str, directory: Path, core: str, plugin: Path, memory: Path) -> None:
        self.name = name
        self.port = free_port()
        address = f"127.0.0.1:{self.port}"
        self.url = f"iscsi://{address}/{TARGET}/0"
        self.layer = LAYERS.get(name.removesuffix(BEFORE))
        if self.layer:
            config = {
                "name": "bench", "drive": "modern-7200", "layer": self.layer, "size": 4 * SIZE_MB << 20,
                "store": "memory", "iscsi": address,
            }  # fmt: skip
            (directory / "config.json").write_text(json.dumps(config))
            command = ["nbdkit", "-f", "-U", str(directory / "s"), str(plugin), f"config={directory / 'config.json'}"]
        else:
            command = [str(memory), address, str(SIZE_MB)]
        self.process = subprocess.Popen(
            ["taskset", "-c", core, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.wait()

    def wait(self) -> None:
        """Until it listens."""
        for _ in range(1000):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with status {self.process.returncode}")
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.01)
        raise RuntimeError(f"{self.name} does not listen")

    def cpu_s(self) -> float:
        """Processor time so far, by the clock that Linux keeps of every process."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def resident_mb(self) -> int:
        """Memory that it has taken."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    def stop(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()


def load(server: Server, client: Path, job: tuple[str, int, int], seconds: float, core: str) -> tuple[float, float]:
    """Commands a second, and the server's microseconds of processor time for each."""
    how, size, depth = job
    words = [server.url, how, str(size), str(depth), str(seconds), str(SIZE_MB << 11)]
    before = server.cpu_s()
    done = subprocess.run(
        ["taskset", "-c", core, str(client), *words, *(["zoned"] if (server.layer or "").startswith("zoned") else [])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{server.name}: {done.stderr}")
    count, took = done.stdout.split()
    return int(count) / float(took), (server.cpu_s() - before) / int(count) * 1e6


def settle(server: Server, client: Path, core: str) -> None:
    """Writes the disk from end to end, again until that takes no more memory.

    What is new the kernel has to clear, which takes several times as long as the write.
    """
    seconds, before = 1.0, 0
    for _ in range(20):
        rate, _ = load(server, client, ("write", 1 << 20, 4), seconds, core)
        now = server.resident_mb()
        if rate * seconds < SIZE_MB:
            seconds *= 2
        elif now <= before:
            return
        before = now


def before(name: str, args: argparse.Namespace) -> tuple[Path, Path] | None:
    """The other build, for the contestants that are of it."""
    of_it = name.endswith(BEFORE) and (args.before if name.removesuffix(BEFORE) in LAYERS else args.memory_before)
    return (args.before, args.memory_before) if of_it else None


def measure(args: argparse.Namespace, client: Path) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """All jobs of all contestants, taking turns."""
    names = [n for name in NAMES for n in (name, name + BEFORE) if before(n, args) or not n.endswith(BEFORE)]
    found: dict[str, dict[str, list[tuple[float, float]]]] = {job: {n: [] for n in names} for job in JOBS}
    with tempfile.TemporaryDirectory(prefix="bi-", dir="/dev/shm") as place:
        servers: list[Server] = []
        try:
            for name in names:
                directory = Path(place) / name.replace(" ", "-")
                directory.mkdir()
                plugin, memory = before(name, args) or (args.plugin, args.memory)
                servers.append(Server(name, directory, args.core, plugin, memory))
                settle(servers[-1], client, args.core)
            for number in range(args.rounds):
                for job, what in JOBS.items():
                    for server in servers[number % len(servers) :] + servers[: number % len(servers)]:
                        found[job][server.name].append(load(server, client, what, args.seconds, args.core))
                    print(f"round {number + 1} of {args.rounds}: {job}   ", file=sys.stderr, end="\r")
        finally:
            for server in servers:
                server.stop()
    print(file=sys.stderr)
    return found


def report(found: dict[str, dict[str, list[tuple[float, float]]]]) -> dict[str, object]:
    """Prints the table."""
    result: dict[str, object] = {}
    for job, by_name in found.items():
        print(f"\n{job}")
        for name, runs in by_name.items():
            rate, cpu = (statistics.median(r[i] for r in runs) for i in range(2))
            ratio = statistics.median(r[0] / b[0] for r, b in zip(runs, by_name[BASE], strict=True))
            mb_per_s = rate * JOBS[job][1] / 1e6
            print(f"  {name:18} {rate / 1e3:8.2f} k/s {mb_per_s:8.0f} MB/s  x{ratio:.3f}  {cpu:8.1f} us CPU")
            result[f"{job}/{name}"] = {"per_s": rate, "mb_per_s": mb_per_s, "cpu_us": cpu, "ratio": ratio}
    return result


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each job in each round")
    parser.add_argument("--core", default="0")
    parser.add_argument("--plugin", type=Path, required=True)
    parser.add_argument("--memory", type=Path, required=True, help="crates/iscsi/examples/memory_target.rs, built")
    parser.add_argument("--before", type=Path, help="the plugin of another build")
    parser.add_argument("--memory-before", type=Path, help="memory_target of another build")
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), help="jobs to run, by name")
    parser.add_argument("--only", nargs="*", default=list(LAYERS), help="layers to run, by name")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    for job in set(JOBS) - set(args.jobs):
        del JOBS[job]
    for name in set(LAYERS) - set(args.only):
        NAMES.remove(name)
    with tempfile.TemporaryDirectory() as place:
        client = Path(place) / "iscsi_load"
        source = Path(__file__).parent / "iscsi_load.c"
        built = subprocess.run(["cc", "-O2", "-o", str(client), str(source), "-liscsi"], check=False)
        if built.returncode != 0:
            print("iscsi_load.c was not built: apt-get install gcc libiscsi-dev", file=sys.stderr)
            sys.exit(3)
        result = report(measure(args, client))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        document = {"load": os.getloadavg(), "rounds": args.rounds, "seconds": args.seconds, "jobs": result}
        args.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
