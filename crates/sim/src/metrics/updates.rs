//! Counts updates, which are writes of at least one block that was written before, and reads of blocks that never were.
//!
//! A set has all blocks that were written. Over a huge drive each look at it is a cache miss, so a request is answered in one
//! of three ways:
//! 1. by its [place](Places), where nothing or one extent was written so far: most requests to a huge drive. What a place
//!    knows, the set does not: the place hands it over before the set is asked about it;
//! 2. by the set at once, while the set is small;
//! 3. by the set later: nothing in a run waits for the answer, so questions are gathered, and answered a neighbourhood at a
//!    time, those about the same blocks in their order.

mod places;

use super::Amplification;
use places::{Known, Places};
use smrlab_blockmap::{BlockSet, Gather};
use smrlab_units::{Blocks, Lba};
use std::ops::Range;

/// Bytes of a small set: it lies in the processor's caches.
const SMALL: usize = 1 << 18;

/// What the set is asked about some blocks.
#[derive(Clone, Copy)]
enum Question {
    /// How many of them were never written?
    Read,
    /// None: they were written before the run.
    Prefilled,
    /// Is the write an update? It took so many media operations in so many extents, at least one.
    Write { ops: u64, extents: u64 },
}

/// A question that waits. 16 bytes: there are many. Whole words, because a word that was put together from parts is slow to
/// copy.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    lba: u64,
    /// Number of blocks, then operations (16 bits), then extents (16 bits) of a write, or [`READ`], or [`PREFILLED`].
    packed: u64,
}

const READ: u64 = 0;
const PREFILLED: u64 = 0xffff;

impl Waiting {
    /// `None`: a number is too large.
    #[inline(always)]
    fn new(blocks: &Range<u64>, question: Question) -> Option<Self> {
        let (ops, extents) = match question {
            Question::Read => (0, READ),
            Question::Prefilled => (0, PREFILLED),
            Question::Write { ops, extents } if ops.max(extents) < PREFILLED => (ops, extents),
            Question::Write { .. } => return None,
        };
        let length = u32::try_from(blocks.end - blocks.start).ok()?;
        Some(Self { lba: blocks.start, packed: u64::from(length) | ops << 32 | extents << 48 })
    }

    #[inline(always)]
    fn blocks(self) -> Range<u64> {
        self.lba..self.lba + (self.packed & 0xffff_ffff)
    }

    #[inline(always)]
    fn question(self) -> Question {
        match self.packed >> 48 {
            READ => Question::Read,
            PREFILLED => Question::Prefilled,
            extents => Question::Write { ops: self.packed >> 32 & 0xffff, extents },
        }
    }
}

/// Reads of blocks that were never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Reads that touch at least one.
    pub reads: u64,
    /// Such blocks.
    pub blocks: u64,
}

impl Unwritten {
    /// A read of so many.
    #[inline]
    fn add(&mut self, blocks: u64) {
        self.blocks += blocks;
        self.reads += u64::from(blocks > 0);
    }
}

/// What the answers so far add up to.
#[derive(Default)]
struct Counted {
    updates: Amplification,
    unwritten: Unwritten,
}

impl Counted {
    #[inline(always)]
    fn answer(&mut self, blocks: Range<u64>, question: Question, written: &mut BlockSet) {
        let length = blocks.end - blocks.start;
        match question {
            Question::Read => self.unwritten.add(length - written.count_in(blocks)),
            Question::Prefilled => _ = written.insert(blocks),
            Question::Write { ops, extents } => {
                if written.insert(blocks) < length {
                    self.updates.add(ops, extents);
                }
            }
        }
    }
}

/// See the [module](self).
pub struct Updates {
    written: BlockSet,
    places: Places,
    waiting: Gather<Waiting>,
    counted: Counted,
}

impl Updates {
    /// Nothing written yet in a space of `host` blocks. `foretold`: requests are told of beforehand
    /// ([`prefetch`](Self::prefetch)).
    pub fn new(host: Blocks, foretold: bool) -> Self {
        Self {
            written: BlockSet::new(),
            places: if foretold { Places::new(host.0) } else { Places::unknown() },
            waiting: Gather::new(host.0),
            counted: Counted::default(),
        }
    }

    /// Blocks that were written before the run.
    pub fn prefilled(&mut self, lba: Lba, blocks: Blocks) {
        if blocks.0 > 0 {
            // There is mostly more to come at each place.
            self.leave_to_set(lba, blocks);
            self.ask(lba.span(blocks), Question::Prefilled);
        }
    }

    /// The same, close to those before, so that what the set has there lies in the processor's caches.
    pub fn prefilled_close(&mut self, lba: Lba, blocks: Blocks) {
        if blocks.0 > 0 {
            self.leave_to_set(lba, blocks);
            self.written.insert(lba.span(blocks));
        }
    }

    /// What a state says was written.
    pub fn restored(&mut self, ranges: &[Range<u64>]) {
        ranges.iter().for_each(|r| self.prefilled_close(Lba(r.start), Blocks(r.end - r.start)));
    }

    /// A fresh drive takes the place of the one that was written.
    pub fn replaced(&mut self) {
        self.answer_all();
        self.written.clear();
        self.places.clear();
    }

    /// A read or write of `lba` will soon be told of.
    #[inline]
    pub fn prefetch(&self, lba: Lba) {
        self.places.prefetch(lba.0);
    }

    /// A write that took `ops` media operations in `extents` extents.
    #[inline]
    pub fn add(&mut self, lba: Lba, blocks: Blocks, ops: u64, extents: u64) {
        if blocks.0 > 0 && !self.places.note_first(lba.0, blocks.0) {
            self.leave_to_set(lba, blocks);
            self.ask(lba.span(blocks), Question::Write { ops, extents: extents.max(1) });
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
            Known::Untouched => self.counted.unwritten.add(n),
            Known::Touched(touched) => self.counted.unwritten.add(n - touched),
            Known::Set => {
                self.places.all(lba.0, n).for_each(|place| self.hand_over(place));
                self.ask(lba.span(blocks), Question::Read);
            }
        }
    }

    /// So many reads, each of as many blocks behind those of the one before.
    pub fn reads(&mut self, lba: Lba, blocks: Blocks, n: u64) {
        if blocks.0 > 0 && matches!(self.places.known(lba.0, n * blocks.0), Known::Untouched) {
            self.counted.unwritten.blocks += n * blocks.0;
            self.counted.unwritten.reads += n;
            return;
        }
        (0..n).for_each(|i| self.read(Lba(lba.0 + i * blocks.0), blocks));
    }

    /// From now on the set knows what was written in the places of these blocks.
    #[inline]
    fn leave_to_set(&mut self, lba: Lba, blocks: Blocks) {
        for place in self.places.all(lba.0, blocks.0) {
            self.hand_over(place);
            self.places.leave_to_set(place);
        }
    }

    /// The set gets the extent that a place alone knows.
    #[inline]
    fn hand_over(&mut self, place: usize) {
        if let Some(extent) = self.places.take(place) {
            self.ask(extent, Question::Prefilled);
        }
    }

    /// Asks the set, now or later.
    #[inline(always)]
    fn ask(&mut self, blocks: Range<u64>, question: Question) {
        if self.waiting.is_empty() && self.written.bytes() < SMALL {
            return self.counted.answer(blocks, question, &mut self.written);
        }
        let waits = Waiting::new(&blocks, question)
            // What reaches into two neighbourhoods has its turn after all before it and before all behind.
            .filter(|_| !self.waiting.apart(blocks.start, blocks.end - 1));
        let Some(waits) = waits else {
            self.answer_all();
            return self.counted.answer(blocks, question, &mut self.written);
        };
        if self.waiting.push(waits) {
            self.answer_all();
        }
    }

    /// Has the set answer all that waits.
    #[cold]
    #[inline(never)]
    fn answer_all(&mut self) {
        let counted = &mut self.counted;
        self.waiting.drain(
            &mut self.written,
            |w| w.lba,
            |written, w| counted.answer(w.blocks(), w.question(), written),
        );
    }

    /// What was written so far, before the run or in it, as ranges of LBAs, unless there are more than `most`.
    pub fn written_within(&mut self, most: usize) -> Option<Vec<Range<u64>>> {
        (0..self.places.len()).for_each(|place| self.hand_over(place));
        self.answer_all();
        let ranges: Vec<_> = self.written.runs().take(most.saturating_add(1)).collect();
        (ranges.len() <= most).then_some(ranges)
    }

    /// All updates so far, and what they took.
    pub fn total(&mut self) -> Amplification {
        self.answer_all();
        self.counted.updates
    }

    /// All reads so far of blocks that were never written.
    pub fn unwritten(&mut self) -> Unwritten {
        self.answer_all();
        self.counted.unwritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    #[test]
    fn ranges_are_told_unless_they_are_too_many() {
        let mut updates = Updates::new(Blocks(1000), false);
        [5, 20, 40].into_iter().for_each(|lba| updates.prefilled(Lba(lba), Blocks(2)));
        let all = vec![5..7, 20..22, 40..42];
        assert_eq!((updates.written_within(3), updates.written_within(2)), (Some(all), None));
    }

    #[test]
    fn nothing_is_written_on_a_fresh_drive() {
        for foretold in [false, true] {
            let mut updates = Updates::new(Blocks(1 << 20), foretold);
            updates.prefilled(Lba(8), Blocks(8));
            let write = |updates: &mut Updates| updates.add(Lba(10), Blocks(1), 1, 1);
            (0..2).for_each(|_| write(&mut updates));
            updates.add(Lba(1000), Blocks(1), 1, 1);
            updates.replaced();
            updates.read(Lba(1000), Blocks(1));
            (0..2).for_each(|_| write(&mut updates));
            let written = updates.written_within(9);
            assert_eq!((updates.total().requests, updates.unwritten().blocks), (3, 1));
            let blocks: Vec<u64> = written.unwrap().into_iter().flatten().collect();
            assert_eq!(blocks, [10], "foretold: {foretold}");
        }
    }

    #[test]
    fn the_order_of_writes_to_a_place_is_kept() {
        // From one neighbourhood to many small ones.
        [1 << 12, 1 << 17, 1 << 24, 1 << 33].into_iter().for_each(order_is_kept);
    }

    fn order_is_kept(host: u64) {
        let mut updates = Updates::new(Blocks(host), host > 1 << 20);
        let mut plain = std::collections::HashSet::new();
        updates.prefilled(Lba(0), Blocks(1000));
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
        (0..1 << 17).for_each(|i| updates.prefilled(Lba(i << 13 | 1 << 11), Blocks(8)));
        assert!(updates.written.bytes() >= SMALL);
        let borders = (1u64 << 20..1 << 30).step_by(1 << 20);
        for at in borders.clone() {
            updates.add(Lba(at), Blocks(4), 1, 1);
            updates.add(Lba(at - 4), Blocks(8), 10, 1);
        }
        let n = borders.count() as u64;
        assert_eq!((updates.total().requests, updates.total().ops), (n, 10 * n));
    }

    /// Beside a plain list of blocks, where so much is written that requests are gathered: some of them are very long, and now and then the drive
    /// is a fresh one.
    #[test]
    fn short_and_long_requests_are_counted_alike() {
        let host = 1u64 << 22;
        for foretold in [false, true] {
            let (mut updates, mut rng) = (Updates::new(Blocks(host), foretold), Rng::new(3));
            let mut plain = vec![false; host as usize];
            let (mut total, mut unwritten) = (Amplification::default(), Unwritten::default());
            for drives in 0..3 {
                if drives > 0 {
                    updates.replaced();
                    plain.fill(false);
                }
                for at in (0..host).step_by(16) {
                    updates.prefilled(Lba(at), Blocks(1));
                    plain[at as usize] = true;
                }
                assert!(updates.written.bytes() >= SMALL);
                for _ in 0..2000 {
                    let longest = if rng.one_in(40) { 60_000 } else { 30 };
                    let (n, ops, extents) = (1 + rng.below(longest), rng.below(9), rng.below(5));
                    let at = rng.below(host - n);
                    let blocks = &mut plain[at as usize..(at + n) as usize];
                    let known = blocks.iter().filter(|known| **known).count() as u64;
                    if rng.one_in(2) {
                        updates.read(Lba(at), Blocks(n));
                        unwritten.add(n - known);
                    } else {
                        updates.add(Lba(at), Blocks(n), ops, extents);
                        blocks.fill(true);
                        if known > 0 {
                            total.add(ops, extents.max(1));
                        }
                    }
                }
            }
            let got = updates.total();
            let sums = |a: &Amplification| (a.requests, a.ops, a.extents);
            assert_eq!((sums(&got), updates.unwritten()), (sums(&total), unwritten), "{foretold}");
        }
    }

    #[test]
    fn a_write_of_very_many_operations_counts_them_all() {
        let mut updates = Updates::new(Blocks(1 << 30), true);
        updates.prefilled(Lba(0), Blocks(8));
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
        updates.prefilled(Lba(0), Blocks(100));
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
