"""The page of a reproduction: one self-contained HTML file a paper, and an index."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import write_whole
from ..text import counted
from .claims import ORDER, Verdict
from .figures import draw, tabulate
from .paper import Experiment, Figure, Paper, Table
from .reproduce import NOT_ASKED, Reproduction

CSS = """
body{font:15px/1.5 Georgia,serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2.2em;border-top:1px solid #ccc;padding-top:.8em}
table{border-collapse:collapse;width:100%;font-size:.88em}
td,th{border-bottom:1px solid #ddd;padding:.3em .6em;text-align:left;vertical-align:top}
code,pre{font-size:.82em}pre{background:#f6f6f4;padding:.6em;overflow-x:auto}
.scroll{overflow-x:auto;margin-top:.8em}.verdicts td:first-child{white-space:nowrap}
figure{margin:1em 0}figure svg{width:44em;max-width:100%;height:auto}
figcaption,details{color:#444;font-size:.9em}.verdicts td:nth-child(6){white-space:nowrap;font-weight:bold}
.numbers td{text-align:right}.numbers td:first-child{text-align:left}
.reproduced td:nth-child(6){color:#14632a}.partly td:nth-child(6){color:#8a5a00}
.not td:nth-child(6){color:#a11d12}.not-run td:nth-child(6){color:#666}
.not td{background:#fdf1ef}.partly td{background:#fdf8ea}.not-run td{background:#f4f4f4}
"""


def _prose(text: str) -> str:
    """What stands in backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{_prose(t)}</{tag}>" for t in texts)


def _claims(verdicts: Sequence[Verdict]) -> str:
    head = _cells("th", ("claim", "statement", "paper", "ours", "accepted", "verdict"))
    rows = ""
    for v in verdicts:
        why = f"<br><em>{_prose(v.why)}</em>" if v.why else ""
        statement = f"<td>{_prose(v.statement)}{why}</td>"
        rest = _cells("td", (v.paper, v.ours, v.tolerance, v.verdict))
        rows += f"<tr class='{v.verdict.replace(' ', '-')}'><td>{v.id}</td>{statement}{rest}</tr>"
    return f"<div class=scroll><table class=verdicts><tr>{head}</tr>{rows}</table></div>"


def command(found: Reproduction, figure: str = "") -> str:
    """The command that makes this page, or one of its figures."""
    parts = ["smrlab paper run", found.paper.id, "--quick" if found.scale == "quick" else ""]
    parts += [f"--figure {figure}" if figure else "", f"--traces {found.traces}" if found.traces else ""]
    return " ".join(p for p in parts if p)


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


def _how(found: Reproduction, experiment: Experiment, part: str) -> str:
    """The command and the specification of an experiment: the first run's, and what is varied."""
    runs = found.experiments[experiment.id]
    lines = [f"# {counted(len(runs), 'run')}; the first one's specification:"]
    if experiment.measure:
        lines.append(f"# measured by papers/{found.paper.id}/{experiment.measure}")
    lines += [f"{key} = {_toml(value)}" for key, value in found.specs[experiment.id].items()]
    for key in experiment.grid:
        lines.append(f"# {key}: {', '.join(dict.fromkeys(str(r.point[key]) for r in runs))}")
    text = html.escape("\n".join(lines))
    said = f"<p><code>{html.escape(command(found, part))}</code></p>"
    return f"{said}<details><summary>specification</summary><pre>{text}</pre></details>"


def _numbers(cells: Sequence[Sequence[str]]) -> str:
    rows = "".join(f"<tr>{_cells('td', row)}</tr>" for row in cells[1:])
    return f"<div class=scroll><table class=numbers><tr>{_cells('th', cells[0])}</tr>{rows}</table></div>"


def _drawn(part: Figure | Table, found: Reproduction, folder: Path) -> str:
    if isinstance(part, Table):
        return _numbers(tabulate(part, found.experiments, folder))
    svg = draw(part, found.experiments, folder).read_text()
    return svg[svg.index("<svg") :]


def write_page(found: Reproduction, folder: Path) -> Path:
    """Draws all figures into `folder` and writes the page; gives its path."""
    paper = found.paper
    folder.mkdir(parents=True, exist_ok=True)
    about = "".join(f"<p>{_prose(paragraph)}</p>" for paragraph in paper.setting.split("\n\n"))
    parts = [
        f"<h1>{html.escape(paper.title)}</h1><p>{html.escape(paper.citation)}</p>{about}",
        f"<p><code>{html.escape(command(found))}</code></p>",
    ]
    shown: set[str] = set()
    for part in paper.parts:
        if part.experiment not in found.experiments:
            continue
        experiment = next(e for e in paper.experiments if e.id == part.experiment)
        drawn = _drawn(part, found, folder)
        beside = [v for v, c in zip(found.verdicts, paper.claims, strict=True) if c.figure == part.id]
        shown |= {v.id for v in beside}
        parts.append(
            f"<h2>{html.escape(part.title)}</h2><figure>{drawn}<figcaption>{_prose(experiment.about)}</figcaption>"
            f"</figure>{_how(found, experiment, part.id)}{_claims(beside) if beside else ''}"
        )
    rest = [v for v in found.verdicts if v.id not in shown and v.why != NOT_ASKED]
    if rest:
        parts.append("<h2>Other claims</h2>" + _claims(rest))
    text = f"<!doctype html><meta charset=utf-8><title>{html.escape(paper.title)}</title><style>{CSS}</style>"
    path = folder / f"{paper.id}.html"
    write_whole(path, (text + "".join(parts)).encode())
    return path


def write_index(pages: Sequence[tuple[Paper, Sequence[Verdict], Path]], folder: Path) -> Path:
    """The index of several pages."""
    rows = []
    for paper, verdicts, path in pages:
        counts = ", ".join(f"{n} {name}" for name in ORDER if (n := sum(v.verdict == name for v in verdicts)))
        link = html.escape(str(path.relative_to(folder)))
        rows.append(f"<tr><td><a href='{link}'>{html.escape(paper.title)}</a><td>{html.escape(counts)}")
    text = f"<!doctype html><meta charset=utf-8><title>The papers</title><style>{CSS}</style><h1>The papers</h1>"
    path = folder / "index.html"
    write_whole(path, f"{text}<table>{''.join(rows)}</table>".encode())
    return path
