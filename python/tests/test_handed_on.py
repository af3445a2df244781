"""What each command hands on: every option, with a value of its own, reaches what does the work."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from commands import Invoke

from smrlab import InputError, Trace, _core, api, devices, executors, papers, report, sweeps, targets, trace
from smrlab.cli import options
from smrlab.devices import Device

T = "synth:uniform,requests=5"
DEVICE = {
    "name": "d", "size": None, "host_size": 8 << 30, "timing": "model", "speed": 2.0, "scheduler": "sptf,depth=32",
    "metadata": "media", "seed": 7, "mode": "performance", "errors": True, "block": 4096, "record": "/r.parquet",
    "map_budget": 1 << 20, "stall_ns": 1_500_000, "chap": None, "drive": "tiny", "layer": "rmw", "array": "raid5",
}  # fmt: skip
MADE = (
    "device create d --drive tiny --layer rmw --array raid5 --size 8GiB --store S --timing model --speed 2 "
    "--scheduler sptf,depth=32 --metadata media --seed 7 --mode performance --errors --block 4096 --listen unix:/s "
    "--tls-psk /psk --tls-certificates /c --record /r.parquet --stall 1500us --map-budget 1MiB"
)
USUAL = {
    "name": "d", "size": None, "host_size": None, "timing": "none", "speed": 1.0, "scheduler": "fcfs",
    "metadata": "nv", "seed": 0, "mode": "data", "errors": False, "block": 512, "record": None,
    "map_budget": 256 << 20, "stall_ns": 500_000_000, "chap": None, "drive": "modern-7200", "layer": "raw",
}  # fmt: skip
STATE = {"array": "raid5", "drive": "tiny", "layer": "cmr", "metadata": "media"}
RUN = {"drive": "tiny", "trace": [T, "b"], "seed": "5", "window": "2s", "prefill": "50%", "force": True, "out": "O"}
RUNS = f"--trace {T} --trace b --drive tiny --seed 5 --window 2s --prefill 50% --force --out O --prefill-cache P"
GEOMETRY = {"target": "sim:tiny", "zones_only": True, "destroy": True, "keep_cache": True, "keep": None}
CUT = "--limit 9 --from 1s --until 2s --filter op=write --skip-bad 3 --join chain"
CUTS = {"limit": "9", "from": "1s", "until": "2s", "filter": "op=write", "skip_bad": "3", "join": "chain"}

# The words, what is called, and its arguments by their names.
CASES: list[tuple[str, tuple[Any, str], dict[str, Any]]] = [
    (
        f"compare {RUNS} --layer cmr --layer rmw --label x --label y --jobs 3 --cluster tcp://h:1 --wrap never",
        (api, "compare"),
        {**RUN, "layers": ["cmr", "rmw"], "labels": ["x", "y"], "jobs": 3, "cluster": "tcp://h:1", "wrap": "never",
         "prefill_cache": "P"},
    ),
    (
        f"compare --trace {T} --layer cmr",
        (api, "compare"),
        {"trace": [T], "layers": ["cmr"], "labels": None, "jobs": None, "cluster": None, "wrap": "capacity",
         "out": None, "force": False, "prefill_cache": True},
    ),
    (f"run {RUNS} --layer rmw,band=2 --set layer.band=3", (api, "run"),
     {**RUN, "layer": "rmw,band=3", "prefill_cache": "P"}),
    (f"run --trace {T}", (api, "run"), {"trace": [T], "out": None, "force": False, "prefill_cache": True}),
    # What is said stands above what the file says.
    ("run RUN --layer log", (api, "run"), {"layer": "log", "drive": "tiny", "seed": 3}),
    (f"run --trace {T} --from-state f --layer log", (api, "run"),
     {"trace": [T], **STATE, "layer": "log", "from_state": "f"}),
    ("validate d t --layer log --reference rel", (_core, "validate"),
     {"drive": "d", "trace": "t", "layer": "log", "reference": "rel"}),
    ("validate d t --fit /f.toml --reference rel", (_core, "fit"), {"drive": "d", "trace": "t", "reference": "rel"}),
    ("geometry extract sim:tiny --zones-only --destroy --keep-cache", (_core, "geometry_extract"), GEOMETRY),
    ("geometry extract sim:tiny", (_core, "geometry_extract"),
     {**GEOMETRY, "zones_only": False, "destroy": False, "keep_cache": False}),
    ("probe sim:tiny --destroy --keep-cache", (_core, "identify"),
     {"target": "sim:tiny", "keep_cache": True, "keep": None, "zones": None}),
    (MADE, (Device, "create"),
     {"name": "d", "config": DEVICE, "store": "S", "listen": "unix:/s", "tls": {"certificates": "/c", "psk": "/psk"}}),
    ("device create d", (Device, "create"), {"name": "d", "config": USUAL, "store": None, "listen": None, "tls": {}}),
    ("device create d --medium-size 1GiB", (Device, "create"), {"config": {**USUAL, "size": 1 << 30}}),
    ("device create d --from-state /f", (Device, "create"),
     {"config": {**USUAL, **STATE, "seed": 1, "from_state": "/f"}}),
    ("device create d --from-state /f --drive x --layer log --array raid6", (Device, "create"),
     {"config": {**USUAL, **STATE, "seed": 1, "from_state": "/f", "drive": "x", "layer": "log", "array": "raid6"}}),
    ("device create d --from-state /f --metadata nv --seed 0", (Device, "create"),
     {"config": {**USUAL, **STATE, "metadata": "nv", "seed": 0, "from_state": "/f"}}),
    ("device inject d --unreadable 7+3 --slow 5ms --error-at 4 --cut-at 5 --clear --disk 2", (Device, "ask"),
     {"cmd": "inject", "unreadable": [7, 10], "slow_ns": 5_000_000, "error_at": 4, "cut_at": 5, "clear": True,
      "disk": 2}),
    ("device inject d --cut-at 5", (Device, "ask"), {"cmd": "inject", "cut_at": 5, "disk": None, "clear": False}),
    ("device map d --cells 64 --disk 3", (Device, "ask"), {"cmd": "map", "cells": 64, "disk": 3}),
    ("device map d", (Device, "ask"), {"cmd": "map", "cells": 2048, "disk": None}),
    ("device reset-band d 3", (Device, "ask"), {"cmd": "reset-band", "band": 3}),
    ("device reset-stats d", (Device, "ask"), {"cmd": "reset-stats"}),
    ("device state d --out /f", (Device, "ask"), {"cmd": "state", "path": "/f"}),
    ("device fail d --disk 3", (Device, "ask"), {"cmd": "fail", "disk": 3}),
    ("device replace d --disk 3", (Device, "ask"), {"cmd": "replace", "disk": 3}),
    ("device stop d --force", (Device, "stop"), {"force": True}),
    ("device remove d --delete-store --force", (Device, "remove"), {"delete_own": True, "force": True}),
    ("device remove d", (Device, "remove"), {"delete_own": False, "force": False}),
    ("device mount d /m", (Device, "mount"), {"directory": Path("/m")}),
    ("device unmount d /m", (Device, "unmount"), {"directory": Path("/m")}),
    ("device snapshot d before", (Device, "snapshot"), {"label": "before"}),
    ("device clone d@before e", (devices, "clone"), {"source": "d@before", "name": "e"}),
    (f"trace convert {T} b -o /o.parquet {CUT}", (_core, "trace_write"),
     {"spec": {"trace": [T, "b"], **CUTS}, "out": "/o.parquet"}),
    (f"trace info {T} b {CUT}", (_core, "trace_info"), {"spec": {"trace": [T, "b"], **CUTS}}),
    ("trace synth zipf,requests=3 -o /o.parquet --seed 4", (_core, "trace_write"),
     {"spec": {"trace": ["synth:zipf,requests=3"], "seed": "4"}, "out": "/o.parquet"}),
    (f"trace scale {T} 0.5 -o /o.parquet", (_core, "trace_write"), {"spec": {"trace": [T], "scale_time": 0.5}}),
    (f"trace head {T} -n 7 --until 9s --from 1s -o /o.parquet", (_core, "trace_write"),
     {"spec": {"trace": [T], "limit": "7", "until": "9s", "from": "1s"}}),
    # Without a file ten are shown, or as many as are asked for.
    (f"trace head {T} --until 9s --from 1s", (trace, "Trace"),
     {"source": [T], "fields": {"limit": "10", "until": "9s", "from": "1s"}}),
    (f"trace head {T} -n 7", (trace, "Trace"), {"source": [T], "fields": {"limit": "7"}}),
    (f"trace interleave {T} b -o /o.parquet --burst 8 --seed 3 --address-space shared", (_core, "trace_write"),
     {"spec": {"trace": [T, "b"], "burst": 8, "seed": "3", "address_space": "shared"}}),
    (f"trace interleave {T} b -o /o.parquet --by-time", (_core, "trace_write"), {"spec": {"trace": [T, "b"]}}),
    ("drive new --like tiny --capacity 2TB --rpm 5400 --zones 25 --rate 2MB/s..1MB/s --surfaces 3 --tracks 4 "
     "--name n --out /no/d.toml", (_core, "drive_like"),
     {"base": "tiny", "name": "n", "capacity": 2 * 10**12, "rpm": 5400, "zones": 25, "rate": (2e6, 1e6), "surfaces": 3,
      "tracks": 4}),
    ("drive new --out /no/d.toml", (_core, "drive_like"),
     {"base": "modern-7200", "name": "d", "capacity": None, "rpm": None, "zones": None, "rate": None, "surfaces": None,
      "tracks": None}),
    ("sweep SPEC --out O --jobs 3 --scheduler tcp://h:1", (executors, "chosen"),
     {"scheduler": "tcp://h:1", "jobs": 3}),
    ("paper run ID --out O --quick --traces X", (papers, "reproduce"),
     {"scale": "quick", "cache": Path("O/runs"), "traces": Path("X"), "only": []}),
    ("paper run ID --figure F", (papers, "reproduce"),
     {"scale": "full", "cache": Path("out/papers/runs"), "traces": None, "only": ["F"]}),
    ("report O --no-svg", (report, "report_at"), {"place": "O", "svg": False}),
]  # fmt: skip


def told(
    words: str, called: tuple[Any, str], smrlab: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any] | str:
    """What the command calls with, the work itself not done; or why it is refused."""
    owner, name = called
    (folder / "s.toml").write_text('[base]\nlayer = "cmr"\n')
    (folder / "r.toml").write_text(f'trace = "{T}"\nlayer = "cmr"\ndrive = "tiny"\nseed = 3\n')
    real, seen = inspect.signature(getattr(owner, name)), []

    def stand_in(*args: Any, **more: Any) -> Any:
        bound = real.bind(*args, **more)
        seen.append(bound.arguments | bound.arguments.pop("more", {}) | bound.arguments.pop("options", {}))
        raise InputError("no further")

    with monkeypatch.context() as patch:
        patch.setattr(_core, "state_json", lambda _: json.dumps(STATE))
        patch.setattr(Device, "named", classmethod(lambda _, name: Device(folder / name)))
        for none in ("running", "died"):
            patch.setattr(Device, none, lambda _: False)
        patch.setattr(targets, "resolve", lambda text: text)
        patch.setattr(papers, "load", lambda _: SimpleNamespace(id="ID", experiments_of=lambda figure: [figure]))
        patch.setattr(owner, name, staticmethod(stand_in) if name == "create" else stand_in)
        files = {"SPEC": "s.toml", "RUN": "r.toml"}
        ended = smrlab(*(str(folder / files[word]) if word in files else word for word in words.split()))
    assert ended.status == 2, ended.err
    if not seen:
        return ended.err
    assert "no further" in ended.err, ended.err
    (call,) = seen
    return {key: json.loads(v) if key == "spec" and isinstance(v, str) else v for key, v in call.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][:60])
def test_every_option_reaches_what_does_the_work(
    case: tuple[str, tuple[Any, str], dict[str, Any]], smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under its own name."""
    words, called, expected = case
    call = told(words, called, smrlab, tmp_path, monkeypatch)
    assert isinstance(call, dict), call
    assert {key: call.get(key) for key in expected} == expected


def test_what_a_device_reports_of_its_zones_reaches_the_probe(
    smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = {"zones": [{"start": 0, "blocks": 512}]}
    monkeypatch.setattr(targets, "zones", lambda _: reported)
    monkeypatch.setattr(targets, "told", lambda *_: None)
    call = told("probe sim:tiny --destroy", (_core, "identify"), smrlab, tmp_path, monkeypatch)
    assert isinstance(call, dict), call
    assert json.loads(call["zones"]) == reported


NEEDED = {"--trace", "--layer", "-o", "--out", "--destroy", "--fit", "--from-state", "--error-at"}
"""Options that a command cannot do without, or others mean nothing."""


def flat(call: dict[str, Any]) -> dict[str, Any]:
    """What is handed on and can be compared, by its way from the top."""
    found: dict[str, Any] = {}
    for key, value in call.items():
        if isinstance(value, dict):
            found |= {f"{key}/{k}": v for k, v in flat(value).items()}
        elif isinstance(value, (str, int, float, list, tuple, Path)):
            found[key] = value
    return found


@pytest.mark.parametrize("case", [c for c in CASES if c[0].count(" -") > 1], ids=lambda case: case[0][:60])
def test_an_option_says_alone_what_it_says_among_others(
    case: tuple[str, tuple[Any, str], dict[str, Any]], smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, called, _ = case
    fixed, *rest = words.split(" -")
    given: dict[str, str] = {}
    for option in rest:
        name = "-" + option.split()[0]
        given[name] = given.get(name, "") + " -" + option
    base = fixed + "".join(text for name, text in given.items() if name in NEEDED)

    def asked(words: str) -> dict[str, Any]:
        call = told(words, called, smrlab, tmp_path, monkeypatch)
        return {} if isinstance(call, str) else flat(call)

    full, least = asked(words), asked(base)
    left = {key for key, value in full.items() if key not in least or least[key] != value}
    for name, text in given.items():
        if name in NEEDED:
            continue
        alone = asked(base + text)
        assert alone, f"{name} alone is refused"
        said = {key for key in left if alone.get(key) == full[key] and least.get(key) != alone.get(key)}
        others = {k: v for k, v in alone.items() if k not in said and v != least.get(k, v)}
        assert not others, f"{name} alone says {others}"
        left -= said
    assert not left, f"said by nothing alone: {left}"


@pytest.mark.parametrize("name", options.FIELDS)
def test_a_field_is_explained_where_it_is_an_option(name: str) -> None:
    """In a sentence, with its default, which a switch does not need; what it takes is what the engine says."""
    field = options.FIELDS[name]
    kind, option = get_args(options.field_option(name))
    says = field["summary"].rstrip(".") + "."
    told = f" Default: {field['default']}." if field["default"] and field["accepts"] != "a switch" else ""
    assert option.help == says[0].upper() + says[1:] + told
    assert option.default == f"--{name.replace('_', '-')}"
    # Several drives are refused by the command, which has to see them all.
    several = field["accepts"] == "texts" or name in ("drive", "array")
    assert kind == (bool | None if field["accepts"] == "a switch" else list[str] | None if several else str | None)


def test_a_trace_of_the_library_is_what_the_command_line_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step under the engine's name for it."""
    asked: list[Any] = []

    def write(spec: str, out: str, _: Any) -> int:
        asked.append((json.loads(spec), out))
        return 7

    monkeypatch.setattr(_core, "trace_write", write)
    trace = Trace("a").between("1s", "2s").where(op="write").head("1k").scale_time(0.5).wrap(64)
    assert trace.save("/o") == 7
    spec = {
        "trace": ["a"], "from": "1s", "until": "2s", "filter": "op=write", "limit": 1000, "scale_time": 0.5,
        "wrap": "capacity", "host_blocks": 64,
    }  # fmt: skip
    assert asked == [(spec, "/o")]
    assert Trace.chain(Trace("a"), Trace("b"), gap="3s").fields == {"join": "chain,gap=3s"}
    assert Trace.synth("zipf", requests=3, theta=0.9).source == "synth:zipf,requests=3,theta=0.9"
    assert sweeps.Study.of({"base": {"layer": "cmr"}, "seeds": 2}).points[1].spec == {"layer": "cmr", "seed": 2}
