"""Parts of served devices without a server: what nbdkit is asked, stores, mounts, zones, what is refused beforehand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from commands import Invoke

from smrlab import (
    devicemap,
    devices,
    faults,
    mounts,
    recording,
    server,
    stores,
    sysfs,
    targets,
    urls,
)
from smrlab.cli import complete, console, trace
from smrlab.cli import device as command
from smrlab.devices import Device
from smrlab.errors import InputError, MissingError


@pytest.fixture
def device(tmp_path: Path) -> Device:
    made = Device(tmp_path / "d")
    (made.path / "store").mkdir(parents=True)
    made._write({"store": {"directory": str(made.path / "store")}}, {"listen": None, "tls": {}})
    return made


def test_a_server_died_that_left_its_socket(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is stopped takes it away; one that runs has it."""
    for runs, left, died in ((False, False, False), (False, True, True), (True, True, False)):
        monkeypatch.setattr(Device, "running", lambda _, runs=runs: runs)
        (device.path / "control.sock").touch() if left else None
        assert device.died() == died


def test_the_end_of_a_server_is_its_last_event(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shell tells how it ended; a log that is older than its events is that of another server."""
    (device.path / "events.jsonl").write_text('{"number": 1, "time_s": 50.5}\n{"number": 3, "time_s": 55}\n')
    (device.path / "log").write_text("nbdkit: no more\nKilled\n")
    monkeypatch.setattr(Device, "died", lambda _: False)
    assert device.death() is None
    monkeypatch.setattr(Device, "died", lambda _: True)
    for at, when, ending in (
        (60, 60, "; the log ends with: Killed"),
        (54, 55, "; the log ends with: Killed"),
        (40, 55, ""),
    ):
        os.utime(device.path / "log", (at, at))
        text = f"the server ended without a goodbye{ending}"
        assert device.death() == {"number": 4, "time_s": when, "kind": "died", "block": None, "text": text}


def test_a_number_that_another_server_has_now_is_not_its_own(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of processes come again; its own server has its directory in its command."""
    (device.path / "pid").write_text("7\n")
    for path, pid in ((device.path, 7), ("/others/d", None)):
        command = f"nbdkit\0--pidfile\0{path}/pid\0".encode()
        monkeypatch.setattr(Path, "read_bytes", lambda _, command=command: command)
        assert device.pid() == pid


@pytest.mark.parametrize(
    ("listen", "tls", "words"),
    [
        (None, {}, ["--unix", "{}/nbd.sock"]),
        ("unix:/s", {}, ["--unix", "/s"]),
        ("tcp:[::1]:10809", {}, ["--ipaddr", "::1", "--port", "10809"]),
        ("tcp:h:1", {"psk": "/k"}, ["--ipaddr", "h", "--port", "1", "--tls=require", "--tls-psk=/k"]),
        (
            "tcp:h:1",
            {"certificates": "/c"},
            ["--ipaddr", "h", "--port", "1", "--tls=require", "--tls-certificates=/c", "--tls-verify-peer"],
        ),
    ],
)
def test_a_server_is_started_as_it_listens(
    listen: str | None, tls: dict[str, str], words: list[str], device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With certificates clients have to show theirs."""
    monkeypatch.setattr(server, "plugin", lambda: Path("/p.so"))
    device._write({}, {"listen": listen, "tls": tls})
    command = device._command()
    asked = command[command.index("--threads") + 2 :]
    assert asked == [*(word.format(device.path) for word in words), "/p.so", f"config={device.path / 'config.json'}"]


def test_a_device_is_unmounted_where_it_is_mounted_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere it is asked which."""
    held: list[str] = ["/m"]
    monkeypatch.setattr(Device, "running", lambda _: True)
    monkeypatch.setattr(Device, "ask", lambda *_: held)
    assert device.mounted_at() == Path("/m")
    held.append("/n")
    with pytest.raises(InputError, match="d is mounted at /m, /n: name one of them"):
        device.mounted_at()
    held.clear()
    with pytest.raises(InputError, match="d is not mounted: smrlab device mount d DIR"):
        device.mounted_at()
    # What a server left that was killed, with another one in its place.
    monkeypatch.setattr(mounts, "noted", lambda _: [Path("/live"), Path("/dead")])
    monkeypatch.setattr(mounts, "is_alive", lambda at: at == Path("/live"))
    assert device.mounted_at() == Path("/dead")


def test_a_mount_that_a_dead_server_left_makes_room(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose server lives is somebody else's."""
    cleared: list[Path] = []
    monkeypatch.setattr(Device, "ask", lambda _, what, **__: {"file": "/f"} if what == "mount" else [])
    for name, does in (("is_mount", lambda _: True), ("clear", cleared.append), ("add_loop", lambda *_: None)):
        monkeypatch.setattr(mounts, name, does)
    monkeypatch.setattr(mounts, "is_alive", lambda _: True)
    with pytest.raises(InputError, match="another device is mounted at"):
        device.mount(tmp_path)
    monkeypatch.setattr(mounts, "is_alive", lambda _: False)
    assert (device.mount(tmp_path), cleared) == ((Path("/f"), None), [tmp_path])


def test_a_block_device_is_kept_by_its_whole_path(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found from wherever the device is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "is_block_device", lambda _: True)
    assert device._store("b") == {"device": {"device": str(tmp_path / "b"), "state": str(device.path / "store")}}


def test_a_snapshot_is_made_of_what_nobody_uses(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A served device is stopped for it and served again, also where the copy fails."""
    state: dict[str, Any] = {"mounts": ["/m"], "clients": [], "did": []}
    did: list[str] = state["did"]
    monkeypatch.setattr(Device, "running", lambda _: True)
    monkeypatch.setattr(Device, "ask", lambda _, what: state.get(what))
    monkeypatch.setattr(Device, "clients", lambda _: state["clients"])
    monkeypatch.setattr(Device, "stop", lambda _: did.append("stop"))
    monkeypatch.setattr(Device, "start", lambda _: did.append("start"))

    def copied(_: Path, to: Path, __: Any) -> None:
        did.append("copy")
        if state.get("full"):
            raise InputError("no room")
        to.mkdir()

    monkeypatch.setattr(devices, "copy_store", copied)
    with pytest.raises(InputError, match="d is mounted at /m: smrlab device unmount d /m first"):
        device.snapshot("a")
    state |= {"mounts": [], "attached": {"path": "/dev/ublkb1"}}
    with pytest.raises(InputError, match="d is attached as /dev/ublkb1: smrlab device detach d first"):
        device.snapshot("a")
    state |= {"attached": None, "clients": ["qemu (pid 7)"]}
    with pytest.raises(InputError, match=r"d is used by qemu \(pid 7\): end that first"):
        device.snapshot("a")
    assert did == []
    state["clients"] = []
    assert device.snapshot("a") == device.path / "snapshots" / "a"
    assert did == ["stop", "copy", "start"]
    state["full"] = True
    with pytest.raises(InputError, match="no room"):
        device.snapshot("b")
    assert did[3:] == ["stop", "copy", "start"]
    with pytest.raises(InputError, match="d has a snapshot 'a' already"):
        device.snapshot("a")


@pytest.mark.parametrize(("size", "told"), [(800, False), (900, False), (901, True)])
def test_a_device_much_larger_than_asked_is_told(
    size: int, told: bool, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By more than an eighth of 800 bytes."""
    notes: list[str] = []
    monkeypatch.setattr(console, "note", notes.append)
    monkeypatch.setattr(Device, "ask", lambda *_: {"size": size, "engine": {"layer": "zoned"}})
    command._made(device, True, 800)
    assert bool(notes) == told


def test_an_object_of_unknown_length_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one is not."""
    for size in (None, 0, 7):
        system = SimpleNamespace(info=lambda _, size=size: {"size": size})
        monkeypatch.setattr(urls, "filesystem", lambda url, system=system: (system, url))
        if size is None:
            with pytest.raises(OSError, match="does not tell how long it is: fetch the file first"):
                urls.Ranges("x://y")
        else:
            assert urls.Ranges("x://y").size == size


def test_what_is_offered_begins_as_it_was_typed(tmp_path: Path) -> None:
    """Hidden files to who types the dot; words of a parameter by their beginning."""
    for name in (".hidden", "a.toml", "ab.csv"):
        (tmp_path / name).touch()
    (tmp_path / "az").mkdir()
    of = [complete.files(f"{tmp_path}/{typed}", ending) for typed, ending in (("", ""), (".", ""), ("a", ".toml"))]
    assert [[p.removeprefix(f"{tmp_path}/") for p in found] for found in of] == [
        ["a.toml", "ab.csv", "az/"], [".hidden"], ["a.toml", "az/"]
    ]  # fmt: skip
    params = {"mode": {"on", "once", "alone"}, "more": set[str]()}
    assert complete._pairs(params, "mode=on") == ["mode=on", "mode=once"]
    assert (complete._pairs(params, "mo"), complete._pairs(params, "none=")) == (["mode=", "more="], [])

    def settings(typed: str, **named: Any) -> list[str]:
        return complete.settings(cast("Any", SimpleNamespace(params=named)), typed)

    assert settings("sched") == ["scheduler=", "scheduler."]
    assert settings("layer.ban", layer="rmw,band=3") == ["layer.band="]
    assert (settings("layer.ban", layer=["cmr"]), settings("seed.x"), settings("seed=")) == ([], [], [])
    assert "layer=rmw" in settings("layer=r")


def test_a_trace_is_not_written_over_itself(tmp_path: Path) -> None:
    """Whatever format and parameters stand behind its name."""
    file, other = tmp_path / "t.csv", tmp_path / "o.csv"
    for path in (file, other):
        path.touch()
    of = [trace._is_source(f"{source}{rest}", file) for source in (file, other) for rest in ("", ":spc", ":csv,a=b:c")]
    assert of == [True] * 3 + [False] * 3
    assert not trace._is_source("synth:uniform", file)
    assert cast("Any", trace._plain)(["\0-:spc", "a"]) == ["-:spc", "a"]


def test_recordings_are_put_aside_one_after_the_other(tmp_path: Path) -> None:
    """None is written over."""
    record_at = tmp_path / "r.parquet"
    for number in (1, 2, 3):
        record_at.write_text(str(number))
        assert recording.put_aside(str(record_at)) == tmp_path / f"r.{number}.parquet"
    assert recording.put_aside(str(record_at)) is None
    assert [(tmp_path / f"r.{n}.parquet").read_text() for n in (1, 2, 3)] == ["1", "2", "3"]


def test_what_a_killed_server_had_begun_to_record_goes(tmp_path: Path) -> None:
    """What a live one writes stays, and other files do."""
    (gone := subprocess.Popen(["true"])).wait()
    dead, alive = (tmp_path / f".r[1].parquet.{pid}.tmp" for pid in (gone.pid, os.getpid()))
    others = [tmp_path / name for name in (f".r1.parquet.{gone.pid}.tmp", ".r[1].parquet.x.tmp")]
    for file in (dead, alive, *others):
        file.touch()
    assert recording.put_aside(str(tmp_path / "r[1].parquet")) is None
    assert sorted(tmp_path.iterdir()) == sorted([alive, *others])
    recording.sweep(None)


def test_one_block_is_unreadable_where_no_number_is_given() -> None:
    """FIRST+BLOCKS, BLOCKS being 1."""
    asked = [faults.faults(said, None, None, None, False)["unreadable"] for said in ("7", "7+1", "7+3")]
    assert asked == [[7, 8], [7, 8], [7, 10]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("5+99999999999999999999", None, None, None), "--unreadable 5.99999999999999999999: no medium has so many"),
        ((None, None, -1, None), "--error-at -1 is not accepted: a whole number from 0 to 1152921504606846976"),
        ((None, None, None, 1 << 70), "--cut-at 1180591620717411303424 is not accepted"),
    ],
)
def test_faults_that_no_medium_has_are_told_with_their_option(given: tuple[Any, Any, Any, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        faults.faults(*given, False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, text) for name in ("config.json", "server.json") for text in ("", "{", "[]", "{}")),
        ("server.json", None),
    ],
)
def test_a_damaged_device_is_told_and_can_be_removed(
    name: str, text: str | None, device: Device, smrlab: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are listed all the same."""
    monkeypatch.setattr("smrlab.devices.home", lambda: device.path.parent)
    device._write(device.config() | {"drive": "tiny", "layer": "cmr"}, device.server())
    file = device.path / name
    file.unlink() if text is None else file.write_text(text)
    row = {"name": "d", "state": "damaged", "drive": "", "layer": "", "store": ""}
    assert json.loads(smrlab("device", "list", "--json").out)["devices"] == [row]
    assert smrlab("device", "list").out.split()[-6:] == ["d", "damaged", "smrlab", "device", "info", "d"]
    for word in ("start", "info"):
        ended = smrlab("device", word, "d")
        assert (ended.status, ended.out) == (2, "")
        assert ended.err == f"smrlab: {file} is damaged: mend it, or smrlab device remove d, with what was on it\n"
    assert smrlab("device", "remove", "d").status == 0
    assert not device.path.exists()


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({"zoned": "host-aware", "zbc_page": "drive-managed"}, "host-aware"),
        ({"zbc_page": "drive-managed"}, "drive-managed"),
        ({"zoned": "host-managed", "identify_zones": "host-aware"}, "host-managed"),
        ({"inquiry_type": 20}, "host-managed"),
        ({"zoned": "none"}, None),
    ],
)
def test_what_a_drive_says_of_its_zones_is_its_kind(found: dict[str, Any], kind: str | None) -> None:
    """Of two words the one that promises the host more."""
    assert sysfs._follows(found).get("kind") == kind


def test_trim_of_a_disk_that_turns_is_a_hint() -> None:
    """Unless it said what it is."""

    def hint(**found: Any) -> bool:
        return "hint" in sysfs._follows(found)

    assert hint(rotational=True, trim=True)
    assert hint(rotational=True, unmap=True)
    assert not any((hint(rotational=True), hint(trim=True), hint(rotational=True, trim=True, solid_state=True)))
    assert not hint(rotational=True, trim=True, zoned="host-aware")


def test_a_served_drive_tells_its_zones() -> None:
    """How many, its limits, and what kind it is; what does not apply is left out."""
    said = {"model": "host-aware", "zones": [{}, {}, {}], "max_open": 128, "max_active": None}
    assert targets.told("d", "nbd://h", said) == {"zones": {"count": 3, "max_open": 128}, "kind": "host-aware"}


def test_a_clone_has_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sockets, events and store are its own; it has no recording, iSCSI or reservations; all else is as it was."""
    monkeypatch.setenv("SMRLAB_STATE", str(tmp_path))
    origin = Device(devices.home() / "a")
    origin.path.mkdir(parents=True)
    (origin.path / "store").mkdir()
    config = {"name": "a", "layer": "rmw", "seed": 7, "control": "c", "events": "e", "record": "/r.parquet"}
    config |= {"iscsi": "h:1", "chap": "/secrets"}
    served = {"listen": "iscsi:h:1", "tls": {}, "folder": "/f"}
    origin._write(config | {"store": {"directory": str(origin.path / "store")}}, served)

    def copied(_: Path, to: Path, __: object) -> None:
        to.mkdir()
        for name in ("modes", "reservations"):
            (to / name).touch()

    monkeypatch.setattr(devices, "copy_store", copied)
    monkeypatch.setattr(Device, "start", lambda _: None)
    made = devices.clone("a", "b")
    at = devices.home() / "b"
    assert [file.name for file in (at / "store").iterdir()] == ["modes"]
    assert made.config() == {
        "name": "b", "layer": "rmw", "seed": 7, "control": str(at / "control.sock"), "record": None,
        "iscsi": None, "chap": None, "events": str(at / "events.jsonl"), "store": {"directory": str(at / "store")},
    }  # fmt: skip
    assert made.server() == {"listen": None, "tls": {}, "folder": "/f"}
    with pytest.raises(InputError, match="there is a device 'b' already"):
        devices.clone("a", "b")


def test_a_copied_store_is_as_sparse_and_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeroes take no room in a copy. What was copied before it failed goes."""
    source, target = tmp_path / "store", tmp_path / "copied"
    source.mkdir()
    (source / "data.0").write_bytes(bytes(8 << 20) + b"end")
    stores.copy_store(source, target)
    copied = (target / "data.0").stat()
    assert (copied.st_size, copied.st_blocks < 1000) == ((8 << 20) + 3, True)
    program = tmp_path / "bin" / "cp"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nfor last; do :; done\n/bin/cp -r "$4" "$last"\necho "no room" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(MissingError, match="no room"):
        stores.copy_store(source, tmp_path / "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize(("own", "delete", "kept", "deleted"), [(True, 0, 0, 0), (False, 0, 1, 0), (False, 1, 0, 1)])
def test_the_users_store_is_kept(
    own: bool, delete: int, kept: int, deleted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is to go as well; the device's own goes with it, and nothing is said of that."""
    device = Device(tmp_path / "d")
    store = device.path / "store" if own else tmp_path / "mine"
    store.mkdir(parents=True)
    (store / "header").touch()
    device.path.mkdir(exist_ok=True)
    device._write({"store": {"directory": str(store)}}, {"listen": None, "tls": {}})
    gone: list[Path] = []
    monkeypatch.setattr(devices, "delete_store", gone.append)
    assert device.remove(delete_own=bool(delete)) == (store if kept else None)
    assert (gone, device.path.exists()) == ([store] if deleted else [], False)


def test_files_of_a_store_are_known_by_their_names() -> None:
    """And what only looks like one is not."""
    own = (
        "header",
        "lock",
        "spill",
        "data.0",
        "log.12",
        "checkpoint.3",
        "header.new",
        "checkpoint.3.new",
        "modes",
        "reservations",
        "modes.new",
    )
    assert all(map(stores.FILES.fullmatch, own))
    assert not any(
        map(stores.FILES.fullmatch, ("data", "data.x", "my.data.0", "header.txt", "log", "spill.1", "lock.new"))
    )


def test_cells_of_a_medium_are_what_most_concerns_who_looks() -> None:
    """Loss before anything; a guard only where nothing is written; append points in their own row."""
    cells = [[0, 0, 0], [0.5, 0, 0], [0.5, 0.1, 0.4], [0.1, 0, 0.9], [0.5, 0, 0.5], [0, 0, 0], [0.3, 0, 0]]
    band = {"guard": 50, "end": 70, "append": 25}
    assert devicemap.states({"blocks": 70, "cells": cells, "bands": [band]}) == [0, 1, 2, 3, 1, 4, 1]
    rows = {"blocks": 128, "cells": [[0, 0, 0]] * 128, "bands": [{"guard": 127, "end": 128, "append": 66}]}
    assert f'<rect x="{devicemap.LEFT + 2 * devicemap.CELL:.1f}" y="{devicemap.CELL}" width="2"' in devicemap.svg(
        rows, "d"
    )


def test_commands_that_start_or_remove_a_device_wait_for_each_other(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two starts at once made two servers of one device, and two removals ended with a traceback."""
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a second server"))
    monkeypatch.setattr("shutil.which", lambda _: "nbdkit")
    runs = False
    monkeypatch.setattr(Device, "running", lambda _: runs)
    said: list[str] = []

    def refused(command: Callable[[], object]) -> None:
        try:
            command()
        except InputError as e:
            said.append(str(e))

    def meanwhile(command: Callable[[], object], change: Callable[[], object]) -> None:
        with device.alone():
            other = Thread(target=refused, args=(command,))
            other.start()
            other.join(0.2)
            assert other.is_alive()
            change()
        other.join(10)

    def serve() -> None:
        nonlocal runs
        runs = True

    meanwhile(device.start, serve)
    assert said.pop() == "d is being served already"
    runs = False
    meanwhile(device.remove, lambda: shutil.rmtree(device.path))
    assert said.pop() == "there is no device 'd' any more"
    # Nor is another one taken for it that has its name since.
    device.path.mkdir()

    def anew() -> None:
        device.path.rename(device.path.with_name("old"))
        device.path.mkdir()

    meanwhile(device.remove, anew)
    assert (said.pop(), device.path.exists()) == ("there is no device 'd' any more", True)
