//! What a request of several media operations, or of none, needs of the buffer: its operations are timed one by one as without one.

use super::DriveBuffer;
use super::dirty::Dirty;
use smrlab_disk::Mechanics;
use smrlab_units::{Dir, SimTime};

impl DriveBuffer {
    /// When the overhead of a read is over, of whose `all` operations the buffer has `held`.
    pub(crate) fn several_read(&mut self, start: SimTime, held: usize, all: usize) -> SimTime {
        let (counter, overhead) = match held {
            _ if held == all => (&mut self.counters.hits, self.spec.read_hit),
            0 => (&mut self.counters.misses, self.spec.read_miss),
            _ => (&mut self.counters.partial_hits, self.spec.read_miss),
        };
        *counter += 1;
        self.front.over(start, overhead)
    }

    /// Blocks that such a read had from the medium at `end`; reads ahead behind them where they were the `last`.
    pub(crate) fn was_read(&mut self, lba: u64, blocks: u64, end: SimTime, last: bool, m: &Mechanics) {
        if let Some(i) = self.keep(lba, lba + blocks).filter(|_| last) {
            self.go_on(i, lba + blocks, end, lba, m);
        }
    }

    /// When the bus can have delivered what was read last, `blocks` up to `end`, of which the last one passed the head at `last`.
    pub(crate) fn drained(&mut self, blocks: u64, end: u64, last: SimTime, m: &Mechanics) -> SimTime {
        self.medium.drained((blocks, end), last, self.bus(Dir::Read, 1), m)
    }

    /// When the overhead of a write is over that waits for the medium.
    pub(crate) fn several_through(&mut self, start: SimTime) -> SimTime {
        self.counters.through += 1;
        self.front.over(start, self.spec.write_miss)
    }

    /// A write was taken when there was room for it; answers when.
    pub(crate) fn take_several(&mut self, now: SimTime, blocks: u64) -> SimTime {
        self.counters.buffered += 1;
        self.room(self.front.over(now, self.spec.write_hit), None, blocks).0
    }

    /// What [`take_several`](Self::take_several) took is on the medium at `done`.
    pub(crate) fn took_several(&mut self, done: SimTime, blocks: u64) {
        self.writes.take(Dirty::scattered(done), blocks);
    }
}
