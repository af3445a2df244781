"""A Dask cluster of real processes and an S3-compatible server, for tests."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
# Nothing waits for a beautiful moment, and nobody looks at what Dask measures of itself: that takes a worker that only
# waits a thirtieth of a core.
QUICK = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING_INTERVAL": "100ms",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "20s",
}


def until(there: Callable[[], object], seconds: float = 120.0) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.05)


@contextmanager
def s3() -> Iterator[str]:
    """An S3-compatible server on loopback with the bucket `lab`; its address and keys are in the environment."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        import fsspec

        fsspec.filesystem("s3").mkdir("lab")
        yield f"http://{host}:{port}"
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.stop()


class Processes:
    """A scheduler and its workers, each a process that can be killed; what they say goes into `folder`."""

    def __init__(self, folder: Path, *, nanny: bool = False, port: int = 0) -> None:
        self.folder, self.nanny = folder, nanny
        self.file = folder / f"scheduler-{port}.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.file.unlink(missing_ok=True)
        here = ("--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0")
        self.scheduler = self._start("dask_scheduler", *here, "--scheduler-file", str(self.file))
        # Written in one go, but not at once.
        until(lambda: self.file.is_file() and self.file.read_text().rstrip().endswith("}"))

    def _start(self, what: str, *args: str) -> subprocess.Popen[bytes]:
        log = (self.folder / "dask.log").open("ab")
        command = [sys.executable, "-m", f"distributed.cli.{what}", *args]
        # Workers share prefills, which the tests themselves do not.
        environment = {**os.environ, **QUICK, "SMRLAB_PREFILL_CACHE": str(self.folder / "prefills")}
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=self.folder)

    @property
    def address(self) -> str:
        """Where the scheduler is."""
        import json

        return str(json.loads(self.file.read_text())["address"])

    def more(self, count: int, memory: str = "2GiB") -> None:
        """Starts workers of one thread each."""
        for _ in range(count):
            nanny = "--nanny" if self.nanny else "--no-nanny"
            more = ("--host", "127.0.0.1", "--nthreads", "1", "--memory-limit", memory, "--no-dashboard", nanny)
            self.workers.append(self._start("dask_worker", self.address, *more))

    def end(self) -> None:
        """Ends all of them."""
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait()


def digest(files: dict[str, bytes]) -> str:
    """One digest for all results of a study: what every run wrote, and the table."""
    kept = {
        name: hashlib.sha256(data).hexdigest()
        for name, data in sorted(files.items())
        if name.startswith("points/") or name == "results.parquet"
    }
    return hashlib.sha256(repr(kept).encode()).hexdigest()


def files_of(url: str) -> dict[str, bytes]:
    """The files of a study in a folder or a store."""
    if "://" not in url:
        return {str(p.relative_to(url)): p.read_bytes() for p in Path(url).rglob("*") if p.is_file()}
    import fsspec

    system, root = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    return {name[len(root) + 1 :]: data for name, data in system.cat(system.find(root)).items()}
