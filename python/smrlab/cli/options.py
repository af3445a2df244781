"""The options that `run` and `compare` share; their defaults are the engine's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ..errors import InputError

WORK = "The work"
TIME = "Arrivals and time"
DEPTH = "What is simulated"
RESULTS = "Results"


def _option(*names: str, help: str, panel: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar)


TraceOption = Annotated[
    list[str] | None,
    _option("--trace", help="PATH[:FORMAT], '-' or synth:NAME[,k=v...]; may be repeated.", panel=WORK, metavar="T"),
]
DriveOption = Annotated[str | None, _option("--drive", help="Preset or drive file.", panel=WORK, metavar="D")]
ArrayOption = Annotated[str | None, _option("--array", help="NAME[,k=v...].", panel=WORK, metavar="A")]
SpaceOption = Annotated[
    str | None,
    _option("--address-space", help="Several traces: overlap or concat.", panel=WORK, metavar="HOW"),
]
LimitOption = Annotated[
    str | None, _option("--limit", help="Only the first N requests: 5000, 1e5, 100k.", panel=WORK, metavar="N")
]
FromOption = Annotated[
    str | None, _option("--from", help="Only what arrives from T on, e.g. 10min.", panel=WORK, metavar="T")
]
UntilOption = Annotated[str | None, _option("--until", help="Only what arrives before T.", panel=WORK, metavar="T")]
FilterOption = Annotated[
    str | None,
    _option(
        "--filter",
        help="Only requests for which it holds: op=write,device=NAME,lba=FROM..TO,size=FROM..TO.",
        panel=WORK,
        metavar="F",
    ),
]
SkipOption = Annotated[str | None, _option("--skip-bad", help="Pass over up to N bad lines.", panel=WORK, metavar="N")]
WrapOption = Annotated[
    str | None, _option("--wrap", help="LBA modulo 'capacity' or 'prefilled'.", panel=WORK, metavar="TO")
]
PrefillOption = Annotated[
    str | None,
    _option("--prefill", help="SHARE[,order=sequential|random][,of=space|cache] written before.", panel=WORK),
]
SeedOption = Annotated[int | None, _option("--seed", help="Seed of everything drawn.", panel=WORK, metavar="N")]
ArrivalsOption = Annotated[
    str | None,
    _option("--arrivals", help="'trace', or 'closed[,depth=N][,think=T]'.", panel=TIME, metavar="HOW"),
]
SchedulerOption = Annotated[
    str | None,
    _option("--scheduler", help="fcfs, sstf, look, c-look or sptf [,depth=N][,max_wait=T].", panel=TIME),
]
ScaleOption = Annotated[
    float | None, _option("--scale-time", help="Arrival times times X: above 1 is slower.", panel=TIME, metavar="X")
]
MechanicsOption = Annotated[
    str | None, _option("--mechanics", help="full, no-rotation or instant.", panel=DEPTH, metavar="M")
]
MetadataOption = Annotated[str | None, _option("--metadata", help="Maps: nv or media.", panel=DEPTH, metavar="M")]
VerifyOption = Annotated[
    bool | None,
    _option("--verify-media", help="Fail where a block read is not what was last written.", panel=DEPTH),
]
RequestsOption = Annotated[bool | None, _option("--requests", help="Write requests.parquet.", panel=RESULTS)]
MediaLogOption = Annotated[bool | None, _option("--media-log", help="Write media.parquet.", panel=RESULTS)]
WindowOption = Annotated[
    str | None, _option("--window", help="Width of the windows over time.", panel=RESULTS, metavar="T")
]
AdjustedOption = Annotated[
    int | None, _option("--adjusted-blocks", help="Blocks of an adjusted operation.", panel=RESULTS, metavar="N")
]
AdjustedRuleOption = Annotated[
    str | None, _option("--adjusted-rule", help="ceil or floor+1.", panel=RESULTS, metavar="RULE")
]
OutOption = Annotated[
    Path | None, _option("--out", help="Write result files, report and SVG figures here.", panel=RESULTS, metavar="DIR")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, and nothing else.")]
SetOption = Annotated[
    list[str] | None,
    _option("--set", help="Any field: seed=3; or a parameter: layer.cache=1%. May be repeated.", panel=WORK),
]
SpecArgument = Annotated[Path | None, typer.Argument(help="A TOML file with the same fields.", metavar="[SPEC.toml]")]

# Parameters of these fields can be set by themselves: `--set layer.cache=1%`.
_ITEMS = ("layer", "array", "scheduler", "arrivals")


def _fields(
    trace: TraceOption = None,
    drive: DriveOption = None,
    array: ArrayOption = None,
    address_space: SpaceOption = None,
    limit: LimitOption = None,
    from_: FromOption = None,
    until: UntilOption = None,
    filter: FilterOption = None,
    skip_bad: SkipOption = None,
    wrap: WrapOption = None,
    prefill: PrefillOption = None,
    seed: SeedOption = None,
    arrivals: ArrivalsOption = None,
    scheduler: SchedulerOption = None,
    scale_time: ScaleOption = None,
    mechanics: MechanicsOption = None,
    metadata: MetadataOption = None,
    verify_media: VerifyOption = None,
    requests: RequestsOption = None,
    media_log: MediaLogOption = None,
    window: WindowOption = None,
    adjusted_blocks: AdjustedOption = None,
    adjusted_rule: AdjustedRuleOption = None,
) -> None:
    """The fields of a specification that are options of every command that runs it."""


C = TypeVar("C", bound=Callable[..., None])


def with_fields(command: C) -> C:
    """Gives a command the options of a specification's fields, in front of its own; they come in its `**fields`."""
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(_fields, eval_str=True)
    mine = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters = [*shared.parameters.values(), *mine]
    command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gave: a switch that is off and an option that is absent say nothing."""
    return {
        key.rstrip("_"): value
        for key, value in values.items()
        if value is not None and value is not False and value != []
    }


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
            spec[item] = f"{spec[item]},{parameter}={value}"
        else:
            known = ", ".join(f"{i}.PARAMETER" for i in _ITEMS)
            raise InputError(f"--set {text}: '{item}' has no parameters here; what has: {known}")
    return spec
