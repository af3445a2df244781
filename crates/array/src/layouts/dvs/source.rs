//! What the chunks of a group hold, and where it is read from: the disk, or the rest of the stripe where that is dead.

use super::group::Group;
use super::shape::Shape;
use crate::layouts::chunks::{Chunk, Lost, Old, Slots};
use crate::layouts::disks::Disks;
use crate::layouts::segments::{ChunkPlace, Segments};
use std::ops::Range;

/// A group that was written.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The shape of all groups.
    pub shape: &'a Shape,
    /// Its number.
    pub group: u64,
    /// What it has where.
    pub tables: &'a Group,
    /// The disks.
    pub disks: &'a Disks,
}

impl Source<'_> {
    /// Whether a disk has what it should have of the group.
    pub fn is_there(&self, disk: u64) -> bool {
        self.disks.has(disk, self.group)
    }

    /// The segments that have it.
    pub fn segments(&self) -> Segments<'_> {
        self.shape.segments(self.group, self.disks)
    }

    /// Reads blocks `range` of the chunk at a place, or of what it can be made from.
    ///
    /// # Errors
    /// Too many disks are dead.
    pub fn read(&self, place: ChunkPlace, range: Range<u64>, slots: &mut Slots) -> Result<Old, Lost> {
        self.segments().read(place, || self.tables.stripe_at(place), &range, slots)
    }

    /// Reads a live chunk, to write it again.
    ///
    /// # Errors
    /// Too many disks are dead.
    pub fn chunk(&self, lcn: u64, slots: &mut Slots) -> Result<Chunk, Lost> {
        let place = self.tables.place(lcn).ok_or(Lost)?;
        Ok(Chunk::moved(lcn, self.read(place, 0..self.shape.chunk, slots)?))
    }

    /// A live chunk of this disk and row, or else of the first row behind it that has one, that is not taken.
    pub(super) fn filler(&self, disk: u64, row: u64, taken: impl Fn(u64) -> bool) -> Option<u64> {
        let (n, logical) = (self.shape.disks - 1, self.shape.logical);
        let all = (0..logical + n).map(|i| (row * n + i) % (logical.div_ceil(n) * n));
        let mut own = all.filter(|l| *l < logical && self.shape.home(*l) == disk);
        own.find(|l| self.tables.place(*l).is_some() && !taken(*l))
    }
}
