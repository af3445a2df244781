"""`smrlab drive`: the presets and what their numbers rest on."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .. import _core
from . import catalogue, complete, console
from . import options as o
from .console import escape

app = typer.Typer(help="Drive presets: what there is, and what every number rests on.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
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
