"""`smrlab probe`: what kind of drive it is, from timed requests alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from .. import _core, targets, text
from ..errors import InputError, Interrupted, MissingError
from ..work import attended
from . import console
from . import options as o
from .geometry import DestroyOption, KeepCacheOption, TargetArgument, YesOption

LIMITS = {"entries": ", limited by the number of writes", "bytes": ", limited by their size"}
ORDERS = {"oldest": ", oldest first", "newest": ", newest first", "by-place": ", by place"}


def register(parent: typer.Typer) -> None:
    """Adds the command."""
    parent.command(
        "probe",
        help="Find out whether a drive is shingled, and how it stalls: cache, bands, mapping, cleaning.",
        epilog="Example: smrlab probe 'sim:modern-7200,capacity=1TB/disk-cache,cache=1%' --destroy",
    )(probe)


def probe(
    target: TargetArgument,
    destroy: DestroyOption = False,
    yes: YesOption = False,
    keep_cache: KeepCacheOption = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write probe.json and pictures here.", metavar="DIR")
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Find out what kind of drive it is."""
    resolved = targets.resolve(target)
    zones = targets.zones(target)
    said = targets.told(target, resolved, zones)
    if not destroy:
        _without_writing(target, said, as_json, out)
        return
    targets.confirm(target, resolved, yes)
    # What was written on a simulated drive ends with the command.
    keep = None if out is None or resolved.startswith("sim:") else out / "sittings.json"
    if keep:
        targets.folder(keep.parent)
    try:
        with targets.stoppable(), console.progress() as watch:
            place = str(keep) if keep else None
            reported = json.dumps(zones) if zones else None
            text = attended(
                lambda control: _core.identify(resolved, keep_cache, place, control, console.note, reported),
                target,
                watch,
            )
        doc: dict[str, Any] = json.loads(text)
        if said:
            doc["says"] = said
        if out is not None:
            from ..plots import outside

            targets.folder(out)
            (out / "probe.json").write_text(json.dumps(doc, indent=1) + "\n")
            outside.evidence(doc, out)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(f"interrupted: {_where(keep, resolved)}") from None
    except MissingError as e:
        raise MissingError(f"{e}; {_where(keep, resolved)}") from None
    if keep:
        keep.unlink(missing_ok=True)
    if as_json:
        console.print_json(doc)
    else:
        _show(target, doc)


def _where(keep: Path | None, resolved: str) -> str:
    if resolved.startswith("sim:"):
        return "nothing is kept of a simulated drive, the same command begins anew"
    if keep is None:
        return "nothing is kept without --out"
    if not keep.exists():
        return "nothing was found out yet"
    return f"what was found out is in {keep}; the same command goes on"


def _without_writing(target: str, said: dict[str, Any], as_json: bool, out: Path | None) -> None:
    """What the device says of itself is all that can be known without writing."""
    if not said:
        raise InputError(f"{target} says nothing of itself; measuring what it is needs writes: add --destroy")
    if out is not None:
        console.note(f"nothing is written to {out}: it is for what is measured, which needs --destroy")
    if as_json:
        console.print_json({"says": said})
        return
    _says(said)
    console.note("measuring what it is needs writes, which destroy its data: add --destroy")


def _says(said: dict[str, Any]) -> None:
    out = console.out()
    out.print("[bold]what it says of itself[/bold]")
    for key, value in said.items():
        parts = value.items() if isinstance(value, dict) else ()
        text = ", ".join(f"{name} {part}" for name, part in parts) or str(value)
        out.print(f"  {escape(key)}: {escape(text)}")


def _size(blocks: int) -> str:
    size = blocks * 512
    # From where on it is rounded up to one of the next unit.
    if size >= 999.95e6:
        return f"{size / 1e9:.2f} GB"
    return f"{size / 1e6:.1f} MB" if size >= 999.95e3 else f"{size / 1e3:.1f} kB"


def _show(target: str, doc: dict[str, Any]) -> None:
    """The page of an answer."""
    out = console.out()
    if said := doc.get("says"):
        _says(said)
    out.print(f"[bold]{escape(target)}[/bold]: {escape(doc['answer'])}")
    rows = [("kind", f"{doc['kind']} ({doc['confidence']:.0%} sure)")]
    if cache := doc.get("cache"):
        place = doc.get("cache_place")
        where = "" if place is None else f", near {place:.0%} of the LBAs"
        rows.append(("cache", f"{cache}{where}"))
    if size := doc.get("cache_size"):
        limit = LIMITS.get(size.get("limit"), "")
        writes = text.counted(size["writes"], "write")
        rows.append(
            ("cache size", f"{_size(size['blocks'])}: {writes} of {text.size(size['write_blocks'] * 512)}{limit}")
        )
    if band := doc.get("band"):
        spread = f" ± {band['spread']:.0f}"
        rows.append(("band", f"{band['blocks']:,}{spread} blocks ({_size(band['blocks'])}), {band['rewrite_s']:.2f} s"))
    if along := doc.get("bands_along"):
        places = (f"{text.counted(b['blocks'], 'block')} at LBA {b['lba']:,}" for b in along)
        rows.append(("elsewhere", ", ".join(places)))
    if toward := doc.get("toward"):
        rows.append(("shingled", f"towards {toward} LBAs"))
    rows += [(key.replace("_", " "), doc[key]) for key in ("mapping", "cleaning", "own_cache") if key in doc]
    if idle := doc.get("idle"):
        order = ORDERS.get(idle.get("order"), "")
        rows.append(("idle", f"after {idle['after_s']:.2f} s, {idle['band_s']:.2f} s a band{order}"))
    for name, value in rows:
        out.print(f"  {name:<12}{escape(value)}")
    out.print("[bold]what was done and seen[/bold]")
    for e in doc["evidence"]:
        out.print(f"  {escape(e['test'])}: {escape(e['did'])}. {escape(e['saw'])}.")
    q = doc["quality"]
    out.print(f"{text.counted(q['requests'], 'request')} in {q['seconds'] / 3600:.2f} h of the drive's time")
