"""A translation layer of one's own, in Python, in the same engine as all others.

class Mine(smrlab.TranslationLayer):
    def host_blocks(self): ...
    def read(self, lba, blocks, plan): ...
    def write(self, lba, blocks, plan): ...

smrlab.run("synth:uniform", drive="tiny", layer=Mine, verify_media=True)
"""

from __future__ import annotations

import importlib.util
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import InputError

if TYPE_CHECKING:
    from . import _core


class TranslationLayer(ABC):
    """A pure state machine: a host request in, a plan of media operations out.

    Addresses and lengths are in blocks of 512 B. A method must only depend on what the object was told before: no
    clock, no files, no randomness of its own.
    """

    #: Whether `locate` answers; without it requests are served in the order in which they came.
    locates = False

    def __init__(self, medium: _core.Medium) -> None:
        self.medium = medium

    @abstractmethod
    def host_blocks(self) -> int:
        """How many blocks the host sees: these, or as many as the drive counts if that is less."""

    @abstractmethod
    def read(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        """Plans a host read: every block of the host's buffer is brought by `plan.read` or `plan.zero`."""

    @abstractmethod
    def write(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        """Plans a host write, with the cleaning that it needs."""

    def discard(self, lba: int, blocks: int, plan: _core.Plan) -> None:  # noqa: B027
        """The host no longer needs the blocks; keeping them is always right."""

    def locate(self, write: bool, lba: int, blocks: int) -> int | tuple[int, bool] | None:
        """The PBA of the first media operation that the request would cause now.

        With `(pba, writes)` also its direction; the PBA alone stands for that of the request.
        """
        return None

    @staticmethod
    def runs(pbas: Sequence[int | None]) -> Iterator[tuple[int | None, int, int]]:
        """Consecutive PBAs, or Nones, as extents `(pba, blocks, at)`, with `at` counting from 0 over all of them."""
        start = 0
        for i in range(1, len(pbas) + 1):
            last = pbas[i - 1]
            if i == len(pbas) or pbas[i] != (None if last is None else last + 1):
                yield pbas[start], i - start, start
                start = i


def load(text: str) -> type[TranslationLayer] | None:
    """The class that `PATH.py:CLASS` names; None where `text` is the name of a built-in layer.

    Raises InputError when there is no such file or class.
    """
    path, _, name = (f"{text}:" if text.endswith(".py") else text).rpartition(":")
    if not path.endswith(".py"):
        return None
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise InputError(f"layer {text}: there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as fault:
        raise InputError(f"layer {text}: {path} does not run: {type(fault).__name__}: {fault}") from fault
    found = getattr(module, name, None)
    if not (inspect.isclass(found) and issubclass(found, TranslationLayer)):
        classes = {n: c for n, c in vars(module).items() if inspect.isclass(c) and c is not TranslationLayer}
        own = ", ".join(n for n, c in classes.items() if issubclass(c, TranslationLayer)) or "none"
        if "," in name:
            raise InputError(f"layer {text}: a layer in Python has no parameters; say {path}:{name.partition(',')[0]}")
        if not name:
            raise InputError(f"layer {text}: which class of it? {path}:CLASS; it has: {own}")
        raise InputError(f"layer {text}: no layer '{name}' in {path}; it has: {own}")
    return found
