"""Made-up result folders that follow the schema, for testing what is drawn from them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LAYERS = (
    "cmr",
    "rmw",
    "static-1234",
    "static-R(4123)",
    "static-124R(3)",
    "disk-cache,cache=1%",
    "s-block",
    "raw",
    "log",
)


def fake_run(index: int, layer: str) -> dict[str, Any]:
    """A document as one run would give, with figures that rise with `index`."""
    slow = 1 + 0.7 * index
    busy = 180.0 + 40 * index
    return {
        "schema": 1,
        "spec": {
            "trace": {"source": "examples/pgbench.parquet", "limit": None},
            "drive": "modern-7200",
            "layer": layer,
            "scheduler": {"name": "sptf", "depth": 32},
            "arrivals": "trace",
            "seed": 1,
        },
        "provenance": {"version": "0.1.0", "git": "0123abc", "trace_digest": "9f86d081", "seed": 1},
        "host": {"reads": 30000, "writes": 70000, "blocks_read": 240000, "blocks_written": 560000},
        "write_overloading": slow,
        "war": {"per_update": slow + 0.4, "per_write": slow, "per_request": slow},
        "response_ms": {"mean": 9 * slow, "p50": 6 * slow, "p90": 15 * slow, "p99": 60 * slow, "max": 400 * slow},
        "iops": 333.0 / slow,
        "mb_per_s": 1.4 / slow,
        "makespan_s": 600.0,
        "busy_s": busy,
        "cleaning": {"count": 10 * index, "total_s": 20.0 * index},
        "offered_load": 0.35 * slow,
        "space": {
            "gain": 2.1 - 0.2 * index,
            "efficiency": 1 - 0.07 * index,
            "host_blocks": 10**10,
            "map_bytes_peak": 4096 * 9**index,
        },
        "time_by_cause_s": {"host": 100.0, "clean": 20.0 * index, "metadata": 2.0, "seek": busy - 102 - 20 * index},
    }


def fake_tables(index: int, windows: int = 300) -> dict[str, pa.Table]:
    """Timeline, histogram and heat map of a made-up run of 600 s."""
    rng = random.Random(index)
    width = 600 / windows
    rows = []
    for w in range(windows):
        idle = 200 < w * width < 230
        done = 0 if idle else int(width * (140 + 60 * math.sin(w / 30) + rng.uniform(-20, 20)))
        mean = None if idle else (5 + 4 * index) * (1 + 0.5 * math.sin(w / 20)) * rng.uniform(0.8, 1.3)
        track = 40000 + 30000 * math.sin(w / 40 + index)
        writes = done * 5
        rows.append(
            {
                "start_s": w * width,
                "end_s": (w + 1) * width,
                "arrivals": done + rng.randint(0, 3),
                "completions": done,
                "read_blocks": done * 3,
                "write_blocks": writes,
                "media_blocks_read": int(writes * index * 0.6),
                "media_blocks_written": int(writes * (1 + 0.7 * index * rng.uniform(0.6, 1.4))),
                "response_ms_mean": mean,
                "response_ms_max": None if mean is None else mean * rng.uniform(5, 30),
                "busy_share": 0.0 if idle else min(1.0, 0.3 + 0.12 * index),
                "cleaning_share": 0.0 if idle else 0.05 * index,
                "backlog": rng.randint(0, 4 + 8 * index),
                "head_track_min": int(track - 9000),
                "head_track_max": int(track + 9000),
                "head_track_mean": track,
            }
        )
    return {"timeline": pa.Table.from_pylist(rows), "histogram": _histogram(index, rng), "heatmap": _heatmap()}


def _histogram(index: int, rng: random.Random) -> pa.Table:
    rows = []
    for kind, middle in (("response", 8.0), ("read_response", 5.0), ("write_response", 10.0), ("service", 4.0)):
        for b in range(90):
            lo = 0.05 * 1.12**b
            spread = (math.log(lo / middle / (1 + 0.5 * index)) / (0.6 + 0.08 * index)) ** 2
            count = int(30000 * math.exp(-spread / 2) + rng.uniform(0, 3))
            rows.append({"kind": kind, "lo_ms": lo, "hi_ms": lo * 1.12, "count": count})
    return pa.Table.from_pylist(rows)


def _heatmap() -> pa.Table:
    rng = random.Random(7)
    rows = []
    for w in range(120):
        for b in range(64):
            hot = math.exp(-(((b - 12) / 3) ** 2)) * 900 + math.exp(-(((b - w / 2) / 2) ** 2)) * 300
            reads, writes = int(hot * rng.random()), int(hot * rng.random() * 0.6)
            if reads or writes:
                rows.append(
                    {"window": w, "start_s": w * 5.0, "bin": b, "lba_lo": b * 10**8, "lba_hi": (b + 1) * 10**8}
                    | {"reads": reads, "writes": writes}
                )
    return pa.Table.from_pylist(rows)


def write_compare(folder: Path, count: int, windows: int = 300) -> Path:
    """A comparison of the first `count` layers."""
    runs = []
    for i, layer in enumerate(LAYERS[:count]):
        sub = folder / "runs" / f"{i + 1:02}-run"
        sub.mkdir(parents=True)
        for name, table in fake_tables(i, windows).items():
            pq.write_table(table, sub / f"{name}.parquet")
        runs.append({"name": layer, **fake_run(i, layer)})
    (folder / "result.json").write_text(json.dumps({"schema": 1, "runs": runs}))
    return folder


def write_single(folder: Path, tables: bool = True) -> Path:
    """One run, with or without its tables."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(fake_run(1, "rmw")))
    for name, table in fake_tables(1).items() if tables else ():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder
