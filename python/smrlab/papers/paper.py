"""What a paper is made of: papers/ID/paper.toml and, beside it or in it, figures.toml and claims.toml.

A long list of experiments goes on in experiments-NAME.toml.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..shelf import home, listed

SCALES = ("quick", "full")


@dataclass(frozen=True)
class Experiment:
    """Runs over a grid: every text in `spec` may name a point's, the scale's, common or derived values in braces.

    A value of the grid that is a table stands under its `name`, and gives all its entries. `values` are keys of
    results computed from others: expressions over `v('key')`. `needs` are files of the folder of `--traces`. With
    `measure` (FILE.py:FUNCTION in the paper's folder) the function gives a point's result instead of the simulator.
    `missing` says what the program lacks for it.
    """

    id: str
    about: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    scale: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs: Sequence[str] = ()
    derive: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    measure: str | None = None
    missing: str | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of one experiment's runs.

    Kinds: `lines` of a key against a grid value (with `levels`, experiments of one run that are horizontal lines),
    `windows` of runs over time, `histograms` of response times in four scales, `curves` of two lists of the result,
    `bars` for each value of the grid. With `keys` (name, key) each of these is a line or a bar instead of `y`.
    `x_label` stands below the axis instead of `x` and its unit; `series` is the value of the grid that tells lines or
    bars apart, `names` what its values and the levels are called.
    """

    id: str
    title: str
    experiment: str
    kind: str
    unit: str
    y: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    x: str = ""
    x_unit: str = ""
    x_label: str = ""
    series: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    levels: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    until_s: float = float("inf")
    log: bool = False
    log_x: bool = False


@dataclass(frozen=True)
class Table:
    """A table: a row for each run of an experiment, a column for each key; `paper` is the paper's own rows.

    `also` are experiments whose first run is a row more.
    """

    id: str
    title: str
    experiment: str
    row: str
    columns: Mapping[str, str]
    also: tuple[str, ...] = ()
    paper: tuple[Mapping[str, Any], ...] = ()


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

    def uses(self) -> set[str]:
        """The names in its expressions: experiments, names of `let`, functions."""
        found = set()
        for text in filter(None, (*self.let.values(), self.holds, self.partly)):
            try:
                tree = ast.parse(text.strip(), mode="eval")
            except SyntaxError as e:
                raise InputError(f"claim {self.id}: {text!r}: {e.msg}") from None
            found |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        return found


@dataclass(frozen=True)
class Paper:
    """See the module. `names` are common texts and lists for the experiments, `scale` numbers for each scale."""

    id: str
    title: str
    citation: str
    setting: str
    folder: Path
    experiments: tuple[Experiment, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)
    scale: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Figure | Table, ...]:
        """All that is drawn, in the order of the page."""
        return (*self.figures, *self.tables)

    def experiments_of(self, part: str) -> list[str]:
        """The experiments that a figure or table is drawn from, and those that claims beside it use."""
        parts = {p.id: p for p in self.parts}
        if part not in parts:
            raise InputError(f"{self.id} has no figure '{part}': one of {', '.join(parts)}")
        words = {w for c in self.claims if c.figure == part for w in c.uses()}
        words |= {parts[part].experiment, *getattr(parts[part], "levels", ()), *getattr(parts[part], "also", ())}
        return [e.id for e in self.experiments if e.id in words]


def known() -> list[str]:
    """The ids of all papers, sorted."""
    return [paper["name"] for paper in listed()]


def load(name: str) -> Paper:
    """The paper of that id; an unknown one, or a file with a fault, is an InputError that names it."""
    path = home() / name / "paper.toml"
    if not path.is_file():
        raise InputError(f"unknown paper '{name}': one of {', '.join(known())}")
    try:
        doc = tomllib.loads(path.read_text())
        for more in ("figures.toml", "claims.toml"):
            if (beside := path.with_name(more)).is_file():
                doc |= tomllib.loads(beside.read_text())
        for more_experiments in sorted(path.parent.glob("experiments-*.toml")):
            doc["experiment"] += tomllib.loads(more_experiments.read_text())["experiment"]
        return Paper(
            id=name,
            title=doc["title"],
            citation=doc["citation"],
            setting=doc["setting"].strip(),
            folder=path.parent,
            experiments=tuple(Experiment(**e) for e in doc["experiment"]),
            figures=tuple(Figure(**f) for f in doc.get("figure", [])),
            claims=tuple(Claim(**c) for c in doc["claim"]),
            tables=tuple(Table(**t) for t in doc.get("table", [])),
            names=doc.get("names", {}),
            scale=doc.get("scale", {}),
        )
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as e:
        raise InputError(f"{path}: {e}") from None
