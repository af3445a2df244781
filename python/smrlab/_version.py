"""The version, once, and the commit that this is of."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

__version__ = "0.2.0"

HERE = Path(__file__).parent
VARIABLE = "SMRLAB_GIT"


def commit() -> str | None:
    """The commit, abbreviated: what `make wheel` has written beside this file, or that of the checkout; else none."""
    made = HERE / "commit.txt"
    if made.is_file():
        return made.read_text().strip() or None
    try:
        return _head(HERE.parent.parent / ".git")
    except OSError:
        return None


def described() -> str:
    """Version, commit, and which parts that not every installation has are here."""
    found = {
        "served devices": (HERE / "libsmrlab_nbdkit.so").is_file(),
        "cluster": find_spec("distributed") is not None,
    }
    parts = [f"commit {commit() or 'unknown'}", *(f"{'with' if here else 'no'} {name}" for name, here in found.items())]
    return f"smrlab {__version__} ({', '.join(parts)})"


def _head(git: Path) -> str | None:
    """What HEAD of a repository or of a work tree is, read from its files: a command would cost each start its time."""
    if git.is_file():
        git = (git.parent / git.read_text().removeprefix("gitdir:").strip()).resolve()
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head[:7] or None
    name = head.removeprefix("ref: ")
    common = git / "commondir"
    home = (git / common.read_text().strip()).resolve() if common.is_file() else git
    if (home / name).is_file():
        return (home / name).read_text().strip()[:7] or None
    packed = (home / "packed-refs").read_text().splitlines()
    return next((line[:7] for line in packed if line.endswith(f" {name}")), None)


# The engine, and the servers that this starts, write it into each result.
if VARIABLE not in os.environ and (_found := commit()):
    os.environ[VARIABLE] = _found
