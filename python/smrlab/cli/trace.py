"""`smrlab trace`: look at traces, convert and make them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..errors import InputError
from ..files import check_place
from ..text import counted
from ..trace_info import COLUMNS
from . import complete, console
from . import options as o

app = typer.Typer(help="Look at traces, convert, make, mix and cut them.", no_args_is_help=True)

# How Parquet files are called.
PARQUET = (".parquet", ".pq")
# What `TraceCommand` puts before an argument such as -:diskmon.
_MARK = "\0"


class TraceCommand(TyperCommand):
    """A command that takes `-:FORMAT` as an argument, not as options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Hides the dash from the parser of options."""
        return super().parse_args(ctx, [_MARK + a if a.startswith("-:") else a for a in args])


def _plain(text: Any) -> Any:
    """An argument as the user wrote it."""
    if isinstance(text, (list, tuple)):
        return [_plain(t) for t in text]
    return text.removeprefix(_MARK) if isinstance(text, str) else text


_HELP = "PATH[:FORMAT[,k=v...]], a directory, a pattern of names, '-' or synth:NAME[,k=v...]."
TraceArgument = Annotated[str, typer.Argument(help=_HELP, metavar="T", callback=_plain, autocompletion=complete.traces)]
TracesArgument = Annotated[
    list[str],
    typer.Argument(
        help=_HELP + " Several are merged by time.", metavar="T...", callback=_plain, autocompletion=complete.traces
    ),
]
OutArgument = Annotated[Path, typer.Option("--out", "-o", help="The Parquet file to write.", metavar="FILE")]

# The fields that say which requests of a trace are read.
_READING = ("limit", "from", "until", "filter", "skip_bad", "join")


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    parent.add_typer(app, name="trace")


@app.command(
    "info",
    cls=TraceCommand,
    help="Characterise a trace: requests, unique data, sizes, updates, inter-arrival, sequentiality.",
)
@o.with_fields(*_READING)
def info(traces: TracesArgument, as_json: o.JsonOption = False, **fields: Any) -> None:
    """Characterise a trace."""
    from ..trace import Trace

    with console.progress() as watch:
        doc = Trace(traces, o.given(fields)).info(watch)
    if as_json:
        console.print_json(_without_empty_cells(doc))
    else:
        from . import picture

        picture.show(" + ".join(traces), doc)


def _without_empty_cells(doc: dict[str, Any]) -> dict[str, Any]:
    """The characterisation with those cells of its grid alone in which requests begin, each with its place.

    Most of them are empty, and a line each would be a megabyte.
    """
    grid = doc["grid"]
    numbered = ((*divmod(i, COLUMNS), cell) for i, cell in enumerate(grid["cells"]) if any(cell.values()))
    cells = [{"row": row, "column": column, **cell} for row, column, cell in numbered]
    return {**doc, "grid": {**grid, "rows": len(grid["cells"]) // COLUMNS, "columns": COLUMNS, "cells": cells}}


def _is_source(source: str, out: Path) -> bool:
    """Whether the file that is to be written is one of a trace, `PATH[:FORMAT[,k=v...]]`, or would be the next time."""
    parts = source.split(":")
    names = [":".join(parts[:n]) for n in range(1, len(parts) + 1)]
    paths = [path for name in names if (path := Path(name)).exists()]
    if any(path.is_dir() and out.parent.exists() and path.samefile(out.parent) for path in paths):
        return not out.name.startswith(".")
    if not paths and any(c in source for c in "*?["):
        return any(out.resolve().match(str(Path(name).resolve())) for name in names)
    return out.exists() and any(path.samefile(out) for path in paths)


def _write(spec: dict[str, Any], out: Path) -> None:
    from .. import _core
    from ..work import attended

    check_place(out)
    for source in spec["trace"]:
        if _is_source(source, out):
            raise InputError(f"{out} is the trace itself, or one of the files of {source}: choose another --out")
    with console.progress() as watch:
        done = attended(lambda control: _core.trace_write(json.dumps(spec), str(out), control), str(out), watch)
    called = "" if out.suffix.lower() in PARQUET else ", as Parquet, whatever its name ends in"
    console.note(f"{out}: {counted(done, 'request')}{called}")


@app.command(
    "convert",
    cls=TraceCommand,
    help="Store a trace as Parquet, the fast format. Example: smrlab trace convert web_0.csv.gz -o web_0.parquet",
)
@o.with_fields(*_READING)
def convert(traces: TracesArgument, out: OutArgument, **fields: Any) -> None:
    """Store a trace as Parquet."""
    _write({"trace": traces, **o.given(fields)}, out)


@app.command(
    "synth", help="Make a trace. Example: smrlab trace synth zipf,requests=100000,theta=0.9,span=100GB -o zipf.parquet"
)
@o.with_fields("seed")
def synth(
    generator: Annotated[
        str,
        typer.Argument(
            help="NAME[,k=v...]; 'smrlab list generators' names them.",
            metavar="NAME",
            autocompletion=complete.generators,
        ),
    ],
    out: OutArgument,
    **fields: Any,
) -> None:
    """Make a trace."""
    _write({"trace": [f"synth:{generator.removeprefix('synth:')}"], **o.given(fields)}, out)


@app.command(
    "scale",
    cls=TraceCommand,
    help="Stretch a trace in time.",
    epilog="Example: smrlab trace scale web_0.csv.gz 0.5 -o faster.parquet",
)
def scale(
    trace: TraceArgument,
    factor: Annotated[float, typer.Argument(help="Arrival times times X: above 1 is slower.", metavar="X")],
    out: OutArgument,
) -> None:
    """Stretch a trace in time."""
    if not math.isfinite(factor):
        raise InputError(f"X: {factor} is not accepted: a number, such as 0.5")
    _write({"trace": [trace], "scale_time": factor}, out)


def _shown(spec: dict[str, Any]) -> None:
    """Prints the requests: a line each."""
    from .. import plain
    from ..tables import OPERATIONS
    from ..trace import Trace

    rows = Trace(spec["trace"], {k: v for k, v in spec.items() if k != "trace"}).table().to_pylist()
    lines = [
        (
            f"{r['arrival_ns'] / 1e9:.6f}",
            OPERATIONS[r["op"]] + (", FUA" if r["fua"] else ""),
            *(str(r.get(column, 0)) for column in ("lba", "blocks", "device")),
        )
        for r in rows
    ]
    print("\n".join(plain.table(lines, ("s", "operation", "LBA (512 B)", "blocks", "device"))))


@app.command(
    "head",
    cls=TraceCommand,
    help="Show the first N requests, or those that arrive in a span of time; with --out keep them.",
)
def head(
    trace: TraceArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The Parquet file to write instead.", metavar="FILE")
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option("--requests", "-n", help="How many: 5000, 1e5, 100k. Shown: 10 by default.", metavar="N"),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Those that arrive before, e.g. 10min.", metavar="T")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Those that arrive from here on.", metavar="T")] = None,
) -> None:
    """Cut a trace."""
    if out is None:
        _shown({"trace": [trace], **o.given({"limit": requests or "10", "until": until, "from": start})})
        return
    if requests is None and until is None and start is None:
        raise InputError("say how much to keep: --requests N, --until T or --from T")
    _write({"trace": [trace], **o.given({"limit": requests, "until": until, "from": start})}, out)


@app.command(
    "interleave",
    cls=TraceCommand,
    help="Mix several traces in bursts. Example: smrlab trace interleave a.parquet b.csv --burst 8 -o mix.parquet",
)
@o.with_fields("address_space", "seed")
def interleave(
    traces: Annotated[
        list[str],
        typer.Argument(help="At least two traces.", metavar="T...", callback=_plain, autocompletion=complete.traces),
    ],
    out: OutArgument,
    burst: Annotated[int, typer.Option(min=1, help="Requests in a burst.", metavar="N")] = 1,
    by_time: Annotated[bool, typer.Option(help="Merge by arrival instead of in bursts.")] = False,
    **fields: Any,
) -> None:
    """Mix several traces."""
    if len(traces) < 2:
        raise InputError("interleave needs at least two traces")
    how = {} if by_time else {"burst": burst}
    _write({"trace": traces, **how, **o.given(fields)}, out)
