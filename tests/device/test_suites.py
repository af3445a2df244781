"""Tests of fio (t/zbd of its source), of blktests and of zonefs-tools on served zoned disks, under a Debian kernel."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from guest import ROOT, Guest
from served import Make, need
from test_iscsi import serve, url

PAGE = ROOT / "docs" / "zones-tested.md"

# More than 130 sequential zones, which some tests ask for.
SIZE = 1100 << 20
ZONES = "zoned,zone=4MiB,conventional=12%,max_open=16"
GAPS = "zoned,zone=4MiB,capacity=3MiB,conventional=0,max_open=8"

# Tests that fail, and not because of the disk (docs/zones-tested.md says why). In fio 3.33 alone: 6, 15, 16, and 54
# where there are no gaps (6, 15 and 16 not with logical blocks of 4 KiB).
FAULTS = {"zones": {6, 15, 16, 54}, "gaps": {4, 6, 9, 10, 15, 16, 30, 54, 59, 69}, "attached": {54}}
# Tests that fail in some runs and pass in others, as they read in a gap or do not; they are not counted.
CHANCE = {"gaps": {30, 59}}
# The version that the page counts.
COUNTED = "fio-3.41"


def source() -> Path:
    """fio's source: that which SMRLAB_FIO names."""
    named = os.environ.get("SMRLAB_FIO")
    if not named:
        pytest.skip("no source of fio: set SMRLAB_FIO to it, built (with libaio) or as it is, for the fio installed")
    if not (Path(named) / "t" / "zbd" / "test-zbd-support").is_file():
        pytest.skip(f"SMRLAB_FIO={named} has no t/zbd/test-zbd-support")
    return Path(named).resolve()


@pytest.mark.full
@pytest.mark.parametrize("kind", FAULTS)
def test_fios_tests_of_zoned_block_devices(make: Make, fast: Path, tmp_path: Path, kind: str) -> None:
    need("fio", "blkzone", "sg_inq", "bc")
    fio = source()
    machine = Guest(tmp_path, memory_mib=3584 if kind == "attached" else 2048)
    layer = "''"
    if kind == "attached":
        layer = ZONES
    else:
        text = GAPS if kind == "gaps" else ZONES
        device, port = serve(make, store=str(fast / "s"), drive="modern-7200", layer=text, size=SIZE)
        machine.scsi(url(device, port))
    machine.run("fio_zbd.sh", 3000, SOURCE=fio, LAYER=layer, ROOT=ROOT, PYTHON=sys.executable)
    shown = (tmp_path / "shown").read_text(errors="replace")
    results = re.findall(r"Running test (\d+) \.\.\. \S*?(PASS|FAIL|SKIP)", shown)
    failed = {int(number) for number, result in results if result == "FAIL"}
    details = (tmp_path / "failed").read_text(errors="replace") if failed else ""
    assert failed <= FAULTS[kind], (failed, details[-6000:])
    counted = [result for number, result in results if int(number) not in CHANCE.get(kind, ())]
    counts = [counted.count(word) for word in ("PASS", "FAIL", "SKIP")]
    assert counts[0] > 40, shown
    print(kind, counts)
    if (tmp_path / "version").read_text().strip() == COUNTED:
        said = re.search(rf"<!-- fio, {kind} -->(\d+) passed, (\d+) failed, (\d+) left out", PAGE.read_text())
        assert said, f"{PAGE} counts no tests of fio, {kind}"
        assert counts == [int(n) for n in said.groups()], shown


# Disks for blktests, and which of its tests fail on them, not because of the disk (docs/zones-tested.md says why).
DISKS = {"zones": ZONES, "attached": ZONES, "gaps": GAPS, "aware": "host-aware,zone=4MiB"}
FAILS = {"gaps": {"block/005", "block/008"}}


@pytest.mark.full
@pytest.mark.parametrize("kind", DISKS)
def test_blktests_on_zoned_disks(make: Make, fast: Path, tmp_path: Path, kind: str) -> None:
    need("fio", "blkzone", "dmsetup", "xfs_io", "hexdump")
    named = os.environ.get("SMRLAB_BLKTESTS")
    if not named:
        pytest.skip("no blktests: set SMRLAB_BLKTESTS to its source, built")
    suite = Path(named).resolve()
    if not (suite / "src" / "zbdioctl").is_file():
        pytest.skip(f"SMRLAB_BLKTESTS={named} has no src/zbdioctl: run make there")
    machine = Guest(tmp_path, memory_mib=3584 if kind == "attached" else 2048)
    layer = "''"
    if kind == "attached":
        layer = ZONES
    else:
        device, port = serve(make, store=str(fast / "s"), drive="modern-7200", layer=DISKS[kind], size=SIZE)
        machine.scsi(url(device, port))
    machine.run("blktests.sh", 1800, SOURCE=suite, LAYER=layer, ROOT=ROOT, PYTHON=sys.executable)
    shown = (tmp_path / "shown").read_text(errors="replace")
    results = re.findall(r"^(\w+/\d+) .*\[(passed|failed|not run)\]", shown, re.M)
    failed = {name for name, result in results if result == "failed"}
    assert failed <= FAILS.get(kind, set()), shown
    counts = [[result for _, result in results].count(word) for word in ("passed", "failed", "not run")]
    print(kind, counts)
    said = re.search(rf"<!-- blktests, {kind} -->(\d+) passed, (\d+) failed, (\d+) not run", PAGE.read_text())
    assert said, f"{PAGE} counts no tests of blktests, {kind}"
    assert counts == [int(n) for n in said.groups()], shown


@pytest.mark.full
@pytest.mark.parametrize("kind", ["zones"])
def test_zonefs_tools_on_zoned_disks(make: Make, fast: Path, tmp_path: Path, kind: str) -> None:
    need("fio", "blkzone")
    named = os.environ.get("SMRLAB_ZONEFS")
    if not named:
        pytest.skip("no zonefs-tools: set SMRLAB_ZONEFS to its directory of tests, with tools/zio built")
    suite = Path(named).resolve()
    if not (suite / "tools" / "zio").is_file():
        pytest.skip(f"SMRLAB_ZONEFS={named} has no tools/zio: build it there")
    machine = Guest(tmp_path, memory_mib=1536)
    device, port = serve(make, store=str(fast / "s"), drive="modern-7200", layer=DISKS[kind], size=SIZE // 2)
    machine.scsi(url(device, port))
    machine.run("zonefs.sh", 2400, SOURCE=suite)
    shown = (tmp_path / "shown").read_text(errors="replace")
    results = re.findall(r"Test (\d{4}):.*\.\.\. \S*?(PASS|FAIL|skip)", shown)
    counts = [[result for _, result in results].count(word) for word in ("PASS", "FAIL", "skip")]
    print(kind, counts)
    assert counts[0] > 20, shown
    assert counts[1] == 0, shown
    said = re.search(rf"<!-- zonefs, {kind} -->(\d+) passed, (\d+) failed, (\d+) left out", PAGE.read_text())
    assert said, f"{PAGE} counts no tests of zonefs-tools, {kind}"
    # The page counts those of the suite that were to be had.
    if sum(counts) == sum(int(n) for n in said.groups()):
        assert counts == [int(n) for n in said.groups()], shown
