"""Studies: many runs from one file, on one machine or many, resumable, with one table of all results."""

from .grid import Point, expand
from .run import Follow, Outcome, Progress, run_points
from .store import Store
from .study import Study, load, run_study
from .sweep import Sweep
from .table import plot, results_table

__all__ = [
    "Follow",
    "Outcome",
    "Point",
    "Progress",
    "Store",
    "Study",
    "Sweep",
    "expand",
    "load",
    "plot",
    "results_table",
    "run_points",
    "run_study",
]
