"""Recordings of what a served device's clients do: none is written over."""

from __future__ import annotations

from pathlib import Path

from .errors import InputError


def refuse(record: str | None) -> None:
    """Refuses to record into a file that is there."""
    if record and Path(record).exists():
        raise InputError(f"--record {record}: is there already: name a new file")


def put_aside(record: str | None) -> Path | None:
    """Gives what an earlier server recorded a name of its own, with the first free number (`NAME.1.parquet`): which."""
    path = Path(record) if record else None
    if path is None or not path.exists():
        return None
    number = 1
    while (kept := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    return path.rename(kept)
