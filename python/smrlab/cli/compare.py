"""`smrlab compare`: the same requests on several layers."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import api
from ..errors import InputError
from . import console, finish
from . import options as o

HELP = """Run the same requests on several translation layers, and compare.

LBAs are wrapped to the smallest capacity among the runs, so that all see the same requests; layers run in parallel.

[bold]Examples[/bold]

  smrlab compare --trace web_0.csv.gz --drive modern-7200 --layer cmr --layer rmw --layer static-1234 --out out

  smrlab compare --trace synth:zipf,requests=1000000 --layer cmr --layer 'static-R(4123)' --json
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("compare", help=HELP)(compare)


def compare(
    trace: o.TraceOption = None,
    drive: o.DriveOption = None,
    layer: Annotated[
        list[str] | None, typer.Option(help="NAME[,k=v...]; repeat it.", rich_help_panel=o.WORK, metavar="L")
    ] = None,
    array: o.ArrayOption = None,
    address_space: o.SpaceOption = None,
    limit: o.LimitOption = None,
    skip_bad: o.SkipOption = None,
    prefill: o.PrefillOption = None,
    seed: o.SeedOption = None,
    arrivals: o.ArrivalsOption = None,
    scheduler: o.SchedulerOption = None,
    scale_time: o.ScaleOption = None,
    mechanics: o.MechanicsOption = None,
    metadata: o.MetadataOption = None,
    verify_media: o.VerifyOption = None,
    requests: o.RequestsOption = None,
    media_log: o.MediaLogOption = None,
    window: o.WindowOption = None,
    adjusted_blocks: o.AdjustedOption = None,
    adjusted_rule: o.AdjustedRuleOption = None,
    wrap: o.WrapOption = None,
    sets: o.SetOption = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; default: one a core.", metavar="N")] = None,
    out: o.OutOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Run the same requests on several layers."""
    values = {k: v for k, v in locals().items() if k not in ("layer", "sets", "jobs", "out", "as_json")}
    if not trace:
        raise InputError("no trace: give --trace PATH or --trace synth:NAME")
    if not layer:
        raise InputError("no layer: give --layer NAME at least once; 'smrlab list layers' names them")
    spec = o.apply_sets(o.given(values), sets)
    with console.progress() as watch:
        results = api.compare(layers=layer, out=out, jobs=jobs, watch=watch, **{"wrap": "capacity", **spec})
    if as_json:
        console.print_json(results.doc)
    else:
        finish.show_comparison(results)
    finish.report(out, quiet=as_json)
