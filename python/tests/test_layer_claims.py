"""Claims that a change of a layer has to turn red: `cargo xtask mutants --area papers` plants one for each."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from smrlab import papers

# Of each paper a claim, and the runs that it is cut down to: what tells the change.
CUT: list[tuple[str, str, dict[str, str]]] = [
    ("cassuto2010", "001-T3", {"requests=435285": "requests=4352", "requests=75615": "requests=756"}),
    ("he2014", "003-B2", {'["static-1234", "static-R(4123)", "static-124R(3)", "static-14R(23)"]': '["static-1234"]',
                          '["25%", "50%", "62.5%", "75%", "87.5%", "93.75%", "100%"]': '["25%"]'}),
    ("dvs-raid", "002-D11", {}),
    ("arrays-interleaving", "000-A5", {"requests = 400000": "requests = 40000"}),
    ("dm-shingle", "004-K1", {"requests = 1500": "requests = 300", "rounds = 3": "rounds = 1",
                              "ks = [1, 3, 8]": "ks = [1, 8]",
                              '  { name = "read 4 KiB", rw = "read", block = 4096 },\n': "",
                              '  { name = "write 1 MiB", rw = "write", block = 1048576 },\n': ""}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "claim", "cut"), CUT, ids=[claim for _, claim, _ in CUT])
def test_the_layers_as_they_are_reproduce_it(
    name: str, claim: str, cut: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "papers"
    # Where the paper's own programs look for the tests' and the benches' helpers.
    for folder in ("tests", "benches"):
        (tmp_path / folder).symlink_to(papers.load(name).folder.parents[1] / folder)
    shutil.copytree(papers.load(name).folder, home / name)
    path = home / name / "paper.toml"
    text = path.read_text()
    for whole, part in cut.items():
        assert whole in text
        text = text.replace(whole, part)
    path.write_text(text)
    monkeypatch.setenv("SMRLAB_PAPERS", str(home))
    paper = papers.load(name)
    paper = replace(paper, claims=tuple(c for c in paper.claims if c.id == claim))
    only = [e.id for e in paper.experiments if e.id in paper.claims[0].uses()]
    (found,) = papers.reproduce(paper, "quick", tmp_path / "runs", only=only).verdicts
    if name == "dm-shingle" and found.verdict == "not run":
        pytest.skip(found.why)
    assert found.verdict == "reproduced", found
