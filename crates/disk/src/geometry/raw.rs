//! Raw numbers of blocks, which count slipped sectors: which follow each other, and which blocks they are.

use super::Geometry;
use smrlab_units::Pba;
use std::ops::Range;

/// Blocks whose sectors follow each other: none slipped among them, none of them remapped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Even {
    pub(super) blocks: Range<u64>,
    /// What the raw number of each is more than its own, modulo 2^64.
    shift: u64,
}

impl Even {
    #[inline(always)]
    pub(crate) fn has(&self, pba: Pba, blocks: u64) -> bool {
        self.blocks.start <= pba.0 && pba.0 + blocks <= self.blocks.end
    }

    /// The raw number of one of them.
    #[inline(always)]
    pub(crate) fn raw(&self, pba: Pba) -> u64 {
        pba.0.wrapping_add(self.shift)
    }

    /// The blocks in these sectors, where they are all among them.
    #[inline]
    pub(crate) fn blocks_in(&self, raw: &Range<u64>) -> Option<Range<u64>> {
        let blocks = raw.start.wrapping_sub(self.shift)..raw.end.wrapping_sub(self.shift);
        let all =
            self.blocks.start <= blocks.start && blocks.start <= blocks.end && blocks.end <= self.blocks.end;
        all.then_some(blocks)
    }
}

impl Geometry {
    /// Whether sectors that could hold blocks hold none: raw numbers of sectors count them, and blocks do not.
    pub fn slipped(&self) -> bool {
        !self.slips.is_empty()
    }

    /// The raw numbers of these blocks where they lie, or would if none were remapped: ascending ranges with no slipped sector among them.
    pub fn raw_ranges(&self, blocks: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = blocks.start;
        std::iter::from_fn(move || {
            let (around, skipped) = (at < blocks.end).then(|| self.slips.around(at))?;
            let end = around.end.min(blocks.end);
            let raw = at + skipped..end + skipped;
            at = end;
            Some(raw)
        })
    }

    /// The block of a raw number, or the next one where that sector is slipped.
    pub fn block_of_raw(&self, raw: u64) -> u64 {
        self.slips.to_dense(raw)
    }

    /// The blocks around one whose sectors follow each other.
    pub(crate) fn even(&self, pba: Pba) -> Even {
        let mut even = Even::default();
        self.even_around(pba, &mut even);
        even
    }

    /// The same, written to where it stays: who reads a copy right after it was put together waits for that.
    #[inline(never)]
    pub(crate) fn even_around(&self, pba: Pba, even: &mut Even) {
        let (around, skipped) = self.slips.around(pba.0);
        (even.blocks, even.shift) = (around.start..around.end.min(self.blocks), skipped);
        match self.remaps.binary_search_by_key(&pba.0, |r| r.0) {
            Ok(i) => {
                (even.blocks, even.shift) = (pba.0..pba.0 + 1, self.remaps[i].1.wrapping_sub(pba.0));
            }
            Err(i) => {
                if i > 0 {
                    even.blocks.start = even.blocks.start.max(self.remaps[i - 1].0 + 1);
                }
                if let Some(next) = self.remaps.get(i) {
                    even.blocks.end = even.blocks.end.min(next.0);
                }
            }
        }
    }

    /// Remapped blocks of a range, ascending.
    #[inline]
    pub(crate) fn remapped(&self, blocks: Range<u64>) -> &[(u64, u64)] {
        let first = self.remaps.partition_point(|r| r.0 < blocks.start);
        let end = self.remaps.partition_point(|r| r.0 < blocks.end);
        &self.remaps[first..end.max(first)]
    }
}
