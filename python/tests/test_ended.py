"""How commands end that somebody ends: Ctrl-C, a closed pipe, and input without an end."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import TINY


def cpu_seconds(pid: int) -> float:
    """How long a process has worked."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def interrupted(*words: str) -> str:
    """What a command says when Ctrl-C comes after three seconds of its work; it must end within one."""
    # A shell without job control starts background commands with the signal ignored, which children inherit.
    process = subprocess.Popen(
        [sys.executable, "-m", "smrlab", *words],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while process.poll() is None and cpu_seconds(process.pid) < 3:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - begin < 1
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted" in err
    return err


def interrupted_comparison(out: Path, *layers: str) -> str:
    load = TINY.replace("requests=2000", "requests=1000000")
    words = ["compare", "--trace", load, "--drive", "tiny", "--jobs", "1", "--out", str(out)]
    return interrupted(*words, *(word for layer in layers for word in ("--layer", layer)))


def test_interrupt_while_the_program_loads_is_told_as_later() -> None:
    code = (
        "import sys\nclass Stop:\n    def find_spec(name, *_):\n        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop)\nfrom smrlab.__main__ import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "smrlab: interrupted\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("run", "/dev/zero"),
            "/dev/zero is no specification, which is a text; a trace is given with --trace /dev/zero",
        ),
        (("sweep", "/dev/zero", "--out", "o"), "/dev/zero: cannot be read: longer than 64 MiB"),
        (("geometry", "fit", "/dev/zero", "--out", "o.toml"), "/dev/zero: longer than 64 MiB"),
    ],
)
def test_a_file_without_an_end_is_no_text(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    done = subprocess.run(
        [sys.executable, "-m", "smrlab", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        preexec_fn=little,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"smrlab: {message}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "info", "-"),
        ("trace", "convert", "pipe", "--out", "t.parquet"),
        ("run", "--trace", "pipe", "--drive", "tiny", "--layer", "cmr"),
        ("validate", "tiny", "pipe"),
        ("validate", "tiny", "pipe", "--fit", "fitted.toml"),
    ],
    ids=" ".join,
)
def test_interrupt_while_nothing_comes_from_a_pipe(words: tuple[str, ...], tmp_path: Path) -> None:
    """Nobody writes to the pipe: the thread that reads it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen(
        [sys.executable, "-m", "smrlab", *words],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 2:
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert process.stderr is not None
    assert process.stderr.read().startswith("smrlab: interrupted")
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize(
    "words",
    [
        "run --trace synth:uniform --layer cmr --drive pipe.toml",
        "compare --trace synth:uniform --layer cmr --layer rmw --drive pipe.toml",
        "drive check pipe.toml",
        "drive show pipe.toml,rpm=5400",
        "drive new --like pipe.toml --out new.toml",
        "drive import disksim pipe.toml --out new.toml",
        "geometry show pipe.toml",
        "probe sim:pipe.toml/cmr --destroy",
    ],
)
def test_a_drive_file_into_which_nobody_writes_is_not_waited_for(words: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    done = subprocess.run(
        [sys.executable, "-m", "smrlab", *words.split()],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    said = "pipe.toml: is a pipe, and nobody writes into it, or it was read before: name a file"
    assert (done.returncode, done.stdout, said in done.stderr) == (2, "", True), done.stderr
    assert list(tmp_path.rglob("*.toml")) == [tmp_path / "pipe.toml"]


def test_a_drive_file_may_be_what_a_shell_puts_together() -> None:
    tiny = Path(__file__).parents[2] / "drives" / "tiny.toml"
    program = f"{sys.executable} -m smrlab"
    for words in (
        f"drive check <(sleep 1; cat {tiny})",
        f"run --trace {TINY} --wrap capacity --layer cmr --drive <(cat {tiny}) --json",
    ):
        done = subprocess.run(["bash", "-c", f"{program} {words}"], check=False, capture_output=True, timeout=60)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.timed
def test_interrupt_while_no_request_of_a_trace_is_taken() -> None:
    trace = "synth:uniform,requests=1e12,span=1GB"
    filtered = ("--filter", "lba=5GB..")
    assert interrupted("run", "--trace", trace, "--drive", "modern-7200", "--layer", "cmr", *filtered)
    assert interrupted("trace", "info", trace, *filtered)


@pytest.mark.timed
def test_interrupt_of_a_trace_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "made.parquet"
    assert interrupted("trace", "synth", "uniform,requests=1e9,span=1TB", "--out", str(out)) == "smrlab: interrupted\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timed
def test_interrupt_keeps_the_finished_runs_and_is_quick(tmp_path: Path) -> None:
    slow = f"{Path(__file__).parents[2]}/examples/greedy_log.py:GreedyLog"
    assert "1 of 2 runs" in interrupted_comparison(tmp_path / "out", "cmr", slow)
    doc = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [run["spec"]["layer"] for run in doc["runs"]] == ["cmr"]
    assert [run.name for run in (tmp_path / "out" / "runs").iterdir()] == ["01-cmr"]


def test_interrupt_before_any_run_is_finished_leaves_nothing(tmp_path: Path) -> None:
    slow = f"{Path(__file__).parents[2]}/examples/greedy_log.py:GreedyLog"
    assert "none of 2" in interrupted_comparison(tmp_path / "out", slow, "cmr")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_failed_check() -> None:
    program = Path(sys.executable).with_name("smrlab")
    for words, stream in (("list --json", 1), ("list", 1), ("run --help", 1), ("run --layer no-such", 2)):
        read, write = os.pipe()
        os.close(read)
        to = {1: subprocess.PIPE, 2: subprocess.PIPE} | {stream: write}
        done = subprocess.run([program, *words.split()], check=False, stdout=to[1], stderr=to[2])
        os.close(write)
        assert [done.stdout, done.stderr][2 - stream] in (b"", None), words
        assert done.returncode == 128 + signal.SIGPIPE, words


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams_take_what_is_said(closed: str, tmp_path: Path) -> None:
    """As of who is started by a service that closes them."""
    program = Path(sys.executable).with_name("smrlab")
    for words, status in (("list layers", 0), ("list --json", 0), ("run --trace no-such", 2)):
        line = f"{program} {words} {closed}"
        done = subprocess.run(["sh", "-c", line], check=False, capture_output=True, cwd=tmp_path)
        assert (done.returncode, b"Traceback" in done.stderr) == (status, False), (line, done.stderr)
