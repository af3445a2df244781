//! What the controller works on: blocks that pass a head.

use smrlab_disk::{Mechanics, TrackNo};
use smrlab_units::{Blocks, Dir, Pba, SimTime};

/// The blocks of a track.
#[derive(Clone, Copy, Debug, Default)]
pub struct Track {
    /// First block.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// How long the head takes to pass a block's length.
    pub block: SimTime,
}

/// Blocks by their number, on a medium that takes time.
pub(crate) trait Medium {
    /// How many blocks there are.
    fn blocks(&self) -> u64;

    /// Reads from `start` on, which must not be before the end of the transfer before; `any`: beginning with whichever
    /// block comes first. Answers when the first `gather` blocks in order, and when all have passed the head.
    fn read(
        &mut self,
        start: SimTime,
        lba: u64,
        blocks: Blocks,
        gather: Blocks,
        any: bool,
    ) -> (SimTime, SimTime);

    /// Writes from `start` on, the first block not before `data`. Answers when the last one has passed the head.
    fn write(&mut self, start: SimTime, data: SimTime, lba: u64, blocks: Blocks, any: bool) -> SimTime;

    /// The track that holds `lba`; of the last block's where that is beyond the end.
    fn track(&self, lba: u64) -> Track;

    /// One past the last block of the cylinder that holds `lba`.
    fn cylinder_end(&self, lba: u64) -> u64;
}

/// Blocks where their numbers say: a conventional drive.
impl Medium for Mechanics {
    fn blocks(&self) -> u64 {
        self.geometry().blocks().0
    }

    fn read(
        &mut self,
        start: SimTime,
        lba: u64,
        blocks: Blocks,
        gather: Blocks,
        any: bool,
    ) -> (SimTime, SimTime) {
        if any {
            return self.service_any(start, Dir::Read, Pba(lba), blocks);
        }
        self.read_gathering(start, Pba(lba), blocks, gather)
    }

    fn write(&mut self, start: SimTime, data: SimTime, lba: u64, blocks: Blocks, any: bool) -> SimTime {
        if any && data <= start {
            return self.service_any(start, Dir::Write, Pba(lba), blocks).1;
        }
        self.service_from(start, data, Dir::Write, Pba(lba), blocks)
    }

    #[inline]
    fn track(&self, lba: u64) -> Track {
        let end = self.geometry().blocks().0;
        let (blocks, sectors) = self.track_with(Pba(lba.min(end - 1)));
        // Divided by the one after the other: the same, rounded down.
        let block = SimTime(sectors.div(self.revolution().0));
        Track { start: blocks.start, end: blocks.end, block }
    }

    fn cylinder_end(&self, lba: u64) -> u64 {
        let g = self.geometry();
        let track = g.track_of(Pba(lba.min(g.blocks().0 - 1)));
        let cylinder = self.target(Pba(lba)).cylinder();
        let mut next = TrackNo(track.0 + 1);
        while next.0 < g.tracks() && self.target(g.track_start(next)).cylinder() == cylinder {
            next.0 += 1;
        }
        g.track_start(next).0
    }
}
