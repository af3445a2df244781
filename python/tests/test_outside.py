"""Drives seen from outside, by the command line: simulated drives and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from smrlab import sysfs
from smrlab.cli import build
from smrlab.errors import InputError, SmrlabError

run = CliRunner()


def answer(*args: str) -> dict[str, Any]:
    done = run.invoke(build([]), [*args, "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    doc: dict[str, Any] = json.loads(done.stdout)
    return doc


def test_the_geometry_of_a_simulated_drive_and_what_is_kept(tmp_path: Path) -> None:
    doc = answer("geometry", "extract", "sim:modern-7200", "--out", str(tmp_path))
    assert abs(doc["rpm"]["value"] - 7200) < 0.072
    assert [z["sectors"] for z in doc["zones"]][:3] == [4248, 4152, 4064]
    assert doc["skew"]["order"] == {"kind": "hybrid", "surfaces": 18, "group_cylinders": 4096}
    kept = json.loads((tmp_path / "extraction.json").read_text())
    assert kept["zones"] == doc["zones"]
    assert (tmp_path / "zones.svg").exists()
    assert (tmp_path / "seeks.svg").exists()
    # A second sitting measures only what is missing: the rotation, by which the dial is set.
    again = answer("geometry", "extract", "sim:modern-7200", "--out", str(tmp_path))
    assert again["zones"] == doc["zones"]
    assert again["quality"]["requests"] - doc["quality"]["requests"] < doc["quality"]["requests"] / 4
    with pytest.raises(InputError, match="use another --out"):
        run.invoke(build([]), ["geometry", "extract", "sim:tiny", "--out", str(tmp_path)], catch_exceptions=False)


def test_zones_alone() -> None:
    doc = answer("geometry", "extract", "sim:modern-7200", "--zones-only")
    assert len(doc["zones"]) == 24
    assert "seek" not in doc
    assert doc["quality"]["seconds"] < 60


def test_a_probe_names_the_drive_and_draws_what_it_saw(tmp_path: Path) -> None:
    drive = "sim:modern-7200,capacity=20GB/rmw,band=16"
    doc = answer("probe", drive, "--destroy", "--out", str(tmp_path))
    assert (doc["kind"], doc["cleaning"], doc["mapping"]) == ("drive-managed", "in-place", "static")
    assert abs(doc["band"]["blocks"] - 16 * 4248) < 4248
    assert (tmp_path / "probe.json").exists()
    assert (tmp_path / "probe-write-and-look.svg").exists()
    assert answer("probe", "sim:modern-7200,capacity=20GB", "--destroy")["kind"] == "cmr"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["geometry", "extract", "sim:modern-720"], "did you mean 'modern-7200'"),
        (["geometry", "extract", "sim:cassuto2010-307gb"], "no timing of a rotating disk"),
        (["geometry", "extract", "no-such-device"], "is no device's name"),
        (["geometry", "extract", "nbds://host"], "only nbd://"),
        (["probe", "sim:tiny"], "add --destroy"),
    ],
)
def test_bad_targets_are_refused_in_a_sentence(args: list[str], message: str) -> None:
    with pytest.raises(SmrlabError, match=message):
        run.invoke(build([]), args, catch_exceptions=False)


def test_nothing_is_written_unless_the_name_is_typed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(b"x" * (1 << 20))
    with pytest.raises(InputError, match="add --yes"):
        run.invoke(build([]), ["probe", str(disk), "--destroy"], catch_exceptions=False)
    assert disk.read_bytes() == b"x" * (1 << 20)


def test_what_a_device_says_of_itself(tmp_path: Path) -> None:
    for name, text in {
        "device/model": "ST8000AS0002-1NA17Z",
        "queue/rotational": "1",
        "queue/zoned": "none",
        "queue/discard_max_bytes": "4096",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    said = sysfs.described(tmp_path)
    assert said["model_list"].startswith("Seagate")
    assert "TRIM" in said["hint"]
    assert said["zoned"] == "none"
    assert sysfs.says("sim:tiny") == {}
