"""`smrlab geometry` and `smrlab probe` on targets that are real: served devices in real time, files, loop devices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Make, can_loop, need, run

# Small and fast: a revolution takes 4 ms.
DRIVE = f"{Path(__file__).parent / 'drive.toml'},rpm=15000"


def smrlab(*args: str | Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "smrlab", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def refused(done: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    """One sentence, on standard error, and nothing else."""
    assert done.returncode == code, done.stderr
    assert words in " ".join(done.stderr.split()), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A file full of bytes that a write would change."""
    path = tmp_path / "disk"
    path.write_bytes(b"x" * (32 << 20))
    return path


@pytest.fixture
def loop(disk: Path) -> Iterator[str]:
    """A loop device on it."""
    can_loop()
    need("losetup", "mkfs.ext4", "mount")
    name = run("losetup", "--find", "--show", "--direct-io=on", disk).stdout.strip()
    yield name
    subprocess.run(["losetup", "-d", name], check=False)


@pytest.mark.full
@pytest.mark.timed
def test_the_zones_of_a_served_device_in_real_time(make: Make, tmp_path: Path) -> None:
    """Other work on the host makes completions late: of three tries one is to succeed."""
    device = make(drive=DRIVE, layer="cmr", timing="model", store="memory", size=None)
    said = ""
    for i in range(3):
        try:
            done = smrlab("geometry", "extract", device.name, "--zones-only", "--json", "--out", tmp_path / str(i))
        except subprocess.TimeoutExpired:
            # It takes 17 s on a quiet host.
            pytest.skip("the host is too busy for real time")
        if done.returncode == 0:
            doc = json.loads(done.stdout)
            found = [(z["first_lba"], z["tracks"], z["usable"]) for z in doc["zones"]]
            said = f"{found} {doc['rpm']} {doc['quality']}"
            if found == [(0, 8000, 500), (4_000_000, 8000, 400)]:
                assert abs(doc["rpm"]["value"] / 15000 - 1) < 100e-6, said
                return
        said += done.stderr
    _unless_busy(said)
    pytest.fail(said)


def test_a_served_device_without_timing_is_refused(make: Make, tmp_path: Path) -> None:
    device = make(drive=DRIVE, layer="cmr", timing="none", store="memory", size=None)
    out = tmp_path / "out"
    refused(smrlab("geometry", "extract", device.name, "--out", out), 2, "no timing of a rotating disk")
    assert not (out / "extraction.json").exists()
    refused(smrlab("probe", device.name, "--destroy", "--yes", "--out", out), 2, "no timing of a rotating disk")
    assert not (out / "probe.json").exists()
    assert json.loads(smrlab("device", "stats", device.name, "--json").stdout)["host"]["writes"] == 0


@pytest.mark.full
@pytest.mark.timed
def test_a_device_that_vanishes_keeps_what_was_measured(make: Make, tmp_path: Path) -> None:
    device = make(drive=DRIVE, layer="cmr", timing="model", store="memory", size=None)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "smrlab", "geometry", "extract", device.name, "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as going:
        _until(out / "extraction.json", going)
        os.kill(device.pid() or 0, signal.SIGKILL)
        said = going.communicate(timeout=30)[1]
    _unless_busy(said)
    assert going.returncode == 3, said
    assert "Traceback" not in said
    words = " ".join(said.split())
    assert "the server ended the connection; what was measured is in" in words, said
    assert json.loads((out / "extraction.json").read_text())["rpm"]


@pytest.mark.full
@pytest.mark.timed
def test_ctrl_c_keeps_what_was_measured_and_the_same_command_goes_on(make: Make, tmp_path: Path) -> None:
    device = make(drive=DRIVE, layer="cmr", timing="model", store="memory", size=None)
    out = tmp_path / "out"
    # All of it, so that there is something left to do when the first of it is kept.
    command = ["geometry", "extract", device.name, "--out", str(out)]
    with subprocess.Popen(
        [sys.executable, "-m", "smrlab", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as going:
        _until(out / "extraction.json", going)
        going.send_signal(signal.SIGINT)
        said = going.communicate(timeout=30)[1]
    _unless_busy(said)
    assert going.returncode == 130, said
    assert "the same command goes on" in " ".join(said.split())
    first = json.loads((out / "extraction.json").read_text())
    assert first["rpm"]
    assert not first["complete"]
    try:
        smrlab(*command)
    except subprocess.TimeoutExpired:
        # The first sitting took as long as a quiet host needs.
        pytest.skip("the host is too busy for real time")
    again = json.loads((out / "extraction.json").read_text())
    assert again["quality"]["requests"] > first["quality"]["requests"], "both sittings are counted"
    assert again["zones"][: len(first["zones"])] == first["zones"]


@pytest.mark.full
@pytest.mark.timed
@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGINT] * 3, [signal.SIGTERM], [signal.SIGHUP]])
def test_ctrl_c_ends_a_probe_that_leaves_the_drive_alone(
    make: Make, tmp_path: Path, signals: list[signal.Signals]
) -> None:
    """It rests for ten minutes at first; nothing is found out by then. More signals do not cut its end short."""
    device = make(drive=DRIVE, layer="cmr", timing="model", store="memory", size=None)
    out = tmp_path / "out"
    # As from a terminal: a program that runs in the background may ignore them.
    command = ["env", "--default-signal=INT,TERM,HUP", sys.executable, "-m", "smrlab"]
    command += ["probe", device.name, "--destroy", "--yes", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as going:
        _until(out, going)
        time.sleep(2)
        for number in signals:
            going.send_signal(number)
            # Shorter than it takes until it looks whether it is to stop.
            time.sleep(0.02)
        said = going.communicate(timeout=30)[1]
    assert going.returncode == 130, said
    assert "nothing was found out yet" in " ".join(said.split())
    assert "Traceback" not in said
    assert "Exception" not in said


def _unless_busy(said: str) -> None:
    """Real time needs a host with time to spare."""
    if "too busy" in " ".join(said.split()):
        pytest.skip("the host is too busy for real time")


def _until(path: Path, going: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 90
    while not path.exists():
        if going.poll() is not None:
            said = going.communicate()[1]
            _unless_busy(said)
            pytest.fail(said)
        if time.monotonic() > end:
            pytest.skip("the host is too busy for real time")
        time.sleep(0.1)


@pytest.mark.full
@pytest.mark.timed
@pytest.mark.parametrize("command", [("geometry", "extract"), ("probe", "--destroy", "--yes")])
def test_a_loop_device_has_no_timing_and_is_left_as_it_was(disk: Path, loop: str, command: tuple[str, ...]) -> None:
    try:
        done = smrlab(*command, loop, timeout=60)
    except subprocess.TimeoutExpired:
        # Reads that wait for the host look like a disk's at first: it is told after the rest of ten minutes.
        assert disk.read_bytes() == b"x" * (32 << 20)
        pytest.skip("the host is too busy for real time")
    refused(done, 2, "no timing of a rotating disk")
    assert disk.read_bytes() == b"x" * (32 << 20)


@pytest.mark.parametrize("command", [("geometry", "extract"), ("probe", "--destroy", "--yes")])
def test_a_mounted_device_is_refused(disk: Path, loop: str, tmp_path: Path, command: tuple[str, ...]) -> None:
    run("mkfs.ext4", "-q", loop)
    at = tmp_path / "mnt"
    at.mkdir()
    run("mount", "-o", "ro", loop, at)
    try:
        before = disk.read_bytes()
        refused(smrlab(*command, loop), 2, "mounted or in use")
        assert disk.read_bytes() == before
    finally:
        run("umount", at)


def test_a_target_too_small_is_refused(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 16384)
    refused(smrlab("geometry", "extract", small), 2, "32 blocks are too few")
    refused(smrlab("probe", small, "--destroy", "--yes"), 2, "32 blocks are too few")
    assert small.read_bytes() == b"x" * 16384


@pytest.mark.full
@pytest.mark.timed
def test_the_timing_of_a_served_device_is_seen_through_a_block_device(make: Make, tmp_path: Path) -> None:
    """O_DIRECT on a loop device on the mount of a served drive that turns; of three tries one is to succeed."""
    can_loop()
    device = make(drive=DRIVE, layer="cmr", timing="model", store="memory", size=None)
    (tmp_path / "m").mkdir()
    _, loop = device.mount(tmp_path / "m")
    if loop is None:
        pytest.skip("no loop device with direct I/O on a mount of FUSE here")
    said = ""
    for _ in range(3):
        done = smrlab("geometry", "extract", loop, "--zones-only", "--json")
        if done.returncode == 0:
            assert abs(json.loads(done.stdout)["rpm"]["value"] / 15000 - 1) < 1e-3
            return
        said += done.stderr
    _unless_busy(said)
    pytest.fail(said)


@pytest.mark.parametrize(("layer", "kind"), [("zoned", "host-managed"), ("host-aware", "host-aware")])
def test_a_served_drive_says_which_zones_it_has(make: Make, layer: str, kind: str) -> None:
    device = make(drive="tiny", layer=f"{layer},zone=64KiB", timing="none", store="memory", size=None)
    said = json.loads(smrlab("probe", device.name, "--json").stdout)["says"]
    assert said["kind"] == kind
    assert said["zones"]["count"] > 8
    assert ("max_open" in said["zones"]) == (kind == "host-managed")


def test_a_served_drive_that_refuses_is_told_by_that(make: Make) -> None:
    """NBD has no words for zones: the server says which there are, and the export refuses what is out of order."""
    device = make(drive="tiny", layer="zoned,zone=64KiB", timing="none", store="memory", size=None)
    doc = json.loads(smrlab("probe", device.name, "--destroy", "--yes", "--json").stdout)
    assert (doc["kind"], doc["confidence"], doc["says"]["kind"]) == ("host-managed", 1.0, "host-managed")
    assert doc["evidence"][0]["points"] == [[8.0, 0.0], [0.0, 1.0]]
