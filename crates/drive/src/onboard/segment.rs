//! The segments of a buffer. A command looks at all of them, and where they lie cannot be predicted: each look is one branch that
//! is nearly never taken, or none.

use std::hint::select_unpredictable;

/// Consecutive blocks in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    pub start: u64,
    pub end: u64,
    /// When it was used last, counted in commands; 0: empty.
    pub used: u64,
}

impl Segment {
    /// Whether it holds a block.
    #[inline(always)]
    pub(super) fn has(&self, lba: u64) -> bool {
        (self.used > 0) & (lba.wrapping_sub(self.start) < self.end - self.start)
    }

    /// Whether it holds all blocks up to `end`.
    #[inline(always)]
    pub(super) fn has_all(&self, lba: u64, end: u64) -> bool {
        (self.used > 0) & (self.start <= lba) & (end <= self.end)
    }

    /// Whether it reaches into the blocks up to `end`.
    #[inline(always)]
    pub(super) fn meets(&self, lba: u64, end: u64) -> bool {
        (self.start < end) & (lba < self.end)
    }
}

/// The first that is empty, or the one that was used longest ago, but not the one that is `taken`; `None`: there is no other.
#[inline]
pub(super) fn oldest(segments: &[Segment], taken: Option<usize>) -> Option<usize> {
    let taken = taken.unwrap_or(usize::MAX);
    let (mut found, mut least) = (usize::MAX, u64::MAX);
    for (i, s) in segments.iter().enumerate() {
        let older = (s.used < least) & (i != taken);
        (found, least) = (select_unpredictable(older, i, found), select_unpredictable(older, s.used, least));
    }
    (found < segments.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(all: &[u64]) -> Vec<Segment> {
        all.iter().map(|&used| Segment { start: 10, end: 20, used }).collect()
    }

    #[test]
    fn the_oldest_goes_but_never_the_one_being_read_into() {
        let of = |all: &[u64], taken| oldest(&used(all), taken);
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
        let s = used(&[1])[0];
        assert_eq!([9, 10, 19, 20].map(|lba| s.has(lba)), [false, true, true, false]);
        assert_eq!([(9, 12), (10, 20), (12, 21)].map(|(a, b)| s.has_all(a, b)), [false, true, false]);
        assert_eq!(
            [(5, 10), (5, 11), (19, 25), (20, 25)].map(|(a, b)| s.meets(a, b)),
            [false, true, true, false]
        );
        let empty = Segment::default();
        assert!(!empty.has(0) && !empty.has_all(0, 0) && !empty.meets(0, 5));
    }
}
