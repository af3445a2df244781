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


def dig(tmp_path: Path) -> Path:
    """A drive of two zones in the text form of the emulator's paper, with outliers."""
    rows = []
    for n in range(3000):
        sectors = 3000 if n % 97 == 3 else 1800 if n < 2000 else 1500
        rows.append(f"{n} {sectors} {(n * 0.04 % 1) * 8333.333:.1f}")
    path = tmp_path / "dig.txt"
    path.write_text("\n".join(rows))
    return path


def test_measurements_become_a_drive_that_runs(tmp_path: Path) -> None:
    answer("geometry", "extract", "sim:he2014-example", "--out", str(tmp_path))
    drive = tmp_path / "mine.toml"
    doc = answer("geometry", "fit", str(tmp_path / "extraction.json"), "--out", str(drive))
    assert doc["zones"] == [[10100, 100]]
    assert (tmp_path / "mine-zones.svg").exists()
    shown = answer("geometry", "show", str(drive), "--out", str(tmp_path / "show"))
    assert [(z["tracks"], z["usable"]) for z in shown["zones"]] == [(10100, 100)]
    assert {p.name for p in (tmp_path / "show").iterdir()} == {"zones.svg", "skew.svg"}
    ran = answer("run", "--drive", str(drive), "--layer", "cmr", "--trace", "synth:uniform,requests=100")
    assert ran["host"]["reads"] + ran["host"]["writes"] == 100


def test_the_papers_text_form_by_both_methods(tmp_path: Path) -> None:
    text, drive = dig(tmp_path), tmp_path / "pmr.toml"
    assert answer("geometry", "fit", str(text), "--out", str(drive))["zones"] == [[2000, 1800], [1000, 1500]]
    assert (tmp_path / "pmr-skew.svg").exists()
    zones = answer("geometry", "fit", str(text), "--out", str(drive), "--method", "polynomial", "--zones", "6")["zones"]
    assert len(zones) == 6
    assert sum(n for n, _ in zones) == 3000
    broken = tmp_path / "broken.txt"
    broken.write_text("one two three\n")
    with pytest.raises(InputError, match="line 1"):
        run.invoke(build([]), ["geometry", "fit", str(broken), "--out", str(drive)], catch_exceptions=False)
