//! What is known of the S-blocks of a section. S-blocks that nobody touched lie where they lay at first, and cost nothing.

use crate::parts::chunked::Chunked;

/// No item, no S-block.
pub(super) const NONE: u32 = u32::MAX;
/// The bit that tells an S-block at the end of a list from an item.
pub(super) const END: u32 = 1 << 31;

/// What is known of an S-block.
#[derive(Clone, Copy, Debug)]
pub(super) struct SBlock {
    /// Slot of the S-block ring, perhaps a virtual one.
    pub slot: u32,
    /// First of its items, or the number of a table of them with the highest bit, or [`NONE`].
    pub first: u32,
    /// Two bits for each unit that may be cached (a Bloom filter): most writes need not walk the list. With a table, which
    /// tells that as fast: how many items there are.
    pub filter: u64,
}

impl SBlock {
    pub(super) fn at(slot: u32) -> Self {
        Self { slot, first: NONE, filter: 0 }
    }

    /// Whether any unit from `first` to `last` may be cached.
    #[inline]
    pub(super) fn may_have(&self, first: u64, last: u64) -> bool {
        let listed = self.first != NONE;
        let alone = first == last && self.first & END == 0;
        if alone { self.filter & bits(first) == bits(first) } else { listed }
    }

    /// Notes that a unit is cached.
    #[inline]
    pub(super) fn has(&mut self, unit: u64) {
        self.filter |= bits(unit);
    }
}

/// The bits of a unit in [`SBlock::filter`].
fn bits(unit: u64) -> u64 {
    1 << (unit & 63) | 1 << ((unit as u32).wrapping_mul(0x9e37_79b1) >> 26)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct SBlocks {
    known: Chunked<SBlock>,
    /// The slot of S-block 0 at first; the others follow.
    first_slot: u32,
}

impl SBlocks {
    pub(super) fn new(count: u32, first_slot: u32) -> Self {
        Self { known: Chunked::new(count as usize), first_slot }
    }

    #[inline]
    pub(super) fn at(&self, x: u32) -> SBlock {
        self.known.get(x as usize).copied().unwrap_or_else(|| SBlock::at(self.first_slot + x))
    }

    #[inline]
    pub(super) fn at_mut(&mut self, x: u32) -> &mut SBlock {
        let first = self.first_slot;
        self.known.get_mut(x as usize, |i| SBlock::at(first + i as u32))
    }

    /// Hints that [`prefetch`](Self::prefetch) will be asked for.
    #[inline]
    pub(super) fn prefetch_chunk(&self, x: u32) {
        self.known.prefetch_chunk(x as usize);
    }

    #[inline]
    pub(super) fn prefetch(&self, x: u32) {
        self.known.prefetch(x as usize);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.known.bytes()
    }
}
