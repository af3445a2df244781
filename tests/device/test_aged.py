"""Aged drives cross the border: simulated, served to software, and simulated again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from nbdclient import WRITE, Client
from served import Make, need, run

DRIVE = Path(__file__).parent / "drive.toml"


def simulate(layer: str, seed: int, *more: str | Path) -> dict[str, object]:
    trace = f"synth:uniform,requests=6000,size=4KiB,align=4KiB,write=70%,interarrival=40ms,span=12MiB,seed={seed}"
    spec = ("--trace", trace, "--drive", DRIVE, "--layer", layer, "--wrap", "capacity")
    done = run(sys.executable, "-m", "smrlab", "run", *spec, *more, "--json")
    doc: dict[str, object] = json.loads(done.stdout)
    return doc


@pytest.mark.parametrize("layer", ["s-block", "disk-cache", "log,overprovision=20%"])
def test_a_drive_aged_in_the_simulator_is_served_and_goes_on_where_it_was(
    make: Make, tmp_path: Path, layer: str
) -> None:
    need("nbdkit")
    aged, served = tmp_path / "aged.state", tmp_path / "served.state"
    simulate(layer, 1, "--save-state", aged)
    run(sys.executable, "-m", "smrlab", "device", "create", "aged", "--drive", DRIVE, "--layer", layer,
        "--store", "memory", "--from-state", aged)  # fmt: skip
    run(sys.executable, "-m", "smrlab", "device", "state", "aged", "--out", served)
    run(sys.executable, "-m", "smrlab", "device", "stop", "aged")
    ours, theirs = (simulate(layer, 2, "--from-state", path) for path in (aged, served))
    # The same operations on both sides of the border; an idle server has nothing to add.
    assert ours["media"] == theirs["media"]
    assert ours["movement"] == theirs["movement"]
    # What was written before is known on both sides: updates, and reads of what never was.
    assert ours["host"] == theirs["host"]
    assert ours["war"] == theirs["war"]
    assert simulate(layer, 2)["movement"] != ours["movement"], "the state matters"


@pytest.mark.parametrize("array", ["raid5,disks=3", "raid4s,disks=3", "dvs,disks=3", "striped,disks=2 / mirror"])
def test_an_array_aged_in_the_simulator_is_served_and_goes_on_where_it_was(
    make: Make, tmp_path: Path, array: str
) -> None:
    need("nbdkit")
    aged, served = tmp_path / "aged.state", tmp_path / "served.state"
    of = ("--stack", f"{array} / s-block")
    trace = "synth:uniform,requests=3000,size=4KiB,align=4KiB,write=70%,interarrival=40ms,span=12MiB,seed="

    def go(seed: int, *more: str | Path) -> dict[str, object]:
        spec = ("--trace", trace + str(seed), "--drive", DRIVE, *of, "--wrap", "capacity", "--json")
        doc: dict[str, object] = json.loads(run(sys.executable, "-m", "smrlab", "run", *spec, *more).stdout)
        return doc

    go(1, "--save-state", aged)
    # Drive, layer and array are those of the state.
    run(sys.executable, "-m", "smrlab", "device", "create", "aged", "--store", "memory", "--from-state", aged)
    run(sys.executable, "-m", "smrlab", "device", "state", "aged", "--out", served)
    run(sys.executable, "-m", "smrlab", "device", "stop", "aged")
    ours, theirs = (go(2, "--from-state", path) for path in (aged, served))
    assert ours["media"] == theirs["media"]
    assert ours["movement"] == theirs["movement"]
    assert go(2)["movement"] != ours["movement"], "the state matters"


@pytest.mark.parametrize("layer", ["cmr", "disk-cache"])
def test_a_state_says_what_the_host_of_a_served_device_wrote(make: Make, tmp_path: Path, layer: str) -> None:
    need("nbdkit")
    device = make("written", drive=str(DRIVE), layer=layer)

    def write(*at: int) -> None:
        with Client(device.socket()) as client:
            for block in at:
                assert client.ask(WRITE, block * 512, 4096, bytes(4096))[0] == 0

    def unwritten() -> object:
        """Reads of blocks that were never written, of a run that reads blocks 0 to 799 from the device's state."""
        state = tmp_path / "written.state"
        run(sys.executable, "-m", "smrlab", "device", "state", "written", "--out", state)
        trace = "synth:sequential,requests=100,size=4KiB,write=0%"
        done = run(sys.executable, "-m", "smrlab", "run", "--trace", trace, "--from-state", state, "--json")
        return json.loads(done.stdout)["host"]["reads_unwritten"]

    assert unwritten() == 100
    write(0, 8, 80)
    assert unwritten() == 97
    write(8, 84)
    assert unwritten() == 97, "blocks 88 to 95 are half written"
    write(92)
    assert unwritten() == 96
    device.stop()
    device.start()
    assert unwritten() == 96, "kept with the store"
