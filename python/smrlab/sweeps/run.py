"""Runs the points of a sweep: one folder a point, named by the content of what it computes.

A point's folder is ``points/<address>``; the address is a digest of the resolved specification, of the traces' content
and of the engine's version. So a sweep that was killed goes on where it was, and one that was edited runs only what
changed: an address that has a ``result.json`` is never computed again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrlab import _core
from smrlab.errors import CheckFailed, InputError, SmrlabError
from smrlab.layer import load
from smrlab.outdir import filling, write_whole
from smrlab.results import Result
from smrlab.trace import standard_input
from smrlab.work import Watch, Work, attend

from .grid import Point
from .table import write_table


@dataclass(frozen=True)
class Outcome:
    """What became of a sweep."""

    points: int
    reused: int
    finished: int
    failed: dict[str, str]
    interrupted: bool


class Digests:
    """The content digest of each trace and layer file, remembered in the sweep's folder by size and time of change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[Any]] = {}
        if path.is_file():
            self._known = json.loads(path.read_text())

    def of(self, source: str) -> str:
        """The digest of the file that a trace or a Python layer is in; a generator is what it says."""
        name = source if Path(source).is_file() else source.rpartition(":")[0]
        if source.startswith("synth:") or not Path(name).is_file():
            return source
        stat = Path(name).stat()
        stamp = [stat.st_size, stat.st_mtime_ns]
        known = self._known.get(name)
        if known is None or known[:2] != stamp:
            with Path(name).open("rb") as file:
                known = [*stamp, hashlib.file_digest(file, "sha256").hexdigest()]
            self._known[name] = known
        return str(known[2])

    def save(self) -> None:
        """Writes what is known."""
        write_whole(self._path, json.dumps(self._known).encode())


def address(resolved: str, digests: Digests) -> str:
    """The content address of a resolved specification (as JSON): 16 hexadecimal digits."""
    spec = json.loads(resolved)
    files = [digests.of(source) for source in spec.get("trace", [])]
    if ".py:" in spec["layer"]:
        files.append(digests.of(spec["layer"]))
    text = json.dumps([_core.version(), spec, files], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_sweep(points: Sequence[Point], out: Path, *, jobs: int | None = None, watch: Watch | None = None) -> Outcome:
    """Runs what is missing of `points` on `jobs` threads (default: one a core) and writes `results.parquet`.

    A point that fails does not stop the others. Ctrl-C keeps what was finished. Raises InputError, before anything
    runs, where the specification of a point is wrong.
    """
    if not points:
        raise InputError("the sweep has no points")
    for point in points:
        traces = point.spec.get("trace") or []
        if any(standard_input(t) for t in ([traces] if isinstance(traces, str) else traces)):
            raise InputError(
                "a sweep cannot read its trace from standard input, for each point reads it, and again when it goes "
                "on: store it first (smrlab trace convert - -o t.parquet)"
            )
    folder = out / "points"
    digests = Digests(out / "digests.json")
    addressed = [(point, address(_resolved(point), digests)) for point in points]
    unique = {a: point for point, a in addressed}
    missing = {a: point for a, point in unique.items() if not (folder / a / "result.json").is_file()}
    index = [{"settings": point.settings, "point": a} for point, a in addressed]
    write_whole(out / "sweep.json", (json.dumps({"schema": 1, "points": index}, indent=1) + "\n").encode())
    digests.save()
    work = [(_title(point), _work(point, folder / a)) for a, point in missing.items()]
    done, interrupted = attend(work, jobs, watch) if work else ([], False)
    titles = [title for title, _ in work]
    failed = {titles[i]: fault for i, fault in done if fault is not None}
    write_table(out)
    return Outcome(len(unique), len(unique) - len(missing), len(done) - len(failed), failed, interrupted)


def _resolved(point: Point) -> str:
    try:
        return _core.resolved(json.dumps(point.spec), load(point.spec.get("layer", "")))
    except InputError as fault:
        raise InputError(f"point {_title(point)}: {fault}") from None


def _title(point: Point) -> str:
    return " ".join(f"{k}={v}" for k, v in point.settings.items()) or "the only point"


def _work(point: Point, folder: Path) -> Work[str | None]:
    """A piece of work whose value is the message of what went wrong, or None."""

    own = load(point.spec.get("layer", ""))

    def work(control: _core.Control) -> str | None:
        # A folder without a document is what a kill at the wrong moment left.
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with filling(folder) as temporary:
                doc, tables = _core.run(json.dumps(point.spec), control, str(temporary), own)
                Result(_title(point), json.loads(doc), None, tables).save(temporary)
        except (CheckFailed, InputError) as fault:
            return str(fault)
        except Exception as fault:
            if own is None or isinstance(fault, SmrlabError):
                raise
            return f"{point.spec['layer']}: {type(fault).__name__}: {fault}"
        return None

    return work
