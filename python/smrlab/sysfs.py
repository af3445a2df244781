"""What a block device says of itself, without touching it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from . import _core

_LISTED = {
    "Seagate Archive HDD data sheet: SMR": "ST5000AS0011 ST6000AS0002 ST8000AS0002",
    "Seagate Archive v3: host-aware SMR": "ST8000AS0022",
    "Western Digital, list of client HDDs, April 2020: SMR": "WD20EFAX WD30EFAX WD40EFAX WD60EFAX",
    "Seagate, CMR and SMR list: SMR": "ST2000DM008 ST4000DM004 ST6000DM003 ST8000DM004",
    "Toshiba, list of consumer HDDs, 2020: SMR": "HDWD240 HDWD260",
}
# Drives whose makers say that they are drive-managed (or host-aware) SMR: beginnings of model numbers, and who says so.
SHINGLED = {model: source for source, models in _LISTED.items() for model in models.split()}


def _word(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


# All block devices, partitions too.
ROOT = Path("/sys/class/block")

# The kernel's copies of a SCSI disk's pages, and of those of ATA disks behind its translation.
PAGES = ("inquiry", "vpd_pgb0", "vpd_pgb1", "vpd_pgb2", "vpd_pg89")


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def says(target: str) -> dict[str, Any]:
    """What a block device says of itself, in sysfs and in its own pages; empty for anything else. It may be mounted."""
    path = Path(target)
    try:
        device = path.resolve(strict=True)
        if not stat.S_ISBLK(device.stat().st_mode):
            return {}
    except OSError:
        return {}
    folder = (ROOT / device.name).resolve()
    # A partition is in its disk's folder.
    disk = folder if (folder / "queue").is_dir() else folder.parent
    node = device if disk == folder else Path("/dev", disk.name.replace("!", "/"))
    try:
        return described(disk, _core.device_pages(str(node)))
    except OSError as e:
        return described(disk, {}) | {"not_asked": f"{e}: only root reads the disk's own pages"}


def described(folder: Path, asked: dict[str, bytes]) -> dict[str, Any]:
    """What is in a device's folder of sysfs and in the pages that it was asked for, and what follows from both."""
    found: dict[str, Any] = {}
    model = _word(folder / "device" / "model")
    rotational, zoned = _word(folder / "queue" / "rotational"), _word(folder / "queue" / "zoned")
    if model:
        found["model"] = model
    if zoned:
        found["zoned"] = zoned
    if rotational:
        found["rotational"] = rotational == "1"
        found["trim"] = int(_word(folder / "queue" / "discard_max_bytes") or 0) > 0
    pages = {name: data for name in PAGES if (data := _bytes(folder / "device" / name))}
    # The kernel cuts models of ATA disks after 16 characters.
    found |= json.loads(_core.device_says(pages | asked))
    return found | _follows(found)


def _follows(found: dict[str, Any]) -> dict[str, Any]:
    """What follows: a line in a maker's list, and the kind that the drive says it is."""
    # Some bridges put the maker before it.
    words = found.get("model", "").split()
    listed = [source for name, source in SHINGLED.items() if any(w.startswith(name) for w in words)]
    out: dict[str, Any] = {"model_list": listed[0]} if listed else {}
    zones = {found.get(key) for key in ("zoned", "zbc_page", "identify_zones")}
    if "inquiry_type" in found or "host-managed" in zones:
        out["kind"] = "host-managed"
    elif kind := zones & {"host-aware", "drive-managed"}:
        out["kind"] = min(kind, key=("host-aware", "drive-managed").index)
    trim = found.get("trim") or found.get("identify_trim") or found.get("unmap")
    rotates = found.get("rotational") and not found.get("solid_state")
    if rotates and trim and "kind" not in out:
        out["hint"] = "a rotating drive that takes TRIM maps its blocks: it may be drive-managed SMR"
    return out
