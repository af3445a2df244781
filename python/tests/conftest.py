"""What several tests use: the command line in this process, and the public traces where they are."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Ended, Invoke

from smrlab import cli

ROOT = Path(__file__).resolve().parents[2]

# Where CI starts the tests in the background, Ctrl-C is ignored, and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
HANDLERS = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
# Looking for garbage as often as Python does takes a tenth of their time.
gc.set_threshold(100_000, 50, 50)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The tests of a group share what takes long to start. pytest-xdist 3.8 parts them with pytest 9.2, unsaid."""
    if getattr(item.config.option, "loadgroup", False):
        for mark in item.iter_markers("xdist_group"):
            assert item.nodeid.endswith(f"@{mark.args[0]}"), "pytest-xdist does not keep the tests of a group together"


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """A measurement that was stopped ignores them until its process ends."""
    yield
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def no_kept_prefills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests neither fill the user's cache folder nor depend on it."""
    monkeypatch.setenv("SMRLAB_PREFILL_CACHE", "off")


@pytest.fixture
def smrlab(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.setenv("COLUMNS", "160")
    # At Ctrl-C the program ends beside its threads; here these are other tests'.
    monkeypatch.setattr(os, "_exit", sys.exit)

    def invoke(*args: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["smrlab", *map(str, args)])
        capfd.readouterr()
        status = 0
        try:
            cli.main()
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else int(e.code is not None)
        captured = capfd.readouterr()
        return Ended(status, captured.out, captured.err)

    return invoke


@pytest.fixture(scope="session")
def shared() -> Path:
    path = Path(os.environ.get("SMRLAB_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"{path} is not there: set SMRLAB_SHARED to the folder of public traces")
    return path
