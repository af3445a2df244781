"""`smrlab demo`: the README's first table, from what was installed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ..errors import MissingError

HELP = """Show what shingled drives do to a database: seven layers under a recorded PostgreSQL.

This is the first table of the README. The trace comes with smrlab; figures and result files go to DIR.

[bold]Example[/bold]

  smrlab demo
"""
TRACE = "postgres.parquet"
LAYERS = ("cmr", "rmw", "static-1234", "static-R(4123)", "disk-cache", "s-block", "log")
# Four clients, as when it was recorded; the recording's own times are those of a much faster disk. What it reads was
# written before.
HOW = ("--drive", "modern-7200", "--arrivals", "closed,depth=4", "--prefill", "read")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo", help=HELP)(demo)


def trace() -> Path:
    """The trace that was installed with the package, or the checkout's."""
    package = Path(__file__).parent.parent
    places = (package / TRACE, package.parent.parent / "traces" / TRACE)
    for place in places:
        if place.is_file():
            return place
    raise MissingError(f"{TRACE} is not in {places[0].parent}: install smrlab again")


def demo(
    out: Annotated[Path, typer.Option(help="Where the report and the results go.", metavar="DIR")] = Path("demo-out"),
) -> None:
    """Run the comparison of the README."""
    from . import build

    source = trace()
    here = Path.cwd()
    shown = source.relative_to(here) if source.is_relative_to(here) else source
    words = ["compare", "--trace", str(shown), *HOW]
    for layer in LAYERS:
        words += ["--layer", layer]
    words += ["--out", str(out)]
    print("$ smrlab", shlex.join(words), flush=True)
    build(words)([*words, "--force"], standalone_mode=False)
