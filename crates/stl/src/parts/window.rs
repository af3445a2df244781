//! Which units are hot: the window of the host's last writes, in which a later write weighs more.
//!
//! *Heat* of a unit: each of its writes among the last `n` units written counts `n` if it is the newest of all, one less for
//! each unit written behind it, and 1 if it is the oldest. That is direct address counting in a window (Park & Du 2011), worked
//! out without walking the window: the newest entry of a unit has the number of the unit's writes and the sum of their
//! times. Memory: 24 bytes an entry, and at most 5 bytes for each unit that is near one in the window.

use crate::{Record, Sink};
use smrlab_blockmap::UnitMap;

/// Checkpoint: `words[1]` units from `words[0]` on were written one after the other.
const WRITTEN: u32 = 0x5701;

/// A unit that was written.
#[derive(Clone, Copy, Debug)]
struct Entry {
    unit: u64,
    /// Of the newest entry of a unit: how many entries it has; of others 0.
    count: u64,
    /// Of the newest entry of a unit: the sum of their times.
    times: u64,
}

/// See the [module](self).
pub struct Window {
    /// The unit that was written at time `t` is at `t` modulo the length.
    entries: Vec<Entry>,
    length: usize,
    /// Units written so far.
    now: u64,
    /// Where a unit's newest entry is and one; 0: it has none.
    newest: UnitMap,
}

impl Window {
    /// Of the last `length` units, at least one.
    pub fn new(length: u32) -> Self {
        Self { entries: Vec::new(), length: length.max(1) as usize, now: 0, newest: UnitMap::new() }
    }

    fn newest(&self, unit: u64) -> Option<usize> {
        self.newest.get(unit).checked_sub(1).map(|at| at as usize)
    }

    /// The host wrote a unit.
    #[inline]
    pub fn push(&mut self, unit: u64) {
        let at = (self.now % self.length as u64) as usize;
        if at < self.entries.len() {
            self.leave(at);
        }
        let mut entry = Entry { unit, count: 1, times: self.now };
        if let Some(before) = self.newest.set(unit, at as u32 + 1).checked_sub(1) {
            let before = &mut self.entries[before as usize];
            entry.count += std::mem::take(&mut before.count);
            entry.times += before.times;
        }
        match self.entries.get_mut(at) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
        self.now += 1;
    }

    /// The oldest entry leaves the window.
    #[inline]
    fn leave(&mut self, at: usize) {
        let Entry { unit, count, .. } = self.entries[at];
        if count > 0 {
            self.newest.set(unit, 0);
        } else if let Some(newest) = self.newest(unit) {
            let newest = &mut self.entries[newest];
            newest.count -= 1;
            newest.times -= self.now - self.length as u64;
        }
    }

    /// See the [module](self); 0 of a unit that was not written within the window.
    #[inline]
    pub fn heat(&self, unit: u64) -> u64 {
        self.newest(unit).map_or(0, |newest| {
            let Entry { count, times, .. } = self.entries[newest];
            times + count * (self.length as u64 + 1) - count * self.now
        })
    }

    /// What was written, the oldest first, as records from which [`replay`](Self::replay) makes the same window.
    pub fn checkpoint(&self, out: &mut dyn Sink) {
        let oldest = if self.entries.len() < self.length { 0 } else { self.now % self.length as u64 };
        let (newer, older) = self.entries.split_at(oldest as usize);
        let units: Vec<u64> = older.iter().chain(newer).map(|e| e.unit).collect();
        for run in units.chunk_by(|a, b| a + 1 == *b) {
            out.push(WRITTEN, [run[0], run.len() as u64, 0]);
        }
    }

    /// Takes a record of a checkpoint's; `false`: it is not one.
    pub fn replay(&mut self, record: &Record) -> bool {
        let [first, n, _] = record.words;
        let known = record.tag == WRITTEN;
        if known {
            (first..first + n).for_each(|unit| self.push(unit));
        }
        known
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>() + self.newest.bytes()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;
    use smrlab_units::rng::Rng;
    use std::collections::VecDeque;

    /// By the definition: walks the window.
    fn by_walking(window: &VecDeque<u64>, length: u64, unit: u64) -> u64 {
        let newest_first = window.iter().rev().zip((1..=length).rev());
        newest_first.filter(|(u, _)| **u == unit).map(|(_, weight)| weight).sum()
    }

    #[test]
    fn heat_is_the_sum_of_weights_in_the_window() {
        for length in [1, 2, 7, 100] {
            let (mut window, mut model, mut rng) = (Window::new(length), VecDeque::new(), Rng::new(3));
            for _ in 0..5000 {
                let unit = rng.below(1 + u64::from(length) / 3);
                assert_eq!(window.heat(unit), by_walking(&model, length.into(), unit), "{length}");
                window.push(unit);
                model.push_back(unit);
                if model.len() > length as usize {
                    model.pop_front();
                }
            }
        }
    }

    #[test]
    fn a_later_write_weighs_more_and_one_outside_nothing() {
        let mut window = Window::new(4);
        [9, 5, 9].iter().for_each(|&unit| window.push(unit));
        // Of four: the newest counts 4, the one before 3, the first 2.
        assert_eq!([9, 5, 1].map(|unit| window.heat(unit)), [4 + 2, 3, 0]);
        [1, 2].iter().for_each(|&unit| window.push(unit));
        assert_eq!([9, 5, 1].map(|unit| window.heat(unit)), [2, 1, 3], "the first write of 9 has left");
    }

    #[test]
    fn a_checkpoint_makes_the_same_window() {
        let (mut window, mut rng) = (Window::new(50), Rng::new(9));
        for round in 0..130 {
            let (mut again, mut records) = (Window::new(50), Records::default());
            window.checkpoint(&mut records);
            assert!(records.changes().all(|r| again.replay(&r)));
            assert!((0..40).all(|u| again.heat(u) == window.heat(u)), "after {round}");
            assert!(records.len() <= 50 && !again.replay(&Record::default()));
            let first = rng.below(30);
            (first..first + 3).for_each(|unit| window.push(unit));
        }
    }
}
