"""What `device create` and `device start` refuse: in one message with place and remedy, and nothing is left of it."""

from __future__ import annotations

import errno
import socket
import sys
from pathlib import Path

import pytest
from nbdclient import READ, Client
from served import Make, need, run

from smrlab import devices, listening
from smrlab.devices import Device
from smrlab.errors import InputError

SMRLAB = (sys.executable, "-m", "smrlab")
LONG = "x" * 300


def below(folder: Path) -> set[str]:
    """Everything in a folder."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def test_addresses_that_cannot_be_had(make: Make, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        for listen, message in (
            (f"tcp:{at}", f"--listen tcp:{at}: address already in use; stop what listens there"),
            (f"iscsi:{at}", f"--listen iscsi:{at}: address already in use; stop what listens there"),
            ("tcp:192.0.2.1:10809", "--listen tcp:192.0.2.1:10809: cannot assign requested address; .*name another"),
            ("tcp:nowhere.invalid:10809", "--listen tcp:nowhere.invalid:10809: .*name an address of this machine"),
            (
                f"unix:{tmp_path}/none/s",
                f"--listen unix:{tmp_path}/none/s: no such file or directory; name a path in a",
            ),
        ):
            with pytest.raises(InputError, match=f"^{message}"):
                make(store=str(tmp_path / "new" / "store"), listen=listen, layer="cmr")
        assert (below(tmp_path), devices.every()) == (set(), [])
        # Of an address that was free when the device was made, `start` says the same.
        device = make(listen="unix:" + str(tmp_path / "s"), layer="cmr")
        device.stop()
        device._write(device.config(), {"listen": f"tcp:{at}", "tls": {}})
        with pytest.raises(InputError, match="already in use; stop what listens there"):
            device.start()


def test_a_port_of_roots_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(socket.socket):
        def bind(self, _: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(listening.socket, "socket", Refused)
    with pytest.raises(
        InputError, match=r"^--listen tcp:127\.0\.0\.1:80: permission denied; ports below 1024 are root's"
    ):
        listening.check_free("tcp:127.0.0.1:80", Path("unused"))


def test_a_server_takes_one_address_of_several(make: Make) -> None:
    """One of the addresses is another program's: the server has the other, and is not refused."""
    need("nbdinfo")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        try:
            make(listen=f"tcp:*:{port}", layer="cmr")
        except InputError:
            if not Path("/proc/net/if_inet6").exists():
                pytest.skip("this machine has no IPv6")
            raise
        run("nbdinfo", "--size", f"nbd://[::1]:{port}")


def test_no_store_is_left_by_a_device_that_could_not_be_made(make: Make, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    before = below(tmp_path)
    record = str(tmp_path / "none" / "t.parquet")
    for store in ("new", "deep/er/new", "empty"):
        for more in ({}, {"array": "mirror,disks=2"}):
            with pytest.raises(InputError, match=r"t\.parquet: cannot be written"):
                make(store=str(tmp_path / store), layer="cmr", record=record, **more)
            assert below(tmp_path) == before
    # One that was there stays, whole; so does one that another device has.
    store = tmp_path / "mine"
    make("first", store=str(store), layer="cmr")
    there = below(store)
    for message in ("is being served already", "cannot be written"):
        with pytest.raises(InputError, match=message):
            make("second", store=str(store), layer="cmr", record=record if "written" in message else None)
        assert below(store) == there
        if Device.named("first").running():
            Device.named("first").stop()
    Device.named("first").start()


def test_stores_that_would_be_deleted_with_another(make: Make, tmp_path: Path) -> None:
    first = make("first", store=str(tmp_path / "outer"), layer="cmr")
    own = make("own", layer="cmr")
    own.stop()
    inner = tmp_path / "link"
    inner.symlink_to(tmp_path / "outer")
    for at, message in (
        (tmp_path / "outer" / "inner", f"lies within the store {tmp_path / 'outer'}: name a directory elsewhere"),
        (inner / "disk.0", "lies within the store"),
        (own.path / "store", "lies where devices themselves are kept"),
        (devices.home() / "other", "lies where devices themselves are kept"),
        ("", "--store: it is empty"),
    ):
        with pytest.raises(InputError, match=message):
            make("second", store=str(at), layer="cmr")
    assert [d.name for d in devices.every()] == ["first", "own"]
    first.stop()


def test_a_path_is_no_name_of_a_device(make: Make) -> None:
    device = make(layer="cmr")
    for name in ("../devices/d", "./d", "d/", LONG):
        for done in (Device.named, lambda name: devices.clone(name, "e")):
            with pytest.raises(InputError, match=r"there is no device '.*'; there are: d$"):
                done(name)
    # By that name its server was not found, and what it served was deleted under it.
    assert run(*SMRLAB, "device", "remove", "../devices/d", check=False).returncode == 2
    assert device.running()


def test_keys_that_are_none(make: Make, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    for text in (b"", b"alice", b"alice:", b"alice:xyz", b":00ff", b"alice:00f\n", b"\xff\xfe:00ff"):
        keys.write_bytes(text)
        with pytest.raises(InputError, match=r"it has no line NAME:KEY with a key in hex; make one: psktool"):
            make(listen="tcp:127.0.0.1:10809", tls={"psk": str(keys)}, layer="cmr")
    assert devices.every() == []


@pytest.mark.parametrize(
    ("state", "options", "message"),
    [
        ("state", ("--store", LONG), f"{LONG}: File name too long"),
        ("state", ("--record", f"{LONG}.parquet"), "File name too long"),
        ("file", (), "file/devices/d cannot be made: Not a directory; set SMRLAB_STATE to a folder that takes files"),
        (LONG, (), "too long"),
        ("/proc/none", (), "/proc/none/devices/d cannot be made: No such file or directory; set SMRLAB_STATE"),
        ("state", ("--block", "-512"), "--block -512: accepted are 512, 4096"),
        ("state", ("--block", "1024"), "--block 1024: accepted are 512, 4096"),
        ("state", ("--metadata", "disk"), "--metadata disk: accepted are nv, media"),
        ("state", ("--seed", "99999999999999999999"), "--seed"),
    ],
)
def test_options_that_cannot_be(
    state: str, options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SMRLAB_STATE", str(tmp_path / state))
    monkeypatch.chdir(tmp_path)
    before = below(tmp_path)
    ended = run(*SMRLAB, "device", "create", "d", *options, check=False)
    assert (ended.returncode in (2, 3), ended.stdout) == (True, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "config.json" not in ended.stderr
    assert below(tmp_path) - {"state", "state/devices"} == before


@pytest.mark.parametrize("asked", [False, True])
def test_a_recording_of_nothing_says_that_there_is_none(make: Make, tmp_path: Path, asked: bool) -> None:
    file = tmp_path / "t.parquet"
    device = make(layer="cmr", record=str(file))
    if asked:
        with Client(device.path / "nbd.sock") as client:
            assert client.ask(READ, 0, 4096, b"")[0] == 0
    said = run(*SMRLAB, "device", "stop", device.name).stderr
    assert file.exists() == asked
    wanted = f"there is no recording in {file}: its clients sent no request since it was started\n"
    assert said.startswith(f"what its clients did is in {file}; replay it: ") if asked else said == wanted


def test_two_devices_do_not_record_into_one_file(make: Make, tmp_path: Path) -> None:
    """The last that was stopped would have written over what the other had recorded."""
    (tmp_path / "link").symlink_to(tmp_path)
    make("first", layer="cmr", record=str(tmp_path / "t.parquet"))
    make("other", layer="cmr", record=str(tmp_path / "u.parquet"))
    with pytest.raises(InputError, match=r"--record .*t\.parquet: first records there: name another file"):
        make("second", layer="cmr", record=str(tmp_path / "link" / "t.parquet"))
    assert [d.name for d in devices.every()] == ["first", "other"]


def test_a_recording_that_could_not_be_kept_says_why(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    device = make(layer="cmr", record=str(folder / "t.parquet"))
    with Client(device.path / "nbd.sock") as client:
        assert client.ask(READ, 0, 4096, b"")[0] == 0
    folder.rename(tmp_path / "away")
    said = run(*SMRLAB, "device", "stop", device.name).stderr
    assert said.startswith(f"there is no recording in {folder / 't.parquet'}: ")
    assert "no request" not in said
    assert "No such file or directory" in said
