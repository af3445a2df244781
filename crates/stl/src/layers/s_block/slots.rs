//! A section's S-block ring: slots of one S-block each, the newest copy of an S-block in one of them.
//!
//! S-blocks that hold nothing need no slot. They have *virtual* slots behind the ring's, so that what is known of slots is
//! known of theirs, and count as the ones closest to the tail: nothing has to be moved for them.

use super::blocks::NONE;
use crate::parts::chunked::Chunked;
use crate::parts::ring::{Laid, Ring};
use smrlab_units::Pba;

/// See the [module](self).
pub(super) struct SlotRing {
    pub ring: Ring,
    laid: Laid,
    /// Blocks in a slot.
    size: u64,
    /// The S-block whose newest copy a slot holds; slots that were not touched hold what they held at first.
    owner: Chunked<u32>,
    /// S-blocks.
    sblocks: u32,
    /// The S-blocks that lie in the first slots at first, in their order; the other slots hold nothing.
    at_first: u32,
    /// S-blocks that have a slot.
    placed: u64,
    /// Slots in use that hold no newest copy.
    invalid: Chunked<u64>,
    /// So many of the first slots are these at first.
    invalid_at_first: u64,
    /// A bit for each slot whose S-block has cached blocks, the virtual ones too.
    cached: Chunked<u64>,
    /// How many of these are virtual slots, and the first of them; where there is none, any number.
    unplaced_cached: u64,
    first_unplaced: u64,
    /// Slots behind the head that a write at the head damages.
    guard: u64,
}

impl SlotRing {
    /// For `sblocks` S-blocks: `placed` in the first slots, in their order, or in none. The head is behind these slots
    /// either way.
    pub(super) fn new(laid: Laid, size: u64, sblocks: u32, reach: u64, placed: bool) -> Self {
        let slots = laid.size() / size;
        let at_first = if placed { sblocks } else { 0 };
        Self {
            ring: Ring::with(slots, 0, u64::from(sblocks)),
            laid,
            size,
            owner: Chunked::new(slots as usize),
            sblocks,
            at_first,
            placed: u64::from(at_first),
            invalid: Chunked::new((slots as usize).div_ceil(64)),
            invalid_at_first: u64::from(sblocks - at_first),
            cached: Chunked::new((slots as usize + sblocks as usize).div_ceil(64)),
            unplaced_cached: 0,
            first_unplaced: 0,
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

    /// The virtual slot of S-block 0; the others follow.
    pub(super) fn first_virtual(&self) -> u32 {
        self.ring.size() as u32
    }

    /// Whether S-blocks lie in the first slots.
    pub(super) fn is_filled(&self) -> bool {
        self.at_first > 0
    }

    /// Whether an S-block in `slot` has a place on the medium.
    #[inline]
    pub(super) fn is_placed(&self, slot: u32) -> bool {
        u64::from(slot) < self.ring.size()
    }

    /// Where a slot lies; a virtual one where its S-block would have lain at first.
    #[inline]
    pub(super) fn pba(&self, slot: u32) -> Pba {
        let slot = if self.is_placed(slot) { slot } else { slot - self.first_virtual() };
        self.laid.pba(u64::from(slot) * self.size)
    }

    /// The S-block in the slot at the tail, if it is its newest copy.
    #[inline]
    pub(super) fn at_tail(&self) -> Option<u32> {
        self.owner(self.ring.tail()).filter(|_| self.ring.used() > 0)
    }

    /// Whether the S-block in slot `ahead` slots behind the tail is its newest copy, and which.
    pub(super) fn owner_ahead(&self, ahead: u64) -> Option<u32> {
        let slot = self.ring.wrap(self.ring.tail() + ahead);
        self.owner(slot).filter(|_| ahead < self.ring.used())
    }

    /// Slots that can be written before the tail has to move: a write never touches a slot in use, nor damages one.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.ring.free() - self.guard
    }

    /// Writes S-block `x`, whose newest copy is in slot `old`, to the head; answers the new slot.
    pub(super) fn place(&mut self, x: u32, old: u32) -> u32 {
        let new = self.ring.head() as u32;
        let had = self.is_cached(old);
        if had {
            self.mark(old, false);
            self.mark(new, true);
        }
        if self.is_placed(old) {
            self.give_up(old);
        } else {
            self.placed += 1;
        }
        self.set_owner(new, x);
        self.ring.push(1);
        new
    }

    /// S-block `x`, which has no cached blocks, gives its slot up; answers its virtual one.
    pub(super) fn vacate(&mut self, x: u32, old: u32) -> u32 {
        debug_assert!(self.is_placed(old) && !self.is_cached(old));
        self.give_up(old);
        self.placed -= 1;
        self.first_virtual() + x
    }

    fn give_up(&mut self, slot: u32) {
        self.set_owner(slot, NONE);
        self.set_invalid(u64::from(slot), true);
    }

    #[inline]
    fn set_invalid(&mut self, slot: u64, is: bool) {
        let first = self.invalid_at_first;
        let fresh = |i: usize| !u64::MAX.checked_shl(first.saturating_sub(i as u64 * 64) as u32).unwrap_or(0);
        let word = self.invalid.get_mut(slot as usize / 64, fresh);
        *word = *word & !(1 << (slot % 64)) | u64::from(is) << (slot % 64);
    }

    /// The first slot in `from..end` that is invalid, or that is not.
    fn next_of(&self, invalid: bool, from: u64, end: u64) -> Option<u64> {
        let mut at = from;
        while at < end {
            let (found, known) = match self.invalid.get(at as usize / 64) {
                Some(&word) => {
                    let word = (if invalid { word } else { !word }) >> (at % 64);
                    (at + u64::from(word.trailing_zeros()), (at / 64 + 1) * 64)
                }
                None => {
                    let touched = self.invalid.next_touched(at as usize / 64).map_or(end, |i| i as u64 * 64);
                    let found = match (invalid, at < self.invalid_at_first) {
                        (true, false) => touched,
                        (false, true) => self.invalid_at_first,
                        (true, true) | (false, false) => at,
                    };
                    (found, touched)
                }
            };
            if found < known {
                return Some(found).filter(|&slot| slot < end);
            }
            at = known;
        }
        None
    }

    /// How far the first invalid slot lies from the tail, and how many follow it without a gap: none are counted behind
    /// the tail itself, where there may be very many.
    pub(super) fn next_invalid(&self) -> Option<(u64, u64)> {
        let (tail, size) = (self.ring.tail(), self.ring.size());
        let behind = |from: u64, end: u64| self.next_of(true, from, end);
        let (slot, distance) = match behind(tail, size) {
            Some(slot) if slot == tail => return Some((0, 1)),
            Some(slot) => (slot, slot - tail),
            None => behind(0, tail).map(|slot| (slot, slot + size - tail))?,
        };
        Some((distance, self.next_of(false, slot, size).unwrap_or(size) - slot))
    }

    /// Slots beyond the S-blocks that have one, and the guard: what moving gains at the most.
    pub(super) fn spare(&self) -> u64 {
        self.ring.size() - self.guard - self.placed
    }

    /// Frees the slot at the tail, which must be invalid.
    pub(super) fn pop(&mut self) {
        debug_assert_eq!(self.at_tail(), None);
        self.set_invalid(self.ring.tail(), false);
        self.ring.pop(1);
    }

    fn is_cached(&self, slot: u32) -> bool {
        self.cached.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Hints that `slot` will be marked soon.
    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        self.cached.prefetch(slot as usize / 64);
    }

    /// Notes whether the S-block in `slot` has cached blocks.
    #[inline]
    pub(super) fn mark(&mut self, slot: u32, cached: bool) {
        let word = self.cached.get_mut(slot as usize / 64, |_| 0);
        let was = *word >> (slot % 64) & 1;
        *word = *word & !(1 << (slot % 64)) | u64::from(cached) << (slot % 64);
        if !self.is_placed(slot) {
            let (slot, before) = (u64::from(slot), self.unplaced_cached);
            self.unplaced_cached = before + u64::from(cached) - was;
            if cached && (before == 0 || slot < self.first_unplaced) {
                self.first_unplaced = slot;
            } else if !cached && slot == self.first_unplaced && self.unplaced_cached > 0 {
                let end = u64::from(self.first_virtual()) + u64::from(self.sblocks);
                self.first_unplaced = self.next_marked(slot, end).unwrap_or(slot);
            }
        }
    }

    /// How far `slot` lies from the tail.
    pub(super) fn ahead(&self, slot: u32) -> u64 {
        if self.is_placed(slot) { self.ring.ahead(self.ring.tail(), u64::from(slot)) } else { 0 }
    }

    /// The first S-block with cached blocks whose turn is `from` or later, and its turn: those without a slot come first,
    /// in their order, then those with one, from the tail on.
    pub(super) fn cached_from(&self, from: u64) -> Option<(u32, u64)> {
        let without = u64::from(self.sblocks);
        if from < without && self.unplaced_cached > 0 {
            let first = u64::from(self.first_virtual());
            if let Some(slot) = self.next_marked(self.first_unplaced.max(first + from), first + without) {
                return Some(((slot - first) as u32, slot - first));
            }
        }
        let (x, ahead) = self.placed_from(from.saturating_sub(without))?;
        Some((x, without + ahead))
    }

    fn placed_from(&self, from: u64) -> Option<(u32, u64)> {
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
    pub(super) fn restart(&mut self, tail: u64) {
        self.ring = Ring::with(self.ring.size(), tail, 0);
        self.owner.clear();
        (self.at_first, self.placed) = (0, 0);
        self.invalid.clear();
        self.invalid_at_first = 0;
        self.cached.clear();
        (self.unplaced_cached, self.first_unplaced) = (0, 0);
    }

    /// The next slot at the head holds `owner`, or nothing of interest.
    pub(super) fn refill(&mut self, owner: Option<u32>) -> u32 {
        let slot = self.ring.head() as u32;
        self.set_owner(slot, owner.unwrap_or(NONE));
        match owner {
            Some(_) => self.placed += 1,
            None => self.set_invalid(u64::from(slot), true),
        }
        self.ring.push(1);
        slot
    }

    /// The owners of the slots in use from the tail on.
    pub(super) fn owners(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        (0..self.ring.used()).map(|i| self.owner_ahead(i))
    }

    /// Whether every S-block lies where it lay at first.
    pub(super) fn is_untouched(&self) -> bool {
        let at_first = |(i, &x): (usize, &u32)| x == if i < self.at_first as usize { i as u32 } else { NONE };
        let unmoved = self.ring.tail() == 0 && self.ring.used() == u64::from(self.sblocks);
        unmoved && self.owner.touched().all(at_first)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.owner.bytes() + self.cached.bytes() + self.laid.bytes() + self.invalid.bytes()
    }
}

/// Slots behind a written one that the write may damage.
pub(super) fn guard_slots(reach: u64, size: u64) -> u64 {
    (reach - 1).div_ceil(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::ring::Stretch;
    use smrlab_units::Blocks;
    use smrlab_units::rng::Rng;

    const SBLOCKS: u32 = 70;

    /// What is asked of slots, answered by a look at each: the slot of every S-block, and whether it has cached blocks.
    fn compare(ring: &SlotRing, slots: &[(u32, bool)]) {
        let turn = |x: usize, slot: u32| match ring.is_placed(slot) {
            true => u64::from(SBLOCKS) + ring.ahead(slot),
            false => x as u64,
        };
        let cached = slots.iter().enumerate().filter(|(_, s)| s.1);
        let mut turns: Vec<_> = cached.map(|(x, &(slot, _))| (x as u32, turn(x, slot))).collect();
        turns.sort_by_key(|t| t.1);
        for from in 0..u64::from(SBLOCKS) + ring.ring.size() + 2 {
            let first = turns.iter().copied().find(|t| t.1 >= from);
            assert_eq!(ring.cached_from(from), first, "from {from} of {:?}", ring.ring);
        }
        let owner = |ahead: u64| {
            let slot = ring.ring.wrap(ring.ring.tail() + ahead) as u32;
            slots.iter().position(|s| s.0 == slot).map(|x| x as u32)
        };
        let used: Vec<_> = (0..ring.ring.used()).map(owner).collect();
        assert_eq!(ring.owners().collect::<Vec<_>>(), used);
        assert_eq!(ring.owner_ahead(ring.ring.used()), None);
        let placed = used.iter().flatten().count() as u64;
        assert_eq!(ring.spare(), ring.ring.size() - ring.guard - placed);
        assert_eq!(ring.next_invalid().map(|i| i.0), used.iter().position(Option::is_none).map(|i| i as u64));
    }

    /// 20 000 slots of which the first 10 000 are in use: the bits of 4096 slots lie together, and few were touched.
    #[test]
    fn invalid_slots_are_found_beyond_those_that_were_not_touched() {
        let ring = |placed| {
            let laid = Laid::over(&[Stretch { first: Pba(0), blocks: Blocks(20_000 * 4) }]);
            SlotRing::new(laid, 4, 10_000, 9, placed)
        };
        let mut filled = ring(true);
        assert_eq!((filled.next_of(true, 0, 20_000), filled.next_of(false, 7, 20_000)), (None, Some(7)));
        for x in [5, 9000, 9001] {
            filled.vacate(x, x);
        }
        assert_eq!(filled.next_invalid(), Some((5, 1)));
        assert_eq!((filled.next_of(true, 6, 20_000), filled.next_of(true, 6, 9000)), (Some(9000), None));
        assert_eq!(
            (filled.next_of(false, 9000, 20_000), filled.next_of(true, 9002, 20_000)),
            (Some(9002), None)
        );
        let mut empty = ring(false);
        let next = |ring: &SlotRing, at| [true, false].map(|invalid| ring.next_of(invalid, at, 20_000));
        assert_eq!(next(&empty, 0), [Some(0), Some(10_000)]);
        assert_eq!(
            (next(&empty, 5000), next(&empty, 10_000)),
            ([Some(5000), Some(10_000)], [None, Some(10_000)])
        );
        empty.pop();
        assert_eq!((next(&empty, 0), next(&empty, 1)), ([Some(1), Some(0)], [Some(1), Some(10_000)]));
    }

    /// S-blocks move, gain and lose cached blocks and their slots in any order, over several turns of the ring.
    #[test]
    fn the_next_of_every_turn_is_found() {
        for placed in [true, false] {
            let laid = Laid::over(&[Stretch { first: Pba(0), blocks: Blocks(100 * 4) }]);
            let mut ring = SlotRing::new(laid, 4, SBLOCKS, 9, placed);
            let slot = |x: u32| if placed { x } else { ring.first_virtual() + x };
            let mut slots: Vec<(u32, bool)> = (0..SBLOCKS).map(|x| (slot(x), false)).collect();
            let mut random = Rng::new(5);
            for _ in 0..1500 {
                let x = random.below(u64::from(SBLOCKS)) as usize;
                let (old, cached) = slots[x];
                match random.below(6) {
                    0 if ring.is_placed(old) && !cached => slots[x].0 = ring.vacate(x as u32, old),
                    0..3 => {
                        ring.mark(old, !cached);
                        slots[x].1 = !cached;
                    }
                    _ => {
                        // The tail makes room: what is valid there goes to the head.
                        while ring.room() < 2 || (ring.ring.used() > 0 && ring.at_tail().is_none()) {
                            if let Some(first) = ring.at_tail() {
                                let first = first as usize;
                                slots[first].0 = ring.place(first as u32, slots[first].0);
                            }
                            ring.pop();
                        }
                        let old = slots[x].0;
                        slots[x].0 = ring.place(x as u32, old);
                    }
                }
                compare(&ring, &slots);
            }
        }
    }
}
