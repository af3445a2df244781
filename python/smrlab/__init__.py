"""A laboratory for shingled (SMR) disks: what would these drives do to my workload?"""

from __future__ import annotations

__version__ = "0.1.0"
