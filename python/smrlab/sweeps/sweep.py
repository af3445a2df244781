"""A sweep that has been run, as its user holds it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .run import Outcome
from .store import Store

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Sweep:
    """Where a sweep is, and what became of its points."""

    store: Store
    outcome: Outcome

    @property
    def folder(self) -> Path:
        """The folder of its files; the working folder where they are in a store."""
        return self.store.local or Path()

    def table(self) -> pa.Table:
        """A row for every point that has ended: its settings, and every number of its result by dotted key."""
        from .table import results_table

        return results_table(self.store)

    def plot(
        self, metric: str, against: str, by: str | None = None, path: str | os.PathLike[str] | None = None
    ) -> Path:
        """Draws a column of the table over a setting, a line for each value of `by`; CSV beside it.

        `path` is an SVG, PDF or PNG by its ending; default: FOLDER/METRIC-AGAINST.svg. Raises InputError for a column
        that the table does not have.
        """
        from .table import plot

        drawn = Path(path) if path else self.folder / f"{metric}-{against}.svg"
        plot(self.table(), metric, against, drawn, by)
        return drawn
