"""The options that `run` and `compare` share: one for each field of a specification, as the engine describes it."""

from __future__ import annotations

import inspect
import json
import keyword
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from .. import _core
from ..errors import InputError
from . import complete

WORK = "The work"
TIME = "Arrivals and time"
DEPTH = "What is simulated"
RESULTS = "Results"

# Where a field stands in `--help`, and what its value is called; a field that is not here stands under "More".
PLACES = {
    "trace": (WORK, "T"),
    "drive": (WORK, "D"),
    "array": (WORK, "A"),
    "stack": (WORK, "S"),
    "address_space": (WORK, "HOW"),
    "join": (WORK, "HOW"),
    "burst": (WORK, "N"),
    "limit": (WORK, "N"),
    "from": (WORK, "T"),
    "until": (WORK, "T"),
    "filter": (WORK, "F"),
    "skip_bad": (WORK, "N"),
    "wrap": (WORK, "TO"),
    "host_blocks": (WORK, "N"),
    "from_state": (WORK, "FILE"),
    "save_state": (WORK, "FILE"),
    "prefill": (WORK, "SHARE"),
    "seed": (WORK, "N"),
    "arrivals": (TIME, "HOW"),
    "scheduler": (TIME, "S"),
    "scale_time": (TIME, "X"),
    "mechanics": (DEPTH, "M"),
    "metadata": (DEPTH, "M"),
    "verify_media": (DEPTH, None),
    "requests": (RESULTS, None),
    "media_log": (RESULTS, None),
    "window": (RESULTS, "T"),
    "stall": (RESULTS, "T"),
    "adjusted_blocks": (RESULTS, "N"),
    "adjusted_rule": (RESULTS, "RULE"),
}
# Each command has its own: one layer, or several.
OWN = ("layer",)
# What users give twice to have both; the last alone would count.
ONE = ("drive", "array")

# The fields of a specification by name: what they accept, their default, and what they are.
FIELDS: dict[str, dict[str, str]] = {f["name"]: f for f in json.loads(_core.list_json("fields"))}


def field_option(name: str) -> Any:
    """The option of a field; numbers go to the engine as they are written, so that it alone says what it accepts."""
    field = FIELDS[name]
    panel, metavar = PLACES.get(name, ("More", None))
    default = f" Default: {field['default']}." if field["default"] and field["accepts"] != "a switch" else ""
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        help=field["summary"][0].upper() + field["summary"][1:].rstrip(".") + "." + default,
        rich_help_panel=panel,
        metavar=metavar,
        autocompletion=complete.OF_FIELD.get(name),
    )
    kind: Any = {"a switch": bool | None, "texts": list[str] | None}.get(field["accepts"], str | None)
    if name in ONE:
        kind = list[str] | None
    return Annotated[kind, option]


def _option(*names: str, help: str, panel: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, **more)


OutOption = Annotated[
    str | None,
    _option("--out", help="Write result files, report and SVG figures here.", panel=RESULTS, metavar="DIR|URL"),
]
SvgOption = Annotated[
    bool,
    _option("--svg/--no-svg", help="Draw SVG figures beside the report; 'smrlab report' can later.", panel=RESULTS),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Runs at a time; default: one a core.", metavar="N")
]
_WHERE = "Where runs are done: local (default), the address of a Dask scheduler, or slurm."
SchedulerOption = Annotated[
    str | None, typer.Option("--scheduler", "--cluster", help=_WHERE, metavar="local|URL|slurm")
]
# Where `--scheduler` is that of a drive.
ClusterOption = Annotated[str | None, _option("--cluster", help=_WHERE, panel=WORK, metavar="local|URL|slurm")]
ForceOption = Annotated[bool, _option("--force", help="Replace another experiment's results in --out.", panel=RESULTS)]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, and nothing else.")]
DeviceName = Annotated[str, typer.Argument(help="The device's name.", autocompletion=complete.devices)]
SetOption = Annotated[
    list[str] | None,
    _option(
        "--set",
        help="Any field: seed=3; or a parameter: layer.cache=1%. May be repeated.",
        panel=WORK,
        metavar="KEY=VALUE",
        autocompletion=complete.settings,
    ),
]
SpecArgument = Annotated[Path | None, typer.Argument(help="A TOML file with the same fields.", metavar="[SPEC.toml]")]

CacheOption = Annotated[
    str | None,
    _option(
        "--prefill-cache",
        help="Where prefills are kept for the next run that begins so (4 GiB at most): a folder, or off. Default: "
        "$SMRLAB_PREFILL_CACHE, else smrlab/prefills in your cache folder.",
        panel=WORK,
        metavar="DIR|off",
    ),
]

# Parameters of these fields can be set by themselves: `--set layer.cache=1%`.
_ITEMS = ("layer", "array", "scheduler", "arrivals")


C = TypeVar("C", bound=Callable[..., None])


def with_fields(*names: str) -> Callable[[C], C]:
    """Gives a command the options of these fields, or of all, in front of its own; they come in its `**fields`."""
    order = names or [n for n in [*PLACES, *(n for n in FIELDS if n not in PLACES)] if n in FIELDS and n not in OWN]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shared = [
        inspect.Parameter(name + "_" * keyword.iskeyword(name), kind, default=None, annotation=field_option(name))
        for name in order
    ]

    def with_options(command: C) -> C:
        own = inspect.signature(command, eval_str=True)
        mine = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        arguments = [p for p in mine if p.default is p.empty]
        parameters = [*arguments, *shared, *mine[len(arguments) :]]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return with_options


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gave: a switch that is off and an option that is absent say nothing."""
    found = {
        key.rstrip("_"): value
        for key, value in values.items()
        if value is not None and value is not False and value != []
    }
    for key in ONE:
        several = found.get(key, [])
        if len(several) > 1:
            raise InputError(
                f"--{key}: give one; to compare several, name them in a study: smrlab sweep, {key} = {several} below "
                "[grid]"
            )
        if several:
            found[key] = several[0]
    return found


def apply_sets(spec: dict[str, Any], sets: list[str] | None) -> dict[str, Any]:
    """The specification with every `--set` applied, in order."""
    for text in sets or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"--set {text}: write FIELD=VALUE, e.g. --set seed=3 or --set layer.cache=1%")
        item, dot, parameter = key.strip().partition(".")
        if not dot:
            spec[item] = value
        elif item in _ITEMS and spec.get(item):
            # What was given before gives way: a parameter that is there twice is refused.
            from ..sweeps.grid import with_parameter

            try:
                spec[item] = with_parameter(str(spec[item]), parameter, value)
            except InputError as e:
                raise InputError(f"--set {text}: {e}") from None
        elif item in _ITEMS:
            raise InputError(f"--set {text}: no {item} is named before it: write --{item} NAME,{parameter}={value}")
        else:
            known = ", ".join(f"{i}.PARAMETER" for i in _ITEMS)
            raise InputError(f"--set {text}: '{item}' has no parameters here; what has: {known}")
    return spec


def size(option: str, given: str) -> int:
    """A size in bytes; what is none is told with its option."""
    try:
        return _core.size_bytes(given)
    except InputError as e:
        raise InputError(f"{option}: {e}") from None
