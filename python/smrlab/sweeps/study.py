"""A study as its user writes it: what is varied, how it is chosen, and what is stopped early."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrlab.errors import InputError
from smrlab.executors import Executor
from smrlab.files import read_text

from .grid import Point, expand
from .halving import Halving, run_halving
from .run import Follow, Outcome, run_points
from .store import Store


def _plain(value: Any) -> Any:
    """A value as the file of a study has it: NumPy's numbers, arrays, series, ranges and tuples too."""
    for name in ("tolist", "to_list"):
        if hasattr(value, name):
            return _plain(getattr(value, name)())
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(part) for part in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


@dataclass(frozen=True)
class Study:
    """The points of a study, and how hopeless ones are told where they are."""

    points: list[Point]
    halving: Halving | None = None

    @classmethod
    def of(cls, spec: str | os.PathLike[str] | Mapping[str, Any]) -> Study:
        """The study of a file, or of its tables. Raises InputError where it is none."""
        if isinstance(spec, Mapping):
            return cls._of(_plain(spec), "the sweep", Path())
        if not isinstance(spec, str | os.PathLike):
            raise InputError(f"the sweep: {type(spec).__name__} is none: give its file's name, or a dict of tables")
        path = Path(spec)
        try:
            document = tomllib.loads(read_text(path))
        except OSError as fault:
            raise InputError(f"{path}: cannot be read: {fault.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
            raise InputError(f"{path}: not valid TOML: {fault}") from None
        return cls._of(document, str(path), path.parent)

    @classmethod
    def _of(cls, document: dict[str, Any], where: str, folder: Path) -> Study:
        halving = document.pop("halving", None)
        points = expand(document, where, folder)
        return cls(points, None if halving is None else Halving.of(halving, where))


def load(path: Path) -> list[Point]:
    """The points of the study file `path`, in a stable order.

    Raises InputError where the file is unreadable, is no study, or has no points.
    """
    return Study.of(path).points


def run_study(study: Study, store: Store, executor: Executor, follow: Follow | None = None) -> Outcome:
    """Runs what a study needs and `store` does not hold. See `run_points`."""
    if study.halving:
        return run_halving(study.points, study.halving, store, executor, follow)
    return run_points(study.points, store, executor, follow)
