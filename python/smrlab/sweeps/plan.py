"""What a study would take, told before it is run: runs, processor time, memory, bytes, and time on so many cores."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrlab import _core, urls
from smrlab.errors import SmrlabError
from smrlab.layer import load
from smrlab.summary import REQUESTS

from .estimate import memory_of, requests_of
from .grid import Point
from .identity import files_of, parts
from .run import INDEX
from .store import RESULT, Store
from .study import Study
from .table import results_table, runs_table

# Runs that are measured, in all, and requests of each: the difference is what a request costs.
PROBES = 48
SHORT, LONG = 3_000, 30_000
# Seconds that measuring may take; what is left then is taken to be like the rest.
PATIENCE_S = 60.0
# Processor time that Dask's scheduler spends on a run, measured (docs/studies.md): it bounds the runs a second.
SCHEDULER_S = 0.004
CORES = (1, 8, 64, 512)
# Bytes of a request in a compressed trace, and in text.
PACKED, TEXT = 12, 48


@dataclass
class _Cost:
    """What the runs of a layer cost: seconds a run, seconds a request, bytes of results."""

    run_s: float
    request_s: float
    bytes: float


def plan_of(
    study: Study, store: Store | None = None, progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """What is left of a study in `store` would take. Raises InputError where a point is wrong."""
    points = list(study.points)
    sizes = {t: s for t in {t for p in points for t in _traces(p)} if (s := _requests(t))}
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(str(point.spec.get("layer", "cmr")).partition(",")[0], []).append(point)
    costs, basis = _costs(groups, store, progress)
    done = _done(store)
    cpu, requests, size, memory = 0.0, 0, 0.0, 0
    for layer, members in groups.items():
        for point in members:
            n = _of(point, sizes)
            requests += n
            cpu += costs[layer].run_s + costs[layer].request_s * n
            size += costs[layer].bytes
            memory = max(memory, point.memory or memory_of(point.spec))
    share = max(len(points) - done, 0) / len(points)
    return {
        "schema": 1, "runs": len(points), "done": done, "requests": requests, "cpu_s": cpu * share,
        "cpu_s_by_layer": {layer: share * sum(_seconds(costs[layer], _of(p, sizes)) for p in members)
                           for layer, members in groups.items()},
        "trace_bytes": sum(_bytes(t) for t in {t for p in points for t in _traces(p)}),
        "result_bytes": int(size * share), "memory_bytes_a_run": memory, "basis": basis,
        "time_s": {str(n): max(cpu * share / n, len(points) * share * SCHEDULER_S) for n in CORES},
    }  # fmt: skip


def _seconds(cost: _Cost, requests: int) -> float:
    return cost.run_s + cost.request_s * requests


def _of(point: Point, sizes: dict[str, int]) -> int:
    """Requests of a point."""
    made = sum(sizes.get(t, 0) for t in _traces(point))
    generated = requests_of({**point.spec, "limit": None, "trace": [t for t in _traces(point) if t not in sizes]}, {})
    limit = point.spec.get("limit")
    total = made + generated
    return min(total, int(_core.count(str(limit)))) if limit else total


def _traces(point: Point) -> list[str]:
    given = point.spec.get("trace") or []
    return [given] if isinstance(given, str) else list(given)


def _bytes(text: str) -> int:
    """Bytes of a trace's files."""
    total = 0
    for file, _ in parts(text):
        for name in files_of(file):
            total += int(urls.stamp(name).split()[0]) if urls.is_url(name) else Path(name).stat().st_size
    return total


def _requests(text: str) -> int:
    """Requests of a trace in a file: its rows where it is Parquet, else by its length."""
    total = 0
    for file, _ in parts(text):
        for name in files_of(file):
            if name.endswith((".parquet", ".pq")):
                total += _rows(name)
            else:
                packed = name.endswith((".gz", ".zst", ".xz", ".bz2", ".zip"))
                total += _bytes(name) // (PACKED if packed else TEXT)
    return total


def _rows(name: str) -> int:
    import pyarrow.parquet as pq

    if not urls.is_url(name):
        return int(pq.ParquetFile(name).metadata.num_rows)
    system, path = urls.filesystem(name)
    with system.open(path) as file:
        return int(pq.ParquetFile(file).metadata.num_rows)


def _done(store: Store | None) -> int:
    index = store.document(INDEX) if store else None
    if not store or not isinstance(index, dict):
        return 0
    there = {n.partition("/")[0] for n in store.times("points", RESULT)}
    return sum(entry["point"] in there for entry in index["points"])


def _costs(
    groups: dict[str, list[Point]], store: Store | None, progress: Callable[[float], None] | None
) -> tuple[dict[str, _Cost], str]:
    known = _known(store) if store else {}
    costs: dict[str, _Cost] = {}
    end = time.monotonic() + PATIENCE_S
    each = max(PROBES // len(groups), 1)
    probed = 0
    for i, (layer, members) in enumerate(groups.items()):
        if progress:
            progress(i / len(groups))
        if layer in known:
            costs[layer] = known[layer]
        elif time.monotonic() < end:
            step = max(len(members) // each, 1)
            # Not the same place of every grid.
            chosen = members[step // 2 :: step][:each]
            costs[layer] = _probed(chosen, end)
            probed += len(chosen)
    if not costs:
        costs = {layer: _Cost(0.0, 0.0, 0.0) for layer in groups}
    mean = _Cost(*(sum(getattr(c, f) for c in costs.values()) / len(costs) for f in ("run_s", "request_s", "bytes")))
    measured = f"{probed} short runs" if probed else ""
    there = f"the runs in {store}" if known else ""
    return {layer: costs.get(layer, mean) for layer in groups}, " and ".join(t for t in (there, measured) if t)


def _known(store: Store) -> dict[str, _Cost]:
    """What the runs of each layer took that were done through this store; of a large study, some of each part."""
    runs = runs_table(store)
    if runs is None:
        return {}
    rows = {r["point"]: r for r in results_table(store).to_pylist()}
    found: dict[str, list[tuple[float, float]]] = {}
    done = runs.to_pylist()
    for run in done[:: -(-len(done) // PROBES) or 1]:
        row = rows.get(run["point"])
        document = store.document(f"points/{run['point']}/{RESULT}") if row else None
        if row and document:
            layer = str(document["spec"]["layer"]).partition(",")[0]
            requests = sum(row.get(f"host.{k}") or 0 for k in REQUESTS)
            found.setdefault(layer, []).append((run["cpu_s"], requests))
    return {
        layer: _Cost(0.0, sum(c for c, _ in rows) / max(sum(n for _, n in rows), 1), 60e3)
        for layer, rows in found.items()
    }


def _probed(points: Sequence[Point], end: float) -> _Cost:
    """What runs cost, by the beginnings of some."""
    run_s, request_s, size, count = 0.0, 0.0, 0.0, 0
    for point in points:
        if count and time.monotonic() > end:
            break
        try:
            (short, few, _), (long, many, bytes_) = (_timed(point, n) for n in (SHORT, LONG))
        except SmrlabError:
            # It will be a row with its reason.
            continue
        request = max(long - short, 0.0) / (many - few) if many > few else long / max(many, 1)
        run_s += max(short - request * few, 0.0)
        request_s += request
        size += bytes_
        count += 1
    return _Cost(run_s / count, request_s / count, size / count) if count else _Cost(0.0, 0.0, 0.0)


def _timed(point: Point, requests: int) -> tuple[float, int, int]:
    """Processor time of a run of the first requests, how many these were, and bytes of its results."""
    limit = min(requests, int(_core.count(str(point.spec.get("limit") or requests))))
    own = load(str(point.spec.get("layer", "")))
    spec = {k: v for k, v in point.spec.items() if k not in ("requests", "media_log", "save_state")}
    start = time.process_time()
    text, tables = _core.run(json.dumps({**spec, "limit": limit}), _core.Control(), None, own)
    took = time.process_time() - start
    host = json.loads(text)["host"]
    served = sum(host.get(k, 0) for k in REQUESTS)
    return took, served, len(text) + sum(map(len, tables.values()))
