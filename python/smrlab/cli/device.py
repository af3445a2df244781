"""`smrlab device`: drives served as block devices, with real bytes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import _core, devices, faults, listening
from ..devices import Device
from ..errors import InputError
from . import attach, bands, complete, console, disks, kept, zones
from . import options as o
from .console import escape
from .finish import tell_bare_bands

app = typer.Typer(
    help="Shingled drives served as block devices: create, mount, watch, age, break.", no_args_is_help=True
)


Name = o.DeviceName
TIMINGS, METADATA, MODES = ("none", "model"), ("nv", "media"), ("data", "performance")


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    parent.add_typer(app, name="device")


@app.command("create", help="Make a device and serve it.")
def create(
    name: Name,
    drive: Annotated[
        str | None,
        typer.Option(
            "--drive",
            "-d",
            help="Preset or TOML file, with overrides. Default: modern-7200.",
            autocompletion=complete.drives,
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            "--layer", "-l", help="NAME[,key=value...]. Default: raw, the bare medium.", autocompletion=complete.layers
        ),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(
            "--array",
            "-a",
            help="An array of such drives, such as raid5,disks=5 (smrlab list arrays).",
            autocompletion=complete.item("arrays"),
        ),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            help="Array and layer in one, from the host down: 'ssd-cache,write=1GiB / raid5,disks=5 / s-block'."
        ),
    ] = None,
    size: Annotated[str | None, typer.Option(help="What the host is to see, such as 8GiB.")] = None,
    medium_size: Annotated[str | None, typer.Option(help="Shorten the medium of each drive to this.")] = None,
    from_state: Annotated[
        Path | None, typer.Option(help="Begin as the drive or array was in FILE (run --save-state, device state).")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="'memory', a directory, or a block device; default: the state directory.")
    ] = None,
    timing: Annotated[
        str,
        typer.Option(
            help="none: as fast as the host; model: as the drive would.", autocompletion=complete.words(*TIMINGS)
        ),
    ] = "none",
    speed: Annotated[float, typer.Option(help="With --timing model: this many times faster.")] = 1.0,
    scheduler: Annotated[
        str,
        typer.Option(
            help="With --timing model: who is served next, such as sptf,depth=32 (a SATA drive's queue).",
            autocompletion=complete.item("schedulers"),
        ),
    ] = "fcfs",
    metadata: Annotated[
        str | None,
        typer.Option(
            help="Where the layer's maps live: nv (free) or media (costed). Default: nv, or as in the state.",
            autocompletion=complete.words(*METADATA),
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**64 - 1, help="Seed of whatever the layer draws. Default: 0; of a state 1."),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            help="What destroyed blocks read as: data or performance (garbage).", autocompletion=complete.words(*MODES)
        ),
    ] = "data",
    errors: Annotated[bool, typer.Option("--errors", help="Reading destroyed blocks is an I/O error.")] = False,
    block: Annotated[int, typer.Option(help="Smallest transfer: 512 or 4096.")] = 512,
    listen: Annotated[
        str | None, typer.Option(help="unix:PATH, tcp:HOST:PORT or iscsi:HOST:PORT; default: a private socket.")
    ] = None,
    tls_certificates: Annotated[Path | None, typer.Option(help="Directory of TLS certificates (nbdkit).")] = None,
    tls_psk: Annotated[Path | None, typer.Option(help="File of TLS pre-shared keys (nbdkit).")] = None,
    chap: Annotated[
        Path | None, typer.Option(help="iSCSI: file of secrets, lines 'initiator NAME SECRET', 'target NAME SECRET'.")
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Write what clients do as a trace (.parquet).")] = None,
    stall: Annotated[str, typer.Option(help="A response that takes longer is a stall (device stats).")] = "500ms",
    map_budget: Annotated[str, typer.Option(help="Memory for the run map; the rest spills into the store.")] = "256MiB",
    as_json: o.JsonOption = False,
) -> None:
    """Make and start a device."""
    if size is not None and medium_size is not None:
        raise InputError("--size is what the host sees, --medium-size what the layer has for it: give one of the two")
    if block not in (512, 4096):
        raise InputError(f"--block {block}: accepted are 512, 4096")
    host = None if size is None else o.size("--size", size)
    if host is not None and host < block:
        raise InputError(f"--size {size}: less than the smallest transfer of {block} bytes")
    if not 0 < speed <= 1e6:
        raise InputError(f"--speed {speed:g} is not accepted: above 0, up to 1000000")
    if metadata is not None:
        devices.choice("--metadata", metadata, METADATA)
    array, layer = _unstacked(stack, array, layer)
    config = {
        "name": name,
        "size": None if medium_size is None else o.size("--medium-size", medium_size),
        "host_size": host,
        "timing": devices.choice("--timing", timing, TIMINGS),
        "speed": speed,
        "scheduler": scheduler,
        "metadata": "nv",
        "seed": 0,
        "mode": devices.choice("--mode", mode, MODES),
        "errors": errors,
        "block": block,
        "record": None if record is None else str(record.absolute()),
        "map_budget": o.size("--map-budget", map_budget),
        "stall_ns": faults.nanoseconds("--stall", stall),
        "chap": listening.check_chap(listen, chap),
        **_identity(drive, layer, array, from_state),
        **{key: value for key, value in (("metadata", metadata), ("seed", seed)) if value is not None},
    }
    given = {"certificates": tls_certificates, "psk": tls_psk}
    tls = {k: str(v.absolute()) for k, v in given.items() if v}
    made = Device.create(name, config, store, listen, tls)
    if listen and listen.startswith("tcp:") and not (tls_certificates or tls_psk):
        console.note("warning: served over TCP without TLS: anybody who reaches the port can read and write it")
    if (place := listening.iscsi(listen)) and not chap and not place.startswith(("127.", "[::1]", "localhost:")):
        console.note("warning: served over iSCSI without --chap: anybody who reaches the port can read and write it")
    tell_bare_bands([config["layer"]])
    _made(made, as_json, config["host_size"])


def _unstacked(stack: str | None, array: str | None, layer: str | None) -> tuple[str | None, str | None]:
    """Array and layer, as they were given or as the stack says."""
    if stack is None:
        return array, layer
    doc = json.loads(_core.stack_json(stack))
    if array is not None or (layer is not None and doc["layer"] is not None):
        raise InputError("--stack says which array and layer: leave --array and --layer out")
    return doc["array"], layer or doc["layer"]


def _identity(drive: str | None, layer: str | None, array: str | None, from_state: Path | None) -> dict[str, Any]:
    """Which drive, layer and array: those that were given, or those of the state."""
    if layer is not None and (".py:" in layer or layer.startswith("python:")):
        raise InputError(
            f"layer {layer}: layers in Python run in the simulator and cannot be served: use a built-in one"
        )
    if from_state is None:
        return {"drive": drive or "modern-7200", "layer": layer or "raw", **({"array": array} if array else {})}
    doc = json.loads(_core.state_json(str(from_state)))
    array = array or doc.get("array")
    # The simulator's default, so that layers which draw go on as they would there.
    same = {"metadata": doc["metadata"], "seed": 1, "from_state": str(from_state.absolute())}
    return {
        "drive": drive or doc["drive"],
        "layer": layer or doc["layer"],
        **same,
        **({"array": array} if array else {}),
    }


def _made(device: Device, as_json: bool, asked: int | None = None) -> None:
    """Says what was made, whether it is much larger than was asked for, and what to type next."""
    info = device.ask("info")
    if asked is not None and info["size"] > asked + asked // 8:
        console.note("more than --size: zones are whole ones, and each surface has some; zone=SIZE takes smaller ones")
    if as_json:
        console.print_json({**info, "uri": device.uri()})
        return
    lines = [
        f"[bold]{escape(device.name)}[/bold]: {info['size']:,} bytes, {escape(_what(info['engine']))}, at",
        f"  {escape(device.uri())}",
        "What to type next:",
        *(f"  {escape(line)}" for line in _clients(device)),
    ]
    console.out().print("\n".join(lines), soft_wrap=True, highlight=False)


def _what(engine: dict[str, Any]) -> str:
    """The layer, and the array of it."""
    return f"{engine['array']} of {engine['layer']}" if "array" in engine else str(engine["layer"])


def _clients(device: Device) -> list[str]:
    """A line for each likely client."""
    name, uri, tcp = device.name, device.uri(), device.tcp()
    tls = device.server()["tls"]
    lines = [
        f"smrlab device mount {name} DIR               # as a file and, as root, a loop device",
        f"nbdcopy IMAGE '{uri}'",
        f"fio --name=t --ioengine=nbd --uri='{uri}' --rw=randwrite --bs=4k --size=100m",
        f"nbdfuse DIR/disk '{uri}' &                   # then, as root:",
        "losetup --show -f DIR/disk",
    ]
    if not tls:
        kernel = f"{tcp[0]} {tcp[1]}" if tcp else f"-unix {device.socket()}"
        lines += [
            f"qemu-img info '{uri}'",
            f"qemu-system-x86_64 -drive file='{uri}',format=raw,if=virtio ...",
            f"nbd-client {kernel} /dev/nbd0     # as root; needs the kernel's nbd module",
        ]
    elif "certificates" in tls and tcp:
        credentials = f"tls-creds-x509,id=t,endpoint=client,dir={tls['certificates']}"
        image = f"driver=nbd,host={tcp[0]},port={tcp[1]},tls-creds=t"
        lines.append(f"qemu-img info --object {credentials} --image-opts {image}")
    if place := device.iscsi():
        lines.append(f"iscsi-inq {place}                              # docs/iscsi.md has more")
    return [
        *lines,
        f"nbdublk /dev/ublkb0 '{uri}'                  # as root; needs Linux 6.0 with ublk",
        f"smrlab device stats {name} --watch",
    ]


@app.command("list", help="List the devices.")
def show_all(as_json: o.JsonOption = False) -> None:
    """List the devices."""
    rows = devices.listed()
    if as_json:
        console.print_json({"devices": rows})
        return
    if not rows:
        console.note("no devices yet: smrlab device create NAME")
        return
    table = console.table("", ["name", "state", "drive", "layer", "store"])
    for device, row in zip(devices.every(), rows, strict=True):
        row["store"] = device.place() if row["state"] != "damaged" else f"smrlab device info {device.name}"
        row["layer"] = f"{row['array']} of {row['layer']}" if "array" in row else row["layer"]
        table.add_row(*(escape(str(row[k])) for k in ("name", "state", "drive", "layer", "store")))
    console.out().print(table)


@app.command("show", help="The same as info.", hidden=True)
@app.command("info", help="Show what a device is, and how its disks are.")
def info(name: Name, as_json: o.JsonOption = False) -> None:
    """Show one device."""
    device = Device.named(name)
    doc = device.ask("info") if device.running() else device.summary()
    if device.died():
        last = [f"{_clock(e)} {e['kind']}: {e['text']}" for e in device.last_events()[-devices.LAST :]]
        doc |= {"state": f"died, restart with: smrlab device start {name}", "last_events": last}
    doc["uri"] = device.uri()
    if as_json:
        console.print_json(doc)
        return
    table = console.table("", ["property", "value"])
    for key, value in devices.flat(doc):
        table.add_row(escape(key), escape(value if isinstance(value, str) else json.dumps(value)))
    console.out().print(table)


@app.command("stats", help="Show a device's counters.")
def stats(
    name: Name,
    as_json: o.JsonOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Every second, until Ctrl-C.")] = False,
) -> None:
    """Show counters."""
    device = Device.named(name)
    try:
        _show_stats(device, as_json, watch)
        while watch:
            time.sleep(1)
            _show_stats(device, as_json, watch)
    except KeyboardInterrupt:
        if not watch:
            raise


def _show_stats(device: Device, as_json: bool, watch: bool) -> None:
    """Once: a table, or JSON (a line each time where it is watched)."""
    doc = device.ask("stats")
    if as_json:
        console.print_json(doc, line=watch)
        return
    out = console.out()
    table = console.table("", ["counter", "value"], numeric=True)
    for key, value in devices.flat(doc):
        table.add_row(escape(key), f"{value:,}" if isinstance(value, int) else str(value))
    if watch and out.is_terminal:
        out.clear()
    out.print(table)


@app.command("events", help="Show what happened: errors, destroyed blocks that were read, cuts.")
def events(name: Name, as_json: o.JsonOption = False) -> None:
    """Show events."""
    device = Device.named(name)
    found: list[dict[str, Any]] = device.ask("events") if device.running() else device.last_events()
    if death := device.death():
        console.note(f"{name} died, restart with: smrlab device start {name}; these are its last events")
        found = [*found, death]
    if as_json:
        console.print_json({"events": found})
        return
    for e in found:
        block = "" if e["block"] is None else f" block {e['block']}"
        console.out().print(f"{_clock(e)} {e['kind']}{block}: {escape(e['text'])}", soft_wrap=True)


def _clock(event: dict[str, Any]) -> str:
    """When it happened."""
    return time.strftime("%H:%M:%S", time.localtime(event["time_s"]))


@app.command("start", help="Serve a device again.")
def start(name: Name) -> None:
    """Start."""
    Device.named(name).start(console.note)


Force = Annotated[bool, typer.Option("--force", help="Close the connections of clients at once.")]


@app.command("stop", help="Stop serving; what was written stays (but for a memory store).")
def stop(name: Name, force: Force = False) -> None:
    """Stop."""
    device = Device.named(name)
    recorded = kept.recorded(device) if device.running() else None
    device.stop(force=force, say=console.note)
    if recorded:
        console.note(kept.told(device, *recorded))


app.command("fail", help="A disk of an array dies.")(disks.fail)
app.command("replace", help="A fresh drive takes the place of a dead disk, and is rebuilt in the background.")(
    disks.replace
)


@app.command("crash", help="Cut the power now: the server dies as it stands.")
def crash(name: Name) -> None:
    """Cut the power."""
    Device.named(name).crash()


@app.command("remove", help="Stop a device and delete it; a store given with --store is kept.")
def remove(
    name: Name,
    delete_store: Annotated[bool, typer.Option("--delete-store", help="Delete the store that you gave, too.")] = False,
    force: Force = False,
) -> None:
    """Remove."""
    kept = Device.named(name).remove(delete_own=delete_store, force=force, say=console.note)
    if kept is not None:
        console.note(f"the store in {kept} is kept: --delete-store deletes it, device create --store {kept} serves it")


@app.command("reset-stats", help="Begin counting anew.")
def reset_stats(name: Name) -> None:
    """Reset counters."""
    Device.named(name).ask("reset-stats")


@app.command("mount", help="Serve the device as DIR/disk and, as root, set up a loop device on it.")
def mount(name: Name, directory: Annotated[Path, typer.Argument(metavar="DIR")], as_json: o.JsonOption = False) -> None:
    """Mount."""
    device = Device.named(name)
    file, loop = device.mount(directory)
    if as_json:
        console.print_json({"file": str(file), "loop": loop})
        return
    out = console.out()
    out.print(f"{file}", soft_wrap=True)
    if loop is None:
        out.print(
            "no loop device (not root, or losetup failed): use the file, or losetup --direct-io=on -f --show FILE"
        )
    else:
        out.print(f"{loop}\nWhat to type next:\n  mkfs.ext4 {loop} && mount {loop} /mnt", soft_wrap=True)


@app.command("unmount", help="Undo mount: the loop device and DIR/disk go.")
def unmount(
    name: Name,
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Needed only where it is mounted at several.")
    ] = None,
) -> None:
    """Unmount."""
    device = Device.named(name)
    device.unmount(directory or device.mounted_at())


app.command(
    "attach", help="Make it a block device of the kernel, /dev/ublkbN, with zones where it has some (as root; ublk)."
)(attach.attach)
app.command("detach", help="Undo attach: the block device goes.")(attach.detach)
app.command(
    "state",
    help="Write the state of the drive or array, without its bytes: for run --from-state and create --from-state.",
)(kept.state)
app.command("snapshot", help="Keep the device's state as it is now, under a label.")(kept.snapshot)
app.command("bands", help="Show the bands of a raw device with band=: guards and append points.")(bands.show)
app.command("reset-band", help="Make a band of a raw device as if never written.")(bands.reset)
app.command(
    "zones", help="Show the zones of a host-managed or host-aware drive (--layer zoned, host-aware), or let one fail."
)(zones.show)


OneDisk = Annotated[int | None, typer.Option("--disk", min=0, help="Of an array: this disk of it. Default: the first.")]


def _of(disk: int | None) -> dict[str, Any]:
    """The part of a request that names a disk."""
    return {} if disk is None else {"disk": disk}


@app.command("map", help="Draw the tracks: written, destroyed, stale, guard, append points.")
def draw(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="Write an .svg or .html instead.")] = None,
    cells: Annotated[int, typer.Option(min=64, max=65536, help="Cells to divide the medium into.")] = 2048,
    disk: OneDisk = None,
    as_json: o.JsonOption = False,
) -> None:
    """Draw the map."""
    from .. import devicemap

    doc = Device.named(name).ask("map", cells=cells, **_of(disk))
    if as_json:
        console.print_json(doc)
    elif out is not None:
        devicemap.write(doc, name, out)
        console.note(f"wrote {out}")
    else:
        console.out().print(devicemap.text(doc))


@app.command("clone", help="Make a new device of a device or of its snapshot (NAME@LABEL).")
def clone(
    source: Annotated[str, typer.Argument(metavar="NAME[@LABEL]", autocompletion=complete.devices)],
    name: Annotated[str, typer.Argument(metavar="NEW", help="The new device's name.")],
    as_json: o.JsonOption = False,
) -> None:
    """Clone."""
    with console.bar(name) as bar:
        made = devices.clone(source, name, bar)
    _made(made, as_json)


@app.command(
    "inject", help="Break something: unreadable sectors, a slow drive, an error or a cut at the n-th operation."
)
def inject(
    name: Name,
    unreadable: Annotated[str | None, typer.Option(help="FIRST+BLOCKS of the medium that cannot be read.")] = None,
    slow: Annotated[str | None, typer.Option(help="Added to every media operation, such as 5ms.")] = None,
    error_at: Annotated[int | None, typer.Option(help="The n-th media operation from now fails.")] = None,
    cut_at: Annotated[int | None, typer.Option(help="The power goes at the n-th media operation from now.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Mend everything first.")] = False,
    zone: Annotated[str | None, typer.Option(help=zones.FAIL_HELP)] = None,
    disk: OneDisk = None,
) -> None:
    """Inject faults."""
    if zone is not None:
        if faults.asked(unreadable, slow, error_at, cut_at, clear):
            raise InputError("--zone goes alone: inject the other faults by a command of their own")
        zones.fail(Device.named(name), "--zone", zone)
        return
    request = faults.faults(unreadable, slow, error_at, cut_at, clear)
    Device.named(name).ask("inject", **request, **_of(disk))
