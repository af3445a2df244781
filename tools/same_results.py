"""Hashes of what many runs answer, one a line: results, tables, and logs of requests and media.

`PYTHONPATH=python .venv/bin/python tools/same_results.py [DRIVE.toml...] > after`, the same with the `python` of
another build before it, and `diff before after`: a change that is to make runs faster, and nothing else, leaves every
line as it is.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from smrlab import _core

DRIVES = ["tiny", "modern-7200", "seagate-st5000as0011"]
LAYERS = ["cmr", "s-block", "log", "disk-cache", "persistent-cache", "rmw", "segment"]
ARRAYS = ["raid5:cmr", "raid5:s-block", "raid6:log", "mirror:cmr", "dvs:cmr"]
TRACES = [
    "synth:uniform,requests=3000,size=16KiB,write=60%",
    "synth:sequential,requests=3000,size=4KiB,write=0%",
    "synth:zipf,requests=3000,size=4KiB,write=33%",
]
# Where a prefill and a rebuild take next to nothing.
SMALL = "tiny"
PREFILLED = [
    *(f"layer='{layer}'" for layer in LAYERS),
    "array='raid5,disks=4,fail=1@1s,replace=2s'\nlayer='s-block'",
    "array='mirror,disks=4,copies=2'\nlayer='disk-cache'",
    "array='dvs,disks=4,overprovision=40%,segment=8,chunk=4KiB,ssd_write=1MiB,ssd_read=1MiB'\nlayer='cmr'",
    "stack='ssd-cache,write=1MiB / raid6,disks=5 / log'",
    "stack='dm-zoned,reserved=2 / zoned,zone=64KiB,conventional=20%'",
]
MODES = [
    "",
    "arrivals='closed,depth=4'",
    "arrivals='closed,depth=16'\nscheduler='sptf,depth=16'",
    "verify_media=true",
]


def specs(drives: list[str]) -> Iterator[str]:
    """A file's text for each run: modes take turns, so that each meets every layer on some drive; prefilled runs."""
    modes = itertools.cycle(MODES)
    for drive in drives:
        for trace in TRACES:
            bare = f"drive='{drive}'\ntrace='{trace}'\nwrap='capacity'\n"
            common = f"{bare}requests=true\nmedia_log=true\n"
            for layer in LAYERS:
                yield f"{common}layer='{layer}'\n{next(modes)}"
            for array in ARRAYS:
                name, layer = array.split(":")
                mode = next(modes).removeprefix("verify_media=true")
                yield f"{common}array='{name}'\nlayer='{layer}'\nverify_media=true\n{mode}"
            next(modes)
            # A run of one drive without logs takes a shorter way.
            for layer in LAYERS:
                yield f"{bare}layer='{layer}'\n"
    for trace, drive in itertools.product(TRACES, PREFILLED):
        filled = f"drive='{SMALL}'\ntrace='{trace}'\nwrap='prefilled'\nprefill='60%'\n"
        yield f"{filled}requests=true\nmedia_log=true\n{drive}\n"


def answer(text: str) -> str:
    """The hash of a run's answers, or its error."""
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        try:
            document, tables = _core.run(_core.spec_from_toml(text), _core.Control(), folder)
        except Exception as e:
            return f"error: {e}".replace(folder, "").replace("\n", " ")
        result = json.loads(document)
        result.pop("provenance", None)
        # How much memory it took is no result.
        result.get("verify", {}).pop("bytes_peak", None)
        digest.update(json.dumps(result, sort_keys=True).encode())
        digest.update(repr(sorted(tables.items())).encode())
        for log in sorted(Path(folder).rglob("*.parquet")):
            table = pq.read_table(log)
            digest.update(f"{log.name} {table.schema} ".encode())
            for column in table.itercolumns():
                for buffer in column.combine_chunks().buffers():
                    digest.update(buffer or b"")
    return digest.hexdigest()[:20]


def main() -> None:
    """The program."""
    for text in specs(sys.argv[1:] or DRIVES):
        print(" ".join(text.split()), answer(text), flush=True)


if __name__ == "__main__":
    main()
