"""What a run is: its specification, the content of what it reads, and what of the engine changes results."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smrlab import _core, urls
from smrlab.secret import hidden

from .store import Store

DIGESTS = "digests.json"
# What of a specification may be in a file, and what the names of such files have, as the engine tells them.
FILES = {"trace": "", "from_state": "", "drive": r"/|\.toml$", "layer": r"\.py$"}


@functools.cache
def fingerprint() -> str:
    """The engine's version, and a digest of what it answers to a few requests on every layer, array and scheduler.

    Two builds with the same one give the same results as far as these tell; one that changed results has another.
    """
    told: list[Any] = []
    runs = [{"layer": entry["name"]} for entry in json.loads(_core.list_json("layers"))]
    for entry in json.loads(_core.list_json("arrays")):
        runs.append({"array": f"{entry['name']}", "layer": "cmr"})
        runs.append({"array": f"{entry['name']},disks=5", "layer": "rmw"})
    runs += [{"layer": "rmw", "scheduler": entry["name"]} for entry in json.loads(_core.list_json("schedulers"))]
    trace = "synth:uniform,requests=150,write=70%,size=4KiB,interarrival=5ms"
    for run in runs:
        spec = {"drive": "tiny", "trace": [trace], "wrap": "capacity", "prefill": "50%", "seed": 7, **run}
        try:
            document = json.loads(_core.run(json.dumps(spec), _core.Control(), None)[0])
            document.pop("provenance", None)
            told.append(document)
        except Exception as fault:
            # What an array or layer asks for beside its name is no result.
            told.append(type(fault).__name__)
    text = json.dumps(told, sort_keys=True)
    return f"{_core.version()} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


class Digests:
    """The content digest of each file that a run reads, remembered in the study by what tells a changed one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, list[Any]] = store.document(DIGESTS) or {}
        self._seen: dict[str, str] = {}
        # Asked once in a plan: a study of many points has few traces.
        self._stamps: dict[str, str] = {}
        self._files: dict[str, list[str]] = {}

    def of(self, name: str) -> str | None:
        """The digest of a file or an object; None for an object that nobody has read yet."""
        if name in self._seen:
            return self._seen[name]
        stamp = self.stamp(name)
        known = self._known.get(hidden(name))
        if known is None or known[0] != stamp:
            if urls.is_url(name):
                return None
            with Path(name).open("rb") as file:
                known = [stamp, hashlib.file_digest(file, "sha256").hexdigest()]
            self._known[hidden(name)] = known
        self._seen[name] = str(known[1])
        return self._seen[name]

    def learn(self, name: str, stamp: str, digest: str) -> None:
        """Remembers what somebody else has read."""
        self._known[hidden(name)] = [stamp, digest]
        self._seen[name] = digest

    def stamp(self, name: str) -> str:
        """What tells a changed file from an unchanged one without reading it."""
        if name not in self._stamps:
            if urls.is_url(name):
                self._stamps[name] = urls.stamp(name)
            else:
                stat = Path(name).stat()
                self._stamps[name] = f"{stat.st_size} {stat.st_mtime_ns}"
        return self._stamps[name]

    def files(self, name: str) -> list[str]:
        """The files or objects that a name stands for, in order."""
        if name not in self._files:
            self._files[name] = sorted(files_of(name))
        return self._files[name]

    def save(self) -> None:
        """Writes what is known."""
        self._store.write(DIGESTS, json.dumps(self._known).encode())


def address(resolved: str, digests: Digests) -> str:
    """The address of a resolved specification (as JSON): 16 hexadecimal digits, the same wherever its files are."""
    spec = json.loads(resolved)
    for key, sign in FILES.items():
        if key in spec:
            spec[key] = _named(spec[key], sign, digests)
    text = json.dumps([fingerprint(), spec], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _named(value: Any, sign: str, digests: Digests) -> Any:
    """A value with digests in the place of the names of files."""
    if isinstance(value, list):
        return [_named(v, sign, digests) for v in value]
    if isinstance(value, str):
        for file, rest in parts(value):
            if re.search(sign, file):
                return ["/".join(digests.of(f) or "?" for f in digests.files(file)), rest]
    return value


def parts(text: str) -> Iterator[tuple[str, str]]:
    """A text as a file and what stands behind it (`:FORMAT`, `,k=v`, `:CLASS`); nothing where it names no file."""
    if text.startswith("synth:") or text in ("", "-"):
        return
    if urls.is_url(text):
        head, colon, item = text.rpartition(":")
        whole = not colon or item.startswith("//") or "/" in item or not item[:1].isalpha()
        yield (text, "") if whole else (head, f":{item}")
        return
    for cut in (len(text), text.rfind(":"), text.find(","), text.find(":")):
        head = text[:cut] if cut > 0 else ""
        if head and (Path(head).exists() or (any(c in head for c in "*?[") and files_of(head))):
            yield head, text[cut:]
            return


def files_of(name: str) -> list[str]:
    """The files or objects that a name stands for: itself, those of a folder, or of a pattern."""
    if urls.is_url(name):
        return urls.listed(name) or [name]
    path = Path(name)
    if path.is_dir():
        return [str(p) for p in path.iterdir() if p.is_file() and not p.name.startswith(".")]
    if path.exists():
        return [name]
    return [str(p) for p in Path(path.anchor).glob(str(path.relative_to(path.anchor))) if p.is_file()]
