//! A section's S-block ring: slots of one S-block each, the newest copy of every S-block in one of them.

use super::blocks::NONE;
use crate::parts::chunked::Chunked;
use crate::parts::ring::{Laid, Ring};
use smrlab_units::Pba;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct SlotRing {
    pub ring: Ring,
    laid: Laid,
    /// Blocks in a slot.
    size: u64,
    /// The S-block whose newest copy a slot holds; slots that were not touched hold what they held at first.
    owner: Chunked<u32>,
    /// The S-blocks that lie in the first slots at first, in their order; the other slots hold nothing.
    at_first: u32,
    /// A bit for each slot whose S-block has cached blocks.
    cached: Chunked<u64>,
    /// Slots behind the head that a write at the head damages.
    guard: u64,
}

impl SlotRing {
    /// `sblocks` S-blocks in the first slots, in their order.
    pub fn new(laid: Laid, size: u64, sblocks: u32, reach: u64) -> Self {
        let slots = laid.size() / size;
        Self {
            ring: Ring::with(slots, 0, u64::from(sblocks)),
            laid,
            size,
            owner: Chunked::new(slots as usize),
            at_first: sblocks,
            cached: Chunked::new((slots as usize).div_ceil(64)),
            guard: guard_slots(reach, size),
        }
    }

    #[inline]
    fn owner(&self, slot: u64) -> Option<u32> {
        let at_first = if slot < u64::from(self.at_first) { slot as u32 } else { NONE };
        Some(self.owner.get(slot as usize).copied().unwrap_or(at_first)).filter(|&x| x != NONE)
    }

    #[inline]
    fn set_owner(&mut self, slot: u32, x: u32) {
        let at_first = self.at_first;
        let fresh = |i| if i < at_first as usize { i as u32 } else { NONE };
        *self.owner.get_mut(slot as usize, fresh) = x;
    }

    #[inline]
    pub fn pba(&self, slot: u32) -> Pba {
        self.laid.pba(u64::from(slot) * self.size)
    }

    /// The S-block in the slot at the tail, if it is its newest copy.
    #[inline]
    pub fn at_tail(&self) -> Option<u32> {
        self.owner(self.ring.tail()).filter(|_| self.ring.used() > 0)
    }

    /// Whether the S-block in slot `ahead` slots behind the tail is its newest copy, and which.
    pub fn owner_ahead(&self, ahead: u64) -> Option<u32> {
        let slot = self.ring.wrap(self.ring.tail() + ahead);
        self.owner(slot).filter(|_| ahead < self.ring.used())
    }

    /// Slots that can be written before the tail has to move: a write never touches a slot in use, nor damages one.
    #[inline]
    pub fn room(&self) -> u64 {
        self.ring.free() - self.guard
    }

    /// Writes S-block `x`, whose newest copy is in slot `old`, to the head; answers the new slot.
    pub fn place(&mut self, x: u32, old: u32) -> u32 {
        let new = self.ring.head() as u32;
        let had = self.is_cached(old);
        if had {
            self.mark(old, false);
            self.mark(new, true);
        }
        self.set_owner(old, NONE);
        self.set_owner(new, x);
        self.ring.push(1);
        new
    }

    /// Frees the slot at the tail, which must be invalid.
    pub fn pop(&mut self) {
        debug_assert_eq!(self.at_tail(), None);
        self.ring.pop(1);
    }

    fn is_cached(&self, slot: u32) -> bool {
        self.cached.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Notes whether the S-block in `slot` has cached blocks.
    #[inline]
    pub fn mark(&mut self, slot: u32, cached: bool) {
        let word = self.cached.get_mut(slot as usize / 64, |_| 0);
        *word = *word & !(1 << (slot % 64)) | u64::from(cached) << (slot % 64);
    }

    /// How far `slot` lies from the tail.
    pub fn ahead(&self, slot: u32) -> u64 {
        self.ring.ahead(self.ring.tail(), u64::from(slot))
    }

    /// The first S-block with cached blocks that lies `from` slots behind the tail or further, and how far it lies.
    pub fn cached_from(&self, from: u64) -> Option<(u32, u64)> {
        if from >= self.ring.used() {
            return None;
        }
        let slots = self.ring.size();
        let start = self.ring.wrap(self.ring.tail() + from);
        let wrapped = self.ring.tail() + from >= slots;
        let mut found = self.next_marked(start, if wrapped { self.ring.tail() } else { slots });
        if found.is_none() && !wrapped {
            found = self.next_marked(0, self.ring.tail());
        }
        let slot = found?;
        Some((self.owner(slot)?, self.ring.ahead(self.ring.tail(), slot)))
    }

    fn next_marked(&self, from: u64, end: u64) -> Option<u64> {
        let mut at = from;
        while at < end {
            let Some(word) = self.cached.get(at as usize / 64) else {
                at = self.cached.next_touched(at as usize / 64)? as u64 * 64;
                continue;
            };
            let word = word >> (at % 64);
            if word != 0 {
                return Some(at + u64::from(word.trailing_zeros())).filter(|&slot| slot < end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Sets the pointers and forgets all owners, for a checkpoint's records.
    pub fn restart(&mut self, tail: u64) {
        self.ring = Ring::with(self.ring.size(), tail, 0);
        self.owner.clear();
        self.at_first = 0;
        self.cached.clear();
    }

    /// The next slot at the head holds `owner`, or nothing of interest.
    pub fn refill(&mut self, owner: Option<u32>) -> u32 {
        let slot = self.ring.head() as u32;
        self.set_owner(slot, owner.unwrap_or(NONE));
        self.ring.push(1);
        slot
    }

    /// The owners of the slots in use from the tail on.
    pub fn owners(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        (0..self.ring.used()).map(|i| self.owner_ahead(i))
    }

    /// Whether every S-block lies where it lay at first.
    pub fn is_untouched(&self) -> bool {
        let at_first = |(i, &x): (usize, &u32)| x == if i < self.at_first as usize { i as u32 } else { NONE };
        let unmoved = self.ring.tail() == 0 && self.ring.used() == u64::from(self.at_first);
        unmoved && self.owner.touched().all(at_first)
    }

    pub fn bytes(&self) -> u64 {
        self.owner.bytes() + self.cached.bytes() + self.laid.bytes()
    }
}

/// Slots behind a written one that the write may damage.
pub(super) fn guard_slots(reach: u64, size: u64) -> u64 {
    (reach - 1).div_ceil(size)
}
