//! Slipped positions: numbers left out of a dense numbering.

use smrlab_units::reciprocal::RunIndex;
use std::ops::Range;

/// Ascending runs of positions that are skipped. "Raw" numbers count them, "dense" numbers do not.
#[derive(Clone, Debug)]
pub(crate) struct Slips {
    /// Raw numbers; the runs do not touch.
    runs: Vec<Range<u64>>,
    /// Where the dense numbers behind each run begin; first those before all, from 0, even if there are none.
    pieces: RunIndex,
    /// For each of these pieces how many positions are skipped before it.
    skipped: Vec<u64>,
}

impl Default for Slips {
    fn default() -> Self {
        Self::of_runs(Vec::new())
    }
}

impl Slips {
    pub(crate) fn new(raw: Vec<u64>) -> Self {
        Self::of_runs(raw.into_iter().map(|r| r..r + 1).collect())
    }

    /// Runs in any order; they may overlap.
    pub(crate) fn of_runs(mut given: Vec<Range<u64>>) -> Self {
        given.retain(|r| r.start < r.end);
        given.sort_unstable_by_key(|r| r.start);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for r in given {
            match runs.last_mut() {
                Some(last) if r.start <= last.end => last.end = last.end.max(r.end),
                _ => runs.push(r),
            }
        }
        let (mut starts, mut skipped) = (vec![0], vec![0]);
        for r in &runs {
            let before = skipped[skipped.len() - 1];
            starts.push(r.start - before);
            skipped.push(before + (r.end - r.start));
        }
        let last = starts[starts.len() - 1];
        Self { runs, pieces: RunIndex::new(starts, last), skipped }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many positions are skipped.
    pub(crate) fn len(&self) -> u64 {
        self.skipped[self.skipped.len() - 1]
    }

    /// The skipped runs that reach into a range, ascending.
    pub(crate) fn within(&self, raw: Range<u64>) -> &[Range<u64>] {
        let first = self.runs.partition_point(|r| r.end <= raw.start);
        let end = self.runs.partition_point(|r| r.start < raw.end);
        &self.runs[first..end.max(first)]
    }

    /// The dense numbers around one, with none skipped among them, and how many are skipped before them.
    pub(crate) fn around(&self, dense: u64) -> (Range<u64>, u64) {
        let i = self.pieces.find(dense);
        let end = if i < self.runs.len() { self.pieces.start(i + 1) } else { u64::MAX };
        (self.pieces.start(i)..end, self.skipped[i])
    }

    /// The raw number of a dense one.
    #[inline]
    pub(crate) fn to_raw(&self, dense: u64) -> u64 {
        if self.is_empty() {
            return dense;
        }
        dense + self.skipped[self.pieces.find(dense)]
    }

    /// How many positions before `raw` are not skipped: the dense number of `raw`, or of the next one where it is.
    #[inline]
    pub(crate) fn to_dense(&self, raw: u64) -> u64 {
        if self.is_empty() {
            return raw;
        }
        match self.runs.partition_point(|r| r.start < raw) {
            0 => raw,
            n => raw.max(self.runs[n - 1].end) - self.skipped[n],
        }
    }

    pub(crate) fn contains(&self, raw: u64) -> bool {
        self.runs.get(self.runs.partition_point(|r| r.end <= raw)).is_some_and(|r| r.start <= raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_numbers_skip_exactly_the_list() {
        let s = Slips::of_runs(vec![7..8, 3..4, 4..5, 0..1, 3..4]);
        assert_eq!((s.len(), s.within(4..7).len(), s.within(4..8).len(), s.within(5..7).len()), (4, 1, 2, 0));
        assert_eq!(s.within(0..12), [0..1, 3..5, 7..8], "those that touch are one");
        let kept: Vec<u64> = (0..12).filter(|r| !s.contains(*r)).collect();
        assert_eq!(kept, [1, 2, 5, 6, 8, 9, 10, 11]);
        for (dense, raw) in kept.iter().enumerate() {
            assert_eq!((s.to_raw(dense as u64), s.to_dense(*raw)), (*raw, dense as u64));
        }
        for dense in 0..12 {
            let (around, skipped) = s.around(dense);
            let same = |d: &u64| s.to_raw(*d) - d == skipped;
            assert!(
                around.contains(&dense) && (around.start..around.end.min(20)).all(|d| same(&d)),
                "{dense}"
            );
            assert!(around.start == 0 || !same(&(around.start - 1)), "{dense}");
            assert!(around.end == u64::MAX || !same(&around.end), "{dense}");
        }
        assert_eq!(
            (s.to_dense(3), s.to_dense(4), s.to_dense(0)),
            (2, 2, 0),
            "a skipped one counts what is before it"
        );
    }
}
