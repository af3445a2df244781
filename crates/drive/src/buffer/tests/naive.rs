//! A second buffer, written from what the pages say and not from the code: lists that are searched, reading ahead noted block by block at
//! every command, a head that goes from sector to sector. Random drives serve random commands, first come, first served and behind a queue;
//! every time, counter, segment and dirty piece must be the same.

mod compare;
mod disk;

pub(crate) use disk::{Disk, any_disk};

use crate::buffer::Counters;
use disk::us;
use smrlab_disk::model::ControllerSpec;
use smrlab_disk::model::{BufferSpec, ReadAhead, WriteBack};
use smrlab_units::rng::Rng;
use smrlab_units::{Dir, SimTime};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    start: u64,
    end: u64,
    used: u64,
}

/// What passed the head for a command: first block, number, from when, until when, and the block that had passed before.
type Shown = (u64, u64, u64, u64, u64);

pub(crate) struct Naive {
    pub spec: ControllerSpec,
    pub disk: Disk,
    held: Vec<Option<Held>>,
    /// Segment, next block, since when, up to which block, and where the stream began.
    ahead: Option<(usize, u64, u64, u64, u64)>,
    /// First block, end, when it is on the medium; oldest first.
    pub dirty: Vec<(u64, u64, u64)>,
    pub taken: Vec<(u64, u64)>,
    command: u64,
    asked: u64,
    last: usize,
    answered: u64,
    chosen: u64,
    queued: bool,
    pub free: u64,
    pub shown: Option<Shown>,
    pub counters: Counters,
}

impl Naive {
    pub(crate) fn new(spec: ControllerSpec, disk: Disk, queued: bool) -> Self {
        Self {
            held: vec![None; spec.buffer.segments as usize],
            spec,
            disk,
            ahead: None,
            dirty: Vec::new(),
            taken: Vec::new(),
            command: 0,
            asked: 0,
            last: Dir::Write as usize,
            answered: 0,
            chosen: 0,
            queued,
            free: 0,
            shown: None,
            counters: Counters::default(),
        }
    }

    fn over(&self, start: u64, overhead: [SimTime; 2]) -> u64 {
        (start + overhead[self.last].0).max(self.chosen)
    }

    pub(crate) fn begin(&mut self, now: u64) -> u64 {
        self.chosen = 0;
        let start = now.max(self.answered);
        self.note(start);
        start
    }

    /// All that has happened at `now`.
    pub(crate) fn note(&mut self, now: u64) {
        self.command += 1;
        while self.dirty.first().is_some_and(|d| d.2 <= now) {
            self.settle();
        }
        self.read_on(now);
    }

    fn settle(&mut self) {
        let d = self.dirty.remove(0);
        if self.spec.buffer.written_hits && d.0 < d.1 {
            self.keep(d.0, d.1);
        }
    }

    /// Block by block: what is not whole at `now` has not been read.
    fn read_on(&mut self, now: u64) {
        let Some((segment, from, since, to, first)) = self.ahead else { return };
        let (arrived, begun, ends) = self.disk.transfer(since, 0, Dir::Read, (from, to - from));
        let n = ends.iter().filter(|u| self.disk.ns(**u) <= now).count();
        if n > 0 && arrived < now {
            self.disk.leave(since, (arrived, begun), (from, n as u64), ends[n - 1]);
            self.counters.read_ahead += n as u64;
            self.extend(segment, from + n as u64);
            self.ahead = Some((segment, from + n as u64, self.disk.ready(), to, first));
        }
        if n as u64 == to - from {
            self.ahead = None;
        }
    }

    pub(crate) fn stop(&mut self, at: u64) -> u64 {
        self.read_on(at);
        self.ahead = None;
        at.max(self.disk.ready())
    }

    fn extend(&mut self, i: usize, end: u64) {
        let h = self.held[i].as_mut().unwrap();
        (h.end, h.start) = (end, h.start.max(end.saturating_sub(u64::from(self.spec.buffer.segment_blocks))));
    }

    pub(crate) fn keep(&mut self, start: u64, end: u64) -> Option<usize> {
        let taken = self.ahead.map(|a| a.0);
        let others = (0..self.held.len()).filter(|i| Some(*i) != taken);
        let i = others.min_by_key(|i| self.held[*i].map_or(0, |h| h.used))?;
        self.held[i] = Some(Held { start, end, used: self.command });
        self.extend(i, end);
        Some(i)
    }

    pub(crate) fn forget(&mut self, lba: u64, end: u64) {
        for i in 0..self.held.len() {
            if self.held[i].is_some_and(|h| h.start < end && lba < h.end) {
                self.held[i] = None;
                self.ahead = self.ahead.filter(|a| a.0 != i);
            }
        }
    }

    fn limit(&self, end: u64, first: u64) -> u64 {
        let (b, d) = (&self.spec.buffer, &self.disk);
        let mut most = u64::from(b.read_ahead_blocks);
        if b.keeps_requested {
            most = most.min(u64::from(b.segment_blocks).saturating_sub(self.asked));
        }
        let track = d.track(end - 1);
        let all = d.g.blocks().0;
        let cylinder = (end..).find(|p| *p >= all || d.cylinder(*p) != d.cylinder(end - 1)).unwrap();
        let to = match b.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::Segment => end + most,
            ReadAhead::Track => track.1.min(end + most),
            ReadAhead::Cylinder => cylinder.min(end + most),
            ReadAhead::TwoTracks if first < track.0 => d.track(track.1).1,
            ReadAhead::TwoTracks => track.1,
        };
        to.min(all).max(end)
    }

    pub(crate) fn go_on(&mut self, segment: usize, from: u64, since: u64, first: u64) {
        let to = self.limit(from, first);
        self.ahead = (to > from).then_some((segment, from, since, to, first));
    }

    pub(crate) fn bus(&self, dir: Dir, n: u64) -> u64 {
        self.spec.bus[dir as usize].0 * n
    }

    /// The bus follows the last track's blocks, which came in one go, and ends no sooner than a block behind the medium.
    pub(crate) fn drained(&self, (n, end): (u64, u64), last: u64) -> u64 {
        let there = n.min(end - self.disk.track(end - 1).0);
        let from = last.saturating_sub(self.disk.block(end - 1) * (there - 1));
        (from + self.bus(Dir::Read, there)).max(last + self.bus(Dir::Read, 1))
    }

    /// Reads from the medium; when the first `gather` blocks and all have passed.
    fn medium_read(
        &mut self,
        begin: u64,
        shown: u64,
        span: (u64, u64),
        (gather, any): (u64, bool),
    ) -> (u64, u64) {
        let before = self.disk.last;
        let (first, last) = if any {
            self.disk.serve_any(begin, Dir::Read, span)
        } else {
            let ends = self.disk.serve(begin, 0, Dir::Read, span);
            (ends[gather as usize - 1], ends[ends.len() - 1])
        };
        self.shown = Some((span.0, span.1, shown.max(begin).min(last), last, before));
        self.free = self.free.max(last);
        (first, last)
    }

    fn put(&mut self, begin: u64, data: u64, span: (u64, u64)) -> u64 {
        let before = self.disk.last;
        let last = if self.spec.buffer.zero_latency[1] && data <= begin {
            self.disk.serve_any(begin, Dir::Write, span).1
        } else {
            let ends = self.disk.serve(begin, if data > begin { data } else { 0 }, Dir::Write, span);
            ends[ends.len() - 1]
        };
        self.shown = Some((span.0, span.1, begin, last, before));
        self.free = last;
        last
    }

    fn read(&mut self, start: u64, lba: u64, n: u64) -> u64 {
        let end = lba + n;
        self.asked = n;
        if let Some(newest) = self.dirty.iter().rposition(|d| d.0 < end && lba < d.1) {
            let d = self.dirty[newest];
            if self.spec.buffer.written_hits && d.0 <= lba && end <= d.1 {
                self.counters.hits += 1;
                return self.over(start, self.spec.read_hit) + self.bus(Dir::Read, n);
            }
            self.free = self.free.max(d.2);
            (0..=newest).for_each(|_| self.settle());
        }
        let holds = |i: &usize| self.held[*i].is_some_and(|h| (h.start..h.end).contains(&lba));
        let next = |i: &usize| self.ahead.is_some_and(|a| a.0 == *i && a.1 == lba);
        let Some(i) = (0..self.held.len()).find(|i| holds(i) || next(i)) else {
            return self.miss(start, lba, n);
        };
        let command = self.command;
        let h = self.held[i].as_mut().unwrap();
        h.used = command;
        let has = h.end;
        let over = self.over(start, self.spec.read_hit);
        let delivered = over + self.bus(Dir::Read, n);
        if end <= has {
            self.counters.hits += 1;
            self.hit(i, has, end, over);
            return delivered;
        }
        self.counters.partial_hits += 1;
        let done = match self.ahead.filter(|a| a.0 == i) {
            Some((_, from, since, _, first)) => {
                let rest = end - from;
                let (_, last) = self.medium_read(since, start, (from, rest), (1, false));
                self.extend(i, end);
                self.go_on(i, end, last, first);
                self.drained((rest, end), last)
            }
            None => {
                let begin = self.stop(over).max(self.free);
                let (first, last) = self.medium_read(begin, begin, (has, end - has), (1, false));
                self.extend(i, end);
                self.go_on(i, end, last, lba);
                (first + self.bus(Dir::Read, end - has)).max(self.drained((end - has, end), last))
            }
        };
        done.max(delivered)
    }

    fn hit(&mut self, i: usize, has: u64, end: u64, over: u64) {
        if let Some(a) = self.ahead.filter(|a| a.0 == i) {
            self.ahead = Some((a.0, a.1, a.2, a.3.max(self.limit(end, a.4)), a.4));
        } else if self.spec.buffer.ahead_on_hit && self.ahead.is_none() && self.dirty.is_empty() {
            let to = self.limit(end, end - 1);
            self.ahead = (to > has).then_some((i, has, over.max(self.free), to, end - 1));
        }
    }

    fn miss(&mut self, start: u64, lba: u64, n: u64) -> u64 {
        self.counters.misses += 1;
        let over = self.over(start, self.spec.read_miss).max(self.free);
        let mut begin = self.stop(over);
        if self.disk.cylinder(self.disk.last) == self.disk.cylinder(lba) {
            begin += self.spec.read_settle[self.last].0;
        }
        let gather = (n * u64::from(self.spec.read_gather) / 1000).max(1);
        let any = self.spec.buffer.zero_latency[0];
        let (first, last) = self.medium_read(begin, begin, (lba, n), (gather, any));
        let mut passed = 0;
        if self.spec.buffer.passing {
            let turned = self.disk.begun_u.saturating_sub(self.disk.arrived * u64::from(self.disk.spec.rpm));
            passed = (self.disk.ns(turned) / self.disk.block(lba)).min(lba - self.disk.track(lba).0);
            passed = passed.min(u64::from(self.spec.buffer.segment_blocks).saturating_sub(n));
        }
        if let Some(i) = self.keep(lba - passed, lba + n) {
            self.go_on(i, lba + n, last, lba);
        }
        (first + self.bus(Dir::Read, n)).max(self.drained((n, lba + n), last))
    }

    fn fed(&self, from: u64, lba: u64, n: u64) -> u64 {
        let ahead = self.bus(Dir::Write, n).saturating_sub(self.disk.block(lba) * (n - 1));
        from + self.spec.write_delay.0 + self.bus(Dir::Write, 1).max(ahead)
    }

    fn write(&mut self, start: u64, (lba, n): (u64, u64), through: bool) -> u64 {
        self.forget(lba, lba + n);
        let b = self.spec.buffer;
        if through || b.write_back == WriteBack::Off || n > u64::from(b.segment_blocks) {
            self.counters.through += 1;
            let over = self.over(start, self.spec.write_miss);
            let begin = self.stop(over.max(self.free));
            (0..self.dirty.len()).for_each(|_| self.settle());
            let done = self.put(begin, self.fed(over, lba, n), (lba, n));
            self.dirty.push((lba, lba + n, done));
            return done.max(over + self.bus(Dir::Write, n));
        }
        self.counters.buffered += 1;
        let from = self.over(start, self.spec.write_hit);
        let (from, first) = self.room(from, Some(lba), n);
        let begin = self.stop(from).max(self.free);
        let done = self.put(begin, self.fed(from, lba, n), (lba, n));
        self.taken.push((done, n));
        self.dirty.push((first, lba + n, done));
        from + self.bus(Dir::Write, n)
    }

    /// When there is room for `n` blocks, and where the piece begins that a write at `lba` makes longer.
    fn room(&mut self, mut from: u64, lba: Option<u64>, n: u64) -> (u64, u64) {
        let b = self.spec.buffer;
        let room = u64::from(b.write_segments) * u64::from(b.segment_blocks);
        let on_its_way = |taken: &[(u64, u64)]| taken.iter().map(|t| t.1).sum::<u64>();
        while let Some(oldest) = self.taken.first().copied()
            && (oldest.0 <= from || on_its_way(&self.taken) + n > room)
        {
            from = from.max(oldest.0);
            self.taken.remove(0);
        }
        if self.dirty.last().is_some_and(|d| Some(d.1) == lba) {
            return (from, self.dirty.pop().unwrap().0);
        }
        while self.dirty.len() >= b.write_segments as usize && !self.dirty.is_empty() {
            from = from.max(self.dirty[0].2);
            self.settle();
        }
        (from, lba.unwrap_or(u64::MAX))
    }

    /// Whether it has all of these blocks.
    pub(crate) fn holds(&self, lba: u64, n: u64) -> bool {
        let end = lba + n;
        match self.dirty.iter().rfind(|d| d.0 < end && lba < d.1) {
            Some(d) => self.spec.buffer.written_hits && d.0 <= lba && end <= d.1,
            None => self.held.iter().flatten().any(|h| h.start <= lba && end <= h.end),
        }
    }

    /// When the overhead of a read of several operations is over.
    pub(crate) fn several_read(&mut self, start: u64, ops: &[(u64, u64)]) -> u64 {
        let has = ops.iter().filter(|op| self.holds(op.0, op.1)).count();
        if has == ops.len() {
            self.counters.hits += 1;
            return self.over(start, self.spec.read_hit);
        }
        if has > 0 {
            self.counters.partial_hits += 1;
        } else {
            self.counters.misses += 1;
        }
        self.over(start, self.spec.read_miss)
    }

    /// The same of a write, once it has room where it is `buffered`.
    pub(crate) fn several_write(&mut self, start: u64, n: u64, buffered: bool) -> u64 {
        if !buffered {
            self.counters.through += 1;
            return self.over(start, self.spec.write_miss);
        }
        self.counters.buffered += 1;
        let over = self.over(start, self.spec.write_hit);
        self.room(over, None, n).0
    }

    pub(crate) fn answer(&mut self, dir: Dir, done: u64, medium: bool) -> u64 {
        self.last = dir as usize;
        let done = done + self.spec.done[dir as usize].0;
        if !(self.queued && medium) {
            self.answered = self.answered.max(done);
        }
        done
    }

    pub(crate) fn serve(&mut self, start: u64, (dir, through): (Dir, bool), lba: u64, n: u64) -> u64 {
        self.shown = None;
        let done = match dir {
            Dir::Read => self.read(start, lba, n),
            Dir::Write => self.write(start, (lba, n), through),
        };
        self.answer(dir, done, self.shown.is_some())
    }

    pub(crate) fn choose(&mut self, now: u64) {
        self.chosen = now;
        self.note(now);
    }

    pub(crate) fn accept(&mut self, now: u64, n: u64) -> (u64, u64) {
        let start = self.begin(now);
        self.counters.buffered += 1;
        let done = self.over(start, self.spec.write_hit) + self.bus(Dir::Write, n);
        (start, self.answer(Dir::Write, done, false))
    }

    pub(crate) fn answer_waiting(&mut self, now: u64, n: u64) -> (u64, u64) {
        let start = self.begin(now);
        self.counters.hits += 1;
        let done = self.over(start, self.spec.read_hit) + self.bus(Dir::Read, n);
        (start, self.answer(Dir::Read, done, false))
    }

    pub(crate) fn destage(&mut self, now: u64, data: u64, span: (u64, u64)) {
        self.forget(span.0, span.0 + span.1);
        let begin = self.stop(now).max(self.free);
        let done = self.put(begin, data, span);
        self.dirty.push((span.0, span.0 + span.1, done));
    }
}

pub(crate) fn any_controller(rng: &mut Rng) -> ControllerSpec {
    let mut pair = |most| [us(rng.below(most)), us(rng.below(most))];
    let (read_hit, read_miss, write_hit, write_miss) = (pair(700), pair(700), pair(700), pair(700));
    let (done, bus, read_settle) = (pair(60), pair(400), pair(1500));
    let read_ahead =
        [ReadAhead::Off, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::Segment, ReadAhead::TwoTracks];
    let mut on = || rng.below(2) == 0;
    let buffer = BufferSpec {
        keeps_requested: on(),
        passing: on(),
        ahead_on_hit: on(),
        zero_latency: [on() && on(), on() && on()],
        write_back: if on() || on() { WriteBack::On } else { WriteBack::Off },
        written_hits: on(),
        segments: 1 + rng.below(5) as u32,
        segment_blocks: 20 + rng.below(60) as u32,
        write_segments: 1 + rng.below(3) as u32,
        read_ahead: read_ahead[rng.below(5) as usize],
        read_ahead_blocks: 1 + rng.below(70) as u32,
    };
    ControllerSpec {
        read_hit,
        read_miss,
        write_hit,
        write_miss,
        done,
        bus,
        write_delay: us(rng.below(2) * 130),
        read_settle,
        read_gather: [0, 500, 1000][rng.below(3) as usize],
        buffer,
    }
}
