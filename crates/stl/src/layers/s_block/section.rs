//! One section: its two rings and its map, and what changes them together. Writing (Algorithm V.1) is in `write.rs`, making room
//! in the cache (V.2, V.3) in `clean.rs`, the S-block ring (V.4, V.5) in `turn.rs`, reading (V.6) in `read.rs`.

use super::Rules;
use super::ahead::Ahead;
use super::blocks::{NONE, SBlocks};
use super::cache::CacheRing;
use super::choose::Queue;
use super::slots::SlotRing;
use super::spare::Spare;
use super::work::Work;
use crate::parts::ring::Laid;
use crate::{Plan, Record};
use smrlab_units::{Blocks, Pba};

/// See the [module](self).
pub(super) struct Section {
    /// Number of the section's first S-block in the drive.
    pub first: u64,
    pub cache: CacheRing,
    pub slots: SlotRing,
    pub blocks: SBlocks,
    pub queue: Option<Queue>,
    pub spare: Spare,
    /// Fewer invalid blocks in the cache ring than so many are few.
    pub low: u64,
    /// Fetches what will be destaged soon; `None`: there is no need.
    pub ahead: Option<Ahead>,
}

/// What all sections of a drive have in common.
pub(super) struct Common {
    pub rules: Rules,
    /// S-blocks of a section.
    pub sblocks: u32,
    /// Blocks behind a write that it damages.
    pub reach: u64,
    /// The maps are larger than the processor's caches.
    pub far: bool,
}

impl Section {
    /// The section of this number, on the stretches of its slots and of its cache ring.
    pub(super) fn new(number: u64, (slots, cache): (Laid, Laid), common: &Common) -> Self {
        let &Common { rules, sblocks, reach, far } = common;
        let cache = CacheRing::new(cache, reach + rules.batch);
        let slots = SlotRing::new(slots, rules.size, sblocks, reach, !rules.skip);
        let first_slot = if slots.is_filled() { 0 } else { slots.first_virtual() };
        Self {
            first: number * u64::from(sblocks),
            blocks: SBlocks::new(sblocks, first_slot),
            queue: rules.policy.counts().then(|| Queue::new(sblocks as usize, rules.size)),
            spare: Spare::new(reach),
            low: (rules.low_water * cache.capacity() as f64) as u64,
            ahead: far.then(Ahead::default),
            cache,
            slots,
        }
    }

    /// Before anything moves: what a fence elsewhere in the drive brought.
    #[inline]
    pub(super) fn see_fences(&mut self, work: &Work) {
        if !self.spare.is_of(work.fences) {
            self.renew(work.fences);
        }
    }

    fn renew(&mut self, fence: u64) {
        self.spare.renew(fence, self.cache.ring.free(), self.slots.room());
    }

    /// Fetches one more item of the S-block that will be destaged next (0) or after that (1).
    #[inline]
    pub(super) fn fetch_ahead(&mut self, i: usize) {
        if let Some(ahead) = &mut self.ahead {
            ahead.fetch(i, &self.blocks, &self.cache);
        }
    }

    #[cold]
    fn fence(&mut self, work: &mut Work, plan: &mut Plan) {
        plan.fence();
        work.fences += 1;
        self.renew(work.fences);
    }

    /// `n` blocks will be written to the head of the cache ring. The ring's own pointers may have gone as far with their
    /// head as with their tail already.
    #[inline]
    pub(super) fn spend_blocks(&mut self, n: u64, work: &mut Work, plan: &mut Plan) {
        if !self.spare.take_blocks(n) {
            self.fence(work, plan);
            let taken = self.spare.take_blocks(n);
            debug_assert!(taken, "a fence makes room for every write");
        }
    }

    /// The slot at the head will be written.
    #[inline]
    pub(super) fn spend_slot(&mut self, work: &mut Work, plan: &mut Plan) {
        if !self.spare.take_slot() {
            self.fence(work, plan);
            let taken = self.spare.take_slot();
            debug_assert!(taken, "a fence makes room for a slot");
        }
    }

    /// Brings the slot marks and the queue up to date after `x`, which `had` cached blocks or not, has got `more` of them and
    /// lost `fewer`.
    #[inline]
    pub(super) fn recount(&mut self, x: u32, had: bool, more: u64, fewer: u64) {
        let s = self.blocks.at(x);
        if had != (s.first != NONE) {
            self.slots.mark(s.slot, !had);
        }
        if let Some(q) = &mut self.queue {
            q.change(x, more as u32, fewer as u32);
        }
    }

    /// Puts blocks of `x` at the head of the cache ring; older copies become invalid. Answers how many there were.
    #[inline]
    pub(super) fn put(&mut self, x: u32, offset: u64, n: u64) -> u64 {
        let s = self.blocks.at_mut(x);
        let had = s.first != NONE;
        let hit = self.cache.invalidate(s, offset, n);
        self.cache.put(x, offset, n, &mut self.blocks);
        self.recount(x, had, n, hit);
        hit
    }

    /// Takes blocks out of the cache.
    pub(super) fn forget(&mut self, x: u32, offset: u64, n: u64) {
        if self.blocks.at(x).first != NONE {
            let gone = self.cache.invalidate(self.blocks.at_mut(x), offset, n);
            self.recount(x, true, 0, gone);
        }
    }

    /// `x` was written to the head of its ring; `whole`: cached copies are not newer. Answers how many of these there were.
    pub(super) fn placed(&mut self, x: u32, whole: bool) -> u64 {
        let s = self.blocks.at_mut(x);
        s.slot = self.slots.place(x, s.slot);
        let had = s.first != NONE;
        if !whole || !had {
            return 0;
        }
        let gone = self.cache.invalidate_all(s);
        self.recount(x, true, 0, gone);
        gone
    }

    /// Whether a block was ever written since it was discarded, as far as the map knows: it is cached, or its S-block has
    /// a slot.
    pub(super) fn holds(&self, x: u32, offset: u64) -> bool {
        let s = self.blocks.at(x);
        self.slots.is_placed(s.slot) || self.is_cached(x, offset)
    }

    fn is_cached(&self, x: u32, offset: u64) -> bool {
        let mut parts = Vec::new();
        self.cache.parts(&self.blocks.at(x), offset, 1, &mut parts);
        !parts.is_empty()
    }

    pub(super) fn record(plan: &mut Plan, tag: u32, words: [u64; 3]) {
        plan.record(Record { tag, words });
    }

    /// Where a block lies.
    pub(super) fn place(&self, x: u32, offset: u64) -> Pba {
        let mut parts = Vec::new();
        let s = self.blocks.at(x);
        self.cache.parts(&s, offset, 1, &mut parts);
        match parts.first() {
            Some(p) => self.cache.laid.pba(p.at),
            None => self.slots.pba(s.slot) + Blocks(offset),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.blocks.bytes()
            + self.cache.bytes()
            + self.slots.bytes()
            + self.queue.as_ref().map_or(0, Queue::bytes)
    }
}
