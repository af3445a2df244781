"""Writes the table of docs/zones.md that says which kind of drive serves which trace, or checks it against runs.

tools/which_drive.py            prints the table
tools/which_drive.py --write    puts it into the page
tools/which_drive.py --check    fails where the page says something else; rows whose trace is not here are passed over
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import smrlab

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "zones.md"
BEGIN, END = "<!-- which drive: tools/which_drive.py --write -->\n", "<!-- end -->\n"
SHARED = Path(os.environ.get("SMRLAB_SHARED", ROOT.parent / "shared")) / "traces"
TRACES = {
    "build": ROOT / "traces" / "build.parquet",
    "postgres": ROOT / "traces" / "postgres.parquet",
    "sqlite": ROOT / "traces" / "sqlite.parquet",
    "cloudphysics": SHARED / "cloudphysics" / "cloudPhysicsIO.vscsi.zst",
    "msr, cut 105": SHARED / "msr-cambridge" / "msr.cut.per_10k.rw_20_80.105.norm.csv.zst",
}
DRIVE = "modern-7200,capacity=64GB"
KINDS = {
    "not shingled": "cmr",
    "drive-managed": "persistent-cache",
    "host-aware": "host-aware",
    "host-managed, `dm-zoned`": "dm-zoned / zoned,conventional=5%",
    "host-managed, `zone-log`": "zone-log / zoned",
}


def cell(result: smrlab.Result) -> tuple[float, str]:
    """Mean response, and the cell: mean and 99th percentile in ms, blocks written for each block of the host's."""
    doc = result.doc
    mean, p99 = doc["response_ms"]["mean"], doc["response_ms"]["p99"]
    written = doc["media"]["blocks_written"] / doc["host"]["blocks_written"]
    return mean, f"{mean:.2f} / {p99:.1f} / {written:.2f}"


def row(name: str, trace: Path) -> str:
    """The trace on all kinds of drives; the smallest mean response of a shingled one is bold."""
    compared = smrlab.compare(
        trace, drive=DRIVE, layers=list(KINDS.values()), arrivals="closed", prefill="100%", wrap="capacity"
    )
    cells = [cell(result) for result in compared]
    best = min(mean for mean, _ in cells[1:])
    shown = [f"**{text}**" if mean == best else text for mean, text in cells]
    return f"| {name} | " + " | ".join(shown) + " |"


def main() -> int:
    """Prints, writes or checks the table."""
    known = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known.add_argument("--write", action="store_true")
    known.add_argument("--check", action="store_true")
    wanted = known.parse_args()
    rows = [row(name, trace) for name, trace in TRACES.items() if trace.is_file()]
    if wanted.check:
        page = PAGE.read_text()
        wrong = [line for line in rows if line not in page]
        print(
            "\n".join(f"docs/zones.md does not say: {line}" for line in wrong)
            or f"{len(rows)} rows are as the page says"
        )
        return int(bool(wrong))
    table = "\n".join([f"| trace | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|", *rows]) + "\n"
    if wanted.write:
        if len(rows) < len(TRACES):
            print(f"{len(TRACES) - len(rows)} traces are not here: set SMRLAB_SHARED", file=sys.stderr)
            return 1
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1])
    print(table, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
