"""A served host-managed disk attached by ublk, in pairs with the kernel's own zoned memory (null_blk), in a guest.

Part of `make bench-device`; as root, with QEMU and the guest's kernel (tools/guest-kernel.sh). Server and client share
one core of the guest, contestants take turns within every round, and a ratio is the median over rounds of the pairs'
ratios. null_blk runs twice: what differs there is noise. It keeps what is written (memory_backed), in zones as large.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "device"))

from guest import Guest  # noqa: E402

BASE = "null_blk"
MEMORY = "nr_devices=2 gb=1 bs=4096 memory_backed=1 zoned=1 zone_size=16 zone_nr_conv=0 queue_mode=2 irqmode=0"
LIMIT_S = 1500


def report(found: dict[str, dict[str, list[float]]]) -> dict[str, object]:
    """Prints the table."""
    result: dict[str, object] = {}
    for job, by_name in found.items():
        print(f"\n{job}")
        for name, runs in by_name.items():
            rate = statistics.median(runs)
            ratio = statistics.median(r / b for r, b in zip(runs, by_name[BASE], strict=True))
            print(f"  {name:16} {rate:8.0f} MB/s  x{ratio:.3f}")
            result[f"{job}/{name}"] = {"mb_per_s": rate, "ratio": ratio, "rounds": runs}
    return result


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each job in each round")
    parser.add_argument("--core", default="1", help="the guest's, of 0 and 1; 0,1: both")
    parser.add_argument("--plugin", type=Path, required=True)
    parser.add_argument("--before", type=Path, help="the plugin of another build, in the same rounds")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    plugins = " ".join(str(plugin.resolve()) for plugin in (args.plugin, args.before) if plugin)
    with tempfile.TemporaryDirectory() as shared:
        try:
            machine = Guest(Path(shared), memory_mib=3072 if args.before else 2048)
        except pytest.skip.Exception as why:
            print(f"ublk in a guest is left out: {why}", file=sys.stderr)
            return
        machine.run(
            str(Path(__file__).with_suffix(".sh")), LIMIT_S, PYTHON=sys.executable, ROOT=ROOT,
            PLUGINS=f"'{plugins}'", CORE=args.core, ROUNDS=args.rounds,
            SECONDS=args.seconds, MEMORY=f"'{MEMORY}'",
        )  # fmt: skip
        found = json.loads((Path(shared) / "found.json").read_text())
    result = report(found)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        document = {"load": os.getloadavg(), "rounds": args.rounds, "seconds": args.seconds, "jobs": result}
        args.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
