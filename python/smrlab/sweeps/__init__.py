"""Sweeps: many runs from one file, on all cores, resumable, with one table of all results."""

from .grid import Point, expand, load
from .run import Outcome, run_sweep
from .sweep import Sweep
from .table import plot, results_table

__all__ = ["Outcome", "Point", "Sweep", "expand", "load", "plot", "results_table", "run_sweep"]
