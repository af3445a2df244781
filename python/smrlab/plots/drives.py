"""The picture of a drive: how fast it is where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from .style import COLORS, SETTINGS, new_figure, save_svg


def zones(doc: dict[str, Any]) -> Figure:
    """Rate over address, a step a zone, from a drive as the engine describes it."""
    first = [z["first_pba"] * 512 / 1e12 for z in doc["zones"]]
    edges = np.array([*first, doc["medium_blocks"] * 512 / 1e12])
    rates = [z["mb_per_s"] for z in doc["zones"]]
    with mpl.rc_context(SETTINGS):
        figure, (axes,) = new_figure()
        axes.stairs(rates, edges, fill=True, color=COLORS[5], alpha=0.35)
        axes.stairs(rates, edges, color=COLORS[0])
        axes.set_xlim(0, float(edges[-1]))
        axes.set_ylim(0, max(rates) * 1.08)
        axes.set_xlabel("address (TB)")
        axes.set_ylabel("rate of a track (MB/s)")
        axes.set_title(f"{doc['name']}: {doc['summary']}", fontsize=7, wrap=True)
    return figure


def save(doc: dict[str, Any], path: Path) -> None:
    """Writes the picture."""
    save_svg(zones(doc), path)
