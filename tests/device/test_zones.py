"""A served host-managed drive: other people's tests, zones on the command line, write pointers over a killed server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from guest import Guest
from nbdclient import READ, WRITE, Client, Gone
from served import Make, need, run
from test_iscsi import serve, url

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "zones-tested.md"
LAYER = "zoned,zone=1MiB,max_open=8,conventional=5%"


def test_a_host_managed_drive_is_told_from_its_pages(make: Make) -> None:
    need("iscsi-inq", "iscsi-readcapacity16")
    device, port = serve(make, layer=LAYER)
    at = url(device, port)
    told = run("iscsi-inq", at).stdout
    assert "DIRECT_ACCESS" not in told, "libiscsi has no name for the device type 14h"
    assert "Version Descriptor:0620" in told, "ZBC"
    zones = device.ask("zones")
    size = sum(z["blocks"] for z in zones["zones"]) * 512
    assert f"Total size:{size}" in run("iscsi-readcapacity16", at).stdout


def test_zones_on_the_command_line_and_over_a_kill(make: Make, fast: Path) -> None:
    need("nbdcopy")
    device = make("z", store=str(fast / "s"), layer=LAYER)
    zones = device.ask("zones")["zones"]
    first = next(i for i, z in enumerate(zones) if not z["conventional"])
    start = zones[first]["start"] * 512
    write = ("-c", f"write -P 7 {start} 64k", "-c", "flush", "-f", "raw", device.uri())
    need("qemu-io")
    run("qemu-io", *write)
    again = run("qemu-io", *write, check=False)
    assert "error" in (again.stdout + again.stderr).lower(), "a write that is not at the pointer"
    device.kill()
    device.start()
    held = device.ask("zones")["zones"][first]
    assert (held["condition"], held["pointer"] - held["start"]) == ("closed", 128)
    run(
        "qemu-io",
        "-r",
        "-c",
        f"read -P 7 {start} 64k",
        "-c",
        f"read -P 0 {start + 65536} 64k",
        "-f",
        "raw",
        device.uri(),
    )
    shown = command("z")
    assert shown.returncode == 0, shown.stderr
    assert "closed" in shown.stdout
    assert "conventional" in shown.stdout
    last = len(zones) - 1
    inject = run(sys.executable, "-m", "smrlab", "device", "inject", "z", "--zone", f"{last}=read-only")
    assert device.ask("zones")["zones"][last]["condition"] == "read-only", inject.stdout
    command("z", "--fail", f"{first}=offline")
    told = command("z", "--json")
    assert json.loads(told.stdout)["zones"][first]["condition"] == "offline"
    wrong = command("z", "--fail", "900000=offline")
    assert wrong.returncode == 2
    assert run("qemu-io", "-r", "-c", f"read {start} 4k", "-f", "raw", device.uri(), check=False).returncode != 0


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `smrlab device zones`."""
    return run(sys.executable, "-m", "smrlab", "device", "zones", *words, check=False)


def suite() -> Path:
    """libzbc's test programs: those that SMRLAB_LIBZBC names, else built once below target/."""
    if os.geteuid() != 0:
        pytest.skip("libzbc's tests need root")
    if named := os.environ.get("SMRLAB_LIBZBC"):
        return Path(named)
    packed = Path(os.environ.get("SMRLAB_SHARED", ROOT.parent / "shared")) / "suites" / "libzbc-6.2.0.tar.zst"
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "libzbc-6.2.0"
    if (built / "test" / "programs").is_dir():
        return built
    if not packed.is_file():
        pytest.skip(f"{packed} is not there: set SMRLAB_SHARED, or SMRLAB_LIBZBC to a libzbc built with --with-test")
    need("cc", "zstd")
    with tempfile.TemporaryDirectory(dir=built.parent) as name:
        place = Path(name)
        run("tar", "--zstd", "-xf", packed, "--strip-components=1", "-C", place)
        # Its own way, by autoconf and libtool, takes ten times as long for the same programs.
        (place / "include" / "config.h").write_text('#define PACKAGE_VERSION "6.2.0"\n')
        has = [f"-DHAVE_{what}" for what in ("DEVTEST", "LINUX_FS_H", "LINUX_BLKZONED_H")]
        compiler = ("cc", "-O1", "-w", "-D_GNU_SOURCE", *has, "-I", place / "include")
        library = place / "libzbc.o"
        run(*compiler, "-r", "-o", library, *sorted((place / "lib").glob("*.c")))
        for source in sorted((place / "test" / "programs").glob("*/*.c")):
            run(*compiler, "-o", place / "test" / "programs" / source.stem, source, library)
        place.chmod(0o755)
        shutil.copytree(place, built, symlinks=True)
    return built


def test_a_cut_writes_a_physical_block_whole_or_not_at_all(make: Make, fast: Path) -> None:
    """In a zone where it lies over what was there before: file systems keep their superblocks so."""
    device = make("z", store=str(fast / "s"), layer=LAYER)
    with Client(device.socket()) as client:
        assert client.ask(WRITE, 0, 16384, b"a" * 16384)[0] == 0
    for length, written in ((4096, 0), (12288, 4096), (16384, 8192)):
        device.ask("inject", cut_at=1)
        with Client(device.socket()) as client, pytest.raises(Gone):
            client.ask(WRITE, 0, length, b"b" * length)
        device.start()
        with Client(device.socket()) as client:
            assert client.ask(READ, 0, 16384)[1] == b"b" * written + b"a" * (16384 - written), length


def test_the_table_of_kinds_of_drives_is_what_runs_say() -> None:
    done = run(sys.executable, ROOT / "tools" / "which_drive.py", "--check", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tests_of_libzbc_and_the_page_that_counts_them(make: Make, tmp_path: Path) -> None:
    libzbc = suite()
    device, port = serve(make, layer=LAYER)
    node, environment = generic(tmp_path, url(device, port))
    start = str(next(z["start"] for z in device.ask("zones")["zones"] if not z["conventional"]))
    for action, pattern, differs in (("write", "90", False), ("read", "90", False), ("read", "91", True)):
        # In three pieces of memory each.
        program = str(libzbc / "test" / "programs" / f"zbc_test_{action}_zone")
        line = [program, "-vio", "3", "-p", pattern, str(node), start, "32"]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)
        told = done.stdout + done.stderr
        assert (done.returncode, "Data mismatch" in told) == (0, differs), (line, told)
    # Its log files are written beside the script.
    copy = tmp_path / "libzbc"
    shutil.copytree(libzbc / "test", copy / "test", symlinks=True, ignore=shutil.ignore_patterns("*.o", "*.log"))
    done = subprocess.run(
        ["bash", str(copy / "test" / "zbc_test.sh"), str(node)],
        env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert counted("libzbc 6.2.0, sections 00 to 02") == counts(done.stdout), (done.stdout[-3000:], done.stderr[-1000:])


def generic(place: Path, target: str) -> tuple[Path, dict[str, str]]:
    """A node, and an environment in which SCSI commands for it reach the target."""
    need("cc", "mknod")
    preload, commands, node = place / "sgio.so", place / "sgio_iscsi.so", place / "sg"
    here = Path(__file__).parent
    compiled = ("cc", "-O1", "-shared", "-fPIC", "-o")
    run(*compiled, preload, here / "sgio.c", "-ldl")
    if run(*compiled, commands, here / "sgio_iscsi.c", "-liscsi", check=False).returncode:
        pytest.skip("missing: libiscsi-dev")
    run("mknod", node, "c", "1", "3")
    known = {"SGIO_COMMANDS": str(commands), "SGIO_NODE": str(node), "SGIO_URL": target}
    return node, {**os.environ, **known, "LD_PRELOAD": str(preload)}


def test_sg3_utils_reads_the_log_pages(make: Make, tmp_path: Path) -> None:
    need("sg_logs")
    device, port = serve(make, layer=LAYER)
    node, environment = generic(tmp_path, url(device, port))
    zones = [z for z in device.ask("zones")["zones"] if not z["conventional"]]
    for line in (["sg_zone", "--open", f"--zone={zones[0]['start']}"], ["sg_logs", "--all", "--all"]):
        done = subprocess.run(
            [*line, str(node)], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "Current temperature = <not available>" in done.stdout, done.stdout
    assert "IE asc = 0x0, ascq = 0x0" in done.stdout, done.stdout
    assert "Maximum explicitly open zones: 1" in done.stdout, done.stdout
    assert f"Minimum empty zones: {len(zones) - 1}" in done.stdout, done.stdout


@pytest.mark.full
def test_smartctl_finds_a_healthy_disk(make: Make, tmp_path: Path) -> None:
    need("smartctl")
    node, environment = generic(tmp_path, url(*serve(make, layer=LAYER)))
    words = ["smartctl", "-x", "-d", "scsi", str(node)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("SMART Health Status: OK", "No Self-tests have been logged", "Status: no scans active"):
        assert told in done.stdout, done.stdout
    for words, told in ((["-t", "long"], "Test has begun"), (["-l", "selftest"], "# 1  Background long   Completed")):
        line = ["smartctl", *words, "-d", "scsi", str(node)]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, told in done.stdout) == (0, True), done.stdout + done.stderr


def test_sg3_utils_reads_the_rate_of_rotation(make: Make, tmp_path: Path) -> None:
    """Of a drive below a layer: it is the drive's."""
    need("sg_vpd")
    node, environment = generic(tmp_path, url(*serve(make, layer=LAYER, drive="modern-7200")))
    done = subprocess.run(
        ["sg_vpd", "--page=bdc", str(node)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Nominal rotation rate: 7200 rpm" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("block", [512, 4096])
def test_sg3_utils_does_what_can_be_done_with_zones(make: Make, tmp_path: Path, block: int) -> None:
    need("sg_zone", "sg_reset_wp", "sg_rep_zones", "sg_write_same")
    device, port = serve(make, layer=LAYER, block=block)
    node, environment = generic(tmp_path, url(device, port))
    zones = device.ask("zones")["zones"]
    first = next(i for i, z in enumerate(zones) if not z["conventional"])
    start, blocks = zones[first]["start"] * 512 // block, zones[first]["blocks"] * 512 // block

    def sg(program: str, *words: object) -> subprocess.CompletedProcess[str]:
        line = [program, *map(str, words), str(node)]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def leads_to(wanted: str, program: str, *words: object) -> None:
        done = sg(program, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        found = [z["condition"] for z in device.ask("zones")["zones"][first : first + 4]]
        assert " ".join(found) == wanted, (program, words)

    leads_to("explicitly-open explicitly-open empty empty", "sg_zone", "--open", f"--zone={start}", "--count=2")
    same = ("--num", 4096 // block, "--xferlen", block)
    leads_to("explicitly-open explicitly-open implicitly-open empty", "sg_write_same", "-l", start + 2 * blocks, *same)
    # What nothing was written to is empty when it is closed.
    leads_to("empty empty closed empty", "sg_zone", "--close", "--all")
    leads_to("empty empty closed full", "sg_zone", "--finish", f"--zone={start + 3 * blocks}")
    leads_to("empty empty full full", "sg_zone", "--finish", "--all")
    report = sg("sg_rep_zones", "--report=5", f"--start={start}").stdout
    assert [int(at, 16) for at in re.findall(r"Zone start LBA: 0x(\w+)", report)] == [
        start + n * blocks for n in (2, 3)
    ], report
    leads_to("empty empty empty full", "sg_reset_wp", f"--zone={start}", "--count=3")
    leads_to("empty empty empty empty", "sg_reset_wp", "--all")
    # A conventional zone, a block within a zone, one beyond the last zone.
    end = (zones[-1]["start"] + zones[-1]["blocks"]) * 512 // block
    for zone in (0, start + 1, end):
        for program, action in (("sg_zone", "--open"), ("sg_zone", "--finish"), ("sg_reset_wp", "-v")):
            assert sg(program, action, f"--zone={zone}").returncode != 0, (program, action, zone)


def counts(shown: str) -> list[int]:
    """Tests of libzbc that passed, failed, and do not apply."""
    plain = re.sub(r"\x1b\[[0-9;]*[mC]", "", shown)
    return [len(re.findall(rf"\[{word}", plain)) for word in ("Passed", "Failed", "N/A")]


def counted(where: str) -> list[int]:
    """What the page says of them."""
    said = re.search(rf"{where}: (\d+) passed, (\d+) failed, (\d+) not appl", PAGE.read_text())
    assert said, f"{PAGE} counts no tests"
    return [int(n) for n in said.groups()]


@pytest.mark.full
def test_the_tests_of_libzbc_in_a_guest(make: Make, tmp_path: Path) -> None:
    built = suite()
    machine = Guest(tmp_path)
    device, port = serve(make, layer=LAYER)
    machine.scsi(url(device, port))
    machine.run("libzbc.sh", 3600, SUITE=built / "test")
    shown = (tmp_path / "shown").read_text(errors="replace")
    assert counted("in a guest, through the kernel") == counts(shown), shown[-4000:]
