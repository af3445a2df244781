//! What is recorded.

use crate::{Record, Sink};
use std::ops::Range;

/// The zones of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Where its blocks are.
    pub data: Option<u32>,
    /// The random zone that holds what was written out of order.
    pub buffer: Option<u32>,
}

impl Chunk {
    /// Its zones.
    pub(super) fn zones(self) -> impl Iterator<Item = u32> {
        self.data.into_iter().chain(self.buffer)
    }
}

/// A change of the state. Blocks are counted from the beginning of their chunk, which is that of each of its zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The chunk has these zones; those that it had and has no more are free.
    Mapped { chunk: u64, to: Chunk },
    /// The host's blocks are in this zone, with whatever else was valid in their units.
    Wrote { chunk: u64, zone: u32, blocks: Range<u64> },
    /// Reclaim copied what was valid here to this zone.
    Took { chunk: u64, zone: u32, blocks: Range<u64> },
    /// Reclaim copied all that was valid to this zone, which is the chunk's only one now.
    Moved { chunk: u64, zone: u32 },
    /// Nothing is valid here.
    Discarded { chunk: u64, blocks: Range<u64> },
    /// Checkpoint: when the zone was written last, and how many writes there were.
    Stamped { zone: u32, stamp: u64, clock: u64 },
    /// Checkpoint: all metadata blocks are as the last commit left them, but for those that follow.
    Committed,
    /// Checkpoint: these metadata blocks are not.
    Uncommitted { blocks: Range<u64> },
    /// The drive is dead.
    Dead,
}

/// A zone that there may not be.
fn packed(zone: Option<u32>) -> u64 {
    zone.map_or(0, |z| u64::from(z) + 1)
}

fn unpacked(word: u64) -> Option<u32> {
    word.checked_sub(1).map(|z| z as u32)
}

impl crate::Change for Change {
    fn put(&self, to: &mut dyn Sink) {
        match *self {
            Self::Mapped { chunk, to: Chunk { data, buffer } } => {
                to.push(1, [chunk, packed(data), packed(buffer)]);
            }
            Self::Wrote { chunk, zone, ref blocks } => {
                to.push(2, [chunk, u64::from(zone), blocks.start, blocks.end]);
            }
            Self::Took { chunk, zone, ref blocks } => {
                to.push(3, [chunk, u64::from(zone), blocks.start, blocks.end]);
            }
            Self::Moved { chunk, zone } => to.push(4, [chunk, u64::from(zone)]),
            Self::Discarded { chunk, ref blocks } => to.push(5, [chunk, blocks.start, blocks.end]),
            Self::Stamped { zone, stamp, clock } => to.push(6, [u64::from(zone), stamp, clock]),
            Self::Dead => to.push(7, []),
            Self::Committed => to.push(8, []),
            Self::Uncommitted { ref blocks } => to.push(9, [blocks.start, blocks.end]),
        }
    }

    fn of(r: Record<'_>) -> Option<Self> {
        let (chunk, zone) = (r.word(0), r.word(1) as u32);
        let blocks = r.word(2)..r.word(3);
        Some(match r.tag {
            1 => Self::Mapped { chunk, to: Chunk { data: unpacked(r.word(1)), buffer: unpacked(r.word(2)) } },
            2 => Self::Wrote { chunk, zone, blocks },
            3 => Self::Took { chunk, zone, blocks },
            4 => Self::Moved { chunk, zone },
            5 => Self::Discarded { chunk, blocks: r.word(1)..r.word(2) },
            6 => Self::Stamped { zone: r.word(0) as u32, stamp: r.word(1), clock: r.word(2) },
            7 => Self::Dead,
            8 => Self::Committed,
            9 => Self::Uncommitted { blocks: r.word(0)..r.word(1) },
            _ => return None,
        })
    }
}
