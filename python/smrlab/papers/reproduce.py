"""Runs a paper's experiments (again only what changed), and judges its claims."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from ..api import make_spec
from ..errors import Interrupted
from ..outdir import filling
from ..results import Result, load_results
from ..work import Watch, Work, attend
from .claims import Verdict, judge
from .paper import Experiment, Paper
from .runs import Run, Runs


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction found."""

    paper: Paper
    scale: str
    experiments: dict[str, Runs]
    verdicts: list[Verdict]


def _filled(value: Any, names: dict[str, Any]) -> Any:
    if isinstance(value, str):
        return value.format(**names)
    if isinstance(value, list):
        return [_filled(v, names) for v in value]
    return value


def points(experiment: Experiment, scale: str, traces: Path | None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The points of an experiment's grid, each with its specification."""
    at_scale = dict(experiment.scale.get(scale, {}))
    grid = {key: at_scale.pop(key, values) for key, values in experiment.grid.items()}
    out = []
    for combination in itertools.product(*grid.values()):
        point = dict(zip(grid, combination, strict=True))
        names = {**at_scale, **point, "traces": str(traces or "")}
        for name, text in experiment.derive.items():
            names[name] = eval(text, {"__builtins__": {}}, names)
        spec = {key: _filled(value, names) for key, value in experiment.spec.items()}
        out.append((point, make_spec(None, {key: _number(value) for key, value in spec.items()})))
    return out


def _number(value: Any) -> Any:
    """Numbers of a specification that came as text out of braces."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _program() -> str:
    """A number for the engine as built: results of another one are not taken for this one's."""
    return hashlib.sha256(Path(str(_core.__file__)).read_bytes()).hexdigest()[:16]


def _folder(cache: Path, program: str, spec: dict[str, Any]) -> Path:
    text = json.dumps(spec, sort_keys=True)
    return cache / hashlib.sha256(f"{program}\n{text}".encode()).hexdigest()[:24]


def _job(spec: dict[str, Any], folder: Path) -> Work[None]:
    def work(control: _core.Control) -> None:
        with filling(folder) as inside:
            doc, tables = _core.run(json.dumps(spec), control, str(inside), None)
            result = Result(spec["layer"], json.loads(doc), None, tables)
            result.save(inside)

    return work


def reproduce(
    paper: Paper,
    scale: str,
    cache: Path,
    *,
    traces: Path | None = None,
    only: Sequence[str] = (),
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Reproduction:
    """Runs what is missing in `cache` and judges all claims (or only experiments of `only`).

    Interrupted keeps what was finished; the next call goes on from there.
    """
    program, absent = _program(), {}
    planned: list[tuple[Experiment, dict[str, Any], dict[str, Any], Path]] = []
    for experiment in paper.experiments:
        if only and experiment.id not in only:
            absent[experiment.id] = "not asked for"
        elif experiment.needs and not (traces and (traces / experiment.needs).exists()):
            absent[experiment.id] = f"the trace {experiment.needs} is not there (--traces DIR)"
        else:
            for point, spec in points(experiment, scale, traces):
                planned.append((experiment, point, spec, _folder(cache, program, spec)))
    todo = {f: (f"{e.id} {' '.join(map(str, p.values()))}", s) for e, p, s, f in planned if not f.is_dir()}
    cache.mkdir(parents=True, exist_ok=True)
    _, interrupted = attend([(name, _job(spec, folder)) for folder, (name, spec) in todo.items()], jobs, watch)
    if interrupted:
        finished = sum(f.is_dir() for f in todo)
        raise Interrupted(f"interrupted; {finished} of {len(todo)} runs were finished and are kept in {cache}")
    found: dict[str, list[Run]] = {}
    for experiment, point, _, folder in planned:
        found.setdefault(experiment.id, []).append(Run(point, load_results(folder)[0]))
    experiments = {name: Runs(name, runs) for name, runs in found.items()}
    verdicts = [judge(paper, claim, experiments, absent, scale) for claim in paper.claims]
    return Reproduction(paper, scale, experiments, verdicts)
