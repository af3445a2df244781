"""What a block device says of itself, without touching it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

# Drives whose makers say that they are drive-managed (or host-aware) SMR: beginnings of model numbers, and who says so.
SHINGLED = {
    "ST5000AS0011": "Seagate Archive HDD data sheet: SMR",
    "ST6000AS0002": "Seagate Archive HDD data sheet: SMR",
    "ST8000AS0002": "Seagate Archive HDD data sheet: SMR",
    "ST8000AS0022": "Seagate Archive v3: host-aware SMR",
    "WD20EFAX": "Western Digital, list of client HDDs, April 2020: SMR",
    "WD30EFAX": "Western Digital, list of client HDDs, April 2020: SMR",
    "WD40EFAX": "Western Digital, list of client HDDs, April 2020: SMR",
    "WD60EFAX": "Western Digital, list of client HDDs, April 2020: SMR",
    "ST2000DM008": "Seagate, CMR and SMR list: SMR",
    "ST4000DM004": "Seagate, CMR and SMR list: SMR",
    "ST6000DM003": "Seagate, CMR and SMR list: SMR",
    "ST8000DM004": "Seagate, CMR and SMR list: SMR",
    "HDWD240": "Toshiba, list of consumer HDDs, 2020: SMR",
    "HDWD260": "Toshiba, list of consumer HDDs, 2020: SMR",
}


def _word(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def says(target: str, root: Path = Path("/sys/block")) -> dict[str, Any]:
    """Model, zones, rotation and TRIM of a block device, from sysfs; empty for anything else."""
    path = Path(target)
    try:
        device = path.resolve(strict=True)
        if not stat.S_ISBLK(device.stat().st_mode):
            return {}
    except OSError:
        return {}
    return described(root / device.name)


def described(folder: Path) -> dict[str, Any]:
    """What is in a device's folder of sysfs, and what follows from it."""
    found: dict[str, Any] = {}
    model = _word(folder / "device" / "model")
    rotational, zoned = _word(folder / "queue" / "rotational"), _word(folder / "queue" / "zoned")
    trim = int(_word(folder / "queue" / "discard_max_bytes") or 0) > 0
    if model:
        found["model"] = model
        listed = [source for name, source in SHINGLED.items() if model.startswith(name)]
        if listed:
            found["model_list"] = listed[0]
    if zoned:
        found["zoned"] = zoned
    if rotational:
        found["rotational"] = rotational == "1"
        found["trim"] = trim
        if rotational == "1" and trim and zoned in (None, "none"):
            found["hint"] = "a rotating drive that takes TRIM maps its blocks: it may be drive-managed SMR"
    return found
