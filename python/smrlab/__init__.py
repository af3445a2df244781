"""A laboratory for shingled (SMR) disks: what would these drives do to my workload?

import smrlab
trace = smrlab.Trace.open("web_0.csv.gz")
result = smrlab.run(trace, drive="modern-7200", layer="rmw")
print(result.response_ms.p99)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import CheckFailed, InputError, Interrupted, MissingError, SmrlabError

if TYPE_CHECKING:
    from .api import compare, run, sweep
    from .layer import TranslationLayer
    from .report import write_report
    from .results import Result, Results, load_results
    from .trace import Trace

# Where each public name lives: a module is loaded when its name is first used, so that a command that needs none of
# them starts at once.
_HOMES = {
    "Result": "results",
    "Results": "results",
    "Trace": "trace",
    "TranslationLayer": "layer",
    "compare": "api",
    "load_results": "results",
    "run": "api",
    "sweep": "api",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'smrlab' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "CheckFailed",
    "InputError",
    "Interrupted",
    "MissingError",
    "Result",
    "Results",
    "SmrlabError",
    "Trace",
    "TranslationLayer",
    "__version__",
    "compare",
    "load_results",
    "run",
    "sweep",
    "write_report",
]
