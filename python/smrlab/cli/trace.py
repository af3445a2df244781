"""`smrlab trace`: look at traces, convert and make them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from . import console
from . import options as o

app = typer.Typer(help="Look at traces, convert, make, mix and cut them.", no_args_is_help=True)

TraceArgument = Annotated[str, typer.Argument(help="PATH[:FORMAT[,k=v...]], '-' or synth:NAME[,k=v...].", metavar="T")]
OutArgument = Annotated[Path, typer.Option("--out", "-o", help="The Parquet file to write.", metavar="FILE")]


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    parent.add_typer(app, name="trace")


@app.command("info", help="Characterise a trace: requests, unique data, sizes, updates, inter-arrival, sequentiality.")
def info(trace: TraceArgument, limit: o.LimitOption = None, as_json: o.JsonOption = False) -> None:
    """Characterise a trace."""
    from ..trace import Trace

    with console.progress() as watch:
        doc = Trace(trace, o.given({"limit": limit})).info(watch)
    if as_json:
        console.print_json(doc)
    else:
        from . import picture

        picture.show(trace, doc)


def _write(spec: dict[str, Any], out: Path) -> None:
    from .. import _core
    from ..work import attended

    with console.progress() as watch:
        done = attended(lambda control: _core.trace_write(json.dumps(spec), str(out), control), str(out), watch)
    console.note(f"{out}: {done:,} requests")


@app.command(
    "convert",
    help="Store a trace as Parquet, the fast format. Example: smrlab trace convert web_0.csv.gz -o web_0.parquet",
)
def convert(trace: TraceArgument, out: OutArgument, limit: o.LimitOption = None, skip_bad: o.SkipOption = None) -> None:
    """Store a trace as Parquet."""
    _write({"trace": [trace], **o.given({"limit": limit, "skip_bad": skip_bad})}, out)


@app.command(
    "synth", help="Make a trace. Example: smrlab trace synth zipf,requests=100000,theta=0.9,span=100GB -o zipf.parquet"
)
def synth(
    generator: Annotated[
        str, typer.Argument(help="NAME[,k=v...]; 'smrlab list generators' names them.", metavar="NAME")
    ],
    out: OutArgument,
    seed: o.SeedOption = None,
) -> None:
    """Make a trace."""
    _write({"trace": [f"synth:{generator.removeprefix('synth:')}"], **o.given({"seed": seed})}, out)


@app.command(
    "scale", help="Stretch a trace in time.", epilog="Example: smrlab trace scale web_0.csv.gz 0.5 -o faster.parquet"
)
def scale(
    trace: TraceArgument,
    factor: Annotated[float, typer.Argument(help="Arrival times times X: above 1 is slower.", metavar="X")],
    out: OutArgument,
) -> None:
    """Stretch a trace in time."""
    _write({"trace": [trace], "scale_time": factor}, out)


@app.command("head", help="Keep the first N requests, or those that arrive before a time.")
def head(
    trace: TraceArgument,
    out: OutArgument,
    requests: Annotated[int | None, typer.Option("--requests", "-n", help="How many requests.", metavar="N")] = None,
    until: Annotated[str | None, typer.Option(help="Those that arrive before, e.g. 10min.", metavar="T")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Those that arrive from here on.", metavar="T")] = None,
) -> None:
    """Cut a trace."""
    if requests is None and until is None and start is None:
        raise InputError("say how much to keep: --requests N, --until T or --from T")
    _write({"trace": [trace], **o.given({"limit": requests, "until": until, "from": start})}, out)


@app.command(
    "interleave",
    help="Mix several traces in bursts. Example: smrlab trace interleave a.parquet b.csv --burst 8 -o mix.parquet",
)
def interleave(
    traces: Annotated[list[str], typer.Argument(help="At least two traces.", metavar="T...")],
    out: OutArgument,
    burst: Annotated[int, typer.Option(min=1, help="Requests in a burst.", metavar="N")] = 1,
    by_time: Annotated[bool, typer.Option(help="Merge by arrival instead of in bursts.")] = False,
    address_space: o.SpaceOption = None,
    seed: o.SeedOption = None,
) -> None:
    """Mix several traces."""
    if len(traces) < 2:
        raise InputError("interleave needs at least two traces")
    how = {} if by_time else {"interleave": burst}
    _write({"trace": traces, **how, **o.given({"address_space": address_space, "seed": seed})}, out)
