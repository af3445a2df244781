"""One run of a study, wherever it is done: from its specification to its files in the study's store."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from smrlab import _core
from smrlab.errors import CheckFailed, InputError, Interrupted, MissingError, SmrlabError
from smrlab.layer import TranslationLayer
from smrlab.results import Result
from smrlab.secret import hidden
from smrlab.trace import labelled

from .claims import claimed
from .inputs import Columns, Prefill, State
from .store import RESULT, Store

FAILED = "failed.json"


@dataclass(frozen=True)
class Told:
    """What became of a run: its document, or why there is none; and how it was done."""

    address: str
    document: dict[str, Any] | None = None
    fault: str = ""
    # Somebody else is at it.
    busy: bool = False
    # It was there, or somebody else did it.
    found: bool = False
    seconds: float = 0.0
    cpu_s: float = 0.0
    host: str = ""
    # Whose study did it: of two that ask one cluster for the same, one does it and both are told.
    asker: str = ""


@dataclass(frozen=True)
class Task:
    """A run by its address. Calling it does the run, unless its result is there."""

    address: str
    title: str
    spec: dict[str, Any]
    store: Store
    owner: str
    own: type[TranslationLayer] | None = None
    columns: tuple[Columns, ...] = ()
    prefill: Prefill | None = None
    # Bytes of memory that it needs by estimate.
    memory: int = 0
    asker: str = ""
    # It was tried before.
    failed: bool = False
    # The state that it begins with, where its file may not be on the machine that does it.
    state: State | None = None

    def __repr__(self) -> str:
        return f"run {self.address}"

    @property
    def folder(self) -> str:
        """Where its files are in the store."""
        return f"points/{self.address}"

    def __call__(self, control: _core.Control) -> Told:
        """Does the run and writes its files; everything that goes wrong with it is told."""
        with claimed(self.store, self.address, self.owner) as mine:
            if not mine:
                return Told(self.address, busy=True)
            # Somebody may have ended it since it was planned.
            found = self.store.document(f"{self.folder}/{RESULT}")
            if found is not None:
                return Told(self.address, found, found=True)
            start, cpu = time.perf_counter(), time.thread_time()
            try:
                document = self._run(control)
            except (Interrupted, MissingError):
                raise
            except BaseException as fault:
                if isinstance(fault, KeyboardInterrupt):
                    raise
                why = reason(fault, self.own, str(self.spec.get("layer")))
                self.store.write(f"{self.folder}/{FAILED}", json.dumps({"reason": why}).encode())
                return Told(self.address, fault=why)
            took = time.perf_counter() - start, time.thread_time() - cpu
            return Told(
                self.address,
                document,
                seconds=took[0],
                cpu_s=took[1],
                host=socket.gethostname(),
                asker=self.asker,
            )

    def _run(self, control: _core.Control) -> dict[str, Any]:
        with ExitStack() as kept:
            spec, labels = dict(self.spec), {}
            if self.columns:
                instead = {}
                for thing in self.columns:
                    columns = kept.enter_context(thing.held())
                    instead[thing.source] = thing.instead(columns)
                    labels[thing.instead(columns)] = hidden(thing.source)
                traces = [spec["trace"]] if isinstance(spec["trace"], str) else spec["trace"]
                spec["trace"] = [instead.get(t, t) for t in traces]
            if self.prefill:
                self.prefill.here()
            if self.state:
                spec["from_state"] = str(kept.enter_context(self.state.held()))
            with self.store.filling(self.folder) as folder:
                text, tables = _core.run(json.dumps(spec), control, str(folder), self.own)
                made = labelled(json.loads(text), labels)
                if self.state:
                    made["spec"]["from_state"] = self.state.source
                result = Result(self.title, made, None, tables)
                result.save(folder)
                document: dict[str, Any] = json.loads((folder / RESULT).read_text())
        if self.failed:
            self.store.remove(f"{self.folder}/{FAILED}")
        return document


def reason(fault: BaseException, own: type[TranslationLayer] | None, layer: str) -> str:
    """Why a run failed, in one line for a table."""
    if isinstance(fault, CheckFailed | InputError | SmrlabError):
        return str(fault)
    kind = type(fault).__name__
    told = hidden(str(fault))
    if kind == "PanicException":
        return f"the engine panicked, which it never should: {told}"
    if isinstance(fault, MemoryError):
        return "there is not enough memory for it"
    return f"{layer}: {kind}: {told}" if own else f"{kind}: {told}"
