//! The segments of a group, one on each disk, and reads of the chunks in them: from a chunk's own disk, or from the rest of its stripe.

use super::chunks::{Lost, Old, SlotRead, Slots};
use super::disks::Disks;
use std::ops::Range;

/// Where a chunk or a parity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkPlace {
    /// The disk.
    pub disk: u64,
    /// Index in its segment.
    pub at: u64,
}

/// See the [module](self).
#[derive(Clone, Copy)]
pub struct Segments<'a> {
    /// The disks.
    pub disks: &'a Disks,
    /// The first block of each segment.
    pub start: u64,
    /// Blocks in a chunk.
    pub chunk: u64,
    /// The first unit of rebuilding of each segment.
    pub first_unit: u64,
    /// Chunks in a unit of rebuilding.
    pub unit: u64,
}

impl Segments<'_> {
    /// Whether a disk has what it should have at a place.
    #[inline]
    pub fn has(&self, place: ChunkPlace) -> bool {
        self.disks.has(place.disk, self.first_unit + place.at / self.unit)
    }

    /// The blocks `range` of what is at a place.
    #[inline]
    pub fn blocks(&self, place: ChunkPlace, range: &Range<u64>) -> SlotRead {
        let start = self.start + place.at * self.chunk + range.start;
        SlotRead { disk: place.disk, start, blocks: range.end - range.start }
    }

    /// Reads blocks `range` of the chunk at `place`, or of what it can be made from: the others of its `stripe`.
    ///
    /// # Errors
    /// Too many disks are dead.
    pub fn read<S: IntoIterator<Item = ChunkPlace>>(
        &self,
        place: ChunkPlace,
        stripe: impl FnOnce() -> Option<S>,
        range: &Range<u64>,
        slots: &mut Slots,
    ) -> Result<Old, Lost> {
        let first = slots.reads.len() as u32;
        if self.has(place) {
            slots.reads.push(self.blocks(place, range));
        } else {
            self.read_others(place.disk, stripe().ok_or(Lost)?, range, slots)?;
        }
        Ok(Old { slots: first..slots.reads.len() as u32, from: range.start })
    }

    /// Reads blocks `range` of all that a `stripe` has on other disks than `disk`.
    ///
    /// # Errors
    /// Another disk is dead, too.
    pub fn read_others(
        &self,
        disk: u64,
        stripe: impl IntoIterator<Item = ChunkPlace>,
        range: &Range<u64>,
        slots: &mut Slots,
    ) -> Result<(), Lost> {
        for other in stripe.into_iter().filter(|p| p.disk != disk) {
            if !self.has(other) {
                return Err(Lost);
            }
            slots.reads.push(self.blocks(other, range));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rebuild::{Order, Rebuild};
    use super::*;
    use crate::{MemberId, MemberPlan};
    use smrlab_units::SimTime;

    /// Three disks, segments from block 100 on with chunks of 8 blocks, two of them a unit, the first of which is the sixth. Disk 0 died
    /// and is rebuilt but for its unit 7: place 1 is read where it is, place 2 from disks 1 and 2. Without disk 1 it is lost.
    #[test]
    fn a_chunk_is_read_from_its_disk_or_from_the_rest_of_its_stripe() {
        let (mut disks, mut plan) = (Disks::new(3, 1, 1), MemberPlan::new(false));
        disks.failed(MemberId(0), &mut plan);
        disks.replace(MemberId(0), |d| Rebuild::new(d, 8, Order::Address, 1, SimTime::ZERO), &mut plan);
        (0..7).for_each(|unit| disks.filled(unit, &mut plan));
        let read = |disks: &Disks, at| {
            let segments = Segments { disks, start: 100, chunk: 8, first_unit: 6, unit: 2 };
            let mut slots = Slots { reads: vec![SlotRead { disk: 9, start: 0, blocks: 1 }] };
            let stripe = [(0, at), (1, 5), (2, 0)].map(|(disk, at)| ChunkPlace { disk, at });
            let old = segments.read(stripe[0], || Some(stripe), &(3..5), &mut slots);
            let reads: Vec<_> = slots.reads[1..].iter().map(|r| (r.disk, r.start, r.blocks)).collect();
            (old.map(|old| (old.slots, old.from)), reads)
        };
        assert_eq!(read(&disks, 1), (Ok((1..2, 3)), vec![(0, 111, 2)]));
        assert_eq!(read(&disks, 2), (Ok((1..3, 3)), vec![(1, 143, 2), (2, 103, 2)]));
        disks.failed(MemberId(1), &mut plan);
        assert_eq!(read(&disks, 2), (Err(Lost), vec![]));
        let segments = Segments { disks: &disks, start: 0, chunk: 8, first_unit: 6, unit: 2 };
        let nowhere = ChunkPlace { disk: 0, at: 2 };
        let old = segments.read(nowhere, || None::<[ChunkPlace; 0]>, &(0..8), &mut Slots::default());
        assert_eq!(old.map(|old| old.slots), Err(Lost));
    }
}
