"""What the benches of served devices share: an nbdkit on one processor, and fio jobs against it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple


class Figures(NamedTuple):
    """Of a job: I/Os a second, MB/s, and the server's microseconds of CPU for an I/O."""

    iops: float
    mb_per_s: float
    cpu_us: float


class Nbdkit:
    """A server on the socket `s` of a directory."""

    def __init__(self, directory: Path, core: str, *what: str) -> None:
        self.socket = directory / "s"
        # The socket is there before anybody listens at it; the file with the process comes after that.
        listening = directory / "pid"
        command = ["taskset", "-c", core, "nbdkit", "-f", "-P", str(listening), "-U", str(self.socket), *what]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
        while not listening.exists():
            if self.process.poll() is not None:
                raise RuntimeError((self.process.stderr.read() if self.process.stderr else b"").decode())
            time.sleep(0.01)

    def cpu_s(self) -> float:
        """Processor time so far, by the clock that Linux keeps of every process."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def fio(self, core: str, rw: str, *options: str) -> Figures:
        """Runs a job on `core`; Ctrl-C in a terminal is for who calls it, not for it."""
        before = self.cpu_s()
        done = subprocess.run(
            ["taskset", "-c", core, "fio", "--name=j", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={self.socket}",
             f"--rw={rw}", "--norandommap", "--output-format=json", *options],
            capture_output=True, text=True, check=False, start_new_session=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"fio: {done.stderr.strip() or done.stdout[-500:]}")
        cpu = self.cpu_s() - before
        job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
        side = job["read"] if "read" in rw else job["write"]
        return Figures(side["iops"], side["bw_bytes"] / 1e6, cpu / max(side["total_ios"], 1) * 1e6)

    def stop(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait()
