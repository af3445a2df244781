"""A trace as a value: which file or generator, and what is done to it on the way into a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import InputError
from .work import Watch, attended

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Trace:
    """A lazy block trace; nothing is read before a run, `info` or `table`.

    `source` is what the command line takes: `PATH[:FORMAT[,k=v...]]` or `synth:NAME[,k=v...]`.
    """

    source: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def open(path: str | os.PathLike[str], format: str | None = None) -> Trace:
        """The trace in a file; its format is told from its content unless it is given.

        Raises InputError when there is no such file.
        """
        text = os.fspath(path)
        if format is None and not Path(text).exists() and ":" not in text:
            raise InputError(f"{text}: there is no such file")
        return Trace(text if format is None else f"{text}:{format}")

    @staticmethod
    def synth(name: str, **parameters: Any) -> Trace:
        """A generated trace: `Trace.synth("uniform", requests=10_000, size="4KiB")`."""
        return Trace(",".join([f"synth:{name}", *(f"{k}={v}" for k, v in parameters.items())]))

    def head(self, n: int) -> Trace:
        """Only the first `n` requests."""
        return self._with(limit=min(n, self.fields.get("limit", n)))

    def wrap(self, blocks: int) -> Trace:
        """LBAs modulo `blocks` (of 512 B)."""
        return self._with(wrap="capacity", host_blocks=blocks)

    def scale_time(self, x: float) -> Trace:
        """Arrival times multiplied by `x`: above 1 is slower."""
        return self._with(scale_time=x * self.fields.get("scale_time", 1.0))

    def info(self, watch: Watch | None = None) -> dict[str, Any]:
        """The characterisation that `smrlab trace info` prints: times in seconds, sizes in bytes, shares of 1."""
        doc: dict[str, Any] = json.loads(
            attended(lambda control: _core.trace_info(self._spec(), control), self.source, watch)
        )
        return doc

    def save(self, path: str | os.PathLike[str]) -> int:
        """Stores the transformed trace as Parquet; the number of requests."""
        return attended(lambda control: _core.trace_write(self._spec(), os.fspath(path), control))

    def table(self) -> pa.Table:
        """All requests as a table, in memory."""
        import tempfile

        import pyarrow.parquet as pq

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.parquet"
            self.save(path)
            return pq.read_table(path)

    def _spec(self) -> str:
        return json.dumps({"trace": [self.source], **self.fields})

    def _with(self, **fields: Any) -> Trace:
        return replace(self, fields={**self.fields, **fields})
