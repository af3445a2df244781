"""Draws bugs that nobody thought of from lines of Rust or Python, as `cargo mutants --list --json` would print them.

`python tools/draw_bugs.py --seed 41 --number 30 crates/drive/src > out/drive.json`, then
`cargo xtask mutants --from out/drive.json --check 'cargo test -q -p smrlab-drive'`.

The rule: the lines of the sources that do something (no tests, comments, attributes, declarations, assertions), in
the order in which `random.Random(seed)` shuffles them; of each the first slip that is drawn from those that fit it.
A slip is a comparison, a sum, a product or a condition that is its neighbour, a bound that is the other bound, a
number that is one more, a negation that is missing, a statement that is left out, or, in Rust, a branch that is never
taken and a term that is left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

COMMON: list[tuple[str, str]] = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " + "),
    (r" / ", " * "),
    (r" % ", " / "),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
]
"""What is written, and what slips in, in either language."""

NUMBER = (r"(?<![\w.])\d[\d_]*(?![\w.]|\.\d)", "+1")

SLIPS: dict[str, list[tuple[str, str]]] = {
    ".rs": [
        (r" && ", " || "),
        (r"(?<=[\w)\]}?])(?<!move) \|\| ", " && "),
        (r"\.max\(", ".min("),
        (r"\.min\(", ".max("),
        (r"\.any\(", ".all("),
        (r"\.all\(", ".any("),
        (r"\.first\(\)", ".last()"),
        (r"\.last\(\)", ".first()"),
        (r"is_some\(\)", "is_none()"),
        (r"is_none\(\)", "is_some()"),
        (r"\btrue\b", "false"),
        (r"\bfalse\b", "true"),
        (r"(?<=[\s(])!(?=[a-z(])", ""),
        (r"\.\.=", ".."),
        (r"(?<=\bif )(?!let\b)[^{}]+(?= \{)", "false"),
        (r" [+-] [\w.]+(?:\([^()]*\))?(?=[;,) ])", ""),
    ],
    ".py": [
        (r" and ", " or "),
        (r" or ", " and "),
        (r"\bnot (?!in\b)", ""),
        (r" not in ", " in "),
        (r" is None", " is not None"),
        (r" is not None", " is None"),
        (r"\bmax\(", "min("),
        (r"\bmin\(", "max("),
        (r"\bany\(", "all("),
        (r"\ball\(", "any("),
        (r"\bTrue\b", "False"),
        (r"\bFalse\b", "True"),
        (r"\[0\]", "[-1]"),
        (r"\[-1\]", "[0]"),
        (r" // ", " * "),
    ],
}
"""The same in one language."""

STATEMENT = {
    ".rs": (r"^\s*(?:self|[a-z_]+)[\w.\[\]]*(?:\(.*\)| [+*|-]?= .*);$", ""),
    ".py": (r"^\s*(?P<rest>(?:self|[a-z_]+)[\w.\[\]]*(?:\(.*\)| [+*|-]?= .*))$", "pass"),
}
"""A statement, and what stands there when it is left out; in Python behind what it is indented by."""

NOTHING = re.compile(
    r"^\s*(//|#\[|use |pub use |mod |pub mod |fn |pub fn |pub\(|const |static |impl|struct |enum |trait |type "
    r"|debug_assert|assert)"
)


NO_PYTHON = re.compile(r"^\s*(#|@|def |async def |class |import |from |assert |pass$|\)|\"\"\"|r?\"\"\")")


def python_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The same of Python: no docstrings, and only statements that stand in one line."""
    text = path.read_text()
    docs = {
        n
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for n in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(" ") and number not in docs and not NO_PYTHON.match(line):
            yield number, line


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that do something, from 1."""
    if path.suffix == ".py":
        yield from python_lines(path)
        return
    if path.name.endswith("tests.rs") or "tests" in path.parts:
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#[cfg(test)]"):
            return
        # What stands at the margin declares something.
        if line.startswith(" ") and not NOTHING.match(line) and "=>" not in line:
            yield number, line


def slips(line: str, language: str) -> list[tuple[int, int, str]]:
    """Where a line can slip, and what stands there then."""
    code = line.split("  # " if language == ".py" else " // ")[0]
    found = []
    for pattern, wrong in [*COMMON, *SLIPS[language], NUMBER, STATEMENT[language]]:
        for m in re.finditer(pattern, code):
            if code[: m.start()].count('"') % 2:
                continue
            text = str(int(m.group().replace("_", "")) + 1) if wrong == "+1" else wrong
            found.append((m.start("rest" if "rest" in m.groupdict() else 0), m.end(), text))
    return found


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--number", type=int, required=True, help="how many bugs")
    parser.add_argument("sources", type=Path, nargs="+", help="files and folders, from the root of the tree")
    wanted = parser.parse_args()
    files = sorted(f for s in wanted.sources for f in ([s] if s.is_file() else s.rglob("*.*")) if f.suffix in SLIPS)
    drawn = [(f, n, line) for f in files for n, line in lines(f)]
    rng = random.Random(wanted.seed)
    rng.shuffle(drawn)
    bugs: list[dict[str, object]] = []
    for file, number, line in drawn:
        if len(bugs) == wanted.number:
            break
        if not (possible := slips(line, file.suffix)):
            continue
        start, end, text = rng.choice(possible)
        shown = " ".join((line[:start] + text + line[end:]).split()) or "nothing"
        place = {"start": {"line": number, "column": start + 1}, "end": {"line": number, "column": end + 1}}
        name = f"{file}:{number}: {shown} for {line.strip()}"
        bugs.append({"name": name, "file": str(file), "span": place, "replacement": text})
    json.dump(bugs, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
