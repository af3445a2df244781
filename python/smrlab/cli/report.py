"""`smrlab report`: figures from result files alone."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options as o

HELP = """(Re)draw DIR/report.html and DIR/*.svg from the result files in DIR alone.

[bold]Example[/bold]

  smrlab report out
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report", help=HELP)(report)


def report(
    folder: Annotated[
        str, typer.Argument(help="A folder, or a URL, that --out of run or compare has written.", metavar="DIR|URL")
    ],
    svg: o.SvgOption = True,
) -> None:
    """(Re)draw the report."""
    from ..report import report_at

    print(report_at(folder, svg=svg))
