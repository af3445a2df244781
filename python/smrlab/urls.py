"""Files and objects by URL, through fsspec: S3, Google, Azure, HDFS, HTTP, and what else it has a package for."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from .errors import InputError, MissingError
from .secret import hidden

T = TypeVar("T")

# What is fetched at once, and how much of it is kept: Parquet is read in a place for each column.
BLOCK = 4 << 20
KEPT = 24
# Blocks that are fetched before they are asked for.
AHEAD = 3
# Attempts where a store answers with an error, and the first pause between two of them, in seconds.
ATTEMPTS = 6
PAUSE_S = 0.2
EXTRA = "pip install 'smrlab[cluster]'"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_url(text: object) -> bool:
    """Whether `text` names something in a store: `s3://…`, `https://…`."""
    return isinstance(text, str) and _SCHEME.match(text) is not None


def filesystem(url: str) -> tuple[Any, str]:
    """The file system of `url` and the path on it.

    Raises InputError for a kind of URL that nobody knows, MissingError where its package is not installed.
    """
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as fault:
        # What comes with smrlab has S3 and HTTP; fsspec names the package of another store.
        ours = f": {EXTRA}" if url.startswith(("s3", "http")) else ""
        raise MissingError(f"{url}: a package that is not here is needed ({fault}){ours}") from None
    except ValueError as fault:
        raise InputError(f"{url}: no such kind of URL: {fault}") from None
    return system, path


def patiently(call: Callable[[], T]) -> T:
    """The value of `call`, tried again where the store answers with an error that may pass."""
    for attempt in range(ATTEMPTS):
        try:
            try:
                return call()
            except FileNotFoundError as fault:
                raise _answered(fault) from None
        except (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError):
            raise
        except Exception as fault:
            if attempt + 1 == ATTEMPTS:
                raise OSError(f"{hidden(str(fault)) or type(fault).__name__} ({ATTEMPTS} attempts)") from None
            time.sleep(PAUSE_S * 2**attempt)
    raise AssertionError("no attempt")


def _answered(fault: FileNotFoundError) -> OSError:
    """What an HTTP server did: fsspec says of all that fails there that there is no such file."""
    cause = fault.__cause__
    if cause is None or not type(cause).__module__.startswith("aiohttp"):
        return fault
    status = getattr(cause, "status", None)
    if status in (404, 410):
        return fault
    refused = status is not None and 400 <= status < 500
    return PermissionError(f"the server refuses it ({status})") if refused else OSError(str(cause))


class Ranges:
    """An object that is read by ranges, some of them before they are asked for; the engine reads traces through it."""

    def __init__(self, url: str, *, hashing: bool = False) -> None:
        self._system, self._path = filesystem(url)
        info = patiently(lambda: self._system.info(self._path))
        size = info.get("size")
        if size is None:
            raise OSError("the server does not tell how long it is: fetch the file first")
        self.size = int(size)
        # Bytes that the store has sent.
        self.moved = 0
        self._blocks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(AHEAD + 1, "smrlab-ranges")
        self._digest = hashlib.sha256() if hashing else None
        self._hashed = 0

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes from byte `offset` on; fewer at the end."""
        end = min(offset + length, self.size)
        parts = []
        while offset < end:
            number = offset // BLOCK
            block = self._block(number)
            start = offset - number * BLOCK
            part = block[start : start + end - offset]
            parts.append(part)
            offset += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def digest(self) -> str:
        """The SHA-256 of the whole object; what was not read so far is read for it. Needs `hashing`."""
        assert self._digest is not None
        while self._hashed * BLOCK < self.size:
            self._block(self._hashed)
        return self._digest.hexdigest()

    def _block(self, number: int) -> bytes:
        last = (self.size - 1) // BLOCK
        with self._lock:
            # The blocks behind one that is read for the first time come next.
            new = number not in self._blocks
            for n in range(number, min(number + (AHEAD if new or self._ahead(number) else 0), last) + 1):
                if n not in self._blocks:
                    self._blocks[n] = self._pool.submit(self._fetch, n)
            future = self._blocks[number]
            self._blocks.move_to_end(number)
            while len(self._blocks) > KEPT:
                self._blocks.popitem(last=False)
        block = future.result()
        if self._digest is not None and number == self._hashed:
            self._digest.update(block)
            self._hashed += 1
        return block

    def _ahead(self, number: int) -> bool:
        """Whether this block was itself fetched ahead, which says that the object is read from front to back."""
        return number + 1 in self._blocks or number - 1 in self._blocks

    def _fetch(self, number: int) -> bytes:
        start = number * BLOCK
        end = min(start + BLOCK, self.size)

        def once() -> bytes:
            data: bytes = self._system.cat_file(self._path, start=start, end=end)
            if len(data) != end - start:
                if len(data) == self.size:
                    raise PermissionError("the server sends whole files only, no ranges: fetch the file first")
                raise OSError(f"{len(data)} bytes came where {end - start} were asked for")
            return data

        data = patiently(once)
        self.moved += len(data)
        return data


# Objects that are open already, by URL: their digest is wanted beside their requests.
_open: dict[str, Ranges] = {}


def ranges(url: str) -> Ranges:
    """The object that `url` names, as the engine reads it."""
    return _open.get(url) or Ranges(url)


def listed(url: str) -> list[str] | None:
    """The objects that a pattern of names, or a folder (`…/`), stands for; None where `url` names one."""
    pattern = any(c in url for c in ("*[" if url.startswith("http") else "*?["))
    if not (pattern or url.endswith("/")):
        return None
    system, path = filesystem(url)
    seen = patiently(lambda: system.glob(path, detail=True).values() if pattern else system.ls(path, detail=True))
    # Folders in it are none of its objects; what stands for the folder itself has its name.
    names = [str(entry["name"]) for entry in seen if entry["type"] != "directory"]
    return [str(system.unstrip_protocol(name)) for name in names if not name.endswith("/")]


def stamp(url: str) -> str:
    """What tells a changed object from an unchanged one without reading it: its length with its tag, or its time."""
    system, path = filesystem(url)
    info = patiently(lambda: system.info(path))
    marks = (
        "ETag",
        "etag",
        "md5Hash",
        "content_md5",
        "version_id",
        "LastModified",
        "mtime",
        "updated",
        "last_modified",
    )
    return f"{info.get('size')} {next((str(info[m]) for m in marks if info.get(m)), '')}"


class Hashing:
    """While it lasts, the object at `url` is digested as it is read."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.object = Ranges(url, hashing=True)

    def __enter__(self) -> Ranges:
        _open[self._url] = self.object
        return self.object

    def __exit__(self, *_: object) -> None:
        _open.pop(self._url, None)
