//! Slipped positions: numbers left out of a dense numbering.

/// A sorted list of positions that are skipped. "Raw" numbers count them, "dense" numbers do not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slips {
    /// Raw numbers, ascending.
    raw: Vec<u64>,
    /// `raw[i] - i`: the dense number that the position would have had.
    dense: Vec<u64>,
}

impl Slips {
    pub(crate) fn new(mut raw: Vec<u64>) -> Self {
        raw.sort_unstable();
        raw.dedup();
        let dense = raw.iter().enumerate().map(|(i, &r)| r - i as u64).collect();
        Self { raw, dense }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    pub(crate) fn raw(&self) -> &[u64] {
        &self.raw
    }

    /// The raw number of a dense one.
    #[inline]
    pub(crate) fn to_raw(&self, dense: u64) -> u64 {
        if self.raw.is_empty() {
            return dense;
        }
        dense + self.dense.partition_point(|&d| d <= dense) as u64
    }

    /// How many positions before `raw` are not skipped: the dense number of `raw`, or of the next one where it is.
    #[inline]
    pub(crate) fn to_dense(&self, raw: u64) -> u64 {
        if self.raw.is_empty() {
            return raw;
        }
        raw - self.raw.partition_point(|&r| r < raw) as u64
    }

    pub(crate) fn contains(&self, raw: u64) -> bool {
        self.raw.binary_search(&raw).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_numbers_skip_exactly_the_list() {
        let s = Slips::new(vec![7, 3, 4, 0]);
        let kept: Vec<u64> = (0..12).filter(|r| !s.contains(*r)).collect();
        assert_eq!(kept, [1, 2, 5, 6, 8, 9, 10, 11]);
        for (dense, raw) in kept.iter().enumerate() {
            assert_eq!((s.to_raw(dense as u64), s.to_dense(*raw)), (*raw, dense as u64));
        }
        assert_eq!(s.to_dense(3), 2, "a skipped one counts what is before it");
    }
}
