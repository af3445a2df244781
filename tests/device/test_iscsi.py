"""A served device over iSCSI: other people's tests, two clients, and one that breaks the protocol."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import pytest
from served import Make, need, run
from test_surfaces import free_port

from smrlab.devices import Device
from smrlab.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "iscsi.md"


def url(device: Device, port: int) -> str:
    return f"iscsi://127.0.0.1:{port}/iqn.2026-01.smrlab:{device.name}/0"


def serve(make: Make, store: str = "memory", **config: object) -> tuple[Device, int]:
    port = free_port()
    return make(store=store, listen=f"iscsi:127.0.0.1:{port}", **config), port


def suite(at: str, family: str) -> tuple[int, int, int]:
    """Tests of libiscsi: run, failed, and those that left something out."""
    done = subprocess.run(
        ["iscsi-test-cu", "-d", "-V", "-t", family, at], capture_output=True, text=True, timeout=300, check=False
    )
    found = re.search(r"^ +tests +\d+ +(\d+) +\d+ +(\d+)", done.stdout, re.M)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert found, done.stdout[-3000:]
    parts = re.split(r"^  Test: ", done.stdout + done.stderr, flags=re.M)[1:]
    return int(found[1]), int(found[2]), sum("[SKIPPED]" in part for part in parts)


def test_the_tests_of_libiscsi_and_the_page_that_counts_them(make: Make) -> None:
    need("iscsi-test-cu")
    device, port = serve(make, layer="s-block")
    ran, failed, skipped = map(sum, zip(*(suite(url(device, port), f) for f in ("SCSI", "iSCSI")), strict=True))
    said = re.search(r"(\d+) tests run, (\d+) failed, (\d+) of them", PAGE.read_text())
    assert said, f"{PAGE} counts no tests"
    assert [int(n) for n in said.groups()] == [ran, failed, skipped]
    assert device.ask("stats")["host"]["errors"] == 0


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
        with pytest.raises(InputError, match=r"iSCSI at 127\.0\.0\.1"):
            make(store="memory", listen=f"iscsi:127.0.0.1:{s.getsockname()[1]}")
    with pytest.raises(InputError, match="iscsi:HOST:PORT"):
        make(store="memory", listen="iscsi:nowhere")
