"""Aged drives cross the border: simulated, served to software, and simulated again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
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
    assert simulate(layer, 2)["movement"] != ours["movement"], "the state matters"
