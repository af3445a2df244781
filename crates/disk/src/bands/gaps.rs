//! What lies between bands: guards, and what is in no band at all.

use super::{BandId, Bands};
use smrlab_units::Pba;
use std::ops::Range;

impl Bands {
    /// Blocks around one that is in no band, none of them in a band: mostly all up to the band before and the one behind.
    pub fn gap(&self, pba: Pba) -> Range<u64> {
        let gap = match self.last_before(pba) {
            Some(band) => {
                let next = BandId(band.0 + 1);
                let end = if next.0 < self.len { self.start(next).0 } else { u64::MAX };
                let before = self.band(band);
                before.first.0 + before.blocks.0..end
            }
            None => 0..self.start(BandId(0)).0,
        };
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
