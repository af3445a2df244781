"""Servers that end: with clients connected, by force, without a goodbye; and what `device remove` deletes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from nbdclient import FLUSH, READ, WRITE, Client, Gone
from served import Make, run

from smrlab import devices
from smrlab.devices import Device
from smrlab.errors import InputError
from smrlab.stores import delete_store


def smrlab(*args: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The command line, as a process of its own."""
    program = "import sys; from smrlab.cli import main; sys.exit(main())"
    return run(sys.executable, "-c", program, *args, check=check)


@pytest.mark.timed
@pytest.mark.parametrize("force", [False, True])
def test_stop_says_who_is_connected_and_closes(make: Make, monkeypatch: pytest.MonkeyPatch, force: bool) -> None:
    """An idle client keeps a server for a few seconds, and not at all with --force; what was flushed is there."""
    monkeypatch.setattr(devices, "DRAIN_S", 1.0)
    device = make(layer="s-block")
    said: list[str] = []
    with Client(device.socket()) as client:
        assert client.ask(WRITE, 0, 4096, b"f" * 4096)[0] == 0
        assert client.ask(FLUSH, 0, 0)[0] == 0
        assert client.ask(WRITE, 4096, 4096, b"u" * 4096)[0] == 0
        assert device.clients() == [f"{Path('/proc/self/comm').read_text().strip()} (pid {os.getpid()})"]
        began = time.monotonic()
        device.stop(force=force, say=said.append)
        took = time.monotonic() - began
        with pytest.raises(Gone):
            client.take(1)
    assert not device.running()
    assert not device.died()
    if force:
        assert said == []
        assert took < 1.0
    else:
        assert len(said) == 1
        assert f"(pid {os.getpid()})" in said[0]
        assert "--force" in said[0]
        assert 1.0 <= took < 5.0
    device.start()
    with Client(device.socket()) as client:
        assert client.ask(READ, 0, 8192)[1] == b"f" * 4096 + b"u" * 4096


@pytest.mark.timed
def test_a_client_that_leaves_is_waited_for(make: Make) -> None:
    device = make(layer="cmr")
    client = Client(device.socket())
    timer = threading.Timer(0.5, client.socket.close)
    timer.start()
    began = time.monotonic()
    device.stop()
    assert 0.4 < time.monotonic() - began < 4.0
    timer.join()


def test_what_was_sent_is_answered(make: Make) -> None:
    """Requests that are under way when connections are closed are carried out and answered, flushes too."""
    device = make(layer="cmr", timing="model")
    with Client(device.socket()) as client:
        cookies = [client.send(WRITE, i << 20, 4096, bytes([i + 1]) * 4096) for i in range(8)]
        cookies.append(client.send(FLUSH, 0, 0))
        time.sleep(0.05)
        stopping = threading.Thread(target=lambda: device.stop(force=True))
        stopping.start()
        answers = {client.reply()[:2] for _ in cookies}
        assert answers == {(cookie, 0) for cookie in cookies}
        stopping.join()
    device.start()
    with Client(device.socket()) as client:
        for i in range(8):
            assert client.ask(READ, i << 20, 4096)[1] == bytes([i + 1]) * 4096


def test_a_snapshot_does_not_throw_clients_out(make: Make) -> None:
    device = make(layer="cmr")
    with Client(device.socket()) as client:
        with pytest.raises(InputError, match=rf"used by .*pid {os.getpid()}"):
            device.snapshot("one")
        assert client.ask(READ, 0, 512)[0] == 0
    assert device.clients() == []


def test_a_server_that_died_says_so_with_its_last_events(make: Make) -> None:
    device = make("d", layer="raw,tracks=3", errors=True)
    with Client(device.socket()) as client:
        # A track further down is written, then the one before it: what was there is destroyed.
        for at in (1 << 20, 0):
            assert client.ask(WRITE, at, 2 << 20, b"x" * (2 << 20))[0] == 0
        destroyed = sum(client.ask(READ, at, 4096)[0] != 0 for at in range(2 << 20, 3 << 20, 4096))
        assert destroyed > 0
        os.kill(device.pid() or 0, signal.SIGKILL)
    device._gone(device.pid() or 0) if device.pid() else None
    assert device.died()
    assert device.summary()["state"] == "died"
    shown = smrlab("device", "info", "d").stdout
    assert "died, restart with: smrlab device start d" in shown
    assert "destroyed" in shown
    doc = json.loads(smrlab("device", "info", "d", "--json").stdout)
    assert doc["state"].startswith("died")
    assert any("destroyed" in e for e in doc["last_events"])
    # Its shell writes this a moment later.
    until = time.monotonic() + 5
    while "Killed" not in (device.path / "log").read_text() and time.monotonic() < until:
        time.sleep(0.01)
    events = json.loads(smrlab("device", "events", "d", "--json").stdout)["events"]
    assert events[0]["kind"] == "start"
    assert (events[-1]["kind"], events[-1]["text"][-6:]) == ("died", "Killed"), events[-1]
    assert "died" in smrlab("device", "list").stdout
    refused = smrlab("device", "stats", "d", check=False)
    assert refused.returncode == 2
    assert "died, restart with: smrlab device start d" in refused.stderr
    device.start()
    assert not device.died()
    device.stop()
    assert device.summary()["state"] == "stopped"


def test_an_error_on_the_control_socket(make: Make) -> None:
    """An error is answered as one, on a connection that goes on; `ask` raises it."""
    import socket

    device = make(layer="cmr")
    with pytest.raises(InputError, match="only a raw device"):
        device.ask("bands")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(device.path / "control.sock"))
        lines = s.makefile("rb")
        for bad in (b"nonsense\n", b"{}\n", b'{"cmd": "dance"}\n', b'{"cmd": "band", "band": "x"}\n'):
            s.sendall(bad)
            answer = json.loads(lines.readline())
            assert set(answer) == {"error"}, (bad, answer)
        s.sendall(b'{"cmd": "info"}\n')
        assert set(json.loads(lines.readline())) == {"ok"}


def test_remove_keeps_what_is_not_its_own(make: Make, tmp_path: Path) -> None:
    own = make("own", layer="cmr")
    own.remove()
    assert not own.path.exists()
    arrays = [None, "striped,disks=2", "raid5,disks=3,journal=on", "raid5,disks=3,journal=off,ssd_write=5%"]
    for number, array in enumerate(arrays):
        store = tmp_path / f"store-{number}"
        given: dict[str, object] = {} if array is None else {"array": array}
        device = make("d", store=str(store), layer="cmr", **given)
        assert device.remove() == store
        assert not device.path.exists()
        assert (store / "header").exists()
        device = make("d", store=str(store), layer="cmr", **given)
        (store / "notes.txt").write_text("mine")
        assert device.remove(delete_own=True) is None
        assert [p.name for p in store.iterdir()] == ["notes.txt"]
        (store / "notes.txt").unlink()
        device = make("d", store=str(store), layer="cmr", **given)
        device.remove(delete_own=True)
        assert not store.exists(), array


def test_remove_descends_only_into_stores(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for name in ("disk.0", "ssd", "cache", "mine"):
        (store / name).mkdir(parents=True)
        (store / name / "header").write_text("mine" if name == "mine" else "smrlab-store 2\n{}")
        (store / name / "log.1").write_text("")
    (store / "header").write_text("smrlab-store 2\n{}")
    (store / "spill").write_text("")
    delete_store(store)
    assert sorted(str(p.relative_to(store)) for p in store.rglob("*")) == ["mine", "mine/header", "mine/log.1"]


def test_stalls_are_counted(make: Make) -> None:
    device = make(layer="cmr", stall_ns=20_000_000)
    with Client(device.socket()) as client:
        assert client.ask(WRITE, 0, 4096, b"x" * 4096)[0] == 0
        stats = device.ask("stats")
        assert stats["stalls"]["count"] == 0
        assert "max_s" not in stats["stalls"]
        device.ask("inject", slow_ns=60_000_000)
        for _ in range(2):
            assert client.ask(READ, 0, 4096)[0] == 0
    stats = device.ask("stats")
    stalls = stats["stalls"]
    assert stalls["threshold_s"] == 0.02
    assert stalls["count"] == 2
    assert 0.06 <= stalls["max_s"] <= stalls["total_s"] < 2
    assert stalls["total_s"] >= 0.12
    assert 0 < stalls["share"] <= 1
    assert stats["response_ms"]["max"] == pytest.approx(stalls["max_s"] * 1e3)
    device.ask("reset-stats")
    assert device.ask("stats")["stalls"]["count"] == 0
    assert "max" not in device.ask("stats")["response_ms"]


def test_names_of_devices_that_are_not_there(make: Make) -> None:
    make("here", layer="cmr")
    with pytest.raises(InputError, match="there are: here"):
        Device.named("there")
