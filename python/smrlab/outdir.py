"""A result's folder, filled under a temporary name, so that nothing partial ever looks whole."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import InputError, MissingError
from .files import remedy
from .urls import is_url

# What earlier runs left under the final name, and new ones replace; anything else in the folder is kept.
_OURS = ("result.json", "report.html", "*.parquet", "*.svg", "runs")
# Fields that say what is recorded of a run, not what is run.
_RECORDING = frozenset({"requests", "media_log", "window"})
_PARTIAL = ".smrlab-partial"
# How often a folder is looked at again that another run finished meanwhile.
_TRIES = 10


@contextmanager
def filling(wanted: str | os.PathLike[str], *, shared: bool = False) -> Iterator[Path]:
    """A new folder whose content becomes that of `wanted`, a folder or a URL, when the block ends without an error.

    It lies inside `wanted` where that is a folder that exists, which may be a mount point, and beside it otherwise. It
    is locked until the block ends: nobody else fills `wanted` on this machine meanwhile, unless all of them write the
    same (`shared`); then the last one stays.
    Raises InputError where `wanted` holds something else than a result or another run fills it, MissingError where the
    system refuses.
    """
    if is_url(wanted):
        from .sweeps.store import Store

        with Store(wanted).filling("") as folder:
            yield folder
        return
    wanted = Path(wanted)
    _check(wanted)
    try:
        temporary, lock = _begin(wanted, shared)
    except OSError as e:
        raise MissingError(f"{wanted}: cannot be written: {e.strerror}; choose another --out") from None
    left = True
    try:
        yield temporary
        if temporary.parent != wanted and not wanted.exists():
            temporary.rename(wanted)
            left = False
        else:
            _replace(temporary, wanted)
    except OSError as e:
        raise MissingError(f"{wanted}: cannot be written: {e.strerror or e}; {remedy(e)}") from None
    finally:
        # Once it has another name, this one may be another run's.
        if left:
            shutil.rmtree(temporary, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _begin(wanted: Path, shared: bool) -> tuple[Path, int | None]:
    """An empty folder to fill, and its lock: none where it is `shared`, or where the file system locks no folders."""
    refused: OSError | None = None
    for attempt in range(_TRIES):
        # One that sweeps holds the lock for a moment.
        time.sleep(0.02 if attempt else 0)
        inside = wanted.exists()
        folder = wanted if inside else wanted.parent
        _sweep(folder)
        temporary = folder / f"{_PARTIAL}-{wanted.name}"
        try:
            lock = None if shared else _lock(temporary)
        except (BlockingIOError, FileNotFoundError) as fault:
            refused = fault
            continue
        if lock is None:
            temporary = folder / f"{_PARTIAL}.{wanted.name}.{os.getpid()}"
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
        elif inside != wanted.exists():
            # Another run has ended meanwhile.
            temporary.rmdir()
            os.close(lock)
            continue
        return temporary, lock
    # Nothing is ever made there, as in /proc: no other run took it away.
    if isinstance(refused, FileNotFoundError) and refused.errno:
        raise refused
    raise InputError(
        f"{wanted}: another run, which has not ended, writes its results there; wait for it or choose another --out"
    )


def _lock(folder: Path) -> int | None:
    """Makes a folder and locks it as long as this process lives; no lock where the file system has none for folders.

    What a run that was killed left is gone then. Raises BlockingIOError where another run has it, FileNotFoundError
    where that one took it away.
    """
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(opened), folder.stat()):
            raise FileNotFoundError
        for old in folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        return opened
    except (BlockingIOError, FileNotFoundError):
        os.close(opened)
        raise
    except OSError:
        os.close(opened)
        folder.rmdir()
        return None


def guard(wanted: str | os.PathLike[str], specs: Callable[[], Sequence[str]]) -> None:
    """Refuses to replace results of another experiment: `specs` gives the resolved specifications (JSON) of this one.

    Raises InputError where `wanted` holds results of other specifications, or those of `validate`.
    """
    try:
        doc = json.loads(_document(wanted))
        validated = "demerit_ms" in doc
        there = [] if validated else [run["spec"] for run in doc.get("runs", [doc])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    if validated:
        raise InputError(f"{wanted}: holds results of validate; --force replaces them, or choose another --out")
    here = [json.loads(spec) for spec in specs()]
    if list(map(_experiment, here)) == list(map(_experiment, there)):
        return
    pairs = zip(map(_experiment, here), map(_experiment, there), strict=False)
    keys = sorted({k for a, b in pairs for k in {*a, *b} if a.get(k) != b.get(k)}) or ["runs"]
    raise InputError(
        f"{wanted}: holds the results of another experiment (other {', '.join(keys)}); "
        "--force replaces them, or choose another --out"
    )


def guard_runs(wanted: str | os.PathLike[str]) -> None:
    """Refuses to replace results of runs by something else. Raises InputError where `wanted` holds some."""
    try:
        doc = json.loads(_document(wanted))
    except (OSError, ValueError):
        return
    if isinstance(doc, dict) and {"spec", "runs"} & set(doc):
        raise InputError(f"{wanted}: holds results of runs; choose another --out")


def _document(wanted: str | os.PathLike[str]) -> bytes:
    if is_url(wanted):
        from .sweeps.store import Store

        return Store(wanted).read("result.json") or b""
    return (Path(wanted) / "result.json").read_bytes()


def _experiment(spec: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in spec.items() if k not in _RECORDING}


def _sweep(folder: Path) -> None:
    """Removes what a run that was killed left."""
    for left in folder.glob(f"{_PARTIAL}.*"):
        number = left.name.rpartition(".")[2]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            shutil.rmtree(left, ignore_errors=True)
    for left in folder.glob(f"{_PARTIAL}-*"):
        with suppress(OSError):
            if (lock := _lock(left)) is not None:
                left.rmdir()
                os.close(lock)


def _check(wanted: Path) -> None:
    if not wanted.name:
        raise InputError(f"{wanted}: names no folder; choose another --out")
    if wanted.is_dir():
        there = [p.name for p in wanted.iterdir() if not p.name.startswith(_PARTIAL) and p.name != "lost+found"]
        if there and "result.json" not in there:
            raise InputError(f"{wanted}: holds something else than a result; remove it or choose another --out")
    elif wanted.exists():
        raise InputError(f"{wanted}: exists and is not a folder; choose another --out")


def _replace(temporary: Path, wanted: Path) -> None:
    """The document goes first and comes last: where it is, everything is."""
    for pattern in _OURS:
        for old in wanted.glob(pattern):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for new in sorted(temporary.iterdir(), key=lambda p: p.name == "result.json"):
        new.rename(wanted / new.name)
