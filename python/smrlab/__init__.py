"""A laboratory for shingled (SMR) disks: what would these drives do to my workload?

import smrlab
trace = smrlab.Trace.open("web_0.csv.gz")
result = smrlab.run(trace, drive="modern-7200", layer="rmw")
print(result.response_ms.p99)
"""

from __future__ import annotations

from ._version import __version__
from .api import compare, run
from .errors import CheckFailed, InputError, Interrupted, MissingError, SmrlabError
from .layer import TranslationLayer
from .report import write_report
from .results import Result, Results, load_results
from .trace import Trace

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
    "write_report",
]
