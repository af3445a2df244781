"""Which settings of a study mattered: shares of the variance that each explains by itself, with pictures.

The share is that of the main effect, Var(E[y|x]) / Var(y) (Sobol's first-order index), of the logarithm where a metric
spans more than a factor of ten; settings that are drawn are grouped into as many parts as leave four values in each:
with few points each value of one goes with one of another, and single values of both explain all that either does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from smrlab import keys, plain
from smrlab.errors import InputError
from smrlab.text import counted

from .quantity import order
from .run import INDEX
from .store import Store
from .table import called, results_table, words

METRICS = ("response_ms.mean", "response_ms.p99", "iops", "write_amplification")
PAGE = "summary.md"
# Values of a setting above which they are grouped, and values in a group at least.
VALUES, GROUP = 12, 4
# From this ratio of the largest to the smallest value on, logarithms are compared.
WIDE = 10.0
# Values that differ by less than this share are the same: what settings explain of that is no news.
ALIKE = 0.01


def write_summary(store: Store, metrics: Sequence[str] | None = None) -> tuple[dict[str, Any], str]:
    """Writes `summary.md`, `summary.json` and a picture a metric; the document, and where the page is.

    Raises InputError where there is no study, no setting varies, or it has no such metric.
    """
    rows = [r for r in words(results_table(store)) if r["status"] == "done"]
    settings = _varied(store, rows)
    if not settings:
        raise InputError(f"{store}: nothing varies in this sweep, or fewer than two of its runs are done")
    chosen = list(metrics or [m for m in METRICS if len({r.get(m) for r in rows} - {None}) > 1])
    for metric in chosen:
        if not any(isinstance(r.get(metric), int | float) for r in rows):
            near = ", ".join(k for k in rows[0] if k.startswith(metric.partition(".")[0])) or "none"
            raise InputError(f"{store}: no column '{metric}' of numbers; near it: {near}")
    found = [measured(rows, metric, settings) for metric in chosen]
    document = {"schema": 1, "runs": len(rows), "metrics": found}
    for one in found:
        if not alike(one):
            store.write(picture_name(one["metric"]), picture(one))
    store.write("summary.json", (json.dumps(document, indent=1) + "\n").encode())
    store.write(PAGE, page(document).encode())
    return document, f"{store}/{PAGE}"


def _varied(store: Store, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    index = store.document(INDEX) or {"points": []}
    names = dict.fromkeys(key for entry in index["points"] for key in entry["settings"])
    return [name for name in names if len({str(r.get(name)) for r in rows}) > 1]


def measured(rows: Sequence[Mapping[str, Any]], metric: str, settings: Sequence[str]) -> dict[str, Any]:
    """What each setting explains of a metric, the one that explains most first; and the best and worst point."""
    known = [r for r in rows if r.get(metric) is not None]
    values = [float(r[metric]) for r in known]
    log = min(values) > 0 and max(values) / min(values) >= WIDE
    scaled = [math.log(v) for v in values] if log else values
    mean = sum(scaled) / len(scaled)
    total = sum((v - mean) ** 2 for v in scaled)
    effects: list[dict[str, Any]] = []
    columns = {setting: [r.get(setting) for r in known] for setting in settings}
    for setting, given in columns.items():
        groups = _groups(
            given, drawn=any(_together(given, other) for name, other in columns.items() if name != setting)
        )
        between, curve = 0.0, []
        for name, members in groups:
            part = [scaled[i] for i in members]
            middle = sum(part) / len(part)
            between += len(part) * (middle - mean) ** 2
            within = [values[i] for i in members]
            level = math.exp(middle) if log else middle
            curve.append({"value": name, "mean": level, "least": min(within), "most": max(within), "runs": len(part)})
        effects.append({"setting": setting, "share": between / total if total else 0.0, "effect": curve})
    effects.sort(key=lambda e: -e["share"])
    best, worst = (pick(range(len(values)), key=values.__getitem__) for pick in (min, max))
    return {
        "metric": metric, "logarithm": log, "settings": effects,
        "least": {"value": values[best], **{s: known[best].get(s) for s in settings}},
        "most": {"value": values[worst], **{s: known[worst].get(s) for s in settings}},
    }  # fmt: skip


def _together(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two settings of many values change one for one."""
    return 2 * GROUP <= len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


def _groups(values: Sequence[Any], drawn: bool) -> list[tuple[str, list[int]]]:
    """Points by their value, ascending; by parts of the range where there are many values, or they are drawn."""
    distinct = sorted(set(values), key=order)
    many = drawn or len(distinct) > VALUES
    count = max(2, min(VALUES, len(distinct) // GROUP)) if many else len(distinct)
    parts = [distinct[len(distinct) * k // count : len(distinct) * (k + 1) // count] for k in range(count)]
    names = [" to ".join(str(end) for end in dict.fromkeys([part[0], part[-1]])) for part in parts]
    return [(n, [i for i, v in enumerate(values) if v in part]) for n, part in zip(names, parts, strict=True)]


def picture_name(metric: str) -> str:
    """The file of a metric's picture."""
    return f"summary-{metric}.svg"


def picture(found: Mapping[str, Any]) -> bytes:
    """What each setting does to a metric, beside each other on one scale; the share it explains on top."""
    from matplotlib.figure import Figure

    from smrlab.plots import style

    effects = found["settings"]
    columns = min(len(effects), 3)
    lines = math.ceil(len(effects) / columns)
    figure = Figure(figsize=(3.4 * columns, 2.8 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axis, effect in zip(axes.flat, effects, strict=False):
        curve = effect["effect"]
        places = list(range(len(curve)))
        axis.fill_between(places, [c["least"] for c in curve], [c["most"] for c in curve], alpha=0.15, linewidth=0)
        axis.plot(places, [c["mean"] for c in curve], marker="o", markersize=4)
        narrow = [i for i in places if len(curve) <= 6 or i % math.ceil(len(curve) / 6) == 0]
        names = style.told_apart([str(curve[i]["value"]).split(" to ")[0] for i in narrow])
        axis.set_xticks(narrow, names, fontsize=7, rotation=30)
        axis.set_title(f"{called(effect['setting'])}: {effect['share']:.0%}", fontsize=9)
        axis.grid(alpha=0.3)
        if found["logarithm"]:
            style.log_axis(axis)
    for axis in axes.flat[len(effects) :]:
        axis.set_visible(False)
    for line in axes:
        line[0].set_ylabel(keys.axis(found["metric"]), fontsize=8)
    return style.svg(figure)


def page(document: Mapping[str, Any]) -> str:
    """The page as text."""
    runs = counted(document["runs"], "run")
    lines = ["# What mattered", "", f"{runs}. The share is what a setting explains of a metric by"]
    lines += ["itself; what the shares leave of 100 % is settings together, and chance. Settings that change"]
    lines += ["together have each other's share, too.", ""]
    for one in document["metrics"]:
        lines += [f"## {keys.axis(one['metric'])}", ""]
        if alike(one):
            ends = " to ".join(keys.written(one["metric"], one[end]["value"]) for end in ("least", "most"))
            lines += [f"The same in all runs, within {ALIKE:.0%}: {ends}.", ""]
            continue
        if one["logarithm"]:
            lines += ["Values lie far apart, so logarithms are compared: beside a setting's value is the geometric"]
            lines += ["mean of its runs, which a few large values raise less than they raise a mean.", ""]
        lines += ["| setting | share | least at | most at |", "|---|---|---|---|"]
        for effect in one["settings"]:
            low, high = (pick(effect["effect"], key=lambda c: c["mean"]) for pick in (min, max))
            ends = " | ".join(f"{c['value']} ({keys.written(one['metric'], c['mean'])})" for c in (low, high))
            lines.append(f"| {effect['setting']} | {effect['share']:.0%} | {ends} |")
        for end in ("least", "most"):
            at = ", ".join(f"{k}={v}" for k, v in one[end].items() if k != "value" and v is not None)
            lines.append(f"\n{end.capitalize()} of all: {keys.written(one['metric'], one[end]['value'])} ({at})")
        lines += ["", f"![What each setting does]({picture_name(one['metric'])})", ""]
    return "\n".join(lines)


def alike(one: Mapping[str, Any]) -> bool:
    """Whether a metric is the same in all runs, as IOPS are where a trace's arrivals set them."""
    low, high = one["least"]["value"], one["most"]["value"]
    return bool(high - low <= ALIKE * max(abs(low), abs(high)))


def table_of(one: Mapping[str, Any]) -> list[str]:
    """A metric's settings as lines for a terminal."""
    if alike(one):
        return [f"{keys.axis(one['metric'])}: the same in all runs, within {ALIKE:.0%}"]
    rows = []
    for effect in one["settings"]:
        low, high = (pick(effect["effect"], key=lambda c: c["mean"]) for pick in (min, max))
        cells = [f"{c['value']}: {keys.written(one['metric'], c['mean'])}" for c in (low, high)]
        rows.append([effect["setting"], f"{effect['share']:.0%}", *cells])
    title = keys.axis(one["metric"]) + (", geometric means" if one["logarithm"] else "")
    return list(plain.table(rows, [title, "share", "least at", "most at"], line=min(160, plain.width())))
