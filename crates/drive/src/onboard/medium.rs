//! What the controller works on: blocks that pass a head.

use smrlab_disk::{Mechanics, TrackNo};
use smrlab_units::{Blocks, Dir, Pba, SimTime};

/// Blocks by their number, on a medium that takes time.
pub trait Medium {
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

    /// How many of the blocks right before `lba` on its track passed the head before the last transfer began.
    fn passing(&self, lba: u64) -> u64;

    /// How long the head takes to pass a block's length at `lba`.
    fn block_time(&self, lba: u64) -> SimTime;

    /// [`transfer`](Self::transfer) of a read, without doing it.
    fn preview(&self, start: SimTime, lba: u64, blocks: Blocks) -> (SimTime, SimTime);

    /// How many of at most `most` blocks that are read from `start` on have passed the head at `until`.
    fn passed(&self, start: SimTime, lba: u64, most: Blocks, until: SimTime) -> Blocks;

    /// The first block of the track that holds `lba`.
    fn track_start(&self, lba: u64) -> u64;

    /// One past the last block of the track that holds `lba`.
    fn track_end(&self, lba: u64) -> u64;

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
        let (_, gathered) = Mechanics::preview(self, start, Dir::Read, Pba(lba), gather);
        (gathered, self.service(start, Dir::Read, Pba(lba), blocks))
    }

    fn write(&mut self, start: SimTime, data: SimTime, lba: u64, blocks: Blocks, any: bool) -> SimTime {
        if any && data <= start {
            return self.service_any(start, Dir::Write, Pba(lba), blocks).1;
        }
        self.service_from(start, data, Dir::Write, Pba(lba), blocks)
    }

    fn passing(&self, lba: u64) -> u64 {
        let waited = self.phases().rotation;
        (waited.0 / self.block_time(lba).0.max(1)).min(lba - self.track_start(lba))
    }

    fn block_time(&self, lba: u64) -> SimTime {
        let g = self.geometry();
        let sectors = g.zone_of(g.track_of(Pba(lba))).sectors;
        SimTime(60_000_000_000 / (u64::from(self.rpm()) * u64::from(sectors)))
    }

    fn preview(&self, start: SimTime, lba: u64, blocks: Blocks) -> (SimTime, SimTime) {
        Mechanics::preview(self, start, Dir::Read, Pba(lba), blocks)
    }

    fn passed(&self, start: SimTime, lba: u64, most: Blocks, until: SimTime) -> Blocks {
        Mechanics::passed(self, start, Dir::Read, Pba(lba), most, until)
    }

    fn track_start(&self, lba: u64) -> u64 {
        Mechanics::geometry(self).track_start(self.geometry().track_of(Pba(lba))).0
    }

    fn track_end(&self, lba: u64) -> u64 {
        let g = self.geometry();
        let track = g.track_of(Pba(lba.min(g.blocks().0 - 1)));
        g.track_start(TrackNo(track.0 + 1)).0
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
