"""Single assumptions of our runs changed, and what then becomes of the claims that do not come out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from smrlab import _core
from smrlab.api import make_spec

Doc = dict[str, Any]
# GB of unique data and requests, of Table II.
TRACES = {
    "usr0": (2.41, 2_000_000), "web0": (7.26, 2_000_000), "prxy0": (0.34, 2_000_000),
    "mds0": (3.09, 1_211_034), "financial1": (0.45, 2_000_000), "financial2": (0.33, 2_000_000),
}  # fmt: skip
SBLOCK = "s-block,sblock_blocks=2000,cache=1%,overprovision=1%"
SCHEMES = {
    "HDD": ("raid5", "cmr"),
    "DVS": ("dvs", "segment"),
    "Segment": ("raid5", "segment"),
    "Sblock": ("raid5", SBLOCK),
}
# The paper's write cache, in whole chunks; and one that knows no groups.
GROUPS = "ssd_group=2MiB,ssd_depth=1,ssd_round=on"
CHUNKS = "ssd_group=64KiB,ssd_depth=1,ssd_round=on,ssd_write_policy=lru"
# As figure 7 is measured.
AS_IS: Doc = {
    "requests": 20_000, "read": 0.1, "write": 0.1, "live": 30, "own": "", "trace": "", "arrivals": "closed",
    "drive": "", "sblock_drive": "2GB", "hdd_cache": GROUPS, "mechanics": "full",
}  # fmt: skip
HALF = {"trace": ",written=50%"}
FULL = {**HALF, "requests": 200_000, "sblock_drive": "220MB"}
# What is changed, by the name that the table gives it.
CHANGES: dict[str, Doc] = {
    "as figure 7": {},
    "half of the data is written": HALF,
    "HDD's write cache is an LRU of chunks": {"hdd_cache": CHUNKS},
    "both of these": {**HALF, "hdd_cache": CHUNKS},
    "half written, ten times the data, full S-block drives": FULL,
    "half written, groups 10 % live, every read hits": {**HALF, "live": 10, "read": 1.0},
    "half written, the drives' own caches": {**HALF, "drive": ",cache=on"},
    "all of it written, no hot fifth": {"trace": ",written=100%,hot=0"},
    "a write cache of 1 %": {"write": 0.01},
    "no write cache": {"write": 0},
    "no read cache": {"read": 0},
    "requests every 30 ms, open": {"trace": ",interarrival=exp(30ms)", "arrivals": "trace"},
    "no rotation": {"mechanics": "no-rotation"},
    "groups 60 % live": {"live": 60},
    "chunks wait for full stripes": {"own": ",stripes=wait"},
    "stripes filled from old chunks": {"own": ",stripes=fill"},
    "tables in the zone, one on the SSD": {"own": ",tables=zone,tables_every=100ms,tables_cache=4blk"},
    "collections in idle time": {"own": ",idle=10ms", "trace": ",interarrival=exp(30ms)", "arrivals": "trace"},
}


def _spec(scheme: str, trace: str, o: Mapping[str, Any]) -> Doc:
    gb, of = TRACES[trace]
    blocks = round(gb * o["requests"] / of * 1e9 / 512)
    array, layer = SCHEMES[scheme]
    if scheme == "DVS":
        array += f",overprovision={100 - o['live']}%{o['own']}"
    caches = [f"ssd_{k}={max(1, round(o[k] * blocks / 128)) * 64}KiB" for k in ("read", "write") if o[k]]
    caches.append(o["hdd_cache"] if scheme == "HDD" else GROUPS)
    return {
        "drive": f"dvs-raid,capacity={o['sblock_drive'] if scheme == 'Sblock' else '2GB'}{o['drive']}",
        "layer": layer,
        "array": ",".join([array, *caches]),
        "trace": [f"synth:dvs-raid,stream={trace},requests={o['requests']},seed=3{o['trace']}"],
        "arrivals": o["arrivals"],
        "mechanics": o["mechanics"],
        "host_blocks": blocks,
        "prefill": "100%",
    }


def judged(ms: Mapping[tuple[str, str], float], media: Mapping[tuple[str, str], tuple[float, float]]) -> Doc:
    """What the claims ask of figures 7 and 8: mean responses and the drives' reads and writes, by scheme and trace."""
    of_hdd = {key: value / ms["HDD", key[1]] for key, value in ms.items()}
    # For as many requests as Table II has; all runs have the same number of them.
    ios = {(s, t): sum(media[s, t]) * TRACES[t][1] for s, t in media}
    share = [writes / max(1, reads) for reads, writes in media.values()]
    return {
        "mds0": {scheme: of_hdd[scheme, "mds0"] for scheme in SCHEMES},
        "web0": of_hdd["DVS", "web0"],
        "below_segment": sum(of_hdd["DVS", t] <= 0.8 * of_hdd["Segment", t] for t in TRACES),
        "below_both": sum(of_hdd["DVS", t] <= 0.8 * min(of_hdd["Segment", t], of_hdd["Sblock", t]) for t in TRACES),
        "in_order": sum(of_hdd["Segment", t] <= of_hdd["Sblock", t] for t in TRACES),
        "writes_a_read": {"least": min(share), "most": max(share)},
        "fewest_on_mds0": sum(ios[s, "mds0"] <= min(ios[s, t] for t in TRACES) for s in SCHEMES),
    }


def change(spec: Doc, control: _core.Control) -> Doc:
    """The claims with the change of this name: figures 7 and 8 whole, of figure 9 both ends."""
    o = {**AS_IS, **CHANGES[spec["change"]]}

    def run(scheme: str, trace: str, more: Mapping[str, Any]) -> Doc:
        whole = json.dumps(make_spec(None, _spec(scheme, trace, {**o, **more})))
        doc: Doc = json.loads(_core.run(whole, control, None)[0])
        return doc

    both = [(s, t) for t in TRACES for s in SCHEMES]
    ends = [(s, share) for s in SCHEMES for share in (0.05, 0.5)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        docs = dict(zip(both, pool.map(lambda key: run(key[0], key[1], {}), both), strict=True))
        caches = [lambda e=e: run(e[0], "financial1", {"read": e[1], "write": e[1]}) for e in ends]
        at = dict(zip(ends, pool.map(lambda go: go()["response_ms"]["mean"], caches), strict=True))
    ms = {key: doc["response_ms"]["mean"] for key, doc in docs.items()}
    media = {key: (doc["media"]["reads"], doc["media"]["writes"]) for key, doc in docs.items()}
    fall = {scheme: at[scheme, 0.05] - at[scheme, 0.5] for scheme in SCHEMES}
    return {
        **judged(ms, media),
        "fall": {scheme: at[scheme, 0.05] / at[scheme, 0.5] for scheme in SCHEMES},
        "fall_of_segment": {scheme: fall[scheme] / fall["Segment"] for scheme in SCHEMES},
    }
