"""Layers with a planted change each, and the same without it: a paper's claims have to tell them apart."""

from __future__ import annotations

from smrlab import TranslationLayer, _core

REGION = 50_000


class WholeBandRight(TranslationLayer):
    """Reads a whole region for every write, changes it, and writes it."""

    share = 1

    def host_blocks(self) -> int:
        return self.medium.blocks // REGION * REGION

    def read(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        plan.read(lba, blocks)

    def write(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        at = 0
        while at < blocks:
            first = (lba + at) // REGION * REGION
            n = min(blocks - at, first + REGION - lba - at)
            here, end = lba + at, first + REGION // self.share
            offset = plan.stage(first, end - first)
            if here > first:
                plan.write_staged(first, min(here, end) - first, offset)
            plan.write(here, n, at)
            if here + n < end:
                plan.write_staged(here + n, end - here - n, offset + here + n - first)
            plan.cleaned(end - first)
            at += n


class WholeBandHalfBand(WholeBandRight):
    """Its cleaning reads half a band."""

    share = 2


class InOrderRight(TranslationLayer):
    """Tracks of bands of four one after the other: an update rewrites what lies behind it in its band."""

    last = 4

    def host_blocks(self) -> int:
        return len(self.medium.bands()) * 400

    def read(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        for pba, n, at in self.pieces(lba, blocks):
            plan.read(pba, n, at)

    def write(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        for pba, n, at in self.pieces(lba, blocks):
            behind = [pba + 100 * j for j in range(1, self.last - self.track(lba + at))]
            staged = [plan.stage(p, n) for p in behind]
            plan.write(pba, n, at)
            for p, offset in zip(behind, staged, strict=True):
                plan.write_staged(p, n, offset)

    def track(self, lba: int) -> int:
        """The track of its band, from 0."""
        return lba // 100 % 4

    def pieces(self, lba: int, blocks: int) -> list[tuple[int, int, int]]:
        """PBA, blocks and place in the buffer of each part on one track."""
        out, at = [], 0
        bands = self.medium.bands()
        while at < blocks:
            here = lba + at
            n = min(blocks - at, 100 - here % 100)
            out.append((bands[here // 400][0] + here % 400, n, at))
            at += n
        return out


class InOrderShortGuard(InOrderRight):
    """Takes the last track of a band for the guard: what an update destroys there is not rewritten."""

    last = 3
