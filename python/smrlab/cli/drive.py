"""`smrlab drive`: the presets and files of drives, what their numbers rest on, and new ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import _core, files, text
from ..errors import InputError
from . import catalogue, complete, console, picture
from . import options as o
from .console import escape

importer = typer.Typer(help="Make a drive file from files of another simulator.", no_args_is_help=True)
app = typer.Typer(
    help="Drives: presets, what every number rests on, files of your own (docs/reference/drive-files.md).",
    no_args_is_help=True,
)
Named = Annotated[
    str,
    typer.Argument(
        help="A preset's name, or the path of a drive file.", autocompletion=complete.drives, metavar="DRIVE|FILE"
    ),
]

Force = Annotated[bool, typer.Option("--force", help="Replace the file where there is one.")]


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    app.add_typer(importer, name="import")
    parent.add_typer(app, name="drive")


@app.command("list", help="List the presets.")
def show_all(as_json: o.JsonOption = False) -> None:
    """List the presets."""
    catalogue.show("drives", as_json)


NEW = """Make a drive file after another drive; what follows from nothing that you give is taken over from there.

[bold]Example[/bold]

  smrlab drive new --like modern-7200 --capacity 2TB --rpm 5400 --zones 25 --rate 210MB/s..100MB/s --out mine.toml
"""


@app.command("new", help=NEW)
def new(
    out: Annotated[Path, typer.Option("--out", "-o", help="The drive file to write.", metavar="DRIVE.toml")],
    like: Annotated[
        str,
        typer.Option(help="The drive that it is made after.", autocompletion=complete.drives, metavar="DRIVE|FILE"),
    ] = "modern-7200",
    capacity: Annotated[str | None, typer.Option(help="Size of the medium, such as 2TB.", metavar="SIZE")] = None,
    rpm: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Revolutions a minute; without --rate the rate follows.")
    ] = None,
    zones: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Recording zones, of as many cylinders each.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Outermost and innermost, such as 210MB/s..100MB/s.", metavar="A..B")
    ] = None,
    surfaces: Annotated[
        int | None, typer.Option(min=1, max=64, help="Heads; default: as many as leave the seeks as they are.")
    ] = None,
    tracks: Annotated[int | None, typer.Option(min=1, max=64, help="Head width in tracks; 1: conventional.")] = None,
    name: Annotated[str | None, typer.Option(help="The drive's name; default: the file's.")] = None,
    force: Force = False,
) -> None:
    """Make a drive file."""
    _check_free(out, force)
    size = None if capacity is None else o.size("--capacity", capacity)
    ends = None if rate is None else _rates(rate)
    made = _core.drive_like(like, name or out.stem, size, rpm, zones, ends, surfaces, tracks)
    _write(out, made)
    _describe(str(out), json.loads(_core.drive_json(_path(out))))


def _check_free(out: Path, force: bool) -> None:
    """Refuses to replace a file, before any work is done."""
    if out.exists() and not force:
        raise InputError(f"{out}: is there already; give another --out, or --force")


def _write(out: Path, made: str) -> None:
    """Writes a drive file and says so."""
    files.write_whole(out, made.encode(), folders=False)
    console.note(f"{out} written")


def _path(file: Path) -> str:
    """A file's name such that it is not taken for a preset's."""
    path = str(file)
    return path if "/" in path or path.endswith(".toml") else f"./{path}"


def _rates(given: str) -> tuple[float, float]:
    """Bytes a second at the outer and the inner diameter; one rate is both."""
    outer, between, inner = given.partition("..")
    try:
        found = [_core.size_bytes(part.strip().removesuffix("/s")) for part in (outer, inner if between else outer)]
    except InputError:
        raise InputError(f"--rate {given}: write the outermost and the innermost rate, as 210MB/s..100MB/s") from None
    return float(found[0]), float(found[1])


@app.command("check", help="Check a drive file: all its faults at once, or what drive it is, with a picture.")
def check(
    file: Named,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the picture of its zones here.", metavar="FILE.svg")
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Check a drive file."""
    if out is not None and out.suffix != ".svg":
        raise InputError(f"--out {out}: the picture is an .svg")
    doc: dict[str, Any] = json.loads(_core.drive_json(file if "," in file else _known(file)))
    if out is not None:
        from ..plots import drives

        drives.save(doc, out)
    if as_json:
        console.print_json(doc)
    else:
        _describe(file, doc)
        if out is not None:
            console.note(f"Picture: {out}")
    # Bands that the file asks for and has no room for are a fault of it; those of layers by default are not.
    problem = doc["bands"].get("problem")
    if problem is not None and any(row["field"].startswith("bands.") for row in doc["numbers"]):
        raise InputError(f"{file}: {problem}")


def _known(name: str) -> str:
    return _path(Path(name)) if Path(name).is_file() else name


def _decimal(value: float) -> str:
    """Bytes as drives are sold."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e3:.4g} kB"


def _describe(name: str, doc: dict[str, Any]) -> None:
    """What drive it is, how fast where, and how much of it is known."""
    page = console.out()
    page.print(f"[bold]{escape(name)}[/bold]: {escape(str(doc['summary']))}")
    kinds = [row["kind"] for row in doc["numbers"]]
    count = ", ".join(f"{kinds.count(k)} {k}" for k in ("spec", "measured", "fitted", "assumed") if k in kinds)
    zones, bands = doc["zones"], doc["bands"]
    rates = [z["mb_per_s"] for z in zones]
    # A zone lies on several surfaces.
    lengths = len({z["blocks_a_track"] for z in zones})
    inside = (
        bands["problem"].removeprefix("bands: ")
        if "problem" in bands
        else f"{bands['count']:,} of {text.size(bands['mean_blocks'] * 512)} each, "
        f"{text.size(bands['data_blocks'] * 512)} in all"
    )
    for label, value in (
        ("size", f"{_decimal(doc['bytes'])} ({text.size(doc['bytes'])}), {text.counted(doc['blocks'], 'block')}"),
        ("rotation", f"{doc['rpm']:,} rpm, a revolution is {60e3 / doc['rpm']:.3g} ms"),
        (
            "tracks",
            f"{text.counted(doc['tracks'], 'track')} on {text.counted(doc['surfaces'], 'surface')}; "
            f"a head is {doc['head_width']} wide",
        ),
        ("rates", f"{text.number(max(rates))} to {text.number(min(rates))} MB/s in {text.counted(lengths, 'zone')}"),
        ("bands", inside),
        ("numbers", f"{len(kinds)}: {count}"),
    ):
        page.print(f"{label:<10}{escape(value)}")
    page.print()
    for line in picture.rates([(z["first_pba"], z["mb_per_s"]) for z in zones], doc["medium_blocks"]):
        page.print(line, markup=False)


@app.command("show", help="Show every number of a drive, and whether it is spec, measured, fitted or assumed.")
def show(
    name: Named,
    as_json: o.JsonOption = False,
) -> None:
    """Show one drive."""
    doc: dict[str, Any] = json.loads(_core.drive_json(name))
    if as_json:
        console.print_json(doc)
        return
    out = console.out()
    out.print(f"[bold]{escape(str(doc.get('name', name)))}[/bold]: {escape(str(doc.get('summary', '')))}")
    table = console.table("", ["number", "value", "unit", "kind", "source"])
    for row in doc.get("numbers", []):
        # The engine writes a number with its unit behind it: "0.85 ms".
        value, _, unit = str(row.get("value", "")).partition(" ")
        table.add_row(*map(escape, (str(row.get("field", "")), value, unit, str(row["kind"]), str(row["source"]))))
    out.print(table)


@importer.command("disksim", help="Make a drive file from DiskSim's .parv file and the files that it names.")
def disksim(
    file: Annotated[Path, typer.Argument(help="The .parv file; what it names lies beside it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The drive file to write.", metavar="DRIVE.toml")],
    force: Force = False,
) -> None:
    """Import one drive; what a drive file cannot express is listed on stderr."""
    _check_free(out, force)
    made, left_out = _core.import_disksim(str(file))
    for line in left_out:
        console.note(f"left out: {line}")
    _write(out, made)
