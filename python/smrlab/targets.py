"""What `geometry` and `probe` look at: simulated drives, served devices, NBD exports, block devices and files."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from . import devices
from .errors import InputError


def resolve(text: str) -> str:
    """What the engine opens for a user's text: a served device's name becomes its NBD URI."""
    if text.startswith("sim:") or "://" in text or "/" in text:
        return text
    served = {d.name: d for d in devices.every()}
    return served[text].uri() if text in served else text


def confirm(text: str, resolved: str, yes: bool) -> None:
    """Asks for the target's name before data are destroyed; nothing to lose on a simulated drive."""
    if resolved.startswith("sim:"):
        return
    path = Path(resolved)
    if path.exists() and not stat.S_ISBLK(path.stat().st_mode) and not path.is_file():
        raise InputError(f"{text}: neither a block device nor a file")
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"--destroy loses all data on {text}: add --yes where nobody can be asked")
    print(f"All data on {text} may be lost. Type its name to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != text:
        raise InputError("nothing was written: the name typed is another")
