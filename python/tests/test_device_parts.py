"""Parts of served devices without a server: what nbdkit is asked, mounts, and what is refused beforehand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from smrlab import devices, urls
from smrlab.cli import complete, console, trace
from smrlab.cli import device as command
from smrlab.devices import Device
from smrlab.errors import InputError


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
    monkeypatch.setattr(devices, "plugin", lambda: Path("/p.so"))
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


def test_a_snapshot_is_made_of_what_nobody_uses(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A served device is stopped for it and served again, also where the copy fails."""
    state: dict[str, Any] = {"mounts": ["/m"], "clients": [], "did": []}
    did: list[str] = state["did"]
    monkeypatch.setattr(Device, "running", lambda _: True)
    monkeypatch.setattr(Device, "ask", lambda *_: state["mounts"])
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
    state |= {"mounts": [], "clients": ["qemu (pid 7)"]}
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


def test_a_document_is_told_with_dots() -> None:
    """Lists of documents are numbered from 0; other lists are values."""
    doc = {"a": {"b": 1, "c": {}}, "d": [{"e": 2}, {"e": 3}], "f": [4, 5], "g": []}
    assert list(devices.flat(doc)) == [("a.b", 1), ("d.0.e", 2), ("d.1.e", 3), ("f", [4, 5]), ("g", [])]


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


def test_a_trace_is_not_written_over_itself(tmp_path: Path) -> None:
    """Whatever format and parameters stand behind its name."""
    file, other = tmp_path / "t.csv", tmp_path / "o.csv"
    for path in (file, other):
        path.touch()
    of = [trace._is_source(f"{source}{rest}", file) for source in (file, other) for rest in ("", ":spc", ":csv,a=b:c")]
    assert of == [True] * 3 + [False] * 3
    assert not trace._is_source("synth:uniform", file)
    assert cast("Any", trace._plain)(["\0-:spc", "a"]) == ["-:spc", "a"]
