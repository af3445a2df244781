"""Settings of points in files: a table a file (TOML, JSON), or a row a point (JSON lists, CSV, Parquet)."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smrlab.errors import InputError
from smrlab.files import read_text


def settings_of(patterns: Any, where: str, folder: Path) -> list[dict[str, Any]]:
    """The settings in all files that the patterns name, in the order of the names."""
    texts = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{where}: files is a list of names, for example files = ["settings/*.toml"]')
    found: list[dict[str, Any]] = []
    for text in texts:
        paths = sorted(folder.glob(text)) if not Path(text).is_absolute() else [Path(text)]
        if not paths:
            raise InputError(f"{where}: files: no file is called {text} (from {folder.absolute()})")
        for path in paths:
            try:
                found += list(_read(path))
            except (OSError, ValueError, tomllib.TOMLDecodeError) as fault:
                raise InputError(f"{path}: settings that cannot be read: {fault}") from None
    return found


def _read(path: Path) -> Iterator[dict[str, Any]]:
    match path.suffix.lower():
        case ".toml":
            yield _flat(tomllib.loads(read_text(path)))
        case ".json":
            document = json.loads(read_text(path))
            rows = document if isinstance(document, list) else [document]
            if not all(isinstance(row, dict) for row in rows):
                raise ValueError("a table of settings, or a list of such")
            yield from map(_flat, rows)
        case ".csv":
            # Spreadsheets put a mark before the first name.
            with path.open(newline="", encoding="utf-8-sig") as file:
                for row in (lines := csv.DictReader(file)):
                    if None in row or None in row.values():
                        raise ValueError(f"line {lines.line_num} has more cells than the first, or fewer")
                    yield {k: _value(v) for k, v in row.items() if v != ""}
        case ".parquet":
            from .. import parquet

            for row in parquet.read(path).to_pylist():
                yield {k: v for k, v in row.items() if v is not None}
        case other:
            raise ValueError(f"'{other}' is none of .toml, .json, .csv, .parquet")


def _flat(table: dict[str, Any]) -> dict[str, Any]:
    """Tables in a table are parameters of an item: `[layer] cache = "1%"` is `layer.cache`."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
    return found


def _value(text: str) -> Any:
    """A cell of a CSV file: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
