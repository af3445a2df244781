"""Processor time of requests beside that of a conventional drive: the only figures that depend on the machine."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

from smrlab import _core
from smrlab.api import make_spec

Doc = dict[str, Any]
# Pairs of runs, one behind the other, so that both have the same neighbours.
PAIRS = 3


def beside_cmr(spec: Doc, control: _core.Control) -> Doc:
    """The median of the ratio of pairs, and its extremes, less what a run of one request takes: its prefill."""

    def took(layer: str, more: Doc) -> float:
        text = json.dumps(make_spec(None, {**spec, "layer": layer, **more}))
        before = time.process_time()
        _core.run(text, control, None)
        return time.process_time() - before

    def requests(layer: str) -> float:
        return took(layer, {}) - took(layer, {"limit": 1})

    requests("cmr")
    ratios = [requests(spec["layer"]) / requests("cmr") for _ in range(PAIRS)]
    return {"ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}}
