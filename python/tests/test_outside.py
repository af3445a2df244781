"""Drives seen from outside, by the command line: simulated drives and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import smrlab
from smrlab import sysfs
from smrlab.cli import build
from smrlab.errors import InputError, Interrupted, SmrlabError


def asked(*args: str) -> Result:
    return CliRunner().invoke(build([*args]), args, catch_exceptions=False)


def answer(*args: str) -> dict[str, Any]:
    done = asked(*args, "--json")
    assert done.exit_code == 0
    doc: dict[str, Any] = json.loads(done.stdout)
    return doc


def test_the_geometry_of_a_simulated_drive_and_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        asked("geometry", "extract", "sim:tiny", "--out", str(tmp_path))
    monkeypatch.setattr("smrlab.plots.outside.zones", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(Interrupted, match="what was measured is in"):
        asked("geometry", "extract", "sim:modern-7200", "--out", str(tmp_path))


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
        (["probe", "no-such-device"], "is no device's name"),
        (["probe", "/dev/no-such-device"], "there is no such file"),
        (["probe", ""], "'' is no device's name"),
        (["geometry", "extract", ""], "'' is no device's name"),
        (["probe", "/dev"], "neither a block device nor a file"),
        (["geometry", "extract", "/dev", "--destroy", "--yes"], "neither a block device nor a file"),
        (["geometry", "extract", "nbd+unix:///?socket=/no/such"], "there is no server"),
        (["geometry", "extract", "sim:tiny", "--out", "/dev/null"], "name a folder"),
        (["probe", "nbd://h", "--destroy", "--yes", "--out", "/dev/null/x"], "name a folder"),
    ],
)
def test_bad_targets_are_refused_in_a_sentence(args: list[str], message: str) -> None:
    with pytest.raises(SmrlabError, match=message):
        asked(*args)


def test_what_is_fitted_is_written_over_nothing_that_it_is_made_from(tmp_path: Path) -> None:
    extraction, drive = tmp_path / "extraction.json", tmp_path / "drive.toml"
    for file in (extraction, drive):
        file.write_text("mine")
    for args in (
        ["geometry", "fit", str(extraction), "--out", str(extraction)],
        ["validate", f"{drive},rpm=5400", str(tmp_path / "no.trace"), "--fit", str(drive)],
    ):
        with pytest.raises(InputError, match="is what it is made from"):
            asked(*args)
    assert (extraction.read_text(), drive.read_text()) == ("mine", "mine")


def test_nothing_is_written_unless_the_name_is_typed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(b"x" * (1 << 20))
    with pytest.raises(InputError, match="add --yes"):
        asked("probe", str(disk), "--destroy")
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
    said = sysfs.described(tmp_path, {})
    assert said["model_list"].startswith("Seagate")
    assert "TRIM" in said["hint"]
    assert said["zoned"] == "none"
    assert sysfs.says("sim:tiny") == {}


def page_of_zones(bits: int) -> bytes:
    """Block Device Characteristics, with its two bits of zones."""
    page = bytearray(64)
    page[1], page[3], page[8] = 0xB1, 60, bits << 4
    return bytes(page)


def identify_data(**words: int) -> bytes:
    """The ATA Information page: 60 bytes of header, then the words of IDENTIFY DEVICE."""
    page = bytearray(60 + 512)
    page[1], page[2], page[3] = 0x89, 0x02, 0x38
    for word, value in words.items():
        at = 60 + 2 * int(word[1:])
        page[at : at + 2] = value.to_bytes(2, "little")
    return bytes(page)


DISK = {"queue/rotational": b"1\n", "queue/zoned": b"none\n"}


@pytest.mark.parametrize(
    ("files", "said", "unsaid"),
    [
        ({}, {}, ["hint", "model_list", "zoned"]),
        (DISK, {"rotational": True, "zoned": "none", "trim": False}, ["hint", "model_list"]),
        (DISK | {"queue/rotational": b"0\n", "queue/discard_max_bytes": b"4096\n"}, {"trim": True}, ["hint"]),
        (DISK | {"queue/discard_max_bytes": b"4096\n"}, {"trim": True}, ["model_list"]),
        (
            DISK | {"queue/zoned": b"host-managed\n", "queue/discard_max_bytes": b"1\n"},
            {"zoned": "host-managed"},
            ["hint"],
        ),
        (DISK | {"device/vpd_pgb1": page_of_zones(2)}, {"zbc_page": "drive-managed"}, ["rpm"]),
        (DISK | {"device/vpd_pgb1": page_of_zones(1)}, {"zbc_page": "host-aware"}, []),
        (DISK | {"device/vpd_pgb1": page_of_zones(0)}, {}, ["zbc_page"]),
        (DISK | {"device/vpd_pgb1": b"\0\xb1"}, {}, ["zbc_page", "rpm"]),
        (
            DISK | {"device/vpd_pg89": identify_data(w69=1, w169=0, w217=7200)},
            {"identify_zones": "host-aware", "identify_trim": False, "rpm": 7200},
            [],
        ),
        # 1: no rotating medium; 0xFFFF: reserved.
        (DISK | {"device/vpd_pg89": identify_data(w217=1)}, {}, ["identify_zones", "rpm"]),
        (DISK | {"device/vpd_pg89": identify_data(w217=0xFFFF)[:300]}, {}, ["identify_trim", "rpm"]),
        (DISK | {"device/model": b"WDC WD40EFAX\n"}, {"model": "WDC WD40EFAX"}, []),
        (DISK | {"device/model": b"ST4000DM004-2CV104\n"}, {"model_list": "Seagate, CMR and SMR list: SMR"}, []),
        (DISK | {"device/model": b"ST4000VN008\n"}, {"model": "ST4000VN008"}, ["model_list"]),
    ],
)
def test_made_up_devices_say_what_they_are(
    tmp_path: Path, files: dict[str, bytes], said: dict[str, Any], unsaid: list[str]
) -> None:
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = sysfs.described(tmp_path, {})
    assert {key: found.get(key) for key in said} == said
    assert not set(unsaid) & set(found), found
    trimmed = files.get("queue/discard_max_bytes") and files.get("queue/rotational") == b"1\n"
    assert ("hint" in found) == bool(trimmed and files.get("queue/zoned") == b"none\n")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"inquiry": b"\x14" + bytes(35)}, {"kind": "host-managed"}),
        ({"vpd_pgb1": page_of_zones(1)}, {"kind": "host-aware", "hint": None}),
        ({"vpd_pgb1": page_of_zones(2)}, {"kind": "drive-managed", "hint": None}),
        ({"identify": identify_data(w69=2)[60:], "vpd_pgb1": page_of_zones(1)}, {"kind": "host-aware"}),
        # A bridge: the kernel knows of no TRIM, the disk behind it does.
        ({"identify": identify_data(w169=1, w217=5400)[60:]}, {"kind": None, "rpm": 5400, "hint": "a rotating drive"}),
        ({"identify": identify_data(w169=1, w217=1)[60:]}, {"solid_state": True, "hint": None}),
        ({"vpd_pgb2": b"\0\xb2\0\x04\0\x80\x02\0"}, {"unmap": True, "provisioning": "thin", "hint": "a rotating"}),
        ({}, {"kind": None, "hint": None, "trim": False}),
    ],
)
def test_what_a_disk_answers_is_put_beside_what_the_kernel_knows(
    tmp_path: Path, asked: dict[str, bytes], said: dict[str, Any]
) -> None:
    for name, data in (DISK | {"device/model": b"Bridge\n"}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = sysfs.described(tmp_path, asked)
    assert found["model"] == "Bridge"
    for key, value in said.items():
        if isinstance(value, str) and key == "hint":
            assert found[key].startswith(value)
        else:
            assert found.get(key) == value, found


def test_makers_names_before_a_model_do_not_hide_it(tmp_path: Path) -> None:
    """SCSI says the vendor apart, SATA behind a bridge before the model."""
    (tmp_path / "device").mkdir()
    for model, listed in (("WDC WD40EFAX-68JH4N0", True), ("TOSHIBA HDWD240", True), ("WDC WD40EFRX", False)):
        (tmp_path / "device" / "model").write_text(model + "\n")
        assert ("model_list" in sysfs.described(tmp_path, {})) == listed, model


def test_what_a_device_says_comes_first_and_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host-aware drive by its own pages, and a partition of it: a made-up sysfs under a device that is there."""
    device = next((d for d in sorted(Path("/dev").iterdir()) if d.is_block_device()), None)
    if device is None:
        pytest.skip("no block device here")
    disk = tmp_path / "devices" / "sdz"
    for name, text in {"queue/rotational": "1", "queue/zoned": "host-aware", "device/model": "ST8000AS0022"}.items():
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_text(text + "\n")
    page = bytearray(page_of_zones(1))
    page[4:6] = (5980).to_bytes(2, "big")
    (disk / "device" / "vpd_pgb1").write_bytes(page)
    (disk / "device" / "vpd_pg89").write_bytes(identify_data(w69=2, w169=1))
    (disk / "sdz1").mkdir()
    monkeypatch.setattr(sysfs, "ROOT", tmp_path / "class")
    (tmp_path / "class").mkdir()
    for folder in (disk, disk / "sdz1"):
        (tmp_path / "class" / device.name).unlink(missing_ok=True)
        (tmp_path / "class" / device.name).symlink_to(folder)
        said = answer("probe", str(device))["says"]
        assert (said["zoned"], said["zbc_page"], said["rpm"]) == ("host-aware", "host-aware", 5980)
        assert (said["identify_zones"], said["identify_trim"]) == ("drive-managed", True)
        assert said["model_list"].startswith("Seagate Archive v3")
    shown = asked("probe", str(device))
    assert "zbc_page: host-aware" in shown.output
    assert "kind: host-aware" in shown.output
    assert "add --destroy" in shown.output


def test_the_kernel_is_asked_for_the_device_that_a_link_leads_to(tmp_path: Path) -> None:
    """Against sysfs as it is: what the kernel says of each device here, under a name as udev makes them."""
    devices = [d for d in sorted(Path("/dev").iterdir()) if d.is_block_device()]
    disks = [d for d in devices if (Path("/sys/class/block") / d.name / "queue" / "rotational").exists()]
    if not disks:
        pytest.skip("no block device here that the kernel describes")
    for disk in disks:
        link = tmp_path / f"by-id-{disk.name}"
        link.symlink_to(disk)
        rotational = (Path("/sys/class/block") / disk.name / "queue" / "rotational").read_text().strip()
        assert sysfs.says(str(link))["rotational"] == (rotational == "1")


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
    said = asked("geometry", "show", str(drive), "--out", str(tmp_path / "show")).stdout
    assert f"figures: {tmp_path / 'show'}/*.svg" in said.replace("\n", "")
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
    with pytest.raises(InputError, match=r"broken\.txt: line 1"):
        asked("geometry", "fit", str(broken), "--out", str(drive))


@pytest.mark.parametrize("drive", ["modern-7200", "he2014-example", "dvs-raid"])
def test_a_fitted_drive_validates_against_the_drive_it_was_taken_from(drive: str, tmp_path: Path) -> None:
    """The demerit is below 2 % of the mean: reads and writes anywhere, by `smrlab validate` itself."""
    answer("geometry", "extract", f"sim:{drive}", "--destroy", "--out", str(tmp_path))
    fitted = tmp_path / "fitted.toml"
    answer("geometry", "fit", str(tmp_path / "extraction.json"), "--out", str(fitted))
    trace = "synth:uniform,requests=5000,interarrival=60ms"
    ran = ("--layer", "cmr", "--trace", trace, "--requests", "--no-svg", "--out", str(tmp_path / "ran"))
    answer("run", "--drive", drive, *ran)
    rows = pq.read_table(tmp_path / "ran" / "requests.parquet").to_pylist()
    measured = tmp_path / "measured.trace"
    with measured.open("w") as lines:
        for row, after in zip(rows, [*rows[1:], rows[-1]], strict=True):
            service = row["completion_ns"] - row["arrival_ns"]
            gap = max(after["arrival_ns"] - row["completion_ns"], 0)
            op = row["op"][0].upper()
            lines.write(f"{op} Miss {row['lba']} {row['blocks']} {service / 1e3} {gap / 1e3}\n")
    doc = answer("validate", str(fitted), str(measured))
    assert doc["requests"] == 5000
    assert doc["demerit_percent"] < 2, doc
    # Not the same numbers twice: the drive beside it, half a turn faster, does not validate.
    other = answer("validate", f"{fitted},rpm=5400", str(measured))
    assert other["demerit_percent"] > 2, other


def test_a_drive_is_validated_with_its_own_layer_unless_another_is_named(tmp_path: Path) -> None:
    trace = tmp_path / "measured.trace"
    trace.write_text("W Miss 800 8 24780 0\nR Miss 8000000 8 17000 0\n")
    managed = "seagate-st5000as0011"
    for drive, words, layer in (
        (managed, (), "persistent-cache"),
        (managed, ("--layer", "cmr"), "cmr"),
        ("modern-7200", (), "cmr"),
    ):
        doc = answer("validate", drive, str(trace), *words)
        assert doc["layer"] == layer
        assert layer in asked("validate", drive, str(trace), *words).output
        own = doc["writes"]["demerit_percent"] < 1
        assert own == (layer == "persistent-cache"), doc
    # Neither its results nor a run's are replaced by the other's without a word.
    place = tmp_path / "out"
    for _ in range(2):
        answer("validate", "modern-7200", str(trace), "--out", str(place))
    held = (place / "result.json").read_text()
    with pytest.raises(InputError, match="holds results of validate; --force replaces them"):
        smrlab.run("synth:uniform,requests=9", out=place)
    assert (place / "result.json").read_text() == held
    smrlab.run("synth:uniform,requests=9", out=place, force=True)
    with pytest.raises(InputError, match="holds results of runs; choose another"):
        answer("validate", "modern-7200", str(trace), "--out", str(place))
    for words in (("--layer", "cmr"), ("--out", str(place))):
        with pytest.raises(InputError, match="--fit"):
            answer("validate", "modern-7200", str(trace), "--fit", str(tmp_path / "f.toml"), *words)
    with pytest.raises(InputError, match="its cache on the medium"):
        answer("validate", "seagate-st8000as0002", str(trace), "--fit", str(tmp_path / "f.toml"))
