"""Tests of a change, nearest first, as many as fit into two minutes; says what it left out (`make test-changed`).

changed.py [BASE]   what differs from BASE (HEAD if none is named; of a branch: from where this one left it), also what
                    is not committed

First the crates that changed, then those that stand on them, nearest first; for the Python package the tests that name
a changed module; and the lints of what changed. `make test` runs everything.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET_S = 120.0
BIN = Path(sys.executable).parent
# What must be built before a Python test may run.
MODULE, PLUGIN = "smrlab-py", "smrlab-nbdkit"


def git(*args: str) -> list[str]:
    """The lines that git answers."""
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed(base: str) -> list[str]:
    """Paths that differ from where this branch left `base`, and files that git does not know yet."""
    at = git("merge-base", base, "HEAD")[0]
    return sorted({*git("diff", "--name-only", at), *git("ls-files", "--others", "--exclude-standard")})


class Crates:
    """The workspace's crates and who stands on whom."""

    def __init__(self) -> None:
        command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
        found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        packages = found["packages"]
        self.folders = {Path(p["manifest_path"]).parent.relative_to(ROOT).as_posix(): p["name"] for p in packages}
        self.below = {
            p["name"]: {d["name"] for d in p["dependencies"]} & {q["name"] for q in packages} for p in packages
        }
        self.tested = {p["name"] for p in packages if any(t["test"] for t in p["targets"])}

    def of(self, paths: list[str]) -> set[str]:
        """The crates in which these files are; drives and examples are compiled into crates above them."""
        inside = {name for folder, name in self.folders.items() for path in paths if path.startswith(folder + "/")}
        inside |= {"smrlab-disk" for p in paths if p.startswith("drives/")}
        inside |= {"smrlab-testkit" for p in paths if p.startswith(("scenarios/", "examples/"))}
        return inside

    def nearest_first(self, start: set[str]) -> list[str]:
        """These, then those that stand on them, step by step."""
        out, last = sorted(start), set(start)
        while last:
            last = {name for name, on in self.below.items() if on & last} - set(out)
            out += sorted(last)
        return out


def python_tests(paths: list[str], engine: bool) -> list[str]:
    """The Python test files that name a changed module, and changed ones; where the engine changed, `python/tests`."""
    tests = sorted([*(ROOT / "python/tests").glob("test_*.py"), *(ROOT / "tests/device").glob("test_*.py")])
    if engine:
        return [str(t.relative_to(ROOT)) for t in tests if t.parent.name == "tests"]
    modules = {Path(p).stem for p in paths if p.startswith("python/smrlab/")}
    names = re.compile(r"\b(" + "|".join(map(re.escape, modules or {"\0"})) + r")\b")
    return [str(t.relative_to(ROOT)) for t in tests if str(t.relative_to(ROOT)) in paths or names.search(t.read_text())]


def steps(paths: list[str]) -> list[list[str]]:
    """The commands, in the order in which they are worth their time."""
    crates = Crates()
    own = crates.of(paths)
    order = crates.nearest_first(own)
    engine = MODULE in order or PLUGIN in order
    tests = python_tests(paths, engine)
    python = [p for p in paths if p.endswith(".py") and (ROOT / p).is_file()]
    out = []
    if python:
        out += [
            [str(BIN / "ruff"), "check", *python],
            [str(BIN / "ruff"), "format", "--check", *python],
            [str(BIN / "mypy")],
        ]
    if own:
        out.append(["cargo", "fmt", "--all", "--check"])
    out += [["cargo", "test", "--quiet", "-p", name] for name in order if name in crates.tested and name in own]
    if tests and not engine:
        out.append([str(BIN / "pytest"), "-n", "3", "--dist", "loadgroup", *tests])
    out += [["cargo", "test", "--quiet", "-p", name] for name in order if name in crates.tested and name not in own]
    if own:
        out.append(
            ["cargo", "clippy", "--quiet", *(f"-p{c}" for c in sorted(own)), "--all-targets", "--", "-D", "warnings"]
        )
    if engine:
        out += [["make", "--silent", ".setup/native"], [str(BIN / "pytest"), "-n", "3", "--dist", "loadgroup", *tests]]
    return out


def ended(command: list[str], seconds: float) -> int | None:
    """The status of the command; none where the time was up, and it was ended."""
    environment = os.environ | {"PROPTEST_RNG_SEED": "20261122"}
    child = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait()
        return None


def main() -> int:
    """Runs the steps; 1 where one failed."""
    paths = changed(sys.argv[1] if len(sys.argv) > 1 else "HEAD")
    if not paths:
        print("nothing differs; name a BASE: make test-changed BASE=main")
        return 0
    began, left, bad = time.monotonic(), [], []
    for command in steps(paths):
        rest = BUDGET_S - (time.monotonic() - began)
        shown = " ".join(command).replace(f"{BIN}/", "")
        if rest < 1:
            left.append(shown)
            continue
        print(f"$ {shown}", flush=True)
        status = ended(command, rest)
        (left if status is None else bad if status else []).append(shown)
    print(f"\n{len(paths)} files differ; {time.monotonic() - began:.0f} s")
    for shown in left:
        print(f"left out, or cut short, for time: {shown}")
    for shown in bad:
        print(f"failed: {shown}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
