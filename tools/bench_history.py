"""Keeps what `make bench` measures: benches/history.json, and the page docs/performance.md with its picture.

bench_history.py FILE      FILE is what the benches printed: its rates become an entry, with commit, date and machine
bench_history.py --check   only names the lines of the last entry below 0.9 of their best on the same machine
"""

from __future__ import annotations

import datetime
import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ROOT / "benches" / "history.json"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "pictures" / "performance.svg"
SLOW = 0.9
# A name, in columns or words; behind it a rate in millions a second, or the nanoseconds of one request.
NAME = re.compile(r"^(?P<name>\S.*?(?:\s+\d+ GB)?)\s+(?=[\d.]+ (?:M/s|ns|requests|MB)|layer )")
RATE = re.compile(r"([\d.]+) M(?: requests)?/s")
TIME = re.compile(r"([\d.]+) ns")

Entry = dict[str, Any]


def figures(text: str) -> dict[str, float]:
    """Millions of requests a second, by the line's name."""
    out = {}
    for line in text.splitlines():
        head = NAME.match(line)
        rate, time = RATE.search(line), TIME.search(line)
        if head and (rate or time):
            name = re.sub(r"\s+", " ", head["name"])
            out[name] = float(rate[1]) if rate else round(1e3 / float(time[1] if time else 1), 3)
    return out


def machine() -> str:
    """The processor, as its maker calls it: figures of two machines are not compared."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.M)
    return found[1] if found else platform.machine()


def load() -> list[Entry]:
    """All entries, oldest first."""
    return list(json.loads(HISTORY.read_text())) if HISTORY.is_file() else []


def slow(entries: list[Entry]) -> list[str]:
    """The lines of the last entry that fall below their best on the same machine."""
    if not entries:
        return []
    last = entries[-1]
    out = []
    for name, rate in last["rates"].items():
        same = [e["rates"][name] for e in entries if e["machine"] == last["machine"] and name in e["rates"]]
        if rate < SLOW * max(same):
            out.append(f"{name}: {rate} M/s, {rate / max(same):.2f} of its best")
    return out


def page(entries: list[Entry]) -> str:
    """The last entry with its ratios to the one before on the same machine."""
    last = entries[-1]
    before = next((e for e in reversed(entries[:-1]) if e["machine"] == last["machine"]), None)
    lines = [
        "# Speed over time",
        "",
        "For who changes smrlab: whether it has become slower, and where. Written by `make bench`.",
        "",
        f"Millions of requests a second of a core's time: {last['machine']}, {last['commit']}, {last['date']}.",
        "A shared machine wavers by a third: a ratio counts where several lines agree, or a second run repeats it.",
        "",
        "![Rates over commits](pictures/performance.svg)",
        "",
        "| line | M/s | to the entry before |",
        "|---|---:|---:|",
    ]
    for name, rate in last["rates"].items():
        old = before["rates"].get(name) if before else None
        lines.append(f"| {name} | {rate} | {f'{rate / old:.2f}' if old else ''} |")
    return "\n".join(lines) + "\n"


def draw(entries: list[Entry]) -> None:
    """Every line of the last entry relative to its first one on that machine."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "smrlab"
    from matplotlib import pyplot

    same = [e for e in entries if e["machine"] == entries[-1]["machine"]]
    figure, axes = pyplot.subplots(figsize=(8, 4))
    for name in entries[-1]["rates"]:
        points = [(i, e["rates"][name]) for i, e in enumerate(same) if name in e["rates"]]
        axes.plot([i for i, _ in points], [r / points[0][1] for _, r in points], marker="o", linewidth=1, alpha=0.6)
    axes.axhline(SLOW, color="0.5", linestyle="--", linewidth=1)
    axes.set_xticks(range(len(same)), [e["commit"] for e in same], rotation=45)
    axes.set_ylabel("rate, of the first entry's")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> int:
    """Adds an entry, or checks the last."""
    entries = load()
    if sys.argv[1:] != ["--check"]:
        rates = figures(Path(sys.argv[1]).read_text())
        git = ["git", "rev-parse", "--short", "HEAD"]
        head = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        entries.append({"commit": head.stdout.strip(), "date": today, "machine": machine(), "rates": rates})
        HISTORY.write_text(json.dumps(entries, indent=1) + "\n")
        PAGE.write_text(page(entries))
        draw(entries)
        print(f"{len(rates)} lines: {PAGE.relative_to(ROOT)}")
    for line in slow(entries):
        print(f"slow: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
