"""`smrlab device fail` and `replace`: disks of an array die and are rebuilt."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ..devices import Device
from ..errors import InputError
from . import console
from . import options as o

Disk = Annotated[int, typer.Option("--disk", min=0, help="Its number in the array, from 0.")]


def fail(name: o.DeviceName, disk: Disk) -> None:
    """Let a disk die."""
    device = Device.named(name)
    device.ask("fail", disk=disk)
    engine = device.ask("info")["engine"]
    out = [d["disk"] for d in engine["disks"] if d["state"] != "whole"]
    if len(out) <= engine["losses"]:
        console.note(f"disk {disk} of {name} is dead; a fresh one: smrlab device replace {name} --disk {disk}")
        return
    console.note(
        f"disk {disk} of {name} is dead. The array stands the loss of {engine['losses']} for certain, and not whole "
        f"are now {', '.join(map(str, out))}: what was on them may be lost, and requests for it are refused."
    )


def replace(
    name: o.DeviceName, disk: Disk, wait: Annotated[bool, typer.Option("--wait", help="Until it is rebuilt.")] = False
) -> None:
    """Replace a disk."""
    device = Device.named(name)
    state = device.ask("replace", disk=disk)[disk]
    if not wait:
        console.note(f"disk {disk} of {name} is being rebuilt: smrlab device info {name} shows how far it is")
        return
    with console.bar(f"{name}: rebuilding disk {disk}") as bar:
        while state["state"] == "rebuilding":
            time.sleep(0.2)
            state = device.ask("info")["engine"]["disks"][disk]
            if bar:
                bar(state.get("share", 1.0))
    if state["state"] != "whole":
        raise InputError(f"disk {disk} of {name} is {state['state']}: smrlab device events {name}")
