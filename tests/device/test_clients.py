"""Real NBD clients against a served device."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from served import Make, need, run

from smrlab.devices import Device
from smrlab.errors import InputError

LAYERS = ["cmr", "static-R(4123)", "rmw", "disk-cache", "s-block"]


def image(path: Path, size: int, seed: int = 1) -> str:
    """Fills a file with a third of holes; gives its checksum."""
    rng = random.Random(seed)
    with path.open("wb") as f:
        f.truncate(size)
        for at in range(0, size - 65536, 65536):
            if rng.random() < 0.67:
                f.seek(at)
                f.write(rng.randbytes(65536))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_a_client_is_told(make: Make) -> None:
    need("nbdinfo")
    device = make(layer="rmw", block=4096)
    doc = json.loads(run("nbdinfo", "--json", device.uri()).stdout)["exports"][0]
    assert doc["block_minimum" if "block_minimum" in doc else "block_size_minimum"] == 4096
    assert doc["can_flush"]
    assert doc["can_fua"]
    assert doc["can_multi_conn"]
    assert doc["is_rotational"]
    assert doc["export-size"] == device.ask("info")["size"]
    assert "hole" in run("nbdinfo", "--map", device.uri()).stdout


@pytest.mark.parametrize("layer", [*LAYERS, "raw,tracks=1"])
def test_nbdcopy_round_trip(make: Make, tmp_path: Path, layer: str) -> None:
    need("nbdcopy", "qemu-img")
    device = make(layer=layer)
    size = device.ask("info")["size"] // (1 << 20) * (1 << 20)
    want = image(tmp_path / "in", size)
    run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", tmp_path / "in", device.uri())
    for again in (False, True):
        run("nbdcopy", device.uri(), tmp_path / "out")
        with (tmp_path / "out").open("rb") as f:
            assert hashlib.sha256(f.read(size)).hexdigest() == want
        if not again:
            device.stop()
            device.start()


def test_fio_verifies(make: Make, tmp_path: Path) -> None:
    need("fio")
    device = make(layer="static-R(4123)")
    done = run(
        "fio", "--name=v", "--ioengine=nbd", f"--uri={device.uri()}", "--rw=randwrite", "--bs=4k", "--size=16m",
        "--iodepth=8", "--verify=crc32c", "--do_verify=1", "--output-format=json", f"--aux-path={tmp_path}",
    )  # fmt: skip
    assert json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["error"] == 0
    assert device.ask("stats")["host"]["writes"] >= 4096


def test_qemu_io_zero_discard_and_bounds(make: Make) -> None:
    need("qemu-io")
    device = make(layer="rmw")
    size = device.ask("info")["size"]
    commands = ["write -P 7 1M 64k", "read -P 7 1M 64k", "write -z 1M 4k", "read -P 0 1M 4k", "flush",
                "discard 1088k 4k", "read -P 0 1088k 4k", "write -f -P 9 2M 512", "read -P 9 2M 512"]  # fmt: skip
    arguments = [a for c in commands for a in ("-c", c)]
    done = run("qemu-io", "-f", "raw", "-d", "unmap", device.uri(), *arguments)
    assert "failed" not in done.stdout, done.stdout
    assert "Pattern" not in done.stdout, done.stdout
    assert run("qemu-io", "-f", "raw", device.uri(), "-c", f"read {size} 512", check=False).returncode != 0
    assert device.ask("info")["pid"] == device.pid()


def test_raw_destroys_what_follows(make: Make) -> None:
    need("qemu-io")
    device = make(layer="raw,tracks=2")
    run("qemu-io", "-f", "raw", device.uri(), "-c", "write -P 1 0 16M", "-c", "write -P 2 0 64k")
    done = run("qemu-io", "-f", "raw", device.uri(), "-c", "read -P 1 64k 15M", check=False)
    assert "Pattern verification failed" in done.stdout
    stats = device.ask("stats")
    assert stats["host"]["destroyed_reads"] > 0
    assert any(e["kind"] == "destroyed-read" for e in device.ask("events"))
    cells = device.ask("map", cells=512)["cells"]
    assert any(stale > 0 for _, stale, _ in cells)
    assert cells[0] == [1000, 0, 0]


def test_errors_mode_answers_with_an_error(make: Make) -> None:
    need("qemu-io")
    device = make(layer="raw,tracks=2", errors=True)
    run("qemu-io", "-f", "raw", device.uri(), "-c", "write -P 1 0 16M", "-c", "write -P 2 0 64k")
    assert run("qemu-io", "-f", "raw", device.uri(), "-c", "read 64k 15M", check=False).returncode != 0
    assert any("destroyed" in e["text"] for e in device.ask("events"))


def test_kill_9_loses_nothing_that_was_flushed(make: Make) -> None:
    need("qemu-io")
    device = make(layer="static-R(4123)", size=16 << 20)
    for i in range(1, 8):
        base = f"{i}M"
        run("qemu-io", "-f", "raw", device.uri(), "-c", f"write -P {i} {base} 256k", "-c", "flush")
        writes = [a for n in range(200) for a in ("-c", f"write -P 99 {8 * 1024 + n * 16}k 16k")]
        writer = subprocess.Popen(
            ["qemu-io", "-f", "raw", device.uri(), *writes], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        device.crash()
        writer.kill()
        writer.wait()
        device.start()
        checks = [a for n in range(1, i + 1) for a in ("-c", f"read -P {n} {n}M 256k")]
        done = run("qemu-io", "-f", "raw", device.uri(), *checks)
        assert "failed" not in done.stdout, done.stdout


def test_one_server_a_store(make: Make, tmp_path: Path) -> None:
    device = make(store=str(tmp_path / "s"))
    with pytest.raises(InputError, match="served already"):
        make("second", store=str(tmp_path / "s"))
    assert device.running()


def test_wrong_input_is_one_clear_message(make: Make) -> None:
    for config, message in (
        ({"layer": "rmv"}, "did you mean 'rmw'"),
        ({"drive": "modern-720"}, "modern-7200"),
        ({"layer": "raw,band=0"}, "band=0"),
        ({"size": 1 << 60}, "blocks"),
        ({"block": 1024}, "512 or 4096"),
    ):
        with pytest.raises(InputError, match=message):
            make("bad", **config)
    with pytest.raises(InputError, match="no name"):
        make("../x")


def test_snapshot_and_clone(make: Make) -> None:
    need("qemu-io")
    from smrlab import devices

    device = make()
    run("qemu-io", "-f", "raw", device.uri(), "-c", "write -P 3 0 1M", "-c", "flush")
    device.snapshot("aged")
    run("qemu-io", "-f", "raw", device.uri(), "-c", "write -P 4 0 1M", "-c", "flush")
    copy: Device = devices.clone("d@aged", "copy")
    assert "failed" not in run("qemu-io", "-f", "raw", copy.uri(), "-c", "read -P 3 0 1M").stdout
    assert "failed" not in run("qemu-io", "-f", "raw", device.uri(), "-c", "read -P 4 0 1M").stdout


@pytest.mark.timed
def test_model_time_is_kept(make: Make) -> None:
    need("fio")
    device = make(drive="modern-7200", layer="cmr", timing="model", store="memory")
    run("fio", "--name=t", "--ioengine=nbd", f"--uri={device.uri()}", "--rw=randread", "--bs=4k", "--size=32m",
        "--runtime=2", "--time_based=1", "--iodepth=1")  # fmt: skip
    host, late = device.ask("stats")["host"], device.ask("stats")["lateness"]
    # A revolution takes 8.3 ms: about 4 ms on average and a short seek between two reads.
    assert 200 < host["reads"] < 900, host
    assert late["requests"] >= host["reads"]
    assert late["p50_us"] < 1000


def test_the_server_outlives_the_command_that_started_it(make: Make) -> None:
    device = make()
    device.stop()
    run(sys.executable, "-c", "from smrlab.devices import Device; Device.named('d').start()")
    time.sleep(0.3)
    assert device.running()
    assert device.ask("info")["name"] == "d"
