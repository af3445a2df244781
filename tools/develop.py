"""Makes libraries just built what `smrlab` of this virtual environment runs; the Python files stay in place."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "smrlab"
LIBRARIES = {"lib_core.so": "_core.abi3.so", "libsmrlab_nbdkit.so": "libsmrlab_nbdkit.so"}


def replace(source: Path, target: Path) -> None:
    """A new file under the old name: a process that has the old one loaded goes on with it."""
    beside = target.with_suffix(".new")
    shutil.copyfile(source, beside)
    beside.replace(target)


def main(built: Path, *names: str) -> None:
    """`built` is cargo's folder; `names` are the libraries that were built."""
    for name in names:
        replace(built / name, PACKAGE / LIBRARIES[name])
    Path(sysconfig.get_path("purelib"), "smrlab.pth").write_text(f"{ROOT / 'python'}\n")
    command = Path(sys.executable).with_name("smrlab")
    command.write_text(f"#!{sys.executable}\nfrom smrlab.__main__ import main\n\nmain()\n")
    command.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
