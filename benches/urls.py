"""A trace read from an S3-compatible server on this machine, against the same from a local file.

python benches/urls.py [--requests N] [--times N]
"""

from __future__ import annotations

import argparse
import gzip
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))

from clusters import until  # noqa: E402

import smrlab  # noqa: E402
from smrlab.urls import BLOCK, Ranges  # noqa: E402


@contextmanager
def server() -> Iterator[None]:
    """The server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "testing",
                   "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}  # fmt: skip
    try:
        until(answers)
        yield
    finally:
        process.kill()
        process.wait()


def timed(trace: str) -> float:
    """Seconds of a run on a conventional drive, which is mostly reading."""
    start = time.perf_counter()
    smrlab.run(trace, drive="modern-7200", layer="cmr", wrap="capacity", arrivals="closed", mechanics="instant")
    return time.perf_counter() - start


def fetched(url: str) -> float:
    """Seconds in which the store gives all of an object, with nobody reading it."""
    start = time.perf_counter()
    source = Ranges(url)
    for offset in range(0, source.size, BLOCK):
        source.read(offset, BLOCK)
    return time.perf_counter() - start


def main() -> None:
    """Prints, for text, packed text and Parquet, the rates and their ratio; contestants take turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4_000_000)
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, server():
        import fsspec

        fsspec.filesystem("s3").mkdir("lab")
        folder = Path(made)
        trace = smrlab.Trace.synth("uniform", requests=args.requests, span="500GB", interarrival="1ms")
        trace.save(folder / "t.parquet")
        lines = "".join(f"{i * 0.001:.3f} 0 {i * 7919 % 10**9} 8 {i % 2}\n" for i in range(args.requests)).encode()
        (folder / "t.trace").write_bytes(lines)
        (folder / "t.trace.gz").write_bytes(gzip.compress(lines, 1))
        for name, form in (("t.trace", ":disksim"), ("t.trace.gz", ":disksim"), ("t.parquet", "")):
            size = (folder / name).stat().st_size
            fsspec.filesystem("s3").put_file(str(folder / name), f"lab/{name}")
            here, there, alone = [], [], []
            for _ in range(args.times):
                here.append(timed(f"{folder / name}{form}"))
                there.append(timed(f"s3://lab/{name}{form}"))
                alone.append(fetched(f"s3://lab/{name}"))
            local, url, store = (size / 1e6 / statistics.median(t) for t in (here, there, alone))
            told = f"local {local:6.1f} MB/s  s3 {url:6.1f} MB/s  {url / local:.2f}  (store alone: {store:.1f})"
            print(f"{name:<12} {size / 1e6:6.1f} MB  {told}")


if __name__ == "__main__":
    main()
