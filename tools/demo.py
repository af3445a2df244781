"""The main job on a recorded trace that ships with the project: a table here, figures in demo-out/report.html."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAYERS = ("cmr", "rmw", "static-1234", "static-R(4123)", "static-124R(3)", "disk-cache", "s-block")
PREFERRED = "postgres"
DRIVE = "modern-7200"
# Four clients, as when it was recorded; the recording's own times are those of a much faster disk.
ARRIVALS = "closed,depth=4"


def known_layers(smrlab: Path) -> list[str]:
    """Those of LAYERS that this engine has."""
    listed = subprocess.run([smrlab, "list", "layers", "--json"], check=True, capture_output=True, text=True).stdout
    return [name for name in LAYERS if f'"{name}"' in listed]


def main() -> int:
    """Runs `smrlab compare`; its exit status."""
    smrlab = Path(sys.executable).with_name("smrlab")
    traces = sorted(ROOT.glob("traces/*.parquet"), key=lambda p: PREFERRED not in p.name)
    source = str(traces[0].relative_to(ROOT)) if traces else "synth:uniform,requests=100000,write=70%"
    command = ["compare", "--trace", source, "--drive", DRIVE]
    for layer in known_layers(smrlab):
        command += ["--layer", layer]
    command += ["--arrivals", ARRIVALS, "--out", "demo-out"]
    print("$ smrlab", " ".join(f"'{c}'" if "(" in c else c for c in command), flush=True)
    return subprocess.run([smrlab, *command], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
