//! Slots: places for one unit each, numbered over bands of unequal length.
//!
//! A unit is some blocks that a layer maps as a whole. Band `b` holds as many slots as units fit into it; what is left at
//! its end is not used. Slots are numbered densely in the order of their PBAs, so a slot is 4 bytes in any map.

use crate::{Plan, parts::split::ReadRuns};
use smrlab_disk::{BandId, Bands};
use smrlab_units::reciprocal::RunIndex;
use smrlab_units::{Blocks, Pba, counted};
use std::ops::Range;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Slots {
    bands: Bands,
    /// Blocks in a unit.
    unit: u64,
    /// First slot of each band, and one past the last slot.
    first: Vec<u32>,
    by_slot: RunIndex,
    shortest: u32,
    longest: u32,
}

/// What is said of a drive that skips all tracks of a band.
pub fn no_sectors(band: u64) -> String {
    format!(
        "band {band} has no sectors, the drive skips all of its tracks: use a larger band=, so that each has some"
    )
}

impl Slots {
    /// Units of `unit` blocks in all of `bands`.
    ///
    /// # Errors
    /// A sentence with the remedy, when a band is shorter than a unit or there are 2^32 slots or more.
    pub fn new(bands: Bands, unit: u64) -> Result<Self, String> {
        let mut first = Vec::with_capacity(bands.len() as usize + 1);
        let (mut end, mut shortest, mut longest) = (0u64, u64::MAX, 0);
        for b in 0..bands.len() {
            let blocks = bands.band(BandId(b)).blocks.0;
            let slots = blocks / unit;
            if blocks == 0 {
                return Err(no_sectors(b));
            }
            if slots == 0 {
                return Err(format!(
                    "a band of {} holds no unit of {unit} blocks: use a smaller granularity= or a larger band=",
                    counted(blocks, "block")
                ));
            }
            first.push(end as u32);
            end += slots;
            (shortest, longest) = (shortest.min(slots), longest.max(slots));
            if end >= u64::from(u32::MAX) {
                let least = (bands.data_blocks().0 >> 32) + 1;
                return Err(format!(
                    "a map of units of {} numbers fewer than 2^32 of them, and the drive has more: granularity={least} is \
                     the smallest that fits",
                    counted(unit, "block")
                ));
            }
        }
        let by_slot = RunIndex::new(first.iter().map(|&f| u64::from(f)).collect(), end);
        first.push(end as u32);
        Ok(Self { bands, unit, first, by_slot, shortest: shortest as u32, longest: longest as u32 })
    }

    /// Units in bands of `each` blocks that begin here: the zones of a drive, where a host logs.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn at(places: &[Pba], each: Blocks, unit: u64) -> Result<Self, String> {
        Self::new(Bands::at(places, each).map_err(|e| e.to_string())?, unit)
    }

    /// The bands.
    pub fn bands(&self) -> &Bands {
        &self.bands
    }

    /// How many bands.
    pub fn band_count(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// Blocks in a unit.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Slots in all bands.
    pub fn total(&self) -> u32 {
        self.first[self.first.len() - 1]
    }

    /// Slots of the shortest band.
    pub fn shortest(&self) -> u32 {
        self.shortest
    }

    /// Slots of the longest band.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// The slots of a band.
    pub fn of(&self, band: u32) -> Range<u32> {
        self.first[band as usize]..self.first[band as usize + 1]
    }

    /// How many slots a band has.
    pub fn count(&self, band: u32) -> u32 {
        self.first[band as usize + 1] - self.first[band as usize]
    }

    /// The band of a slot.
    #[inline]
    pub fn band_of(&self, slot: u32) -> u32 {
        self.by_slot.find(u64::from(slot)) as u32
    }

    /// The first block of slot `index` of a band.
    pub fn pba_in(&self, band: u32, index: u32) -> Pba {
        self.bands.start(BandId(u64::from(band))) + Blocks(u64::from(index) * self.unit)
    }

    /// The first block of a slot.
    #[inline]
    pub fn pba(&self, slot: u32) -> Pba {
        let band = self.band_of(slot);
        self.pba_in(band, slot - self.first[band as usize])
    }

    /// The next `blocks` of a read lie in `slots`, from block `from` of the first one on.
    pub fn read(&self, slots: Range<u32>, from: u64, mut blocks: u64, runs: &mut ReadRuns, plan: &mut Plan) {
        let (mut slot, mut from) = (slots.start, from);
        while blocks > 0 {
            let band = self.band_of(slot);
            let end = self.of(band).end.min(slots.end);
            let n = (u64::from(end - slot) * self.unit - from).min(blocks);
            runs.push(self.pba_in(band, slot - self.first[band as usize]) + Blocks(from), n, plan);
            (slot, from, blocks) = (end, 0, blocks - n);
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        // The index has the same starts in 8 bytes each.
        (self.first.capacity() * 12) as u64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use smrlab_disk::geometry::{Defect, GeometrySpec};
    use smrlab_disk::{BandLayout, Geometry, ZoneSpec, model};

    /// Bands of the `tiny` preset with `tracks` tracks each.
    pub(crate) fn tiny(tracks: u64, unit: u64) -> Slots {
        let drive = model::load("tiny", |_| Err(String::new())).unwrap();
        Slots::new(drive.bands(Some(tracks)).unwrap(), unit).unwrap()
    }

    #[test]
    fn every_slot_lies_wholly_in_its_band_and_none_twice() {
        let s = tiny(3, 8);
        let mut end = 0;
        for slot in 0..s.total() {
            let band = s.band_of(slot);
            let b = s.bands().band(BandId(u64::from(band)));
            assert!(s.of(band).contains(&slot));
            let pba = s.pba(slot).0;
            assert!(pba >= end && pba >= b.first.0 && pba + 8 <= b.first.0 + b.blocks.0, "slot {slot}");
            end = pba + 8;
        }
        let by_band = |b: u32| s.bands().band(BandId(u64::from(b))).blocks.0 / 8;
        assert_eq!(u64::from(s.total()), (0..s.band_count()).map(by_band).sum::<u64>());
    }

    /// The medium has about 2^34 blocks.
    #[test]
    fn a_map_with_too_many_units_names_the_smallest_that_fits() {
        let drive = model::load("modern-7200", |_| Err(String::new())).unwrap();
        let bands = || drive.bands(None).unwrap();
        let refused = Slots::new(bands(), 1).unwrap_err();
        let named: u64 =
            refused.split("granularity=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(named > 1 && refused.contains("units of 1 block numbers"), "{refused}");
        assert!(Slots::new(bands(), named).is_ok());
        assert!(Slots::new(bands(), named - 1).is_err());
    }

    /// Two tracks of which every sector is a defect: the first band is empty, and bands of four tracks are not.
    #[test]
    fn a_drive_with_an_empty_band_is_refused_with_the_remedy() {
        let mut spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(40, 4)]);
        let all =
            (0..2).flat_map(|cylinder| (0..4).map(move |sector| Defect { cylinder, surface: 0, sector }));
        spec.defects = all.collect();
        let geometry = Geometry::new(spec).unwrap();
        let slots = |tracks| {
            let layout = BandLayout { tracks, head_width: 2, random_access: 0 };
            Slots::new(Bands::new(&geometry, layout).unwrap(), 1)
        };
        let e = slots(2).unwrap_err();
        assert!(e.contains("band 0 has no sectors") && e.contains("larger band="), "{e}");
        assert!(slots(4).is_ok());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_remedy() {
        let drive = model::load("tiny", |_| Err(String::new())).unwrap();
        let e = Slots::new(drive.bands(Some(1)).unwrap(), 1 << 20).unwrap_err();
        assert!(e.contains("smaller granularity="), "{e}");
    }
}
