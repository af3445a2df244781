//! The command: what is asked of whatever answers commands (a layer, a drive, an array, a filter), and how it ends.

use crate::Cause;
use smrlab_units::{Blocks, HostOp, Lba, named};
use std::ops::Range;

/// One command. The caller has checked that `lba + blocks` lies within
/// [`host_blocks`](crate::TranslationLayer::host_blocks) and that all but flushes have at least one block. Who does not know
/// an operation refuses it as [`Unsupported`](Refusal::Unsupported).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// The caller's number for it: completions, logs and refusals name it. 0 where nobody asks.
    pub id: u64,
    /// What is asked.
    pub op: HostOp,
    /// First block.
    pub lba: Lba,
    /// Length; zero for a flush.
    pub blocks: Blocks,
    /// Which source sent it (interleaved traces, append streams); 0 where there is one.
    pub stream: u16,
    /// Why: `Host` for the host's own requests; an array asks its members for parity, rebuilds and the like. What a layer
    /// does for `Host` is counted under this cause.
    pub why: Cause,
    /// A write that is acknowledged only when it is on the medium, whatever caches are on.
    pub fua: bool,
    /// A zone command that means each zone to which it applies, as ZBC's ALL does; its blocks are all that there are.
    pub all_zones: bool,
}

impl HostRequest {
    /// A request of the host's, number 0, of stream 0.
    #[inline]
    pub const fn new(op: HostOp, lba: Lba, blocks: Blocks) -> Self {
        Self { id: 0, op, lba, blocks, stream: 0, why: Cause::Host, fua: false, all_zones: false }
    }

    /// A flush.
    pub const fn flush() -> Self {
        Self::new(HostOp::Flush, Lba(0), Blocks(0))
    }

    /// Its blocks.
    #[inline]
    pub const fn span(&self) -> Range<u64> {
        self.lba.span(self.blocks)
    }

    /// The same with this number.
    #[must_use]
    pub const fn numbered(self, id: u64) -> Self {
        Self { id, ..self }
    }

    /// The same for this reason.
    #[must_use]
    pub const fn because(self, why: Cause) -> Self {
        Self { why, ..self }
    }
}

named! {
    /// Why a layer does not do what was asked. Nothing was planned and nothing changed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Refusal {
        /// A write that does not begin where the zone is to be written next, or is no whole physical blocks.
        NotAtPointer => "not-at-pointer",
        /// A read beyond what was written, or a block that is not there.
        OutOfRange => "out-of-range",
        /// A place that cannot be written: a guard, a read-only zone.
        WriteProtected => "write-protected",
        /// There is no room: a full log.
        NoSpace => "no-space",
        /// A write that does not end in its zone, or a read that goes on behind one.
        CrossesZone => "crosses-zone",
        /// A block between two zones.
        Gap => "gap",
        /// A read of what was not written since its zone was reset.
        AbovePointer => "above-pointer",
        /// A write to a zone that is full.
        ZoneFull => "zone-full",
        /// As many zones are open as can be.
        TooManyOpen => "too-many-open",
        /// The zone can be read and no more.
        ZoneReadOnly => "zone-read-only",
        /// The zone can neither be read nor written.
        ZoneOffline => "zone-offline",
        /// The data are gone: a dead disk, a destroyed block.
        Lost => "lost",
        /// The drive does not know the command.
        Unsupported => "unsupported",
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    #[default]
    Done,
    /// An append was done: its data begin here.
    Appended(Lba),
    /// Nothing was done and nothing changed.
    Refused {
        /// Why.
        why: Refusal,
        /// The first block that stands against it.
        lba: Lba,
    },
}

impl Outcome {
    /// Why it was not done.
    #[inline]
    pub const fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Refused { why, .. } => Some(why),
            Self::Done | Self::Appended(_) => None,
        }
    }
}
