"""The picture of a served medium: an axis, the size of a cell, and no alarm where nothing is lost."""

from __future__ import annotations

from typing import Any

from smrlab import devicemap

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
