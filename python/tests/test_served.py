"""What commands tell and do of served devices, with a server of three lines in the place of nbdkit."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Invoke

from smrlab import attached, devices, listening, mounts, recording, server, stores
from smrlab.devices import Device
from smrlab.errors import InputError, MissingError

ZONES = [
    {"condition": c, "start": 70 * i, "blocks": 70, "pointer": p, "non_sequential": i == 2}
    for i, (c, p) in enumerate((("full", 70), ("full", 140), ("closed", 150), ("empty", 210)))
]
EVENT = {"time_s": 0.0, "kind": "cut", "block": 7, "text": "the power went"}
ANSWERS: dict[str, Any] = {
    "info": {"size": 8_192_000, "engine": {"layer": "rmw", "array": "raid5", "disks": [{"disk": 0}]}},
    "stats": {"host": {"reads": 12_345, "share": 0.5}},
    "events": [EVENT, {**EVENT, "block": None}],
    "bands": [{"start": 0, "append": 1000, "guard": 1900, "end": 2000}],
    "zones": {"model": "host-managed", "max_open": 128, "zones": ZONES},
    "state": {"array": "raid5", "disks": 4, "layer": "rmw", "drive": "tiny", "records": 1234},
    "mount": {"file": "/m/disk"},
    "mounts": [],
    "attached": None,
    "attach": {"path": "/dev/ublkb3", "number": 3},
    "clients": [{"peer": "a", "name": "qemu", "pid": 7}, {"peer": "b", "address": "h:1"}],
}
CONFIG = {"drive": "tiny", "layer": "rmw", "array": "raid5", "block": 4096, "record": None}


class Served:
    """A device `d` that answers from a table, and what it was asked for."""

    def __init__(self, path: Path) -> None:
        self.device, self.answers = Device(path), dict(ANSWERS)
        self.asked: list[dict[str, Any]] = []
        path.mkdir(parents=True)
        self.device._write({**CONFIG, "store": {"directory": "/s"}}, {"listen": None, "tls": {}})
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path / "control.sock"))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        """Until the socket is closed; what it does not know it closes the connection for, or refuses."""
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            with one, one.makefile("rb") as said:
                asked = json.loads(said.readline())
                self.asked.append(asked)
                if asked["cmd"] == "refuse":
                    one.sendall(b'{"error": "no such thing"}\n')
                elif asked["cmd"] != "vanish":
                    one.sendall((json.dumps({"ok": self.answers.get(asked["cmd"])}) + "\n").encode())


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("SMRLAB_STATE", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(Device, "pid", lambda _: 1)
    made = Served(devices.home() / "d")
    yield made
    made.listener.close()


# A command, what it says on stdout, and what on stderr.
TOLD: list[tuple[str, list[str], list[str]]] = [
    ("device info d", ["size 8192000", "engine.layer rmw", "engine.disks.0.disk 0", "uri nbd+unix:///?socket="], []),
    ("device stats d", ["host.reads 12,345", "host.share 0.5"], []),
    ("device events d", [":00:00 cut block 7: the power went", ":00:00 cut: the power went"], []),
    ("device bands d", ["band start append guard end", "0 0 1,000 1,900 2,000"], []),
    (
        "device zones d",
        ["0-1 0 70 full 140", "2 140 70 closed 10", "3 210 70 empty 0", "0 ██▂·", "at most 128 open"],
        [],
    ),
    ("device list", ["d serving tiny raid5 of rmw /s"], []),
    ("device state d --out /f", [], ["/f: raid5 over 4 of rmw on tiny, 1,234 records"]),
    ("device mount d .", ["/m/disk", "/dev/loop5 What to type next: mkfs.ext4 /dev/loop5 && mount /dev/loop5"], []),
    ("device attach d", ["/dev/ublkb3 What to type next: lsblk -z /dev/ublkb3"], []),
]


@pytest.mark.parametrize(("words", "out", "err"), TOLD, ids=lambda v: v if isinstance(v, str) else "")
def test_what_a_server_answers_is_told(
    words: str, out: list[str], err: list[str], served: Served, smrlab: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In words and with separators; each as one document where that is asked for."""
    monkeypatch.setattr(attached, "CONTROL", Path("/dev/null"))
    loops: list[Any] = []

    def add_loop(*of: Any) -> str:
        loops.append(of)
        return "/dev/loop5"

    monkeypatch.setattr(mounts, "add_loop", add_loop)
    monkeypatch.setattr(mounts, "is_mount", lambda _: False)
    ended = smrlab(*words.split())
    told, noted = (" ".join(text.split()) for text in (ended.out, ended.err))
    assert [part for part in out if part not in told] == [], told
    assert [part for part in err if part not in noted] == [], noted
    assert ended.status == 0
    if "mount" in words:
        assert loops == [(Path("/m/disk"), 4096)]
        assert {"cmd": "mount", "dir": str(Path.cwd())} in served.asked
    elif "state" not in words:
        whole = {
            "info": {**ANSWERS["info"], "uri": served.device.uri()},
            "events": {"events": ANSWERS["events"]},
            "bands": {"bands": ANSWERS["bands"]},
            "list": {"devices": [served.device.summary()]},
            "attach": {"path": "/dev/ublkb3"},
        }
        name = words.split()[1]
        assert smrlab(*words.split(), "--json").out.startswith('{\n "schema": 1,\n')
        assert smrlab(*words.split(), "--json").json() == {"schema": 1, **whole.get(name, ANSWERS.get(name, {}))}


def test_a_zone_fails_before_zones_are_shown(served: Served, smrlab: Invoke) -> None:
    """By its first block; one that is not there, or another word, fails nothing."""
    for words in (("zones", "d", "--fail", "2=offline"), ("inject", "d", "--zone", "2=read-only")):
        served.asked.clear()
        assert smrlab("device", *words).status == 0
        condition = words[-1].partition("=")[2]
        assert served.asked[:2] == [{"cmd": "zones"}, {"cmd": "fail-zone", "lba": 140, "condition": condition}]
        assert served.asked[2:] == ([{"cmd": "zones"}] if words[0] == "zones" else [])
    served.asked.clear()
    for wrong in ("4=offline", "1=full", "x=offline"):
        ended = smrlab("device", "zones", "d", "--fail", wrong)
        assert (ended.status, "zones are numbered from 0 to 3" in " ".join(ended.err.split())) == (2, True)
    assert {asked["cmd"] for asked in served.asked} == {"zones"}


def test_an_answer_is_what_it_says(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal by its words; none where the server went away, unless it was sent away."""
    device = served.device
    assert device.ask("info", more=3) == ANSWERS["info"]
    assert served.asked == [{"cmd": "info", "more": 3}]
    with pytest.raises(InputError, match="d: no such thing"):
        device.ask("refuse")
    with pytest.raises(MissingError, match=r"d: the server went away: see .*/log"):
        device.ask("vanish")
    assert device.ask("vanish", answered=False) is None
    assert device.clients() == ["qemu (pid 7)", "h:1"]
    monkeypatch.setattr(Device, "pid", lambda _: None)
    for left, said in ((True, "d died, restart with"), (False, "d is not being served")):
        if not left:
            (device.path / "control.sock").unlink()
        with pytest.raises(InputError, match=f"{said}: smrlab device start d"):
            device.ask("info")
    assert device.clients() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOENT])
def test_a_server_that_has_no_room_is_the_environments_fault(number: int) -> None:
    kind = InputError if number == errno.ENOENT else MissingError
    assert type(server._fault(f"d: header: {os.strerror(number)} (os error {number})")) is kind


def test_a_dead_server_is_told_with_its_last_events(
    served: Served, smrlab: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of them may be cut."""
    monkeypatch.setattr(Device, "pid", lambda _: None)
    (served.device.path / "events.jsonl").write_text(json.dumps(EVENT) + '\n{"time_s":')
    doc = smrlab("device", "info", "d", "--json").json()
    assert doc["state"] == "died, restart with: smrlab device start d"
    assert [line[2:] for line in doc["last_events"]] == [":00:00 cut: the power went"]
    ended = smrlab("device", "events", "d")
    assert "d died, restart with: smrlab device start d; these are its last events" in " ".join(ended.err.split())
    assert "cut block 7: the power went" in ended.out
    assert "d died tiny raid5 of rmw /s" in " ".join(smrlab("device", "list").out.split())


def test_a_block_device_is_detached_where_nobody_uses_it(
    served: Served, smrlab: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a server that died had is taken over by the next."""
    monkeypatch.setattr(attached, "NODES", served.device.path)
    ended = smrlab("device", "detach", "d")
    assert (ended.status, "d is not attached: smrlab device attach d" in ended.err) == (2, True)
    served.answers["attached"] = {"path": "/dev/ublkb3"}
    used: list[str] = []
    monkeypatch.setattr(attached, "check_unused", used.append)
    mark = attached._mark(served.device)
    mark.write_text("3\n")
    served.asked.clear()
    attached.take_over(served.device)
    assert (served.asked, mark.exists()) == ([], False)
    mark.write_text("3\n")
    (served.device.path / "ublkc3").touch()
    attached.take_over(served.device)
    assert served.asked == [{"cmd": "attach", "number": 3}]
    assert smrlab("device", "detach", "d").status == 0
    assert (used, mark.exists(), served.asked[1:]) == (["/dev/ublkb3"], False, [{"cmd": "attached"}, {"cmd": "detach"}])


def test_a_device_is_written_down_as_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its sockets and its store; nothing remains of one that does not start."""
    monkeypatch.setenv("SMRLAB_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Device, "start", lambda _: None)
    for store, listen, kept, at in (
        (None, None, {"directory": f"{devices.home()}/a/store"}, None),
        ("memory", "tcp:h:1", "memory", "tcp:h:1"),
        ("mine", "unix:s", {"directory": f"{tmp_path}/mine"}, f"unix:{tmp_path}/s"),
        ("mine", "iscsi:h:1", {"directory": f"{tmp_path}/mine"}, "iscsi:h:1"),
    ):
        made = Device.create("a", {"layer": "rmw"}, store, listen, {})
        assert made.config() == {
            "layer": "rmw", "store": kept, "control": f"{made.path}/control.sock",
            "events": f"{made.path}/events.jsonl", "iscsi": "h:1" if listen == "iscsi:h:1" else None,
        }  # fmt: skip
        assert made.server() == {"listen": at, "tls": {}, "folder": None}
        assert str(made.socket()) == (
            f"{tmp_path}/s" if store == "mine" and listen == "unix:s" else f"{made.path}/nbd.sock"
        )
        with pytest.raises(InputError, match="there is a device 'a' already"):
            Device.create("a", {}, store, listen, {})
        made.remove()
    (tmp_path / "r.parquet").touch()
    with pytest.raises(InputError, match="is there already: name a new file"):
        Device.create("a", {"record": "r.parquet"}, None, None, {})

    def fails(_: Device) -> None:
        raise MissingError("no")

    monkeypatch.setattr(Device, "start", fails)
    with pytest.raises(MissingError, match="no"):
        Device.create("a", {}, None, None, {})
    assert not (devices.home() / "a").exists()
    with pytest.raises(InputError, match="there is no device 'a'; there are: none yet"):
        Device.named("a")
    assert recording.put_aside(None) is None


def test_a_copy_is_made_of_a_store_in_files(served: Served) -> None:
    """What is elsewhere is refused, and told where it is."""
    device = served.device
    assert device._in_files() == Path("/s")
    for store, where, place in (
        ("memory", "memory", "memory"), ({"device": {"device": "/dev/sdz", "state": "/t"}}, "/dev/sdz", "/dev/sdz"),
    ):  # fmt: skip
        device._write({**CONFIG, "store": store}, device.server())
        with pytest.raises(InputError, match=f"d has its bytes in {where}: snapshots and clones need a store in files"):
            device.snapshot("a")
        assert device.place() == place
        assert device.store() == (None if store == "memory" else Path("/t"))


def test_a_socket_that_a_server_left_goes_and_nothing_else(tmp_path: Path) -> None:
    """Not where somebody listens, not a file, and only a path that a socket can have."""
    at = tmp_path / "s"
    listening.clear(at)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(at))
        one.listen()
        with pytest.raises(InputError, match="another program listens there"):
            listening.clear(at)
    listening.clear(at)
    assert not at.exists()
    at.write_text("mine")
    with pytest.raises(InputError, match="what is there is no socket"):
        listening.clear(at)
    longest = Path("/" + "x" * (listening.SOCKET_PATH - 2))
    with pytest.raises(InputError, match=f"longer than the {listening.SOCKET_PATH - 1} bytes"):
        listening.clear(longest.with_name(longest.name + "x"))
    listening.clear(longest)


def test_a_store_is_copied_wholly_or_not_at_all(tmp_path: Path) -> None:
    """With what it holds; the share that is done ends with all."""
    store, shares = tmp_path / "a", list[float]()
    (store / "disk.0").mkdir(parents=True)
    (store / "disk.0" / "data.0").write_bytes(bytes(5000))
    stores.copy_store(store, tmp_path / "b", shares.append)
    assert (tmp_path / "b/disk.0/data.0").read_bytes() == bytes(5000)
    assert (shares[-1], max(shares)) == (1.0, 1.0)
    with pytest.raises(MissingError, match=r"copying .*/none: .*No such file"):
        stores.copy_store(tmp_path / "none", tmp_path / "c")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_what_serves_devices_is_found_where_it_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is named, or the package's own, or that of a release: in the folder cargo was given or beside us."""
    name = "libsmrlab_nbdkit.so"
    package, beside, cargo = tmp_path / "python/smrlab", tmp_path / "target/release", tmp_path / "builds/release"
    for folder in (package, beside, cargo):
        folder.mkdir(parents=True)
        (folder / name).touch()
    monkeypatch.setattr(server, "__file__", str(package / "server.py"))
    monkeypatch.delenv("SMRLAB_NBDKIT_PLUGIN", raising=False)
    monkeypatch.setenv("CARGO_TARGET_DIR", str(cargo.parent))
    assert server.plugin() == package / name
    (package / name).unlink()
    assert server.plugin() == cargo / name
    monkeypatch.delenv("CARGO_TARGET_DIR")
    assert server.plugin() == beside / name
    (beside / name).unlink()
    with pytest.raises(MissingError, match="make setup"):
        server.plugin()
    monkeypatch.setenv("SMRLAB_NBDKIT_PLUGIN", str(cargo / name))
    assert server.plugin() == cargo / name
