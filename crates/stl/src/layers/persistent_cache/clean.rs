//! Cleaning: rounds of bands, each in sub-steps that requests wait for one at a time.
//!
//! A band goes home in phases that fit the drive's memory. In each the band's tracks are read, the cached blocks are
//! collected from the log, the merged tracks are written to a scratch band, and then in place, all but the last ones: a
//! write damages the tracks behind it, which the next phase writes again from the scratch band.

use super::{PersistentCache, records};
use crate::parts::extents::Extent;
use crate::{Cause, Endpoint, Piece, Plan, Record};
use smrlab_units::{Blocks, Pba, SimTime};
use std::ops::Range;

/// What one sub-step does, over offsets in the band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Tracks are read into memory.
    Read(Range<u64>),
    /// Packets that count at a part of the band are collected from the log.
    Collect(Range<u64>),
    /// Merged tracks go to the scratch band.
    Scratch(Range<u64>),
    /// They go home.
    Home(Range<u64>),
}

/// A sub-step and its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SubStep {
    pub work: Work,
    pub time: SimTime,
}

/// A band under cleaning.
#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    /// Native band.
    pub band: usize,
    /// What is taken from the log, ascending.
    pub taken: Vec<Extent>,
    /// Blocks of that.
    pub blocks: u64,
    /// Tracks from the lowest of that to the band's end.
    pub tracks: u64,
    /// Which scratch band it uses, and how many tracks of the scratch log were full before.
    pub scratch: usize,
    pub tracks_before: u64,
    pub steps: Vec<SubStep>,
    /// Where its packets count; kept for its memory.
    pub counted: Vec<(u32, u64)>,
    /// Its packets count at their first blocks, and not at their last ones: bands taken by 0.2.0 and before.
    pub by_first: bool,
    /// Sub-steps done.
    pub done: usize,
}

impl Job {
    /// Offsets in the band that are home already; what lies behind, up to the reach of a write, is in the scratch band.
    pub(super) fn home(&self) -> Option<Range<u64>> {
        let mut home: Option<Range<u64>> = None;
        for step in &self.steps[..self.done] {
            if let Work::Home(r) = &step.work {
                home = Some(home.map_or(r.start, |h| h.start)..r.end);
            }
        }
        home
    }

    /// Whether it goes home without the scratch band.
    fn whole(&self) -> bool {
        !self.steps.iter().any(|s| matches!(s.work, Work::Scratch(_)))
    }

    /// Where in a band that begins at `base` one of its packets counts.
    pub(super) fn counts_at(&self, packet: u32, base: u64) -> Option<u64> {
        let mut parts = self.taken.iter().filter(|e| e.packet == packet);
        match self.by_first {
            true => parts.next().map(|e| e.lba - base),
            false => parts.next_back().map(|e| e.lba + e.blocks - 1 - base),
        }
    }

    /// Notes where all of them count, ascending, each with its packet.
    fn count(&mut self, base: u64) {
        let (all, by_first) = (&mut self.counted, self.by_first);
        all.clear();
        match by_first {
            true => all.extend(self.taken.iter().map(|e| (e.packet, e.lba - base))),
            false => all.extend(self.taken.iter().rev().map(|e| (e.packet, e.lba + e.blocks - 1 - base))),
        }
        if all.len() > 1 {
            all.sort_by_key(|&(packet, _)| packet);
            all.dedup_by_key(|&mut (packet, _)| packet);
            all.sort_unstable_by_key(|&(_, at)| at);
        }
    }

    /// Adds the sub-step that collects the packets that count at `part`, if there are any.
    fn collect(&mut self, part: Range<u64>, each: SimTime) {
        let before = |end| self.counted.partition_point(|&(_, at)| at < end);
        let packets = (before(part.end) - before(part.start)) as u64;
        if packets > 0 {
            self.steps.push(SubStep { work: Work::Collect(part), time: SimTime(each.0 * packets) });
        }
    }
}

/// One phase of a band.
struct Phase {
    /// Offsets in the band that are merged.
    merged: Range<u64>,
    /// Offsets that go home.
    home: Range<u64>,
    tracks: u64,
    last: bool,
}

impl PersistentCache {
    /// Begins a round if the log is longer than it should be and none is under way.
    pub(super) fn begin_if_due(&mut self, plan: &mut Plan) {
        let (packets, length) = self.log.span();
        if self.jobs.is_empty() && (packets > self.o.map_trigger || length > self.o.log) {
            self.begin_round(plan);
        }
    }

    /// Takes the bands of a round: each that of the highest block of the oldest packet. Their map entries are free at once.
    fn begin_round(&mut self, plan: &mut Plan) {
        for _ in 0..self.o.round_bands {
            let Some(lba) = self.log.oldest() else { break };
            let band = self.layout.native_of(lba).0;
            plan.record(Record { tag: records::TAKE, words: [band as u64, records::BY_LAST, 0] });
            self.take(band, false);
        }
        if self.pressure && self.log.live <= self.o.map_trigger {
            self.set_pressure(false, plan);
        }
    }

    /// Bytes of the log's map, with what was taken of it: that is known to its job alone until it is home.
    pub(super) fn log_bytes(&self) -> u64 {
        let taken: usize = self.jobs.iter().chain(&self.over).map(|job| job.taken.capacity()).sum();
        self.log.bytes() + (taken * size_of::<Extent>()) as u64
    }

    pub(super) fn take(&mut self, band: usize, by_first: bool) {
        let mut job = self.over.pop_back().unwrap_or_default();
        job.by_first = by_first;
        self.log.take(self.layout.host(band), &mut job.taken);
        self.lay_out(band, &mut job);
        let place = self.layout.native[band];
        let tracks = job.tracks * place.track / self.layout.track;
        self.scratch_tracks = (self.scratch_tracks + tracks) % self.layout.scratch_tracks;
        self.scratch_next ^= 1;
        self.jobs.push_back(job);
    }

    /// The offset in the band of the lowest block that is taken.
    fn lowest(&self, job: &Job) -> u64 {
        job.taken.first().map_or(0, |e| e.lba - self.layout.host(job.band).start)
    }

    /// Makes a job, of which it is known what is taken, a band's, with the state of the scratch log.
    fn lay_out(&self, band: usize, job: &mut Job) {
        (job.band, job.done) = (band, 0);
        (job.scratch, job.tracks_before) = (self.scratch_next, self.scratch_tracks);
        self.lay_down(job);
    }

    /// The sub-steps of a band follow from all that is taken.
    pub(super) fn lay_down(&self, job: &mut Job) {
        job.steps.clear();
        job.blocks = job.taken.iter().map(|e| e.blocks).sum();
        let place = self.layout.native[job.band];
        let way = SimTime(2 * self.layout.way_from(job.band).0);
        let lowest = self.lowest(job);
        let tracks = place.blocks.div_ceil(place.track) - lowest / place.track;
        job.tracks = tracks;
        job.count(self.layout.host(job.band).start);
        let (mut from, mut passed) = (0, lowest / place.track);
        if self.o.whole_bands && job.blocks == place.blocks {
            job.collect(0..place.blocks, self.o.collect);
            let time = self.layout.turns(tracks, 1) + way;
            return job.steps.push(SubStep { work: Work::Home(0..place.blocks), time });
        }
        let mut full = job.tracks_before * self.layout.track;
        for p in self.phases(job.band, lowest, tracks) {
            let read = self.layout.turns(p.tracks, 1) + way;
            job.steps.push(SubStep { work: Work::Read(p.merged.clone()), time: read });
            let (need, size) = (p.tracks * place.track, self.layout.scratch_tracks * self.layout.track);
            let room = size - full;
            // As in the published runs the track behind a part counts with it.
            let end = if p.last { place.blocks } else { (passed + p.tracks + 1) * place.track };
            let mut lay = |part: Range<u64>, end, n| {
                let to = if job.by_first { part.end } else { end };
                job.collect(from..to, self.o.collect);
                from = to;
                if n > 0 {
                    let time = self.layout.turns(n, self.layout.track);
                    job.steps.push(SubStep { work: Work::Scratch(part), time });
                }
            };
            if need <= room {
                full += need;
                lay(p.merged, end, need);
            } else {
                // A scratch band is full in the middle: the rest goes to the next one.
                full = (need - room).min(size);
                let tracks = room / place.track;
                let cut = (p.merged.start + tracks * place.track).min(p.merged.end);
                lay(p.merged.start..cut, (passed + tracks + 1) * place.track, room);
                lay(cut..p.merged.end, end, need - room);
            }
            passed += p.tracks;
            let home = self.layout.turns(p.tracks - u64::from(!p.last && p.tracks > 1), 1) + way;
            job.steps.push(SubStep { work: Work::Home(p.home), time: home });
        }
    }

    /// Cuts a band from offset `low` on into phases: each merges as much as the memory holds and passes as many whole tracks as
    /// fit in there.
    fn phases(&self, band: usize, low: u64, tracks: u64) -> impl Iterator<Item = Phase> + use<> {
        let (place, reach) = (self.layout.native[band], self.layout.reach);
        let each = (self.o.memory / place.track).max(1);
        let memory = self.o.memory.max(2 * reach + 1);
        let count = (tracks * place.track).div_ceil(memory).max(1);
        let mut home = low;
        (0..count).map(move |i| {
            let last = i + 1 == count;
            let start = (low + i * memory).min(place.blocks);
            let end = if last { place.blocks } else { (start + memory).min(place.blocks) };
            let safe = if end == place.blocks { end } else { end - reach };
            let tracks = if last { tracks.saturating_sub(i * each).max(1) } else { each };
            let from = home;
            home = safe.max(home);
            Phase { merged: start..end, home: from..home, tracks, last }
        })
    }

    /// Bands that went home; until the next one does, only a discard takes blocks out of the log.
    pub(in crate::layers) fn bands_cleaned(&self) -> u64 {
        self.counters.bands_cleaned
    }

    /// Plans and does the next sub-step of the round under way.
    pub(super) fn sub_step(&mut self, plan: &mut Plan) {
        let Some(job) = self.jobs.front() else { return };
        self.plan_sub_step(job, plan);
        self.finish_sub_step();
    }

    /// Plans the next sub-step of a band; the state stays as it is.
    pub(super) fn plan_sub_step(&self, job: &Job, plan: &mut Plan) {
        let Some(SubStep { work, time }) = job.steps.get(job.done) else { return };
        let first = plan.ops().len();
        let native = self.layout.native[job.band].first;
        match work {
            Work::Read(r) if !r.is_empty() => {
                plan.read_staged(Cause::Clean, native + Blocks(r.start), Blocks(r.end - r.start));
                plan.lasting(*time);
            }
            Work::Scratch(r) if !r.is_empty() => {
                let fresh = !job.steps[..job.done].iter().any(|s| matches!(s.work, Work::Scratch(_)));
                if fresh {
                    plan.fence();
                }
                let (at, blocks) = (self.scratch_at(job, r.start), Blocks(r.end - r.start));
                plan.write_pieces(Cause::Journal, at, blocks, |out| self.merged(job, r, out));
                plan.lasting(*time);
            }
            Work::Home(r) if !r.is_empty() => {
                plan.record(Record { tag: records::HOME, words: [0; 3] });
                plan.fence();
                self.plan_home(job, r, plan);
                plan.lasting(*time);
            }
            _ => plan.pause(Cause::Clean, *time),
        }
        plan.record(Record { tag: records::STEP, words: [0; 3] });
        if job.done + 1 == job.steps.len() {
            plan.cleaned("band-clean", first, Blocks(job.blocks));
        } else {
            plan.cleaned_in_part("band-clean", first);
        }
    }

    /// Writes offsets `r` of a band in place: from the scratch band, or where all of it is cached from the log.
    fn plan_home(&self, job: &Job, r: &Range<u64>, plan: &mut Plan) {
        let (at, blocks) = (self.layout.native[job.band].first + Blocks(r.start), Blocks(r.end - r.start));
        plan.write_pieces(Cause::Clean, at, blocks, |out| self.home_pieces(job, r, out));
    }

    /// Where what goes home comes from.
    pub(super) fn home_pieces(&self, job: &Job, r: &Range<u64>, out: &mut Vec<Piece>) {
        if job.whole() {
            return self.merged(job, r, out);
        }
        let blocks = Blocks(r.end - r.start);
        out.push(Piece { blocks, end: Endpoint::Held(self.scratch_at(job, r.start)) });
    }

    /// The scratch band's block for an offset in the band: it holds the band as if it were the band itself.
    pub(super) fn scratch_at(&self, job: &Job, offset: u64) -> Pba {
        self.layout.scratch[job.scratch].first + Blocks(offset)
    }

    /// Where the merged blocks `r` of a band come from.
    fn merged(&self, job: &Job, r: &Range<u64>, out: &mut Vec<Piece>) {
        let (base, native) = (self.layout.host(job.band).start, self.layout.native[job.band].first);
        let mut at = r.start;
        let mut push = |blocks: u64, from: Pba| {
            if blocks > 0 {
                out.push(Piece { blocks: Blocks(blocks), end: Endpoint::Held(from) });
            }
        };
        for e in &job.taken {
            let (lo, hi) = ((e.lba - base).max(r.start), (e.lba - base + e.blocks).min(r.end));
            if lo < hi {
                push(lo - at, native + Blocks(at));
                push(hi - lo, self.cached_at(e.packet) + Blocks(e.at + (lo + base - e.lba)));
                at = hi;
            }
        }
        push(r.end - at, native + Blocks(at));
    }

    /// The sub-step that was planned is done.
    pub(super) fn finish_sub_step(&mut self) {
        let Some(job) = self.jobs.front_mut() else { return };
        job.done += 1;
        self.counters.sub_steps += 1;
        if job.done == job.steps.len()
            && let Some(job) = self.jobs.pop_front()
        {
            self.log.release(&job.taken);
            if let Some(written) = &mut self.written {
                for e in &job.taken {
                    // What was written or discarded meanwhile is newer than what went home.
                    written.insert(e.lba..e.lba + e.blocks);
                    self.log
                        .map
                        .within(e.lba..e.lba + e.blocks)
                        .for_each(|n| _ = written.remove(n.lba..n.lba + n.blocks));
                    let gone: Vec<_> = self.discarded.runs_in(e.lba..e.lba + e.blocks).collect();
                    gone.into_iter().for_each(|r| _ = written.remove(r));
                }
            }
            self.counters.bands_cleaned += 1;
            self.over.push_back(job);
        }
    }

    /// All that is left of the round.
    fn finish_round(&mut self, plan: &mut Plan) {
        while !self.jobs.is_empty() {
            self.sub_step(plan);
        }
    }

    /// All that is left of the band at work, of a new round where none is under way; whether there was one.
    fn finish_band(&mut self, plan: &mut Plan) -> bool {
        if self.jobs.is_empty() {
            self.begin_round(plan);
        }
        let bands = self.jobs.len();
        while bands > 0 && self.jobs.len() == bands {
            self.sub_step(plan);
        }
        bands > 0
    }

    /// Makes room in the log for a packet that begins in `lap`: band after band, as many as it takes.
    pub(super) fn make_room(&mut self, lap: u64, plan: &mut Plan) {
        while !self.log.room(lap, self.layout.log.len() as u64) && self.finish_band(plan) {
            self.counters.rounds_waited += 1;
        }
    }

    /// Makes room in the map for a further packet of a request: its first one finds some, as the request before it waited for that.
    pub(super) fn make_entry(&mut self, plan: &mut Plan) {
        while self.log.live >= self.o.map_limit && self.finish_band(plan) {
            self.counters.rounds_waited += 1;
        }
    }

    /// What a request waits for of the round under way: one sub-step, under pressure all that is left.
    fn advance(&mut self, plan: &mut Plan) {
        if self.pressure {
            self.counters.rounds_waited += u64::from(!self.jobs.is_empty());
            self.finish_round(plan);
        } else {
            self.sub_step(plan);
        }
    }

    /// What a read waits for of cleaning. A round that becomes due is begun behind it: the next request waits for that.
    pub(super) fn wait_of_read(&mut self, plan: &mut Plan) {
        self.advance(plan);
        self.begin_if_due(plan);
    }

    /// What a write waits for of cleaning, of a round that it makes due too; where the log is full, band after band until
    /// what it wrote has room. What was taken from the log takes room until it is home.
    pub(super) fn wait_of_write(&mut self, plan: &mut Plan) {
        self.begin_if_due(plan);
        if !self.pressure && self.log.live >= self.o.map_limit {
            self.set_pressure(true, plan);
        }
        self.advance(plan);
        while self.log.kept > self.o.log && self.finish_band(plan) {
            self.counters.rounds_waited += 1;
        }
    }

    fn set_pressure(&mut self, on: bool, plan: &mut Plan) {
        self.pressure = on;
        plan.record(Record { tag: records::PRESSURE, words: [u64::from(on), 0, 0] });
    }

    /// Plans a sub-step of idle time: of the band under way, or the first one of the oldest packet's band.
    pub(super) fn plan_idle(&mut self, plan: &mut Plan) {
        if let Some(job) = self.jobs.front() {
            self.plan_sub_step(job, plan);
            self.idle_step = Some(None);
            return;
        }
        let Some(lba) = self.log.oldest() else { return };
        let band = self.layout.native_of(lba).0;
        let taken = self.log.map.within(self.layout.host(band)).collect();
        let mut job = Job { taken, ..Job::default() };
        self.lay_out(band, &mut job);
        plan.record(Record { tag: records::TAKE, words: [band as u64, records::BY_LAST, 0] });
        self.plan_sub_step(&job, plan);
        self.idle_step = Some(Some(band));
    }

    /// The operation that a read of the log's packet, or the next write, begins with.
    pub(super) fn cached_at(&self, packet: u32) -> Pba {
        let p = self.log.packet(packet);
        self.log_at(p.lap.into(), p.offset.into())
    }

    pub(super) fn log_at(&self, lap: u64, offset: u64) -> Pba {
        let bands = self.layout.log.len() as u64;
        self.layout.log[(lap % bands) as usize].first + Blocks(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_counts_once_at_its_last_block_or_as_it_was_at_its_first() {
        let extent = |lba, blocks, packet| Extent { lba, blocks, packet, at: 0 };
        let taken = vec![extent(100, 4, 5), extent(110, 10, 7), extent(190, 5, 5)];
        for (by_first, places, parts) in [(false, [19, 94], [1, 1]), (true, [0, 10], [2, 0])] {
            let mut job = Job { taken: taken.clone(), by_first, ..Job::default() };
            job.count(100);
            assert_eq!(job.counted.iter().map(|&(_, at)| at).collect::<Vec<_>>(), places);
            let mut each = [5, 7].map(|packet| job.counts_at(packet, 100).unwrap());
            each.sort_unstable();
            assert_eq!((each, job.counts_at(6, 100)), (places, None));
            [0..50, 50..100].into_iter().for_each(|part| job.collect(part, SimTime(10)));
            let times: Vec<u64> = job.steps.iter().map(|s| s.time.0 / 10).collect();
            assert_eq!(times, parts.into_iter().filter(|n| *n > 0).collect::<Vec<u64>>());
        }
    }
}
