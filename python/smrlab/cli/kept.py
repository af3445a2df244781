"""What is kept of a device as it is now: its state as a file, its store under a label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..devices import Device
from ..text import counted
from . import console
from . import options as o


def state(name: o.DeviceName, out: Annotated[Path, typer.Option("--out", help="The file.", metavar="FILE")]) -> None:
    """Write the state."""
    doc = Device.named(name).ask("state", path=str(out.absolute()))
    over = f"{doc['array']} over {doc['disks']} of " if "array" in doc else ""
    console.note(f"{out}: {over}{doc['layer']} on {doc['drive']}, {counted(doc['records'], 'record')}")


def snapshot(name: o.DeviceName, label: Annotated[str, typer.Argument(help="The snapshot's label.")]) -> None:
    """Take a snapshot."""
    with console.bar(f"{name}@{label}") as bar:
        path = Device.named(name).snapshot(label, bar)
    console.note(f"{name}@{label}: {path}")
