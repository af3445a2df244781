//! How often the head goes to another band.

use smrlab_disk::Bands;
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// Bands that are kept in mind.
const LATELY: usize = 4;

/// Follows the head over the bands of a drive.
pub struct BandWalk {
    bands: Bands,
    /// The blocks of the band in which the last operation ended, one block where that was on a guard or outside; then others where
    /// the head was lately: it mostly goes to and fro between a few, as a cache, a band and its new place.
    lately: [Range<u64>; LATELY],
    /// Which of these was replaced last.
    replaced: usize,
    /// Operations that began in another band than the last one ended in.
    pub switches: u64,
}

impl BandWalk {
    /// The head is in the first band, or before it.
    pub fn new(bands: Bands) -> Self {
        let lately = std::array::from_fn(|_| 0..0);
        let mut walk = Self { bands, lately, replaced: 0, switches: 0 };
        walk.go_to(0);
        walk
    }

    #[inline]
    fn here(&self) -> &Range<u64> {
        &self.lately[0]
    }

    /// The head leaves the band for that of another block.
    fn go_to(&mut self, pba: u64) {
        if let Some(i) = self.lately.iter().position(|band| band.contains(&pba)) {
            return self.lately.swap(0, i);
        }
        self.replaced = self.replaced % (LATELY - 1) + 1;
        self.lately.swap(0, self.replaced);
        self.lately[0] = self.bands.around(Pba(pba)).unwrap_or(pba..pba + 1);
    }

    /// An operation was done.
    #[inline]
    pub fn op(&mut self, pba: Pba, blocks: Blocks) {
        if !self.here().contains(&pba.0) {
            self.switches += 1;
            self.go_to(pba.0);
        }
        let last = pba.0 + blocks.0 - 1;
        if last >= self.here().end {
            self.go_to(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_disk::BandId;

    #[test]
    fn only_beginnings_in_another_band_count() {
        let drive = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
        let bands = drive.bands(None).unwrap();
        let first = |i: u64| bands.band(BandId(i)).first;
        let end = |i: u64| first(i).0 + bands.band(BandId(i)).blocks.0;
        let mut walk = BandWalk::new(bands.clone());
        for (pba, blocks, switches) in [
            (first(0), 8, 0),
            (first(2), 1, 1),
            (Pba(first(2).0 + 5), 2, 1),
            // From one band into the next, and on from there.
            (Pba(first(3).0 - 40), 50, 1),
            (Pba(first(3).0 + 20), 1, 1),
            (first(0), 1, 2),
            // It ends on the first block of the guard, goes on from there, and comes back.
            (Pba(end(0) - 1), 2, 2),
            (Pba(end(0)), 1, 2),
            // Of a guard each block is a place of its own.
            (Pba(end(0) + 1), 1, 3),
            (first(0), 1, 4),
        ] {
            walk.op(pba, Blocks(blocks));
            assert_eq!(walk.switches, switches, "at {pba}");
        }
    }

    /// Against a walk that works each band out: most operations in five bands, some anywhere, guards too.
    #[test]
    fn what_is_kept_in_mind_changes_nothing() {
        let drive = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
        let bands = drive.bands(None).unwrap();
        let around = |pba: u64| bands.around(Pba(pba)).unwrap_or(pba..pba + 1);
        let (mut walk, mut rng) = (BandWalk::new(bands.clone()), smrlab_units::rng::Rng::new(3));
        let (mut here, mut switches) = (around(0), 0);
        let all = drive.geometry().blocks().0;
        for _ in 0..5000 {
            let hot = bands.band(BandId(rng.below(5) * 2)).first.0 + rng.below(90);
            let pba = if rng.one_in(8) { rng.below(all - 60) } else { hot };
            let blocks = 1 + rng.below(60);
            walk.op(Pba(pba), Blocks(blocks));
            switches += u64::from(!here.contains(&pba));
            here = around(pba);
            here = if pba + blocks > here.end { around(pba + blocks - 1) } else { here };
            assert_eq!((walk.switches, walk.here()), (switches, &here), "at {pba}");
        }
    }
}
