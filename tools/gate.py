"""Runs the checks of this checkout on all cores and says of each what it took.

gate.py         what each change must pass (`make test`)
gate.py --full  besides, what takes long and finds little for most changes (`make test-full`); what each part found is
                written to tools/test-full.json as it ends; where a run was ended and no part had failed, the next one
                at the same commit, with nothing changed, goes on from there

Everything that is compiled is there before this starts. Two lanes run side by side: what holds cargo's lock, and what
waits most of its time (Python, served devices). Tests that measure time run alone at the end. The output of what failed
is shown whole.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "target" / "gate"
FULL = ROOT / "tools" / "test-full.json"
# The cases of every run; the testkit's take their seed from the commit.
FIXED_SEED = "20261122"
STALE = 60
# Set when Ctrl-C was pressed, which reaches what runs, too.
OVER = threading.Event()
# Each Python module is compiled once, whatever the caller's environment says: the tests start hundreds of commands.
BYTECODE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / "target" / "bytecode")}
PYTHON = [sys.executable, "-m"]
SOURCES = ["python", "tests", "benches", "tools", "traces"]
PARTS_OF_RUST = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
PARTS_OF_PYTHON = re.compile(r"(\d+) (passed|failed|error|errors|skipped)\b")


@dataclass
class Part:
    """One check: its command, and what came of it."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    status: int = -1
    wall_s: float = 0.0
    cpu_s: float = 0.0
    kept: bool = False

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return LOGS / (re.sub(r"\W+", "-", self.name) + ".log")

    def run(self) -> None:
        """Runs it and says how it ended."""
        began = time.monotonic()
        with self.log.open("wb") as log:
            child = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=os.environ | BYTECODE | self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = self.status = os.waitstatus_to_exitcode(status)
        self.wall_s = time.monotonic() - began
        self.cpu_s = usage.ru_utime + usage.ru_stime
        how = "ok    " if self.status == 0 else "FAILED"
        print(f"{how} {self.name:24} {self.wall_s:6.1f} s, {self.cpu_s:6.1f} s of CPU", flush=True)

    def counts(self) -> tuple[int, int, int]:
        """Tests that passed, failed and were skipped, as the runners tell."""
        text = self.log.read_text(errors="replace")
        passed = failed = skipped = 0
        for found in PARTS_OF_RUST.finditer(text):
            passed, failed = passed + int(found[1]), failed + int(found[2])
        if passed or failed:
            return passed, failed, skipped
        closing = [line for line in text.splitlines() if re.search(r"\b(passed|failed|skipped)\b.* in [\d.]+", line)]
        for number, word in PARTS_OF_PYTHON.findall(closing[-1]) if closing else []:
            passed += int(number) * (word == "passed")
            failed += int(number) * (word in ("failed", "error", "errors"))
            skipped += int(number) * (word == "skipped")
        return passed, failed, skipped


def git(*words: str) -> str:
    """What git says; nothing where it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def commit_seed() -> str:
    """A number that each commit has of its own."""
    return str(int(git("rev-parse", "HEAD")[:12] or "0", 16))


def pytest(name: str, marks: str, *more: str) -> Part:
    """The Python tests with these marks."""
    return Part(name, [*PYTHON, "pytest", "-p", "no:cacheprovider", "-m", marks, *more])


def cargo_lane(full: bool) -> list[Part]:
    """What takes cargo's lock, one after the other."""
    # The testkit has new cases in every run, those of the commit, and a quarter of what there could be; all, and the
    # fixed ones besides, in test-full.
    cases = {"SMRLAB_ALL_CASES": "1"} if full else {}
    fixed = cases | {"PROPTEST_RNG_SEED": FIXED_SEED}
    fresh = cases | {"PROPTEST_RNG_SEED": commit_seed(), "SMRLAB_SEED": commit_seed()}
    ignored = ["--", "--include-ignored"] if full else []
    # The testkit's run once, with the commit's cases; in test-full with the fixed ones, too.
    apart = [] if full else ["--exclude", "smrlab-testkit"]
    parts = [
        Part("rust tests", ["cargo", "test", "--workspace", "--test", "*", "--no-fail-fast", *apart, *ignored], fixed),
        Part("rust unit tests", ["tools/test-units.sh", *ignored], fixed),
        Part("random cases", ["cargo", "test", "-p", "smrlab-testkit", "--no-fail-fast"], fresh),
        Part("tidy", ["cargo", "xtask", "tidy"]),
        Part("rustfmt", ["cargo", "fmt", "--all", "--check"]),
        Part("reference pages", ["cargo", "xtask", "docs", "--check"]),
        Part("warnings", ["tools/warnings.sh"]),
    ]
    if full:
        lints = ["--workspace", "--all-targets", "--quiet", "--keep-going", "--", "-D", "warnings"]
        parts.append(Part("clippy", ["cargo", "clippy", *lints]))
        parts.append(Part("doc tests", ["cargo", "test", "--workspace", "--doc"]))
        parts.append(
            Part("rustdoc", ["cargo", "doc", "--workspace", "--no-deps", "--quiet"], {"RUSTDOCFLAGS": "-D warnings"})
        )
        parts.append(Part("planted bugs", ["cargo", "xtask", "mutants", "--every", "20"]))
    return parts


def python_lane(full: bool) -> list[Part]:
    """What waits most of its time."""
    # In a fresh checkout what the tests import is compiled once, not by each of pytest's workers.
    fresh = not Path(BYTECODE["PYTHONPYCACHEPREFIX"]).is_dir()
    return [
        Part("ruff", [*PYTHON, "ruff", "check", *SOURCES]),
        Part("ruff format", [*PYTHON, "ruff", "format", "--check", *SOURCES]),
        Part("mypy", [*PYTHON, "mypy"]),
        *([pytest("imports of the tests", "", "--collect-only")] if fresh else []),
        pytest("pytest", "not timed" if full else "not timed and not full", "-n", "3", "--dist", "loadgroup"),
    ]


def last_lane(full: bool) -> list[Part]:
    """What wants the machine for itself."""
    parts = [pytest("pytest, timed", "timed" if full else "timed and not full")]
    if full:
        parts.append(Part("lines that are slow", [sys.executable, "tools/bench_history.py", "--check"]))
        parts.append(Part("wheel", ["make", "--silent", "test-wheel"]))
    return parts


class Whole:
    """What the whole check found at this commit, kept as each part ends."""

    def __init__(self) -> None:
        """Begins with what a run at this commit found that was ended: once a part failed, all are asked again."""
        self.commit = git("rev-parse", "--short", "HEAD")
        self.parts: dict[str, dict[str, int]] = {}
        self.lock = threading.Lock()
        changed = git("status", "--porcelain", "--", ".", f":!{FULL.relative_to(ROOT)}")
        last = json.loads(FULL.read_text()) if FULL.is_file() and not changed else {}
        ended = self.commit and last.get("commit") == self.commit and last["result"] == "unfinished"
        if ended and all(part["status"] == 0 for part in last["parts"].values()):
            self.parts = last["parts"]

    def take(self, part: Part) -> bool:
        """Whether the part passed at this commit before; then it has what it took, and its log is still there."""
        if part.name not in self.parts or not part.log.is_file():
            return False
        known = self.parts[part.name]
        part.status, part.wall_s, part.cpu_s, part.kept = known["status"], known["wall_s"], known["cpu_s"], True
        print(f"kept   {part.name:24} {part.wall_s:6.1f} s, {part.cpu_s:6.1f} s of CPU", flush=True)
        return True

    def note(self, part: Part, result: str = "unfinished") -> None:
        """Writes what a part found, and what all have come to by then."""
        with self.lock:
            self.parts[part.name] = {"status": part.status, "wall_s": round(part.wall_s), "cpu_s": round(part.cpu_s)}
            date = datetime.datetime.now(datetime.UTC).date().isoformat()
            found = {"commit": self.commit, "date": date, "result": result, "parts": self.parts}
            FULL.write_text(json.dumps(found, indent=1) + "\n")


def run_all(parts: list[Part], whole: Whole | None) -> None:
    """One after the other, until Ctrl-C: what that ends is no finding."""
    for part in parts:
        if whole is not None and whole.take(part):
            continue
        part.run()
        if OVER.wait(0.5 if part.status else 0):
            return
        if whole is not None:
            whole.note(part)


def age() -> str:
    """How old the last whole check is, in commits."""
    if not FULL.is_file():
        return "make test-full was never run here"
    last = json.loads(FULL.read_text())
    since = git("rev-list", "--count", f"{last['commit']}..HEAD")
    old = f"{since} commits ago" if since else "of a commit that is not here"
    line = f"make test-full: {last['result']} at {last['commit']}, {last['date']}, {old}"
    red = sys.stdout.isatty() and int(since or STALE + 1) > STALE
    return f"\033[31m{line}\033[0m" if red else line + (" (long ago)" if int(since or STALE + 1) > STALE else "")


def notes(parts: list[Part]) -> list[str]:
    """The Rust tests that said that they were skipped, and why; benchmarks that have become slow."""
    return sorted(
        {line for p in parts for line in p.log.read_text(errors="replace").splitlines() if line[:9] == "skipped: "}
    )


def report(parts: list[Part], began: float) -> int:
    """What failed, the sums, and how old the last whole check is; the exit status."""
    bad = [p for p in parts if p.status != 0]
    for part in bad:
        print(f"\n===== {part.name}: {' '.join(part.command)}")
        if seed := part.env.get("SMRLAB_SEED"):
            print("its random cases are those of this commit; again with:")
            print(f"SMRLAB_SEED={seed} PROPTEST_RNG_SEED={seed} {' '.join(part.command)}")
        print(part.log.read_text(errors="replace"))
    for line in notes(parts):
        print(line)
    wall, cpu = time.monotonic() - began, sum(p.cpu_s for p in parts if not p.kept)
    print(f"{wall:.0f} s, {cpu:.0f} s of CPU: {cpu / wall:.2f} of {os.cpu_count()} cores busy")
    if bad:
        print(f"failed: {', '.join(p.name for p in bad)}; logs in {LOGS.relative_to(ROOT)}/")
    passed, failed, skipped = (sum(column) for column in zip(*(p.counts() for p in parts), strict=True))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return int(bool(bad))


def main() -> int:
    """Runs the lanes; 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also what takes long")
    full = parser.parse_args().full
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    whole = Whole() if full else None
    lanes = [cargo_lane(full), python_lane(full)]
    threads = [threading.Thread(target=run_all, args=(lane, whole)) for lane in lanes]
    last = last_lane(full)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run_all(last, whole)
    except KeyboardInterrupt:
        OVER.set()
        print("ended" + ("; make test-full goes on from here" if full else ""))
        return 130
    parts = [*lanes[0], *lanes[1], *last]
    status = report(parts, began)
    if whole is not None:
        whole.note(parts[-1], "passed" if status == 0 else "failed")
    print(age())
    return status


if __name__ == "__main__":
    sys.exit(main())
