"""Figures 11 and 12: an emulated drive measured from outside, and the paper's fit to what was measured."""

from __future__ import annotations

import json
from typing import Any

from smrlab import _core

Doc = dict[str, Any]


def _zones(drive: str) -> list[tuple[int, int]]:
    return [(z["tracks"], z["usable"]) for z in json.loads(_core.geometry_of(drive))["zones"]]


def extract(spec: Doc, control: _core.Control) -> Doc:
    """Zones and skew by timed reads alone, and the polynomial of the paper's script through the tracks found."""
    doc = json.loads(_core.geometry_extract(f"sim:{spec['drive']}", False, False, False, None, control))
    found = [(z["tracks"], z["usable"]) for z in doc["zones"]]
    skew, turn = doc["skew"]["cylinder"]["value"], 60e3 / doc["rpm"]["value"]
    tracks = [size for n, size in found for _ in range(n)]
    # The text form of section 6.1: track, sectors, and microseconds from the first sector of the outermost track.
    text = "\n".join(f"{t} {size} {t * skew % 1.0 * turn * 1e3:.1f}" for t, size in enumerate(tracks))
    options = {"name": "fit", "polynomial": True, "degree": spec["degree"], "zones": spec["zones"], "least": 1000,
               "most": 2200, "rpm": doc["rpm"]["value"]}  # fmt: skip
    fitted = json.loads(_core.geometry_fit(text, json.dumps(options)))["runs"]
    rebuilt = [size for n, size in fitted for _ in range(n)]
    off = [abs(a / b - 1) for a, b in zip(rebuilt, tracks, strict=False)]
    step = max(1, len(tracks) // 2000)
    near = range(spec["from_track"], spec["from_track"] + 100)
    return {
        "exact": float(found == _zones(spec["drive"])), "zones": len(found), "rpm": doc["rpm"]["value"], "skew": skew,
        "period": 1 / skew if skew else 0.0, "requests": doc["quality"]["requests"],
        "minutes": doc["quality"]["seconds"] / 60, "fitted_zones": len(fitted), "fit_off": sum(off) / len(off),
        "fit_off_most": max(off), "blocks": doc["blocks"], "fitted_blocks": sum(n * size for n, size in fitted),
        "track": list(range(0, len(tracks), step)), "sectors": tracks[::step], "fitted": rebuilt[: len(tracks) : step],
        "near_track": list(near), "near_ms": [t * skew % 1.0 * turn for t in near],
    }  # fmt: skip
