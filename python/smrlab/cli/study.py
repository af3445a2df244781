"""How commands show a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import text
from ..sweeps import Progress
from ..text import counted


def line(progress: Progress) -> str:
    """Runs done, under way, failed, a second, and what is left."""
    parts = [f"{progress.done} of {progress.points} done"]
    if progress.running:
        parts.append(f"{len(progress.running)} running")
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.rate:
        parts.append(f"{progress.rate:.3g} runs/s")
    if progress.left_s:
        parts.append(f"{span(progress.left_s)} left")
    return ", ".join(parts)


def span(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def plan(document: Mapping[str, Any]) -> Iterator[str]:
    """A plan as lines."""
    runs, requests = counted(document["runs"], "run"), counted(document["requests"], "request")
    yield f"{runs}, {document['done']:,} of them there; {requests}"
    yield f"processor time   {span(document['cpu_s'])} (by {document['basis']})"
    yield f"memory a run     {text.size(document['memory_bytes_a_run'])} at most, by estimate"
    yield (
        f"bytes            {text.size(document['trace_bytes'])} of traces, read once a machine; "
        f"{text.size(document['result_bytes'])} of results"
    )
    for cores, seconds in document["time_s"].items():
        yield f"{'on ' + counted(int(cores), 'core'):<17}{span(seconds)}"


def status(document: Mapping[str, Any]) -> Iterator[str]:
    """A status as lines."""
    yield (
        f"{counted(document['runs'], 'run')}: {document['done']} done, {len(document['running'])} running, "
        f"{document['failed']} failed, {document['left']} left"
    )
    if "left_s" in document:
        yield f"{document['runs_per_s']:.3g} runs/s, {span(document['left_s'])} left"
    for run in document["running"]:
        yield f"running on {run['host']}: {_settings(run['settings'])}"
    for failure in document["failures"]:
        yield f"failed: {_settings(failure['settings'])}: {failure['reason']}"


def summary(document: Mapping[str, Any]) -> Iterator[str]:
    """What mattered as lines."""
    from ..sweeps.summary import table_of

    for metric in document["metrics"]:
        yield from table_of(metric)
        yield ""


def _settings(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in settings.items()) or "the only point"
