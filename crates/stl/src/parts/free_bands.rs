//! Free bands, oldest first, and the fence that must stand before one of them is written again.
//!
//! What a band held when it was freed is still what the state at the last fence or flush refers to: on a medium with a
//! volatile cache it must not be overwritten before the change is durable. So a band that was freed since the last fence
//! is taken with a fence; bands that never held anything are taken without one, and first.

use crate::{Plan, Record, Sink};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Checkpoint: the first `words[0]` bands were taken, and are not free but for those that follow.
const TAKEN: u32 = 0x4601;
/// Checkpoint: band `words[0]` was freed, after those before it.
const FREED: u32 = 0x4602;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct FreeBands {
    /// Bands from here on were never taken.
    fresh: u32,
    all: u32,
    /// Freed bands, and how many fences there had been.
    freed: VecDeque<(u32, u64)>,
    /// Fences and flushes so far.
    fences: u64,
}

impl FreeBands {
    /// Bands below `all`, none of them taken.
    pub fn new(all: u32) -> Self {
        Self { fresh: 0, all, freed: VecDeque::new(), fences: 0 }
    }

    /// How many are free.
    pub fn len(&self) -> u32 {
        self.all - self.fresh + self.freed.len() as u32
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bands, from 0 on, were ever taken.
    pub fn ever_taken(&self) -> u32 {
        self.fresh
    }

    /// The band that will be taken after `ahead` others, and whether a fence must stand before it now.
    #[inline]
    pub fn peek(&self, ahead: u32) -> Option<(u32, bool)> {
        let fresh = self.all - self.fresh;
        if ahead < fresh {
            return Some((self.fresh + ahead, false));
        }
        self.freed.get((ahead - fresh) as usize).map(|&(band, at)| (band, at == self.fences))
    }

    /// Takes the next band, with a fence where one is due.
    ///
    /// # Panics
    /// When none is free: the owner keeps a reserve.
    pub fn take(&mut self, plan: &mut Plan) -> u32 {
        let (_, fence) = self.peek(0).expect("a reserve of free bands is kept");
        if fence {
            plan.fence();
            self.fences += 1;
        }
        self.pop()
    }

    /// Takes the next band when records are replayed: what they tell is durable.
    ///
    /// # Panics
    /// When none is free.
    pub fn pop(&mut self) -> u32 {
        if self.fresh < self.all {
            self.fresh += 1;
            return self.fresh - 1;
        }
        self.freed.pop_front().expect("a reserve of free bands is kept").0
    }

    /// Frees a band.
    pub fn put(&mut self, band: u32) {
        self.freed.push_back((band, self.fences));
    }

    /// Everything so far has become durable.
    pub fn durable(&mut self) {
        self.fences += 1;
    }

    /// The free bands and their order as records, from which [`replay`](Self::replay) makes the same.
    pub fn checkpoint(&self, out: &mut dyn Sink) {
        out.push(TAKEN, [u64::from(self.fresh), 0, 0]);
        for (band, _) in &self.freed {
            out.push(FREED, [u64::from(*band), 0, 0]);
        }
    }

    /// Takes a record of a checkpoint's; `false`: it is not one.
    pub fn replay(&mut self, record: &Record) -> bool {
        match record.tag {
            TAKEN => (self.fresh, self.freed) = (record.words[0] as u32, VecDeque::new()),
            FREED => self.put(record.words[0] as u32),
            _ => return false,
        }
        true
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        (self.freed.capacity() * size_of::<(u32, u64)>()) as u64
    }
}

/// How many bands are kept free so that cleaning always finds room and always ends.
///
/// A layer takes a band when an append needs one and then cleans until [`least`](Self::least) are free again. Cleaning
/// moves the live units of one band, at most its slots less one, to the heads of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Bands that are free whenever an append begins.
    pub least: u32,
    /// Bands that the cleaning of one victim may take.
    pub taken: u32,
}

impl Reserve {
    /// For `streams` streams of `heads` heads each, into which what is moved is sorted; `slots` are those of the shortest
    /// band to those of the longest.
    ///
    /// Where all bands are equal and there is one head, a cleaning takes one band at most and gives one back: two bands
    /// are enough. Otherwise room is left over in every head, and a long victim may need several short bands: as many
    /// bands as hold what all heads leave over and one victim in addition.
    pub fn of(streams: u32, heads: u32, slots: RangeInclusive<u32>) -> Self {
        let (short, long) = slots.into_inner();
        let taken = heads - 1 + (long - 1).max(1).div_ceil(short);
        let least = match (short == long, heads) {
            (true, 1) => 2,
            (true, _) => streams * (heads - 1) + 2,
            _ => {
                1 + (u64::from(streams * heads + heads + 1) * u64::from(long)).div_ceil(u64::from(short))
                    as u32
            }
        };
        Self { least, taken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;

    #[test]
    fn equal_bands_need_two_and_unequal_ones_what_is_left_over() {
        let least = |streams, heads, slots| Reserve::of(streams, heads, slots).least;
        assert_eq!((least(1, 1, 9..=9), least(7, 1, 9..=9)), (2, 2));
        assert_eq!((least(1, 2, 9..=9), least(4, 2, 9..=9)), (3, 6));
        assert_eq!(least(1, 1, 5..=6), 1 + 4);
        assert_eq!(Reserve::of(1, 2, 5..=12).taken, 1 + 3);
    }

    #[test]
    fn bands_come_back_in_turn_and_behind_a_fence_only_where_it_is_due() {
        let mut f = FreeBands::new(2);
        let mut plan = Plan::new(false, true);
        assert_eq!((f.take(&mut plan), f.take(&mut plan), f.len()), (0, 1, 0));
        f.put(1);
        f.put(0);
        assert_eq!((f.peek(0), f.peek(1), f.peek(2)), (Some((1, true)), Some((0, true)), None));
        assert!(plan.fences().is_empty());
        assert_eq!(f.take(&mut plan), 1);
        assert_eq!(plan.fences(), [0]);
        // The fence was for both; and what a flush made durable needs none.
        assert_eq!(f.peek(0), Some((0, false)));
        f.put(1);
        f.durable();
        assert_eq!(f.peek(1), Some((1, false)));
        let mut other = FreeBands::new(2);
        let mut records = Records::default();
        f.checkpoint(&mut records);
        assert!(records.changes().all(|r| other.replay(&r)));
        assert_eq!([other.pop(), other.pop()], [0, 1]);
    }
}
