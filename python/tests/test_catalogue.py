"""`smrlab list` and `smrlab explain`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from commands import Invoke

from smrlab import plain, shelf
from smrlab.cli import catalogue


@pytest.mark.parametrize("kind", catalogue.KINDS)
def test_everything_that_is_listed_can_be_explained(smrlab: Invoke, kind: str) -> None:
    entries = smrlab("list", kind, "--json").json()
    assert entries
    for entry in entries:
        ended = smrlab("explain", entry["name"])
        assert ended.status == 0, ended.err
        assert entry["name"] in ended.out
        for parameter in entry.get("params", []):
            assert parameter["name"] in ended.out
            assert parameter["doc"], f"{entry['name']}: {parameter['name']} has no documentation"
        assert entry["summary"], f"{entry['name']} has no summary"
        if kind == "metrics":
            continue
        # What the list says of it, whichever way its lines are broken.
        text = "".join(ended.out.split())
        told = [entry["summary"], entry.get("reference"), *(p["default"] for p in entry.get("params", []))]
        assert all("".join(words.split()) in text for words in told if words), entry["name"]
        if kind == "papers":
            paper = tomllib.loads((shelf.home() / entry["name"] / "paper.toml").read_text())
            assert (entry["summary"], entry["reference"]) == (paper["title"], paper["citation"])


def test_the_readme_counts_formats_and_generators(smrlab: Invoke) -> None:
    formats, generators = (len(smrlab("list", kind, "--json").json()) for kind in ("formats", "generators"))
    page = (Path(__file__).parents[2] / "README.md").read_text()
    assert f"{formats} formats are read, and {generators} generators made" in page


def test_words_for_results_are_explained_with_formula_and_source(smrlab: Invoke) -> None:
    war = smrlab("explain", "WAR").out
    assert all(key in war for key in ("war.per_update", "war.per_write", "war.per_request", "He and Du 2014"))
    formula = "media.blocks_written / (host.blocks_written - host.refused_blocks_written)"
    assert formula in smrlab("explain", "write amplification").out
    assert smrlab("explain", "stalls").out.count("stalls.") >= 7
    ended = smrlab("explain", "stals")
    assert ended.status == 2
    assert "did you mean 'stall" in ended.err
    assert "did you mean 'overprovision'" in smrlab("explain", "overprovison").err


def test_a_parameter_is_explained_for_all_that_have_it(smrlab: Invoke) -> None:
    doc = smrlab("explain", "overprovision", "--json").json()
    assert doc["kind"] == "parameter"
    of = [name for entry in doc["entries"] for name in entry["of"].split(", ")]
    kinds = ("layers", "arrays", "generators", "formats", "schedulers", "drives")
    every = [entry for kind in kinds for entry in catalogue.entries(kind)]
    assert sorted(of) == sorted(e["name"] for e in every if "overprovision" in [p["name"] for p in e["params"]])
    said = smrlab("explain", "overprovision").out
    assert all(entry["doc"].split()[0] in said and entry["default"] in said for entry in doc["entries"])
    assert [e["of"] for e in doc["entries"] if e["default"] == "70%"] == ["dvs"]


def test_prose_is_set_anew_and_lists_and_tables_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "width", lambda: 20)
    text = "One two three\nfour five six.\n\n- `a`: an item that\n  goes on\n- b\n\n    smrlab run --layer log # kept\n"
    assert plain.prose(text).splitlines() == [
        "One two three four",
        "five six.",
        "",
        "- `a`: an item that",
        "  goes on",
        "- b",
        "",
        "    smrlab run --layer log # kept",
    ]


def test_prose_is_no_wider_than_can_be_read() -> None:
    """Where stdout is no terminal tables have 200 columns."""
    assert plain.width() == 200
    lines = plain.prose("nine letters " * 40).splitlines()
    assert plain.LONGEST - len("letters") <= len(lines[0]) <= plain.LONGEST
