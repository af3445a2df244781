"""Names that tests of the command line share with their fixtures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

TINY = "synth:uniform,requests=2000,write=70%,interarrival=20ms,span=1GB,seed=3"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Invoke(Protocol):
    """Runs `smrlab ARGS`."""

    def __call__(self, *args: str | Path) -> Ended: ...
