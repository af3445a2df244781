"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

from .errors import InputError, MissingError

# The longest text that describes something: a run, a study, settings.
LONGEST = 64 << 20
# What a figure may be.
FIGURES = (".svg", ".pdf", ".png")


def read_text(path: Path) -> str:
    """The text of a file; what is longer than any description, as a device without an end, is refused as such."""
    with path.open("rb") as file:
        data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise OSError(errno.EFBIG, f"longer than {LONGEST >> 20} MiB", str(path))
    return data.decode()


def remedy(e: OSError) -> str:
    """What to do about a file that cannot be written."""
    full = e.errno in (errno.ENOSPC, errno.EDQUOT)
    return "free space or choose another --out" if full else "choose another --out"


def not_over(out: Path, *inputs: str | Path) -> None:
    """Refuses to write what is made over what it is made from."""
    for given in map(Path, inputs):
        if out.exists() and given.exists() and given.samefile(out):
            raise InputError(f"{out} is what it is made from: name another file")


def check_place(path: str | Path) -> None:
    """Refuses what a file that is renamed into its place would take from the system: a device, a pipe, /dev/stdout."""
    at = Path(path)
    with suppress(OSError):
        leads = str(at.readlink()) if at.is_symlink() else ""
        if leads.startswith("/proc/") or (at.exists() and not at.is_file() and not at.is_dir()):
            raise InputError(f"{path} is no regular file, and would be replaced by one: name another file")


def write_whole(path: Path, data: bytes, *, folders: bool = True) -> None:
    """Writes under a temporary name of its own and renames at the end, so that a partial file never looks whole.

    Makes the folders that it needs, if asked to.
    """
    check_place(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{path.parent}: exists and is not a folder; choose another --out") from None
    except OSError as e:
        # Nothing is removed either from what can only be read.
        with suppress(OSError):
            temporary.unlink()
        raise MissingError(f"{path}: cannot be written: {e.strerror}; {remedy(e)}") from None
