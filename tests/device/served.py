"""What the tests of served devices share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from smrlab.devices import Device

Make = Callable[..., Device]


def need(*programs: str) -> None:
    """Skips the test, with the reason, where a client program is missing."""
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        pytest.skip(f"missing: {', '.join(missing)}")


def run(*command: str | Path, check: bool = True, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a client; its output is in the failure's message."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, check=False, cwd=cwd)
    assert not check or done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


def can_loop() -> None:
    """Skips where loop devices and FUSE cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices")
    if not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        pytest.skip("needs /dev/fuse and /dev/loop-control")
