"""Pictures of characters and of squares, whole: of a served medium, of the rate over the address, of a trace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from smrlab import InputError, devicemap
from smrlab.cli import picture
from smrlab.trace_info import TraceInfo

# Never written, written, with old copies, in reach of a write, less written than that, more written than that.
CELLS = [[0, 0, 0], [1, 0, 0], [1, 0.1, 0], [0, 0, 0.5], [0.2, 0, 0.5], [0.5, 0, 0.2]] + [[0, 0, 0]] * 62
DOC: dict[str, Any] = {"blocks": 68 * 1000, "cells": CELLS}
# The second row begins with two cells of a guard; the append point is in the middle of the first of them.
BAND = {"start": 0, "append": 64.5 * 1000, "guard": 64 * 1000, "end": 66 * 1000}


def test_a_medium_in_characters() -> None:
    lines = devicemap.text(DOC).plain.splitlines()
    assert lines == [
        "       0 │·█▒░░█" + "·" * 58,
        " 32.8 MB │····",
        "         └" + "─" * 64,
        "          a cell is 512 kB, a row 32.8 MB; places are on the medium",
        "· never written",
        "█ written",
        "▒ old copies, which nobody reads",
        "░ in reach of a write, free",
    ]
    bare = devicemap.text({**DOC, "bands": [BAND]}).plain.splitlines()
    assert bare[:2] == ["       0 │·█▒░░█" + "·" * 58, " 32.8 MB │▏▏··"]
    assert bare[4:] == [
        "· never written",
        "█ written",
        "▒ lost: written, destroyed since",
        "░ destroyed before it was written",
        "▏ guard",
    ]
    sizes = {1: "0.512 kB", 2000: "1.02 MB", 10**7: "5.12 GB", 10**10: "5.12 TB"}
    assert {n: devicemap._size(n) for n in sizes} == sizes


def test_a_medium_in_squares() -> None:
    """A cell is 10 units wide, from 64 on; below the two rows are a line of text and five of what colours mean."""
    root = ElementTree.fromstring(devicemap.svg({**DOC, "bands": [BAND]}, "a<b"))
    assert (root.get("viewBox"), root.get("aria-label")) == ("0 0 704 150", "state of the medium of a<b")
    of = "{http://www.w3.org/2000/svg}"

    def place(element: ElementTree.Element) -> tuple[str | None, ...]:
        return tuple(element.get(name) for name in ("x", "y", "width", "height", "fill"))

    rects = list(root.iter(f"{of}rect"))
    squares, append, marks = rects[:68], rects[68], rects[69:]
    colours = ["#e4e4e0", "#3f8f5f", "#c2412d", "#e0a63a", "#e0a63a", "#3f8f5f", *["#e4e4e0"] * 58]
    colours += ["#4a6fa5", "#4a6fa5", "#e4e4e0", "#e4e4e0"]
    at = [(64 + 10 * (i % 64), 10 * (i // 64)) for i in range(68)]
    assert [place(s) for s in squares] == [
        (str(x), str(y), "9", "9", colour) for (x, y), colour in zip(at, colours, strict=True)
    ]
    titles = [s.findtext(f"{of}title") for s in squares]
    assert titles[:3] == ["0 kB: never written", "512 kB: written", "1.02 MB: lost: written, destroyed since"]
    assert titles[64] == "32.8 MB: guard"
    assert (place(append), append.findtext(f"{of}title")) == (
        ("69.0", "10", "2", "10", "#111"), "append point of band 0"
    )  # fmt: skip
    assert [place(m) for m in marks] == [
        ("64", str(48 + 18 * i), "12", "12", colour)
        for i, colour in enumerate(["#e4e4e0", "#3f8f5f", "#c2412d", "#e0a63a", "#4a6fa5"])
    ]
    texts = [(t.get("x"), t.get("y"), t.text) for t in root.iter(f"{of}text")]
    assert texts[:3] == [
        ("58", "9", "0"),
        ("58", "19", "32.8 MB"),
        ("64", "36", "a cell is 512 kB, a row 32.8 MB; places are on the medium"),
    ]
    assert texts[3:] == [("82", str(59 + 18 * i), kind[0]) for i, kind in enumerate(devicemap.STATES)]
    # Of many rows each eighth, or a little less, has its place at the left.
    many = ElementTree.fromstring(devicemap.svg({"blocks": 64 * 40, "cells": [[0, 0, 0]] * (64 * 40)}, "d"))
    assert [t.get("y") for t in many.iter(f"{of}text")][:8] == [str(50 * i + 9) for i in range(8)]


def test_the_legend_of_a_medium_names_what_is_on_it() -> None:
    """With the colours and marks of the cells; what is on none is not named."""
    for kinds in (devicemap.STATES, devicemap.LAYERED):
        bands: dict[str, Any] = {"bands": []} if kinds is devicemap.STATES else {}
        doc = {"blocks": 192, "cells": [[0, 0, 0], [0.5, 0.2, 0], [0, 0, 0.5]] * 64, **bands}
        drawn = devicemap.svg(doc, "d")
        legend = re.findall(r'width="12" height="12" fill="(.*?)"/><text[^>]*>(.*?)</text>', drawn.replace("\n", ""))
        assert legend == [(kinds[i][3], kinds[i][0]) for i in (0, 2, 3)]
        cells = re.findall(r'fill="(.*?)"><title>(.*?): (.*?)</title>', drawn)[:3]
        assert cells == [(kinds[i][3], at, kinds[i][0]) for i, at in ((0, "0 kB"), (2, "0.512 kB"), (3, "1.02 kB"))]
        told = devicemap.text(doc).plain.splitlines()
        assert told[0].split("│", 1)[1] == ("".join(kinds[i][1] for i in (0, 2, 3)) * 22)[:64]
        assert told[-3:] == [f"{kinds[i][1]} {kinds[i][0]}" for i in (0, 2, 3)]


def test_a_picture_of_a_medium_is_a_drawing_or_a_page(tmp_path: Path) -> None:
    for name, first, last in (("p.svg", "<svg", "</svg>\n"), ("p.html", "<!doctype html>", "</html>\n")):
        devicemap.write(DOC, "a<b", tmp_path / name)
        page = (tmp_path / name).read_text()
        assert page.startswith(first)
        assert page.endswith(last)
        assert (page.count("<svg"), page.count("<h1>a&lt;b: state of the medium</h1>")) == (1, int(name == "p.html"))
    with pytest.raises(InputError, match=r"p\.png: write an \.svg or an \.html"):
        devicemap.write(DOC, "a", tmp_path / "p.png")


def test_rates_are_a_skyline() -> None:
    """200 MB/s over half of the address, 100 over a quarter, 50 over the last: ten lines, five, two and a half."""
    full, half, quarter = "█" * 36, "█" * 18, "█" * 18
    assert picture.rates([(0, 200.0), (500, 100.0), (750, 50.0)], 1000) == [
        f" 200 MB/s │{full}{' ' * 36}",
        *[f"          │{full}{' ' * 36}"] * 4,
        *[f"          │{full}{half}{' ' * 18}"] * 2,
        f"          │{full}{half}{'▄' * 18}",
        *[f"          │{full}{half}{quarter}"] * 2,
        f"        0 └{'─' * 72}",
        f"{'':>11}0{'500 KiB':>71}",
    ]


def test_a_trace_in_characters() -> None:
    """Eight seconds and two rows of 8 blocks: a shade for each quarter of the root of the most."""
    cells = [{"reads": 0, "writes": 0} for _ in range(512)]
    for column, (reads, writes) in enumerate([(16, 0), (0, 9), (4, 0), (1, 0), (0, 0), (0, 16), (2, 2)]):
        cells[column] = {"reads": reads, "writes": writes}
    cells[256 + 7]["writes"] = 16
    grid = {"cells": cells, "column_ns": 10**9, "row_blocks": 8}
    assert picture.picture(grid, 7.5, 8192) == [
        "    8 KiB │       █",
        "          │█▓▒░ █▒ ",
        "        0 └────────",
        "           0  7.5 s",
    ]
    empty = {**grid, "cells": [{"reads": 0, "writes": 0}] * 512}
    assert picture.picture(empty, 0.0, 1)[0] == "      1 B │ "


def test_rows_of_a_trace_say_what_there_is() -> None:
    doc = {
        "requests": 1234567, "reads": 0, "writes": 5, "fua_writes": 0, "flushes": 0, "discards": 2, "appends": 0,
        "zone_resets": 3, "zone_commands": 4, "write_share": 0.25, "mean_read_bytes": None, "mean_write_bytes": 4096,
        "size_bytes": {"p50": 512, "p99": 2048}, "unique_bytes": 1 << 20, "unique_write_bytes": 0,
        "footprint_bytes": 1 << 30, "update_share": 0.5, "never_updated_share": 0.75, "unchanged_day_share": None,
        "sequential_share": 0.125, "span_s": 90.0, "rate": 12.3456,
        "interarrival_s": {"mean": 0.08, "p50": 0.01, "p99": 2.0},
        "max_offset_bytes": 3 << 20, "devices": 1, "skipped": 7,
    }  # fmt: skip
    assert TraceInfo(doc).rows() == [
        ("requests", "1,234,567"),
        ("reads", "0"),
        ("writes", "5"),
        ("discards", "2"),
        ("zone resets", "3"),
        ("zones opened, closed, finished", "4"),
        ("writes of reads and writes", "25 %"),
        ("mean write", "4 KiB"),
        ("size, p50", "512 B"),
        ("size, p99", "2 KiB"),
        ("unique data", "1 MiB"),
        ("unique data written", "0 B"),
        ("footprint in units of 4 KiB", "1 GiB"),
        ("updates, of writes", "50 %"),
        ("blocks written and never updated again", "75 %"),
        ("sequential, of reads and writes", "12.5 %"),
        ("duration", "90 s"),
        ("requests a second", "12.35"),
        ("inter-arrival, mean", "80 ms"),
        ("inter-arrival, p50", "10 ms"),
        ("inter-arrival, p99", "2 s"),
        ("highest address", "3 MiB"),
        ("devices", "1"),
        ("bad lines passed over", "7"),
    ]
