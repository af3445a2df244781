"""What Dask costs a run, and how many workers a scheduler keeps busy.

    python benches/cluster.py [--runs N] [--sleepers N] [--plan] [--json FILE]

Times of the scheduler and of the one who asks are processor times of their processes: other work on the machine changes
them little. Simulated workers are real ones, many in a process, whose runs sleep.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))

import clusters  # noqa: E402
import psutil  # noqa: E402

from smrlab import sweeps  # noqa: E402
from smrlab.executors import Piece, chosen  # noqa: E402
from smrlab.executors.local import LocalPool  # noqa: E402

WORKERS = """
import asyncio, sys
from distributed import Worker
async def main(address, count):
    workers = [await Worker(address, nthreads=1, dashboard=False, host="127.0.0.1") for _ in range(count)]
    await asyncio.gather(*(w.finished() for w in workers))
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@dataclass(frozen=True)
class Sleep:
    """A run that takes a time and nothing else; its value is as large as that of a run."""

    seconds: float

    def __call__(self, control: Any) -> dict[str, float]:
        """Sleeps."""
        del control
        time.sleep(self.seconds)
        return {f"response_ms.{i}": i / 7 for i in range(150)}


def cpu(pid: int) -> float:
    """Processor time of a process in seconds."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def study(runs: int, requests: int = 200) -> sweeps.Study:
    """As many short runs."""
    base = {"drive": "tiny", "trace": [f"synth:uniform,requests={requests}"], "layer": "rmw", "wrap": "capacity"}
    return sweeps.Study.of({"base": base, "seeds": runs})


def overhead(folder: Path, runs: int) -> dict[str, Any]:
    """Short runs on 1 and 2 local threads, and on 1 and 2 workers of a real cluster."""
    found: dict[str, Any] = {"runs": runs}
    for threads in (1, 2):
        start, used = time.perf_counter(), cpu(os.getpid())
        sweeps.run_study(study(runs), sweeps.Store(folder / f"local{threads}"), LocalPool(threads))
        found[f"local_{threads}"] = {
            "runs_per_s": runs / (time.perf_counter() - start),
            "cpu_ms_a_run": 1e3 * (cpu(os.getpid()) - used) / runs,
        }
    dask = clusters.Processes(folder)
    for workers in (1, 2):
        dask.more(1)
        with chosen(dask.address) as executor:
            executor.client.wait_for_workers(workers)  # type: ignore[attr-defined]
            sweeps.run_study(study(20), sweeps.Store(folder / f"warm{workers}"), executor)
            start, used, asked = time.perf_counter(), cpu(dask.scheduler.pid), cpu(os.getpid())
            sweeps.run_study(study(runs), sweeps.Store(folder / f"dask{workers}"), executor)
            found[f"dask_{workers}"] = {
                "runs_per_s": runs / (time.perf_counter() - start),
                "scheduler_ms_a_run": 1e3 * (cpu(dask.scheduler.pid) - used) / runs,
                "client_ms_a_run": 1e3 * (cpu(os.getpid()) - asked) / runs,
            }
    dask.end()
    points = list((folder / "dask2" / "points").iterdir())
    document = json.loads((points[0] / "result.json").read_text())
    found["bytes_a_run"] = {
        "results": sum(f.stat().st_size for p in points for f in p.iterdir()) / len(points),
        "through_the_scheduler": len(pickle.dumps(document)),
    }
    return found


def saturation(folder: Path, sleepers: int) -> list[dict[str, float]]:
    """Runs of 0.25, 1 and 4 s on so many simulated workers: how busy the scheduler keeps them."""
    dask = clusters.Processes(folder)
    half = [str(sleepers // 2), str(sleepers - sleepers // 2)]
    extra = [subprocess.Popen([sys.executable, "-c", WORKERS, dask.address, n]) for n in half]
    found = []
    with chosen(dask.address) as executor:
        executor.client.wait_for_workers(sleepers, timeout=300)  # type: ignore[attr-defined]
        for seconds in (0.25, 1.0, 4.0):
            runs = int(sleepers * max(20 / seconds, 5))
            pieces = [Piece(f"sleep {seconds:g}", Sleep(seconds)) for _ in range(runs)]
            start, used = time.perf_counter(), cpu(dask.scheduler.pid)
            executor.run(pieces, lambda *_: None)
            took = time.perf_counter() - start
            found.append({
                "run_s": seconds, "workers": sleepers, "runs": runs, "runs_per_s": runs / took,
                "efficiency": runs * seconds / sleepers / took,
                "scheduler_ms_a_run": 1e3 * (cpu(dask.scheduler.pid) - used) / runs,
            })  # fmt: skip
    for process in extra:
        process.kill()
        process.wait()
    dask.end()
    return found


def planned(folder: Path, share: int = 100) -> dict[str, Any]:
    """36 volumes x 1000 settings planned, and the plan of a hundredth of them held against running it."""
    from smrlab.sweeps.plan import plan_of

    volumes = [f"synth:hotcold,requests={5 + 2 * i}k,seed={i},interarrival=20ms" for i in range(36)]
    base = {"drive": "modern-7200,capacity=20GB", "wrap": "capacity"}
    grid = {"layer": ["s-block", "disk-cache", "rmw", "cmr", "log"], "trace": volumes, "stall": [
        f"{100 + i}ms" for i in range(200)]}  # fmt: skip
    whole = sweeps.Study.of({"base": base, "grid": grid})
    start = time.perf_counter()
    plan = plan_of(whole)
    told = time.perf_counter() - start
    part = sweeps.Study(whole.points[share // 2 :: share + 1])
    store = sweeps.Store(folder / "planned")
    forecast = plan_of(part)
    sweeps.run_study(part, store, LocalPool(2))
    from smrlab.sweeps.table import runs_table

    runs = runs_table(store)
    assert runs is not None
    used = sum(runs.column("cpu_s").to_pylist())
    return {
        "whole": plan, "told_after_s": told, "part_runs": len(part.points),
        "part_cpu_s": {"planned": forecast["cpu_s"], "measured": used,
                       "of_whole": plan["cpu_s"] * len(part.points) / plan["runs"]},
    }  # fmt: skip


def main() -> None:
    """Measures and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--sleepers", type=int, default=64)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        if args.runs:
            found["overhead"] = overhead(Path(made), args.runs)
            print(json.dumps(found["overhead"], indent=1), file=sys.stderr, flush=True)
        if args.sleepers:
            found["saturation"] = saturation(Path(made), args.sleepers)
            print(json.dumps(found["saturation"], indent=1), file=sys.stderr, flush=True)
        if args.plan:
            found["plan"] = planned(Path(made))
    text = json.dumps(found, indent=1)
    if args.json:
        args.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
