"""`smrlab list` and `smrlab explain`: what there is, from the engine's registries."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .. import _core, plain, shelf
from ..errors import InputError
from . import complete, console
from . import options as o

# The engine's registries as users call them, and the papers.
KINDS = ("drives", "layers", "arrays", "formats", "generators", "schedulers", "policies", "papers", "metrics")


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(
        "list",
        help="List drives, layers, arrays, formats, generators, schedulers, policies, papers, or what results say.",
    )(show)
    app.command("explain", help="Say what a name is: reference, every parameter with unit, default and range.")(explain)


def entries(kind: str) -> list[dict[str, Any]]:
    """The entries of a registry."""
    if kind == "papers":
        return shelf.listed()
    found: list[dict[str, Any]] = json.loads(_core.list_json(kind))
    return found


def show(
    kind: Annotated[
        str | None,
        typer.Argument(
            help=f"One of: {', '.join(KINDS)}; all without.",
            metavar="[KIND]",
            autocompletion=complete.words(*KINDS),
        ),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """List the entries of one registry, or of all."""
    if kind is not None and kind not in KINDS:
        raise InputError(f"unknown kind '{kind}'{_hint(kind)}; known: {', '.join(KINDS)}")
    # The papers come with the source: without it the rest is still there.
    every = [k for k in KINDS if k != "policies" and (k != "papers" or shelf.there())]
    found = {k: entries(k) for k in ([kind] if kind else every)}
    if as_json:
        console.print_json(found[kind] if kind else found)
        return
    for name, rows in found.items():
        if rows:
            lines = plain.table([(row["name"], row.get("summary", "")) for row in rows])
            print("\n".join(["", plain.bold(name), *lines]))


def explain(
    name: Annotated[
        str, typer.Argument(help="The name of anything that 'smrlab list' names.", autocompletion=complete.names)
    ],
    as_json: o.JsonOption = False,
) -> None:
    """Explain one name."""
    paper = _paper(name)
    try:
        doc: dict[str, Any] = json.loads(_core.explain_json(name))
    except InputError:
        other = paper or _parameter(name)
        if not other:
            raise
        doc, paper = other, None
    if as_json:
        console.print_json({**doc, "paper": paper} if paper else doc)
        return
    _page(doc)
    # A drive may be called after the paper that describes it.
    if paper:
        print()
        _page(paper)


def _page(doc: dict[str, Any]) -> None:
    if doc["kind"] == "parameter":
        rows = [[entry[key] for key in ("of", "default", "accepts", "doc")] for entry in doc["entries"]]
        print(f"{plain.bold(doc['name'])} (parameter)\n")
        print("\n".join(plain.table(rows, ("of", "default", "accepts", "what it is"))))
        return
    if doc["kind"] in ("metric", "metrics"):
        print("\n\n".join(map(_metric, doc.get("metrics", [doc]))))
        return
    about = plain.prose(f"{doc['name']} ({doc.get('kind', '')}): {doc.get('summary', '')}")
    print(plain.bold(doc["name"]) + about.removeprefix(doc["name"]))
    if doc.get("page"):
        print("\n" + plain.prose(doc["page"]))
    if doc.get("idle"):
        print("\n" + plain.prose(f"When it is idle: {doc['idle']}."))
    if doc.get("reference"):
        print("\n" + plain.prose(f"Reference: {doc['reference']}"))
    if doc.get("capabilities"):
        print(plain.prose(f"Capabilities: {_capabilities(doc['capabilities'])}"))
    if doc.get("controller"):
        rows = [[str(name), str(words)] for name, words in doc["controller"].items()]
        print("\n" + "\n".join(plain.table(rows, ("controller", "what is on, and what it costs"))))
    for claim in doc.get("claims", []):
        print("\n" + plain.prose(f"{claim['id']} ({claim['verdict']}): {claim['statement']}"))
    if doc.get("params"):
        keys = ("name", "default", "accepts", "doc")
        rows = [[str(p.get(key) or "") for key in keys] for p in doc["params"]]
        print("\n" + "\n".join(plain.table(rows, ("parameter", "default", "accepts", "what it is"))))


def _paper(name: str) -> dict[str, Any] | None:
    """What a paper is about, and its claims with the verdicts on record for full runs; none if it is no paper."""
    entry = next((e for e in shelf.listed() if e["name"] == name), None) if shelf.there() else None
    if entry is None:
        return None
    from .. import papers
    from ..papers.record import recorded

    paper = papers.load(name)
    verdicts = recorded(paper).get("full", {})
    claims = [
        {"id": c.id, "statement": c.statement, "verdict": verdicts.get(c.id, {}).get("verdict", "not run")}
        for c in paper.claims
    ]
    return {**entry, "claims": claims}


def _parameter(name: str) -> dict[str, Any] | None:
    """What a parameter is, of all that have it: those that say the same together."""
    found: dict[tuple[str, ...], list[str]] = {}
    for kind in ("layers", "arrays", "generators", "formats", "schedulers", "drives"):
        for entry in entries(kind):
            for param in entry["params"]:
                if param["name"] == name:
                    said = tuple(str(param.get(key) or "") for key in ("default", "accepts", "doc"))
                    found.setdefault(said, []).append(entry["name"])
    same = [{"of": ", ".join(of), "default": d, "accepts": a, "doc": doc} for (d, a, doc), of in found.items()]
    return {"kind": "parameter", "name": name, "entries": same} if same else None


def _metric(doc: dict[str, Any]) -> str:
    """What a key of a result says."""
    unit = f", in {doc['unit']}" if doc["unit"] else ""
    lines = [f"{plain.bold(doc['name'])} ({doc['title']}{unit}): {doc['summary']}"]
    lines += [f"  {word}: {doc[key]}" for word, key in (("Formula", "formula"), ("Source", "reference")) if doc[key]]
    return "\n".join(lines)


def _capabilities(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(k.replace("_", " ") + ("" if v is True else f" {v}") for k, v in value.items() if v)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _hint(kind: str) -> str:
    import difflib

    near = difflib.get_close_matches(kind, KINDS, 1, 0.6)
    return f" (did you mean '{near[0]}'?)" if near else ""
