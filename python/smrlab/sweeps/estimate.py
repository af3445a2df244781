"""What a run will take, told beforehand: memory of one, processor time of all."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

from smrlab import _core
from smrlab.errors import InputError

# The program itself with its tables, a trace that is being read, and the count of what was written.
BASE = 256 << 20
# A request leaves at most about so much in a layer's maps: an extent there and back, and what was written in it.
A_REQUEST = 160
# Requests that are taken for a trace of which only its length in bytes is known, per byte of it.
A_BYTE = 1 / 12


def requests_of(spec: dict[str, Any], sizes: dict[str, int]) -> int:
    """Requests of a run, as far as they can be told without reading its trace; `sizes` in bytes of what is in files."""
    traces = spec.get("trace") or []
    total = 0.0
    for text in [traces] if isinstance(traces, str) else traces:
        if text.startswith("synth:"):
            given = dict(p.partition("=")[::2] for p in text.split(",")[1:])
            total += count(given.get("requests", "100k"))
        else:
            total += sizes.get(text, 0) * A_BYTE
    limit = spec.get("limit")
    return int(min(total, count(str(limit))) if limit else total)


def count(text: str) -> int:
    """A count such as 100k; 0 where it is none."""
    try:
        return int(_core.count(text))
    except InputError:
        return 0


def memory_of(spec: dict[str, Any]) -> int:
    """Bytes of memory that a run needs, from above; `memory = "4GiB"` in a specification knows better."""
    return BASE + A_REQUEST * min(
        requests_of(spec, {}), _blocks(str(spec.get("drive", "")), str(spec.get("stack") or spec.get("array") or ""))
    )


@functools.cache
def _blocks(drive: str, array: str) -> int:
    """Blocks of a drive, which bound what maps can hold; no bound where there may be several drives."""
    if array not in ("", "single"):
        return sys.maxsize
    try:
        return int(json.loads(_core.drive_json(drive))["blocks"])
    except (InputError, KeyError):
        return sys.maxsize
