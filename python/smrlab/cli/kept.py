"""What is kept of a device: its state as a file, its store under a label, what its clients did."""

from __future__ import annotations

import shlex
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


def recorded(device: Device) -> tuple[str, str] | None:
    """The file in which a server records what clients do, and the command that simulates it."""
    config = device.config()
    if not config.get("record"):
        return None
    drive = device.ask("info").get("engine", {}).get("drive", config["drive"])
    words = ["smrlab", "run", "--trace", config["record"], "--drive", drive]
    usual = {"layer": None, "array": None, "scheduler": "fcfs", "metadata": "nv", "from_state": None, "seed": 1}
    for key, left_out in usual.items():
        if config.get(key) not in (None, left_out):
            words += [f"--{key.replace('_', '-')}", str(config[key])]
    # A state knows its drive by this text: it is read where the device was made.
    folder = device.server().get("folder")
    there = f"cd {shlex.quote(folder)} && " if folder and folder != str(Path.cwd()) else ""
    return config["record"], there + shlex.join(words)


def told(device: Device, record: str, command: str) -> str:
    """Where what clients did is, and the command that simulates it; or why it is nowhere."""
    if Path(record).is_file():
        return f"what its clients did is in {record}; replay it: {command}"
    why = [e["text"] for e in device.last_events() if e["text"].startswith("recording: ")]
    if not why or "the trace is empty" in why[-1]:
        why = ["its clients sent no request since it was started"]
    return f"there is no recording in {record}: {why[-1].removeprefix('recording: ')}"
