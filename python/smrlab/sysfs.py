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


# All block devices, partitions too.
ROOT = Path("/sys/class/block")

# What a drive may say of its zones in two bits: SBC-4, Block Device Characteristics page, byte 8; ACS-4, word 69.
ZONES = {1: "host-aware", 2: "drive-managed"}


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def says(target: str) -> dict[str, Any]:
    """Model, zones, rotation and TRIM of a block device, from sysfs; empty for anything else."""
    path = Path(target)
    try:
        device = path.resolve(strict=True)
        if not stat.S_ISBLK(device.stat().st_mode):
            return {}
    except OSError:
        return {}
    folder = (ROOT / device.name).resolve()
    # A partition is in its disk's folder.
    return described(folder if (folder / "queue").is_dir() else folder.parent)


def _pages(folder: Path) -> dict[str, Any]:
    """What the drive's own pages say: block device characteristics (0xB1), ATA information (0x89)."""
    found: dict[str, Any] = {}
    page = _bytes(folder / "device" / "vpd_pgb1")
    if len(page) > 8:
        rate = int.from_bytes(page[4:6], "big")
        if rate > 1:
            found["rpm"] = rate
        if zones := ZONES.get(page[8] >> 4 & 3):
            found["zbc_page"] = zones
    # 60 bytes of header, then the answer to IDENTIFY DEVICE in words of two bytes.
    identify = _bytes(folder / "device" / "vpd_pg89")[60:]
    if len(identify) >= 512:
        word = [int.from_bytes(identify[i : i + 2], "little") for i in range(0, 512, 2)]
        if zones := ZONES.get(word[69] & 3):
            found["identify_zones"] = zones
        if word[217] > 1 and word[217] != 0xFFFF:
            found["rpm"] = word[217]
        found["identify_trim"] = bool(word[169] & 1)
    return found


def described(folder: Path) -> dict[str, Any]:
    """What is in a device's folder of sysfs, and what follows from it."""
    found: dict[str, Any] = {}
    model = _word(folder / "device" / "model")
    rotational, zoned = _word(folder / "queue" / "rotational"), _word(folder / "queue" / "zoned")
    trim = int(_word(folder / "queue" / "discard_max_bytes") or 0) > 0
    if model:
        found["model"] = model
        # Some bridges put the maker before it.
        words = model.split()
        listed = [source for name, source in SHINGLED.items() if any(w.startswith(name) for w in words)]
        if listed:
            found["model_list"] = listed[0]
    if zoned:
        found["zoned"] = zoned
    if rotational:
        found["rotational"] = rotational == "1"
        found["trim"] = trim
        if rotational == "1" and trim and zoned in (None, "none"):
            found["hint"] = "a rotating drive that takes TRIM maps its blocks: it may be drive-managed SMR"
    return found | _pages(folder)
