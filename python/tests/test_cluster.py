"""Studies on a real Dask scheduler with worker processes, traces and results on a real S3-compatible server."""

from __future__ import annotations

import http.server
import json
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from clusters import SECRET, Processes, digest, files_of, s3, until
from commands import Invoke

import smrlab as lab
from smrlab import sweeps, urls
from smrlab.errors import InputError, MissingError
from smrlab.executors import Piece, chosen, cluster
from smrlab.sweeps.status import status

# One cluster for all of them.
pytestmark = pytest.mark.xdist_group("cluster")
pytest.importorskip("distributed")
pytest.importorskip("moto")

TRACE = "".join(f"{i * 0.01:.2f} 0 {i * 37 % 2400} 8 {i % 2}\n" for i in range(1500))
OWN = """
from smrlab import TranslationLayer

class Own(TranslationLayer):
    def host_blocks(self):
        return 800

    def read(self, lba, blocks, plan):
        plan.read(lba, blocks)

    def write(self, lba, blocks, plan):
        1 / 0
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of this module; the bucket `lab` has a trace."""
    folder = tmp_path_factory.mktemp("cluster")
    patch = pytest.MonkeyPatch()
    patch.setenv("SMRLAB_INPUTS", str(folder / "inputs"))
    patch.setenv("SMRLAB_PREFILL_CACHE", str(folder / "prefills"))
    with s3():
        import gzip

        import fsspec

        fsspec.filesystem("s3").pipe_file("lab/t.trace.gz", gzip.compress(TRACE.encode()))
        yield folder
    patch.undo()


@pytest.fixture(scope="module")
def dask(place: Path) -> Iterator[Processes]:
    processes = Processes(place)
    yield processes
    processes.end()


STUDY = {
    "base": {"drive": "tiny", "trace": ["s3://lab/t.trace.gz:disksim"], "wrap": "capacity", "layer": "rmw"},
    "grid": {"layer.band": ["2tracks", "4tracks"], "stall": ["100ms", "500ms"]},
    "seeds": 2,
}


def test_all_executors_give_the_same_and_what_was_killed_goes_on(place: Path, dask: Processes) -> None:
    """One thread, two, 1, 2 and 4 workers, and a study that was killed: the same bytes of all results."""
    digests = {}
    for jobs in (1, 2):
        assert lab.sweep(STUDY, out=f"s3://lab/local{jobs}", jobs=jobs).outcome.finished == 8
        digests[f"local {jobs}"] = digest(files_of(f"s3://lab/local{jobs}"))
    started = 0
    for workers in (1, 2, 4):
        dask.more(workers - started)
        started = workers
        with chosen(str(dask.file)) as executor:
            executor.client.wait_for_workers(workers, timeout=120)  # type: ignore[attr-defined]
            outcome = sweeps.run_study(sweeps.Study.of(STUDY), sweeps.Store(f"s3://lab/dask{workers}"), executor)
        assert (outcome.finished, outcome.failed) == (8, {})
        digests[f"dask {workers}"] = digest(files_of(f"s3://lab/dask{workers}"))
    digests["killed"] = digest(files_of(killed(place, dask)))
    assert len(set(digests.values())) == 1, digests
    # The trace was read by ranges and made columns once on this machine, whoever asked.
    assert len([p for p in (place / "inputs").iterdir() if p.name.startswith("trace-")]) == 1


def killed(place: Path, dask: Processes) -> str:
    """A study whose client was killed after its first result, and that then was run again."""
    spec = place / "study.json"
    spec.write_text(json.dumps(STUDY))
    out = "s3://lab/killed"
    code = (
        "import json, sys, smrlab; smrlab.sweep(json.load(open(sys.argv[1])), out=sys.argv[2], scheduler=sys.argv[3])"
    )
    client = subprocess.Popen([sys.executable, "-c", code, str(spec), out, dask.address])
    until(lambda: sweeps.Store(out).times("points", "result.json"))
    client.kill()
    client.wait()
    before = len(sweeps.Store(out).times("points", "result.json"))
    again = lab.sweep(STUDY, out=out, scheduler=dask.address)
    assert again.outcome.reused >= before > 0
    assert again.outcome.finished + again.outcome.reused == 8
    return out


def test_the_command_on_a_cluster_and_status_from_anywhere(smrlab: Invoke, place: Path, dask: Processes) -> None:
    dask.more(max(2 - len(dask.workers), 0))
    file = place / "study.toml"
    file.write_text(
        'seeds = 2\n[base]\ndrive = "tiny"\nlayer = "rmw"\nwrap = "capacity"\ntrace = "s3://lab/t.trace.gz:disksim"\n'
        '[grid]\n"layer.band" = ["2tracks", "4tracks"]\n'
    )
    done = smrlab("sweep", file, "--out", "s3://lab/cli", "--scheduler", dask.address, "--json")
    assert done.status == 0, done.err
    assert [p["status"] for p in done.json()["points"]] == ["done"] * 4
    told = smrlab("sweep", "status", "s3://lab/cli", "--json").json()
    assert (told["runs"], told["done"], told["failed"], told["left"], told["running"]) == (4, 4, 0, 0, [])
    shown = smrlab("sweep", "summary", "s3://lab/cli")
    assert "layer.band" in shown.out
    assert "s3://lab/cli/summary.md" in shown.err
    two = ("--layer", "rmw", "--layer", "static-1234")
    compared = smrlab("compare", "--trace", "s3://lab/t.trace.gz:disksim", "--drive", "tiny", *two, "--cluster",
                      dask.address, "--requests", "--out", "s3://lab/compared", "--json")  # fmt: skip
    assert compared.status == 0, compared.err
    here = smrlab("compare", "--trace", "s3://lab/t.trace.gz:disksim", "--drive", "tiny", *two, "--json")
    different = {"requests", "media_log"}
    for one, other in zip(compared.json()["runs"], here.json()["runs"], strict=True):
        assert {k for k in one if one[k] != other[k]} == {"spec"}
        assert {k for k in one["spec"] if one["spec"][k] != other["spec"][k]} <= different
    there = files_of("s3://lab/compared")
    assert {n.rpartition("/")[2] for n in there} >= {
        "result.json",
        "requests.parquet",
        "report.html",
        "timeline.parquet",
    }


def test_failures_are_rows_and_the_others_go_on(place: Path, dask: Processes) -> None:
    """Too much memory, data outside the drive, a layer of one's own that raises: a row each, with the reason."""
    dask.more(max(2 - len(dask.workers), 0))
    (place / "own.py").write_text(OWN)
    far = place / "far.trace"
    far.write_text("0.0 0 4000 8 0\n")
    base = {"drive": "tiny", "trace": ["s3://lab/t.trace.gz:disksim"], "wrap": "capacity"}
    rows = [{"layer": "rmw"}, {"layer": f"{place / 'own.py'}:Own"}]
    done = lab.sweep({"base": base, "list": rows}, out="s3://lab/failing", scheduler=dask.address)
    assert done.outcome.finished == 1
    assert [("ZeroDivisionError" in f) for f in done.outcome.failed.values()] == [True]
    assert sorted(done.table().column("status").to_pylist()) == ["done", "failed"]
    outside = {"drive": "tiny", "layer": "rmw", "trace": [f"{far}:disksim"]}
    done = lab.sweep({"base": outside}, out="s3://lab/outside", scheduler=dask.address)
    assert ["wrap" in f for f in done.outcome.failed.values()] == [True]
    large = lab.sweep(
        {"base": {**base, "layer": "rmw"}, "memory": "3GiB"}, out="s3://lab/large", scheduler=dask.address
    )
    (reason,) = large.outcome.failed.values()
    assert "needs 3.0 GiB" in reason
    assert "has 2.0 GiB" in reason


def test_a_prefilled_drive_is_made_once_and_shared(place: Path, dask: Processes) -> None:
    dask.more(max(2 - len(dask.workers), 0))
    base = {"drive": "modern-7200,capacity=4GB", "layer": "rmw", "prefill": "90%", "wrap": "capacity"}
    trace = ["synth:uniform,requests=300"]
    spec = {"base": {**base, "trace": trace}, "grid": {"stall": ["100ms", "200ms", "300ms"]}}
    done = lab.sweep(spec, out="s3://lab/filled", scheduler=dask.address)
    assert done.outcome.finished == 3
    made = [p for p in (place / "inputs").iterdir() if p.name.startswith("prefill-")]
    assert len(made) == 1
    assert list(made[0].glob("*.prefill")), "the state was not kept"
    # What was shared goes when the study is done.
    assert not [name for name in files_of("s3://lab/filled") if name.startswith("prefills/")]
    alone = lab.sweep(spec, out=place / "filled")
    without = [c for c in done.table().column_names if "map_bytes" not in c]
    assert alone.table().select(without).equals(done.table().select(without))


def test_a_saved_state_travels_to_workers_that_do_not_see_its_file(
    place: Path, dask: Processes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A relative path: the workers' own folder is another one."""
    dask.more(max(1 - len(dask.workers), 0))
    monkeypatch.chdir(tmp_path)
    drive: dict[str, Any] = {"drive": "tiny", "layer": "rmw", "wrap": "capacity"}
    lab.run("synth:uniform,requests=500,write=100%", save_state="aged.state", **drive)
    aged = {**drive, "trace": ["synth:uniform,requests=200"], "from_state": "aged.state"}
    spec = {"base": aged, "grid": {"stall": ["100ms", "200ms"]}}
    done = lab.sweep(spec, out="s3://lab/aged", scheduler=dask.address)
    assert done.outcome.failed == {}
    alone = lab.sweep(spec, out=place / "aged")
    assert alone.table().equals(done.table())
    fresh = lab.sweep({**spec, "base": {**aged, "from_state": None}}, out=place / "fresh")
    assert not fresh.table().equals(done.table()), "the state makes no difference"
    assert not [name for name in files_of("s3://lab/aged") if name.startswith("states/")]


def test_ctrl_c_stops_what_runs_on_the_cluster(place: Path, dask: Processes) -> None:
    """The client ends at once; the worker gives its run up, and its claim with it."""
    dask.more(max(1 - len(dask.workers), 0))
    file = place / "long.toml"
    file.write_text('[base]\ndrive = "tiny"\nlayer = "rmw"\nwrap = "capacity"\ntrace = "synth:uniform,requests=1G"\n')
    out = place / "long"
    command = [sys.executable, "-m", "smrlab", "sweep", str(file), "--out", str(out), "--scheduler", dask.address]
    client = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: sweeps.Store(out).times("claims"))
    told = status(sweeps.Store(out))
    assert (told["done"], [r["settings"] for r in told["running"]]) == (0, [{}])
    client.send_signal(signal.SIGINT)
    _, said = client.communicate(timeout=60)
    assert client.returncode == 130, said
    assert "the same command goes on from there" in said
    until(lambda: not sweeps.Store(out).times("claims"))
    assert not sweeps.Store(out).times("points", ".json")


def test_a_secret_is_nowhere(smrlab: Invoke, place: Path, dask: Processes) -> None:
    """Neither the store's keys nor what is secret in a URL: not in results, logs, messages, tables."""
    dask.more(max(1 - len(dask.workers), 0))
    import fsspec

    signed = fsspec.filesystem("s3").sign("lab/t.trace.gz", expiration=900)
    mark = signed.rpartition("Signature=")[2].partition("&")[0]
    assert len(mark) > 10
    spec = {"base": {"drive": "tiny", "layer": "rmw", "wrap": "capacity"}, "grid": {"trace": [f"{signed}:disksim"]}}
    done = lab.sweep(spec, out="s3://lab/secret", scheduler=dask.address)
    assert done.outcome.finished == 1, done.outcome
    ran = smrlab("run", "--trace", f"{signed}:disksim", "--drive", "tiny", "--wrap", "capacity", "--out", place / "ran")
    assert ran.status == 0, ran.err
    gone = smrlab("run", "--trace", f"{signed.replace('t.trace', 'gone')}:disksim", "--drive", "tiny")
    assert gone.status == 2
    local = {str(p): p.read_bytes() for p in place.rglob("*") if p.is_file() and p.name != "study.toml"}
    everything = {**files_of("s3://lab"), **local, "said": f"{ran} {gone} {done.outcome}".encode()}
    everything = {n: d for n, d in everything.items() if n != "t.trace.gz"}
    for name, data in everything.items():
        assert SECRET.encode() not in data, name
        assert mark.encode() not in data, name


def test_a_trace_by_url_is_read_in_every_shape(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, packed, zip, Parquet, a pattern of several; each as from a file, of many blocks."""
    import io
    import zipfile

    import fsspec

    system = fsspec.filesystem("s3")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.trace", TRACE)
    half = TRACE.splitlines(keepends=True)
    files = {"all.trace": TRACE.encode(), "all.zip": packed.getvalue(),
             "part-1.trace": "".join(half[::2]).encode(), "part-2.trace": "".join(half[1::2]).encode()}  # fmt: skip
    monkeypatch.setattr("smrlab.urls.BLOCK", 700)
    (place / "shapes").mkdir()
    for name, data in files.items():
        system.pipe_file(f"lab/shapes/{name}", data)
        (place / "shapes" / name).write_bytes(data)
    lab.Trace(f"{place}/shapes/all.trace:disksim").save(place / "shapes" / "all.parquet")
    system.put_file(str(place / "shapes" / "all.parquet"), "lab/shapes/all.parquet")
    for name in ("all.trace:disksim", "all.zip:disksim", "all.parquet", "part-*.trace:disksim"):
        options: dict[str, Any] = {"drive": "tiny", "layer": "rmw", "wrap": "capacity"}
        there = lab.run(f"s3://lab/shapes/{name}", **options).doc
        here = lab.run(f"{place}/shapes/{name}", **options).doc
        assert {k: v for k, v in there.items() if k != "spec"} == {k: v for k, v in here.items() if k != "spec"}, name
        assert there["spec"]["trace"] == [f"s3://lab/shapes/{name}"]
    with pytest.raises(InputError, match="there is no such file"):
        lab.run("s3://lab/shapes/none.trace:disksim", drive="tiny")


class _Answers(http.server.BaseHTTPRequestHandler):
    """Answers each request with the status that its path ends in."""

    def do_GET(self) -> None:
        self.send_error(int(self.path[-3:]))

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_what_a_server_answers_is_told_and_a_missing_file_is_another_thing(
    smrlab: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(urls, "PAUSE_S", 0.001)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}"
        told = {status: smrlab("trace", "info", f"{at}/t.csv.{status}").err for status in (404, 410, 403, 500)}
        server.shutdown()
    assert [told[s].endswith("there is no such file\n") for s in told] == [True, True, False, False]
    assert ("may not be read" in told[403], "500" in told[500], "6 attempts" in told[500]) == (True, True, True)
    gone = smrlab("trace", "info", f"{at}/t.csv")
    assert (gone.status, "Cannot connect" in gone.err, gone.err.count(at)) == (2, True, 1), gone.err
    # Nor does a study take a store that does not answer for an empty one.
    for command in (["status", f"{at}/study"], ["run", tmp_path / "s.toml", "--out", f"{at}/study"]):
        (tmp_path / "s.toml").write_text('[base]\ndrive = "tiny"\nlayer = "rmw"\ntrace = "synth:uniform,requests=9"\n')
        away = smrlab("sweep", *command)
        assert (away.status, f"{at}/study/sweep.json: cannot be read" in away.err) == (3, True), away.err
    # A package of another store is not in ours.
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    google = smrlab("trace", "info", "gs://b/t.csv").err
    assert ("gcsfs" in google, "smrlab[cluster]" in google, google.count("gs://b")) == (True, False, 1), google


def test_what_is_missing_is_one_sentence(smrlab: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[base]\ndrive = "tiny"\nlayer = "rmw"\ntrace = "synth:uniform,requests=10"\n')
    monkeypatch.setenv("SMRLAB_CONNECT_S", "0.3")
    gone = smrlab("sweep", file, "--out", tmp_path / "o", "--scheduler", "tcp://127.0.0.1:9")
    assert (gone.status, "no Dask scheduler answers there" in gone.err) == (3, True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        other = smrlab("sweep", file, "--out", tmp_path / "o", "--scheduler", at)
    assert (other.status, "does not speak Dask's protocol" in other.err) == (3, True)
    untrusted = smrlab("sweep", file, "--out", tmp_path / "o", "--scheduler", "tls://127.0.0.1:9")
    assert (untrusted.status, "no Dask scheduler answers there" in untrusted.err) == (3, True)
    no_scheduler = smrlab("sweep", file, "--out", tmp_path / "o", "--scheduler", file)
    assert (no_scheduler.status, "no file of a Dask scheduler" in no_scheduler.err) == (2, True)
    slurm = smrlab("sweep", file, "--out", tmp_path / "o", "--scheduler", "slurm")
    assert (slurm.status, "sbatch" in slurm.err or "smrlab[cluster]" in slurm.err) == (3, True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.setitem(sys.modules, "distributed", None)
    without = smrlab("sweep", file, "--out", tmp_path / "o", "--scheduler", "tcp://127.0.0.1:9")
    assert (without.status, "pip install 'smrlab[cluster]'" in without.err) == (3, True)
    assert smrlab("sweep", file, "--out", tmp_path / "o").status == 0
    with pytest.raises(InputError, match="no such kind of URL"):
        sweeps.Store("nothing://x").there("y")


def test_a_worker_refuses_what_is_larger_than_itself_and_forgets_what_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster: one piece after the other on a worker of 1000 bytes."""
    worker = SimpleNamespace(address="here", memory_manager=SimpleNamespace(memory_limit=1000))
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    under_way: list[int] = []

    def work(control: Any) -> str:
        under_way.append(len(cluster._running["a call"]))
        if len(under_way) == 2:
            raise ValueError("no")
        return "done"

    def perform(memory: int) -> Any:
        return cluster.perform(cluster._Order(Piece("p", work, memory=memory), "a call", False, cluster.about()[0]), 1)

    assert perform(1000) == "done"
    assert isinstance(perform(999).error, ValueError)
    assert perform(0) == "done"
    # Each was alone under way, and what is over, whichever way, is not cancelled any more.
    assert (under_way, cluster._running["a call"]) == ([1, 1, 1], set())
    assert "needs" in str(perform(1001).error)
    assert len(under_way) == 3


def test_another_engine_is_refused(dask: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    from smrlab.sweeps import identity

    dask.more(max(1 - len(dask.workers), 0))
    monkeypatch.setattr(identity, "fingerprint", lambda: "0.0.0 another")
    with pytest.raises(MissingError, match="has another engine"), chosen(dask.address):
        pass


def test_a_claim_of_who_is_gone_is_taken_over(tmp_path: Path) -> None:
    from smrlab.sweeps.claims import DEAD_S, claimed

    store = sweeps.Store(tmp_path)
    with claimed(store, "a", "one") as mine, claimed(store, "a", "another") as theirs:
        assert (mine, theirs) == (True, False)
    for at, host, free in ((time.time(), "elsewhere", False), (time.time() - DEAD_S, "elsewhere", True)):
        text = {"owner": "x", "host": host, "pid": 1, "at": at}
        store.write("claims/a.json", json.dumps(text).encode())
        with claimed(store, "a", "one") as mine:
            assert mine == free
    ended = subprocess.Popen(["true"])
    ended.wait()
    text = {"owner": "x", "host": socket.gethostname(), "pid": ended.pid, "at": time.time()}
    store.write("claims/a.json", json.dumps(text).encode())
    with claimed(store, "a", "one") as mine:
        assert mine


ROOT = Path(__file__).resolve().parents[2]
STAMP = 128166372003061629
MSR = "".join(f"{STAMP + i * 10**5},web,0,{('Read', 'Write')[i % 2]},{i * 8192},4096,100\n" for i in range(800))


@pytest.mark.full
def test_every_command_of_the_page_runs(
    smrlab: Invoke, place: Path, dask: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With this cluster in the place of the page's, and its bucket; `dask …` is what started this one."""
    import gzip

    import fsspec

    dask.more(max(2 - len(dask.workers), 0))
    system = fsspec.filesystem("s3")
    system.pipe_file("lab/web_0.csv.gz", gzip.compress(MSR.encode()))
    monkeypatch.chdir(place)
    study = (ROOT / "examples/study.toml").read_text().replace("requests=20000", "requests=2000")
    (place / "study.toml").write_text(study.replace("points = 8", "points = 2"))
    page = (ROOT / "docs/studies.md").read_text()
    commands = [line[4:] for line in page.splitlines() if line.startswith("    smrlab ")]
    assert len(commands) >= 9
    for command in commands:
        for here, there in (("examples/study.toml", f"{place}/study.toml"), ("examples/", f"{ROOT}/examples/"),
                            ("s3://bucket", "s3://lab/page"), ("s3://lab/page/web_0", "s3://lab/web_0"),
                            ("tcp://head:8786", dask.address), ("tcp://127.0.0.1:8786", dask.address)):  # fmt: skip
            command = command.replace(here, there)
        done = smrlab(*shlex.split(command)[1:])
        assert done.status == 0, f"{command}: {done.err}"
