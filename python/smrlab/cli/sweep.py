"""`smrlab sweep`: many runs from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from ..errors import CheckFailed, InputError, Interrupted
from ..text import counted
from . import console
from . import options as o

HELP = """Run every point of a sweep, on all cores or a cluster; run it again to go on where it was stopped.

SPEC.toml holds a run's fields under [bold]\\[base][/bold], lists of values under [bold]\\[grid][/bold] (every
combination), explicit points as [bold]\\[\\[list]][/bold] or in [bold]files[/bold], points between bounds under
[bold]\\[sample][/bold], and [bold]seeds[/bold]; [bold]\\[halving][/bold] stops early what is hopeless. Keys are fields
(drive) or parameters of an item (layer.cache, trace.write). Each point has a folder in DIR/points, named by what it
is: a changed sweep runs only what changed. DIR/results.parquet has a row a point, also while it grows.

[bold]Examples[/bold]

  smrlab sweep examples/sweep-cache.toml --out out

  smrlab sweep examples/sweep-cache.toml --out out --plot response_ms.mean --against layer.cache --by layer

  smrlab sweep examples/sweep-cache.toml --plan

  smrlab sweep study.toml --out s3://bucket/study --scheduler tcp://head:8786

  smrlab sweep status s3://bucket/study
"""


class _Default(typer.core.TyperGroup):
    """`sweep SPEC …` is `sweep run SPEC …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the word in where it is missing."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Default, help=HELP, no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    parent.add_typer(app, name="sweep")


@app.command("run", help=HELP)
def run(
    spec: Annotated[Path, typer.Argument(help="The sweep file.", metavar="SPEC.toml")],
    out: Annotated[
        str | None, typer.Option(help="Folder or URL of the points and the table.", metavar="DIR|URL")
    ] = None,
    jobs: o.JobsOption = None,
    scheduler: o.SchedulerOption = None,
    plan: Annotated[bool, typer.Option("--plan", help="Run nothing: what it would take.")] = False,
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
    from .. import sweeps
    from ..executors import chosen

    study = sweeps.Study.of(spec)
    if plan:
        return _plan(study, out, as_json)
    if out is None:
        raise InputError("--out DIR or URL is missing: where results go")
    store = sweeps.Store(out)
    with console.study() as follow, chosen(scheduler, jobs) as executor:
        outcome = sweeps.run_study(study, store, executor, follow)
    done = sweeps.Sweep(store, outcome)
    for metric in plot or []:
        console.note(f"figure: {done.plot(metric, str(against), by)}")
    if outcome.note:
        console.note(outcome.note)
    console.note(
        f"{counted(outcome.points, 'point')}: {outcome.finished} run, {outcome.reused} kept from before, "
        f"{len(outcome.failed)} failed; table: {store}/results.parquet"
    )
    if as_json:
        console.print_json({"points": done.table().to_pylist()})
    if outcome.interrupted:
        raise Interrupted(f"interrupted; what was finished is in {store}: the same command goes on from there")
    if outcome.failed:
        raise CheckFailed("\n".join(f"point {title}: {fault}" for title, fault in outcome.failed.items()))
    return None


def _plan(study: Any, out: str | None, as_json: bool) -> None:
    from ..sweeps import Store
    from ..sweeps.plan import plan_of
    from . import study as shown

    with console.bar("measuring short runs") as progress:
        plan = plan_of(study, Store(out) if out else None, progress)
    if as_json:
        console.print_json(plan)
    else:
        print("\n".join(shown.plan(plan)))


@app.command("status")
def status(
    out: Annotated[str, typer.Argument(help="What --out was given.", metavar="DIR|URL")],
    as_json: o.JsonOption = False,
) -> None:
    """How far a sweep is: from anywhere, while it runs and after."""
    from ..sweeps import Store
    from ..sweeps.status import status as told
    from . import study as shown

    document = told(Store(out))
    if as_json:
        console.print_json(document)
    else:
        print("\n".join(shown.status(document)))


@app.command("summary")
def summary(
    out: Annotated[str, typer.Argument(help="What --out was given.", metavar="DIR|URL")],
    metric: Annotated[
        list[str] | None, typer.Option(help="A column of the table; may be repeated.", metavar="METRIC")
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Which settings mattered, and how: a page with pictures in DIR."""
    from ..sweeps import Store
    from ..sweeps.summary import write_summary
    from . import study as shown

    document, page = write_summary(Store(out), metric or None)
    if as_json:
        console.print_json(document)
    else:
        print("\n".join(shown.summary(document)))
        console.note(f"page: {page}")
