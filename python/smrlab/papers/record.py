"""The verdicts on record: papers/ID/verdicts.toml, and the project's Markdown page that is made from it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..files import write_whole
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
        "For readers of the paper: which of its claims come out here, and why the others do not.",
        "",
        paper.citation,
        "",
        paper.setting,
        "",
        f"Written by `smrlab paper run {paper.id} --record`. `smrlab paper run {paper.id}` measures again, draws",
        "the figures beside the claims, and ends with status 1 where a verdict is worse than here.",
    ]
    for title, prefix in (("Measured on generated requests", ""), ("Measured on public traces", "traces-")):
        # Full scale first: it is what counts.
        scales = {scale: record[prefix + scale] for scale in reversed(SCALES) if prefix + scale in record}
        if scales:
            lines += ["", f"## {title}", "", *_part(paper, scales, prefix)]
    return "\n".join(lines) + "\n"


def _part(paper: Paper, scales: Mapping[str, Mapping[str, Mapping[str, str]]], prefix: str) -> list[str]:
    """The verdicts of some scales: a short table, then each claim with what was found, then what was not run."""
    heads = " | ".join(f"{scale} scale" for scale in scales)
    table = [f"| claim | what it says | {heads} |", "|---|---|" + "---|" * len(scales)]
    each: list[str] = []
    absent = []
    for claim in paper.claims:
        rows = {scale: found[claim.id] for scale, found in scales.items() if claim.id in found}
        if not any(row["verdict"] != "not run" for row in rows.values()):
            absent += [claim.id] * bool(rows)
            continue
        verdicts = [f"**{rows[s]['verdict']}**" if s in rows else "" for s in scales]
        link = f"[{claim.id}](#{prefix}{claim.id.lower()})"
        table.append("| " + " | ".join(c.replace("|", "\\|") for c in (link, claim.statement, *verdicts)) + " |")
        each += ["", f'<a id="{prefix}{claim.id.lower()}"></a>**{claim.id}. {claim.statement}.**', ""]
        each += [f"- paper: {claim.paper}", f"- accepted: {claim.tolerance}"]
        each += [f"- {scale} scale: {row['ours']}: **{row['verdict']}**" for scale, row in rows.items() if row["ours"]]
        # A smaller scale has its own explanation where its verdict is another one.
        whys = {row["verdict"]: row["why"] for row in reversed(rows.values())}
        each += [f"- {why}" for why in dict.fromkeys(whys[row["verdict"]] for row in rows.values()) if why]
    left = ["", f"Not run on these: {', '.join(absent)}."] if absent else []
    return [*table, *left, *each]
