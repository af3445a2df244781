"""The papers, reproduced: each is data under papers/ID (experiments, figures, claims), run and judged here."""

from .claims import Verdict, worse
from .paper import Paper, known, load
from .reproduce import Reproduction, reproduce

__all__ = ["Paper", "Reproduction", "Verdict", "known", "load", "reproduce", "worse"]
