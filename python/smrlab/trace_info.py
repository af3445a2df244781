"""What characterises a trace, as people read it."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from . import text

# Columns of the grid of requests by time and address; its cells go row by row.
COLUMNS = 256


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else text.number(value, 4)


def _seconds(value: float) -> str:
    return text.milliseconds(value * 1e3)


# Label, where it is, how it is written.
ROWS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("requests", "requests", _count),
    ("reads", "reads", _count),
    ("writes", "writes", _count),
    ("of these FUA", "fua_writes", _count),
    ("flushes", "flushes", _count),
    ("discards", "discards", _count),
    ("appends to zones", "appends", _count),
    ("zone resets", "zone_resets", _count),
    ("zones opened, closed, finished", "zone_commands", _count),
    ("writes of reads and writes", "write_share", text.share),
    ("mean read", "mean_read_bytes", text.size),
    ("mean write", "mean_write_bytes", text.size),
    ("size, p50", "size_bytes.p50", text.size),
    ("size, p99", "size_bytes.p99", text.size),
    ("unique data", "unique_bytes", text.size),
    ("unique data written", "unique_write_bytes", text.size),
    ("footprint in units of 4 KiB", "footprint_bytes", text.size),
    ("updates, of writes", "update_share", text.share),
    ("blocks written and never updated again", "never_updated_share", text.share),
    ("blocks not written on a day, mean", "unchanged_day_share", text.share),
    ("sequential, of reads and writes", "sequential_share", text.share),
    ("duration", "span_s", _seconds),
    ("requests a second", "rate", _count),
    ("inter-arrival, mean", "interarrival_s.mean", _seconds),
    ("inter-arrival, p50", "interarrival_s.p50", _seconds),
    ("inter-arrival, p99", "interarrival_s.p99", _seconds),
    ("highest address", "max_offset_bytes", text.size),
    ("devices", "devices", _count),
    ("bad lines passed over", "skipped", _count),
)


class TraceInfo(dict[str, Any]):
    """The characterisation of a trace; prints as a summary. Times in seconds, sizes in bytes, shares of 1."""

    def __repr__(self) -> str:
        """Label and value a line, without the parts that are long."""
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {value:>14}" for label, value in rows)

    def _repr_html_(self) -> str:
        cells = (f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self.rows())
        return f"<table>{''.join(cells)}</table>"

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of each figure that says something."""
        found = ((label, path, write, text.dig(self, path)) for label, path, write in ROWS)
        dull = ("fua_writes", "flushes", "discards", "appends", "zone_resets", "zone_commands", "skipped")
        return [
            (label, write(value))
            for label, path, write, value in found
            if value is not None and (value or path not in dull)
        ]
