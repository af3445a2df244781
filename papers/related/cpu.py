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
# The shorter run of two has this part of the longer one's requests.
SHORTER = 4


def beside_cmr(spec: Doc, control: _core.Control) -> Doc:
    """The median of the ratio of pairs, and its extremes, for the requests by which a run is longer than a shorter one.

    What a run takes beside its requests is in both, so it is in neither figure: prefill, start, results.
    """
    many = int(spec["limit"])

    def took(layer: str, limit: int) -> float:
        text = json.dumps(make_spec(None, {**spec, "layer": layer, "limit": limit}))
        before = time.process_time()
        _core.run(text, control, None)
        return time.process_time() - before

    def requests(layer: str) -> float:
        return took(layer, many) - took(layer, many // SHORTER)

    requests("cmr")
    pairs = [(requests(spec["layer"]), requests("cmr")) for _ in range(PAIRS)]
    ratios = [own / cmr for own, cmr in pairs]
    each = statistics.median(own for own, _ in pairs) / (many - many // SHORTER)
    return {
        "ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)},
        "request_ns": each * 1e9,
    }
