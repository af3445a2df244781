//! The drive's own controller: command overheads, the bus, and a buffer in segments with read-ahead and write-back.
//!
//! A pure state machine over a [`Medium`]. The medium goes on by itself after a command (it reads ahead, it writes what the
//! buffer took); how far it came is worked out when the next command needs to know, in closed form: no event is spent on a
//! sector. Commands are served one at a time, in the order in which they are given.

mod medium;
#[cfg(test)]
mod tests;

pub use medium::Medium;

use smrlab_disk::model::{ControllerSpec, ReadAhead, WriteBack};
use smrlab_units::{Blocks, Dir, SimTime};

/// What the buffer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads of which the buffer had everything.
    pub hits: u64,
    /// Reads of which it had the beginning, or was about to.
    pub partial_hits: u64,
    /// Other reads.
    pub misses: u64,
    /// Writes that were acknowledged when they were in the buffer.
    pub buffered: u64,
    /// Writes that waited for the medium.
    pub through: u64,
    /// Blocks read ahead.
    pub read_ahead: u64,
}

/// Consecutive blocks in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    /// When it was used last, counted in commands; 0: empty.
    used: u64,
}

/// Reading ahead into a segment.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    segment: usize,
    /// The next block, since when, and where it ends.
    from: u64,
    began: SimTime,
    to: u64,
    /// Where the stream of reads began.
    stream: u64,
}

/// What is in the buffer only, and is being written.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    start: u64,
    end: u64,
    /// When the medium has all of it.
    done: SimTime,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Onboard {
    spec: ControllerSpec,
    segments: Vec<Segment>,
    ahead: Option<Ahead>,
    dirty: Option<Dirty>,
    last: Dir,
    /// One past the last block that was read, and whether the present read began there.
    read_end: u64,
    sequential: bool,
    commands: u64,
    /// When the medium is free of what it was told to do.
    free: SimTime,
    counters: Counters,
}

impl Onboard {
    /// An empty buffer.
    pub fn new(spec: ControllerSpec) -> Self {
        Self {
            segments: vec![Segment::default(); spec.buffer.segments as usize],
            ahead: None,
            dirty: None,
            last: Dir::Write,
            read_end: u64::MAX,
            sequential: false,
            commands: 0,
            free: SimTime::ZERO,
            counters: Counters::default(),
            spec,
        }
    }

    /// What the buffer has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When the medium will be free of everything that it must finish.
    pub fn free_at(&self) -> SimTime {
        self.free
    }

    /// Serves a command that arrives at `now`; answers when it completes.
    pub fn serve(&mut self, now: SimTime, dir: Dir, lba: u64, blocks: u64, m: &mut impl Medium) -> SimTime {
        self.commands += 1;
        if self.dirty.is_some_and(|d| d.done <= now) {
            self.settle();
        }
        self.read_on(now, m);
        let done = match dir {
            Dir::Read => self.read(now, lba, blocks, m),
            Dir::Write => self.write(now, lba, blocks, m),
        };
        self.last = dir;
        done + self.spec.done[dir as usize]
    }

    fn bus(&self, dir: Dir, blocks: u64) -> SimTime {
        SimTime(self.spec.bus[dir as usize].0 * blocks)
    }

    /// The medium has what was dirty.
    fn settle(&mut self) {
        let Some(d) = self.dirty.take() else { return };
        if self.spec.buffer.written_hits {
            let s = self.victim();
            self.segments[s] = Segment { start: d.start, end: d.end, used: self.commands };
        }
    }

    /// Notes how far reading ahead has come at `now`.
    fn read_on(&mut self, now: SimTime, m: &mut impl Medium) {
        let Some(mut a) = self.ahead.take() else { return };
        let most = a.to - a.from;
        let done = m.passed(a.began, a.from, Blocks(most), now).0;
        if done > 0 {
            let (_, end) = m.read(a.began, a.from, Blocks(done), Blocks(1), false);
            (a.from, a.began) = (a.from + done, end);
            self.counters.read_ahead += done;
            let size = u64::from(self.spec.buffer.segment_blocks);
            let s = &mut self.segments[a.segment];
            s.end = a.from;
            s.start = s.start.max(s.end.saturating_sub(size));
        }
        if done < most {
            self.ahead = Some(a);
        }
    }

    /// Reading ahead stops; the medium can begin with something else when the block under the head has passed.
    fn stop(&mut self, at: SimTime, m: &mut impl Medium) -> SimTime {
        self.read_on(at, m);
        self.ahead = None;
        at
    }

    /// The segment that holds `lba`, or would with its next block.
    fn find(&self, lba: u64) -> Option<usize> {
        let inside = |s: &Segment| s.used > 0 && s.start <= lba && lba < s.end;
        let next = |i: usize| self.ahead.is_some_and(|a| a.segment == i && a.from == lba);
        (0..self.segments.len()).find(|&i| inside(&self.segments[i]) || next(i))
    }

    /// The segment to use anew: an empty one, or the one that was used longest ago.
    fn victim(&self) -> usize {
        (0..self.segments.len()).min_by_key(|&i| self.segments[i].used).unwrap_or(0)
    }

    fn read(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut impl Medium) -> SimTime {
        let after = self.last as usize;
        let end = lba + blocks;
        self.sequential = lba == self.read_end;
        self.read_end = end;
        let bus = self.bus(Dir::Read, blocks);
        if let Some(d) = self.dirty
            && d.start < end
            && lba < d.end
        {
            if self.spec.buffer.written_hits && d.start <= lba && end <= d.end {
                self.counters.hits += 1;
                return now + self.spec.read_hit[after] + bus;
            }
            self.free = self.free.max(d.done);
            self.settle();
        }
        let Some(i) = self.find(lba) else { return self.miss(now, lba, blocks, m) };
        self.segments[i].used = self.commands;
        let start = now + self.spec.read_hit[after];
        if end <= self.segments[i].end {
            self.counters.hits += 1;
            self.extend(i, end, start, m);
            return start + bus;
        }
        self.counters.partial_hits += 1;
        let from = self.segments[i].end;
        if let Some(a) = self.ahead.filter(|a| a.segment == i) {
            // The rest is on its way.
            let (_, last) = m.preview(a.began, a.from, Blocks(end - a.from));
            let (_, reached) = m.read(a.began, a.from, Blocks(end - a.from), Blocks(1), false);
            debug_assert_eq!(last, reached);
            self.filled(i, end);
            self.ahead = None;
            self.begin_ahead(i, end, reached, a.stream, m);
            return (start + bus).max(self.drained(end - a.from, end, reached, m));
        }
        let begin = self.stop(start, m).max(self.free);
        let (first, last) = m.read(begin, from, Blocks(end - from), Blocks(1), false);
        self.filled(i, end);
        self.begin_ahead(i, end, last, lba, m);
        (first + self.bus(Dir::Read, end - from)).max(start + bus).max(self.drained(end - from, end, last, m))
    }

    fn miss(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut impl Medium) -> SimTime {
        self.counters.misses += 1;
        let start = (now + self.spec.read_miss[self.last as usize]).max(self.free);
        let begin = self.stop(start, m);
        let b = self.spec.buffer;
        let any = b.zero_latency[0];
        // What has to be gathered before the bus is asked for.
        let gather = (blocks * u64::from(self.spec.read_gather) / 1000).max(1);
        let (first, last) = m.read(begin, lba, Blocks(blocks), Blocks(gather), any);
        let i = self.victim();
        let passed = if b.passing { m.passing(lba) } else { 0 };
        let passed = passed.min(u64::from(b.segment_blocks).saturating_sub(blocks));
        self.segments[i] = Segment { start: lba - passed, end: lba, used: self.commands };
        self.filled(i, lba + blocks);
        self.begin_ahead(i, lba + blocks, last, lba, m);
        (first + self.bus(Dir::Read, blocks)).max(self.drained(blocks, lba + blocks, last, m))
    }

    /// When the bus can have delivered what was read last, `blocks` up to `end`, of which the last one passed the head at
    /// `last`: all of the last track, which came in one go.
    fn drained(&self, blocks: u64, end: u64, last: SimTime, m: &impl Medium) -> SimTime {
        let there = blocks.min(end - m.track_start(end - 1));
        let passing = SimTime(m.block_time(end - 1).0 * (there - 1));
        (last.since(passing) + self.bus(Dir::Read, there)).max(last + self.bus(Dir::Read, 1))
    }

    /// Segment `i` holds what was read up to `end`.
    fn filled(&mut self, i: usize, end: u64) {
        let s = &mut self.segments[i];
        s.end = end;
        s.start = s.start.max(end.saturating_sub(u64::from(self.spec.buffer.segment_blocks)));
    }

    fn begin_ahead(&mut self, segment: usize, from: u64, began: SimTime, stream: u64, m: &impl Medium) {
        let to = self.limit(from, stream, m);
        self.ahead = (to > from).then_some(Ahead { segment, from, began, to, stream });
    }

    /// A hit up to `end`: the segment's window moves on.
    fn extend(&mut self, i: usize, end: u64, now: SimTime, m: &impl Medium) {
        if let Some(mut a) = self.ahead.filter(|a| a.segment == i) {
            a.to = a.to.max(self.limit(end, a.stream, m));
            self.ahead = Some(a);
        } else if self.spec.buffer.ahead_on_hit && self.ahead.is_none() && self.dirty.is_none() {
            let from = self.segments[i].end;
            let to = self.limit(end, end - 1, m).max(from);
            let began = now.max(self.free);
            self.ahead = (to > from).then_some(Ahead { segment: i, from, began, to, stream: end - 1 });
        }
    }

    /// How far to read ahead behind a request that ended at `end`.
    fn limit(&self, end: u64, stream: u64, m: &impl Medium) -> u64 {
        let b = &self.spec.buffer;
        let most = end + u64::from(b.read_ahead_blocks);
        let to = match b.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::Segment => most,
            ReadAhead::Track => m.track_end(end - 1),
            ReadAhead::Cylinder => m.cylinder_end(end - 1),
            ReadAhead::TwoTracks => {
                let track = m.track_end(end - 1);
                if u64::from(b.segment_blocks) < track - m.track_start(end - 1) {
                    // A track would wash out its own beginning: only what is read in sequence is read ahead.
                    if self.sequential { most } else { end }
                } else if m.track_end(stream) < track {
                    m.track_end(track)
                } else {
                    track
                }
            }
        };
        let whole = b.read_ahead == ReadAhead::TwoTracks;
        let to = if whole { to } else { to.min(most) };
        to.min(m.blocks()).max(end)
    }

    fn write(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut impl Medium) -> SimTime {
        let after = self.last as usize;
        let end = lba + blocks;
        self.forget(lba, end);
        let bus = self.bus(Dir::Write, blocks);
        let b = self.spec.buffer;
        let appends = self.dirty.is_some_and(|d| d.end == lba);
        let fits = blocks <= u64::from(b.segment_blocks);
        let buffered = match b.write_back {
            WriteBack::Off => false,
            WriteBack::Append | WriteBack::On => fits,
        };
        if !buffered {
            return self.through(now, lba, blocks, m);
        }
        self.counters.buffered += 1;
        let mut start = now + self.spec.write_hit[after];
        let mut from = lba;
        if let Some(d) = self.dirty {
            if appends {
                from = d.start;
            } else {
                start = start.max(d.done);
                self.settle();
            }
        }
        let begin = self.stop(start, m).max(self.free);
        let data = self.fed(start, lba, blocks, m);
        let last = m.write(begin, data, lba, Blocks(blocks), b.zero_latency[1]);
        self.free = last;
        self.dirty = Some(Dirty { start: from, end, done: last });
        start + bus
    }

    /// The earliest time for a write's first block such that the bus, which begins at `start`, keeps up with the medium.
    fn fed(&self, start: SimTime, lba: u64, blocks: u64, m: &impl Medium) -> SimTime {
        let all = self.bus(Dir::Write, blocks);
        let start = start + self.spec.write_delay;
        start + self.bus(Dir::Write, 1).max(all.since(SimTime(m.block_time(lba).0 * (blocks - 1))))
    }

    fn through(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut impl Medium) -> SimTime {
        self.counters.through += 1;
        let start = (now + self.spec.write_miss[self.last as usize]).max(self.free);
        let begin = self.stop(start, m);
        self.settle();
        let any = self.spec.buffer.zero_latency[1];
        let data = self.fed(now + self.spec.write_miss[self.last as usize], lba, blocks, m);
        let last = m.write(begin, data, lba, Blocks(blocks), any);
        self.free = last;
        self.dirty = Some(Dirty { start: lba, end: lba + blocks, done: last });
        last.max(now + self.spec.write_miss[self.last as usize] + self.bus(Dir::Write, blocks))
    }

    /// What is overwritten is no longer in the buffer.
    fn forget(&mut self, lba: u64, end: u64) {
        for s in self.segments.iter_mut().filter(|s| s.start < end && lba < s.end) {
            *s = Segment::default();
        }
        if self.ahead.is_some_and(|a| self.segments[a.segment].used == 0) {
            self.ahead = None;
        }
    }
}
