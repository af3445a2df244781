"""`smrlab sweep`: many runs from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import CheckFailed, InputError, Interrupted
from . import console

HELP = """Run every point of a sweep, on all cores; run it again to go on where it was stopped.

SPEC.toml holds a run's fields under [bold]\\[base][/bold], lists of values under [bold]\\[grid][/bold] (every
combination), explicit points as [bold]\\[\\[list]][/bold], and [bold]seeds[/bold]. Keys are fields (drive) or
parameters of an item (layer.cache, trace.write). Each point has a folder in DIR/points, named by its content:
a changed sweep runs only what changed. DIR/results.parquet has a row a point.

[bold]Examples[/bold]

  smrlab sweep examples/sweep-cache.toml --out out

  smrlab sweep examples/sweep-cache.toml --out out --plot response_ms.mean --against layer.cache --by layer
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("sweep", help=HELP)(sweep)


def sweep(
    spec: Annotated[Path, typer.Argument(help="The sweep file.", metavar="SPEC.toml")],
    out: Annotated[Path, typer.Option(help="Folder of the points and the table.", metavar="DIR")],
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; default: one a core.", metavar="N")] = None,
    plot: Annotated[
        list[str] | None, typer.Option(help="Draw this column of the table; may be repeated.", metavar="METRIC")
    ] = None,
    against: Annotated[str | None, typer.Option(help="The setting on the x axis.", metavar="SETTING")] = None,
    by: Annotated[str | None, typer.Option(help="One line for each value of this setting.", metavar="SETTING")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The table as JSON on stdout, and nothing else.")] = False,
) -> None:
    """Run every point of a sweep."""
    if plot and not against:
        raise InputError("--plot needs --against SETTING: what is on the x axis")
    from .. import sweeps as sweeping

    points = sweeping.load(spec)
    with console.progress() as watch:
        outcome = sweeping.run_sweep(points, out, jobs=jobs, watch=watch)
    done = sweeping.Sweep(out, outcome)
    for metric in plot or []:
        console.note(f"figure: {done.plot(metric, str(against), by)}")
    console.note(
        f"{outcome.points} points: {outcome.finished} run, {outcome.reused} kept from before, "
        f"{len(outcome.failed)} failed; table: {out / 'results.parquet'}"
    )
    if as_json:
        console.print_json({"schema": 1, "points": done.table().to_pylist()})
    if outcome.interrupted:
        raise Interrupted(f"interrupted; what was finished is in {out}: the same command goes on from there")
    if outcome.failed:
        raise CheckFailed("\n".join(f"point {title}: {fault}" for title, fault in outcome.failed.items()))
