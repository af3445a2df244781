//! The segments of a buffer: runs of consecutive blocks, of which the one that was used longest ago makes room for another.
//!
//! A command looks at all of them, and which of them has its blocks cannot be predicted. So a look is arithmetic over all of them,
//! with one branch at its end that is nearly never taken.

use std::ops::Range;

/// Consecutive blocks in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub start: u64,
    blocks: u64,
}

impl Segment {
    /// Without blocks, and far from all.
    const EMPTY: Self = Self { start: 1 << 63, blocks: 0 };

    /// The last of the blocks up to `end` that `room` suffices for, from `start` on.
    #[inline(always)]
    fn last_of(start: u64, end: u64, room: u64) -> Self {
        let start = start.max(end.saturating_sub(room));
        Self { start, blocks: end - start }
    }

    /// One past its last block.
    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        self.start + self.blocks
    }

    #[inline(always)]
    fn has(&self, lba: u64) -> bool {
        lba.wrapping_sub(self.start) < self.blocks
    }

    /// Whether it reaches into the blocks from `lba` up to `end`, of which there is one at least.
    #[inline(always)]
    fn meets(&self, lba: u64, end: u64) -> bool {
        (end - 1).wrapping_sub(self.start) < self.blocks + (end - 1 - lba)
    }

    /// Whether it has all of them.
    fn has_all(&self, lba: u64, end: u64) -> bool {
        self.start <= lba && end <= self.end()
    }
}

/// So many segments are looked at in one go: there are that many, or twice or three times as many with some that stay empty.
const AT_ONCE: usize = 4;

/// How many of them `is`; without a branch.
#[inline(always)]
fn count(all: &[Segment], is: impl Fn(&Segment) -> bool) -> usize {
    let one = |s| usize::from(is(s));
    let mut n = 0;
    for [a, b, c, d] in all.as_chunks::<AT_ONCE>().0 {
        n += one(a) + one(b) + one(c) + one(d);
    }
    n
}

/// Below the commands in [`Segments::used`]: the segment's number.
const NUMBER_BITS: u32 = 16;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Segments {
    /// Blocks that one has room for.
    room: u64,
    held: Vec<Segment>,
    /// When each was used last, counted in commands from 1 on (0: it is empty), and its number: the least of them is the first of
    /// those that go. What only fills up [`AT_ONCE`] is never the least.
    used: Vec<u64>,
    /// The one that was used last.
    last: usize,
    /// Blocks of which it is known that no segment before `last` has any.
    alone: Range<u64>,
    /// Where the last read ended of which a segment had all blocks.
    ended: u64,
    commands: u64,
}

impl Segments {
    /// So many empty ones, at most 65 536, with room for `room` blocks each.
    pub(super) fn new(number: u32, room: u32) -> Self {
        let rounded = (number as usize).next_multiple_of(AT_ONCE);
        let mut used: Vec<u64> = (0..u64::from(number)).collect();
        used.resize(rounded, u64::MAX);
        Self {
            room: u64::from(room),
            held: vec![Segment::EMPTY; rounded],
            used,
            last: 0,
            alone: 0..0,
            ended: u64::MAX,
            commands: 0,
        }
    }

    /// Another command: what it uses was used later than what those before it did.
    pub(super) fn next_command(&mut self) {
        self.commands += 1;
    }

    /// Segment `i`.
    #[inline]
    pub(super) fn get(&self, i: usize) -> Segment {
        self.held[i]
    }

    /// The first that holds a block.
    #[inline(always)]
    pub(super) fn find(&self, lba: u64) -> Option<usize> {
        // Reads in order have it in the one that was used last: then only those before that are looked at.
        if self.held.get(self.last).is_some_and(|s| s.has(lba)) {
            return Some(self.held[..self.last].iter().position(|s| s.has(lba)).unwrap_or(self.last));
        }
        if count(&self.held, |s| s.has(lba)) == 0 {
            return None;
        }
        self.held.iter().position(|s| s.has(lba))
    }

    /// The one that was used last, where it holds all of the blocks from `lba` up to `end` and is known to be the first that does.
    #[inline]
    pub(super) fn find_again(&self, lba: u64, end: u64) -> Option<usize> {
        let s = self.held.get(self.last)?;
        let there = (s.start <= lba) & (end <= s.end());
        (there & (self.alone.start <= lba) & (end <= self.alone.end)).then_some(self.last)
    }

    /// Up to where [`find_again`](Self::find_again) finds blocks behind `lba`; `None`: nowhere.
    #[inline]
    pub(super) fn again_up_to(&self, lba: u64) -> Option<(usize, u64)> {
        let i = self.find_again(lba, lba)?;
        Some((i, self.held[i].end().min(self.alone.end)))
    }

    /// The present command, for the blocks from `lba` up to `end`, was answered from the segment that was used last, which is the first
    /// that has block `lba`: notes how far it stays the first.
    #[inline(always)]
    pub(super) fn answered_from(&mut self, lba: u64, end: u64) {
        self.ended = end;
        if !self.alone.contains(&lba) {
            let behind = self.held[..self.last].iter().filter(|s| s.start > lba).map(|s| s.start);
            self.alone = lba..behind.min().unwrap_or(u64::MAX);
        }
    }

    /// Where the last read ended of which a segment had all blocks.
    #[inline(always)]
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// Whether one of them holds all of the blocks from `lba` up to `end`.
    pub(super) fn hold(&self, lba: u64, end: u64) -> bool {
        self.held.iter().any(|s| s.has_all(lba, end))
    }

    /// The present command uses segment `i`.
    #[inline]
    pub(super) fn touch(&mut self, i: usize) {
        self.used[i] = self.commands << NUMBER_BITS | i as u64;
        if i != self.last {
            (self.last, self.alone) = (i, 0..0);
        }
    }

    /// Puts blocks, the last of them where there are too many, into an empty segment or the one that was used longest ago, but not into
    /// the one that is `taken`; `None`: there is no other.
    #[inline]
    pub(super) fn keep(&mut self, start: u64, end: u64, taken: Option<usize>) -> Option<usize> {
        let i = self.oldest(taken)?;
        self.held[i] = Segment::last_of(start, end, self.room);
        self.alone = 0..0;
        self.touch(i);
        Some(i)
    }

    /// Blocks up to `end` follow what segment `i` holds; its first ones make room for them.
    #[inline]
    pub(super) fn extend(&mut self, i: usize, end: u64) {
        let s = &mut self.held[i];
        *s = Segment::last_of(s.start, end, self.room);
        self.alone = 0..0;
    }

    /// Empties the segments that reach into the blocks from `lba` up to `end`; answers whether there were any.
    #[inline(always)]
    pub(super) fn forget(&mut self, lba: u64, end: u64) -> bool {
        let any = count(&self.held, |s| s.meets(lba, end)) > 0;
        if any {
            for (i, s) in self.held.iter_mut().enumerate().filter(|(_, s)| s.meets(lba, end)) {
                (*s, self.used[i]) = (Segment::EMPTY, i as u64);
            }
        }
        any
    }

    /// Whether segment `i` holds nothing.
    pub(super) fn is_empty(&self, i: usize) -> bool {
        self.used[i] >> NUMBER_BITS == 0
    }

    /// The first empty one, or the one that was used longest ago (of several the first), but not the one that is `taken`.
    #[inline]
    fn oldest(&self, taken: Option<usize>) -> Option<usize> {
        let number = |used: u64| (used & ((1 << NUMBER_BITS) - 1)) as usize;
        let mut least = u64::MAX;
        for [a, b, c, d] in self.used.as_chunks::<AT_ONCE>().0 {
            least = least.min(*a).min(*b).min(*c).min(*d);
        }
        if least < u64::MAX && Some(number(least)) != taken {
            return Some(number(least));
        }
        // What is being read into was used a short while ago: there are few segments.
        let others = self.used.iter().copied().filter(|used| Some(number(*used)) != taken);
        others.min().filter(|least| *least < u64::MAX).map(number)
    }

    /// All that hold something.
    #[cfg(test)]
    pub(super) fn filled(&self) -> impl Iterator<Item = Segment> {
        (0..self.held.len()).filter(|i| !self.is_empty(*i)).map(|i| self.held[i]).filter(|s| s.blocks > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of the blocks from 10 up to 20, last used at these commands.
    fn used(at: &[u64]) -> Segments {
        let mut s = Segments::new(at.len() as u32, 100);
        for (i, &command) in at.iter().enumerate().filter(|(_, command)| **command > 0) {
            s.commands = command;
            s.held[i] = Segment { start: 10, blocks: 10 };
            s.touch(i);
        }
        s
    }

    #[test]
    fn the_oldest_goes_but_never_the_one_being_read_into() {
        let of = |all: &[u64], taken| used(all).oldest(taken);
        assert_eq!(
            [of(&[3, 2, 5], None), of(&[3, 2, 5], Some(1)), of(&[3, 2, 5], Some(0))],
            [1, 0, 1].map(Some)
        );
        // Of equals the first; empty ones before all.
        assert_eq!(
            [of(&[4, 2, 2], None), of(&[4, 0, 0], None), of(&[4, 0, 0], Some(1))],
            [1, 1, 2].map(Some)
        );
        assert_eq!([of(&[7], Some(0)), of(&[], None)], [None, None]);
    }

    #[test]
    fn a_segment_has_its_blocks_and_no_others() {
        let s = used(&[1]);
        assert_eq!([9, 10, 19, 20].map(|lba| s.find(lba)), [None, Some(0), Some(0), None]);
        assert_eq!([(9, 12), (10, 20), (12, 21)].map(|(a, b)| s.hold(a, b)), [false, true, false]);
        let forgets = |(lba, end)| {
            let mut s = used(&[1]);
            (s.forget(lba, end), s.is_empty(0))
        };
        assert_eq!(
            [(5, 10), (5, 11), (19, 25), (20, 25)].map(forgets),
            [(false, false), (true, true), (true, true), (false, false)]
        );
        let mut empty = Segments::new(2, 100);
        assert!(empty.find(0).is_none() && !empty.hold(0, 1) && !empty.forget(0, 5));
        assert!(!empty.forget(0, 1) && !empty.forget(1 << 40, (1 << 40) + 400));
        // The first of several that have it, though another was used later.
        assert_eq!(used(&[0, 2, 3]).find(12), Some(1));
    }

    #[test]
    fn a_segment_keeps_the_last_blocks_that_it_has_room_for() {
        let mut s = Segments::new(2, 8);
        s.next_command();
        let span = |s: &Segments, i| (s.get(i).start, s.get(i).end());
        assert_eq!((s.keep(100, 120, None), span(&s, 0)), (Some(0), (112, 120)));
        s.extend(0, 124);
        assert_eq!(span(&s, 0), (116, 124));
        assert_eq!((s.keep(0, 4, Some(0)), s.keep(5, 6, None)), (Some(1), Some(0)));
        assert_eq!([0, 1].map(|i| span(&s, i)), [(5, 6), (0, 4)]);
    }

    /// It is found without a look at the others as long as none before it can have the block, and what is known of that goes with the
    /// segments.
    #[test]
    fn a_segment_that_is_read_in_order_is_found_again() {
        let mut s = Segments::new(3, 100);
        let mut put = |start, end| {
            s.next_command();
            s.keep(start, end, None);
        };
        [(130, 140), (100, 150), (300, 320)].into_iter().for_each(|(start, end)| put(start, end));
        s.touch(1);
        assert_eq!(s.find_again(100, 108), None, "nothing is known of those before");
        s.answered_from(100, 108);
        let found =
            |s: &Segments| [(100, 130), (124, 131), (99, 108), (140, 148)].map(|(a, b)| s.find_again(a, b));
        assert_eq!(found(&s), [Some(1), None, None, None], "segment 0 has block 130");
        s.answered_from(140, 148);
        assert_eq!(found(&s), [None, None, None, Some(1)]);
        assert_eq!(s.find_again(144, 151), None, "it ends at 150");
        // Another one was used meanwhile; the first one grows.
        s.touch(2);
        s.answered_from(300, 308);
        assert_eq!((s.find_again(300, 308), s.find_again(140, 148)), (Some(2), None));
        s.touch(1);
        s.answered_from(140, 148);
        s.extend(0, 145);
        assert_eq!((s.find(140), s.find_again(140, 148)), (Some(0), None));
    }

    /// More segments than are looked at in one go, one of them in the second lot.
    #[test]
    fn all_segments_are_looked_at() {
        for number in 1..=9 {
            let mut s = Segments::new(number, 100);
            for i in 0..u64::from(number) {
                s.next_command();
                assert_eq!(s.keep(1000 * i, 1000 * i + 8, None), Some(i as usize), "of {number}");
            }
            let last = u64::from(number) - 1;
            assert_eq!(s.find(1000 * last + 7), Some(last as usize));
            assert!(s.forget(1000 * last + 7, 1000 * last + 9) && s.is_empty(last as usize));
            assert_eq!((s.oldest(None), s.filled().count()), (Some(last as usize), last as usize));
        }
    }
}
