//! What will be destaged soon: its list of cached blocks is brought into the processor's caches a step a write. A hint, never a fact.

use super::blocks::{END, SBlocks};
use super::cache::CacheRing;
use super::slots::SlotRing;

/// How far the lists of the next two S-blocks were fetched; the one that is destaged first stands first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead([Fetched; 2]);

#[derive(Clone, Copy, Debug, Default)]
enum Fetched {
    /// There is nothing to fetch, or all is.
    #[default]
    All,
    /// The S-block's own entry.
    Block(u32),
    /// The list up to this item.
    Item(u32),
}

impl Ahead {
    /// Fetches one more item of list `i`.
    #[inline]
    pub(super) fn fetch(&mut self, i: usize, blocks: &SBlocks, cache: &CacheRing) {
        let next = match self.0[i] {
            Fetched::All => return,
            Fetched::Block(x) => blocks.at(x).first,
            Fetched::Item(item) => cache.next_item(item),
        };
        self.0[i] = if next & END != 0 {
            Fetched::All
        } else {
            cache.fetch(next);
            Fetched::Item(next)
        };
    }

    /// After a destage of the S-block that was closest to the tail: the one but two after it will probably be the third one from there.
    pub(super) fn destaged(&mut self, blocks: &SBlocks, slots: &SlotRing) {
        let behind = |ahead: u64| slots.cached_from(ahead + 1);
        let third = slots.cached_from(0).and_then(|(_, a)| behind(a)).and_then(|(_, a)| behind(a));
        let after_next = third.map_or(Fetched::All, |(x, _)| {
            blocks.prefetch(x);
            Fetched::Block(x)
        });
        *self = Self([self.0[1], after_next]);
    }
}
