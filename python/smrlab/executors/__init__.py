"""Where runs are done: on this machine's cores, or on a Dask cluster. Whoever has runs hands them to an executor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

from ..errors import InputError
from .contract import Executor, ExecutorLost, Failed, Input, Piece, Running, Work

__all__ = ["Executor", "ExecutorLost", "Failed", "Input", "Piece", "Running", "Work", "chosen"]


@contextmanager
def chosen(scheduler: str | None, jobs: int | None = None, client: Any = None) -> Iterator[Executor]:
    """The executor that `--scheduler` names: `local` (the default), `slurm`, or a Dask scheduler's address.

    `jobs` is the threads of a local one, the workers that are asked of Slurm. `client` is a `distributed.Client` that
    is used instead. Raises MissingError where Dask is not installed or its scheduler cannot be reached.
    """
    if jobs is not None and (not isinstance(jobs, Integral) or jobs < 1):
        raise InputError(f"jobs: {jobs!r} is not accepted: a whole number from 1 on")
    if client is None and scheduler in (None, "", "local"):
        from .local import LocalPool

        yield LocalPool(jobs)
        return
    from . import cluster

    with cluster.connected(scheduler or "", jobs, client) as executor:
        yield executor
