"""The memory of the runs of one process: those wait that would not fit beside the others."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Room:
    """Bytes that runs share. A run alone always has room: its estimate is from above."""

    def __init__(self) -> None:
        self._taken = 0
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, need: int, limit: int) -> Iterator[None]:
        """Waits until the other runs leave `need` bytes of `limit` (0: no limit), and has them while the block runs."""
        with self._changed:
            self._changed.wait_for(lambda: not limit or self._taken == 0 or self._taken + need <= limit)
            self._taken += need
        try:
            yield
        finally:
            with self._changed:
                self._taken -= need
                self._changed.notify_all()


def installed() -> int:
    """Bytes of memory of this machine, or of the control group that this process may fill."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            found.append(int(Path("/sys/fs/cgroup", name).read_text()))
    return min(found)
