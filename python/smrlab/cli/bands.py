"""`smrlab device bands` and `reset-band`: the bands of a raw device."""

from __future__ import annotations

from typing import Annotated

import typer

from ..devices import Device
from . import console
from . import options as o


def show(
    name: Annotated[str, typer.Argument(help="The device's name.")],
    as_json: o.JsonOption = False,
) -> None:
    """Show bands."""
    found = Device.named(name).ask("bands")
    if as_json:
        console.print_json({"bands": found})
        return
    table = console.table("", ["band", "start", "append", "guard", "end"], numeric=True)
    for i, b in enumerate(found):
        table.add_row(str(i), *(f"{b[k]:,}" for k in ("start", "append", "guard", "end")))
    console.out().print(table)


def reset(
    name: Annotated[str, typer.Argument(help="The device's name.")],
    band: Annotated[int, typer.Argument(help="Its number, from 0.")],
) -> None:
    """Reset a band."""
    Device.named(name).ask("reset-band", band=band)
