"""What `geometry` and `probe` look at: simulated drives, served devices, NBD exports, block devices and files."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from . import devices, sysfs
from .errors import InputError


def resolve(text: str) -> str:
    """What the engine opens for a user's text: a served device's name becomes its NBD URI."""
    if text.startswith("sim:") or "://" in text or "/" in text:
        return text
    served = {d.name: d for d in devices.every()}
    return served[text].uri() if text in served else text


# What stops a measurement: Ctrl-C, `kill`, a terminal that is closed.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stoppable() -> Iterator[None]:
    """While a drive is measured: the first signal stops that; more do not keep it from being put back as it was."""

    def again(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        print("stopping: the request under way ends first, then the drive is put back as it was", file=sys.stderr)

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, again)
        raise KeyboardInterrupt

    # What is ignored (nohup) stays ignored.
    before = {n: old for n in STOPPING if (old := signal.getsignal(n)) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    stopped = False
    try:
        yield
    except KeyboardInterrupt:
        stopped = True
        raise
    finally:
        # What comes while a stopped command ends is too late for anything.
        for number, old in before.items():
            signal.signal(number, signal.SIG_IGN if stopped else old)


def folder(out: Path) -> Path:
    """A folder for what is measured, made where it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"--out {out}: {e.strerror}: name a folder that can be written") from None
    return out


def zones(text: str) -> dict[str, Any] | None:
    """The zones of a served device of this name; None where it has none, or is not served."""
    served = next((d for d in devices.every() if d.name == text), None)
    try:
        answer: dict[str, Any] | None = served.ask("zones") if served else None
    except InputError:
        return None
    return answer


def there(text: str, resolved: str) -> None:
    """Refuses a path that is no block device and no file, or of nothing."""
    if resolved.startswith("sim:") or "://" in resolved:
        return
    # An empty path would be that of the folder one is in.
    path = Path(resolved) if resolved else None
    if path is None or not path.exists():
        raise InputError(
            f"'{text}' is no device's name, and there is no such file: write sim:DRIVE[/LAYER], an NBD URI, or a path"
        )
    if not path.is_file() and not path.is_block_device():
        raise InputError(f"{text}: neither a block device nor a file")


def told(text: str, resolved: str, zones: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a block device says of itself, or a served one of its `zones`. What does not exist is refused."""
    if zones:
        limits = {key: value for key, value in zones.items() if key not in ("model", "zones") and value is not None}
        return {"zones": {"count": len(zones["zones"])} | limits, "kind": zones["model"]}
    there(text, resolved)
    return sysfs.says(resolved)


def confirm(text: str, resolved: str, yes: bool) -> None:
    """Asks for the target's name before data are destroyed; nothing to lose on a simulated drive."""
    if resolved.startswith("sim:"):
        return
    if yes:
        return
    # None: it is closed, as services have it.
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(f"--destroy loses all data on {text}: add --yes where nobody can be asked")
    print(f"All data on {text} may be lost. Type its name to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != text:
        raise InputError("nothing was written: the name typed is another")
