"""A served device over iSCSI: other people's tests, two clients, and one that breaks the protocol."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from initiator import ASYNC, CHECK_CONDITION, GOOD, Initiator
from nbdclient import FLUSH, READ, WRITE, ZERO, Client
from served import Make, need, run
from test_surfaces import free_port

from smrlab import devices
from smrlab.devices import Device
from smrlab.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "iscsi.md"


def url(device: Device, port: int) -> str:
    return f"iscsi://127.0.0.1:{port}/iqn.2026-01.smrlab:{device.name}/0"


def serve(make: Make, store: str = "memory", **config: object) -> tuple[Device, int]:
    port = free_port()
    return make(store=store, listen=f"iscsi:127.0.0.1:{port}", **config), port


# Why a test of libiscsi leaves something out, by what it says; the first that fits.
WHY = (
    ("SANITIZE is refused, or but for BLOCK ERASE", "SANITIZE"),
    ("EXTENDED COPY is refused", "EXTENDED_?COPY|RECEIVE_?COPY"),
    ("WRITE ATOMIC is refused", "WRITEATOMIC"),
    ("the medium cannot be removed", "emovable"),
    ("nothing is unmapped, or not told", "fully provisioned|UNMAP is not|GET_?LBA_?STATUS"),
    ("needs physical blocks larger than logical ones", "LBPPB"),
    ("no blocks mean none, not all", "0-blocks"),
    ("needs a disk that is write-protected", "not write-protected"),
)


def suite(at: str, family: str) -> tuple[int, int, Counter[str]]:
    """Tests of libiscsi, over two paths: run, failed, and how many left something out by the reason."""
    done = subprocess.run(
        ["iscsi-test-cu", "-d", "-S", "-t", family, at, at], capture_output=True, text=True, timeout=300, check=False
    )
    found = re.search(r"^ +tests +\d+ +(\d+) +\d+ +(\d+)", done.stdout, re.M)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert found, done.stdout[-3000:]
    left: Counter[str] = Counter()
    for part in re.split(r"^  Test: ", done.stdout + done.stderr, flags=re.M)[1:]:
        if said := re.findall(r"\[SKIPPED\] *(.*)", part):
            fits = [why for why, pattern in WHY if any(re.search(pattern, line) for line in said)]
            assert fits, f"a reason that the page does not have: {said}"
            left[fits[0]] += 1
    return int(found[1]), int(found[2]), left


@pytest.mark.parametrize("layer", ["s-block", pytest.param("cmr", marks=pytest.mark.full), "host-aware"])
def test_the_tests_of_libiscsi_and_the_page_that_counts_them(make: Make, layer: str) -> None:
    need("iscsi-test-cu")
    device, port = serve(make, layer=layer, size=1 << 30)
    ran, failed, left = zip(*(suite(url(device, port), f) for f in ("SCSI", "iSCSI")), strict=True)
    reasons = sum(left, Counter[str]())
    assert device.ask("stats")["host"]["errors"] == 0
    counts = [sum(ran), sum(failed), *(reasons[why] for why, _ in WHY)]
    names = ("tests run", "failed", *(f"left out in part: {why}" for why, _ in WHY))
    said = re.search(r"<!-- from tests/device/test_iscsi.py -->\n(\|.*\n)\|.*\n((?:\|.*\n)+)", PAGE.read_text())
    assert said, f"{PAGE} counts no tests"
    column = [name.strip() for name in said[1].split("|")].index(layer)
    rows = [[cell.strip() for cell in line.split("|")] for line in said[2].splitlines()]
    assert [(row[1], row[column]) for row in rows] == list(zip(names, map(str, counts), strict=True))


def test_what_one_client_writes_another_reads_and_nonsense_ends_only_its_own_connection(make: Make) -> None:
    need("qemu-img", "qemu-io", "iscsi-inq")
    device, port = serve(make, layer="s-block")
    if "iscsi" not in run("qemu-img", "--help").stdout.split("Supported formats:")[-1]:
        pytest.skip("QEMU without iSCSI (qemu-block-extra)")
    at = url(device, port)
    run("qemu-io", "-f", "raw", "-c", "write -P 0x5a 4k 300k", "-c", "flush", at)
    with socket.create_connection(("127.0.0.1", port)) as bad:
        bad.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(64))
        bad.settimeout(20)
        assert bad.recv(100) == b""
    run("qemu-io", "-f", "raw", "-c", "read -P 0x5a 4k 300k", "-c", "read -P 0 304k 4k", at)
    uri = device.uri()
    run("qemu-io", "-f", "raw", "-c", "read -P 0x5a 4k 300k", uri)


def test_a_port_that_is_taken_is_said_and_nothing_remains(make: Make) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with pytest.raises(InputError, match=r"--listen iscsi:127\.0\.0\.1:\d+: address already in use"):
            make(store="memory", listen=f"iscsi:127.0.0.1:{s.getsockname()[1]}")
    with pytest.raises(InputError, match="iscsi:HOST:PORT"):
        make(store="memory", listen="iscsi:nowhere")


def test_secrets_let_in_who_knows_them_and_nobody_else(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("iscsi-inq")
    secrets = tmp_path / "secrets"
    secrets.write_text("initiator anna correct-horse-battery\ntarget lab staple-of-the-lab\n")
    secrets.chmod(0o600)
    device, port = serve(make, layer="s-block", chap=str(secrets))
    at = url(device, port)

    def asked(**given: str) -> bool:
        for name in ("CHAP_USERNAME", "CHAP_PASSWORD", "CHAP_TARGET_USERNAME", "CHAP_TARGET_PASSWORD"):
            monkeypatch.delenv(f"LIBISCSI_{name}", raising=False)
        for name, value in given.items():
            monkeypatch.setenv(f"LIBISCSI_CHAP_{name}", value)
        return run("iscsi-inq", at, check=False).returncode == 0

    own = {"USERNAME": "anna", "PASSWORD": "correct-horse-battery"}
    assert asked(**own)
    assert asked(**own, TARGET_USERNAME="lab", TARGET_PASSWORD="staple-of-the-lab")
    assert not asked(**own, TARGET_USERNAME="lab", TARGET_PASSWORD="another-target-it-is")
    assert not asked(USERNAME="anna", PASSWORD="correct-horse-batterx")
    assert not asked()
    assert "staple" not in (device.path / "config.json").read_text()


def test_a_file_of_secrets_that_others_can_read_is_refused(make: Make, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("initiator anna correct-horse-battery\n")
    secrets.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        serve(make, layer="s-block", chap=str(secrets))


def target(device: Device) -> str:
    return f"iqn.2026-01.smrlab:{device.name}"


@pytest.mark.timed
def test_a_device_that_is_stopped_asks_its_initiators_to_log_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """One logs out at once, the other never: it is closed when its time is over, and said."""
    monkeypatch.setattr(devices, "LOGOUT_S", 2)
    device, port = serve(make, layer="cmr")
    for stays in (False, True):
        said: list[str] = []
        with Initiator(port, target(device)) as one, Initiator(port, target(device), "iqn.other") as other:
            began = time.monotonic()
            stopping = threading.Thread(target=device.stop, kwargs={"say": said.append})
            stopping.start()
            for each in (one, other):
                asked = each.take()
                assert (asked.opcode, asked.header[36], asked.header[38:44]) == (ASYNC, 1, bytes([0, 0, 0, 0, 0, 2]))
            one.log_out()
            if stays:
                assert other.take().header[36] == 3
                with pytest.raises(ConnectionError):
                    other.take()
            else:
                other.log_out()
            stopping.join()
            took = time.monotonic() - began
        assert not device.running()
        if stays:
            assert took >= 2
            assert said == [f"{device.name}: iSCSI sessions that did not end in 2 s, and were closed: 1"]
        else:
            assert (took < 2, said) == (True, [])
            device.start()
    device.start()
    with Initiator(port, target(device)) as one:
        device.stop(force=True, say=said.append)
        assert one.take().header[36] == 3
        assert len(said) == 1


def test_others_are_refused_while_a_disk_is_formatted(make: Make) -> None:
    """Clients of the NBD socket get EIO until it is over, and then what the format left: none waits or reads a half."""
    device, port = serve(make, layer="cmr", size=8 << 20)
    text = b"x" * 4096
    sense = bytes([0x03, 0, 0, 0, 18, 0])
    with Client(device.socket()) as client, Initiator(port, target(device)) as host:
        assert client.ask(WRITE, 0, 4096, text)[0] == 0
        assert client.ask(WRITE, 4 << 20, 4096, text)[0] == 0
        device.ask("inject", slow_ns=1_500_000_000)
        # FORMAT UNIT with a short list: IMMED.
        host.send(0x01, bytes([0, 0x02, 0, 0]), flags=0xA0, expected=4, cdb=bytes([0x04, 0x10, 0, 0, 0, 0]))
        assert host.take().header[3] == GOOD
        began = time.monotonic()
        refused = [client.ask(READ, 0, 4096)[0], client.ask(WRITE, 0, 4096, text)[0], client.ask(FLUSH, 0, 0)[0]]
        refused.append(client.ask(ZERO, 0, 4096)[0])
        assert refused == [5, 5, 5, 5]
        status, told = host.ask(bytes(6))
        assert (status, told[2], told[12:14]) == (CHECK_CONDITION, 2, b"\x04\x04")
        assert time.monotonic() - began < 1, "nobody waits"
        while host.ask(sense, 18)[1][12:14] == b"\x04\x04":
            time.sleep(0.05)
        assert host.ask(sense, 18)[1][2] == 0
        device.ask("inject", clear=True)
        for at in (0, 4 << 20):
            assert client.ask(READ, at, 4096) == (0, bytes(4096))
        assert client.ask(WRITE, 0, 4096, text)[0] == 0
        assert client.ask(READ, 0, 4096) == (0, text)
