"""A guest of QEMU with an unmodified Debian kernel, which has the host's programs and runs one shell script.

The guest's root is the host's, read only, over 9p: what is installed here is there, with its libraries. Its kernel is
what tools/guest-kernel.sh unpacked. `/mnt/shared` is a directory of the test's, `/mnt/tmp` is in memory.
"""

from __future__ import annotations

import lzma
import os
import selectors
import stat
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from served import need

ROOT = Path(__file__).parents[2]
Answers = dict[str, Callable[[], object]]
Scripts = Mapping[str, Mapping[str, object]]

KERNELS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "kernels"

GUESTS = Path(__file__).parent / "guests"

# What guests/init.sh says first. A kernel that does not come so far is started again: now and then one dies in QEMU
# 7.2's emulation while it changes its own instructions ("int3").
STARTED = "guest: started"
BOOTS = 3


def entry(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """A file of an archive in cpio's format `newc`."""
    word = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(word), 0)
    head = b"070701" + b"".join(b"%08X" % v for v in fields) + word
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def archive(kernel: Path, release: str) -> bytes:
    """The root that the kernel starts with: busybox, 9p, and guests/init.sh."""
    show = ["modprobe", "-d", str(kernel), "-S", release, "--show-depends", "-a", "virtio_pci", "9p", "9pnet_virtio"]
    lines = subprocess.run(show, capture_output=True, text=True, check=True).stdout.splitlines()
    files = list(dict.fromkeys(Path(line.split()[1]) for line in lines if line.startswith("insmod")))
    folders = [entry(d, stat.S_IFDIR | 0o755) for d in ("bin", "dev", "host")]
    parts = [*folders, entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))]
    parts.append(entry("bin/busybox", stat.S_IFREG | 0o755, Path("/bin/busybox").read_bytes()))
    for file in files:
        data = file.read_bytes()
        parts.append(entry(file.name, stat.S_IFREG | 0o644, lzma.decompress(data) if file.suffix == ".xz" else data))
    init = (GUESTS / "init.sh").read_text().replace("MODULES", " ".join(file.name for file in files))
    return b"".join([*parts, entry("init", stat.S_IFREG | 0o755, init.encode()), entry("TRAILER!!!", 0)])


def accelerator() -> list[str]:
    """KVM where the processor has what it is made of: where that is emulated, QEMU 7.2 does not boot a kernel with it.

    Without KVM cx16 is off: QEMU 7.2's own emulation of it breaks 6.12. Off as well is what has programs and the kernel
    copy by an instruction for single bytes (erms, fsrm): emulated, it is several times slower than a loop.
    """
    flags = Path("/proc/cpuinfo").read_text().split()
    real = ("vmx" in flags or "svm" in flags) and os.access("/dev/kvm", os.R_OK | os.W_OK)
    emulated = ["-accel", "tcg,thread=multi", "-cpu", "max,cx16=off,erms=off,fsrm=off"]
    return ["-accel", "kvm", "-cpu", "host"] if real else emulated


def series(name: str = "6.12") -> tuple[Path, str]:
    """Where a kernel is, and its release; skips where it, or QEMU, is not to be had."""
    need("qemu-system-x86_64", "modprobe", "busybox")
    if os.geteuid() != 0:
        pytest.skip("needs root: the guest runs the host's programs as root")
    place = KERNELS / name
    if not (place / "release").is_file():
        pytest.skip(f"no kernel {name}: tools/guest-kernel.sh {name} {place}")
    return place, (place / "release").read_text().strip()


class Guest:
    """A machine with disks of a served device, for one script."""

    def __init__(self, shared: Path, kernel: str = "6.12", memory_mib: int = 768, processors: int = 2) -> None:
        self.shared = shared
        self.kernel, self.release = series(kernel)
        self.memory = memory_mib
        # One where speed counts: emulated, a second one costs half as much again.
        self.processors = processors
        self.disks: list[str] = []
        self.cards: list[str] = []

    def scsi(self, url: str) -> None:
        """A disk of an iSCSI target, whose commands reach the target as the guest's kernel sends them."""
        n = len(self.disks) // 4
        self.disks += ["-drive", f"file={url},if=none,id=disk{n},format=raw", "-device", f"scsi-generic,drive=disk{n}"]

    def network(self) -> None:
        """Gives it a network card: the guest can be 10.0.2.15, and the host's loopback is 10.0.2.2 to it."""
        self.cards = ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"]

    def command(self) -> list[str]:
        """How QEMU is started."""
        (self.shared / "initrd").write_bytes(archive(self.kernel, self.release))
        image = self.kernel / f"boot/vmlinuz-{self.release}"
        shares = [
            "mount_tag=root,path=/,readonly=on,multidevs=remap",
            f"mount_tag=shared,path={self.shared}",
            f"mount_tag=kernel,path={self.kernel},readonly=on",
        ]
        return [
            "qemu-system-x86_64", *accelerator(), "-m", str(self.memory), "-smp", str(self.processors), "-no-reboot",
            "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
            "-kernel", str(image), "-initrd", str(self.shared / "initrd"),
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr",
            *(w for share in shares for w in ("-virtfs", f"local,security_model=none,{share}")),
            "-device", "virtio-scsi-pci", *self.disks, *self.cards,
        ]  # fmt: skip

    def run(self, script: str, limit_s: float, answers: Answers | None = None, **known: object) -> str:
        """Runs a script of guests/ and returns what it printed; fails where it does not end with 0, or not in time.

        `known` are variables of the script. `ask WORD` in it waits until `answers[WORD]` was called here.
        """
        return self.run_all({script: known}, limit_s, answers)

    def run_all(self, scripts: Scripts, limit_s: float, answers: Answers | None = None) -> str:
        """As `run`, several scripts one after the other, each with its variables: the machine starts once."""
        self.give(scripts)
        for _ in range(BOOTS):
            machine = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            try:
                shown = self.follow(machine, time.monotonic() + limit_s, answers or {})
            finally:
                machine.kill()
                machine.wait()
            if STARTED in shown:
                break
        assert "guest: status 0" in shown, f"after {limit_s:.0f} s at most:\n{shown[-4000:]}"
        return shown

    def give(self, scripts: Scripts) -> None:
        """Puts scripts of guests/ where the guest finds them, each in a shell of its own with its variables."""
        parts = [(GUESTS / "prelude.sh").read_text()]
        for name, known in scripts.items():
            parts += ["(\n", *(f"{k}={v}\n" for k, v in known.items()), (GUESTS / name).read_text(), ")\nrm -rf ./*\n"]
        (self.shared / "script").write_text("".join(parts))

    def cut(self, script: str, limit_s: float, due: Callable[[], bool], **known: object) -> None:
        """Runs a script of guests/ and cuts the machine's power when that is `due`; fails where it ends before."""
        self.give({script: known})
        until = time.monotonic() + limit_s
        path = self.shared / "console"
        for _ in range(BOOTS):
            with path.open("wb") as console:
                machine = subprocess.Popen(
                    self.command(), stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT
                )
            try:
                while machine.poll() is None and not due():
                    assert time.monotonic() < until, f"nothing after {limit_s:.0f} s:\n{path.read_text()[-4000:]}"
                    time.sleep(0.05)
            finally:
                machine.kill()
                machine.wait()
            shown = path.read_text(errors="replace")
            if due():
                return
            assert STARTED not in shown, f"it ended before:\n{shown[-4000:]}"
        pytest.fail(f"no kernel started:\n{shown[-4000:]}")

    def follow(self, machine: subprocess.Popen[bytes], until: float, answers: Answers) -> str:
        """Reads the console until the machine ends or the time is over; answers what is asked."""
        assert machine.stdout is not None
        shown, seen = b"", 0
        with (self.shared / "console").open("wb", buffering=0) as console, selectors.DefaultSelector() as ready:
            ready.register(machine.stdout, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0:
                if not ready.select(left):
                    break
                more = os.read(machine.stdout.fileno(), 1 << 16)
                if not more:
                    break
                console.write(more)
                shown += more
                *lines, _ = shown[seen:].split(b"\n")
                seen += sum(len(line) + 1 for line in lines)
                for line in lines:
                    if b"guest: ask " in line:
                        answers[line.split(b"guest: ask ")[1].decode().strip()]()
                        (self.shared / "answer").touch()
        return shown.decode(errors="replace").replace("\r", "")
