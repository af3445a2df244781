"""Pages of reproductions: one self-contained HTML file a paper, and the project's own Markdown page from the record."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..outdir import write_whole
from .claims import Verdict
from .figures import draw
from .paper import SCALES, Paper
from .reproduce import Reproduction

CSS = """
body{font:15px/1.5 Georgia,serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #ddd;padding:.35em .6em;text-align:left;vertical-align:top}
code{font-size:.85em}.scroll{overflow-x:auto}figure{margin:1em 0}figcaption{color:#555;font-size:.9em}
.reproduced{background:#e3f2e6}.partly{background:#fff3d6}.not{background:#fbdcd8}.not-run{background:#eee}
"""


def _table(verdicts: Sequence[Verdict]) -> str:
    head = "<tr><th>claim<th>statement<th>paper<th>ours<th>accepted<th>verdict<th>why</tr>"
    rows = "".join(
        f"<tr class='{v.verdict.replace(' ', '-')}'>"
        + "".join(f"<td>{html.escape(t)}" for t in (v.id, v.statement, v.paper, v.ours, v.tolerance, v.verdict, v.why))
        for v in verdicts
    )
    return f"<div class=scroll><table>{head}{rows}</table></div>"


def write_page(found: Reproduction, folder: Path) -> Path:
    """Draws all figures into `folder` and writes the page; gives its path."""
    paper = found.paper
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        f"<h1>{html.escape(paper.title)}</h1><p>{html.escape(paper.citation)}</p><p>{html.escape(paper.setting)}</p>",
        f"<p><code>smrlab paper run {paper.id}{' --quick' if found.scale == 'quick' else ''}</code></p>",
    ]
    shown: set[str] = set()
    for figure in paper.figures:
        if figure.experiment not in found.experiments:
            continue
        svg = draw(figure, found.experiments[figure.experiment], folder).read_text()
        svg = svg[svg.index("<svg") :]
        beside = [v for v, c in zip(found.verdicts, paper.claims, strict=True) if c.figure == figure.id]
        shown |= {v.id for v in beside}
        experiment = next(e for e in paper.experiments if e.id == figure.experiment)
        parts.append(
            f"<h2>{html.escape(figure.title)}</h2><figure>{svg}<figcaption>{html.escape(experiment.about)}"
            f"<br><code>{html.escape(str(dict(experiment.spec)))}</code></figcaption></figure>"
            + (_table(beside) if beside else "")
        )
    rest = [v for v in found.verdicts if v.id not in shown]
    if rest:
        parts.append("<h2>Other claims</h2>" + _table(rest))
    text = f"<!doctype html><meta charset=utf-8><title>{html.escape(paper.title)}</title><style>{CSS}</style>"
    path = folder / f"{paper.id}.html"
    write_whole(path, (text + "".join(parts)).encode())
    return path


def write_index(pages: Sequence[tuple[Paper, Sequence[Verdict], Path]], folder: Path) -> Path:
    """The index of several pages."""
    rows = []
    for paper, verdicts, path in pages:
        counts = ", ".join(
            f"{sum(v.verdict == name for v in verdicts)} {name}" for name in dict.fromkeys(v.verdict for v in verdicts)
        )
        link = html.escape(str(path.relative_to(folder)))
        rows.append(f"<tr><td><a href='{link}'>{html.escape(paper.title)}</a><td>{html.escape(counts)}")
    text = f"<!doctype html><meta charset=utf-8><title>The papers</title><style>{CSS}</style><h1>The papers</h1>"
    path = folder / "index.html"
    write_whole(path, f"{text}<table>{''.join(rows)}</table>".encode())
    return path


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
        for claim, row in record.get(name, {}).items():
            lines.append(f'\n[{name}."{claim}"]')
            lines += [f"{key} = {_toml(value)}" for key, value in row.items()]
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
