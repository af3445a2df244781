"""The picture of a served medium: an axis, the size of a cell, and no alarm where nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smrlab import devicemap
from smrlab.errors import InputError

CELLS = [[0.5, 0.2, 0.0], [0.0, 0.0, 0.4], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]] * 64


def doc(**more: Any) -> dict[str, Any]:
    return {"blocks": 256 * 2000, "cells": CELLS, **more}


def test_a_healthy_drive_shows_no_alarm() -> None:
    plain = devicemap.text(doc())
    assert "old copies, which nobody reads" in plain.plain
    assert "lost" not in plain.plain
    assert not any("red" in str(s.style) or "yellow" in str(s.style) for s in plain.spans)
    assert "#c2412d" not in devicemap.svg(doc(), "d")
    raw = devicemap.text(doc(bands=[]))
    assert any("red" in str(s.style) for s in raw.spans)
    assert "lost: written, destroyed since" in raw.plain


def test_rows_say_where_they_begin_and_what_a_cell_is() -> None:
    lines = devicemap.text(doc()).plain.splitlines()
    assert [line.split("│")[0].strip() for line in lines[:4]] == ["0", "65.5 MB", "131 MB", "197 MB"]
    assert "a cell is 1.02 MB, a row 65.5 MB" in "\n".join(lines)
    assert ">131 MB</text>" in devicemap.svg(doc(), "d")
    whole = [devicemap._size(n / 512) for n in (999, 1e3, 1e6, 1e9, 1e12)]
    assert whole == ["0.999 kB", "1 kB", "1 MB", "1 GB", "1 TB"]


def test_guards_and_append_points_lie_where_their_band_says() -> None:
    """256 cells of 2000 blocks: of each four the third was never written; cells 2 and 3 are a guard."""
    band = {"start": 0, "append": 70 * 2000, "guard": 2 * 2000, "end": 4 * 2000}
    assert devicemap.states(doc(bands=[band]))[:6] == [2, 3, 4, 1, 2, 3], "what is written in a guard shows"
    drawn = devicemap.svg(doc(bands=[band]), "d")
    at = next(line for line in drawn.splitlines() if "append point of band 0" in line)
    # 70 cells are a row of 64 and six more.
    x, y = devicemap.LEFT + 6 * devicemap.CELL, devicemap.CELL
    assert f'<rect x="{x:.1f}" y="{y}" ' in at


def test_a_picture_needs_a_place(tmp_path: Path) -> None:
    devicemap.write(doc(), "d", tmp_path / "new/map.html")
    assert "<svg" in (tmp_path / "new/map.html").read_text()
    with pytest.raises(InputError, match="is not a folder; choose another --out"):
        devicemap.write(doc(), "d", tmp_path / "new/map.html/map.svg")
