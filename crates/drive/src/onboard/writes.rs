//! Writes: into the buffer and from there to the medium, or to the medium at once.

use super::{Medium, Onboard, Passed, Segment};
use smrlab_disk::Mechanics;
use smrlab_disk::model::WriteBack;
use smrlab_units::{Blocks, Dir, SimTime};

/// What is in the buffer only, and is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    pub start: u64,
    pub end: u64,
    /// When the medium has all of it.
    pub done: SimTime,
}

impl Onboard {
    /// Whether a write of so many blocks is acknowledged when it is in the buffer.
    pub(crate) fn takes(&self, blocks: u64, through: bool) -> bool {
        let b = &self.spec.buffer;
        !through && b.write_back != WriteBack::Off && blocks <= u64::from(b.segment_blocks)
    }

    /// How many writes, and how many of their blocks, it holds at most.
    pub(crate) fn write_room(&self) -> (usize, u64) {
        let b = &self.spec.buffer;
        (b.write_segments as usize, u64::from(b.write_segments) * u64::from(b.segment_blocks))
    }

    /// The medium has the oldest that was dirty.
    pub(super) fn settle(&mut self) {
        let Some(d) = self.dirty.pop_front() else { return };
        if self.spec.buffer.written_hits && d.start < d.end {
            self.keep(d.start, d.end);
        }
    }

    /// When there is room for a write that could be taken from `start` on, and where the dirty blocks begin that it is part
    /// of.
    fn room(&mut self, mut start: SimTime, lba: Option<u64>, blocks: u64) -> (SimTime, u64) {
        let (writes, most) = self.write_room();
        while let Some(&(done, n)) = self.unwritten.front()
            && (done <= start || self.unwritten_blocks + blocks > most)
        {
            start = start.max(done);
            self.unwritten.pop_front();
            self.unwritten_blocks -= n;
        }
        if let Some(d) = self.dirty.back().copied().filter(|d| Some(d.end) == lba) {
            self.dirty.pop_back();
            return (start, d.start);
        }
        while self.dirty.len() >= writes
            && let Some(d) = self.dirty.front()
        {
            start = start.max(d.done);
            self.settle();
        }
        (start, lba.unwrap_or(u64::MAX))
    }

    /// These blocks are in the buffer, and on the medium at `done`.
    fn buffered(&mut self, (start, end): (u64, u64), done: SimTime, blocks: u64) {
        self.dirty.push_back(Dirty { start, end, done });
        self.unwritten.push_back((done, blocks));
        self.unwritten_blocks += blocks;
    }

    /// Writes for a command.
    fn put(
        &mut self,
        begin: SimTime,
        data: SimTime,
        (lba, blocks): (u64, u64),
        m: &mut Mechanics,
    ) -> SimTime {
        let before = (m.head().track.0, m.head().cylinder());
        let any = self.spec.buffer.zero_latency[1];
        let end = Medium::write(m, begin, data, lba, Blocks(blocks), any);
        self.passed = Some(Passed { lba, blocks, start: begin, end, before });
        self.free = end;
        end
    }

    pub(super) fn write(
        &mut self,
        now: SimTime,
        lba: u64,
        blocks: u64,
        through: bool,
        m: &mut Mechanics,
    ) -> SimTime {
        self.catch_up_near(lba, lba + blocks, m);
        self.forget(lba, lba + blocks);
        if !self.takes(blocks, through) {
            return self.through(now, lba, blocks, m);
        }
        self.counters.buffered += 1;
        let (start, from) = self.room(self.over(now, self.spec.write_hit), Some(lba), blocks);
        let begin = self.stop(start, m).max(self.free);
        let data = self.fed(start, lba, blocks, m);
        let last = self.put(begin, data, (lba, blocks), m);
        self.buffered((from, lba + blocks), last, blocks);
        start + self.bus(Dir::Write, blocks)
    }

    /// The earliest time for a write's first block such that the bus, which begins at `start`, keeps up with the medium.
    fn fed(&mut self, start: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        m.look_at(smrlab_units::Pba(lba));
        let all = self.bus(Dir::Write, blocks);
        let start = start + self.spec.write_delay;
        start + self.bus(Dir::Write, 1).max(all.since(SimTime(self.track(lba, m).block.0 * (blocks - 1))))
    }

    fn through(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        self.counters.through += 1;
        let over = self.over(now, self.spec.write_miss);
        let begin = self.stop(over.max(self.free), m);
        while !self.dirty.is_empty() {
            self.settle();
        }
        let data = self.fed(over, lba, blocks, m);
        let last = self.put(begin, data, (lba, blocks), m);
        self.dirty.push_back(Dirty { start: lba, end: lba + blocks, done: last });
        last.max(over + self.bus(Dir::Write, blocks))
    }

    /// Takes a write that comes at `now` into the buffer, from where a scheduler will have it written; answers when the
    /// command began and when it completes.
    pub(crate) fn accept(&mut self, now: SimTime, blocks: u64, m: &mut Mechanics) -> (SimTime, SimTime) {
        let start = self.begin(now);
        self.catch_up(m);
        self.counters.buffered += 1;
        let done = self.over(start, self.spec.write_hit) + self.bus(Dir::Write, blocks);
        (start, self.answered(Dir::Write, done, false))
    }

    /// Writes what was taken before, from `now` on but not before `data`.
    pub(crate) fn destage(
        &mut self,
        now: SimTime,
        data: SimTime,
        (lba, blocks): (u64, u64),
        m: &mut Mechanics,
    ) {
        self.forget(lba, lba + blocks);
        let begin = self.stop(now, m).max(self.free);
        let last = self.put(begin, data, (lba, blocks), m);
        self.dirty.push_back(Dirty { start: lba, end: lba + blocks, done: last });
    }

    /// A write of several operations was taken when there was room for it; answers when.
    pub(crate) fn take_several(&mut self, now: SimTime, blocks: u64) -> SimTime {
        self.counters.buffered += 1;
        self.room(self.over(now, self.spec.write_hit), None, blocks).0
    }

    /// What [`take_several`](Self::take_several) took is on the medium at `done`.
    pub(crate) fn took_several(&mut self, done: SimTime, blocks: u64) {
        self.buffered((u64::MAX, u64::MAX), done, blocks);
    }

    /// The medium is written, by whatever: what the buffer holds of these blocks is out of date.
    pub(crate) fn forget(&mut self, lba: u64, end: u64) {
        for s in self.segments.iter_mut().filter(|s| s.meets(lba, end)) {
            *s = Segment::default();
        }
        if self.ahead.is_some_and(|a| self.segments[a.segment].used == 0) {
            self.ahead = None;
        }
    }
}
