"""Which papers there are, and what the first lines of each say: quick to load, for `smrlab list` names them."""

from __future__ import annotations

import os
import textwrap
import tomllib
from pathlib import Path
from typing import Any

from .errors import InputError


def _folder() -> Path:
    given = os.environ.get("SMRLAB_PAPERS")
    return Path(given) if given else Path(__file__).resolve().parents[2] / "papers"


def there() -> bool:
    """Whether the papers are there: an installed package has none."""
    return _folder().is_dir()


def home() -> Path:
    """The folder of the papers: $SMRLAB_PAPERS, or that of the checkout."""
    folder = _folder()
    if not there():
        raise InputError(f"{folder}: no such folder; the papers come with the source: set SMRLAB_PAPERS to its papers/")
    return folder


def listed() -> list[dict[str, Any]]:
    """The papers by name, as `smrlab list` shows them."""
    found = []
    for path in sorted(home().glob("*/paper.toml")):
        # What stands above the first table.
        doc = tomllib.loads(path.read_text().split("\n[", 1)[0])
        names = {"name": path.parent.name, "summary": doc["title"], "reference": doc["citation"]}
        paragraphs = (textwrap.fill(paragraph, 119) for paragraph in doc["setting"].strip().split("\n\n"))
        found.append({"kind": "paper", **names, "page": "\n\n".join(paragraphs)})
    return found
