"""Stacks by lot: any array and layer, some of their parameters at the edges of what these accept."""

from __future__ import annotations

import json
import re
from functools import cache
from random import Random
from typing import Any

from smrlab import _core

# Of tiny drives; more of them take long. One array in eight has more drives than a word has bits.
MOST_DISKS, MANY_DISKS = 12, (64, 65, 129)
WORDS = {
    "the size of a band": ("1tracks", "2tracks", "4tracks", "7tracks", "33blk", "64KiB"),
    "a size": ("1blk", "3blk", "4KiB", "12KiB", "64KiB", "1%", "10%", "30%", "1MiB"),
    "a time": ("1ns", "1us", "1ms", "5ms", "50ms", "1s"),
    "on or off": ("on", "off"),
    # What is free text: only how drives die.
    "text": ("0@0s", "1@10ms", "0@1s", "1@100ms+0@500ms", "1@1ms+2@2ms"),
}


@cache
def _named(kind: str) -> list[str]:
    return [entry["name"] for entry in json.loads(_core.list_json(kind))]


@cache
def _explained(name: str) -> dict[str, Any]:
    explained: dict[str, Any] = json.loads(_core.explain_json(name))
    return explained


def _value(rng: Random, param: dict[str, str]) -> str:
    accepts = param["accepts"]
    if accepts.startswith("one of "):
        return rng.choice(accepts.removeprefix("one of ").split(", "))
    for kind, words in WORDS.items():
        if accepts.startswith(kind):
            return rng.choice(words)
    least, most = re.search(r"from ([\d.]+)%?(?: to ([\d.]+))?", accepts).groups()  # type: ignore[union-attr]
    # What takes hours of the drive's time for a handful of requests shows nothing else.
    low = 1.0 if param["name"] in ("bus", "ssd_rate") else float(least)
    if param["name"] == "disks" and rng.random() < 1 / 8:
        return str(rng.choice(MANY_DISKS))
    high = MOST_DISKS if param["name"] in ("disks", "copies", "spares") else float(most or low + 1e9)
    value = min(rng.choice((low, low + 1, low + 2, low + 7, high, low + rng.random() * 100)), high)
    share = "%" * accepts.startswith("a share")
    return f"{value:.3f}{share}" if share or "whole" not in accepts else str(int(value))


def _part(rng: Random, name: str, most: int) -> str:
    params = [p for p in _explained(name)["params"] if p["accepts"] != "text" or p["name"] == "fail"]
    asked = {p["name"]: _value(rng, p) for p in rng.sample(params, min(rng.randint(0, most), len(params)))}
    for param in params:
        # What fits a tiny drive at all.
        fits = {"chunk": ("4KiB", "3blk", "16blk"), "zone": ("96blk", "128blk")}.get(param["name"])
        if fits and rng.random() < 0.8:
            asked[param["name"]] = rng.choice(fits)
    return ",".join([name, *(f"{key}={value}" for key, value in asked.items())])


def drawn(rng: Random) -> str:
    """A stack; not every one is accepted."""
    parts = []
    if rng.random() < 0.15:
        parts.append("ssd-cache,write=64KiB,read=64KiB,page=4KiB")
    layer = rng.choice(_named("layers"))
    if rng.random() < 0.6:
        array = rng.choice(_named("arrays"))
        parts.append(_part(rng, array, 4))
        if array in ("dm-zoned", "zone-log"):
            layer = "zoned"
    parts.append(_part(rng, layer, 3))
    return " / ".join(parts)


def keeps_data(stack: str) -> bool:
    """Whether what was written can be read, whatever was written since."""
    layer = stack.rsplit(" / ", 1)[-1].split(",", 1)[0]
    return bool(_explained(layer)["capabilities"]["keeps_data"])


def works_when_idle(stack: str) -> bool:
    """Whether a drive or an array does something between requests."""
    layer = stack.rsplit(" / ", 1)[-1].split(",", 1)[0]
    return "idle=" in stack or not _explained(layer)["idle"].startswith("nothing")
