"""A run that can be sent to where it is done, and brings back what it wrote."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import _core
from .layer import TranslationLayer


@dataclass(frozen=True)
class Ran:
    """What a run gave: its document as JSON, its tables, and the files that it logged into elsewhere."""

    document: str
    tables: Mapping[str, bytes]
    logs: Mapping[str, bytes]

    def write(self, folder: Path | None) -> None:
        """Writes the logs that were brought back."""
        if folder is None:
            return
        for name, data in self.logs.items():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


@dataclass(frozen=True)
class Simulation:
    """A run: its specification (JSON), its layer where that is the user's own, and where it logs requests.

    `bring`: it logs into a folder of its own, whose files come back with it.
    """

    spec: str
    own: type[TranslationLayer] | None = None
    folder: Path | None = None
    bring: bool = False

    def __repr__(self) -> str:
        return "Simulation"

    def __call__(self, control: _core.Control) -> Ran:
        """Does it."""
        if not self.bring:
            if self.folder:
                self.folder.mkdir(parents=True, exist_ok=True)
            logs = str(self.folder) if self.folder else None
            document, tables = _core.run(self.spec, control, logs, self.own)
            return Ran(document, tables, {})
        with tempfile.TemporaryDirectory(prefix="smrlab-") as made:
            document, tables = _core.run(self.spec, control, made, self.own)
            return Ran(document, tables, {p.name: p.read_bytes() for p in Path(made).iterdir()})
