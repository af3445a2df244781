"""Where a study's results are: a folder, or a place in an object store; the same names in both."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from smrlab.errors import InputError, MissingError
from smrlab.files import write_whole
from smrlab.secret import hidden
from smrlab.urls import filesystem, is_url, patiently

RESULT = "result.json"


class Store:
    """The files of a study by name (`points/ADDRESS/result.json`); each is there whole or not at all."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        text = os.fspath(url)
        self.url = text.removeprefix("file://") if text.startswith("file://") else text.rstrip("/")
        self.local = None if is_url(self.url) else Path(self.url)
        self._system: Any = None
        self._root = ""

    def __str__(self) -> str:
        return hidden(self.url)

    def __repr__(self) -> str:
        return f"Store({str(self)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url if self.local is None else str(self.local.absolute())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"])  # type: ignore[misc]

    def _at(self, name: str) -> tuple[Any, str]:
        if self._system is None:
            self._system, root = filesystem(self.url)
            self._root = root.rstrip("/")
        return self._system, f"{self._root}/{name}"

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none."""
        try:
            with self._reading(name):
                if self.local is not None:
                    return (self.local / name).read_bytes()
                system, path = self._at(name)
                return bytes(patiently(lambda: system.cat_file(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Names what cannot be read, but for what is not there. Raises MissingError."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise
        except PermissionError as fault:
            raise MissingError(f"{self}/{name}: may not be read: {hidden(str(fault))}") from None
        except OSError as fault:
            raise MissingError(f"{self}/{name}: cannot be read: {hidden(str(fault))}") from None

    def document(self, name: str) -> Any:
        """The JSON document in a file; None where there is none that can be read."""
        data = self.read(name)
        try:
            return None if data is None else json.loads(data)
        except ValueError:
            return None

    def there(self, name: str) -> bool:
        """Whether there is such a file."""
        if self.local is not None:
            return (self.local / name).is_file()
        system, path = self._at(name)

        def look() -> bool:
            try:
                system.invalidate_cache(path.rpartition("/")[0])
                more = {"refresh": True} if "s3" in system.protocol else {}
                return bool(system.info(path, **more)["type"] == "file")
            except FileNotFoundError:
                return False

        with self._reading(name):
            return patiently(look)

    def write(self, name: str, data: bytes) -> None:
        """Writes a file, whole. Raises MissingError where the store does not take it."""
        if self.local is not None:
            write_whole(self.local / name, data)
            return
        system, path = self._at(name)
        try:
            patiently(lambda: system.pipe_file(path, data))
        except OSError as fault:
            raise MissingError(f"{self}/{name}: cannot be written: {hidden(str(fault))}") from None

    def create(self, name: str, data: bytes) -> bool:
        """Writes a file that is not there yet; False where it is. One of several that try at the same time does it."""
        try:
            if self.local is not None:
                self._link(self.local / name, data)
            else:
                system, target = self._at(name)
                patiently(lambda: system.pipe_file(target, data, mode="create"))
        except FileExistsError:
            return False
        except OSError as fault:
            raise MissingError(f"{self}/{name}: cannot be written: {hidden(str(fault))}") from None
        return True

    @staticmethod
    def _link(path: Path, data: bytes) -> None:
        """Creates a file with its content, for nobody may see it empty."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        temporary.write_bytes(data)
        try:
            path.hardlink_to(temporary)
        finally:
            temporary.unlink()

    def remove(self, name: str, *, tree: bool = False) -> None:
        """Removes a file, or all that lies under a name; nothing where there is none."""
        with suppress(OSError):
            if self.local is not None:
                path = self.local / name
                shutil.rmtree(path) if tree else path.unlink()
            else:
                system, target = self._at(name)
                patiently(lambda: system.rm(target, recursive=True) if tree else system.rm_file(target))

    def times(self, under: str, last: str = "") -> dict[str, float]:
        """The files under a name, with the second since 1970 in which each was written.

        With `last`, those in folders below it that end so.
        """
        if self.local is not None:
            root = self.local / under
            found = {}
            for path in root.glob(f"*/*{last}" if last else "*"):
                with suppress(FileNotFoundError):
                    found[str(path.relative_to(root))] = path.stat().st_mtime
            return found
        system, root_path = self._at(under)
        root_path = root_path.rstrip("/")

        def look() -> dict[str, Any]:
            system.invalidate_cache()
            try:
                return dict(system.find(root_path, detail=True))
            except FileNotFoundError:
                return {}

        prefix = len(root_path) + 1
        with self._reading(under):
            found_there = patiently(look)
        return {str(p)[prefix:]: _seconds(i) for p, i in found_there.items() if str(p).endswith(last)}

    @contextmanager
    def filling(self, name: str, last: str = RESULT) -> Iterator[Path]:
        """A folder on this machine whose files become those under `name` when the block ends, `last` at the end."""
        if self.local is not None:
            self.local.mkdir(parents=True, exist_ok=True)
        made = tempfile.mkdtemp(prefix=".partial-", dir=self.local)
        folder = Path(made)
        try:
            yield folder
            self.take(folder, name, last)
        except OSError as fault:
            raise MissingError(f"{self}/{name}: cannot be written: {hidden(str(fault))}") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def take(self, folder: Path, name: str, last: str = RESULT) -> None:
        """Moves the files of a folder under `name`, `last` at the end."""
        files = sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: (p.name == last, p))
        for file in files:
            there = f"{name}/{file.relative_to(folder)}" if name else str(file.relative_to(folder))
            if self.local is not None:
                target = self.local / there
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)
            else:
                self._put(file, there)

    def _put(self, file: Path, name: str) -> None:
        system, path = self._at(name)
        patiently(lambda: system.put_file(str(file), path))

    def put(self, file: Path, name: str) -> None:
        """Copies a file of this machine here, whole. Raises MissingError where the store does not take it."""
        try:
            if self.local is None:
                self._put(file, name)
                return
            target = self.local / name
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
            shutil.copyfile(file, partial)
            partial.replace(target)
        except OSError as fault:
            raise MissingError(f"{self}/{name}: cannot be written: {hidden(str(fault))}") from None

    def fetch(self, name: str, to: Path) -> bool:
        """Copies a file to this machine, whole; False where there is none."""
        partial = to.with_name(f".{to.name}.{os.getpid()}.partial")
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            if self.local is not None:
                shutil.copyfile(self.local / name, partial)
            else:
                system, path = self._at(name)
                with self._reading(name):
                    patiently(lambda: system.get_file(path, str(partial)))
            partial.replace(to)
        except FileNotFoundError:
            return False
        finally:
            partial.unlink(missing_ok=True)
        return True

    @contextmanager
    def mirrored(self) -> Iterator[Path]:
        """A folder on this machine with the files that are here; those that change come back at the end."""
        if self.local is not None:
            yield self.local
            return
        with tempfile.TemporaryDirectory(prefix="smrlab-") as made:
            folder = Path(made)
            for name in self.times(""):
                self.fetch(name, folder / name)
            before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
            yield folder
            for path in [p for p in folder.rglob("*") if p.is_file()]:
                if before.get(path) != path.stat().st_mtime_ns:
                    self.write(str(path.relative_to(folder)), path.read_bytes())

    def check(self) -> None:
        """Raises InputError or MissingError where nothing can be written here."""
        if self.local is not None and self.local.exists() and not self.local.is_dir():
            raise InputError(f"{self.local}: exists and is not a folder; choose another --out")


def _seconds(info: dict[str, Any]) -> float:
    """When a store says that something was written."""
    for key in ("LastModified", "last_modified", "mtime", "updated", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return 0.0
