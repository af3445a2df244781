"""Sessions at a prompt, one a module, with what each line answers: values, units, orders, defaults and refusals.

`UPDATE=1 pytest python/tests/test_sessions.py` writes the answers again; the difference is to be read.
"""

from __future__ import annotations

import doctest
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smrlab.cli import console
from smrlab.errors import SmrlabError

SESSIONS = sorted((Path(__file__).parent / "sessions").glob("*.txt"))


def no(call: Callable[..., Any], *args: Any, **more: Any) -> None:
    """Says why a call is refused."""
    try:
        print("not refused:", call(*args, **more))
    except (SmrlabError, KeyboardInterrupt, OSError, AttributeError, KeyError) as fault:
        print(f"{type(fault).__name__}: {fault}")


def written(answer: str) -> str:
    """As it stands in a session: no blanks at the ends of lines, and empty ones marked."""
    lines = [line.rstrip() for line in answer.split("\n")]
    return "\n".join([*(line or "<BLANKLINE>" for line in lines[:-1]), lines[-1]])


class Compared(doctest.OutputChecker):
    """Blanks at the ends of lines are not seen."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether it is the answer."""
        return want == written(got)


class Answers(doctest.DocTestRunner):
    """Keeps what each line answered."""

    def __init__(self) -> None:
        super().__init__(Compared(), verbose=False, optionflags=doctest.REPORT_NDIFF)
        self.answers: dict[int, str] = {}

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        """One line answered something else."""
        self.answers[example.lineno] = written(got)
        super().report_failure(out, test, example, got)


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_a_session_goes_as_it_is_written(session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMRLAB_STATE", "state")
    text = session.read_text()
    known = {"no": no, "monkeypatch": monkeypatch, "Path": Path}
    parsed = doctest.DocTestParser().get_doctest(text, known, session.stem, str(session), 0)
    seen: list[str] = []
    runner = Answers()
    # What goes to stderr is seen, too; a session has a stdout of its own.
    monkeypatch.setattr(console, "note", lambda text: print(text))
    runner.run(parsed, out=seen.append)
    if os.environ.get("UPDATE") and runner.answers:
        lines = text.splitlines(keepends=True)
        for example in reversed(parsed.examples):
            if example.lineno in runner.answers:
                first = example.lineno + example.source.count("\n")
                last = first + example.want.count("\n")
                lines[first:last] = [runner.answers[example.lineno]]
        session.write_text("".join(lines).rstrip("\n") + "\n")
    assert not seen, "".join(seen)
