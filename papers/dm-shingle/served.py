"""What the emulator costs on a served device, and what the drive under it takes by the model's own clock.

A job is sent to a device that is really served, which records it in the order in which its model got it; replayed on
the drive, back to back at the job's depth, that gives the model's time for it to the nanosecond, whatever the machine
does meanwhile. The emulator's own cost is processor time of the server, against nbdkit's memory plugin as the bare
store in the same round; the bare store runs twice, which is the noise. Both together: the bandwidth of a host that does
one after the other.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "device"), str(ROOT / "benches" / "device")]

from nbdclient import READ, WRITE, Client  # noqa: E402
from serving import Nbdkit  # noqa: E402

from smrlab import _core, server  # noqa: E402
from smrlab.errors import Interrupted, MissingError  # noqa: E402

SIZE = 128 << 20
DEPTH = 16
CORE = "0"
# In milliseconds: fio takes a fraction of a second for none.
RUN = "--runtime=%.0fms"
Doc = dict[str, Any]


class Server(Nbdkit):
    """The bare store, or a raw device with head width k; each connection has so many threads."""

    def __init__(self, name: str, drive: str, threads: int, **config: Any) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="df-", dir="/dev/shm"))
        what = ["memory", str(SIZE)]
        if name.startswith("k"):
            path = self.directory / "config.json"
            doc = {"name": "figure", "drive": drive, "layer": f"raw,tracks={name[1:]}", "store": "memory"}
            path.write_text(json.dumps(doc | config))
            what = [str(server.plugin()), f"config={path}"]
        super().__init__(self.directory, CORE, "--threads", str(threads), *what)

    def stop(self) -> None:
        """Ends it, and leaves nothing behind."""
        super().stop()
        shutil.rmtree(self.directory)


def _go_on(control: _core.Control) -> None:
    """Ends here where Ctrl-C came: what is under way is no run, and its servers are stopped."""
    if control.cancelled():
        raise Interrupted("interrupted")


def _requests(spec: Doc, size: int) -> list[int]:
    """Where the requests of a job begin: in order, anywhere, or in order within bands chosen at random."""
    rng = random.Random(1)
    block, bands = spec["block"], spec["bands"]
    if spec["rw"].startswith("rand"):
        return [rng.randrange(size // block) * block for _ in range(spec["requests"])]
    each = size // bands // block * block
    at = [band * each for band in range(bands)]
    out = []
    for _ in range(spec["requests"]):
        band = rng.randrange(bands)
        out.append(at[band])
        at[band] += block
    return out


def _record(spec: Doc, k: int, path: Path, control: _core.Control) -> None:
    """Sends the job to a served device, which leaves its capture at `path`."""
    # A thousand times as fast as the drive: only the order of what comes is kept, the times are those of the replay.
    server = Server(f"k{k}", spec["drive"], 1, record=str(path), timing="model", speed=1000.0)
    try:
        with Client(server.socket) as client:
            kind = READ if "read" in spec["rw"] else WRITE
            data = b"" if kind == READ else bytes(spec["block"])
            for at in _requests(spec, client.size):
                _go_on(control)
                error, _ = client.ask(kind, at, spec["block"], data)
                if error:
                    raise RuntimeError(f"the device answered with error {error}")
    finally:
        server.stop()


def _modelled(spec: Doc, k: int, control: _core.Control) -> tuple[float, float]:
    """Microseconds a request and MB/s of the model's time."""
    with tempfile.TemporaryDirectory(prefix="df-") as folder:
        path = Path(folder) / "capture.parquet"
        _record(spec, k, path, control)
        run = {"drive": spec["drive"], "layer": f"raw,tracks={k}", "trace": [str(path)], "mechanics": "full",
               "arrivals": f"closed,depth={DEPTH}"}  # fmt: skip
        doc = json.loads(_core.run(json.dumps(run), control, None, None)[0])
    return doc["makespan_s"] / spec["requests"] * 1e6, doc["mb_per_s"]


def _cost(spec: Doc, names: list[str], control: _core.Control) -> dict[str, float]:
    """Microseconds of the server's processor time a request more than the bare store's: medians over the rounds."""
    jobs = 1 if spec["rw"].startswith("rand") else spec["bands"]
    depth = max(1, DEPTH // jobs)
    # A thread for each request under way: to start more, each with a buffer, costs more than the requests do.
    servers: dict[str, Server] = {}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    with ExitStack() as running:
        for name in names:
            servers[name] = Server(name, spec["drive"], depth, size=SIZE + (64 << 20))
            running.callback(servers[name].stop)
        each = SIZE // jobs // spec["block"] * spec["block"]
        how = [f"--bs={spec['block']}", f"--iodepth={depth}", f"--size={each}", "--thread",
               f"--numjobs={jobs}", f"--offset_increment={each}", "--group_reporting"]  # fmt: skip
        for server in servers.values():
            _go_on(control)
            server.fio(CORE, "write", "--bs=1M", f"--size={SIZE}")
        for number in range(spec["rounds"]):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                _go_on(control)
                found = servers[name].fio(CORE, spec["rw"], *how, RUN % (1e3 * spec["seconds"]), "--time_based")
                cpu[name].append(found.cpu_us)
    bare = cpu["bare"]
    more = {name: statistics.median(a - b for a, b in zip(cpu[name], bare, strict=True)) for name in names}
    return more | {"bare": statistics.median(bare)}


def job(spec: Doc, control: _core.Control) -> Doc:
    """One job: the drive's time, and for each k the emulator's cost and the bandwidth with it."""
    missing = [p for p in ("nbdkit", "fio", "taskset") if shutil.which(p) is None]
    if missing:
        raise MissingError(f"missing: {', '.join(missing)}: apt-get install nbdkit fio util-linux")
    ks = spec["ks"]
    times = {k: _modelled(spec, k, control) for k in sorted({ks[0], ks[-1]})}
    us, rate = times[ks[-1]]
    cost = _cost(spec, ["bare", "again", *(f"k{k}" for k in ks)], control)
    noise = abs(cost["again"])
    doc: Doc = {
        "disk": {"us": us, "mb_per_s": rate}, "same": float(len({t for t, _ in times.values()}) == 1),
        "bare_us": cost["bare"], "noise_us": noise, "noise": noise / us, "k": ks,
    }  # fmt: skip
    for k in ks:
        more = cost[f"k{k}"]
        doc[f"k{k}"] = {"more_us": more, "ratio": us / (us + more), "mb_per_s": rate * us / (us + more)}
    doc["ratio"] = [doc[f"k{k}"]["ratio"] for k in ks]
    doc["more_us"] = [doc[f"k{k}"]["more_us"] for k in ks]
    return doc
