"""Results of runs: the document, its tables, and how both are read from and written to a folder."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .files import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from .plots import Plotter

SCHEMA = 1
TABLES = ("timeline", "members", "histogram", "heatmap", "requests", "media")


class Section(Mapping[str, Any]):
    """A part of a result whose keys are attributes too: `result.response_ms.p99`."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._path = path

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        return Section(value, f"{self._path}.{key}") if isinstance(value, dict) else value

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError:
            known = ", ".join(self._values)
            where = self._path.lstrip(".") or "this result"
            raise AttributeError(
                f"{where} has no '{key}' (a key that does not apply is absent); it has: {known}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __dir__(self) -> list[str]:
        """Its keys too, for who completes names."""
        return [*super().__dir__(), *self._values]

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Section({dict(self._values)!r})"


class Result(Section):
    """One run: its document as attributes (units are in the names), and its tables through Arrow."""

    def __init__(
        self,
        name: str,
        doc: Mapping[str, Any],
        folder: Path | None = None,
        tables: Mapping[str, bytes] | None = None,
    ) -> None:
        super().__init__(doc)
        self._name = name
        self._folder = folder
        self._tables = tables or {}

    @property
    def name(self) -> str:
        """What the run is called in tables and plots."""
        return self._name

    def __repr__(self) -> str:
        from . import summary

        return summary.plainly([(self._name, self.doc)])

    def _repr_html_(self) -> str:
        from . import summary

        return summary.as_html([(self._name, self.doc)])

    @property
    def doc(self) -> Mapping[str, Any]:
        """The document as plain data, as `--json` prints it."""
        return self._values

    @property
    def plot(self) -> Plotter:
        """Figures of this run: `result.plot.iops()`."""
        from .plots import Plotter

        return Plotter([self])

    def table(self, name: str) -> pa.Table | None:
        """The named table, or None where the run did not record it."""
        import pyarrow as pa

        from . import parquet

        if name in self._tables:
            return parquet.read(io.BytesIO(self._tables[name]))
        path = self._folder / f"{name}.parquet" if self._folder else None
        if path is None or not path.is_file():
            return None
        try:
            return parquet.read(path)
        except (pa.ArrowInvalid, OSError) as e:
            raise InputError(f"{path}: not a readable Parquet file ({e})") from None

    def _required(self, name: str, remedy: str) -> pa.Table:
        table = self.table(name)
        if table is None:
            raise InputError(f"{self._name}: no {name} table was recorded; {remedy}")
        return table

    def timeline(self) -> pa.Table:
        """Per window: arrivals, completions, response times (ms), shares, backlog, head position."""
        return self._required("timeline", "run with a window, e.g. --window 1s")

    def member_timelines(self) -> pa.Table:
        """The timelines of an array's drives: disk, then the columns of `timeline`."""
        return self._required("members", "run an array, with a window, e.g. --window 1s")

    def histogram(self) -> pa.Table:
        """Response and service times: kind, lo_ms, hi_ms, count."""
        return self._required("histogram", "run again with this version")

    def heatmap(self) -> pa.Table:
        """Reads and writes per window and LBA range."""
        return self._required("heatmap", "run with a window, e.g. --window 1s")

    def requests(self) -> pa.Table:
        """One row a request, where the run was asked to record them."""
        return self._required("requests", "run with --requests")

    def media(self) -> pa.Table:
        """One row a media operation, where the run was asked to record them."""
        return self._required("media", "run with --media-log")

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the document and the tables into `folder`; nothing partial is left under the final names."""
        self.copy_tables(Path(folder))
        return save_single(Path(folder), self)

    def copy_tables(self, folder: Path) -> None:
        """Copies the tables that are in files into `folder`, unless that is where they are."""
        from .sweeps.store import Store

        for name in TABLES if self._folder else ():
            source, target = Path(self._folder or "", f"{name}.parquet"), folder / f"{name}.parquet"
            if name not in self._tables and source.is_file() and not (target.exists() and target.samefile(source)):
                Store(folder).put(source, target.name)

    def write_tables(self, folder: Path) -> None:
        """Writes the tables that are still in memory into `folder`."""
        for name, data in self._tables.items():
            write_whole(folder / f"{name}.parquet", data)


class Results(Sequence[Result]):
    """Several runs on the same requests."""

    def __init__(self, runs: Sequence[Result]) -> None:
        self._runs = list(runs)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            for run in self._runs:
                if run.name == key:
                    return run
            raise KeyError(f"no run '{key}'; there are: {', '.join(r.name for r in self._runs)}")
        return self._runs[key]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        from . import summary

        return summary.plainly([(run.name, run.doc) for run in self._runs])

    def _repr_html_(self) -> str:
        from . import summary

        return summary.as_html([(run.name, run.doc) for run in self._runs])

    @property
    def doc(self) -> dict[str, Any]:
        """The document that `compare --json` prints."""
        return {"schema": SCHEMA, "runs": [{"name": r.name, **r.doc} for r in self._runs]}

    @property
    def plot(self) -> Plotter:
        """Figures with these runs overlaid: `results.plot.iops()`."""
        from .plots import Plotter

        return Plotter(self._runs)

    def save(self, folder: str | os.PathLike[str], numbers: Sequence[int] | None = None) -> Path:
        """Writes one document and a folder of tables for each run; `numbers` (from 1) where not all were finished."""
        for index, run in zip(numbers or range(1, len(self) + 1), self._runs, strict=True):
            run.copy_tables(Path(folder) / run_folder(index, run.name))
        return save_results(Path(folder), self._runs, numbers)


def run_folder(index: int, name: str) -> str:
    """The folder, within a comparison's, that holds the tables of run `index` (from 1)."""
    return f"runs/{index:02}-{re.sub(r'[^A-Za-z0-9._-]+', '_', name).strip('_')[:80]}"


def save_single(folder: Path, run: Result) -> Path:
    """Writes tables first and `result.json` last: where the document is, everything is."""
    run.write_tables(folder)
    return _save_document(folder, {**run.doc, "name": run.name})


def save_results(folder: Path, runs: Sequence[Result], numbers: Sequence[int] | None = None) -> Path:
    """The same for several runs, the tables of each in a folder of its own."""
    entries = []
    for index, run in zip(numbers or range(1, len(runs) + 1), runs, strict=True):
        sub = run_folder(index, run.name)
        run.write_tables(folder / sub)
        doc = {key: value for key, value in run.doc.items() if key not in ("name", "folder")}
        entries.append({"name": run.name, "folder": sub, **doc})
    return _save_document(folder, {"schema": SCHEMA, "runs": entries})


def _save_document(folder: Path, doc: Mapping[str, Any]) -> Path:
    write_whole(folder / "result.json", (json.dumps(doc, indent=1) + "\n").encode())
    return folder


def load_results(folder: str | os.PathLike[str]) -> list[Result]:
    """The runs whose result files are in `folder`.

    Raises InputError when there is no readable `result.json` of this schema.
    """
    path = Path(folder) / "result.json"
    try:
        doc = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a folder that --out of run or compare has written") from None
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: not a readable result: {e}") from None
    if not isinstance(doc, dict) or doc.get("schema") != SCHEMA:
        found = doc.get("schema") if isinstance(doc, dict) else None
        raise InputError(f"{path}: result schema {found!r} is not {SCHEMA}; run again with this version of smrlab")
    if "runs" not in doc:
        return [Result(_single_name(doc), doc, Path(folder))]
    runs = doc["runs"]
    if not isinstance(runs, list) or not runs or not all(isinstance(run, dict) for run in runs):
        raise InputError(f"{path}: not a readable result: runs is no list of results")
    return [
        Result(str(run.get("name", f"run {i}")), run, _tables_folder(Path(folder), i, run))
        for i, run in enumerate(runs, 1)
    ]


def title_of(spec: Mapping[str, Any]) -> str:
    """What a run of its own is called: what it ran on, as a user writes it."""
    stack, array, layer = (spec.get(key) for key in ("stack", "array", "layer"))
    if isinstance(stack, list):
        stack = " / ".join(stack)
    return str(stack or (f"{array} / {layer or 'cmr'}" if array else layer or "cmr"))


def _single_name(doc: Mapping[str, Any]) -> str:
    spec = doc.get("spec")
    return str(doc.get("name") or (title_of(spec) if isinstance(spec, dict) else "run"))


def _tables_folder(folder: Path, index: int, run: Mapping[str, Any]) -> Path | None:
    if "folder" in run:
        return folder / str(run["folder"])
    return next(iter(sorted(folder.glob(f"runs/{index:02}-*"))), None)
