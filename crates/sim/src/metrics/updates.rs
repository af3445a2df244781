//! Which writes are updates: those that touch at least one block that had been written before. And which reads are of
//! blocks that never were.
//!
//! Over a huge drive every look at what was written is a cache miss. Nothing in a run depends on the answer, so once the
//! set is too large for that, requests are gathered, brought together by address (in their order), and looked up a
//! neighbourhood at a time. And most requests to a huge drive are to places near which nothing was ever written, or one
//! thing: [`Places`] knows these, and they need no look at the set.

mod places;

use super::Amplification;
use places::{Known, Places, SEVERAL};
use smrlab_blockmap::{BlockSet, Gather};
use smrlab_units::{Blocks, Lba};
use std::ops::Range;

/// Bytes of the set up to which it is looked at at once: it lies in the processor's caches.
const NEAR: usize = 1 << 18;

/// 16 bytes: there are many. Whole words, because a word that was put together from parts is slow to copy.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    lba: u64,
    /// Length, then operations (16 bits), then extents (16 bits) of a write; without extents a read; or [`BEFORE`].
    what: u64,
}

impl Request {
    fn blocks(self) -> u64 {
        self.what & 0xffff_ffff
    }

    fn ops(self) -> u64 {
        self.what >> 32 & 0xffff
    }

    fn extents(self) -> u64 {
        self.what >> 48
    }
}

/// For `extents`: written before the run, and counted as nothing.
const BEFORE: u64 = 0xffff;

/// Reads of blocks that were never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Reads that touch at least one.
    pub reads: u64,
    /// Such blocks.
    pub blocks: u64,
}

/// What came out so far.
#[derive(Default)]
struct Seen {
    updates: Amplification,
    unwritten: Unwritten,
}

impl Seen {
    #[inline(always)]
    fn see(&mut self, r: Request, written: &mut BlockSet) {
        match r.extents() {
            0 => self.read(r.lba, r.blocks(), written),
            BEFORE => _ = written.insert(r.lba..r.lba + r.blocks()),
            extents => self.wrote(r.lba, r.blocks(), r.ops(), extents, written),
        }
    }

    #[inline]
    fn read(&mut self, lba: u64, n: u64, written: &BlockSet) {
        self.never(n - written.count_in(lba..lba + n));
    }

    /// A read of so many blocks that were never written.
    fn never(&mut self, never: u64) {
        self.unwritten.blocks += never;
        self.unwritten.reads += u64::from(never > 0);
    }

    #[inline]
    fn wrote(&mut self, lba: u64, n: u64, ops: u64, extents: u64, written: &mut BlockSet) {
        if written.insert(lba..lba + n) < n {
            self.updates.add(ops, extents);
        }
    }
}

/// See the [module](self).
pub struct Updates {
    written: BlockSet,
    places: Places,
    gathered: Gather<Request>,
    seen: Seen,
}

impl Updates {
    /// Nothing written yet in a space of `host` blocks. `foretold`: requests are told of beforehand
    /// ([`prefetch`](Self::prefetch)).
    pub fn new(host: Blocks, foretold: bool) -> Self {
        Self {
            written: BlockSet::new(),
            places: if foretold { Places::new(host.0) } else { Places::unknown() },
            gathered: Gather::new(host.0),
            seen: Seen::default(),
        }
    }

    /// Blocks that were written before the run; `near`: close to those that were told of just before.
    pub fn prefilled(&mut self, lba: Lba, blocks: Blocks, near: bool) {
        let n = blocks.0;
        if n == 0 {
            return;
        }
        // There is mostly more to come.
        self.several(lba.0, n);
        match u32::try_from(n) {
            Ok(n) if n <= 64 && !near => self.see(Request { lba: lba.0, what: u64::from(n) | BEFORE << 48 }),
            _ => _ = self.written.insert(lba.span(blocks)),
        }
    }

    /// What a state says was written.
    pub fn restored(&mut self, ranges: &[Range<u64>]) {
        ranges.iter().for_each(|r| self.prefilled(Lba(r.start), Blocks(r.end - r.start), false));
    }

    /// A read or write of `lba` will soon be told of.
    #[inline]
    pub fn prefetch(&self, lba: Lba) {
        self.places.prefetch(lba.0);
    }

    /// A write that took `ops` media operations in `extents` extents.
    #[inline]
    pub fn add(&mut self, lba: Lba, blocks: Blocks, ops: u64, extents: u64) {
        let extents = extents.max(1);
        if blocks.0 == 0 || self.noted(lba.0, blocks.0) {
            return;
        }
        if ops.max(extents) < BEFORE {
            return self
                .see(Request { lba: lba.0, what: blocks.0 & 0xffff_ffff | ops << 32 | extents << 48 });
        }
        self.look_up();
        self.seen.wrote(lba.0, blocks.0, ops, extents, &mut self.written);
    }

    /// Notes a write by its place; `true`: it is the first one there. Else the set is to have it, and has what was there before.
    #[inline]
    fn noted(&mut self, lba: u64, n: u64) -> bool {
        let first = self.places.first(lba, n);
        if !first {
            self.several(lba, n);
        }
        first
    }

    /// The set is to know all of the places of `n` blocks.
    #[inline]
    fn several(&mut self, lba: u64, n: u64) {
        for place in self.places.all(lba, n) {
            self.hand_over(place);
            self.places.cells[place] = SEVERAL;
        }
    }

    /// The set gets what a place alone knows.
    #[inline]
    fn hand_over(&mut self, place: usize) {
        if let Some(one) = self.places.take(place) {
            self.see(Request { lba: one.start, what: (one.end - one.start) | BEFORE << 48 });
        }
    }

    /// A read.
    #[inline]
    pub fn read(&mut self, lba: Lba, blocks: Blocks) {
        let n = blocks.0;
        if n == 0 {
            return;
        }
        match self.places.known(lba.0, n) {
            Known::Untouched => self.seen.never(n),
            Known::Touched(touched) => self.seen.never(n - touched),
            Known::Set => {
                self.places.all(lba.0, n).for_each(|place| self.hand_over(place));
                self.see(Request { lba: lba.0, what: n & 0xffff_ffff });
            }
        }
    }

    #[inline(always)]
    fn see(&mut self, r: Request) {
        if self.gathered.is_empty() && self.written.bytes() < NEAR {
            return self.seen.see(r, &mut self.written);
        }
        // What reaches into two neighbourhoods has its turn after all before it and before all behind.
        if self.gathered.apart(r.lba, r.lba + r.blocks().max(1) - 1) {
            self.look_up();
            return self.seen.see(r, &mut self.written);
        }
        if self.gathered.push(r) {
            self.look_up();
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self) {
        let seen = &mut self.seen;
        self.gathered.drain(&mut self.written, |r| r.lba, |written, r| seen.see(*r, written));
    }

    /// The set gets all that was written.
    fn complete(&mut self) {
        (0..self.places.cells.len()).for_each(|place| self.hand_over(place));
        self.look_up();
    }

    /// What was written so far, before the run or in it, as ranges of LBAs.
    pub fn written(&mut self) -> Vec<Range<u64>> {
        self.complete();
        self.written.runs().collect()
    }

    /// The same, unless there are more than `most` ranges.
    pub fn written_within(&mut self, most: usize) -> Option<Vec<Range<u64>>> {
        self.complete();
        let ranges: Vec<_> = self.written.runs().take(most.saturating_add(1)).collect();
        (ranges.len() <= most).then_some(ranges)
    }

    /// All updates so far, and what they took.
    pub fn total(&mut self) -> Amplification {
        self.look_up();
        self.seen.updates
    }

    /// All reads so far of blocks that were never written.
    pub fn unwritten(&mut self) -> Unwritten {
        self.look_up();
        self.seen.unwritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    #[test]
    fn ranges_are_told_unless_they_are_too_many() {
        let mut updates = Updates::new(Blocks(1000), false);
        [5, 20, 40].into_iter().for_each(|lba| updates.prefilled(Lba(lba), Blocks(2), false));
        let all = vec![5..7, 20..22, 40..42];
        assert_eq!((updates.written_within(3), updates.written_within(2)), (Some(all.clone()), None));
        assert_eq!(updates.written(), all);
    }

    #[test]
    fn the_order_of_writes_to_a_place_is_kept() {
        // From one neighbourhood to many small ones.
        [1 << 12, 1 << 17, 1 << 24, 1 << 33].into_iter().for_each(order_is_kept);
    }

    fn order_is_kept(host: u64) {
        let mut updates = Updates::new(Blocks(host), host > 1 << 20);
        let mut plain = std::collections::HashSet::new();
        updates.prefilled(Lba(0), Blocks(1000), false);
        plain.extend(0..1000);
        let (mut want, mut ops, mut rng) = (0, 0, Rng::new(1));
        let apart = (host >> 22).max(1);
        // More than are gathered at once.
        for _ in 0..(1u64 << 18) + 1000 {
            // All over a large space, and yet some again.
            let (lba, n) = (rng.below((host - 16) / apart) * apart, 1 + rng.below(16));
            let new = (lba..lba + n).filter(|b| plain.insert(*b)).count() as u64;
            // Which of two writes is the update is seen by what it took.
            let took = 1 + rng.below(1000);
            want += u64::from(new < n);
            ops += if new < n { took } else { 0 };
            updates.add(Lba(lba), Blocks(n), took, 2);
        }
        let total = updates.total();
        assert_eq!((total.requests, total.ops, total.extents), (want, ops, want * 2));
        assert!(want > 1000);
    }

    /// Whatever the neighbourhoods are: the write across their border comes after the one behind it.
    #[test]
    fn the_order_across_a_border_is_kept() {
        let mut updates = Updates::new(Blocks(1 << 30), true);
        // So much that requests are gathered.
        (0..1 << 17).for_each(|i| updates.prefilled(Lba(i << 13 | 1 << 11), Blocks(8), false));
        assert!(updates.written.bytes() >= NEAR);
        let borders = (1u64 << 20..1 << 30).step_by(1 << 20);
        for at in borders.clone() {
            updates.add(Lba(at), Blocks(4), 1, 1);
            updates.add(Lba(at - 4), Blocks(8), 10, 1);
        }
        let n = borders.count() as u64;
        assert_eq!((updates.total().requests, updates.total().ops), (n, 10 * n));
    }

    #[test]
    fn a_write_of_very_many_operations_counts_them_all() {
        let mut updates = Updates::new(Blocks(1 << 30), true);
        updates.prefilled(Lba(0), Blocks(8), false);
        updates.add(Lba(0), Blocks(8), 100_000, 1);
        updates.add(Lba(0), Blocks(8), 2, 70_000);
        let total = updates.total();
        assert_eq!((total.requests, total.ops, total.extents), (2, 100_002, 70_001));
    }

    /// Reads all over a huge space, and across the borders of places, against a plain set of blocks.
    #[test]
    fn unwritten_reads_are_counted_alike_near_and_far_from_what_was_written() {
        [true, false].into_iter().for_each(counted_alike);
    }

    fn counted_alike(foretold: bool) {
        let host = 1u64 << 34;
        let mut updates = Updates::new(Blocks(host), foretold);
        let mut plain = std::collections::HashSet::new();
        let (mut reads, mut blocks, mut rng) = (0, 0, Rng::new(7));
        for i in 0..400_000u64 {
            // A third close to the border of a place, a third among few blocks, a third anywhere.
            let at = match i % 3 {
                0 => (1 + rng.below(4000)) * 4096 - 8 + rng.below(16),
                1 => rng.below(5000),
                _ => rng.below(host - 100),
            };
            let n = 1 + rng.below(16);
            if rng.below(16) < 3 {
                updates.add(Lba(at), Blocks(n), 1, 1);
                plain.extend(at..at + n);
            } else {
                let never = (at..at + n).filter(|b| !plain.contains(b)).count() as u64;
                (reads, blocks) = (reads + u64::from(never > 0), blocks + never);
                updates.read(Lba(at), Blocks(n));
            }
        }
        assert_eq!(updates.unwritten(), Unwritten { reads, blocks });
    }

    #[test]
    fn reads_of_what_was_never_written_are_told_from_others() {
        let mut updates = Updates::new(Blocks(1 << 20), true);
        updates.prefilled(Lba(0), Blocks(100), false);
        updates.read(Lba(90), Blocks(10));
        updates.read(Lba(95), Blocks(10));
        updates.add(Lba(100), Blocks(3), 1, 1);
        updates.read(Lba(95), Blocks(10));
        updates.read(Lba(500), Blocks(4));
        updates.add(Lba(500), Blocks(4), 1, 1);
        updates.read(Lba(500), Blocks(4));
        assert_eq!(updates.unwritten(), Unwritten { reads: 3, blocks: 5 + 2 + 4 });
        assert_eq!(updates.total().requests, 0, "a read is no update");
    }
}
