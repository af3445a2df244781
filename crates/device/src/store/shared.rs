//! Which block of memory holds which block of a store, where several blocks of the store can be on one of memory.

use smrlab_blockmap::prefetch;
use smrlab_units::BLOCK_BYTES;
use std::ops::Range;

/// See the [module](self). Positions and lengths are in bytes, of whole blocks.
#[derive(Default)]
pub(super) struct Shared {
    /// How many blocks there are, of the store as of memory; 0 where none may be shared.
    count: u64,
    /// By block of the store: the number of its block of memory, exclusive or its own: nothing takes memory where nothing
    /// was moved. Empty as long as every block lies where it is.
    moved: Vec<u32>,
    /// By block of memory: how many blocks of the store it has beside the first.
    others: Vec<u32>,
    /// Blocks of memory that no block of the store has.
    free: Vec<u32>,
    /// Empty; kept for its room.
    moves: Vec<Move>,
}

/// Blocks of the store that are to lie where others do; each one run in memory, before and after.
struct Move {
    target: usize,
    place: usize,
    before: usize,
    n: usize,
}

fn blocks(offset: u64, len: u64) -> Range<usize> {
    (offset / BLOCK_BYTES) as usize..((offset + len) / BLOCK_BYTES) as usize
}

impl Shared {
    /// `count` blocks that may be shared, if there are not too many.
    pub(super) fn new(count: u64) -> Self {
        Self { count: u32::try_from(count).map_or(0, u64::from), ..Self::default() }
    }

    #[inline]
    fn place(&self, block: usize) -> u32 {
        self.moved[block] ^ block as u32
    }

    /// Where in memory a byte of the store is, and how many of `len` lie there one behind the other.
    #[inline]
    pub(super) fn run(&self, offset: u64, len: u64) -> (u64, u64) {
        if self.moved.is_empty() {
            return (offset, len);
        }
        let range = blocks(offset, len);
        let first = self.place(range.start);
        let along = (first..).zip(range).take_while(|&(place, block)| self.place(block) == place).count();
        (u64::from(first) * BLOCK_BYTES, along as u64 * BLOCK_BYTES)
    }

    /// Whether any of these bytes lies on a block that others have too.
    #[inline]
    pub(super) fn shares(&self, offset: u64, len: u64) -> bool {
        !self.moved.is_empty() && blocks(offset, len).any(|b| self.others[self.place(b) as usize] > 0)
    }

    /// Has these bytes, all of which are about to be overwritten, lie on blocks of their own.
    pub(super) fn own(&mut self, offset: u64, len: u64) {
        if self.moved.is_empty() {
            return;
        }
        for block in blocks(offset, len) {
            let others = &mut self.others[(self.moved[block] ^ block as u32) as usize];
            if *others > 0 {
                *others -= 1;
                let own = self.free.pop().expect("as many blocks of memory as of the store");
                self.moved[block] = own ^ block as u32;
            }
        }
    }

    /// Has `to..to + len` lie where `from..from + len` did, which may overlap; `false`: nothing may be shared.
    pub(super) fn share(&mut self, from: u64, to: u64, len: u64) -> bool {
        if self.count == 0 {
            return false;
        }
        if self.moved.is_empty() {
            self.moved = vec![0; self.count as usize];
            self.others = vec![0; self.count as usize];
        }
        if from.abs_diff(to) >= len {
            self.share_apart(blocks(from, len), blocks(to, len));
            return true;
        }
        let freed = self.free.len();
        let pairs = blocks(from, len).zip(blocks(to, len));
        if to < from {
            pairs.for_each(|(from, to)| self.share_one(from, to));
            // Who takes free blocks later finds them in order.
            self.free[freed..].reverse();
        } else {
            pairs.rev().for_each(|(from, to)| self.share_one(from, to));
        }
        true
    }

    /// How many blocks from `first` on lie in memory one behind the other, as the first does, `most` at most.
    #[inline]
    fn along(&self, first: usize, most: usize) -> usize {
        let place = self.place(first);
        let lies = |i: &usize| self.place(first + i) == place + *i as u32;
        (1..most).take_while(lies).count() + usize::from(most > 0)
    }

    /// [`share`](Self::share) of ranges that do not overlap, run by run: a layer that rewrites regions shares hundreds of
    /// blocks for each of the host's, so that a block must cost next to nothing. What counts is how long memory takes to
    /// answer: all runs are found, and their counts asked for, before the first is changed.
    fn share_apart(&mut self, from: Range<usize>, to: Range<usize>) {
        let mut moves = std::mem::take(&mut self.moves);
        let (mut first, mut target) = (from.start, to.start);
        while first < from.end {
            let n = self.along(target, self.along(first, from.end - first));
            let (place, before) = (self.place(first) as usize, self.place(target) as usize);
            // What comes back to where it was moved from lies there already.
            if place != before {
                for near in [place, place + n - 1, before, before + n - 1] {
                    prefetch(&self.others, near);
                }
                moves.push(Move { target, place, before, n });
            }
            (first, target) = (first + n, target + n);
        }
        // First what is taken, then what is freed: a block may be both.
        let freed = self.free.len();
        for Move { target, place, before, n } in moves.drain(..) {
            for others in &mut self.others[place..][..n] {
                *others += 1;
            }
            for (i, moved) in self.moved[target..][..n].iter_mut().enumerate() {
                *moved = (place + i) as u32 ^ (target + i) as u32;
            }
            for (i, others) in self.others[before..][..n].iter_mut().enumerate() {
                match others {
                    0 => self.free.push((before + i) as u32),
                    others => *others -= 1,
                }
            }
        }
        self.moves = moves;
        // Who takes free blocks later finds them in order.
        self.free[freed..].reverse();
    }

    #[inline]
    fn share_one(&mut self, from: usize, to: usize) {
        let (place, before) = (self.place(from), self.place(to));
        self.moved[to] = place ^ to as u32;
        self.others[place as usize] += 1;
        match &mut self.others[before as usize] {
            0 => self.free.push(before),
            others => *others -= 1,
        }
    }
}
