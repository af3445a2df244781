"""The emulator's paper from the data of its figures: pictures, verdicts in `claims.toml`, and the page's table."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from smrlab.plots.style import COLORS, HATCHES, SETTINGS, legend, line_style, new_figure, save_svg

BARE, AGAIN = "bare store", "bare store again"
# A modelled 4 KiB random access of the drive that the figures are measured on: 4.2 ms of rotation and a seek of 8 ms.
RANDOM_US = 12_000.0
Data = dict[str, Any]


def percent(ratio: float) -> str:
    """A ratio as a difference."""
    return f"{(ratio - 1) * 100:+.1f} %"


def slope(values: list[float]) -> float:
    """Of a straight line through the values at 0, 1, 2 and on."""
    n = len(values)
    mean_x, mean_y = (n - 1) / 2, sum(values) / n
    over = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(values))
    return over / sum((x - mean_x) ** 2 for x in range(n))


def _noise(data: Data) -> float:
    """The largest difference of the bare store to itself."""
    return max(abs(by[AGAIN]["ratio"] - 1) for by in data["cost"].values())


def _random(d: dict[str, Data]) -> tuple[str, bool]:
    cost = d["f7"]["cost"]
    shares = []
    for job in ("randread", "randwrite"):
        extra = cost[job]["k=3"]["cpu_us"] - cost[job][BARE]["cpu_us"]
        shares.append(max(0.0, extra) / RANDOM_US * 100)
    ratios = ", ".join(f"{job[4:]} {percent(cost[job]['k=3']['ratio'])}" for job in ("randread", "randwrite"))
    text = (
        f"{max(shares):.3f} % of a random access; without any mechanics {ratios}, noise {_noise(d['f7']) * 100:.1f} %"
    )
    return text, max(shares) < 1


def _sequential(d: dict[str, Data]) -> tuple[str, bool]:
    ratios = {job: d["f7"]["cost"][job]["k=3"]["ratio"] for job in ("read", "write")}
    return ", ".join(f"{job} {r:.3f}" for job, r in ratios.items()), min(ratios.values()) >= 0.80


def _pure(d: dict[str, Data]) -> tuple[str, bool]:
    extra = {
        job: d["f8"]["cost"][job]["k=1"]["cpu_us"] - d["f8"]["cost"][job][BARE]["cpu_us"] for job in ("read", "write")
    }
    return f"read {extra['read']:+.2f} us, write {extra['write']:+.2f} us of CPU a request", extra["read"] >= extra[
        "write"
    ] - 0.3


def _by_k(d: dict[str, Data], job: str, key: str) -> list[float]:
    return [d["f8"]["cost"][job][f"k={k}"][key] for k in range(1, 9)]


def _slopes(job: str) -> Callable[[dict[str, Data]], tuple[str, float]]:
    """A job's change with each track: of the bandwidth, and (steadier on a busy machine) of the server's CPU time."""

    def judge(d: dict[str, Data]) -> tuple[str, float]:
        rate, cpu = (slope(_by_k(d, job, key)) * 100 for key in ("ratio", "cpu_ratio"))
        return f"bandwidth {rate:+.2f} %, CPU {cpu:+.2f} % a track", cpu

    return judge


def _reads(d: dict[str, Data]) -> tuple[str, bool]:
    text, cpu = _slopes("read")(d)
    return text, abs(cpu) <= 1


def _writes(d: dict[str, Data]) -> tuple[str, bool]:
    small, big = _slopes("write")(d), _slopes("write 1 MiB")(d)
    return f"4 KiB: {small[0]}; 1 MiB: {big[0]}", max(small[1], big[1]) <= 1


def _banded(key: str) -> Callable[[dict[str, Data]], tuple[str, bool]]:
    def judge(d: dict[str, Data]) -> tuple[str, bool]:
        pairs = [m["k=3"] / m["k=1"] for m in d[key]["modelled"].values()]
        cost = [by["k=3"]["ratio"] for by in d[key]["cost"].values()]
        worst, noise = max(abs(p - 1) for p in pairs), _noise(d[key])
        text = (
            f"at most {worst * 100:.1f} % in modelled time; without any mechanics {percent(min(cost))} to "
            f"{percent(max(cost))}, noise {noise * 100:.1f} %"
        )
        return text, worst < 0.03

    return judge


def _grows(d: dict[str, Data]) -> tuple[str, bool]:
    rates = [m["k=3"] for m in d["f9"]["modelled"].values()]
    text = " ".join(f"{r:.3g}" for r in rates) + " MB/s"
    return text, all(b > a for a, b in pairwise(rates))


def _flat(d: dict[str, Data]) -> tuple[str, bool]:
    rates = {name: m["k=3"] for name, m in d["f10"]["modelled"].items()}
    one, middle, most = (rates[f"{n} bands"] for n in (1, 16, 64))
    text = f"{one:.3g} MB/s with 1 band, {middle:.3g} with 16, {most:.3g} with 64"
    return text, abs(middle / most - 1) <= 0.10 and one > middle


JUDGES: dict[str, Callable[[dict[str, Data]], tuple[str, bool]]] = {
    "U1": _random,
    "U2": _sequential,
    "U3": _pure,
    "U4": _reads,
    "U5": _writes,
    "U6": _banded("f9"),
    "U7": _grows,
    "U8": _banded("f10"),
    "U8b": _flat,
}


def draw_cost(axes: Any, cost: dict[str, dict[str, Data]], names: list[str], labels: dict[str, str]) -> None:
    """Bars of bandwidth: a group a job, a bar a contestant."""
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        at = [j + (i - (len(names) - 1) / 2) * width for j in range(len(labels))]
        heights = [cost[job][name]["mb_per_s"] for job in labels]
        axes.bar(at, heights, width * 0.92, label=name.replace("k=3", "raw, k = 3"), color=COLORS[i],
                 hatch=HATCHES[i], edgecolor="white", linewidth=0.4)  # fmt: skip
    axes.set_xticks(range(len(labels)), labels.values())
    axes.set_ylabel("bandwidth (MB/s)")


def f7(data: Data) -> Figure:
    """Sequential and random 4 KiB, k = 3 against the bare store."""
    figure, (axes,) = new_figure()
    labels = {
        "read": "sequential\nread",
        "write": "sequential\nwrite",
        "randread": "random\nread",
        "randwrite": "random\nwrite",
    }
    draw_cost(axes, data["cost"], [BARE, AGAIN, "k=3"], labels)
    legend(figure, axes, 3)
    return figure


def f8(data: Data) -> Figure:
    """Sequential bandwidth over k, relative to the bare store."""
    figure, (axes,) = new_figure()
    ks = list(range(1, 9))
    for i, (job, label) in enumerate(
        (("read", "read 4 KiB"), ("write", "write 4 KiB"), ("write 1 MiB", "write 1 MiB"))
    ):
        axes.plot(
            ks,
            [data["cost"][job][f"k={k}"]["ratio"] for k in ks],
            label=label,
            marker="os^"[i],
            markersize=3,
            **line_style(i),
        )
    axes.plot(
        ks, [1 - 0.02 * (k - 1) for k in ks], label="the paper's writes: 2 % a track", color="#888888", linewidth=0.8
    )
    axes.axhspan(
        1 - _noise(data), 1 + _noise(data), color="#000000", alpha=0.06, linewidth=0, label="bare store against itself"
    )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tracks touched by a write (k, itself included)")
    axes.set_ylabel("bandwidth / bare store")
    legend(figure, axes, 5)
    return figure


def _both(data: Data, xlabel: str, log: bool = False) -> Figure:
    """Left: modelled time, what the disk does. Right: no timing, what the emulator costs."""
    figure, (left, right) = new_figure(2)
    names = list(data["modelled"])
    ticks = [name.split()[0] for name in names]
    for i, (k, label) in enumerate((("k=1", "raw, k = 1"), ("k=3", "raw, k = 3"))):
        left.plot(
            range(len(names)),
            [data["modelled"][n][k] for n in names],
            label=label,
            marker="os"[i],
            markersize=3,
            **line_style(i),
        )
    for i, (who, label) in enumerate(((AGAIN, "bare store again"), ("k=3", "raw, k = 3 "))):
        right.plot(
            range(len(names)),
            [data["cost"][n][who]["ratio"] for n in names],
            label=label,
            marker="x^"[i],
            markersize=3,
            **line_style(i + 2),
        )
    left.set_title("in modelled time", fontsize=8)
    right.set_title("without timing", fontsize=8)
    left.set_ylabel("bandwidth (MB/s)")
    right.set_ylabel("bandwidth / bare store")
    for axes in (left, right):
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(names)), ticks)
        axes.set_xlabel(xlabel)
        axes.legend(frameon=False, fontsize=7)
    if log:
        left.set_yscale("log")
        left.set_ylim(bottom=1)
    return figure


def f9(data: Data) -> Figure:
    """Banded writes over the block size."""
    return _both(data, "block size (KiB)")


def f10(data: Data) -> Figure:
    """Banded writes over the number of bands."""
    return _both(data, "bands", log=True)


def table(claims: list[Data]) -> str:
    """The page's table."""
    head = "| | claim | paper | accepted | measured | verdict |\n|---|---|---|---|---|---|\n"
    keys = ("id", "statement", "paper", "band", "measured", "verdict")
    lines = ["| " + " | ".join(c[k] for k in keys) + " |" for c in claims]
    notes = [f"- **{c['id']}.** {c['why']}" for c in claims if "why" in c]
    return head + "\n".join(lines) + "\n\n" + "\n".join(notes) + "\n"


def rewritten(path: Path, data: dict[str, Data]) -> list[Data]:
    """Judges the claims of the file and writes what was measured into it; gives them."""
    text = path.read_text()
    doc = tomllib.loads(text)
    for claim in doc["claim"]:
        claim["measured"], ok = JUDGES[claim["id"]](data)
        claim["verdict"] = "holds" if ok else "does not hold"
    parts = [text.partition("\n[[claim]]\n")[0]]
    for claim in doc["claim"]:
        parts.append("[[claim]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in claim.items()))
    path.write_text("\n".join(parts))
    found: list[Data] = doc["claim"]
    return found


def write(folder: Path, page: Path) -> None:
    """Draws what there are data for; when all four figures are there, judges the claims and fills the page's table."""
    draw = {"f7": f7, "f8": f8, "f9": f9, "f10": f10}
    data = {key: json.loads(path.read_text()) for key in draw if (path := folder / f"{key}.json").exists()}
    with mpl.rc_context(SETTINGS):
        for key, doc in data.items():
            save_svg(draw[key](doc), folder / f"{key}.svg")
    if len(data) < len(draw):
        print(f"no claims yet: {', '.join(k for k in draw if k not in data)} to be measured", file=sys.stderr)
        return
    claims = rewritten(folder / "claims.toml", data)
    before, _, rest = page.read_text().partition("<!-- measured -->\n")
    after = rest.partition("<!-- end -->\n")[2]
    loads = ", ".join(f"{key} {doc['load_before']}" for key, doc in data.items())
    said = f"Load of the machine before each figure: {loads}.\n\n{table(claims)}"
    page.write_text(f"{before}<!-- measured -->\n{said}<!-- end -->\n{after}")
    for claim in claims:
        print(f"{claim['id']:4} {claim['verdict']:14} {claim['measured']}")
