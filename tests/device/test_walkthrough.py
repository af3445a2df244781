"""Every command of docs/why-does-my-drive-stall.md, in its order; and what stands under a command is what it prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from served import Make, can_loop, need

PAGE = Path(__file__).parents[2] / "docs" / "why-does-my-drive-stall.md"


def blocks() -> list[tuple[str, str]]:
    """The page's blocks: what they are (`sh`, `sh as root`, or nothing for output), and their text."""
    return re.findall(r"^```([a-z ]*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def words(line: str) -> str:
    return " ".join(line.split())


def shell(text: str, folder: Path) -> str:
    """Runs a block as it stands, in a shell that stops at the first error."""
    path = f"{folder}/bin:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": "160", "FILES": str(PAGE.parent / "decisions")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        capture_output=True, text=True, cwd=folder, env=env, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def clat_ms(out: str) -> list[float]:
    """fio's mean completion latencies, in ms."""
    found = re.findall(r"clat \((\w+)\):.*?avg=\s*([0-9.]+)", out)
    return [float(mean) * {"nsec": 1e-6, "usec": 1e-3, "msec": 1.0}[unit] for unit, mean in found]


def test_every_command_of_the_page_does_what_the_page_says(make: Make, tmp_path: Path) -> None:
    need("nbdkit", "fio", "jq", "bash")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "smrlab"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m smrlab "$@"\n')
    program.chmod(0o755)
    out, ran, compared = "", 0, 0
    for kind, text in blocks():
        if kind == "sh":
            out = shell(text, tmp_path)
            ran += 1
        elif kind == "":
            printed = {words(line) for line in out.splitlines()}
            for line in text.splitlines():
                assert words(line) in printed, f"the page says '{words(line)}'\n{out}"
                compared += 1
        if "fio" in text and kind == "sh":
            new, old = clat_ms(out)
            assert old > 2 * new, f"an aged drive is slower: {new} and {old} ms"
    assert (ran, compared) == (6, 10)
    assert "why-stalls.svg" in PAGE.read_text()
    assert (tmp_path / "burst" / "stalls.svg").is_file()
    for picture in re.findall(r"\]\((pictures/[^)]+)\)", PAGE.read_text()):
        assert (PAGE.parent / picture).is_file(), picture


def test_the_file_systems_of_the_page(make: Make, tmp_path: Path) -> None:
    need("nbdkit", "mkfs.ext4")
    can_loop()
    (root,) = (text for kind, text in blocks() if kind == "sh as root")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "smrlab"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m smrlab "$@"\n')
    program.chmod(0o755)
    create = next(text for kind, text in blocks() if "device create new" in text).splitlines()[1]
    try:
        # Both are new here: that they differ where one is aged is the other test's.
        shell(f"{create}\n{create.replace('create new', 'create old')}", tmp_path)
        shell(root, tmp_path)
    finally:
        shutil.rmtree(tmp_path / "mnt", ignore_errors=True)
