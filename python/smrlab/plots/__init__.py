"""The report's figures as SVG for papers: readable in grey, with units on the axes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ..errors import InputError
from ..payload import Recorded, runs_payload
from . import figures
from .style import save

Payload = list[dict[str, Any]]

# The figures, each with what it needs to be worth drawing.
FIGURES: dict[str, Callable[[Payload], Figure | None]] = {
    "iops": figures.iops,
    "response": figures.response,
    "response-max": figures.response_max,
    "distribution": figures.distribution,
    "write-amplification": figures.write_amplification,
    "causes": figures.causes,
    "cleaning": figures.cleaning,
    "drives": figures.drives,
    "stalls": figures.stalls,
    "cache": figures.cache,
    "zones": figures.zones,
    "backlog": figures.backlog,
    "heatmap": figures.heat,
    "head": figures.head,
    "space": figures.space,
}


class Plotter:
    """Draws figures of one or several runs; each method gives a matplotlib Figure, or saves it to `path`."""

    def __init__(self, runs: Sequence[Recorded]) -> None:
        self._runs = list(runs)
        self._cache: Payload | None = None

    def _payload(self) -> Payload:
        if self._cache is None:
            self._cache = runs_payload(self._runs)
        return self._cache

    def draw(self, name: str, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """The named figure, or None where the results hold nothing for it; saved as SVG, PDF or PNG, as `path` ends."""
        if name not in FIGURES:
            raise InputError(f"there is no figure '{name}'; there are: {', '.join(FIGURES)}")
        figure = FIGURES[name](self._payload())
        if figure is not None and path is not None:
            save(figure, Path(path))
        return figure

    def save_all(self, folder: Path) -> list[Path]:
        """Every figure that applies as `folder/NAME.svg`; those of an earlier drawing that no longer apply go."""
        saved = []
        for name in FIGURES:
            path = folder / f"{name}.svg"
            if self.draw(name, path) is not None:
                saved.append(path)
            else:
                path.unlink(missing_ok=True)
        return saved

    def iops(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Requests completed per second over time."""
        return self.draw("iops", path)

    def response(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Mean response time over time."""
        return self.draw("response", path)

    def stalls(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Share of time in which a stalled request was waiting, over time."""
        return self.draw("stalls", path)

    def cache(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """How full the layer's cache is, over time."""
        return self.draw("cache", path)

    def zones(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Open and full zones, resets and refusals over time, where drives have zones."""
        return self.draw("zones", path)

    def distribution(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Response-time distribution, from below and of the tail."""
        return self.draw("distribution", path)

    def write_amplification(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Blocks written on the medium per block written by the host, over time."""
        return self.draw("write-amplification", path)

    def causes(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Where the drive's busy time went."""
        return self.draw("causes", path)

    def drives(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Share of time in which each drive of an array worked."""
        return self.draw("drives", path)

    def heatmap(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Requests by time and LBA."""
        return self.draw("heatmap", path)

    def head(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Head position over time."""
        return self.draw("head", path)

    def space(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Space efficiency and peak memory of the maps."""
        return self.draw("space", path)
