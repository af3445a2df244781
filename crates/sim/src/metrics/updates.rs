//! Which writes are updates: those that touch at least one block that had been written before.
//!
//! Over a huge drive every look at what was written is a cache miss. Nothing in a run depends on the answer, so writes
//! are gathered, brought together by address (in their order), and looked up a neighbourhood at a time.

use super::Amplification;
use smrlab_blockmap::{BlockSet, Gather};
use smrlab_units::{Blocks, Lba};

#[derive(Clone, Copy, Debug, Default)]
struct Write {
    lba: u64,
    blocks: u32,
    ops: u32,
    extents: u32,
}

/// See the [module](self).
pub struct Updates {
    written: BlockSet,
    gathered: Gather<Write>,
    total: Amplification,
}

impl Updates {
    /// Nothing written yet in a space of `host` blocks.
    pub fn new(host: Blocks) -> Self {
        let (written, total) = (BlockSet::new(), Amplification::default());
        Self { written, gathered: Gather::new(host.0), total }
    }

    /// Blocks that were written before the run.
    pub fn prefilled(&mut self, lba: Lba, blocks: Blocks) {
        self.written.insert(lba.span(blocks));
    }

    /// A write that took `ops` media operations in `extents` extents.
    #[inline]
    pub fn add(&mut self, lba: Lba, blocks: Blocks, ops: u64, extents: u64) {
        let (blocks, ops, extents) = (blocks.0 as u32, ops as u32, extents as u32);
        if self.gathered.push(Write { lba: lba.0, blocks, ops, extents }) {
            self.look_up();
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self) {
        let total = &mut self.total;
        self.gathered.drain(
            &mut self.written,
            |w| w.lba,
            |written, w| {
                let n = u64::from(w.blocks);
                if written.insert(w.lba..w.lba + n) < n {
                    total.add(u64::from(w.ops), u64::from(w.extents));
                }
            },
        );
    }

    /// All updates so far, and what they took.
    pub fn total(&mut self) -> Amplification {
        self.look_up();
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_writes_to_a_place_is_kept() {
        let host = 1 << 24;
        let mut updates = Updates::new(Blocks(host));
        let mut plain = std::collections::HashSet::new();
        updates.prefilled(Lba(0), Blocks(1000));
        plain.extend(0..1000);
        let (mut want, mut state) = (0, 1u64);
        // More than are gathered at once.
        for _ in 0..(1u64 << 18) + 1000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (lba, n) = ((state >> 40) % (host - 8), 1 + (state >> 33) % 8);
            let new = (lba..lba + n).filter(|b| plain.insert(*b)).count() as u64;
            want += u64::from(new < n);
            updates.add(Lba(lba), Blocks(n), 3, 2);
        }
        let total = updates.total();
        assert_eq!((total.requests, total.ops, total.extents), (want, want * 3, want * 2));
        assert!(want > 1000);
    }
}
