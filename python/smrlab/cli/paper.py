"""`smrlab paper`: the papers' tables, figures and claims from our own runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import targets
from ..errors import CheckFailed
from ..text import counted
from . import complete, console
from . import options as o

app = typer.Typer(
    help="Reproduce a paper: its figures from our own runs, and a verdict on each claim.", no_args_is_help=True
)

RUN_HELP = """Reproduce a paper and judge its claims; exit status 1 where a verdict is worse than the recorded one.

Runs are kept in DIR/runs: a second call runs only what changed, and an interrupted one goes on.

[bold]Examples[/bold]

  smrlab paper run he2014 --quick

  smrlab paper run all --out out/papers

  smrlab paper run cassuto2010 --traces ../shared/traces --json
"""


def register(parent: typer.Typer) -> None:
    """Adds the command group."""
    parent.add_typer(app, name="paper")


@app.command("list", help="The papers, and what was found of the claims of each.")
def list_papers(as_json: o.JsonOption = False) -> None:
    """List the papers."""
    from .. import papers
    from ..papers.record import recorded

    rows: list[dict[str, Any]] = []
    for paper in map(papers.load, papers.known()):
        verdicts = [v["verdict"] for v in recorded(paper).get("full", {}).values()]
        rows.append({"id": paper.id, "title": paper.title, "claims": len(paper.claims),
                     "verdicts": {v: verdicts.count(v) for v in dict.fromkeys(verdicts)}})  # fmt: skip
    if as_json:
        console.print_json({"papers": rows})
        return
    for row in rows:
        told = ", ".join(f"{n} {verdict}" for verdict, n in row["verdicts"].items())
        text = f"{row['title']} ({counted(row['claims'], 'claim')}; on record at full scale: {told or 'none'})"
        console.out().print(f"[bold]{row['id']}[/bold]  {text}", highlight=False)


@app.command("run", help=RUN_HELP)
def run(
    name: Annotated[str, typer.Argument(help="A paper's id, or 'all'.", metavar="ID", autocompletion=complete.papers)],
    out: Annotated[Path, typer.Option(help="Folder of pages, figures and runs.", metavar="DIR")] = Path("out/papers"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter runs: what can be told from them.")] = False,
    figure: Annotated[str | None, typer.Option(help="Only what this figure or table needs.", metavar="FIGURE")] = None,
    traces: Annotated[Path | None, typer.Option(help="Folder with the original or like traces.", metavar="DIR")] = None,
    record: Annotated[bool, typer.Option("--record", help="Make these verdicts the recorded ones.")] = False,
    jobs: o.JobsOption = None,
    scheduler: o.SchedulerOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Reproduce one paper or all."""
    from .. import papers
    from ..executors import chosen
    from ..papers import page
    from ..papers import record as records

    scale = "quick" if quick else "full"
    kept = f"traces-{scale}" if traces else scale
    done, faults = [], []
    with chosen(scheduler, jobs) as executor:
        for paper in [papers.load(n) for n in (papers.known() if name == "all" else [name])]:
            only = paper.experiments_of(figure) if figure else []
            targets.folder(out)
            with console.progress() as watch:
                found = papers.reproduce(
                    paper, scale, out / "runs", traces=traces, only=only, executor=executor, watch=watch
                )
            path = page.write_page(found, out / paper.id)
            before = records.recorded(paper).get(kept, {})
            faults += [
                f"{v.id}: {v.verdict}, was {before[v.id]['verdict']} ({v.ours}; accepted: {v.tolerance})"
                for v in found.verdicts
                if v.id in before and papers.worse(v, before[v.id]["verdict"])
            ]
            if record and not figure:
                records.record(paper, kept, found.verdicts)
            done.append((paper, found.verdicts, path))
            if not as_json:
                _show(paper.title, found.verdicts, path)
    page.write_index(done, out)
    if as_json:
        docs = [{"schema": 1, "paper": p.id, "claims": [v.row() for v in verdicts]} for p, verdicts, _ in done]
        console.print_json(docs[0] if name != "all" else {"papers": docs})
    if faults and not record:
        raise CheckFailed("worse than recorded:\n" + "\n".join(faults))


def _show(title: str, verdicts: list, path: Path) -> None:  # type: ignore[type-arg]
    from rich.table import Table

    table = Table(title=title, box=None, title_justify="left", pad_edge=False)
    for head in ("claim", "statement", "paper", "ours", "accepted", "verdict"):
        table.add_column(head, overflow="fold")
    colours = {"reproduced": "green", "partly": "yellow", "not": "red", "not run": "dim"}
    for v in verdicts:
        verdict = f"[{colours[v.verdict]}]{v.verdict}[/]"
        cells = (v.id, v.statement, v.paper, v.ours or v.why, v.tolerance)
        table.add_row(*map(console.escape, cells), verdict)
    console.out().print(table)
    console.note(f"page: {path}")
