"""Prefills are kept for the next run, unless that is switched off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Invoke

RUN = ("run", "--trace", "synth:uniform,requests=200", "--drive", "modern-7200,capacity=60GB", "--layer", "rmw")


def test_the_next_run_takes_what_was_kept(smrlab: Invoke, tmp_path: Path) -> None:
    runs = [smrlab(*RUN, "--prefill", "30%", "--prefill-cache", tmp_path / "c", "--json").out for _ in "ab"]
    files = list((tmp_path / "c").iterdir())
    assert [f.suffix for f in files] == [".prefill"]
    docs = [json.loads(text) for text in runs]
    for doc in docs:
        del doc["space"]["map_bytes_peak"]
    assert docs[0] == docs[1]


def test_it_can_be_switched_off_and_moved(smrlab: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMRLAB_PREFILL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    smrlab(*RUN, "--prefill", "30%", "--prefill-cache", "off", "--json")
    assert not list(tmp_path.rglob("*.prefill"))
    smrlab(*RUN, "--prefill", "30%", "--json")
    assert [p.parent for p in tmp_path.rglob("*.prefill")] == [tmp_path / "smrlab" / "prefills"]
    # A comparison keeps them as well.
    smrlab("compare", *RUN[1:], "--prefill", "20%", "--json")
    assert len(list(tmp_path.rglob("*.prefill"))) == 2


def test_a_comparison_fills_the_caches_that_there_are_and_says_so(smrlab: Invoke) -> None:
    layers = ("--layer", "cmr", "--layer", "disk-cache")
    ended = smrlab("compare", *RUN[1:5], *layers, "--prefill", "10%,of=cache")
    assert ended.status == 0, ended.err
    assert "cmr nothing, it has no cache" in ended.err
    assert "disk-cache 10% of its cache" in ended.err
    alone = smrlab(*RUN[:5], "--layer", "cmr", "--prefill", "10%,of=cache")
    assert alone.status == 2
    assert "cmr has no cache" in alone.err


def test_a_run_that_begins_with_full_caches_says_so(smrlab: Invoke) -> None:
    layer = ("--layer", "rmw", "--prefill", "100%", "--arrivals", "closed")
    for command in ("run", "compare"):
        ended = smrlab(command, "--trace", "synth:uniform,requests=50", "--drive", "he2014-example", *layer)
        assert "What was written before the run fills rmw, so cleaning began" in " ".join(ended.err.split()), command
