"""The wheel that `make wheel` made, installed in an empty environment, is all that serving a device needs.

Run by `make test-wheel`; what the wheel depends on comes from the environment that runs the test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = "smrlab/libsmrlab_nbdkit.so"


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The newest wheel."""
    found = sorted((ROOT / "dist").glob("smrlab-*.whl"), key=lambda p: p.stat().st_mtime)
    if not found:
        pytest.skip("there is no wheel in dist/: make wheel")
    return found[-1]


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """The programs of an environment with nothing but the wheel, and what it depends on."""
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", env], check=True)
    pip = [env / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True)
    own = subprocess.run(
        [env / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    # Behind the environment's own: a smrlab in the one that runs this is not seen.
    (Path(own.stdout.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return env / "bin"


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """A state directory of its own, and nothing that leads to the sources."""
    state = tempfile.mkdtemp(prefix="sw-")
    keep = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SMRLAB_NBDKIT_PLUGIN", "CARGO_TARGET_DIR")}
    yield keep | {"SMRLAB_STATE": state}
    shutil.rmtree(state, ignore_errors=True)


def test_what_is_in_it(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert PLUGIN in names
    assert any(n.startswith("smrlab/_core") and n.endswith(".so") for n in names)
    assert not any("tests" in Path(n).parts for n in names)


def test_it_binds_to_a_glibc_of_2018(wheel: Path) -> None:
    """What it needs of the C library is in every distribution of the last five years."""
    assert "manylinux_2_28" in wheel.name
    inside = zipfile.ZipFile(wheel)
    libraries = [n for n in inside.namelist() if n.endswith(".so")]
    assert len(libraries) == 2
    for name in libraries:
        needed = {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", inside.read(name))}
        assert max(needed) <= (2, 28), name


def test_the_demo_shows_its_table(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """With the trace that is in the wheel: nothing else is there."""
    command = [str(installed / "smrlab"), "demo"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300, check=True
    )
    assert [layer in done.stdout for layer in ("cmr", "rmw", "static-1234", "disk-cache", "s-block", "log")] == [
        True
    ] * 6
    assert (tmp_path / "demo-out" / "report.html").is_file()


def test_it_simulates_and_serves(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("nbdkit") is None:
        pytest.skip("missing: nbdkit")

    def smrlab(*args: str) -> str:
        command = [str(installed / "smrlab"), *args]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    trace = "synth:uniform,requests=100,write=50%"
    run = json.loads(smrlab("run", "--trace", trace, "--drive", "modern-7200", "--layer", "cmr", "--json"))
    assert run["host"]["reads"] + run["host"]["writes"] == 100
    made = json.loads(smrlab("device", "create", "w", "--layer", "s-block", "--size", "64MiB", "--json"))
    try:
        assert made["size"] == 64 << 20
        served = Path(f"/proc/{made['pid']}/cmdline").read_text().split("\0")
        plugin = next(Path(a) for a in served if a.endswith(".so"))
        assert plugin.is_relative_to(installed.parent), "it is not the wheel's own plugin"
        assert plugin.as_posix().endswith(PLUGIN)
        assert json.loads(smrlab("device", "stats", "w", "--json"))["host"]["errors"] == 0
        if shutil.which("nbdcopy"):
            data = os.urandom(1 << 20) + bytes((64 << 20) - (1 << 20))
            (tmp_path / "image").write_bytes(data)
            subprocess.run(["nbdcopy", tmp_path / "image", made["uri"]], check=True)
            subprocess.run(["nbdcopy", made["uri"], tmp_path / "back"], check=True)
            assert (tmp_path / "back").read_bytes() == data
    finally:
        smrlab("device", "remove", "w")
