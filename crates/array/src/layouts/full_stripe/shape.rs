//! The shape of segments, and how much of them the host sees.

use crate::layouts::disks::Disks;
use crate::layouts::segments::Segments;
use std::ops::Range;

/// Free groups that the host leaves to the collector: it fills one while it empties another, and a lost or replaced drive costs it one.
pub(super) const LEFT: u64 = 3;
/// Free groups at which the collector begins.
pub(super) const FEW: u64 = 5;
/// Fewest groups that make sense, beside those kept back.
pub(super) const FEWEST: u64 = 3;
/// Most chunks of a segment: cells have 24 bits for their place.
pub(super) const LONGEST: u64 = 1 << 24;

/// The shape of all groups: a segment of every disk each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Blocks in a chunk.
    pub(super) chunk: u64,
    /// Disks: N data chunks and one of parity in a full stripe.
    pub(super) disks: u64,
    /// Chunks in a segment.
    pub(super) length: u64,
    /// Blocks from the start of a segment to that of the next one on the same disk.
    pub(super) spacing: u64,
    /// Groups.
    pub(super) groups: u64,
    /// Groups that the host fills in turn, and as many that the collector does.
    pub(super) filled: u64,
    /// Chunks that the host sees.
    pub(super) logical: u64,
    /// Chunks of a unit of rebuilding.
    pub(super) unit: u64,
}

impl Shape {
    /// How many chunks the host sees, of which `reserve` are kept back: what is left of groups that no stream fills, one row short each, so that
    /// a group always has less that is live than what the collector wins by emptying it.
    pub(super) fn logical(&self, reserve: f64) -> u64 {
        let groups = self.groups - self.kept();
        let chunks = groups * (self.disks - 1) * (self.length - 2);
        ((chunks as f64 * (1.0 - reserve)) as u64).max(1)
    }

    /// Groups that no chunk counts on: those that are free, and those being filled by the host and by the collector.
    pub(super) fn kept(&self) -> u64 {
        FEW + 2 * self.filled
    }

    /// The first block of a group's segment, on every disk.
    #[inline]
    pub(super) fn start(&self, group: u64) -> u64 {
        group * self.spacing
    }

    /// A group's segments.
    #[inline]
    pub(super) fn segments<'a>(&self, group: u64, disks: &'a Disks) -> Segments<'a> {
        let (start, first_unit) = (self.start(group), self.units_of(group).start);
        Segments { disks, start, chunk: self.chunk, first_unit, unit: self.unit }
    }

    /// Units of rebuilding in a segment.
    pub(super) fn units(&self) -> u64 {
        self.length.div_ceil(self.unit)
    }

    /// The units of a group.
    pub(super) fn units_of(&self, group: u64) -> Range<u64> {
        group * self.units()..(group + 1) * self.units()
    }

    /// Chunks that are locked together: those of 64 KiB, or one.
    pub(super) fn locked(&self) -> u64 {
        (128 / self.chunk).max(1)
    }
}
