"""What the runs of a machine share on its disk: traces as columns, prefilled drives.

It is bounded: what was not used for the longest time goes.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Another folder, and how many bytes it may take.
FOLDER, LIMIT = "SMRLAB_INPUTS", "SMRLAB_INPUTS_BYTES"
BYTES = 20 << 30
Note = dict[str, Any]


def folder() -> Path:
    """Where inputs are kept: $SMRLAB_INPUTS, or a folder of this user where temporary files are."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else Path(tempfile.gettempdir()) / f"smrlab-inputs-{os.getuid()}"


@contextmanager
def held(key: str, make: Callable[[Path], Note]) -> Iterator[tuple[Path, Note]]:
    """The folder of an input and what is noted of it, made by one process where it is not there; kept while in use."""
    home = folder()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = home / key
    with (home / f".{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = noted(place)
        if note is None:
            note = _made(home, key, make)
        os.utime(place / "note.json")
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield place, note


def noted(place: Path) -> Note | None:
    """What is noted of an input; None where it is not there."""
    try:
        found: Note = json.loads((place / "note.json").read_text())
    except (OSError, ValueError):
        return None
    return found


def _made(home: Path, key: str, make: Callable[[Path], Note]) -> Note:
    partial = home / f".{key}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        note = make(partial)
        note["bytes"] = sum(p.stat().st_size for p in partial.iterdir())
        (partial / "note.json").write_text(json.dumps(note))
        shutil.rmtree(home / key, ignore_errors=True)
        partial.rename(home / key)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _bound(home, key)
    return note


def _bound(home: Path, new: str) -> None:
    """Removes what was not used for the longest time until the rest fits; what is in use stays."""
    limit = int(os.environ.get(LIMIT) or BYTES)
    found = []
    for place in home.iterdir():
        note = noted(place) if not place.name.startswith(".") else None
        if note is not None:
            with suppress(OSError):
                found.append(((place / "note.json").stat().st_mtime, int(note["bytes"]), place))
    total = sum(size for _, size, _ in found)
    for _, size, place in sorted(found):
        if total <= limit:
            return
        if place.name != new and _removed(home, place):
            total -= size


def _removed(home: Path, place: Path) -> bool:
    with (home / f".{place.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        shutil.rmtree(place, ignore_errors=True)
    return True
