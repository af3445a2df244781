"""Arrays served: under fio's verification and with a mounted file system, while a disk is lost and rebuilt."""

from __future__ import annotations

import hashlib
import json
import random
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from nbdclient import FLUSH, FUA, READ, WRITE, Client
from served import Make, can_loop, need, run
from test_stopping import smrlab

from smrlab import devices
from smrlab.devices import Device
from smrlab.errors import InputError

REDUNDANT = ["raid5,disks=5,chunk=32KiB", "dvs,disks=4,overprovision=30%,segment=16"]
LOGGED = ["raid5,disks=5,chunk=64KiB,parity=log,log=128KiB,log_region=1MiB,intent=on"]
WITH_SSD = [
    "raid5,disks=5,chunk=32KiB,ssd_write=1MiB,ssd_read=1MiB",
    "dvs,disks=4,overprovision=30%,segment=16,ssd_write=2MiB,journal=on",
]


def disk(device: Device, number: int) -> dict[str, object]:
    """How a disk is."""
    found: dict[str, object] = device.ask("info")["engine"]["disks"][number]
    return found


def rebuilt(device: Device, number: int) -> None:
    """Waits until a disk is whole."""
    end = time.monotonic() + 60
    while (state := disk(device, number))["state"] != "whole":
        assert state["state"] == "rebuilding"
        assert time.monotonic() < end, state
        time.sleep(0.05)


def lose_and_rebuild(device: Device) -> None:
    """A disk dies and is replaced, while somebody else uses the device."""
    end = time.monotonic() + 60
    while device.ask("stats")["host"]["writes"] < 100:
        assert time.monotonic() < end, "nobody uses it"
        time.sleep(0.05)
    time.sleep(0.5)
    device.ask("fail", disk=2)
    assert disk(device, 2)["state"] == "dead"
    time.sleep(0.5)
    device.ask("replace", disk=2)
    rebuilt(device, 2)


@pytest.mark.parametrize("layer", ["cmr", "s-block"])
@pytest.mark.parametrize("array", REDUNDANT + LOGGED + WITH_SSD)
def test_fio_verifies_while_a_disk_is_lost_and_rebuilt(make: Make, fast: Path, array: str, layer: str) -> None:
    need("fio")
    device = make(array=array, layer=layer, size=None, host_size=64 << 20, store=str(fast / "store"))
    # In bursts: what is tested is that disks are lost and rebuilt in between, not how much a processor can do.
    job = ["fio", "--name=v", "--ioengine=nbd", f"--uri={device.uri()}", "--rw=randwrite", "--bs=4k-64k",
           "--size=64m", "--iodepth=8", "--verify=crc32c", "--verify_fatal=1", "--verify_backlog=200", "--randseed=3",
           "--time_based", "--runtime=4", "--fsync=100", "--thinktime=60ms", "--thinktime_blocks=64",
           "--output-format=json"]  # fmt: skip
    with subprocess.Popen(job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=fast) as fio:
        lose_and_rebuild(device)
        out, said = fio.communicate(timeout=120)
    assert fio.returncode == 0, out[-1000:] + said
    done = json.loads(out[out.index("{") :])["jobs"][0]
    assert done["read"]["total_ios"] > 200
    assert done["error"] == 0
    # The disk that was rebuilt is needed now: another one is dead.
    with Client(device.socket()) as client:
        before = [client.ask(READ, at, 1 << 20)[1] for at in range(0, 64 << 20, 1 << 20)]
        device.ask("fail", disk=0)
        after = [client.ask(READ, at, 1 << 20)[1] for at in range(0, 64 << 20, 1 << 20)]
    assert before == after
    stats = device.ask("stats")
    assert stats["array"]["rebuilds"] == 1
    assert stats["disks"][2]["by_cause"]["rebuild"]["blocks_written"] > 0
    if "parity=log" in array:
        assert stats["array"]["parities_applied"] > 0
    if "ssd" in array:
        # More was written than the SSD takes, so it was destaged with disks missing; and some is still only there.
        assert stats["array"]["ssd_destaged_blocks"] > 0
        assert stats["array"]["used_ssd_pages"] > 0
        assert stats["array"]["ssd"]["blocks_written"] > stats["array"]["ssd_destaged_blocks"]


@pytest.mark.parametrize("array", REDUNDANT)
def test_a_file_system_stays_whole_while_a_disk_is_lost_and_rebuilt(make: Make, tmp_path: Path, array: str) -> None:
    can_loop()
    need("mkfs.ext4", "losetup", "e2fsck")
    device = make(array=array, layer="s-block", size=None, host_size=96 << 20)
    at, fs = tmp_path / "m", tmp_path / "fs"
    at.mkdir()
    fs.mkdir()
    _, loop = device.mount(at)
    assert loop is not None
    run("mkfs.ext4", "-q", loop)
    run("mount", loop, fs)
    sums: dict[str, str] = {}
    rng = random.Random(5)

    def fill(label: str) -> None:
        for i in range(30):
            data = rng.randbytes(rng.randrange(200_000))
            (fs / f"{label}-{i}").write_bytes(data)
            sums[f"{label}-{i}"] = hashlib.sha256(data).hexdigest()

    try:
        fill("before")
        run("sync")
        device.ask("fail", disk=2)
        fill("degraded")
        device.ask("replace", disk=2)
        fill("meanwhile")
        run("sync")
        rebuilt(device, 2)
        device.ask("fail", disk=1)
    finally:
        run("umount", fs)
    # Fresh caches: what is read comes from the disks, one of which is dead and one rebuilt.
    run("blockdev", "--flushbufs", loop)
    run("mount", loop, fs)
    try:
        found = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in fs.iterdir() if p.is_file()}
    finally:
        run("umount", fs)
    assert found == sums
    run("e2fsck", "-fn", loop)
    device.unmount(at)


def test_over_a_restart_and_a_kill(make: Make) -> None:
    device = make(array="raid5,disks=3,chunk=16KiB,intent=on", layer="cmr", size=None, host_size=32 << 20)
    rng = random.Random(1)
    data = {at: rng.randbytes(64 << 10) for at in range(0, 32 << 20, 1 << 20)}
    with Client(device.socket()) as client:
        for at, block in data.items():
            assert client.ask(WRITE, at, len(block), block, FUA)[0] == 0
    device.ask("fail", disk=1)
    for end in (device.kill, device.stop):
        end()
        device.start()
        assert disk(device, 1)["state"] == "dead"
        with Client(device.socket()) as client:
            for at, block in data.items():
                assert client.ask(READ, at, len(block))[1] == block
    device.ask("replace", disk=1)
    device.kill()
    device.start()
    rebuilt(device, 1)
    with Client(device.socket()) as client:
        assert all(client.ask(READ, at, len(block))[1] == block for at, block in data.items())


@pytest.mark.parametrize("scheduler", ["fcfs", "sptf,depth=8"])
@pytest.mark.parametrize(
    "array",
    ["striped,disks=3,chunk=8KiB", "raid5,disks=4,chunk=8KiB", "raid5,disks=3,chunk=16KiB,ssd_write=64KiB"],
)
def test_a_run_of_what_was_recorded_has_each_drive_do_the_same(
    make: Make, tmp_path: Path, array: str, scheduler: str
) -> None:
    file = tmp_path / "what.parquet"
    config = {"array": array, "layer": "cmr", "size": None, "host_size": 32 << 20, "drive": "modern-7200"}
    device = make(**config, timing="model", speed=20.0, scheduler=scheduler, record=str(file))
    rng = random.Random(2)
    with Client(device.socket()) as client:
        flying = 0
        for i in range(300):
            at, n = rng.randrange((32 << 20) // 4096 - 16) * 4096, rng.randrange(1, 16) * 4096
            kind = FLUSH if i % 60 == 59 else READ if i % 3 == 0 else WRITE
            client.send(kind, *((0, 0) if kind == FLUSH else (at, n)), rng.randbytes(n) if kind == WRITE else b"")
            flying += 1
            while flying > rng.randrange(1, 24):
                assert client.reply()[1] == 0
                flying -= 1
        while flying:
            assert client.reply()[1] == 0
            flying -= 1
    # What the array does by itself afterwards belongs to it.
    before = None
    while before != (now := device.ask("stats")["disks"]):
        before = now
        time.sleep(0.5)
    # A run ends with its last request: one after all that, or what an SSD destages then would be missing.
    with Client(device.socket()) as client:
        client.ask(READ, 0, 4096)
    now = device.ask("stats")["disks"]
    said = smrlab("device", "stop", device.name).stderr
    command = shlex.split(said.partition("replay it: ")[2])
    run_of_it = json.loads(smrlab(*command[1:], "--json").stdout)
    for served, simulated in zip(now, run_of_it["members"], strict=True):
        for cause, counts in served["by_cause"].items():
            found = {key: simulated["media"]["by_cause"][cause][key] for key in counts}
            assert found == counts, (array, scheduler, cause)


def test_modelled_time(make: Make) -> None:
    """Phases of the array take the time of its drives, and a rebuild goes on in it."""
    device = make(
        array="raid5,disks=3,chunk=4KiB", layer="cmr", size=None, host_size=64 << 20, timing="model", speed=20.0
    )
    with Client(device.socket()) as client:
        assert client.ask(WRITE, 0, 1 << 20, b"m" * (1 << 20))[0] == 0
        began = time.monotonic()
        for i in range(20):
            assert client.ask(WRITE, i * 40960 % (1 << 20), 512, bytes([i]) * 512)[0] == 0
        took = (time.monotonic() - began) * 20
        # A small write reads old data and parity, then writes both: a revolution at the least.
        assert took > 20 * 0.008
        device.ask("fail", disk=0)
        device.ask("replace", disk=0)
        assert client.ask(READ, 0, 512)[0] == 0
        rebuilt(device, 0)
        assert client.ask(FLUSH, 0, 0)[0] == 0
    assert device.ask("stats")["lateness"]["requests"] > 20


def test_more_than_4_gib_and_sparse(make: Make) -> None:
    device = make(array="raid5,disks=5", drive="modern-7200", layer="cmr", size=None, host_size=8 << 30)
    with Client(device.socket()) as client:
        assert client.size == 8 << 30
        for at in (4096, (4 << 30) + 4096, (8 << 30) - 4096):
            assert client.ask(WRITE, at, 4096, at.to_bytes(8, "little") * 512, FUA)[0] == 0
        device.ask("fail", disk=3)
        for at in (4096, (4 << 30) + 4096, (8 << 30) - 4096):
            assert client.ask(READ, at, 4096)[1] == at.to_bytes(8, "little") * 512
    taken = sum(p.stat().st_blocks * 512 for p in device.path.glob("store/disk.*/data.*"))
    assert taken < 1 << 20


def test_the_command_line(make: Make) -> None:
    make("other", layer="cmr")
    made = smrlab(
        "device", "create", "a", "--array", "raid5,disks=5", "--layer", "cmr", "--drive", "modern-7200",
        "--size", "64MiB", "--json",
    )  # fmt: skip
    doc = json.loads(made.stdout)
    assert doc["size"] == 64 << 20
    assert doc["engine"]["array"].startswith("raid5,chunk=64KiB,disks=5")
    assert [d["state"] for d in doc["engine"]["disks"]] == ["whole"] * 5
    assert "device replace a --disk 2" in smrlab("device", "fail", "a", "--disk", "2").stderr
    assert "engine.disks.2.state" in smrlab("device", "info", "a").stdout
    assert "dead" in smrlab("device", "show", "a").stdout
    assert "raid5" in smrlab("device", "list").stdout
    smrlab("device", "replace", "a", "--disk", "2", "--wait")
    stats = json.loads(smrlab("device", "stats", "a", "--json").stdout)
    assert [d["state"] for d in stats["disks"]] == ["whole"] * 5
    assert stats["array"]["rebuilds"] == 1
    kinds = [e["kind"] for e in json.loads(smrlab("device", "events", "a", "--json").stdout)["events"]]
    assert kinds == ["start", "disk-failed", "disk-replaced"]
    for wrong, why in (
        (["fail", "a", "--disk", "7"], "disks 0 to 4"),
        (["replace", "a", "--disk", "1"], "is not dead"),
        (["fail", "other", "--disk", "0"], "only an array"),
        (["zones", "a"], "an array has no zones"),
        (["bands", "a"], "only a raw device"),
        (["create", "b", "--array", "raid5"], "--layer cmr"),
        (["create", "b", "--array", "raid7", "--layer", "cmr"], "raid5"),
    ):
        done = smrlab("device", *wrong, check=False)
        assert done.returncode == 2
        assert why in done.stderr, done.stderr
    snapshot = smrlab("device", "snapshot", "a", "one")
    assert "a@one" in snapshot.stderr
    smrlab("device", "clone", "a@one", "c")
    assert json.loads(smrlab("device", "info", "c", "--json").stdout)["engine"]["array"].startswith("raid5")
    smrlab("device", "fail", "c", "--disk", "1")
    twice = smrlab("device", "fail", "c", "--disk", "3").stderr
    assert "not whole are now 1, 3" in twice
    assert "device replace" not in twice


def test_a_snapshot_has_what_disks_and_ssd_hold(make: Make) -> None:
    """Dirty pages of the SSD and a dead disk are in it; a clone is rebuilt, and knows nothing of what comes after."""
    size, part = 8 << 20, 1 << 20
    device = make("a", array="raid5,disks=3,chunk=32KiB,ssd_write=1MiB", layer="cmr", size=None, host_size=size)
    data = [random.Random(at).randbytes(part) for at in range(0, size, part)]

    def reads(of: Device) -> list[bytes]:
        with Client(of.socket()) as client:
            return [client.ask(READ, at, part)[1] for at in range(0, size, part)]

    def writes(of: Device, parts: list[bytes]) -> None:
        with Client(of.socket()) as client:
            assert [client.ask(WRITE, i * part, part, p)[0] for i, p in enumerate(parts)] == [0] * len(parts)

    writes(device, data[:5])
    device.ask("fail", disk=1)
    writes(device, data)
    assert device.ask("stats")["array"]["ssd"]["writes"] > 0
    device.snapshot("one")
    writes(device, [bytes(part)] * len(data))
    copy = devices.clone("a@one", "b")
    assert disk(copy, 1)["state"] == "dead"
    assert reads(copy) == data
    copy.ask("replace", disk=1)
    rebuilt(copy, 1)
    copy.ask("fail", disk=0)
    assert reads(copy) == data
    assert [disk(device, n)["state"] for n in range(3)] == ["whole", "dead", "whole"]
    assert reads(device) == [bytes(part)] * len(data)


def test_a_foreign_store_is_refused(make: Make, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    make("a", array="raid5,disks=3", layer="cmr", store=store).stop()
    for change in ({"array": "raid5,disks=4"}, {"array": "striped,disks=3"}, {"layer": "s-block"}):
        with pytest.raises(InputError, match="was made with layer"):
            make("b", store=store, **{"array": "raid5,disks=3", "layer": "cmr"} | change)
    with pytest.raises(InputError, match="was made with"):
        make("b", store=store, layer="cmr")
