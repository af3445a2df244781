//! Zones with write pointers, in the words of ZBC: what a host is told of them and what it can have done with them.

use crate::{Blocks, Lba, counters, named};

/// What a zone takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ZoneKind {
    /// Writes anywhere; it has no write pointer.
    Conventional = 1,
    /// Writes at its write pointer only.
    SequentialRequired = 2,
    /// Writes anywhere; the drive is fast where they are at the write pointer.
    SequentialPreferred = 3,
    /// Nothing: no data lie there.
    Gap = 5,
}

impl ZoneKind {
    /// Whether it has a write pointer.
    pub const fn has_pointer(self) -> bool {
        matches!(self, Self::SequentialRequired | Self::SequentialPreferred)
    }
}

named! {
    /// The condition of a zone; the numbers are those of REPORT ZONES.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum ZoneCondition {
        /// It has no write pointer.
        NotWritePointer = 0x0 => "not-write-pointer",
        /// Nothing was written since it was reset.
        Empty = 0x1 => "empty",
        /// A write opened it.
        ImplicitlyOpen = 0x2 => "implicitly-open",
        /// The host opened it.
        ExplicitlyOpen = 0x3 => "explicitly-open",
        /// Written in part, and not open.
        Closed = 0x4 => "closed",
        /// It can be read and no more.
        ReadOnly = 0xd => "read-only",
        /// Written to its end, or finished.
        Full = 0xe => "full",
        /// It can neither be read nor written.
        Offline = 0xf => "offline",
    }
}

impl ZoneCondition {
    /// Whether it takes one of the drive's resources for open zones.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }
}

/// A zone as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its first block.
    pub start: Lba,
    /// Its length.
    pub blocks: Blocks,
    /// What it takes.
    pub kind: ZoneKind,
    /// How it is.
    pub condition: ZoneCondition,
    /// Where it is to be written next; `None`: the pointer is not valid, as in zones that are full.
    pub pointer: Option<Lba>,
    /// The drive holds blocks of it that were not written in order (host-aware drives).
    pub non_sequential: bool,
}

impl Zone {
    /// One past its last block.
    pub fn end(&self) -> Lba {
        self.start + self.blocks
    }
}

/// What a zoned drive says of all its zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLimits {
    /// Reads above a write pointer bring zeroes (URSWRZ); else they are refused.
    pub unrestricted_reads: bool,
    /// How many zones may be open at once; `None`: all.
    pub most_open: Option<u32>,
    /// Zones begin at multiples of this, and are shorter: gap zones lie between them. `None`: there are no gaps.
    pub pitch: Option<Blocks>,
    /// The zones prefer sequential writes: the drive is host-aware. `None`: they require them.
    pub preferred: Option<PreferredZones>,
}

counters! {
    /// How many of the zones with a write pointer are in which condition; zones that failed are in none of these.
    pub struct ZoneCounts {
        /// Nothing was written since they were reset.
        empty,
        /// Open, by a write or by the host.
        open,
        /// Written in part, and not open.
        closed,
        /// Written to their end, or finished.
        full,
    }
}

/// What a zoned drive counts of its zones since it was switched on, as ZBC-2 has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneStatistics {
    /// The most zones that were open at once.
    pub most_open: u32,
    /// The same of zones that the host opened.
    pub most_explicit: u32,
    /// The same of zones that writes opened.
    pub most_implicit: u32,
    /// The fewest zones that were empty at once.
    pub least_empty: u32,
    /// The most zones of which blocks were out of order at once.
    pub most_non_sequential: u32,
    /// Zones that became empty.
    pub emptied: u32,
    /// Writes to zones that prefer sequential writes, not at the write pointer.
    pub suboptimal: u32,
    /// Writes that left blocks out of order in more such zones than the drive recommends.
    pub over_recommended: u32,
    /// Commands to open a zone that found no room.
    pub failed_opens: u32,
    /// Reads that zones refused: beyond a zone's end, or above a write pointer.
    pub refused_reads: u32,
    /// Writes that zones refused: not at the write pointer, over a zone's end, to a full one, or of one too many.
    pub refused_writes: u32,
}

/// How many zones a host-aware drive recommends to use at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreferredZones {
    /// Open ones.
    pub open: u32,
    /// Those that are not written in order.
    pub non_sequential: u32,
}

named! {
    /// What a host can have done with a zone.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum ZoneAction {
        /// Gives its resources back.
        Close = 1 => "close",
        /// Makes it full as it is.
        Finish = 2 => "finish",
        /// Reserves resources for it.
        Open = 3 => "open",
        /// Makes it empty.
        Reset = 4 => "reset",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_drives_are_added_condition_by_condition() {
        let counts = |empty, open, closed, full| ZoneCounts { empty, open, closed, full };
        assert_eq!(counts(1, 20, 300, 4000) + counts(5, 60, 700, 8000), counts(6, 80, 1000, 12_000));
    }
}
