"""`smrlab geometry`: a drive's geometry from outside, and drive files from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from .. import _core, files, targets
from ..errors import InputError, Interrupted, MissingError
from ..text import counted
from ..work import attended
from . import console
from . import options as o

app = typer.Typer(
    help="The geometry of a drive, measured from outside: rotation, zones, skews, surfaces, seeks.",
    no_args_is_help=True,
)

TargetArgument = Annotated[
    str,
    typer.Argument(
        help=r"sim:DRIVE\[/LAYER], a device's name, an NBD URI, or a block device or file.", metavar="TARGET"
    ),
]
DestroyOption = Annotated[bool, typer.Option("--destroy", help="Allow writes: all data on the target may be lost.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Answers the question that --destroy asks.")]
KeepCacheOption = Annotated[
    bool,
    typer.Option("--keep-cache", help="Leave a disk's own caches on (else off by its commands until the end)."),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Keep results and pictures here; go on with what is there.", metavar="DIR")
]


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    parent.add_typer(app, name="geometry")


@app.command(
    "extract",
    help="Measure a drive's geometry by timed reads. Example: smrlab geometry extract sim:modern-7200 --out x16",
)
def extract(
    target: TargetArgument,
    zones_only: Annotated[bool, typer.Option("--zones-only", help="Only rotation and zones: under a minute.")] = False,
    destroy: DestroyOption = False,
    yes: YesOption = False,
    keep_cache: KeepCacheOption = False,
    out: OutOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Measure a drive's geometry."""
    resolved = targets.resolve(target)
    targets.there(target, resolved)
    if destroy:
        targets.confirm(target, resolved, yes)
    keep = None
    if out is not None:
        keep = targets.folder(out) / "extraction.json"
    try:
        with targets.stoppable(), console.progress() as watch:
            place = str(keep) if keep else None
            text = attended(
                lambda control: _core.geometry_extract(
                    resolved, zones_only, destroy, keep_cache, place, control, console.note
                ),
                target,
                watch,
            )
        doc: dict[str, Any] = json.loads(text)
        if out is not None:
            _pictures(doc, out)
    except (KeyboardInterrupt, Interrupted):
        where = "nothing is kept without --out" if keep is None else "nothing was measured yet"
        if keep and keep.exists():
            where = f"what was measured is in {keep}; the same command goes on"
        raise Interrupted(f"interrupted: {where}") from None
    except MissingError as e:
        if keep is None or not keep.exists():
            raise
        raise MissingError(f"{e}; what was measured is in {keep}; the same command goes on") from None
    if as_json:
        console.print_json(doc)
    else:
        _show(target, doc)
        if keep:
            console.out().print(f"{escape(str(keep))}; next: smrlab geometry fit {escape(str(keep))} --out DRIVE.toml")


def _pictures(doc: dict[str, Any], folder: Path) -> None:
    from ..plots import outside
    from ..plots.style import save_svg

    save_svg(outside.zones([(z["tracks"], z["usable"]) for z in doc["zones"]]), folder / "zones.svg")
    if seek := doc.get("seek"):
        save_svg(outside.seeks(seek), folder / "seeks.svg")
    if (skew := doc.get("skew")) and (rpm := doc.get("rpm")):
        step, turn = skew["cylinder"]["value"], 60e3 / rpm["value"]
        times = [(n, n * step % 1.0 * turn) for n in range(1000)]
        save_svg(outside.skew(times, times[:100]), folder / "skew.svg")


def _fitted(doc: dict[str, Any], stem: Path, skew_track: int) -> None:
    from ..plots import outside
    from ..plots.style import save_svg

    measured, curve = _pairs(doc.get("measured", [])), _pairs(doc.get("curve", []))
    save_svg(outside.zones(_pairs(doc["runs"]), measured, curve), Path(f"{stem}-zones.svg"))
    if times := _pairs(doc.get("times", [])):
        near = [p for p in times if skew_track <= p[0] < skew_track + 100] or times[:100]
        save_svg(outside.skew(times[:: max(len(times) // 4000, 1)], near), Path(f"{stem}-skew.svg"))


def _measured(m: dict[str, float], digits: int, unit: str) -> str:
    return f"{m['value']:.{digits}f} ± {m['spread']:.2g} {unit}"


def _order(order: dict[str, Any]) -> str:
    surfaces = order["surfaces"]
    return {
        "cylinder": f"{surfaces} surfaces, cylinder by cylinder",
        "surface": f"{surfaces} surface{'s, one after the other' if surfaces > 1 else ''}",
        "hybrid": f"{surfaces} surfaces, one after the other in groups of {order.get('group_cylinders')} cylinders",
    }[order["kind"]]


def _own_cache(doc: dict[str, Any]) -> list[str]:
    lines = [doc["own_cache"]] if "own_cache" in doc else []
    if (cache := doc.get("cache")) and cache["present"]:
        ahead = counted(cache["read_ahead"], "block")
        lines.append(f"{counted(cache['segments'], 'segment')}, reads {ahead} ahead")
    return lines


def _show(target: str, doc: dict[str, Any]) -> None:
    """The page of an extraction."""
    out = console.out()
    out.print(f"[bold]{escape(target)}[/bold]: {counted(doc['blocks'], 'block')}")
    if rpm := doc.get("rpm"):
        out.print(f"rotation       {_measured(rpm, 3, 'rpm')}")
    if skew := doc.get("skew"):
        out.print(f"order          {_order(skew['order'])}")
        out.print(f"cylinder skew  {_measured(skew['cylinder'], 5, 'revolutions')}")
        if skew.get("track"):
            out.print(f"head skew      {_measured(skew['track'], 5, 'revolutions')}")
    if seek := doc.get("seek"):
        ms = [f"{d:,}: {ns / 1e6:.2f} ms" for d, ns in seek["read"][:: max(len(seek["read"]) // 5, 1)]]
        out.print(f"seeks          {', '.join(ms)} (cylinders: time; ± {seek['spread_ns'] / 1e6:.3f} ms)")
        out.print(f"overhead       {seek['read_overhead_ns'] / 1e6:.3f} ms")
        if seek.get("head_switch_ns"):
            out.print(f"head switch    {seek['head_switch_ns'] / 1e6:.3f} ms")
    for line in _own_cache(doc):
        out.print(f"own cache      {escape(line)}")
    table = console.table(
        "zones", ["zone", "first LBA", "tracks", "blocks a track", "sectors", "slipped"], numeric=True
    )
    for i, z in enumerate(doc["zones"]):
        cells = (z["first_lba"], z["tracks"], z["usable"], z["sectors"], z["slips"])
        table.add_row(str(i), *(f"{n:,}" for n in cells))
    out.print(table)
    for note in doc["notes"]:
        out.print(f"note: {escape(note)}")
    if not (q := doc["quality"])["requests"]:
        return
    out.print(
        f"{counted(q['requests'], 'request')} in {q['seconds']:.0f} s of the drive's time; "
        f"noise {q['noise_ns'] / 1e3:.1f} us; {q['outliers']} outliers left out, "
        f"{q['cache_hits']} answers from its cache repeated"
    )


def _pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    return [(a, b) for a, b in values]


@app.command(
    "fit",
    help="A drive file of an extraction, or of the emulator's paper's text form (DIG: track, sectors, microseconds).",
    epilog="Example: smrlab geometry fit x16/extraction.json --out x16.toml",
)
def fit(
    extraction: Annotated[Path, typer.Argument(help="extraction.json, or a DIG text.", metavar="EXTRACTION")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The drive file to write.", metavar="DRIVE.toml")],
    name: Annotated[str | None, typer.Option(help="The drive's name; default: the file's.")] = None,
    method: Annotated[
        str, typer.Option(help="Zones of a DIG text: change-points, or polynomial (the paper's).")
    ] = "change-points",
    degree: Annotated[int, typer.Option(min=0, max=30, help="Degree of the polynomial.")] = 13,
    zones: Annotated[int, typer.Option(min=1, help="Zones of the polynomial.")] = 18,
    min_outlier: Annotated[int, typer.Option(help="Track sizes below are left out.")] = 1000,
    max_outlier: Annotated[int, typer.Option(help="Track sizes above are left out.")] = 2200,
    skew_track: Annotated[int, typer.Option(help="First of the 100 tracks whose skew is drawn.")] = 79000,
    rpm: Annotated[float | None, typer.Option(help="Revolutions a minute, where they are known.")] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Make a drive file of measurements."""
    if method not in ("change-points", "polynomial"):
        raise InputError(f"--method {method}: accepted are change-points, polynomial")
    try:
        text = files.read_text(extraction)
    except OSError as e:
        raise InputError(f"{extraction}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{extraction}: is no text; give extraction.json, or a DIG text") from None
    files.not_over(out, extraction)
    options = {
        "name": name or out.stem,
        "polynomial": method == "polynomial",
        "degree": degree,
        "zones": zones,
        "least": min_outlier,
        "most": max_outlier,
        "rpm": rpm,
    }
    try:
        doc: dict[str, Any] = json.loads(_core.geometry_fit(text, json.dumps(options)))
    except InputError as e:
        raise InputError(f"{extraction}: {e}" if str(e).startswith("line ") else str(e)) from None
    targets.folder(out.parent)
    files.write_whole(out, doc.pop("toml").encode())
    stem = out.with_suffix("")
    _fitted(doc, stem, skew_track)
    if as_json:
        console.print_json({"drive": str(out), "zones": doc["runs"], "notes": doc["notes"]})
        return
    page = console.out()
    page.print(f"{escape(str(out))}: {counted(len(doc['runs']), 'zone')}; figures {escape(str(stem))}-*.svg")
    for note in doc["notes"]:
        page.print(f"note: {escape(note)}")
    page.print(f"next: smrlab run --drive {escape(str(out))} --layer cmr --trace synth:uniform")


@app.command("show", help="Draw zones, tracks and skew of a drive or of an extraction.")
def show(
    what: Annotated[
        str, typer.Argument(help="A preset, a drive file, or an extraction.json.", metavar="DRIVE|EXTRACTION")
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Write pictures here.", metavar="DIR")] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show a geometry."""
    path = Path(what)
    if path.suffix == ".json":
        try:
            doc: dict[str, Any] = json.loads(files.read_text(path))
        except (OSError, ValueError) as e:
            raise InputError(f"{what}: {getattr(e, 'strerror', None) or e}") from None
        if not isinstance(doc, dict) or not {"zones", "blocks", "notes", "quality"} <= set(doc):
            raise InputError(f"{what}: not an extraction: it has no zones, blocks, notes or quality")
    else:
        doc = json.loads(_core.geometry_of(what))
    if out is not None:
        targets.folder(out)
        _pictures(doc, out)
    if as_json:
        console.print_json(doc)
    else:
        _show(what, doc)
        if out is not None:
            console.out().print(f"figures: {escape(str(out))}/*.svg")
