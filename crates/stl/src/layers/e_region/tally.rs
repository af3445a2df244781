//! What the ring holds, counted by entry and by region.

use crate::parts::extents::Extent;
use crate::parts::ring::Ring;
use smrlab_units::reciprocal::Reciprocal;
use std::collections::VecDeque;

/// Blocks that were written to the ring together: fewer than 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub lba: u64,
    /// Position of the first one in the ring.
    pub at: u64,
    pub blocks: u32,
    /// Blocks of which it holds the newest copy.
    pub needed: u32,
}

/// See the [module](self).
pub(super) struct Tally {
    /// What lies in the ring, oldest first; some of it is no longer needed.
    pub entries: VecDeque<Entry>,
    /// Number of the oldest entry, modulo 2^32.
    first: u32,
    /// Blocks of each region that the ring holds, and of all.
    pub in_region: Vec<u32>,
    pub in_ring: u64,
    /// The region of a block.
    pub by_region: Reciprocal,
}

impl Tally {
    /// Nothing, of so many regions of so many blocks.
    pub(super) fn new(regions: usize, region: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            in_region: vec![0; regions],
            in_ring: 0,
            by_region: Reciprocal::new(region),
        }
    }

    /// An entry of which nothing is counted yet; answers its number.
    pub(super) fn begin(&mut self, lba: u64, blocks: u64, at: u64) -> u32 {
        self.entries.push_back(Entry { lba, at, blocks: blocks as u32, needed: 0 });
        self.first.wrapping_add(self.entries.len() as u32 - 1)
    }

    /// The number of the entry that holds a position: they lie in the ring without a gap.
    pub(super) fn entry_at(&self, at: u64, ring: &Ring) -> u32 {
        let ahead = ring.ahead(ring.tail(), at);
        let behind = self.entries.partition_point(|entry| ring.ahead(ring.tail(), entry.at) <= ahead);
        self.first.wrapping_add(behind as u32).wrapping_sub(1)
    }

    /// Counts blocks of one entry that the ring holds from now on, or no longer.
    pub(super) fn count(&mut self, e: &Extent, held: bool) {
        let change = |n: &mut u32, by: u64| *n = if held { *n + by as u32 } else { *n - by as u32 };
        change(&mut self.entries[e.packet.wrapping_sub(self.first) as usize].needed, e.blocks);
        self.in_ring = if held { self.in_ring + e.blocks } else { self.in_ring - e.blocks };
        let (mut at, end) = (e.lba, e.lba + e.blocks);
        while at < end {
            let region = self.by_region.div_wide(at);
            let next = end.min((region + 1) * self.by_region.divisor());
            change(&mut self.in_region[region as usize], next - at);
            at = next;
        }
    }

    /// The ring does not hold these any longer, all of which lie in one region.
    pub(super) fn release(&mut self, region: u64, gone: &[Extent]) {
        let mut blocks = 0;
        for e in gone {
            self.entries[e.packet.wrapping_sub(self.first) as usize].needed -= e.blocks as u32;
            blocks += e.blocks;
        }
        self.in_ring -= blocks;
        self.in_region[region as usize] -= blocks as u32;
    }

    /// An entry holds the newest copy of blocks of another one, each of them.
    pub(super) fn pass_on(&mut self, e: &Extent, to: u32) {
        let index = |packet: u32| packet.wrapping_sub(self.first) as usize;
        let (from, to) = (index(e.packet), index(to));
        self.entries[from].needed -= e.blocks as u32;
        self.entries[to].needed += e.blocks as u32;
    }

    /// Takes off the oldest entry, if nothing of it is needed.
    pub(super) fn pop_over(&mut self) -> Option<Entry> {
        self.entries.front().filter(|oldest| oldest.needed == 0)?;
        self.first = self.first.wrapping_add(1);
        self.entries.pop_front()
    }
}
