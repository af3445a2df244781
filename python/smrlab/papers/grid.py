"""The points of an experiment's grid, each with the specification of its run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from ..api import make_spec
from ..errors import InputError
from .paper import Experiment, Paper

Point = dict[str, Any]


def filled(value: Any, names: dict[str, Any]) -> Any:
    """A value with its braces filled; a text that is one name alone becomes what the name stands for."""
    if isinstance(value, str):
        if value[:1] == "{" and value[1:-1] in names and value[-1:] == "}":
            return names[value[1:-1]]
        return value.format(**names)
    if isinstance(value, list):
        return [filled(v, names) for v in value]
    return value


def _common(paper: Paper, names: dict[str, Any]) -> dict[str, Any]:
    """The paper's own names: each may use those before it."""
    for name, value in paper.names.items():
        names[name] = filled(value, names)
    return names


# A trace may have been unpacked, or packed in another way than it is offered.
PACKED = (".gz", ".bz2", ".zst")


def find(traces: Path, name: str) -> Path | None:
    """A file of the folder of `--traces` by its name: there, in a folder below, or packed in another way."""
    bare = next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)
    names = [name, *(bare + end for end in ("", *PACKED))]
    exact = (traces / n for n in names)
    below = (p for n in names for p in sorted(traces.rglob(Path(n).name)))
    return next((p for p in itertools.chain(exact, below) if p.is_file()), None)


def _found(value: Any, files: dict[str, str]) -> Any:
    """A specification's value with traces where they were found."""
    if isinstance(value, list):
        return [_found(v, files) for v in value]
    for name, path in files.items() if isinstance(value, str) else ():
        value = value.replace(name, path)
    return value


def points(paper: Paper, experiment: Experiment, scale: str, traces: Path | None) -> list[tuple[Point, Point]]:
    """The points of an experiment's grid, each with its specification."""
    files = {f"{traces}/{name}": str(find(traces, name)) for name in experiment.needs} if traces else {}
    at_scale = {**paper.scale.get(scale, {}), **experiment.scale.get(scale, {})}
    grid = {key: at_scale.pop(key, values) for key, values in experiment.grid.items()}
    out = []
    for combination in itertools.product(*grid.values()):
        chosen = dict(zip(grid, combination, strict=True))
        names = {**at_scale, "traces": str(traces or ""), "here": str(paper.folder)}
        for key, value in chosen.items():
            names |= {**value, key: value["name"]} if isinstance(value, dict) else {key: value}
        point = {key: names[key] for key in grid}
        try:
            for name, text in experiment.derive.items():
                names[name] = eval(
                    text, {"__builtins__": {}, "min": min, "max": max, "round": round, "str": str}, names
                )
            names = _common(paper, names)
            spec = {key: _number(_found(filled(value, names), files)) for key, value in experiment.spec.items()}
        except (KeyError, NameError, TypeError) as e:
            raise InputError(f"papers/{paper.id}/paper.toml: experiment {experiment.id}: {e!r}") from None
        out.append((point, spec if experiment.measure else make_spec(None, spec)))
    return out


def _number(value: Any) -> Any:
    """Numbers of a specification that came as text out of braces."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value
