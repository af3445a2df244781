"""`smrlab run`: one trace, one drive, one layer."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError, Interrupted
from . import complete, console
from . import options as o

HELP = """Run one trace on one drive with one translation layer.

[bold]Examples[/bold]

  smrlab run --trace web_0.csv.gz --drive modern-7200 --layer rmw --out out/rmw

  smrlab run --trace synth:uniform,requests=100000,write=70% --layer static-1234 --arrivals closed,depth=8

  smrlab run experiment.toml --set seed=2 --json
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run", help=HELP)(run)


@o.with_fields()
def run(
    spec_file: o.SpecArgument = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(help="NAME[,k=v...].", rich_help_panel=o.WORK, metavar="L", autocompletion=complete.layers),
    ] = None,
    prefill_cache: o.CacheOption = None,
    sets: o.SetOption = None,
    out: o.OutOption = None,
    force: o.ForceOption = False,
    svg: o.SvgOption = True,
    as_json: o.JsonOption = False,
    **fields: Any,
) -> None:
    """Run one trace on one drive with one layer."""
    if len(layer or []) > 1:
        raise InputError("a run has one layer: give one --layer, or several to smrlab compare")
    one = layer[0] if layer else None
    spec = o.apply_sets({**_from_file(spec_file), **o.given({"layer": one, **fields})}, sets)
    if spec.get("from_state"):
        of_state = _state_of(spec["from_state"], "from_state")
        said = ("array", "layer") if spec.get("stack") else ()
        spec = {**{key: value for key, value in of_state.items() if key not in said}, **spec}
    if not spec.get("trace"):
        raise InputError("no trace: give --trace PATH, --trace synth:NAME, or a SPEC.toml that names one")
    from .. import api

    try:
        with console.progress() as watch:
            result = api.run(out=out, force=force, watch=watch, prefill_cache=prefill_cache or True, **spec)
    except KeyboardInterrupt:
        kept = f"; {out} is as it was" if out else ""
        raise Interrupted(f"interrupted; a run that did not end keeps nothing{kept}") from None
    if as_json:
        console.print_json(dict(result.doc))
    else:
        from . import finish

        finish.show_run(result)
        if "layer" not in spec and "stack" not in spec:
            finish.tell_own_layer(result)
    console.report(out, quiet=as_json, svg=svg)


def _state_of(path: str, field: str) -> dict[str, Any]:
    """Array, drive, layer and metadata that a state file is of, for a run that does not name them."""
    from .. import _core

    try:
        doc = json.loads(_core.state_json(path))
    except InputError as e:
        raise InputError(str(e).replace("from_state", field)) from None
    return {key: doc[key] for key in ("array", "drive", "layer", "metadata") if key in doc}


def _from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from .. import _core, files

    try:
        text = files.read_text(path)
    except (OSError, UnicodeDecodeError) as e:
        if isinstance(e, OSError) and e.errno != errno.EFBIG:
            raise InputError(f"{path}: {e.strerror}") from None
        raise InputError(f"{path} is no specification, which is a text; a trace is given with --trace {path}") from None
    try:
        spec: dict[str, Any] = json.loads(_core.spec_from_toml(text))
    except InputError as e:
        raise InputError("\n".join(f"{path}: {line}" for line in str(e).splitlines())) from None
    return spec
