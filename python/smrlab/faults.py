"""What `device inject` breaks."""

from __future__ import annotations

import re
from typing import Any

from .errors import InputError

# Blocks of a medium, or operations on it.
MOST = 1 << 60
# Nanoseconds that the model's clock has: 292 years.
LONGEST = (1 << 63) - 1


def nanoseconds(option: str, text: str) -> int:
    """A time with its unit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", text)
    if not found:
        raise InputError(f"{option} {text}: write a time such as 5ms")
    ns = int(float(found[1]) * {"us": 1e3, "ms": 1e6, "s": 1e9}[found[2]])
    if ns > LONGEST:
        raise InputError(f"{option} {text}: longer than the clock goes, 292 years")
    return ns


def asked(unreadable: str | None, slow: str | None, error_at: int | None, cut_at: int | None, clear: bool) -> bool:
    """Whether any of these faults is to be injected."""
    return clear or any(fault is not None for fault in (unreadable, slow, error_at, cut_at))


def faults(
    unreadable: str | None, slow: str | None, error_at: int | None, cut_at: int | None, clear: bool
) -> dict[str, Any]:
    """The request of `device inject`."""
    request: dict[str, Any] = {"clear": clear}
    if unreadable is not None:
        found = re.fullmatch(r"(\d+)(?:\+(0*[1-9]\d*))?", unreadable)
        if not found:
            raise InputError(f"--unreadable {unreadable}: write FIRST+BLOCKS, such as 4096+8")
        request["unreadable"] = [int(found[1]), int(found[1]) + int(found[2] or 1)]
        if request["unreadable"][1] > MOST:
            raise InputError(f"--unreadable {unreadable}: no medium has so many blocks")
    if slow is not None:
        request["slow_ns"] = nanoseconds("--slow", slow)
    for option, at in (("--error-at", error_at), ("--cut-at", cut_at)):
        if at is not None and not 0 <= at <= MOST:
            raise InputError(f"{option} {at} is not accepted: a whole number from 0 to {MOST}")
    request |= {k: v for k, v in (("error_at", error_at), ("cut_at", cut_at)) if v is not None}
    if not asked(unreadable, slow, error_at, cut_at, clear):
        raise InputError("nothing to inject: give --unreadable, --slow, --error-at, --cut-at, --zone or --clear")
    return request
