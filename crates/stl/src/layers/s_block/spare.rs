//! When a section needs a fence: before the head of a ring reaches, by writing or by what that damages, a place that was
//! freed since everything was durable. Until then the durable state may refer to it.

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
    pub(super) fn new(reach: u64) -> Self {
        Self { reach, since: 0, cache: 0, slots: 0 }
    }

    /// Whether it holds since fence number `fence`.
    pub(super) fn is_of(&self, fence: u64) -> bool {
        self.since == fence
    }

    /// At fence number `fence` so many blocks of the cache ring and slots of the S-block ring are free.
    pub(super) fn renew(&mut self, fence: u64, free: u64, slots: u64) {
        (self.since, self.cache, self.slots) = (fence, free - (self.reach - 1), slots);
    }

    /// Takes blocks of the cache ring; `false`: there must be a fence first.
    #[inline]
    pub(super) fn take_blocks(&mut self, n: u64) -> bool {
        let enough = n <= self.cache;
        if enough {
            self.cache -= n;
        }
        enough
    }

    /// Takes a slot; `false`: there must be a fence first.
    #[inline]
    pub(super) fn take_slot(&mut self) -> bool {
        let enough = self.slots > 0;
        if enough {
            self.slots -= 1;
        }
        enough
    }
}
