"""Empty formats for zoned disks whose tools Debian does not have: dm-zoned (as dmzadm makes it) and zonefs (mkzonefs).

Both are what the kernel reads: little endian, checksums without a final inversion, blocks of 4 KiB.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

BLOCK = 4096
NOWHERE = 0xFFFF_FFFF


def checksum(seed: int, data: bytes) -> int:
    """The kernel's crc32 of data from a seed."""
    return ~zlib.crc32(data, ~seed & NOWHERE) & NOWHERE


@dataclass(frozen=True)
class DmZoned:
    """What dm-zoned keeps on a disk of `zones` zones, of which the first `random` are conventional."""

    zones: int
    random: int
    zone_bytes: int
    reserved: int = 4

    @property
    def blocks(self) -> int:
        """Blocks of a zone."""
        return self.zone_bytes // BLOCK

    @property
    def bitmaps(self) -> int:
        """Blocks that say which blocks are valid: of each zone whole ones."""
        return self.zones * max(1, self.blocks // (8 * BLOCK))

    def sized(self, maps: int) -> tuple[int, int, int]:
        """Blocks of a set of metadata, zones of a set, and chunks, with so many blocks of the map."""
        meta = 1 + maps + self.bitmaps
        zones = -(-meta // self.blocks)
        return meta, zones, self.zones - 2 * zones - self.reserved

    @property
    def maps(self) -> int:
        """Blocks of the map, of 512 chunks each."""
        return -(-self.zones // 512)

    @property
    def sectors(self) -> int:
        """What the target has to offer, in 512 bytes."""
        return self.sized(self.maps)[2] * self.zone_bytes // 512

    def superblock(self, at: int) -> bytes:
        """The superblock in block `at`, of the first generation."""
        meta, _, chunks = self.sized(self.maps)
        counts = (meta, self.reserved, chunks, self.maps, self.bitmaps)

        def packed(crc: int) -> bytes:
            head = struct.pack("<4sIQQ6I", b"DBZD", 1, 1, at, *counts, crc)
            return head.ljust(BLOCK, b"\0")

        return packed(checksum(1, packed(0)))

    def image(self) -> bytes:
        """Both sets of metadata: what the disk begins with. No chunk has a zone."""
        _, zones, _ = self.sized(self.maps)
        unmapped = b"\xff" * (BLOCK * self.maps)
        one = [
            (self.superblock(at) + unmapped).ljust(zones * self.zone_bytes, b"\0") for at in (0, zones * self.blocks)
        ]
        return b"".join(one)


def zonefs() -> bytes:
    """The block with which a zonefs begins: every zone a file, none joined with others."""

    def packed(crc: int) -> bytes:
        return struct.pack("<II64s16sQIII", 0x5A4F_4653, crc, b"", b"\1" * 16, 0, 0, 0, 0).ljust(BLOCK, b"\0")

    return packed(checksum(NOWHERE, packed(0)))
