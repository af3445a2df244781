//! When a section needs a fence: before the head of a ring reaches, by writing or by what that damages, a place that was
//! freed since everything was durable. Until then the durable state may refer to it.

use super::section::{Section, Work};
use crate::Plan;

/// How far the heads may go before the next fence.
#[derive(Clone, Debug)]
pub(super) struct Spare {
    /// Blocks that a write damages, the written one included.
    reach: u64,
    /// The number of the fence since which the rest holds.
    since: u64,
    /// Blocks of the cache ring.
    cache: u64,
    /// Slots of the S-block ring.
    slots: u64,
}

impl Spare {
    pub fn new(reach: u64) -> Self {
        Self { reach, since: 0, cache: 0, slots: 0 }
    }
}

impl Section {
    /// Before anything moves: what a fence elsewhere in the drive brought.
    #[inline]
    pub fn see_fences(&mut self, work: &Work) {
        if self.spare.since != work.fences {
            self.renew(work.fences);
        }
    }

    fn renew(&mut self, since: u64) {
        let cache = self.cache.ring.free() - (self.spare.reach - 1);
        self.spare = Spare { since, cache, slots: self.slots.room(), ..self.spare };
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
    pub fn spend_blocks(&mut self, n: u64, work: &mut Work, plan: &mut Plan) {
        if n > self.spare.cache {
            self.fence(work, plan);
        }
        self.spare.cache -= n;
    }

    /// The slot at the head will be written.
    #[inline]
    pub fn spend_slot(&mut self, work: &mut Work, plan: &mut Plan) {
        if self.spare.slots == 0 {
            self.fence(work, plan);
        }
        self.spare.slots -= 1;
    }
}
