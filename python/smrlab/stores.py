"""Stores of served devices, as files: copied, and deleted without anything that is not theirs."""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from .errors import MissingError

# Is told how much is done, 0 to 1.
Progress = Callable[[float], None]
# What a store is made of; `spill` is what a cut left between its making and its unlinking, iSCSI keeps the last two.
FILES = re.compile(
    r"header|lock|spill|(data|log|checkpoint)\.\d+|(header|checkpoint)(\.\d+)?\.new|(modes|reservations)(\.new)?"
)
# How a store's header begins.
MAGIC = b"smrlab-store "


def _is_inner(directory: Path) -> bool:
    """Whether a directory within a store is a store too: an array's disk, its SSD, anything with our header."""
    if not directory.is_dir() or directory.is_symlink():
        return False
    return bool(re.fullmatch(r"disk\.\d+|ssd", directory.name)) or is_store(directory)


def is_store(directory: Path) -> bool:
    """Whether there is a store in a directory: it begins with our header."""
    try:
        with (directory / "header").open("rb") as f:
            return f.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def delete_store(store: Path) -> None:
    """Deletes a store's own files and those of the stores within it; what else is there stays, and its directory."""
    _delete_files(store)
    # Fails where there is more in it than the store.
    with contextlib.suppress(OSError):
        store.rmdir()


def _delete_files(store: Path) -> None:
    for inner in store.iterdir():
        if _is_inner(inner):
            delete_store(inner)
    for file in store.iterdir():
        if FILES.fullmatch(file.name) and file.is_file():
            file.unlink()


class Unmade:
    """A store that is yet to be made, in a directory that is missing or has nothing in it."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.missing = [path for path in (store, *store.parents) if not path.exists()]
        self.blank = bool(self.missing) or (store.is_dir() and not any(store.iterdir()))

    def undo(self) -> None:
        """Deletes what a server that could not start has made of it, unless another server has it now."""
        if not self.blank:
            return
        with contextlib.suppress(OSError), (self.store / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _delete_files(self.store)
        for path in self.missing:
            with contextlib.suppress(OSError):
                path.rmdir()


def _allocated(directory: Path) -> int:
    """Bytes on disk of what is in a directory."""
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_blocks * 512
    return total


def copy_store(source: Path, target: Path, progress: Progress | None = None) -> None:
    """Copies a store that nobody serves: sparse, and copy-on-write where that is to be had; wholly, or not at all."""
    staged = target.with_name(f".{target.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    total = max(1, _allocated(source))
    command = ["cp", "-r", "--reflink=auto", "--sparse=always", str(source), str(staged)]
    try:
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as copy:
            while copy.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    copy.wait(0.1)
                if progress:
                    progress(min(1.0, _allocated(staged) / total))
            said = copy.stderr.read().strip() if copy.stderr else ""
        if copy.returncode != 0:
            raise MissingError(f"copying {source}: {said}")
        if progress:
            progress(1.0)
        staged.rename(target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
