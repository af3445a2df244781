//! What lies between bands: guards, and what is in no band at all.

use super::{BandId, Bands};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

impl Bands {
    /// Blocks around one that is in no band, none of them in a band: mostly all up to the band before and the one behind.
    pub fn gap(&self, pba: Pba) -> Range<u64> {
        // A band whose tracks are all slipped has no block.
        let with_blocks = |band: &BandId| self.band(*band).blocks > Blocks::ZERO;
        let (from, next) = match self.last_before(pba) {
            Some(band) => {
                let before = (0..=band.0).rev().map(BandId).find(with_blocks).map(|band| self.band(band));
                (before.map_or(0, |band| band.first.0 + band.blocks.0), band.0 + 1)
            }
            None => (0, 0),
        };
        let behind = (next..self.len).map(BandId).find(with_blocks);
        let gap = from..behind.map_or(u64::MAX, |band| self.start(band).0);
        if gap.contains(&pba.0) { gap } else { pba.0..pba.0 + 1 }
    }

    /// The last band that begins before a block that is in no band, as far as its run knows.
    fn last_before(&self, pba: Pba) -> Option<BandId> {
        let raw = self.slips.to_raw(pba.0);
        let r = &self.runs[self.by_raw.find(raw)];
        let (stroke, rest) = r.stroke.div_rem_wide(raw.checked_sub(r.first_raw)?);
        let k = r.stride.div_wide(rest).min(r.in_stroke.divisor() - 1);
        let last = r.bands.checked_sub(1)?;
        Some(BandId(r.first_band + (stroke * r.in_stroke.divisor() + k).min(last)))
    }
}
