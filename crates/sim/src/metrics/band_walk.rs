//! How often the head goes to another band.

use smrlab_disk::Bands;
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// Follows the head over the bands of a drive.
pub struct BandWalk {
    bands: Bands,
    /// No band has more blocks.
    longest: u64,
    /// The block with which the last operation ended.
    last: u64,
    /// The blocks of a band in which one ended lately, one block where that was on a guard or outside.
    here: Range<u64>,
    /// Operations that began in another band than the last one ended in.
    pub switches: u64,
}

impl BandWalk {
    /// The head is in the first band, or before it.
    pub fn new(bands: Bands) -> Self {
        Self { longest: bands.longest().0, bands, last: 0, here: 0..0, switches: 0 }
    }

    /// An operation was done.
    #[inline(always)]
    pub fn op(&mut self, pba: Pba, blocks: Blocks) {
        // Most operations begin too far away to ask for the band.
        self.switches += u64::from(self.last.abs_diff(pba.0) >= self.longest || self.leaves(pba.0));
        self.last = pba.0 + blocks.0 - 1;
    }

    /// Whether a block lies in another band than the last operation's end.
    #[inline]
    fn leaves(&mut self, to: u64) -> bool {
        if !self.here.contains(&self.last) {
            self.look();
        }
        !self.here.contains(&to)
    }

    #[inline(never)]
    fn look(&mut self) {
        self.here = self.bands.around(Pba(self.last)).unwrap_or(self.last..self.last + 1);
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
            // The first and the last block of the longest band are as far apart as can be within one.
            (Pba(end(0) - 1), 1, 4),
            (first(0), 1, 4),
        ] {
            walk.op(pba, Blocks(blocks));
            assert_eq!(walk.switches, switches, "at {pba}");
        }
    }
}
