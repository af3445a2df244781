"""What a paper is made of: papers/ID/paper.toml, read and checked."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError

SCALES = ("quick", "full")


@dataclass(frozen=True)
class Experiment:
    """Runs over a grid: every text in `spec` may name a point's, the scale's or derived values in braces."""

    id: str
    about: str
    spec: Mapping[str, Any]
    grid: Mapping[str, list[Any]]
    scale: Mapping[str, Mapping[str, Any]]
    needs: str | None = None
    derive: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure: lines of a key against a grid value, or windows of runs over time."""

    id: str
    title: str
    experiment: str
    kind: str
    y: str
    unit: str
    x: str = ""
    x_unit: str = ""
    series: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    until_s: float = float("inf")
    log: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim: `let` gives names to what was measured, `holds` (and `partly`) judge it, `ours` and `why` say it."""

    id: str
    statement: str
    paper: str
    tolerance: str
    holds: str
    ours: str
    let: Mapping[str, str] = field(default_factory=dict)
    partly: str | None = None
    why: str = ""
    figure: str | None = None
    needs: str | None = None
    only: str | None = None


@dataclass(frozen=True)
class Paper:
    """See the module."""

    id: str
    title: str
    citation: str
    setting: str
    folder: Path
    experiments: tuple[Experiment, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]


def home() -> Path:
    """The folder of the papers: $SMRLAB_PAPERS, or that of the checkout."""
    given = os.environ.get("SMRLAB_PAPERS")
    folder = Path(given) if given else Path(__file__).resolve().parents[3] / "papers"
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; the papers come with the source: set SMRLAB_PAPERS to its papers/")
    return folder


def known() -> list[str]:
    """The ids of all papers, sorted."""
    return sorted(p.parent.name for p in home().glob("*/paper.toml"))


def load(name: str) -> Paper:
    """The paper of that id; an unknown one, or a file with a fault, is an InputError that names it."""
    path = home() / name / "paper.toml"
    if not path.is_file():
        raise InputError(f"unknown paper '{name}': one of {', '.join(known())}")
    try:
        doc = tomllib.loads(path.read_text())
        return Paper(
            id=name,
            title=doc["title"],
            citation=doc["citation"],
            setting=doc["setting"],
            folder=path.parent,
            experiments=tuple(
                Experiment(grid=e.pop("grid", {}), scale=e.pop("scale", {}), **e) for e in doc["experiment"]
            ),
            figures=tuple(Figure(**f) for f in doc.get("figure", [])),
            claims=tuple(Claim(**c) for c in doc["claim"]),
        )
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as e:
        raise InputError(f"{path}: {e}") from None
