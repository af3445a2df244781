"""A result's folder, filled under a temporary name, so that nothing partial ever looks whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InputError, MissingError

# What earlier runs left under the final name, and new ones replace; anything else in the folder is kept.
_OURS = ("result.json", "report.html", "*.parquet", "*.svg", "runs")


@contextmanager
def filling(wanted: Path) -> Iterator[Path]:
    """A new folder beside `wanted`, whose content takes its place when the block ends without an error.

    Raises InputError where `wanted` holds something else than a result, MissingError where the system refuses.
    """
    _check(wanted)
    temporary = wanted.with_name(f".{wanted.name}.{os.getpid()}.partial")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
    except OSError as e:
        raise MissingError(f"{wanted}: cannot be written: {e.strerror}; choose another --out") from None
    try:
        yield temporary
        _replace(temporary, wanted)
    except OSError as e:
        remedy = "free space or choose another --out"
        raise MissingError(f"{wanted}: cannot be written: {e.strerror or e}; {remedy}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check(wanted: Path) -> None:
    if not wanted.name:
        raise InputError(f"{wanted}: names no folder; choose another --out")
    if wanted.is_dir():
        if any(wanted.iterdir()) and not (wanted / "result.json").is_file():
            raise InputError(f"{wanted}: holds something else than a result; remove it or choose another --out")
    elif wanted.exists():
        raise InputError(f"{wanted}: exists and is not a folder; choose another --out")


def _replace(temporary: Path, wanted: Path) -> None:
    """The document goes first and comes last: where it is, everything is."""
    if not wanted.exists():
        temporary.rename(wanted)
        return
    for pattern in _OURS:
        for old in wanted.glob(pattern):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for new in sorted(temporary.iterdir(), key=lambda p: p.name == "result.json"):
        new.rename(wanted / new.name)
