"""Where prefills are kept from one run to the next: a folder of the user's cache, or none."""

from __future__ import annotations

import os
from pathlib import Path

from . import _core

# A folder instead of the default one, or `off`.
VARIABLE = "SMRLAB_PREFILL_CACHE"
# What the files there may take; the longest unused go.
BYTES = 4 << 30

Choice = bool | str | os.PathLike[str]
Keep = tuple[str, int, str]


def folder() -> Path:
    """Where prefills are kept by default: `smrlab/prefills` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smrlab" / "prefills"


def keep(choice: Choice = True) -> Keep | None:
    """What the engine needs to keep prefills; None where it is not to. `choice`: whether, "off", or a folder."""
    wanted = os.environ.get(VARIABLE) or True if choice is True else choice
    if wanted is False or wanted == "off":
        return None
    # What another build of the engine kept is not taken: its layers may do otherwise.
    module = Path(_core.__file__).stat()
    program = f"{_core.version()} {module.st_size} {module.st_mtime_ns}"
    return str(folder() if wanted is True else wanted), BYTES, program


def shared(key: str) -> Keep | None:
    """What the engine needs to keep the one prefill that the runs of a study share, on this machine."""
    if keep() is None:
        return None
    from .sweeps.identity import fingerprint
    from .sweeps.machine import folder as machine

    return str(machine() / f"prefill-{key}"), BYTES, fingerprint()
