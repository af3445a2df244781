"""A trace as a value: which files, generators or tables, and what is done to them on the way into a run."""

from __future__ import annotations

import hashlib
import html
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from . import _core
from .errors import InputError
from .files import check_place
from .trace_info import TraceInfo
from .work import Watch, attended

if TYPE_CHECKING:
    import pyarrow as pa

# What the engine does in this order, whatever the order in which it was asked for: see `_in_order`.
_ORDER = {"from": "between", "until": "between", "filter": "where", "limit": "head", "wrap": "wrap"}


@runtime_checkable
class ArrowStream(Protocol):
    """A table of requests: of pyarrow, pandas, polars, DuckDB, or anything else that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True)
class Trace:
    """A lazy block trace; nothing is read before a run, `info` or `table`.

    `source` is what the command line takes, or several: `PATH[:FORMAT[,k=v...]]`, a directory, a pattern of names,
    `synth:NAME[,k=v...]`. The engine does what is asked for in this order: `between`, `where`, `head`, `scale_time`,
    `wrap`; another order is refused where it would mean something else.
    """

    source: str | Sequence[str]
    fields: Mapping[str, Any] = field(default_factory=dict)
    # Tables that are stored as files for as long as a trace needs them, by the file's path.
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def open(path: str | os.PathLike[str], *more: str | os.PathLike[str], **options: Any) -> Trace:
        """The trace in a file, a directory, the files of a pattern, or several of these, merged by time.

        Options: `format` (with its parameters, as in "csv,columns=…"; told from the content otherwise) and `skip_bad`,
        how many bad lines are passed over. Raises InputError when there is no such file.
        """
        format, skip_bad = options.pop("format", None), options.pop("skip_bad", None)
        if options:
            raise InputError(f"Trace.open has no option '{next(iter(options))}'; it takes format and skip_bad")
        for one in (path, *more):
            if not isinstance(one, str | os.PathLike):
                raise InputError(
                    f"{type(one).__name__} is no name of a trace: give a text or a path, several as Trace.open(a, b), "
                    "a table to Trace.from_table"
                )
        texts = [os.fspath(p) for p in (path, *more)]
        for text in texts:
            if not text.strip():
                raise InputError("the name of a trace: it is empty: give a file, a URL or synth:NAME")
            pattern = any(c in text for c in "*?[")
            if not (Path(text).exists() or pattern or "://" in text or (format is None and ":" in text)):
                raise InputError(f"{text}: there is no such file")
        texts = texts if format is None else [f"{text}:{format}" for text in texts]
        fields = {} if skip_bad is None else {"skip_bad": skip_bad}
        return Trace(texts[0] if len(texts) == 1 else tuple(texts), fields)

    @staticmethod
    def synth(name: str, **parameters: Any) -> Trace:
        """A generated trace: `Trace.synth("uniform", requests="10k", size="4KiB")`."""
        return Trace(",".join([f"synth:{name}", *(f"{k}={v}" for k, v in parameters.items())]))

    @staticmethod
    def from_table(table: ArrowStream) -> Trace:
        """A trace from a table in memory: Arrow, pandas, polars, or anything with `__arrow_c_stream__`.

        Columns: `arrival_ns` or `time_s`; `op` (0 read, 1 write, 2 flush, 3 discard, 4 append, 5 zone-close,
        6 zone-finish, 7 zone-open, 8 zone-reset, or these words); `lba` and `blocks` (of 512 bytes) or `offset`
        and `size` (bytes; of a zone command 0: the zone at its place); optionally `device` and `stream` (numbers)
        and `fua` (true or false). Times may be dates, which count from the first one, or spans. Rows get sorted.
        Raises InputError when a column is missing or holds what no request can have.
        """
        import tempfile

        from .tables import stored

        if not isinstance(table, ArrowStream):
            kind = type(table).__name__
            raise InputError(
                f"{kind} is no trace: give a text, a Trace, or a table that speaks Arrow (__arrow_c_stream__)"
            )
        file = tempfile.NamedTemporaryFile(prefix="smrlab-", suffix=".parquet")  # noqa: SIM115 - kept by the trace
        rows = stored(table, file.name)
        digest = hashlib.sha256(Path(file.name).read_bytes()).hexdigest()[:8]
        return Trace(file.name, kept={file.name: (f"table of {rows} requests, {digest}", file)})

    @staticmethod
    def chain(*traces: Trace, gap: str = "0") -> Trace:
        """Traces one after the other: each begins `gap` (such as "10s") after the last arrival of the one before it.

        Raises InputError for a trace that something is done to: `save` it first.
        """
        for t in traces:
            if t.fields:
                raise InputError("chain takes traces as they are: save() what was changed, and chain that")
        kept = {path: what for t in traces for path, what in t.kept.items()}
        return Trace(tuple(s for t in traces for s in t.sources), {"join": f"chain,gap={gap}"}, kept)

    @property
    def sources(self) -> tuple[str, ...]:
        """What the trace is made of, as the command line takes it."""
        return (self.source,) if isinstance(self.source, str) else tuple(self.source)

    @property
    def labels(self) -> dict[str, str]:
        """What the files that hold tables in memory are called, by their paths."""
        return {path: label for path, (label, _) in self.kept.items()}

    def between(self, start: str | None = None, end: str | None = None) -> Trace:
        """Only what arrives from `start` on and before `end` ("10min") in the trace's time; `start` becomes 0."""
        self._in_order("between", "limit", "scale_time", "from", "until")
        return self._with(**{k: v for k, v in {"from": start, "until": end}.items() if v is not None})

    def where(self, **conditions: str) -> Trace:
        """Only requests for which all holds: `op="write"`, `device="hm_0;hm_1"`, `lba="1GB..2GB"`, `size="..4KiB"`."""
        self._in_order("where", "limit", "wrap")
        known = [self.fields["filter"]] if "filter" in self.fields else []
        for key in conditions:
            if any(part.startswith(f"{key}=") for part in ",".join(known).split(",")):
                raise InputError(f"where() was called with {key}= already: save() the trace in between")
        return self._with(filter=",".join([*known, *(f"{k}={v}" for k, v in conditions.items())]))

    def head(self, n: int | str) -> Trace:
        """Only the first `n` requests (also "100k")."""
        count = _core.count(str(n))
        return self._with(limit=min(count, self.fields.get("limit", count)))

    def wrap(self, blocks: int) -> Trace:
        """LBAs modulo `blocks` (of 512 B); a request that would cross the end is moved back so that it ends there."""
        return self._with(wrap="capacity", host_blocks=blocks)

    def scale_time(self, x: float) -> Trace:
        """Arrival times multiplied by `x`: above 1 is slower. Raises InputError where that is no number."""
        if not isinstance(x, Real) or not math.isfinite(x):
            raise InputError(f"scale_time: {x!r} is not accepted: a number, such as 0.5")
        x = x if isinstance(x, int | float) else float(x)
        return self._with(scale_time=x * self.fields.get("scale_time", 1.0))

    def info(self, watch: Watch | None = None) -> TraceInfo:
        """The characterisation that `smrlab trace info` prints: times in seconds, sizes in bytes, shares of 1."""
        title = " + ".join(self._called())
        with by_labels(self.labels):
            return TraceInfo(
                json.loads(attended(lambda control: _core.trace_info(self._spec(), control), title, watch))
            )

    def save(self, path: str | os.PathLike[str]) -> int:
        """Stores the transformed trace as Parquet; the number of requests."""
        check_place(os.fspath(path))
        with by_labels(self.labels):
            return attended(lambda control: _core.trace_write(self._spec(), os.fspath(path), control))

    def table(self) -> pa.Table:
        """All requests as a table, in memory."""
        import tempfile

        from . import parquet

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.parquet"
            self.save(path)
            return parquet.read(path)

    def __repr__(self) -> str:
        """What it is made of, and what is done to it."""
        return f"Trace({', '.join(f'{label}: {value}' for label, value in self._rows())})"

    def _repr_html_(self) -> str:
        cells = (f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self._rows())
        return f"<table>{''.join(cells)}</table>"

    def _rows(self) -> list[tuple[str, str]]:
        """Its sources (tables by what they are called), and the steps in the engine's order."""
        span = [f"{word} {self.fields[word]}" for word in ("from", "until") if word in self.fields]
        steps = {
            "join": self.fields.get("join"), "skip_bad": self.fields.get("skip_bad"), "between": " ".join(span),
            "where": self.fields.get("filter"), "head": self.fields.get("limit"),
            "scale_time": self.fields.get("scale_time"), "wrap": self.fields.get("host_blocks"),
        }  # fmt: skip
        return [("source", " + ".join(self._called())), *((k, str(v)) for k, v in steps.items() if v not in (None, ""))]

    def _called(self) -> list[str]:
        return [self.labels.get(s, s) for s in self.sources]

    def _spec(self) -> str:
        return json.dumps({"trace": self.sources, **self.fields})

    def _with(self, **fields: Any) -> Trace:
        return replace(self, fields={**self.fields, **fields})

    def _in_order(self, name: str, *later: str) -> None:
        """Refuses a step that the engine does before one that was asked for already."""
        for key in later:
            if key in self.fields:
                step = _ORDER.get(key, key)
                raise InputError(f"{name}() comes before {step}(): call it first, or save() the trace in between")


def labelled(doc: dict[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """A result's document with what traces are called instead of the files that they were stored in for the run."""
    doc["spec"]["trace"] = [labels.get(t, t) for t in doc["spec"]["trace"]]
    return doc


@contextmanager
def by_labels(labels: Mapping[str, str]) -> Iterator[None]:
    """What is said of files in which traces were stored for a run is said of what was given."""
    try:
        yield
    except InputError as fault:
        text = str(fault)
        for path, label in labels.items():
            text = text.replace(path, label)
        raise InputError(text) from None


def standard_input(text: str) -> bool:
    """Whether a trace is read from standard input: `-` or `-:FORMAT`."""
    return text == "-" or text.startswith("-:")
