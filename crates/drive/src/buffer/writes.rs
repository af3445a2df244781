//! Writes of one media operation: into the buffer and from there to the medium, or to the medium at once.

use super::DriveBuffer;
use super::dirty::Dirty;
use smrlab_disk::Mechanics;
use smrlab_disk::model::WriteBack;
use smrlab_units::{Dir, Pba, SimTime};

impl DriveBuffer {
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

    /// Another command: notes what is on the medium at `now`.
    #[inline]
    pub(super) fn settle_until(&mut self, now: SimTime) {
        self.segments.next_command();
        while self.writes.oldest().is_some_and(|d| d.done <= now) {
            self.settle();
        }
    }

    /// The medium has the oldest that was dirty.
    #[inline]
    pub(super) fn settle(&mut self) {
        let Some(d) = self.writes.settle() else { return };
        if self.spec.buffer.written_hits && d.start < d.end {
            self.keep(d.start, d.end);
        }
    }

    /// When there is room for a write that could be taken from `start` on, and where the dirty blocks begin that it is part
    /// of.
    pub(super) fn room(&mut self, start: SimTime, lba: Option<u64>, blocks: u64) -> (SimTime, u64) {
        let (writes, most) = self.write_room();
        let mut start = self.writes.room(start, blocks, most);
        if let Some(begin) = lba.and_then(|lba| self.writes.continued(lba)) {
            return (start, begin);
        }
        while self.writes.len() >= writes
            && let Some(d) = self.writes.oldest()
        {
            start = start.max(d.done);
            self.settle();
        }
        (start, lba.unwrap_or(u64::MAX))
    }

    /// Serves a write whose overhead begins at `now`; answers when the host is done with it.
    #[inline]
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
        let over = self.front.over(now, self.spec.write_hit);
        let (start, from) = self.room(over, Some(lba), blocks);
        let begin = self.stop(start, m).max(self.medium.free);
        let data = self.fed(start, lba, blocks, m);
        let done = self.put(begin, data, (lba, blocks), m);
        self.writes.take(Dirty { start: from, end: lba + blocks, done }, blocks);
        start + self.bus(Dir::Write, blocks)
    }

    /// Writes for a command.
    #[inline]
    fn put(
        &mut self,
        begin: SimTime,
        data: SimTime,
        (lba, blocks): (u64, u64),
        m: &mut Mechanics,
    ) -> SimTime {
        self.medium.write(begin, data, (lba, blocks), self.spec.buffer.zero_latency[1], m)
    }

    /// The earliest time for a write's first block such that the bus, which begins at `start`, keeps up with the medium.
    #[inline]
    fn fed(&mut self, start: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        m.look_at(Pba(lba));
        let all = self.bus(Dir::Write, blocks);
        let passing = SimTime(self.medium.track(lba, m).block.0 * (blocks - 1));
        start + self.spec.write_delay + self.bus(Dir::Write, 1).max(all.since(passing))
    }

    fn through(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        self.counters.through += 1;
        let over = self.front.over(now, self.spec.write_miss);
        let begin = self.stop(over.max(self.medium.free), m);
        while !self.writes.is_empty() {
            self.settle();
        }
        let data = self.fed(over, lba, blocks, m);
        let done = self.put(begin, data, (lba, blocks), m);
        self.writes.note(Dirty { start: lba, end: lba + blocks, done });
        done.max(over + self.bus(Dir::Write, blocks))
    }

    /// Takes a write that comes at `now` into the buffer, from where a scheduler will have it written; answers when the
    /// command began and when it completes.
    pub(crate) fn accept(&mut self, now: SimTime, blocks: u64, m: &mut Mechanics) -> (SimTime, SimTime) {
        let start = self.begin(now);
        self.catch_up(m);
        self.counters.buffered += 1;
        let done = self.front.over(start, self.spec.write_hit) + self.bus(Dir::Write, blocks);
        (start, self.answered(Dir::Write, done, false))
    }

    /// Answers a request that is refused and whose command begins at `start`, as quickly as one for which the medium is not needed; nothing
    /// goes over the bus. Answers when it completes.
    pub(crate) fn refuse(&mut self, start: SimTime, dir: Dir, m: &mut Mechanics) -> SimTime {
        self.catch_up(m);
        let hit = if dir == Dir::Read { self.spec.read_hit } else { self.spec.write_hit };
        let over = self.front.over(start, hit);
        self.answered(dir, over, false)
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
        let begin = self.stop(now, m).max(self.medium.free);
        let done = self.put(begin, data, (lba, blocks), m);
        self.writes.note(Dirty { start: lba, end: lba + blocks, done });
    }

    /// Answers a read at `now` from what a queue holds of writes; answers when the command began and when it completes.
    pub(crate) fn answer(&mut self, now: SimTime, blocks: u64, m: &mut Mechanics) -> (SimTime, SimTime) {
        let start = self.begin(now);
        self.catch_up(m);
        self.counters.hits += 1;
        let done = self.front.over(start, self.spec.read_hit) + self.bus(Dir::Read, blocks);
        (start, self.answered(Dir::Read, done, false))
    }
}
