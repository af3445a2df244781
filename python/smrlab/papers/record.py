"""The verdicts on record: papers/ID/verdicts.toml, and the project's Markdown page that is made from it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..outdir import write_whole
from .claims import Verdict
from .paper import SCALES, Paper


def recorded(paper: Paper) -> dict[str, dict[str, dict[str, str]]]:
    """The verdicts on record: by scale, then by claim."""
    path = paper.folder / "verdicts.toml"
    return tomllib.loads(path.read_text()) if path.is_file() else {}


def record(paper: Paper, scale: str, verdicts: Sequence[Verdict]) -> None:
    """Writes these verdicts as the baseline of that scale, and the page that is made from the record."""
    record = recorded(paper)
    record[scale] = {v.id: {"verdict": v.verdict, "ours": v.ours, "why": v.why} for v in verdicts}
    lines = ["# Written by `smrlab paper run --record`: the verdicts with which later runs are compared."]
    for name in (*SCALES, *sorted(set(record) - set(SCALES))):
        lines += ["", f"[{name}]"] if name in record else []
        for claim, row in record.get(name, {}).items():
            lines.append(f'"{claim}" = {{ {", ".join(f"{key} = {_toml(value)}" for key, value in row.items())} }}')
    write_whole(paper.folder / "verdicts.toml", ("\n".join(lines) + "\n").encode())
    write_whole(markdown_path(paper), markdown(paper, record).encode())


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def markdown_path(paper: Paper) -> Path:
    """Where the project's page of a paper is."""
    return paper.folder.parents[1] / "docs" / "papers" / f"{paper.id}.md"


def markdown(paper: Paper, record: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """The project's page of a paper, from the record alone."""
    lines = [
        f"# {paper.title}",
        "",
        paper.citation,
        "",
        paper.setting,
        "",
        f"Written by `smrlab paper run {paper.id} --record`. `smrlab paper run {paper.id}` measures again, draws",
        "the figures beside the claims, and ends with status 1 where a verdict is worse than here.",
    ]
    for scale in (s for s in (*SCALES, *(f"traces-{s}" for s in SCALES)) if s in record):
        title = f"{scale} scale" if scale in SCALES else f"{scale.removeprefix('traces-')} scale, with public traces"
        lines += ["", f"## Measured at {title}", "", "| claim | statement | paper | ours | accepted | verdict |"]
        lines += ["|---|---|---|---|---|---|"]
        whys = []
        for claim in paper.claims:
            row = record[scale].get(claim.id)
            if row is None:
                continue
            cells = (claim.id, claim.statement, claim.paper, row["ours"], claim.tolerance, f"**{row['verdict']}**")
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
            if row["why"]:
                whys.append(f"- **{claim.id}**: {row['why']}")
        lines += ["", *whys] if whys else []
    return "\n".join(lines) + "\n"
