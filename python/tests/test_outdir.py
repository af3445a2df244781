"""Where results are written while a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from smrlab.errors import InputError
from smrlab.outdir import filling


def fill(wanted: Path, document: str) -> Path:
    with filling(wanted) as folder:
        (folder / "result.json").write_text(document)
        (folder / "timeline.parquet").write_text(document)
    return folder


def test_a_folder_that_exists_is_filled_from_within(tmp_path: Path) -> None:
    """A mount point is another file system than the folder around it: nothing may be renamed into it from outside."""
    wanted = tmp_path / "mounted"
    wanted.mkdir()
    inside = fill(wanted, "one")
    assert inside.parent == wanted
    assert sorted(p.name for p in wanted.iterdir()) == ["result.json", "timeline.parquet"]
    fill(wanted, "two")
    assert (wanted / "result.json").read_text() == "two"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mounted"]


def test_what_a_killed_run_left_does_not_block_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".smrlab-partial.out.123").mkdir()
    fill(tmp_path, "one")
    assert (tmp_path / "result.json").read_text() == "one"


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="something else"):
        fill(tmp_path, "one")


def test_nothing_is_left_of_a_run_that_failed(tmp_path: Path) -> None:
    wanted = tmp_path / "out"
    with pytest.raises(ZeroDivisionError), filling(wanted) as folder:
        (folder / "result.json").write_text(str(1 // 0))
    assert not list(tmp_path.iterdir())
