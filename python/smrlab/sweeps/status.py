"""How far a study is, told from its files alone: from anywhere, while it runs and after."""

from __future__ import annotations

import time
from typing import Any

from smrlab.errors import InputError

from .claims import CLAIMS, alive
from .run import INDEX, SCHEMA
from .store import RESULT, Store
from .task import FAILED

# The rate is that of the latest runs, so many.
LATEST = 200


def status(store: Store) -> dict[str, Any]:
    """Runs, done, failed and running, runs a second and seconds left, and the reasons of those that failed.

    Raises InputError where there is no study.
    """
    index = store.document(INDEX)
    if not isinstance(index, dict) or "points" not in index:
        raise InputError(f"{store}: holds no sweep ({INDEX} is not there)")
    if index.get("schema") != SCHEMA:
        raise InputError(
            f"{store}: an earlier version made this sweep (schema {index.get('schema')}, this one reads {SCHEMA}): "
            "its results stay where they are; the sweep itself, run again, makes its own beside them"
        )
    settings = {entry["point"]: entry["settings"] for entry in index["points"]}
    ended = store.times("points", ".json")
    done = {n.partition("/")[0]: t for n, t in ended.items() if n.endswith(f"/{RESULT}")}
    done = {a: t for a, t in done.items() if a in settings}
    failed = {n.partition("/")[0] for n in ended if n.endswith(f"/{FAILED}")} & set(settings) - set(done)
    running = []
    for name in store.times(CLAIMS):
        claim = store.document(f"{CLAIMS}/{name}")
        a = name.removesuffix(".json")
        if a in settings and a not in done and alive(claim):
            running.append({"settings": settings[a], "point": a, "host": claim.get("host")})
    left = len(settings) - len(done) - len(failed)
    rate = _rate(sorted(done.values()), bool(running))
    reasons = [{"settings": settings[a], "reason": _reason(store, a)} for a in sorted(failed)]
    document = {
        "schema": 1, "engine": index["engine"], "runs": len(settings), "done": len(done), "failed": len(failed),
        "left": left, "running": running, "failures": reasons,
    }  # fmt: skip
    if rate:
        document |= {"runs_per_s": rate, "left_s": left / rate}
    return document


def _reason(store: Store, a: str) -> str:
    document = store.document(f"points/{a}/{FAILED}")
    return str(document["reason"]) if document else ""


def _rate(times: list[float], running: bool) -> float | None:
    """Runs a second of the latest ones, up to now where some are under way."""
    latest = times[-LATEST:]
    if not running or len(latest) < 2:
        return None
    return (len(latest) - 1) / max(time.time() - latest[0], 1e-3)
