"""Recordings of what a served device's clients do: none is written over."""

from __future__ import annotations

import glob
from pathlib import Path

from .errors import InputError


def refuse(record: str | None) -> None:
    """Refuses to record into a file that is there."""
    if record and Path(record).exists():
        raise InputError(f"--record {record}: is there already: name a new file")


def sweep(record: str | None) -> None:
    """Removes what servers that were killed had begun to record there; their number is part of its name."""
    path = Path(record) if record else None
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp") if path else ():
        number = left.name.split(".")[-2]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            left.unlink(missing_ok=True)


def put_aside(record: str | None) -> Path | None:
    """Gives what an earlier server recorded a name of its own, with the first free number (`NAME.1.parquet`): which."""
    sweep(record)
    path = Path(record) if record else None
    if path is None or not path.exists():
        return None
    number = 1
    while (kept := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    return path.rename(kept)
