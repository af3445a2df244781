"""Claims judged by what the runs of this reproduction measured; a verdict can turn red."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import InputError
from .paper import Claim, Paper
from .runs import Runs

ORDER = ("reproduced", "partly", "not", "not run")


def percentile(ascending: list[float], share: float) -> float:
    """The value that a share of all does not exceed (nearest rank)."""
    return ascending[max(0, min(len(ascending) - 1, -int(-share * len(ascending) // 1) - 1))]


def slope(x: list[float], y: list[float]) -> float:
    """Of the straight line of least squares."""
    return statistics.linear_regression(x, y).slope


# What an expression of a claim may use beside the experiments and the names before it.
FUNCTIONS: dict[str, Any] = {
    "abs": abs, "all": all, "any": any, "enumerate": enumerate, "float": float, "int": int, "len": len,
    "list": list, "max": max, "mean": statistics.fmean, "min": min, "percentile": percentile, "range": range,
    "round": round, "slope": slope, "sorted": sorted, "str": str, "sum": sum, "zip": zip,
}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A claim as judged by one run."""

    id: str
    statement: str
    paper: str
    ours: str
    tolerance: str
    verdict: str
    why: str

    def row(self) -> dict[str, str]:
        """As results have it."""
        return asdict(self)


def _evaluate(paper: Paper, claim: Claim, text: str, names: Mapping[str, Any]) -> Any:
    try:
        # The text is a file of the project's own, as its code is; names are all it can reach.
        return eval(text, {"__builtins__": {}, **FUNCTIONS, **names})
    except InputError:
        raise
    except Exception as e:
        raise InputError(f"papers/{paper.id}: claim {claim.id}: {text!r}: {type(e).__name__}: {e}") from None


def judge(
    paper: Paper, claim: Claim, experiments: Mapping[str, Runs], absent: Mapping[str, str], scale: str
) -> Verdict:
    """The verdict on a claim; `absent` are the experiments that could not be run, each with the reason."""
    facts = {"id": claim.id, "statement": claim.statement, "paper": claim.paper, "tolerance": claim.tolerance}
    used = claim.uses()
    missing = [why for name, why in absent.items() if name in used]
    if claim.only and claim.only != scale:
        missing.append(f"only at {claim.only} scale")
    if missing:
        return Verdict(**facts, ours="", verdict="not run", why="; ".join(sorted(set(missing))))
    names: dict[str, Any] = dict(experiments)
    for name, text in claim.let.items():
        names[name] = _evaluate(paper, claim, text, names)
    verdict = "not"
    if _evaluate(paper, claim, claim.holds, names):
        verdict = "reproduced"
    elif claim.partly and _evaluate(paper, claim, claim.partly, names):
        verdict = "partly"
    measured = {name: names[name] for name in claim.let}
    return Verdict(**facts, ours=claim.ours.format(**measured), verdict=verdict, why=claim.why.format(**measured))


def worse(new: Verdict, recorded: str | None) -> bool:
    """Whether a verdict is worse than the one on record; a claim that was not run is not judged."""
    if recorded is None or "not run" in (new.verdict, recorded):
        return False
    return ORDER.index(new.verdict) > ORDER.index(recorded)
