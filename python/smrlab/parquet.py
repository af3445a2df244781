"""Parquet files as tables in memory."""

from __future__ import annotations

import os
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq


def read(source: str | os.PathLike[str] | IO[bytes]) -> pa.Table:
    """The whole table. `read_table` of pyarrow does the same, and first loads pandas wherever that is installed."""
    with pq.ParquetFile(source) as file:
        return file.read()
