"""`smrlab device zones`: the zones of a host-managed or host-aware drive, as a table, as JSON and as cells."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any

import typer

from ..devices import Device
from ..errors import InputError
from . import console
from . import options as o

# A zone in the picture, by its condition; of a zone that is written in part how full it is.
CELLS = {"empty": "·", "full": "█", "read-only": "r", "offline": "x", "not-write-pointer": "c"}
PARTS = "▁▂▃▄▅▆▇"
WIDTH = 64


def cell(zone: dict[str, Any]) -> str:
    """A zone as one character."""
    if mark := CELLS.get(zone["condition"]):
        return mark
    share = (zone["pointer"] - zone["start"]) / zone["blocks"]
    return PARTS[min(int(share * len(PARTS)), len(PARTS) - 1)]


def alike(zones: list[dict[str, Any]]) -> list[tuple[int, int, dict[str, Any], int]]:
    """Runs of neighbouring zones of one condition: the first and last number, the first zone, and blocks written."""
    runs = []
    for _, run in groupby(enumerate(zones), key=lambda z: z[1]["condition"]):
        found = list(run)
        written = sum(z["pointer"] - z["start"] for _, z in found if z["pointer"] is not None)
        runs.append((found[0][0], found[-1][0], found[0][1], written))
    return runs


# What an option that lets a zone fail takes.
FAIL_HELP = "N=offline or N=read-only: zone N fails, as with a head of the drive."


def fail(device: Device, option: str, text: str) -> None:
    """Lets a zone fail that `text` names by its number."""
    zones = device.ask("zones")["zones"]
    number, _, condition = text.partition("=")
    if not number.isdecimal() or int(number) >= len(zones) or condition not in ("offline", "read-only"):
        raise InputError(
            f"{option} {text}: write N=offline or N=read-only; zones are numbered from 0 to {len(zones) - 1}"
        )
    device.ask("fail-zone", lba=zones[int(number)]["start"], condition=condition)


def show(
    name: Annotated[str, typer.Argument(help="The device's name.")],
    fail_zone: Annotated[str | None, typer.Option("--fail", help=f"As device inject --zone. {FAIL_HELP}")] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show zones."""
    device = Device.named(name)
    if fail_zone is not None:
        fail(device, "--fail", fail_zone)
    told = device.ask("zones")
    zones = told["zones"]
    if as_json:
        console.print_json({**told, "zones": zones})
        return
    table = console.table("", ["zones", "start", "blocks each", "condition", "written"], numeric=True)
    for first, last, zone, written in alike(zones):
        numbers = str(first) if first == last else f"{first}-{last}"
        table.add_row(numbers, f"{zone['start']:,}", f"{zone['blocks']:,}", zone["condition"], f"{written:,}")
    out = console.out()
    out.print(table)
    picture = "".join(map(cell, zones))
    for at in range(0, min(len(picture), 40 * WIDTH), WIDTH):
        out.print(f"{at:>8} {picture[at : at + WIDTH]}", highlight=False)
    if len(picture) > 40 * WIDTH:
        out.print(f"         ... {len(picture):,} zones in all; --json has every one")
    parts = f"{PARTS[0]} to {PARTS[-1]} open or closed, by how full"
    limit = f"at most {told['max_open']} open"
    if told["model"] == "host-aware":
        cached = sum(zone["non_sequential"] for zone in zones)
        limit = f"{cached} of them have blocks in the drive's log"
    out.print(f"c conventional  · empty  {parts}  █ full; {limit}")
