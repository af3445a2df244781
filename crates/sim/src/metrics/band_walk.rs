//! How often the head goes to another band.

use smrlab_disk::{BandId, Bands};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// Bands that are kept in mind, and spaces between them.
const KNOWN: usize = 4096;

/// Blocks of one band, or of none.
#[derive(Clone, Default)]
struct Known {
    blocks: Range<u64>,
    in_band: bool,
}

/// Follows the head over the bands of a drive.
pub struct BandWalk {
    bands: Bands,
    /// The blocks of the band in which the last operation ended, one block where that was on a guard or outside.
    here: Range<u64>,
    /// Others that were looked up, each at the number of the stretch of blocks in which it was asked for: to work a band out takes as long
    /// as to time an operation, and there is no need to where the head was lately.
    known: Box<[Known; KNOWN]>,
    /// What was known of the same stretch before, the latest first: it may meet the end of a band, the space behind that, and the beginning
    /// of the next one.
    before: Box<[[Known; 2]]>,
    /// A stretch has two to this power of blocks: no more than a band.
    shift: u32,
    /// Operations that began in another band than the last one ended in.
    pub switches: u64,
}

impl BandWalk {
    /// The head is in the first band, or before it.
    pub fn new(bands: Bands) -> Self {
        let first = bands.band(BandId(0)).blocks.0;
        let known = Box::new(std::array::from_fn(|_| Known::default()));
        let before = vec![<[Known; 2]>::default(); KNOWN].into();
        let mut walk = Self { bands, here: 0..0, known, before, shift: first.max(1).ilog2(), switches: 0 };
        walk.go_to(0);
        walk
    }

    /// The head leaves the band for that of another block.
    #[inline]
    fn go_to(&mut self, pba: u64) {
        let stretch = (pba >> self.shift) as usize % KNOWN;
        if !self.known[stretch].blocks.contains(&pba) {
            self.look_up(pba, stretch);
        }
        let Known { blocks, in_band } = &self.known[stretch];
        self.here = if *in_band { blocks.clone() } else { pba..pba + 1 };
    }

    /// Brings what is known of a block to the front of its stretch, or works it out.
    #[inline(never)]
    fn look_up(&mut self, pba: u64, stretch: usize) {
        let known = &mut self.known[stretch];
        for before in &mut self.before[stretch] {
            std::mem::swap(known, before);
            if known.blocks.contains(&pba) {
                return;
            }
        }
        let band = self.bands.around(Pba(pba));
        let in_band = band.is_some();
        *known = Known { blocks: band.unwrap_or_else(|| self.bands.gap(Pba(pba))), in_band };
    }

    /// An operation was done.
    #[inline]
    pub fn op(&mut self, pba: Pba, blocks: Blocks) {
        self.switches += u64::from(!self.here.contains(&pba.0));
        let last = pba.0 + blocks.0 - 1;
        if !self.here.contains(&last) {
            self.go_to(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!((walk.switches, &walk.here), (switches, &here), "at {pba}");
        }
    }
}
