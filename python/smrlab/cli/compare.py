"""`smrlab compare`: the same requests on several layers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..errors import InputError
from . import complete, console
from . import options as o

HELP = """Run the same requests on several translation layers, and compare.

LBAs are wrapped to the smallest capacity among the runs, so that all see the same requests; layers run in parallel.

[bold]Examples[/bold]

  smrlab compare --trace web_0.csv.gz --layer cmr --layer rmw --layer static-1234 --prefill read --out out

  smrlab compare --trace synth:zipf,requests=1000000 --prefill 100% --layer cmr --layer 'static-R(4123)' --json

  smrlab compare --trace web_0.csv.gz --layer persistent-cache --layer 'dm-zoned / zoned,conventional=5%'
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("compare", help=HELP)(compare)


@o.with_fields()
def compare(
    layer: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME[,k=v...], or a stack that ends in one; repeat it.",
            rich_help_panel=o.WORK,
            metavar="L",
            autocompletion=complete.layers,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="What a run is called in tables and figures: one for each --layer.", metavar="NAME"),
    ] = None,
    prefill_cache: o.CacheOption = None,
    sets: o.SetOption = None,
    jobs: o.JobsOption = None,
    cluster: o.ClusterOption = None,
    out: o.OutOption = None,
    force: o.ForceOption = False,
    svg: o.SvgOption = True,
    as_json: o.JsonOption = False,
    **fields: Any,
) -> None:
    """Run the same requests on several layers."""
    if not fields.get("trace"):
        raise InputError("no trace: give --trace PATH or --trace synth:NAME")
    if not layer:
        raise InputError("no layer: give --layer NAME at least once; 'smrlab list layers' names them")
    spec = o.apply_sets(o.given(fields), sets)
    if spec.get("save_state"):
        raise InputError("--save-state: a comparison has several drives; save the state of one run (smrlab run)")
    from .. import api

    with console.progress() as watch:
        results = api.compare(
            layers=layer,
            labels=label or None,
            out=out,
            force=force,
            jobs=jobs,
            cluster=cluster,
            watch=watch,
            prefill_cache=prefill_cache or True,
            **{"wrap": "capacity", **spec},
        )
    if as_json:
        console.print_json(results.doc)
    else:
        from . import finish

        finish.show_comparison(results)
    console.report(out, quiet=as_json, svg=svg)
