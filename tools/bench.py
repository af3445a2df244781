"""`make bench`: requests per second of CPU time, single thread, timing and all metrics included, and peak memory.

Each line is measured in a process of its own, several times; the median counts. The trace is made once: 10 M uniform
4 KiB requests, 70 % writes, as Parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".setup" / "bench"
REQUESTS = 10_000_000

# Name, fields of the specification besides the trace, requests (millions), what is to be reached (M requests/s).
RUNS: tuple[tuple[str, dict[str, str], float, float], ...] = (
    ("cmr, FCFS", {"layer": "cmr"}, 10, 10),
    ("static-1234, FCFS", {"layer": "static-1234"}, 10, 10),
    ("static-R(4123), FCFS", {"layer": "static-R(4123)"}, 10, 10),
    ("rmw, FCFS", {"layer": "rmw"}, 2, 5),
    ("cmr, SPTF depth 32", {"layer": "cmr", "scheduler": "sptf,depth=32", "arrivals": "closed,depth=32"}, 1, 1),
)


def trace() -> Path:
    """The Parquet trace, made if it is not there."""
    import smrlab

    path = CACHE / f"uniform-{REQUESTS}.parquet"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = smrlab.Trace.synth(
            "uniform", requests=REQUESTS, size="4KiB", write="70%", span="8TB", interarrival="20ms"
        )
        made.save(path)
    return path


def measured(work: Callable[[], int]) -> dict[str, float]:
    """Requests, user CPU seconds and peak memory of one piece of work."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    requests = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {"requests": requests, "cpu_s": after.ru_utime - before.ru_utime, "peak_mib": after.ru_maxrss / 1024}


def one(fields: dict[str, str], path: str, limit: int) -> dict[str, float]:
    """One run in this process."""
    from smrlab import _core

    spec = {"trace": path, "drive": "modern-7200", "wrap": "capacity", "limit": limit, **fields}

    def work() -> int:
        doc, _ = _core.run(json.dumps(spec), _core.Control(), None)
        host = json.loads(doc)["host"]
        return int(host["reads"] + host["writes"])

    return measured(work)


def main() -> int:
    """Prints a line for each entry of RUNS."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(**json.loads(args.one))))
        return 0
    path = trace()
    print(f"{'10 M uniform 4 KiB requests, 70 % writes':44} {'M req/s of CPU':>15} {'to reach':>9} {'peak MiB':>9}")
    for name, fields, millions, goal in RUNS:
        job = json.dumps({"fields": fields, "path": str(path), "limit": int(millions * 1e6)})
        command = [sys.executable, __file__, "--one", job]
        found = []
        for _ in range(args.repeat):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
            if done.returncode:
                print(f"{name:44} {done.stderr.strip().splitlines()[-1]}")
                break
            found.append(json.loads(done.stdout))
        if found:
            speed = statistics.median(f["requests"] / f["cpu_s"] / 1e6 for f in found)
            peak = statistics.median(f["peak_mib"] for f in found)
            print(f"{name:44} {speed:15.2f} {goal:9.0f} {peak:9.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
