"""`smrlab list` and `smrlab explain`: what there is, from the engine's registries."""

from __future__ import annotations

import difflib
import json
from typing import Annotated, Any

import typer
from rich.markdown import Markdown
from rich.markup import escape

from .. import _core
from ..errors import InputError
from . import console
from . import options as o

# The engine's registries, as users call them.
KINDS = ("drives", "layers", "arrays", "formats", "generators", "schedulers", "policies", "papers")
# Kinds whose registry is not the engine's, and what they hold.
ELSEWHERE: dict[str, list[dict[str, Any]]] = {"papers": []}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("list", help="List drives, layers, arrays, formats, generators, policies, schedulers or papers.")(show)
    app.command("explain", help="Say what a name is: reference, every parameter with unit, default and range.")(explain)


def entries(kind: str) -> list[dict[str, Any]]:
    """The entries of a registry."""
    if kind in ELSEWHERE:
        return ELSEWHERE[kind]
    found: list[dict[str, Any]] = json.loads(_core.list_json(kind))
    return found


def show(
    kind: Annotated[
        str | None, typer.Argument(help=f"One of: {', '.join(KINDS)}; all without.", metavar="[KIND]")
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """List the entries of one registry, or of all."""
    if kind is not None and kind not in KINDS:
        raise InputError(f"unknown kind '{kind}'{_hint(kind)}; known: {', '.join(KINDS)}")
    found = {k: entries(k) for k in ([kind] if kind else [k for k in KINDS if k != "policies"])}
    if as_json:
        console.print_json(found[kind] if kind else found)
        return
    if kind and not found[kind]:
        console.note(f"no {kind} in this version")
        return
    for name, rows in found.items():
        if rows:
            table = console.table(name, ["name", "what it is"])
            for row in rows:
                table.add_row(escape(row["name"]), escape(row.get("summary", "")))
            table.show_header = False
            console.out().print(table)


def explain(
    name: Annotated[str, typer.Argument(help="The name of anything that 'smrlab list' names.")],
    as_json: o.JsonOption = False,
) -> None:
    """Explain one name."""
    doc: dict[str, Any] = json.loads(_core.explain_json(name.split(",")[0]))
    if as_json:
        console.print_json(doc)
    else:
        _page(doc)


def _page(doc: dict[str, Any]) -> None:
    out = console.out()
    out.print(f"[bold]{escape(doc['name'])}[/bold] ({doc.get('kind', '')}): {escape(doc.get('summary', ''))}")
    if doc.get("page"):
        out.print()
        out.print(Markdown(doc["page"].strip()))
    if doc.get("reference"):
        out.print(f"\nReference: {escape(doc['reference'])}")
    if doc.get("capabilities"):
        out.print("Capabilities: " + escape(_capabilities(doc["capabilities"])))
    if doc.get("params"):
        table = console.table("", ["parameter", "default", "accepts", "what it is"])
        for p in doc["params"]:
            table.add_row(*(escape(str(p.get(key) or "")) for key in ("name", "default", "accepts", "doc")))
        out.print(table)


def _capabilities(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(k.replace("_", " ") if v is True else f"{k}: {v}" for k, v in value.items() if v)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _hint(kind: str) -> str:
    near = difflib.get_close_matches(kind, KINDS, 1, 0.6)
    return f" (did you mean '{near[0]}'?)" if near else ""
