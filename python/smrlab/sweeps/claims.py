"""Who is at work on which run: so that two studies that do the same at a time do not do it twice.

A claim is a small file that only one can create. It binds nobody: where the one who made it is gone, another takes it
over, and a run that was done twice after all is there once, for both write the same.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .store import Store

CLAIMS = "claims"
# A claim is renewed this often, and dead when it was not for so long, in seconds.
RENEWED_S, DEAD_S = 20.0, 90.0


def alive(claim: Any) -> bool:
    """Whether who made a claim is still at work, as far as can be told from here."""
    if not isinstance(claim, dict):
        return False
    if claim.get("host") == socket.gethostname():
        return Path(f"/proc/{claim.get('pid')}").exists()
    return time.time() - float(claim.get("at", 0)) < DEAD_S


@contextmanager
def claimed(store: Store, address: str, owner: str) -> Iterator[bool]:
    """Whether the run is ours while the block runs. `owner` never does a run twice at a time."""
    name = f"{CLAIMS}/{address}.json"

    def text() -> bytes:
        now = {"owner": owner, "host": socket.gethostname(), "pid": os.getpid(), "at": time.time()}
        return json.dumps(now).encode()

    while not store.create(name, text()):
        there = store.document(name)
        if alive(there) and there.get("owner") != owner:
            yield False
            return
        if there is not None:
            store.write(name, text())
            break
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWED_S):
            with suppress(Exception):
                store.write(name, text())

    renewer = threading.Thread(target=renew, daemon=True)
    renewer.start()
    try:
        yield True
    finally:
        ended.set()
        # One that is written later would stay.
        renewer.join()
        store.remove(name)
