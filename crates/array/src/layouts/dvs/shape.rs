//! The shape of groups, and of the zone that has their tables.

use crate::layouts::disks::Disks;
use crate::layouts::segments::Segments;
use smrlab_units::{BLOCK_BYTES, SimTime};

/// The shape of all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks in a chunk.
    pub chunk: u64,
    /// Disks: N data and one parity chunk in a full stripe.
    pub disks: u64,
    /// Chunks in a segment.
    pub length: u64,
    /// Logical chunks that the host sees in a group.
    pub logical: u64,
    /// Groups of the host's.
    pub groups: u64,
    /// Groups that have the tables instead.
    pub zone: Option<TableZone>,
}

impl Shape {
    /// The first block of a group's segment, on every disk.
    #[inline]
    pub fn start(&self, group: u64) -> u64 {
        let behind = self.zone.filter(|z| group >= z.first).map_or(0, |z| z.groups);
        (group + behind) * self.length * self.chunk
    }

    /// A group's segments, each of them one unit of rebuilding.
    #[inline]
    pub(super) fn segments<'a>(&self, group: u64, disks: &'a Disks) -> Segments<'a> {
        let (start, chunk, unit) = (self.start(group), self.chunk, self.length);
        Segments { disks, start, chunk, first_unit: group, unit }
    }

    /// The disk on which a logical chunk always is: that of a left-asymmetric RAID-5.
    #[inline]
    pub fn home(&self, lcn: u64) -> u64 {
        home(lcn, self.disks)
    }
}

/// The disk of a chunk, of so many.
pub(super) fn home(lcn: u64, disks: u64) -> u64 {
    // Numbers of chunks are small, and so are divisions of small numbers.
    let (lcn, disks) = (lcn as u32, disks as u32);
    let n = disks - 1;
    let (row, i) = (lcn / n, lcn % n);
    let parity = n - row % disks;
    u64::from(i + u32::from(i >= parity))
}

/// The groups that have tables instead of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableZone {
    /// Blocks of a table.
    pub table: u64,
    /// Its first group, in the order on the disks.
    pub first: u64,
    /// Its groups.
    pub groups: u64,
    /// How long after a change tables are written.
    pub every: SimTime,
}

impl TableZone {
    /// For this many groups in all, its own among them; `None`: a table is larger than a chunk, or there is no room.
    pub fn new(shape: &Shape, all: u64, every: SimTime) -> Option<Self> {
        let bytes = 4 * shape.logical + shape.disks * (4 * shape.length + 2);
        let table = bytes.div_ceil(BLOCK_BYTES);
        let slot = (shape.chunk / table) * shape.disks;
        // With g groups of data there are g / slot of tables.
        let groups = if slot == 0 { all } else { all.div_ceil(slot + 1) };
        (groups < all).then_some(Self { table, first: (all - groups) / 2, groups, every })
    }

    /// The disk that has the table of a group, and its first block there.
    pub(super) fn place(&self, shape: &Shape, group: u64) -> (u64, u64) {
        let (disk, nth) = (group % shape.disks, group / shape.disks);
        let tables = shape.chunk / self.table;
        let last = (self.first + nth / tables + 1) * shape.length - 1;
        (disk, last * shape.chunk + nth % tables * self.table)
    }
}
