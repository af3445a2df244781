//! Reads of one media operation: out of the buffer, from the medium, or the beginning from the one and the rest from the other.

use super::DriveBuffer;
use super::medium::Read;
use smrlab_disk::Mechanics;
use smrlab_stl::HostRequest;
use smrlab_units::{Blocks, Dir, HostOp, Pba, SimTime};

impl DriveBuffer {
    /// Serves a read whose overhead begins at `now`; answers when its last block has gone over the bus.
    #[inline]
    pub(super) fn read(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        let end = lba + blocks;
        self.asked = blocks;
        self.catch_up_near(lba, end, m);
        if let Some((d, older)) = self.writes.newest_on(lba, end) {
            self.catch_up(m);
            if self.spec.buffer.written_hits && d.has_all(lba, end) {
                self.counters.hits += 1;
                return self.front.over(now, self.spec.read_hit) + self.bus(Dir::Read, blocks);
            }
            // It and what is older have to be on the medium before they are read from there.
            self.medium.engaged(d.done);
            (0..older).for_each(|_| self.settle());
        }
        let Some(i) = self.find(lba) else { return self.miss(now, lba, blocks, m) };
        self.catch_up(m);
        let (over, delivered) = self.out_of(i, now, blocks);
        if end > self.segments.get(i).end() {
            return self.partial(i, now, over, Read { lba, blocks, gather: 1, any: false }, m).max(delivered);
        }
        self.counters.hits += 1;
        self.segments.answered_from(lba, end);
        self.hit(i, end, over, m);
        delivered
    }

    /// A read that begins at `now` has its blocks out of segment `i`: when its overhead is over, and when they have gone over the bus.
    #[inline(always)]
    fn out_of(&mut self, i: usize, now: SimTime, blocks: u64) -> (SimTime, SimTime) {
        self.segments.touch(i);
        let over = self.front.over(now, self.spec.read_hit);
        (over, over + self.bus(Dir::Read, blocks))
    }

    /// Whether the last read that the buffer had all of ended at `lba`.
    #[inline(always)]
    pub(crate) fn ended_at(&self, lba: u64) -> bool {
        self.segments.ended() == lba
    }

    /// Serves a read that comes at `now`, where the segment that was used last has all of it and nothing else is under way, as most
    /// reads in order meet the buffer: when it began and when it completes, as [`serve`](Self::serve) answers. `None`: nothing was done.
    #[inline]
    pub(crate) fn again(&mut self, now: SimTime, lba: u64, blocks: u64) -> Option<(SimTime, SimTime)> {
        let i = self.segments.find_again(lba, lba + blocks)?;
        if self.ahead.stream.is_some() | !self.writes.is_empty() | self.spec.buffer.ahead_on_hit {
            return None;
        }
        let start = self.front.begin(now);
        self.segments.next_command();
        self.medium.passed = None;
        self.asked = blocks;
        self.counters.hits += 1;
        self.segments.answered_from(lba, lba + blocks);
        let (_, delivered) = self.out_of(i, start, blocks);
        Some((start, self.answered(Dir::Read, delivered, false)))
    }

    /// Serves reads that come at `times` as [`again`](Self::again) would one by one, as long as each asks for as many blocks behind those of the
    /// one before and comes when that is answered: how many of them, and how long each took. `None`: nothing was done.
    pub(crate) fn again_and_again(
        &mut self,
        times: &[SimTime],
        requests: &[HostRequest],
    ) -> Option<(usize, SimTime)> {
        let (lba, blocks) = (requests.first()?.lba.0, requests.first()?.blocks);
        let (segment, up_to) = self.segments.again_up_to(lba)?;
        if self.ahead.stream.is_some() | !self.writes.is_empty() | self.spec.buffer.ahead_on_hit {
            return None;
        }
        let (mut free, took) = self.front.reads_on(&self.spec, blocks.0)?;
        let (mut n, mut end) = (0, lba);
        for (at, r) in times.iter().zip(requests) {
            let next = end + blocks.0;
            let goes_on = (r.op == HostOp::Read) & (r.lba.0 == end) & (r.blocks == blocks);
            if !goes_on | (next > up_to) | (*at < free) {
                break;
            }
            (n, end, free) = (n + 1, next, *at + took);
        }
        if n == 0 || blocks == Blocks::ZERO {
            return None;
        }
        // One for all: what was used before was used before any of them.
        self.segments.next_command();
        self.segments.touch(segment);
        self.segments.answered_from(end - blocks.0, end);
        self.medium.passed = None;
        self.asked = blocks.0;
        self.counters.hits += n as u64;
        self.front.read_on(free);
        Some((n, took))
    }

    /// The segment that holds `lba`, or would with its next block.
    #[inline]
    fn find(&self, lba: u64) -> Option<usize> {
        let next = self.ahead.stream.as_ref().filter(|s| s.from == lba).map(|s| s.segment);
        match (self.segments.find(lba), next) {
            (Some(i), Some(next)) => Some(i.min(next)),
            (found, next) => found.or(next),
        }
    }

    /// Segment `i` has the first blocks of what is wanted, or is about to have them; answers when the rest has gone over the bus. The
    /// command began at `now`, and its overhead is `over` then.
    fn partial(&mut self, i: usize, now: SimTime, over: SimTime, wanted: Read, m: &mut Mechanics) -> SimTime {
        self.counters.partial_hits += 1;
        let (lba, end) = (wanted.lba, wanted.lba + wanted.blocks);
        let block = self.bus(Dir::Read, 1);
        if let Some(s) = self.ahead.filling(i) {
            // The rest is on its way.
            let rest = end - s.from;
            let (_, reached) =
                self.medium.read(s.began, now, Read { lba: s.from, blocks: rest, ..wanted }, m);
            self.segments.extend(i, end);
            self.go_on(i, end, reached, s.first, m);
            return self.medium.drained((rest, end), reached, block, m);
        }
        let from = self.segments.get(i).end();
        let rest = end - from;
        let begin = self.stop(over, m).max(self.medium.free);
        let (first, last) = self.medium.read(begin, begin, Read { lba: from, blocks: rest, ..wanted }, m);
        self.segments.extend(i, end);
        self.go_on(i, end, last, lba, m);
        (first + self.bus(Dir::Read, rest)).max(self.medium.drained((rest, end), last, block, m))
    }

    /// No segment has the first block: all of them come from the medium.
    #[inline]
    fn miss(&mut self, now: SimTime, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        self.counters.misses += 1;
        let over = self.front.over(now, self.spec.read_miss).max(self.medium.free);
        let mut begin = self.stop(over, m);
        let settle = self.front.after(self.spec.read_settle);
        if settle > SimTime::ZERO && m.look_at(Pba(lba)).cylinder() == m.head().cylinder() {
            begin += settle;
        }
        // What has to be gathered before the bus is asked for.
        let gather = (blocks * u64::from(self.spec.read_gather) / 1000).max(1);
        let any = self.spec.buffer.zero_latency[0];
        let (first, last) = self.medium.read(begin, begin, Read { lba, blocks, gather, any }, m);
        let passed = if self.spec.buffer.passing { self.passing(lba, blocks, m) } else { 0 };
        if let Some(i) = self.keep(lba - passed, lba + blocks) {
            self.go_on(i, lba + blocks, last, lba, m);
        }
        let drained = self.medium.drained((blocks, lba + blocks), last, self.bus(Dir::Read, 1), m);
        (first + self.bus(Dir::Read, blocks)).max(drained)
    }

    /// How many of the blocks right before those of a read on its track passed the head while it waited, and have room beside them.
    #[inline]
    fn passing(&mut self, lba: u64, blocks: u64, m: &Mechanics) -> u64 {
        let track = self.medium.track(lba, m);
        let passed = (m.phases().rotation.0 / track.block.0.max(1)).min(lba - track.start);
        passed.min(u64::from(self.spec.buffer.segment_blocks).saturating_sub(blocks))
    }

    /// Puts blocks into a segment, but not into the one that is being read into.
    #[inline]
    pub(super) fn keep(&mut self, start: u64, end: u64) -> Option<usize> {
        self.segments.keep(start, end, self.ahead.segment())
    }
}
