"""Runs a paper's experiments (again only what changed), and judges its claims."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import CheckFailed, InputError, Interrupted, MissingError
from ..executors import Executor, Piece, Work
from ..executors.local import LocalPool
from ..layer import load
from ..outdir import filling
from ..results import Result, load_results
from ..simulation import Ran, Simulation
from ..work import Watch, attend
from .claims import Verdict, judge
from .grid import Point, find, points
from .paper import Experiment, Paper
from .runs import Run, Runs

# Why a claim is not judged where only some experiments are run.
NOT_ASKED = "not asked for"
# What `measure` names: a specification and a control in, a result's document out.
Measure = Callable[[Point, _core.Control], dict[str, Any]]


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction found."""

    paper: Paper
    scale: str
    traces: Path | None
    experiments: dict[str, Runs]
    verdicts: list[Verdict]
    specs: dict[str, Point]


@dataclass(frozen=True)
class _Planned:
    """A point of an experiment and the folder of its results."""

    experiment: Experiment
    point: Point
    spec: Point
    folder: Path


def _program() -> str:
    """A number for the engine as built: results of another one are not taken for this one's."""
    return hashlib.sha256(Path(str(_core.__file__)).read_bytes()).hexdigest()[:16]


def _files(paper: Paper, experiment: Experiment, spec: Point) -> list[str]:
    """The contents of the paper's own files that the run depends on."""
    named = [str(spec.get("drive", "")).partition(",")[0], str(spec.get("layer", "")).rpartition(":")[0]]
    found = [Path(name) for name in named if name.endswith((".toml", ".py"))]
    if experiment.measure:
        found.append(paper.folder / experiment.measure.partition(":")[0])
    return [path.read_text() for path in found if path.is_file()]


def _folder(cache: Path, program: str, paper: Paper, experiment: Experiment, spec: Point) -> Path:
    parts = [program, json.dumps(spec, sort_keys=True), *_files(paper, experiment, spec)]
    if experiment.measure:
        parts.append(experiment.measure)
    return cache / hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _measure(paper: Paper, text: str) -> Measure:
    """The function that `FILE.py:FUNCTION` names in the paper's folder."""
    file, _, name = text.partition(":")
    spec = importlib.util.spec_from_file_location(f"{paper.id}_{Path(file).stem}", paper.folder / file)
    if spec is None or spec.loader is None or not (paper.folder / file).is_file():
        raise InputError(f"papers/{paper.id}: there is no {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Measure = getattr(module, name)
    return found


def _measuring(spec: Point, folder: Path, measure: Measure) -> Work[None]:
    def work(control: _core.Control) -> None:
        with filling(folder, shared=True) as inside:
            try:
                measured = measure(spec, control)
            except ConnectionError as e:
                # Not of the folder, and nothing that the machine lacks: the experiment failed.
                raise CheckFailed(f"a server that was measured does not answer: {e.strerror or e}") from e
            Result("measured", {"schema": 1, "spec": spec, **measured}).save(inside)

    return work


def _simulating(spec: Point, remote: bool) -> Simulation:
    own = load(str(spec.get("layer", "")))
    return Simulation(json.dumps(spec), own, None, bring=bool(remote or spec.get("requests") or spec.get("media_log")))


def _keep(ran: Ran, spec: Point, folder: Path) -> None:
    with filling(folder, shared=True) as inside:
        ran.write(inside)
        Result(spec["layer"], json.loads(ran.document), None, ran.tables).save(inside)


def _plan(
    paper: Paper, scale: str, cache: Path, traces: Path | None, only: Sequence[str]
) -> tuple[list[_Planned], dict[str, str]]:
    program, planned, absent = _program(), [], {}
    for experiment in paper.experiments:
        if only and experiment.id not in only:
            absent[experiment.id] = NOT_ASKED
        elif experiment.missing:
            absent[experiment.id] = experiment.missing
        elif gone := [name for name in experiment.needs if not (traces and find(traces, name))]:
            absent[experiment.id] = f"the trace {gone[0]} is not there (--traces DIR)"
        else:
            for point, spec in points(paper, experiment, scale, traces):
                folder = _folder(cache, program, paper, experiment, spec)
                planned.append(_Planned(experiment, point, spec, folder))
    return planned, absent


def _fill(paper: Paper, planned: Sequence[_Planned], executor: Executor, watch: Watch | None) -> dict[str, str]:
    """Runs what is missing; simulations side by side, measurements alone. Tells what could not be measured and why."""
    todo = {p.folder: p for p in planned if not p.folder.is_dir()}
    simulated, measured, absent = [], [], {}
    for folder, p in todo.items():
        title = f"{p.experiment.id} {' '.join(map(str, p.point.values()))}"
        if p.experiment.measure:
            work = _measuring(p.spec, folder, _measure(paper, p.experiment.measure))
            measured.append((p.experiment.id, Piece(title, work)))
        else:
            simulated.append((p, Piece(title, _simulating(p.spec, executor.remote))))
    kept = lambda number, ran: _keep(ran, simulated[number][0].spec, simulated[number][0].folder)  # noqa: E731
    _, interrupted = attend([piece for _, piece in simulated], executor, watch, each=kept)
    for experiment, piece in measured:
        if interrupted or experiment in absent:
            continue
        try:
            _, interrupted = attend([piece], LocalPool(1), watch)
        except MissingError as e:
            absent[experiment] = str(e)
    if interrupted:
        finished = sum(folder.is_dir() for folder in todo)
        raise Interrupted(f"interrupted; {finished} of {len(todo)} runs were finished and are kept")
    return absent


def reproduce(
    paper: Paper,
    scale: str,
    cache: Path,
    *,
    traces: Path | None = None,
    only: Sequence[str] = (),
    executor: Executor | None = None,
    watch: Watch | None = None,
) -> Reproduction:
    """Runs what is missing in `cache` on `executor` (default: all cores), and judges all claims (or only experiments
    of `only`). Measurements are made on this machine.

    Interrupted keeps what was finished; the next call goes on from there.
    """
    planned, absent = _plan(paper, scale, cache, traces, only)
    cache.mkdir(parents=True, exist_ok=True)
    absent |= _fill(paper, planned, executor or LocalPool(), watch)
    found: dict[str, list[Run]] = {}
    for p in planned:
        if p.experiment.id not in absent:
            run = Run(p.point, load_results(p.folder)[0], p.experiment.values)
            found.setdefault(p.experiment.id, []).append(run)
    experiments = {name: Runs(name, runs) for name, runs in found.items()}
    verdicts = [judge(paper, claim, experiments, absent, scale) for claim in paper.claims]
    specs = {p.experiment.id: p.spec for p in reversed(planned)}
    return Reproduction(paper, scale, traces, experiments, verdicts, specs)
