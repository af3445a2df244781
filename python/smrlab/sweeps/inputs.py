"""The large things that runs share: traces as columns, prefilled drives. Each is made once, and kept on the machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrlab import _core, urls
from smrlab.errors import MissingError
from smrlab.kept import shared

from .identity import Digests, files_of, fingerprint, parts
from .machine import Note, held
from .store import Store

COLUMNS = "trace.parquet"
# Where a study keeps what was made on one machine for the others.
PREFILLS = "prefills"
STATES = "states"


@dataclass(frozen=True)
class Made:
    """An input that is on this machine."""

    place: Path
    note: Note

    @property
    def bytes(self) -> int:
        """What it takes there."""
        return int(self.note["bytes"])


@dataclass(frozen=True)
class Columns:
    """A trace in a store, as columns on the machine's disk; where it is not a run's only trace, a copy of its bytes.

    Files of one recording lie to each other in time as their dates say, which columns of one alone do not know.
    """

    source: str
    stamp: str
    skip_bad: str = "0"
    alone: bool = True

    def __repr__(self) -> str:
        return f"Columns({self.key})"

    @property
    def key(self) -> str:
        """Tells it from all others."""
        text = json.dumps([fingerprint(), self.source, self.stamp, self.skip_bad, self.alone])
        return f"trace-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def here(self) -> Made:
        """Makes it on this machine, unless it is there."""
        with self.held() as made:
            return made

    @contextmanager
    def held(self) -> Iterator[Made]:
        """The same, kept while the block runs."""
        with held(self.key, self._make) as (place, note):
            yield Made(place, note)

    def instead(self, made: Made) -> str:
        """What a specification names in the place of the URL."""
        return str(made.place / made.note["name"]) + str(made.note["rest"])

    def _make(self, place: Path) -> Note:
        ((file, rest),) = parts(self.source)
        names = sorted(files_of(file))
        if self.alone and len(names) == 1:
            with urls.Hashing(file) as source:
                if source.read(0, 4) == b"PAR1":
                    _copied(source, place / COLUMNS)
                else:
                    self._convert(place)
                digests = [source.digest()]
                moved = source.moved
            return {"name": COLUMNS, "rest": "", "digests": digests, "moved": moved}
        digests, moved = [], 0
        for number, name in enumerate(names):
            source = urls.Ranges(name, hashing=True)
            _copied(source, place / f"{number:04}-{Path(name).name}")
            digests.append(source.digest())
            moved += source.moved
        name = Path(names[0]).name if len(names) == 1 else "*"
        pattern = f"0000-{name}" if len(names) == 1 else "[0-9][0-9][0-9][0-9]-*"
        return {"name": pattern, "rest": rest, "digests": digests, "moved": moved}

    def _convert(self, place: Path) -> None:
        _core.trace_write(
            json.dumps({"trace": [self.source], "skip_bad": self.skip_bad}), str(place / COLUMNS), _core.Control()
        )


def _copied(source: urls.Ranges, to: Path) -> None:
    with to.open("wb") as file:
        for offset in range(0, source.size, urls.BLOCK):
            file.write(source.read(offset, urls.BLOCK))


@dataclass(frozen=True)
class Prefill:
    """A drive that is written before a run, in the state in which many runs of a study find it."""

    key: str
    spec: str
    store: Store

    def __repr__(self) -> str:
        return f"Prefill({self.key})"

    def here(self) -> Made:
        """Takes it from the study's store, or makes it for all others, unless it is on this machine."""
        with held(f"prefill-{self.key}", self._make) as (place, note):
            return Made(place, note)

    def _make(self, place: Path) -> Note:
        there = f"{PREFILLS}/{self.key}"
        kept = shared(self.key)
        known = self.store.document(f"{there}/note.json")
        if known is not None:
            for name in known["files"]:
                self.store.fetch(f"{there}/{name}", place / name)
            return {"files": known["files"], "moved": known.get("bytes", 0)}
        if kept is None:
            return {"files": []}
        _core.run(self.spec, _core.Control((str(place), kept[1], kept[2])), None)
        files = sorted(p.name for p in place.iterdir())
        for name in files:
            self.store.write(f"{there}/{name}", (place / name).read_bytes())
        size = sum((place / name).stat().st_size for name in files)
        self.store.write(f"{there}/note.json", json.dumps({"files": files, "bytes": size}).encode())
        return {"files": files, "moved": 0}


@dataclass(frozen=True)
class State:
    """The state that runs begin with (`from_state`): a file of who asks, which goes through the study's store."""

    source: str
    digest: str
    store: Store

    def __repr__(self) -> str:
        return f"State({self.key})"

    @property
    def key(self) -> str:
        """Tells it from all others."""
        return f"state-{self.digest[:16]}"

    @contextmanager
    def held(self) -> Iterator[Path]:
        """The file on this machine, kept while the block runs."""
        with held(self.key, self._make) as (place, _):
            yield place / "state"

    def here(self) -> Made:
        """Takes it from the study's store, unless it is on this machine."""
        with held(self.key, self._make) as (place, note):
            return Made(place, note)

    def _make(self, place: Path) -> Note:
        if not self.store.fetch(f"{STATES}/{self.digest}", place / "state"):
            raise MissingError(f"{self.store}/{STATES}/{self.digest}: the state {self.source} is not there any more")
        return {}


def state_of(spec: dict[str, Any], digests: Digests, store: Store) -> State | None:
    """The state that a run begins with, put where machines that have not this one's files find it."""
    source = str(spec.get("from_state") or "")
    digest = digests.of(source) if source else None
    if digest is None:
        return None
    if not store.there(f"{STATES}/{digest}"):
        store.put(Path(source), f"{STATES}/{digest}")
    return State(source, digest, store)


def columns_of(spec: dict[str, Any], digests: Digests) -> tuple[Columns, ...]:
    """The traces of a specification that are in stores."""
    traces = spec.get("trace") or []
    traces = [traces] if isinstance(traces, str) else list(traces)
    skip_bad = str(spec.get("skip_bad") or 0)
    # How many lines were passed over is told of the trace itself.
    alone = len(traces) == 1 and skip_bad == "0" and "skip_bad" not in traces[0]
    found = []
    for text in traces:
        if urls.is_url(text):
            ((file, _),) = parts(text)
            stamp = " ".join(digests.stamp(name) for name in digests.files(file))
            found.append(Columns(text, stamp, skip_bad, alone))
    return tuple(found)


# Fields that say what is done to a prefilled drive, or recorded of it.
_AFTER = {
    "limit", "from", "until", "filter", "arrivals", "scheduler", "scale_time", "window", "stall", "adjusted_blocks",
    "adjusted_rule", "requests", "media_log", "burst", "join", "skip_bad", "save_state",
}  # fmt: skip


def prefill_of(resolved: dict[str, Any], named: str, spec: dict[str, Any], store: Store) -> Prefill | None:
    """What a run is prefilled with where others may begin with the same; `named` tells its traces."""
    given = str(resolved.get("prefill") or "0")
    if given.partition(",")[0].rstrip("%") in ("0", "") or given.startswith("read") or ".py:" in resolved["layer"]:
        return None
    if resolved.get("array") not in (None, "single") or resolved.get("stack") or resolved.get("verify_media"):
        return None
    before = {k: v for k, v in resolved.items() if k not in _AFTER and k != "trace"}
    text = json.dumps([fingerprint(), before, named if resolved.get("wrap") == "prefilled" else ""], sort_keys=True)
    short = {k: v for k, v in spec.items() if k not in ("requests", "media_log", "save_state")}
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Prefill(key, json.dumps({**short, "limit": 1}), store)
