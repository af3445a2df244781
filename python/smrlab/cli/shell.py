"""Completion in bash, which takes words apart at `=` and `:`, so that it would offer nothing behind them."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator

WORDS, PLACE, WANTED = "COMP_WORDS", "COMP_CWORD", "_SMRLAB_COMPLETE"
_BREAK = re.compile("[=:]+")


def joined(words: list[str]) -> list[str]:
    """The words up to the cursor as they were typed."""
    out: list[str] = []
    glue = False
    for i, word in enumerate(words):
        is_break = bool(_BREAK.fullmatch(word))
        # An empty word behind a break at the end is a new one: a space was typed.
        if out and (is_break or (glue and word)):
            out[-1] += word
        else:
            out.append(word)
        glue = is_break and i > 0
    return out


def offered(text: str, typed: str) -> str:
    """What bash is to put there: without what stands before the last break, and a space behind what is whole."""
    breaks = list(_BREAK.finditer(typed))
    kept = typed[: breaks[-1].end()] if breaks else ""
    lines = (line.removeprefix(kept) for line in text.splitlines())
    return "".join(f"{line}{'' if line.endswith(('=', '.', ',', '/', ':')) else ' '}\n" for line in lines)


@contextlib.contextmanager
def completing() -> Iterator[None]:
    """Where bash asks for completions: hands over what it means, and says what it can use."""
    if os.environ.get(WANTED) != "complete_bash":
        yield
        return
    words = joined(os.environ.get(WORDS, "").split("\n")[: int(os.environ.get(PLACE, "0")) + 1])
    os.environ |= {WORDS: "\n".join(words), PLACE: str(len(words) - 1)}
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            yield
    finally:
        print(offered(said.getvalue(), words[-1]), end="")


def without_space(scripts: dict[str, str]) -> None:
    """The script for bash puts no space of its own behind what is offered."""
    if "bash" in scripts:
        scripts["bash"] = scripts["bash"].replace("complete -o default ", "complete -o default -o nospace ")
