//! The drive's own controller: command overheads, the bus, and a buffer in segments with read-ahead and write-back.
//!
//! A pure state machine over the mechanics. The medium goes on by itself after a command (it reads ahead, it writes what the
//! buffer took); how far it came is worked out when the next command needs to know, in closed form: no event is spent on a
//! sector. What was read is kept by its place on the medium, so that reading ahead works behind any translation layer.
//!
//! First come, first served, commands are served one at a time, in the order in which they are given. Behind a scheduler the
//! [controller](crate::controller) keeps what is to be written, and has it written when its turn comes.

mod counters;
mod medium;
mod segment;
#[cfg(test)]
mod tests;
mod writes;

pub use counters::Counters;
pub(crate) use medium::Medium;
pub use medium::Track;

use segment::Segment;
use smrlab_disk::Mechanics;
use smrlab_disk::model::{ControllerSpec, ReadAhead};
use smrlab_stl::MediaOp;
use smrlab_units::{Blocks, Dir, Pba, SimTime};
use std::collections::VecDeque;
use writes::Dirty;

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

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Onboard {
    spec: ControllerSpec,
    segments: Vec<Segment>,
    ahead: Option<Ahead>,
    /// A command began then, and how far reading ahead had come was not worked out yet: most commands stop it a little later and
    /// need not know.
    unnoted: Option<SimTime>,
    /// What is in the buffer and being written, in the order in which the medium gets it.
    dirty: VecDeque<Dirty>,
    /// The same command by command: when it is on the medium, and blocks.
    unwritten: VecDeque<(SimTime, u64)>,
    unwritten_blocks: u64,
    last: Dir,
    /// Blocks that the present read asks for.
    asked: u64,
    commands: u64,
    /// When the medium is free of what it was told to do.
    free: SimTime,
    /// When the last command was answered.
    front: SimTime,
    /// A scheduler chose the present command then; its overhead may have passed before.
    chosen: SimTime,
    /// Commands wait in a queue: the medium's do not keep others from being answered.
    queued: bool,
    passed: Option<Passed>,
    /// The track that was looked at last.
    at: Track,
    counters: Counters,
}

impl Onboard {
    /// An empty buffer.
    pub fn new(spec: ControllerSpec) -> Self {
        Self {
            segments: vec![Segment::default(); spec.buffer.segments as usize],
            ahead: None,
            unnoted: None,
            dirty: VecDeque::new(),
            unwritten: VecDeque::new(),
            unwritten_blocks: 0,
            last: Dir::Write,
            asked: 0,
            commands: 0,
            free: SimTime::ZERO,
            front: SimTime::ZERO,
            chosen: SimTime::ZERO,
            queued: false,
            passed: None,
            at: Track::default(),
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

    /// What it is.
    pub fn spec(&self) -> &ControllerSpec {
        &self.spec
    }

    /// Commands wait in a queue before it: answers come in another order than commands.
    pub(crate) fn behind_queue(&mut self) {
        self.queued = true;
    }

    /// When a command that comes at `now` begins, with everything noted that happened until then but reading ahead, which
    /// [`catch_up`](Self::catch_up) notes.
    #[inline]
    pub(crate) fn begin(&mut self, now: SimTime) -> SimTime {
        debug_assert!(self.unnoted.is_none(), "the command before left reading ahead behind");
        let start = now.max(self.front);
        self.chosen = SimTime::ZERO;
        self.settle_until(start);
        self.unnoted = Some(start);
        start
    }

    /// Notes how far reading ahead had come when the present command began.
    #[inline]
    pub(crate) fn catch_up(&mut self, m: &mut Mechanics) {
        if let Some(began) = self.unnoted.take() {
            self.read_on(began, m);
        }
    }

    /// The same where it could matter to a command on blocks up to `end`: these are near what is read ahead.
    fn catch_up_near(&mut self, lba: u64, end: u64, m: &mut Mechanics) {
        let Some(a) = &self.ahead else { return };
        let s = &self.segments[a.segment];
        if s.start <= end && lba <= a.to {
            self.catch_up(m);
        }
    }

    /// A scheduler chooses a command now.
    pub(crate) fn choose(&mut self, now: SimTime, m: &mut Mechanics) {
        self.chosen = now;
        self.note(now, m);
    }

    /// Notes what has happened until `now`.
    pub(crate) fn note(&mut self, now: SimTime, m: &mut Mechanics) {
        self.settle_until(now);
        self.read_on(now, m);
    }

    /// Another command: notes what is on the medium at `now`.
    #[inline]
    fn settle_until(&mut self, now: SimTime) {
        self.commands += 1;
        while self.dirty.front().is_some_and(|d| d.done <= now) {
            self.settle();
        }
    }

    /// The medium is at other work until `free`.
    pub(crate) fn engaged(&mut self, free: SimTime) {
        self.free = self.free.max(free);
    }

    /// Serves a command that arrives at `now`; answers when it completes.
    pub fn serve(&mut self, now: SimTime, dir: Dir, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        let start = self.begin(now);
        self.command(start, (dir, false), lba, blocks, m)
    }

    /// Serves a command that begins at `start` as [`begin`](Self::begin) said, or a scheduler; `through`: a write that is answered when
    /// it is on the medium.
    pub(crate) fn command(
        &mut self,
        start: SimTime,
        (dir, through): (Dir, bool),
        lba: u64,
        blocks: u64,
        m: &mut Mechanics,
    ) -> SimTime {
        self.passed = None;
        let done = match dir {
            Dir::Read => self.read(start, lba, blocks, m),
            Dir::Write => self.write(start, lba, blocks, through, m),
        };
        self.answered(dir, done, self.passed.is_some())
    }

    /// Answers a read at `now` from what a queue holds of writes; answers when the command began and when it completes.
    pub(crate) fn answer(&mut self, now: SimTime, blocks: u64, m: &mut Mechanics) -> (SimTime, SimTime) {
        let start = self.begin(now);
        self.catch_up(m);
        self.counters.hits += 1;
        let done = self.over(start, self.spec.read_hit) + self.bus(Dir::Read, blocks);
        (start, self.answered(Dir::Read, done, false))
    }

    /// When the overhead is over of a read of several operations, of which the buffer has some.
    pub(crate) fn several_read(&mut self, start: SimTime, (held, all): (usize, usize)) -> SimTime {
        let (counter, overhead) = match held {
            _ if held == all => (&mut self.counters.hits, self.spec.read_hit),
            0 => (&mut self.counters.misses, self.spec.read_miss),
            _ => (&mut self.counters.partial_hits, self.spec.read_miss),
        };
        *counter += 1;
        self.over(start, overhead)
    }

    /// When the overhead of a write of several operations is over that waits for the medium.
    pub(crate) fn several_through(&mut self, start: SimTime) -> SimTime {
        self.counters.through += 1;
        self.over(start, self.spec.write_miss)
    }

    /// An operation was carried out by whatever: what the buffer holds of blocks that were written is out of date.
    pub(crate) fn carried_out(&mut self, op: &MediaOp) {
        if op.dir == Dir::Write {
            self.forget(op.pba.0, op.pba.0 + op.blocks.0);
        }
    }

    /// Whether anything passed the head for the last command.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        self.passed.is_some()
    }

    /// What passed the head for the last command.
    pub(crate) fn take_passed(&mut self) -> Option<Passed> {
        self.passed.take()
    }

    /// A command of this kind is over at `done`, on the `medium` or in the buffer; answers when it completes.
    pub(crate) fn answered(&mut self, dir: Dir, done: SimTime, medium: bool) -> SimTime {
        self.last = dir;
        let done = done + self.spec.done[dir as usize];
        if !self.queued || !medium {
            self.front = self.front.max(done);
        }
        done
    }

    /// When the overhead of a command that begins at `now` is over.
    pub(crate) fn over(&self, now: SimTime, overhead: [SimTime; 2]) -> SimTime {
        (now + overhead[self.last as usize]).max(self.chosen)
    }

    pub(crate) fn bus(&self, dir: Dir, blocks: u64) -> SimTime {
        SimTime(self.spec.bus[dir as usize].0 * blocks)
    }

    /// Notes how far reading ahead has come at `now`.
    fn read_on(&mut self, now: SimTime, m: &mut Mechanics) {
        let Some(mut a) = self.ahead.take() else { return };
        let most = a.to - a.from;
        let (Blocks(done), end) = m.read_until(a.began, Pba(a.from), Blocks(most), now);
        if done > 0 {
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
    pub(crate) fn stop(&mut self, at: SimTime, m: &mut Mechanics) -> SimTime {
        self.unnoted = None;
        self.read_on(at, m);
        self.ahead = None;
        at
    }

    /// The segment that holds `lba`, or would with its next block.
    #[inline]
    fn find(&self, lba: u64) -> Option<usize> {
        let inside = self.segments.iter().position(|s| s.has(lba));
        let next = self.ahead.filter(|a| a.from == lba).map(|a| a.segment);
        inside.into_iter().chain(next).min()
    }

    /// Puts blocks into an empty segment, or the one that was used longest ago, but not the one that is being read into;
    /// `None`: there is no other.
    fn keep(&mut self, start: u64, end: u64) -> Option<usize> {
        let i = segment::oldest(&self.segments, self.ahead.map(|a| a.segment))?;
        let size = u64::from(self.spec.buffer.segment_blocks);
        self.segments[i] = Segment { start: start.max(end.saturating_sub(size)), end, used: self.commands };
        Some(i)
    }

    /// Whether it has all of these blocks.
    pub(crate) fn holds(&self, lba: u64, blocks: u64) -> bool {
        let end = lba + blocks;
        match self.dirty.iter().rev().find(|d| d.start < end && lba < d.end) {
            Some(d) => self.spec.buffer.written_hits && d.start <= lba && end <= d.end,
            None => self.segments.iter().any(|s| s.has_all(lba, end)),
        }
    }

    fn read(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        let end = lba + blocks;
        self.asked = blocks;
        let bus = self.bus(Dir::Read, blocks);
        let start = self.over(now, self.spec.read_hit);
        self.catch_up_near(lba, end, m);
        if let Some(i) = self.dirty.iter().rposition(|d| (d.start < end) & (lba < d.end)) {
            self.catch_up(m);
            let d = self.dirty[i];
            if self.spec.buffer.written_hits && d.start <= lba && end <= d.end {
                self.counters.hits += 1;
                return start + bus;
            }
            self.free = self.free.max(d.done);
            (0..=i).for_each(|_| self.settle());
        }
        let Some(i) = self.find(lba) else { return self.miss(now, lba, blocks, m) };
        self.catch_up(m);
        self.segments[i].used = self.commands;
        if end <= self.segments[i].end {
            self.counters.hits += 1;
            self.extend(i, end, start, m);
            return start + bus;
        }
        self.counters.partial_hits += 1;
        let from = self.segments[i].end;
        if let Some(a) = self.ahead.filter(|a| a.segment == i) {
            // The rest is on its way.
            let rest = end - a.from;
            let (_, reached) = self.pass(a.began, now, (a.from, rest, 1, false), m);
            self.filled(i, end);
            self.ahead = None;
            self.begin_ahead(i, end, reached, a.stream, m);
            return (start + bus).max(self.drained(rest, end, reached, m));
        }
        let begin = self.stop(start, m).max(self.free);
        let (first, last) = self.pass(begin, begin, (from, end - from, 1, false), m);
        self.filled(i, end);
        self.begin_ahead(i, end, last, lba, m);
        (first + self.bus(Dir::Read, end - from)).max(start + bus).max(self.drained(end - from, end, last, m))
    }

    /// Reads `blocks` from `lba` on for a command, of which it is told from `shown` on; answers as [`Medium::read`].
    fn pass(
        &mut self,
        begin: SimTime,
        shown: SimTime,
        (lba, blocks, gather, any): (u64, u64, u64, bool),
        m: &mut Mechanics,
    ) -> (SimTime, SimTime) {
        let before = (m.head().track.0, m.head().cylinder());
        let (first, end) = Medium::read(m, begin, lba, Blocks(blocks), Blocks(gather), any);
        self.passed = Some(Passed { lba, blocks, start: shown.max(begin).min(end), end, before });
        self.free = self.free.max(end);
        (first, end)
    }

    fn miss(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        self.counters.misses += 1;
        let start = self.over(now, self.spec.read_miss).max(self.free);
        let mut begin = self.stop(start, m);
        let settle = self.spec.read_settle[self.last as usize];
        if settle > SimTime::ZERO && m.target(Pba(lba)).cylinder() == m.head().cylinder() {
            begin += settle;
        }
        let b = self.spec.buffer;
        let any = b.zero_latency[0];
        // What has to be gathered before the bus is asked for.
        let gather = (blocks * u64::from(self.spec.read_gather) / 1000).max(1);
        let (first, last) = self.pass(begin, begin, (lba, blocks, gather, any), m);
        let waited = m.phases().rotation;
        let passed = if b.passing { self.passing(lba, waited, m) } else { 0 };
        let passed = passed.min(u64::from(b.segment_blocks).saturating_sub(blocks));
        if let Some(i) = self.keep(lba - passed, lba + blocks) {
            self.begin_ahead(i, lba + blocks, last, lba, m);
        }
        (first + self.bus(Dir::Read, blocks)).max(self.drained(blocks, lba + blocks, last, m))
    }

    /// The track that holds a block.
    #[inline]
    pub(super) fn track(&mut self, lba: u64, m: &Mechanics) -> Track {
        if !(self.at.start..self.at.end).contains(&lba) {
            self.at = m.track(lba);
        }
        self.at
    }

    /// How many of the blocks right before `lba` on its track passed the head while it waited.
    fn passing(&mut self, lba: u64, waited: SimTime, m: &Mechanics) -> u64 {
        let track = self.track(lba, m);
        (waited.0 / track.block.0.max(1)).min(lba - track.start)
    }

    /// Blocks that a request of several operations read; reads ahead behind them where they were the `last`.
    pub(crate) fn was_read(&mut self, lba: u64, blocks: u64, end: SimTime, last: bool, m: &Mechanics) {
        if let Some(i) = self.keep(lba, lba + blocks).filter(|_| last) {
            self.begin_ahead(i, lba + blocks, end, lba, m);
        }
    }

    /// When the bus can have delivered what was read last, `blocks` up to `end`, of which the last one passed the head at
    /// `last`: all of the last track, which came in one go.
    pub(crate) fn drained(&mut self, blocks: u64, end: u64, last: SimTime, m: &Mechanics) -> SimTime {
        let track = self.track(end - 1, m);
        let there = blocks.min(end - track.start);
        let passing = SimTime(track.block.0 * (there - 1));
        (last.since(passing) + self.bus(Dir::Read, there)).max(last + self.bus(Dir::Read, 1))
    }

    /// Segment `i` holds what was read up to `end`.
    fn filled(&mut self, i: usize, end: u64) {
        let s = &mut self.segments[i];
        s.end = end;
        s.start = s.start.max(end.saturating_sub(u64::from(self.spec.buffer.segment_blocks)));
    }

    #[inline]
    fn begin_ahead(&mut self, segment: usize, from: u64, began: SimTime, stream: u64, m: &Mechanics) {
        let to = self.limit(from, stream, m);
        self.ahead = (to > from).then_some(Ahead { segment, from, began, to, stream });
    }

    /// A hit up to `end`: the segment's window moves on.
    fn extend(&mut self, i: usize, end: u64, now: SimTime, m: &Mechanics) {
        if let Some(mut a) = self.ahead.filter(|a| a.segment == i) {
            a.to = a.to.max(self.limit(end, a.stream, m));
            self.ahead = Some(a);
        } else if self.spec.buffer.ahead_on_hit && self.ahead.is_none() && self.dirty.is_empty() {
            let from = self.segments[i].end;
            let to = self.limit(end, end - 1, m).max(from);
            let began = now.max(self.free);
            self.ahead = (to > from).then_some(Ahead { segment: i, from, began, to, stream: end - 1 });
        }
    }

    /// How far to read ahead behind a request that ended at `end`.
    #[inline]
    fn limit(&mut self, end: u64, stream: u64, m: &Mechanics) -> u64 {
        let b = self.spec.buffer;
        let most = u64::from(b.read_ahead_blocks);
        let room = u64::from(b.segment_blocks).saturating_sub(self.asked);
        let most = end + if b.keeps_requested { most.min(room) } else { most };
        let to = match b.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::Segment => most,
            ReadAhead::Track => self.track(end - 1, m).end,
            ReadAhead::Cylinder => m.cylinder_end(end - 1),
            ReadAhead::TwoTracks => {
                let track = self.track(end - 1, m);
                if stream < track.start { m.track(track.end).end } else { track.end }
            }
        };
        let whole = b.read_ahead == ReadAhead::TwoTracks;
        let to = if whole { to } else { to.min(most) };
        to.min(m.blocks()).max(end)
    }
}
