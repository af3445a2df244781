"""The ways to a device: TCP with TLS, large blocks, holes, nonsense on the wire, and what `create` says to type."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nbdclient import CACHE, FLUSH, READ, REQUEST, STATUS, TRIM, WRITE, ZERO, Client, Gone
from served import Make, can_loop, need, run

from smrlab.devices import Device
from smrlab.errors import InputError, MissingError

CERTIFICATES = {
    "ca": "cn = test\nca\ncert_signing_key\n",
    "server": "cn = localhost\ndns_name = localhost\nip_address = 127.0.0.1\ntls_www_server\nsigning_key\n",
    "client": "cn = somebody\ntls_www_client\nsigning_key\n",
}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def certificates(at: Path) -> Path:
    """A directory with an authority, and a server's and a client's certificate."""
    at.mkdir()
    for name, template in CERTIFICATES.items():
        (at / f"{name}.info").write_text(template)
        run("certtool", "--generate-privkey", "--key-type", "ecdsa", "--outfile", at / f"{name}-key.pem")
        signer = ["--generate-self-signed"] if name == "ca" else ["--generate-certificate"]
        if name != "ca":
            signer += ["--load-ca-certificate", str(at / "ca-cert.pem"), "--load-ca-privkey", str(at / "ca-key.pem")]
        run("certtool", *signer, "--load-privkey", at / f"{name}-key.pem", "--template", at / f"{name}.info",
            "--outfile", at / f"{name}-cert.pem")  # fmt: skip
    return at


def round_trip(uri: str, tmp_path: Path) -> None:
    """An image goes there and comes back."""
    (tmp_path / "in").write_bytes(random.Random(1).randbytes(3 << 20) + bytes(61 << 20))
    run("nbdcopy", tmp_path / "in", uri)
    run("nbdcopy", uri, tmp_path / "out")
    length = (tmp_path / "in").stat().st_size
    assert (tmp_path / "out").read_bytes()[:length] == (tmp_path / "in").read_bytes()


def test_tls_with_certificates(make: Make, tmp_path: Path) -> None:
    need("certtool", "nbdinfo", "nbdcopy")
    own, other = certificates(tmp_path / "own"), certificates(tmp_path / "other")
    port = free_port()
    device = make(listen=f"tcp:127.0.0.1:{port}", tls={"certificates": str(own)}, layer="cmr")
    round_trip(device.uri(), tmp_path)
    assert run("nbdinfo", f"nbd://127.0.0.1:{port}", check=False).returncode != 0, "a plain client came in"
    foreign = f"nbds://127.0.0.1:{port}/?tls-certificates={other}"
    assert run("nbdinfo", foreign, check=False).returncode != 0, "another authority's client came in"
    (other / "ca-cert.pem").write_bytes((own / "ca-cert.pem").read_bytes())
    for file in ("client-cert.pem", "client-key.pem"):
        (other / file).unlink()
    assert run("nbdinfo", foreign, check=False).returncode != 0, "a client without a certificate came in"


def test_tls_with_keys(make: Make, tmp_path: Path) -> None:
    need("psktool", "nbdinfo", "nbdcopy")
    keys, wrong = tmp_path / "keys", tmp_path / "wrong"
    for path in (keys, wrong):
        run("psktool", "-u", "alice", "-p", path)
    port = free_port()
    device = make(listen=f"tcp:127.0.0.1:{port}", tls={"psk": str(keys)}, layer="cmr")
    round_trip(device.uri(), tmp_path)
    assert run("nbdinfo", f"nbd://127.0.0.1:{port}", check=False).returncode != 0, "a plain client came in"
    uri = f"nbds://alice@127.0.0.1:{port}/?tls-psk-file={wrong}"
    assert run("nbdinfo", uri, check=False).returncode != 0, "a wrong key was taken"


def smrlab(*args: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The command line, as a process of its own."""
    program = "import sys; from smrlab.cli import main; sys.exit(main())"
    return run(sys.executable, "-c", program, *args, check=check)


def create(name: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    drive = Path(__file__).parent / "drive.toml"
    return smrlab("device", "create", name, "--drive", drive, "--size", "512MiB", *args)


def test_tcp_works_with_a_warning(make: Make, tmp_path: Path) -> None:
    need("nbdinfo")
    port = free_port()
    done = create("t", "--layer", "cmr", "--listen", f"tcp:127.0.0.1:{port}")
    assert "without TLS" in done.stderr
    assert f"nbd-client 127.0.0.1 {port}" in done.stdout
    round_trip(f"nbd://127.0.0.1:{port}", tmp_path)
    with pytest.raises(InputError, match="in use"):
        make("second", listen=f"tcp:127.0.0.1:{port}")
    for wrong in ("tcp:127.0.0.1", "tcp::10809", "127.0.0.1:1", "tcp:127.0.0.1:99999"):
        with pytest.raises(InputError, match="tcp:HOST:PORT"):
            make("wrong", listen=wrong)


def test_what_create_says_to_type_next(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line as it stands, in a shell, where its program is there and needs no kernel module that is not."""
    need("nbdcopy", "fio", "nbdfuse", "losetup")
    can_loop()
    said = create("d", "--layer", "cmr").stdout
    lines = [line.split("   #")[0].strip() for line in said.splitlines() if line.startswith("  ")]
    by_program = {line.split()[0]: line for line in lines}
    wanted = {"nbdcopy", "fio", "qemu-img", "qemu-system-x86_64", "nbdfuse", "losetup", "nbd-client", "nbdublk"}
    assert wanted | {"smrlab"} <= set(by_program), said
    (tmp_path / "IMAGE").write_bytes(random.Random(2).randbytes(1 << 20))
    (tmp_path / "DIR").mkdir()
    monkeypatch.chdir(tmp_path)

    def shell(program: str) -> subprocess.CompletedProcess[str]:
        return run("sh", "-c", by_program[program])

    shell("nbdcopy")
    with Client(Device.named("d").socket()) as client:
        assert client.ask(READ, 0, 1 << 20)[1] == (tmp_path / "IMAGE").read_bytes()
    shell("fio")
    assert Device.named("d").ask("stats")["host"]["bytes_written"] > 100_000_000
    fuse = subprocess.Popen(["sh", "-c", by_program["nbdfuse"] + " wait"])
    while not (tmp_path / "DIR/disk").exists():
        assert fuse.poll() is None
        time.sleep(0.01)
    loop = shell("losetup").stdout.strip()
    assert int(run("blockdev", "--getsize64", loop).stdout) == Device.named("d").ask("info")["size"]
    run("losetup", "-d", loop)
    run("fusermount3", "-u", tmp_path / "DIR")
    fuse.wait(10)


def test_the_lines_for_qemu(make: Make) -> None:
    need("qemu-img", "qemu-system-x86_64")
    said = create("d", "--layer", "cmr").stdout
    lines = {line.split()[0]: line.strip() for line in said.splitlines() if line.startswith("  ")}
    assert "raw" in run("sh", "-c", lines["qemu-img"]).stdout
    qemu = lines["qemu-system-x86_64"].removesuffix("...")
    monitor = subprocess.run(
        ["sh", "-c", f"{qemu} -S -nodefaults -display none -monitor stdio"],
        input="info block\nquit\n", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "nbd" in monitor.stdout, monitor.stdout + monitor.stderr


def test_holes_are_told_and_images_compare(make: Make, tmp_path: Path) -> None:
    need("nbdinfo", "qemu-img", "nbdcopy")
    for layer in ("raw,tracks=1", "cmr", "s-block", "disk-cache", "static-R(4123)"):
        device = make(re.sub(r"\W", "-", layer), layer=layer)
        size = device.ask("info")["size"] >> 20 << 20
        image = tmp_path / "in"
        with image.open("wb") as f:
            f.truncate(size)
            for at in (0, 5 << 20, 9 << 20):
                f.seek(at)
                f.write(random.Random(at).randbytes(1 << 20))
        with Client(device.socket()) as client:
            if layer in ("s-block", "disk-cache"):
                # They know what was discarded, but not what was never written.
                assert client.ask(TRIM, 0, size)[0] == 0
            for at in (0, 5 << 20, 9 << 20):
                assert client.ask(WRITE, at, 1 << 20, image.read_bytes()[at : at + (1 << 20)])[0] == 0
        extents = json.loads(run("nbdinfo", "--json", "--map", device.uri()).stdout)
        holes = sum(e["length"] for e in extents if e["type"] == 3)
        data = {(e["offset"], e["length"]) for e in extents if e["type"] == 0}
        assert holes >= size - (4 << 20), (layer, extents)
        assert sum(n for _, n in data) >= 3 << 20
        run("nbdcopy", device.uri(), tmp_path / "out")
        assert (tmp_path / "out").read_bytes()[:size] == image.read_bytes(), layer
        run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", device.uri(), tmp_path / "q")
        run("qemu-img", "compare", "-f", "qcow2", "-F", "raw", tmp_path / "q", device.uri())
        device.stop()


def test_blocks_of_4096(make: Make) -> None:
    device = make(layer="s-block", block=4096)
    with Client(device.socket()) as client:
        assert client.size % 4096 == 0
        for kind in (READ, WRITE, TRIM, ZERO):
            assert client.ask(kind, 0, 512, bytes(512) if kind == WRITE else b"")[0] == 22
            assert client.ask(kind, 512, 4096, bytes(4096) if kind == WRITE else b"")[0] == 22
            assert client.ask(kind, 4096, 4096, bytes(4096) if kind == WRITE else b"")[0] == 0


def test_requests_that_are_wrong_get_an_error(make: Make) -> None:
    """Out of range, misaligned, huge, unknown: an error, and the connection goes on."""
    device = make(layer="rmw")
    pid = device.pid()
    with Client(device.socket()) as client:
        end = client.size
        for offset, length in (
            (end, 512),
            (end - 512, 1024),
            (1 << 62, 512),
            ((1 << 64) - 512, 1024),
            (1, 512),
            (0, 7),
        ):
            for kind in (READ, TRIM, ZERO):
                assert client.ask(kind, offset, length)[0] != 0, (kind, offset, length)
            assert client.ask(WRITE, offset, length, bytes(length))[0] != 0
        assert client.ask(READ, 0, (64 << 20) + 512)[0] != 0
        assert client.ask(TRIM, 0, 0xFFFFFE00)[0] != 0
        assert client.ask(99, 0, 512)[0] != 0
        assert client.ask(STATUS, 0, 512)[0] != 0
        assert client.ask(FLUSH, 0, 0, flags=0xFFFF)[0] != 0
        assert client.ask(WRITE, 512, 512, b"x" * 512) == (0, b"")
        assert client.ask(READ, 512, 512) == (0, b"x" * 512)
        # A write larger than any that is served has to be read to its end, or the connection ends.
        client.send(WRITE, 0, 0xFFFFFFFF)
        client.socket.settimeout(1)
        with contextlib.suppress(Gone):
            client.raw(bytes(1 << 20))
        with pytest.raises((Gone, TimeoutError)):
            client.reply()
    assert device.pid() == pid
    with Client(device.socket()) as client:
        assert client.ask(READ, 512, 512) == (0, b"x" * 512)


def test_nonsense_on_the_wire_harms_nobody(make: Make) -> None:
    """Cut-off and garbled conversations, beside a client that goes on undisturbed."""
    device = make(layer="s-block")
    rng = random.Random(3)
    with Client(device.socket()) as good:
        assert good.ask(WRITE, 0, 4096, b"g" * 4096)[0] == 0
        half = struct.pack(">IHHQQI", REQUEST, 0, WRITE, 1, 4096, 65536)
        beginnings = [b"", b"\0\0\0\1", b"\0\0\0\3", b"\0\0\0\3IHAVEOPT", b"\xff" * 4, b"GET / HTTP/1.0\r\n\r\n"]
        for begin in beginnings:
            for tail in (b"", rng.randbytes(10), rng.randbytes(5000), struct.pack(">QII", 1, 7, 0xFFFFFFFF)):
                with Client(device.socket(), handshake=False) as bad, contextlib.suppress(Gone, OSError):
                    bad.raw(begin + tail)
                    bad.socket.shutdown(socket.SHUT_WR)
        for wire in (half, half + b"w" * 1000, half[:9], rng.randbytes(28), rng.randbytes(3000), half * 3):
            with Client(device.socket()) as bad, contextlib.suppress(Gone):
                bad.raw(wire)
        for _ in range(200):
            with Client(device.socket()) as bad:
                kind, offset = rng.randrange(12), rng.choice([1 << 20, rng.getrandbits(64)])
                bad.send(kind, offset, rng.choice([0, 512, rng.getrandbits(32)]), b"", rng.getrandbits(16))
        assert good.ask(READ, 0, 4096) == (0, b"g" * 4096)
        assert good.ask(CACHE, 0, 4096)[0] in (0, 22)
    for line in (b"\n", b"{}\n", b"[[[[\n", b"\xff\xfe\n", b'{"cmd":"info"', b"x" * 100_000 + b"\n"):
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(device.path / "control.sock"))
            control.sendall(line)
            if line.endswith(b"\n"):
                control.makefile("rb").readline()
    assert device.ask("info")["name"] == "d"


def test_sockets_are_private(make: Make) -> None:
    device = make()
    assert device.path.stat().st_mode & 0o077 == 0
    # Whoever may not write to a socket cannot connect.
    for path in (device.socket(), device.path / "control.sock"):
        assert path.stat().st_mode & 0o022 == 0, path
    assert device.socket().owner() == getpass.getuser() or os.geteuid() == 0


def test_checksums_of_an_image_over_a_restart(make: Make, tmp_path: Path) -> None:
    """nbdcopy there, stop, start, nbdcopy back: the same, and the same by qemu-img."""
    need("nbdcopy", "qemu-img")
    device = make(layer="disk-cache")
    size = device.ask("info")["size"] >> 20 << 20
    (tmp_path / "in").write_bytes(random.Random(8).randbytes(size))
    run("nbdcopy", "--flush", tmp_path / "in", device.uri())
    device.stop()
    device.start()
    run("nbdcopy", device.uri(), tmp_path / "out")
    sums = [hashlib.sha256((tmp_path / name).read_bytes()[:size]).hexdigest() for name in ("in", "out")]
    assert sums[0] == sums[1]


def test_synchronous_writes_through_fuse_are_fua(make: Make, tmp_path: Path) -> None:
    """The file's flags and those of a single write; fsync is a flush, and other writes are neither."""
    if not Path("/dev/fuse").exists():
        pytest.skip("needs /dev/fuse")
    device = make(layer="cmr")
    at = tmp_path / "m"
    at.mkdir()
    file, _ = device.mount(at)
    before = device.ask("stats")["host"]["flushes"]

    def counts() -> tuple[int, int]:
        host = device.ask("stats")["host"]
        return host["fua"], host["flushes"] - before

    plain, dsync = os.open(file, os.O_RDWR), os.open(file, os.O_RDWR | os.O_DSYNC)
    try:
        os.pwrite(plain, bytes(4096), 0)
        assert counts() == (0, 0)
        for n, flag in enumerate((os.RWF_DSYNC, os.RWF_SYNC), start=1):
            os.pwritev(plain, [bytes(4096)], 4096, flag)
            assert counts() == (n, 0)
        os.pwrite(dsync, bytes(4096), 8192)
        assert counts() == (3, 0)
        os.fsync(plain)
        assert counts() == (3, 1)
    finally:
        os.close(plain)
        os.close(dsync)
        device.unmount(at)


def test_a_kernel_without_ublk_is_told_in_one_sentence(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from smrlab import attached

    device = make(store="memory")
    monkeypatch.setattr(attached, "CONTROL", tmp_path / "none")
    with pytest.raises(MissingError, match=r"^this kernel offers no ublk: .*modprobe ublk_drv.*device mount d DIR$"):
        attached.attach(device)
    with pytest.raises(InputError, match="d is not attached: smrlab device attach d"):
        attached.detach(device)
    with pytest.raises(InputError, match=r"opening /dev/ublk-control|ublk is too old|making a device"):
        device.ask("attach", number=4000)
    device.stop()
