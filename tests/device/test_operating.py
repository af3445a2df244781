"""What goes wrong when people operate devices: mounts in use, servers that died, names, interrupts, copies."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from nbdclient import FLUSH, READ, WRITE, Client
from served import Make, can_loop, need, run

from smrlab import attached, devices, mounts
from smrlab.cli import kept
from smrlab.devices import Device
from smrlab.errors import InputError, MissingError


def test_a_mount_in_use_is_not_torn_down(make: Make, tmp_path: Path) -> None:
    can_loop()
    need("mkfs.ext4", "losetup")
    device = make(layer="cmr")
    at, fs = tmp_path / "m a", tmp_path / "fs"
    at.mkdir()
    fs.mkdir()
    _, loop = device.mount(at)
    assert mounts.loops(at) == [loop]
    with pytest.raises(InputError, match="already"):
        device.mount(at)
    run("mkfs.ext4", "-q", loop or "")
    run("mount", loop or "", fs)
    try:
        for refused in (lambda: device.unmount(at), device.stop, device.remove):
            with pytest.raises(InputError, match=f"is mounted at {fs}"):
                refused()
        assert device.running()
        (fs / "f").write_text("still there")
    finally:
        run("umount", fs)
    with pytest.raises(InputError, match="is mounted at"):
        device.snapshot("a")
    device.unmount(at)
    assert not mounts.is_mount(at)
    assert mounts.loops(at) == []
    with pytest.raises(InputError, match="not a mount of d"):
        device.unmount(at)


def test_unmount_knows_the_directory(make: Make, tmp_path: Path) -> None:
    can_loop()
    device = make(layer="cmr")
    first, second = tmp_path / "m", tmp_path / "n"
    for at in (first, second):
        at.mkdir()
        device.mount(at)
    with pytest.raises(InputError, match=f"{first}, {second}: name one"):
        device.mounted_at()
    device.unmount(second)
    smrlab("device", "unmount", "d")
    assert not mounts.is_mount(first)
    assert "d is not mounted" in smrlab("device", "unmount", "d", check=False).stderr
    device.mount(first)
    device.kill()
    smrlab("device", "unmount", "d")
    assert not mounts.is_mount(first)


def test_a_mount_in_use_stays_and_one_that_is_just_let_go_of_is_taken_down(make: Make, tmp_path: Path) -> None:
    device = make(layer="cmr")
    at = tmp_path / "m"
    at.mkdir()
    file, _ = device.mount(at)
    held = os.open(file, os.O_RDONLY)
    with pytest.raises(InputError, match="is in use"):
        device.unmount(at)
    assert device.mounted_at() == at
    closing = threading.Timer(0.3, os.close, [held])
    closing.start()
    device.unmount(at)
    closing.join()
    assert not mounts.is_mount(at)


def test_unmount_leaves_a_device_of_that_name_in_another_state_directory(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    can_loop()
    device = make(layer="cmr")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for at in (ours, theirs):
        at.mkdir()
    device.mount(ours)
    device.kill()
    with monkeypatch.context() as other:
        other.setenv("SMRLAB_STATE", str(tmp_path / "state"))
        (tmp_path / "state").mkdir()
        same_name = Device.create("d", device.config(), None, None, {})
        same_name.mount(theirs)
    try:
        smrlab("device", "unmount", "d")
        assert not mounts.is_mount(ours)
        assert mounts.is_mount(theirs)
    finally:
        same_name.unmount(theirs)
        same_name.kill()


def test_what_a_killed_server_leaves_is_cleared(make: Make, tmp_path: Path) -> None:
    can_loop()
    device = make(layer="cmr")
    at = tmp_path / "m"
    at.mkdir()
    for again in (True, False):
        device.mount(at)
        device.kill()
        assert mounts.is_mount(at)
        if again:
            device.unmount(at)
            assert not mounts.is_mount(at)
            device.start()
    device.start()
    file, loop = device.mount(at)
    assert file.stat().st_size == device.ask("info")["size"]
    assert loop is not None
    device.stop()
    assert not mounts.is_mount(at)
    assert mounts.loops(at) == []


@pytest.mark.parametrize("again", [False, True])
def test_remove_takes_care_of_what_a_killed_server_left(make: Make, tmp_path: Path, again: bool) -> None:
    """A file system that is still mounted keeps the device, whose blocks it needs; else mount and loop device go."""
    can_loop()
    device = make(layer="cmr")
    at, files = tmp_path / "m", tmp_path / "fs"
    at.mkdir()
    files.mkdir()
    _, loop = device.mount(at)
    assert loop is not None
    run("mkfs.ext4", "-q", loop)
    run("mount", loop, files)
    device.kill()
    if again:
        device.start()
    refused = smrlab("device", "remove", "d", check=False)
    assert refused.returncode == 2
    assert f"{loop} is mounted at {files}: umount {files} first" in refused.stderr
    assert device.running() == again
    run("umount", files)
    smrlab("device", "remove", "d")
    assert not device.path.exists()
    assert not mounts.is_mount(at)
    assert mounts.loops(at) == []


def test_remove_leaves_nobody_waiting_for_a_server(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a server can take over the block device of the kernel that a dead one left, and end what waits there."""
    device = make(layer="cmr")
    device.kill()
    monkeypatch.setattr(attached, "NODES", tmp_path)
    (tmp_path / "ublkc7").touch()
    (device.path / "ublk").write_text("7\n")
    with pytest.raises(InputError, match="/dev/ublkb7 waits for the server that died: smrlab device start d first"):
        device.remove()
    (tmp_path / "ublkc7").unlink()
    device.remove()
    assert not device.path.exists()


def test_a_killed_server_starts_at_once(make: Make) -> None:
    """Its lock may outlive its command line."""
    device = make(layer="s-block", size=512 << 20)
    for _ in range(5):
        os.kill(device.pid() or 0, signal.SIGKILL)
        while device.running():
            pass
        device.start()


def test_names(make: Make, tmp_path: Path) -> None:
    device = make()
    for name in ("../x", "a/b", "", ".hidden", "-x", "a b", "x" * 65, "ä"):
        with pytest.raises(InputError, match="letter or digit first"):
            make(name)
        with pytest.raises(InputError, match="letter or digit first"):
            device.snapshot(name)
        with pytest.raises(InputError, match="letter or digit first"):
            devices.clone("d", name)
    with pytest.raises(InputError, match="a device 'd' already"):
        make()
    device.snapshot("one")
    with pytest.raises(InputError, match="a snapshot 'one' already"):
        device.snapshot("one")
    with pytest.raises(InputError, match="no snapshot 'two'"):
        devices.clone("d@two", "e")
    with pytest.raises(InputError, match="stop it first"):
        devices.clone("d", "e")
    memory = make("m", store="memory")
    with pytest.raises(InputError, match="bytes in memory"):
        memory.snapshot("one")
    assert [d.name for d in devices.every()] == ["d", "m"]


def test_a_socket_takes_nobodys_place(make: Make, tmp_path: Path) -> None:
    plain, folder, taken = tmp_path / "plain", tmp_path / "folder", tmp_path / "a b%20ü"
    plain.write_text("mine")
    folder.mkdir()
    first = make("first", listen=f"unix:{taken}", layer="cmr")
    for at, message in (
        (plain, "no socket"),
        (folder, "no socket"),
        (taken, "another program listens there"),
        (tmp_path / ("x" * 120), "longer than the 107 bytes"),
    ):
        with pytest.raises(InputError, match=message):
            make("second", listen=f"unix:{at}", layer="cmr")
    assert (plain.read_text(), folder.is_dir(), [d.name for d in devices.every()]) == ("mine", True, ["first"])
    # What the clients of others are told leads there, and what the server leaves is no obstacle to itself.
    run("nbdinfo", "--size", first.uri())
    first.crash()
    assert taken.is_socket()
    first.start()
    run("nbdinfo", "--size", first.uri())
    # With the device goes the socket that its server left there.
    first.crash()
    first.remove()
    assert not taken.exists()


def test_a_state_is_written_over_no_other_file(make: Make, tmp_path: Path) -> None:
    device = make(layer="log")
    mine, state = tmp_path / "s.partial", tmp_path / "s"
    mine.write_text("mine")
    for _ in range(2):
        device.ask("state", path=str(state))
    with pytest.raises(InputError, match="is no state"):
        device.ask("state", path=str(mine))
    assert mine.read_text() == "mine"


def test_where_it_was_made_does_not_matter(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    device = make(listen="unix:here.sock", layer="cmr")
    assert device.socket() == tmp_path / "here.sock"
    # The device is ended where the state is that it was made in.
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SMRLAB_STATE", "state")
        assert devices.home() == tmp_path / "state" / "devices"


def test_a_drive_file_of_the_folder_is_found_from_another(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its name stays as it was given, as states have it; a recording is replayed where the file is."""
    record = str(tmp_path / "clients.parquet")
    made, elsewhere = tmp_path / "made", tmp_path / "elsewhere"
    made.mkdir()
    elsewhere.mkdir()
    run(sys.executable, "-m", "smrlab", "drive", "new", "--like", "tiny", "--out", made / "mine.toml")
    monkeypatch.chdir(made)
    device = make(drive="mine.toml,cache=off", layer="cmr", size=None, record=record)
    command = f"smrlab run --trace {record} --drive mine.toml,cache=off --layer cmr"
    assert kept.recorded(device) == (record, command)
    device.stop()
    monkeypatch.chdir(elsewhere)
    device.start()
    assert device.config()["drive"] == "mine.toml,cache=off"
    assert kept.recorded(device) == (record, f"cd {made} && {command}")
    device.stop()
    copy = devices.clone("d", "copy")
    copy.stop()
    shutil.rmtree(made)
    with pytest.raises(InputError, match=f"copy: {made} is gone, and with it the drive file"):
        copy.start()


def test_a_copy_is_whole_or_not_there(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    device = make()
    with Client(device.socket()) as client:
        assert client.ask(WRITE, 0, 4096, b"a" * 4096)[0] == 0
        assert client.ask(FLUSH, 0, 0)[0] == 0
    seen: list[float] = []
    device.snapshot("good", seen.append)
    assert seen
    assert all(0 <= share <= 1 for share in seen)
    copy = devices.clone("d@good", "e")
    with Client(copy.socket()) as client:
        assert client.ask(READ, 0, 4096)[1] == b"a" * 4096

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        device.snapshot("half", interrupted)
    assert device.running()
    with pytest.raises(KeyboardInterrupt):
        devices.clone("d@good", "f", interrupted)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises((MissingError, OSError)):
        devices.clone("d@good", "f")
    left = [p.name for p in (device.path / "snapshots").iterdir()]
    assert left == ["good"]
    assert not (devices.home() / "f").exists()


def smrlab(*args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The command line, as a process of its own."""
    return run(sys.executable, "-c", "import sys; from smrlab.cli import main; sys.exit(main())", *args, check=check)


def test_json_wherever_something_is_said(make: Make) -> None:
    make(layer="raw,tracks=3,band=4", size=16 << 20)
    for command in (["info", "d"], ["stats", "d"], ["events", "d"], ["list"], ["bands", "d"], ["map", "d"]):
        assert json.loads(smrlab("device", *command, "--json").stdout), command
    made = json.loads(smrlab("device", "create", "j", "--size", "64MiB", "--json").stdout)
    assert made["uri"].startswith("nbd+unix:")


def test_a_band_without_a_unit_is_asked_for_one(make: Make) -> None:
    make()
    create = ("device", "create", "b", "--size", "16MiB", "--store", "memory", "--layer")
    asked = smrlab(*create, "rmw,band=4").stderr
    assert "band=4 of rmw means 4 tracks. Give a unit" in asked
    smrlab("device", "remove", "b")
    assert "Give a unit" not in smrlab(*create, "rmw,band=4tracks").stderr


def test_zones_that_make_a_device_much_larger_than_asked_for_are_told(make: Make) -> None:
    make()
    create = ("device", "create", "z", "--drive", "modern-7200", "--store", "memory", "--size", "1GiB", "--layer")
    assert "more than --size: zones are whole ones" in smrlab(*create, "host-aware").stderr
    smrlab("device", "remove", "z")
    assert "more than --size" not in smrlab(*create, "zoned").stderr


def test_ctrl_c_ends_watching(make: Make) -> None:
    make()
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from smrlab.cli import main; sys.argv = ['smrlab', 'device', 'stats', 'd', '--watch']; sys.exit(main())"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        assert watch.stderr is not None
        while b"host.reads" not in watch.stdout.readline():
            assert watch.poll() is None
        time.sleep(0.2)
        watch.send_signal(signal.SIGINT)
        assert watch.wait(10) == 0
        assert watch.stderr.read() == b""
    assert Device.named("d").running()


def test_the_end_of_a_recording_says_how_to_replay_it(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "what they did.parquet"
    small = {"drive": "modern-7200", "layer": "disk-cache,band=25MB", "size": None, "host_size": 64 << 20}
    device = make(**small, record=str(file))
    smrlab = (sys.executable, "-m", "smrlab")
    with Client(device.path / "nbd.sock") as client:
        assert client.ask(WRITE, 0, 8192, bytes(8192))[0] == 0
        assert client.ask(READ, 4096, 4096, b"")[0] == 0
    said = run(*smrlab, "device", "stop", device.name).stderr
    command = shlex.split(said.partition("replay it: ")[2])
    assert command[:4] == ["smrlab", "run", "--trace", str(file)]
    doc = json.loads(run(*smrlab, *command[1:], "--json").stdout)
    assert (doc["host"]["reads"], doc["host"]["blocks_written"]) == (1, 16)
    # What was recorded stays when the device is served again, and a device that is made writes over nothing.
    for number in (1, 2):
        ended = run(*smrlab, "device", "start", device.name)
        assert f"until now is in {file.with_suffix(f'.{number}.parquet')}" in ended.stderr
        with Client(device.path / "nbd.sock") as client:
            assert client.ask(READ, 0, 512 * number, b"")[0] == 0
        run(*smrlab, "device", "stop", device.name)
    before = file.read_bytes()
    with pytest.raises(InputError, match="is there already"):
        make("second", layer="cmr", record=str(file))
    assert file.read_bytes() == before
    # The drive of the simulation is as small as the one that was served.
    assert 64 << 20 <= doc["space"]["host_blocks"] * 512 < 1 << 30
