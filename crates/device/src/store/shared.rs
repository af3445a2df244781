//! Which block of memory holds which block of a store, where several blocks of the store can be on one of memory.

use super::free::Free;
use super::wide::Wide;
use smrlab_blockmap::prefetch;
use smrlab_units::BLOCK_BYTES;
use std::collections::HashMap;
use std::ops::Range;

/// A count that is written down elsewhere.
const MANY: u8 = u8::MAX;

/// See the [module](self). Positions and lengths are in bytes, of whole blocks.
#[derive(Default)]
pub(super) struct Shared {
    /// How many blocks there are, of the store as of memory; 0 where none may be shared.
    count: u64,
    /// By block of the store: by how much its block of memory lies behind it (wrapping), so that nothing takes memory where
    /// nothing was moved, and what lies in a row has one number. Empty as long as every block lies where it is.
    moved: Wide<u32>,
    /// By block of memory: how many blocks of the store it has beside the first. Few have any, and next to none many.
    others: Wide<u8>,
    /// How many there are beyond [`MANY`], where there are so many.
    many: HashMap<usize, u32>,
    /// Blocks of memory that no block of the store has.
    free: Free,
    /// Empty; kept for its room.
    runs: Vec<Range<usize>>,
}

fn blocks(offset: u64, len: u64) -> Range<usize> {
    (offset / BLOCK_BYTES) as usize..((offset + len) / BLOCK_BYTES) as usize
}

impl Shared {
    /// `count` blocks that may be shared, if there are not too many.
    pub(super) fn new(count: u64) -> Self {
        let count = u32::try_from(count).map_or(0, u64::from);
        Self { count, free: Free::new(count as usize), ..Self::default() }
    }

    fn place(&self, block: usize) -> usize {
        self.moved[block].wrapping_add(block as u32) as usize
    }

    /// Has blocks of the store lie on a run of memory from `place` on.
    #[inline]
    fn lay(&mut self, blocks: Range<usize>, place: usize) {
        let by = (place as u32).wrapping_sub(blocks.start as u32);
        self.moved[blocks].fill(by);
    }

    /// Where in memory a byte of the store is, and how many of `len` lie there one behind the other.
    #[inline]
    pub(super) fn run(&self, offset: u64, len: u64) -> (u64, u64) {
        if self.moved.is_empty() {
            return (offset, len);
        }
        let range = blocks(offset, len);
        let n = self.along(range.start, range.len());
        (self.place(range.start) as u64 * BLOCK_BYTES, n as u64 * BLOCK_BYTES)
    }

    /// Whether any of these bytes lies on a block that others have too.
    #[inline]
    pub(super) fn shares(&self, offset: u64, len: u64) -> bool {
        if self.moved.is_empty() {
            return false;
        }
        let mut left = blocks(offset, len);
        std::iter::from_fn(|| self.next(&mut left)).any(|(_, places)| self.shared_of(places) > 0)
    }

    /// Has these bytes, all of which are about to be overwritten, lie on blocks of their own, which follow each other as far as there are
    /// such.
    pub(super) fn own(&mut self, offset: u64, len: u64) {
        if self.moved.is_empty() {
            return;
        }
        let mut range = blocks(offset, len);
        let mut left = range.clone();
        while let Some((_, places)) = self.next(&mut left) {
            self.part(places);
        }
        while !range.is_empty() {
            let places = self.free.take(range.len());
            self.lay(range.start..range.start + places.len(), places.start);
            range.start += places.len();
        }
    }

    /// A run of memory is about to be written.
    #[inline]
    pub(super) fn touch(&self, place: u64, len: u64) {
        let places = blocks(place, len);
        self.free.touch(places.start, places.len());
    }

    /// How many of these blocks of memory have several blocks of the store.
    #[inline]
    fn shared_of(&self, places: Range<usize>) -> usize {
        self.others[places].iter().map(|n| usize::from(*n > 0)).sum()
    }

    /// The next run of `left`, which it is taken from: its first block, and where in memory all lie.
    #[inline]
    fn next(&self, left: &mut Range<usize>) -> Option<(usize, Range<usize>)> {
        (left.start < left.end).then(|| {
            let (first, place) = (left.start, self.place(left.start));
            let n = self.along(first, left.end - first);
            left.start += n;
            (first, place..place + n)
        })
    }

    /// Has `to..to + len` lie where `from..from + len` did, which may overlap; `false`: nothing may be shared.
    pub(super) fn share(&mut self, from: u64, to: u64, len: u64) -> bool {
        if self.count == 0 {
            return false;
        }
        if self.moved.is_empty() {
            let count = self.count as usize;
            let (Some(moved), Some(others)) = (Wide::new(count), Wide::new(count)) else { return false };
            if !self.free.open(count) {
                return false;
            }
            (self.moved, self.others) = (moved, others);
        }
        if from.abs_diff(to) >= len {
            self.share_apart(blocks(from, len), blocks(to, len));
            return true;
        }
        let pairs = blocks(from, len).zip(blocks(to, len));
        if to < from {
            pairs.for_each(|(from, to)| self.share_one(from, to));
        } else {
            pairs.rev().for_each(|(from, to)| self.share_one(from, to));
        }
        true
    }

    /// How many blocks from `first` on lie in memory one behind the other, as the first does, `most` at most.
    #[inline]
    fn along(&self, first: usize, most: usize) -> usize {
        // Numbers that are compared at once.
        const STEP: usize = 16;
        let (moved, by) = (&self.moved[first..][..most], self.moved[first]);
        let same = |step: &&[u32]| step.iter().fold(true, |same, other| same & (*other == by));
        let whole = moved.chunks_exact(STEP).take_while(same).count() * STEP;
        whole + moved[whole..].iter().position(|other| *other != by).unwrap_or(most - whole)
    }

    /// [`share`](Self::share) of ranges that do not overlap, run by run: a layer that rewrites regions shares hundreds of
    /// blocks for each of the host's, so that a block must cost next to nothing. What counts is how long memory takes to
    /// answer: all runs are found, and their counts asked for, before the first is changed.
    fn share_apart(&mut self, from: Range<usize>, to: Range<usize>) {
        let mut runs = std::mem::take(&mut self.runs);
        self.runs_of(from.clone(), &mut runs);
        let taken = runs.len();
        self.runs_of(to.clone(), &mut runs);
        // In any order: of a block that is both, another one is left in between.
        runs[..taken].iter().for_each(|places| self.join(places.clone()));
        self.lay_as(from, to);
        runs[taken..].iter().for_each(|places| self.part(places.clone()));
        runs.clear();
        self.runs = runs;
    }

    /// Adds the runs of memory where these blocks lie.
    fn runs_of(&self, mut left: Range<usize>, runs: &mut Vec<Range<usize>>) {
        while let Some((_, places)) = self.next(&mut left) {
            prefetch(&self.others, places.start);
            runs.push(places);
        }
    }

    /// Has the blocks `to` lie where as many others lie, of which they have none.
    fn lay_as(&mut self, from: Range<usize>, to: Range<usize>) {
        let by = (from.start as u32).wrapping_sub(to.start as u32);
        let (source, target) = if from.start < to.start {
            let (low, high) = self.moved.split_at_mut(to.start);
            (&low[from], &mut high[..to.len()])
        } else {
            let (low, high) = self.moved.split_at_mut(from.start);
            (&high[..from.len()], &mut low[to])
        };
        for (target, source) in target.iter_mut().zip(source) {
            *target = source.wrapping_add(by);
        }
    }

    #[inline]
    fn share_one(&mut self, from: usize, to: usize) {
        let (place, before) = (self.place(from), self.place(to));
        self.lay(to..to + 1, place);
        self.join(place..place + 1);
        self.leave(before);
    }

    /// These blocks of memory have another block of the store each.
    #[inline]
    fn join(&mut self, places: Range<usize>) {
        let others = &mut self.others[places.clone()];
        if others.iter().fold(true, |few, n| few & (*n < MANY - 1)) {
            return others.iter_mut().for_each(|n| *n += 1);
        }
        for place in places {
            match &mut self.others[place] {
                &mut MANY => *self.many.entry(place).or_default() += 1,
                n => *n += 1,
            }
        }
    }

    /// These blocks of memory have one block of the store less each.
    #[inline]
    fn part(&mut self, places: Range<usize>) {
        let others = &mut self.others[places.clone()];
        if others.iter().fold(true, |none, n| none & (*n == 0)) {
            return self.free.give(places);
        }
        if others.iter().fold(true, |few, n| few & (1..MANY).contains(n)) {
            return others.iter_mut().for_each(|n| *n -= 1);
        }
        let mut left = places;
        while !left.is_empty() {
            let others = &self.others[left.clone()];
            let n = others.iter().position(|n| *n > 0).unwrap_or(others.len());
            if n > 0 {
                self.free.give(left.start..left.start + n);
            } else {
                self.leave(left.start);
            }
            left.start += n.max(1);
        }
    }

    /// The same of one; without any left it is free.
    #[inline]
    fn leave(&mut self, place: usize) {
        match &mut self.others[place] {
            0 => self.free.give(place..place + 1),
            &mut MANY if self.many.get(&place).is_some_and(|more| *more > 0) => {
                *self.many.entry(place).or_default() -= 1;
            }
            n => *n -= 1,
        }
    }
}
