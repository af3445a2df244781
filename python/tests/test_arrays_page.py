"""The commands of docs/arrays.md work, at small scale."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import Invoke

import smrlab

PAGE = Path(__file__).parents[2] / "docs/arrays.md"
COMMANDS = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    smrlab run ")]
AGED = [command for command in COMMANDS if "-state" in command]
RUNS = [command for command in COMMANDS if command not in AGED]


def test_the_page_has_commands() -> None:
    assert len(RUNS) >= 3


@pytest.mark.parametrize("command", RUNS)
def test_a_command_of_the_page_runs_and_gives_the_keys_that_the_page_names(command: str) -> None:
    words = shlex.split(command)[2:]
    given: dict[str, Any] = {k[2:]: v for k, v in zip(words[::2], words[1::2], strict=False) if k != "--json"}
    requests = "requests=6000" if "ssd_write" in given["array"] else "requests=300"  # as many as fill the SSD
    trace = ",".join(requests if p.startswith("requests=") else p for p in given.pop("trace").split(","))
    given["drive"] = given["drive"].replace("capacity=4GB", "capacity=1GB")
    array = smrlab.run(trace, **given).array
    if "ssd_write" in given["array"]:
        assert array.ssd_destages > 0
        assert array.ssd_write_hits > 0
    elif "parity=log" in given["array"]:
        assert array.rows_logged == 300
    elif "journal" in given["array"]:
        assert array.rows_journalled == 300
    elif "groups=moving" in given["array"]:
        assert array.stripes_full + array.stripes_partial > 0
    elif "timeout" in given["array"]:
        assert array.deaths >= 1
    else:
        assert array.rebuilds == 1
        assert array.rebuild_ms > 0


def test_an_aged_array_loses_a_drive(smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = {"capacity=20GB": "capacity=1GB", "requests=1e6": "requests=3000", "requests=1e5": "requests=4000"}
    small |= {"fail=2@10s": "fail=2@1s", "replace=60s": "replace=1s"}
    results = []
    for command in AGED:
        for large, less in small.items():
            command = command.replace(large, less)
        done = smrlab(*shlex.split(command)[1:], "--json")
        assert done.status == 0, done.err
        results.append(done.json())
    first, second = results
    assert (tmp_path / "aged.state").is_file()
    assert "rebuilds" not in first["array"]
    assert second["array"]["rebuilds"] == 1
    # What the second run reads was written by the first one.
    assert second["host"]["reads_unwritten"] < second["host"]["reads"]
