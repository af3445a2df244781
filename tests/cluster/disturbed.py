"""Studies that are disturbed: workers and schedulers killed, a store that answers with errors, several clients at once.

    python tests/cluster/disturbed.py [--rounds N] [--page docs/studies-disturbed.md]

Each round makes the same study as an undisturbed one and compares every byte of all results. Counts go onto the page.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))

import clusters  # noqa: E402

STUDY = {
    "base": {"drive": "modern-7200,capacity=20GB", "trace": ["s3://lab/t.parquet"], "wrap": "capacity"},
    "grid": {"layer": ["rmw", "s-block"], "stall": ["100ms", "200ms", "500ms"]},
    "seeds": 4,
}
RUNS = 24
CODE = (
    "import json, sys, smrlab\n"
    "o = smrlab.sweep(json.load(open(sys.argv[1])), out=sys.argv[2], scheduler=sys.argv[3] or None).outcome\n"
    "print(json.dumps([o.finished, o.reused, len(o.failed)]))"
)


@dataclass
class Round:
    """What was done to a study, and what came of it."""

    name: str
    killed: int = 0
    errors: int = 0
    finished: int = 0
    equal: bool = False
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


class Flaky:
    """A store that answers one request in `every` with an error, and one with a pause."""

    def __init__(self, app: Any) -> None:
        self.app, self.every, self.errors, self.rng = app, 0, 0, random.Random(1)

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        draw = self.rng.random() * self.every if self.every else 2.0
        if draw < 1.0:
            self.errors += 1
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"]
        if self.every and draw < 1.2:
            time.sleep(0.5)
        return self.app(environ, start)


@contextmanager
def store() -> Iterator[Flaky]:
    """An S3-compatible server that can be made to fail."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    flaky = Flaky(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, flaky, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    import fsspec

    fsspec.filesystem("s3").mkdir("lab")
    yield flaky
    server.shutdown()


def client(spec: Path, out: str, scheduler: str) -> subprocess.Popen[str]:
    """Somebody who makes the study."""
    command = [sys.executable, "-c", CODE, str(spec), out, scheduler]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ended(who: subprocess.Popen[str]) -> tuple[int, int, int]:
    """What became of it: finished, reused, failed."""
    said, _ = who.communicate(timeout=900)
    finished, reused, failed = json.loads(said.strip().splitlines()[-1]) if said.strip() else (0, 0, -1)
    return finished, reused, failed


def workers_die(spec: Path, out: str, folder: Path, told: Round, rng: random.Random) -> None:
    """A worker at a time is killed and replaced while the study goes on."""
    dask = clusters.Processes(folder)
    dask.more(4)
    who = client(spec, out, dask.address)
    while who.poll() is None:
        time.sleep(rng.uniform(1.0, 4.0))
        if who.poll() is None and told.killed < 12:
            victim = dask.workers.pop(rng.randrange(len(dask.workers)))
            victim.kill()
            victim.wait()
            told.killed += 1
            dask.more(1)
    told.finished = ended(who)[0]
    dask.end()


def scheduler_dies(spec: Path, out: str, folder: Path, told: Round, rng: random.Random) -> None:
    """The scheduler and all workers are killed in the middle, and come back at the same address."""
    port = 20_000 + rng.randrange(20_000)
    dask = clusters.Processes(folder, port=port)
    dask.more(3)
    who = client(spec, out, dask.address)
    from smrlab.sweeps import Store

    clusters.until(lambda: Store(out).times("points", "result.json") or who.poll() is not None, 300)
    dask.end()
    told.killed += 4
    dask = clusters.Processes(folder, port=port)
    dask.more(3)
    told.finished = ended(who)[0]
    dask.end()


def store_fails(spec: Path, out: str, folder: Path, told: Round, flaky: Flaky) -> None:
    """One request in ten gets an error, one in fifty a pause."""
    dask = clusters.Processes(folder)
    dask.more(3)
    flaky.every, before = 10, flaky.errors
    who = client(spec, out, dask.address)
    told.finished = ended(who)[0]
    flaky.every, told.errors = 0, flaky.errors - before
    dask.end()


def clients_meet(spec: Path, out: str, folder: Path, told: Round) -> None:
    """Two clients of one cluster and one with a local pool make the study at the same time."""
    dask = clusters.Processes(folder)
    dask.more(3)
    several = [client(spec, out, where) for where in (dask.address, dask.address, "")]
    done = [ended(who) for who in several]
    told.finished = sum(d[0] for d in done)
    told.notes.append("finished and found by each: " + ", ".join(f"{f} + {r}" for f, r, _ in done))
    dask.end()


def make(spec: Path, folder: Path, flaky: Flaky, rounds: int) -> list[Round]:
    """The undisturbed study and `rounds` of each disturbance."""
    import smrlab

    smrlab.Trace.synth("hotcold", requests=60_000, interarrival="10ms", span="15GB").save(folder / "t.parquet")
    import fsspec

    fsspec.filesystem("s3").put_file(str(folder / "t.parquet"), "lab/t.parquet")
    smrlab.sweep(STUDY, out="s3://lab/calm")
    calm = clusters.digest(clusters.files_of("s3://lab/calm"))
    found = []
    for number in range(rounds):
        rng = random.Random(number)
        for name, disturb, more in (
            ("workers killed", workers_die, (rng,)),
            ("scheduler killed", scheduler_dies, (rng,)),
            ("store with errors", store_fails, (flaky,)),
            ("three clients at once", clients_meet, ()),
        ):
            told = Round(name)
            out = f"s3://lab/{name.replace(' ', '-')}-{number}"
            start = time.monotonic()
            disturb(spec, out, folder, told, *more)  # type: ignore[operator]
            told.seconds = time.monotonic() - start
            with suppress(FileNotFoundError):
                told.equal = clusters.digest(clusters.files_of(out)) == calm
            print(told, file=sys.stderr, flush=True)
            found.append(told)
    return found


def page(found: list[Round]) -> str:
    """The counts as a page."""
    lines = [
        "# Disturbed studies", "",
        "Made by `make test-cluster`: each round is a study of 24 runs on Dask workers and an S3-compatible server,",
        "disturbed, and compared with an undisturbed one, byte by byte (documents, tables, the table of the",
        "study). How it is done: `tests/cluster/disturbed.py`.", "",
        "| disturbance | rounds | processes killed | errors of the store | runs done in all | needed | equal |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in dict.fromkeys(r.name for r in found):
        rounds = [r for r in found if r.name == name]
        sums = [sum(getattr(r, key) for r in rounds) for key in ("killed", "errors", "finished", "equal")]
        needed = RUNS * len(rounds)
        lines.append(
            f"| {name} | {len(rounds)} | {sums[0]} | {sums[1]} | {sums[2]} | {needed} | {sums[3]} of {len(rounds)} |"
        )
    lines += ["", "*Runs done in all* counts what clients were told of as done, not found: runs that ended as their",
              "client or scheduler died are found by the next attempt.", ""]  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    """Makes all rounds; 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, store() as flaky:
        folder = Path(made)
        os.environ["SMRLAB_INPUTS"] = str(folder / "inputs")
        spec = folder / "study.json"
        spec.write_text(json.dumps(STUDY))
        found = make(spec, folder, flaky, args.rounds)
    text = page(found)
    if args.page:
        args.page.write_text(text)
    print(text)
    return 0 if all(r.equal for r in found) else 1


if __name__ == "__main__":
    sys.exit(main())
