//! Waiting for full stripes: which dirty chunks of the write cache make some.

use super::Dvs;
use super::group::Holds;
use super::pack::pack_all;
use crate::layouts::chunks::{parts_in, touched};
use std::collections::BTreeSet;
use std::ops::Range;

impl Dvs {
    /// Those of `runs` that are chunks of full stripes, whole chunks at a time.
    pub(super) fn full_stripes(&self, runs: &[Range<u64>]) -> Vec<Range<u64>> {
        let chunk = self.shape.chunk;
        let mut full = BTreeSet::new();
        let all: Vec<u64> = touched(runs, chunk).into_iter().collect();
        for of_group in all.chunk_by(|a, b| a / self.shape.logical == b / self.shape.logical) {
            let first = of_group[0] / self.shape.logical * self.shape.logical;
            let lcns: Vec<u64> = of_group.iter().map(|c| c - first).collect();
            let cells = pack_all(&self.shape, &lcns).unwrap_or_default();
            let stripes = cells.chunks(self.shape.disks as usize);
            for stripe in stripes.filter(|s| s.iter().all(|c| c.holds() != Holds::Nothing)) {
                full.extend(stripe.iter().filter_map(|cell| match cell.holds() {
                    Holds::Chunk(lcn) => Some(first + u64::from(lcn)),
                    _ => None,
                }));
            }
        }
        parts_in(runs, chunk, &full)
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::super::{DvsOptions, Stripes};
    use super::*;

    /// Luo et al.'s example: of D0 to D4 the first four make a stripe, D8 and D9 none; the second group's chunks are its own.
    #[test]
    fn what_makes_no_full_stripe_waits() {
        let shape = Shape { chunk: 2, disks: 5, length: 5, logical: 20, groups: 2, zone: None };
        let dvs = Dvs::new(shape, DvsOptions { stripes: Stripes::Wait, ..DvsOptions::plain() });
        let full = |run: Range<u64>| dvs.full_stripes(std::slice::from_ref(&run));
        assert_eq!(full(0..10), [0..2, 2..4, 4..6, 6..8]);
        assert_eq!(full(16..20), []);
        // D18 and D19 of the first group, D0 and D1 of the second: four chunks, and no stripe.
        assert_eq!(full(36..44), []);
        assert_eq!(full(40..50), [40..42, 42..44, 44..46, 46..48]);
        // Half of D0 waits with D1 to D3 for nothing: it is a chunk.
        assert_eq!(full(1..8), [1..2, 2..4, 4..6, 6..8]);
    }
}
