"""`smrlab drive`: the presets and what their numbers rest on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import _core
from ..errors import MissingError
from . import catalogue, complete, console
from . import options as o
from .console import escape

importer = typer.Typer(help="Make a drive file from files of another simulator.", no_args_is_help=True)
app = typer.Typer(help="Drive presets: what there is, and what every number rests on.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    app.add_typer(importer, name="import")
    parent.add_typer(app, name="drive")


@app.command("list", help="List the presets.")
def show_all(as_json: o.JsonOption = False) -> None:
    """List the presets."""
    catalogue.show("drives", as_json)


@app.command("show", help="Show every number of a drive, and whether it is spec, measured, fitted or assumed.")
def show(
    name: Annotated[
        str, typer.Argument(help="A preset's name, or the path of a drive file.", autocompletion=complete.drives)
    ],
    as_json: o.JsonOption = False,
) -> None:
    """Show one drive."""
    doc: dict[str, Any] = json.loads(_core.explain_json(name))
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
    out: Annotated[Path, typer.Option(help="The drive file to write.", metavar="DRIVE.toml")],
) -> None:
    """Import one drive; what a drive file cannot express is listed on stderr."""
    text, left_out = _core.import_disksim(str(file))
    try:
        out.write_text(text)
    except OSError as e:
        raise MissingError(f"{out}: cannot be written: {e.strerror}; choose another --out") from None
    for line in left_out:
        typer.echo(f"left out: {line}", err=True)
    typer.echo(f"{out} written", err=True)
