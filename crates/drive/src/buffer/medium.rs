//! The side of the medium: what it was told to do last, when it is free, and the track under the head.

use smrlab_disk::{Mechanics, TrackNo};
use smrlab_units::{Blocks, Dir, Pba, SimTime};

/// The blocks of a track.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    /// First block.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// How long the head takes to pass a block's length.
    pub block: SimTime,
}

impl Track {
    /// The track that holds a block; that of the last one where `lba` is beyond the end.
    pub(crate) fn of(m: &Mechanics, lba: u64) -> Self {
        let mut track = Self::default();
        track.move_to(lba, m);
        track
    }

    /// The same, written to where it stays: who reads a copy right after it was put together waits for that.
    #[inline(never)]
    fn move_to(&mut self, lba: u64, m: &Mechanics) {
        let end = m.geometry().blocks().0;
        let (blocks, block) = m.track_with(Pba(lba.min(end - 1)));
        (self.start, self.end, self.block) = (blocks.start, blocks.end, block);
    }
}

/// What passed the head for a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// First block and number.
    pub lba: u64,
    pub blocks: u64,
    /// From when until when.
    pub start: SimTime,
    pub end: SimTime,
    /// The track and the cylinder where the head was.
    pub before: (u64, u32),
}

/// A read of the medium.
pub(super) struct Read {
    pub lba: u64,
    pub blocks: u64,
    /// The bus waits for the first so many.
    pub gather: u64,
    /// It begins with whichever of the blocks passes first.
    pub any: bool,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct AtMedium {
    /// When it is free of everything that it was told to do.
    pub free: SimTime,
    /// What passed the head for the present command.
    pub passed: Option<Passed>,
    /// The track that was looked at last.
    track: Track,
}

impl AtMedium {
    /// It is at other work until `free`.
    pub(super) fn engaged(&mut self, free: SimTime) {
        self.free = self.free.max(free);
    }

    /// The track that holds a block.
    #[inline(always)]
    pub(super) fn track(&mut self, lba: u64, m: &Mechanics) -> &Track {
        if !(self.track.start..self.track.end).contains(&lba) {
            self.track.move_to(lba, m);
        }
        &self.track
    }

    /// Reads for a command, which is told of it from `shown` on. `begin` must not be before the end of the transfer before.
    /// Answers when what has to be gathered, and when all has passed the head.
    #[inline]
    pub(super) fn read(
        &mut self,
        begin: SimTime,
        shown: SimTime,
        Read { lba, blocks, gather, any }: Read,
        m: &mut Mechanics,
    ) -> (SimTime, SimTime) {
        let before = (m.head().track.0, m.head().cylinder());
        let (first, end) = if any {
            m.service_any(begin, Dir::Read, Pba(lba), Blocks(blocks))
        } else {
            m.read_gathering(begin, Pba(lba), Blocks(blocks), Blocks(gather))
        };
        self.passed = Some(Passed { lba, blocks, start: shown.max(begin).min(end), end, before });
        self.free = self.free.max(end);
        (first, end)
    }

    /// Writes for a command, the first block not before `data`, or `any` block first. Answers when the last one has passed.
    #[inline]
    pub(super) fn write(
        &mut self,
        begin: SimTime,
        data: SimTime,
        (lba, blocks): (u64, u64),
        any: bool,
        m: &mut Mechanics,
    ) -> SimTime {
        let before = (m.head().track.0, m.head().cylinder());
        let (pba, n) = (Pba(lba), Blocks(blocks));
        let end = if any && data <= begin {
            m.service_any(begin, Dir::Write, pba, n).1
        } else {
            m.service_from(begin, data, Dir::Write, pba, n)
        };
        self.passed = Some(Passed { lba, blocks, start: begin, end, before });
        self.free = end;
        end
    }

    /// When a bus that needs `block` for one can have delivered what was read last, `blocks` up to `end`, of which the last one passed
    /// the head at `last`: all of the last track, which came in one go.
    #[inline]
    pub(super) fn drained(
        &mut self,
        (blocks, end): (u64, u64),
        last: SimTime,
        block: SimTime,
        m: &Mechanics,
    ) -> SimTime {
        let track = self.track(end - 1, m);
        let there = blocks.min(end - track.start);
        let passing = SimTime(track.block.0 * (there - 1));
        (last.since(passing) + SimTime(block.0 * there)).max(last + block)
    }
}

/// One past the last block of the cylinder that holds `lba`.
pub(super) fn cylinder_end(lba: u64, m: &Mechanics) -> u64 {
    let g = m.geometry();
    let track = g.track_of(Pba(lba.min(g.blocks().0 - 1)));
    let cylinder = m.target(Pba(lba)).cylinder();
    let mut next = TrackNo(track.0 + 1);
    while next.0 < g.tracks() && m.target(g.track_start(next)).cylinder() == cylinder {
        next.0 += 1;
    }
    g.track_start(next).0
}
