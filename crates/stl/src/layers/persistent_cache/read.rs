//! Reads: each block from where its newest copy lies.

use super::clean::{Job, Work};
use super::{At, PersistentCache};
use crate::parts::split::{ReadRuns, first_alike};
use crate::{HostRequest, Plan};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// Where the newest copy of consecutive blocks lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyRun {
    pub pba: Pba,
    pub blocks: u64,
    /// Of a cached one: how far along its track the packet begins, in blocks.
    pub cached: Option<u64>,
}

impl PersistentCache {
    /// The newest copy of the blocks from `lba` on, as far as they lie together, not further than `end`.
    pub(super) fn newest(&self, lba: u64, end: u64) -> CopyRun {
        let mut until = end;
        if let Some(e) = self.log.map.within(lba..end).next() {
            if e.lba == lba {
                let pba = self.cached_at(e.packet) + Blocks(e.at);
                return CopyRun { pba, blocks: e.blocks, cached: Some(self.turn_of(e.packet)) };
            }
            until = e.lba;
        }
        let (band, offset) = self.layout.native_of(lba);
        let host = self.layout.host(band);
        until = until.min(host.end);
        let native = |until: u64| {
            let pba = self.layout.native[band].first + Blocks(offset);
            CopyRun { pba, blocks: until - lba, cached: None }
        };
        let Some(job) = self.jobs.iter().find(|j| j.band == band) else { return native(until) };
        self.newest_in_job(job, lba, until).unwrap_or_else(native)
    }

    /// The same for blocks of a band under cleaning of which nothing newer is cached; `Err`: natively, up to there.
    fn newest_in_job(&self, job: &Job, lba: u64, mut until: u64) -> Result<CopyRun, u64> {
        let base = self.layout.host(job.band).start;
        if let Some(home) = job.home() {
            let (safe, damaged) = (base + home.end, base + home.end + self.layout.reach);
            if (base + home.start..safe).contains(&lba) {
                return Err(until.min(safe));
            }
            if (safe..damaged).contains(&lba) && job.done < job.steps.len() {
                let pba = self.scratch_at(job, lba - base);
                let cached = Some((lba - base) % self.layout.track);
                return Ok(CopyRun { pba, blocks: until.min(damaged) - lba, cached });
            }
            if lba < base + home.start {
                until = until.min(base + home.start);
            }
        }
        let i = job.taken.partition_point(|e| e.lba + e.blocks <= lba);
        match job.taken.get(i) {
            Some(e) if e.lba <= lba => {
                let pba = self.cached_at(e.packet) + Blocks(e.at + (lba - e.lba));
                let cached = Some(self.turn_of(e.packet));
                Ok(CopyRun { pba, blocks: until.min(e.lba + e.blocks) - lba, cached })
            }
            Some(e) => Err(until.min(e.lba)),
            None => Err(until),
        }
    }

    pub(super) fn read(&mut self, r: &HostRequest, plan: &mut Plan) {
        let mut runs = ReadRuns::to_host(0);
        let (mut left, mut hit, mut missed) = (r.span(), false, false);
        while !left.is_empty() {
            let (mut alike, discarded) = first_alike(&self.discarded, left.clone());
            left.start = alike.end;
            if discarded {
                runs.zeroes(alike.end - alike.start, plan);
                continue;
            }
            while !alike.is_empty() {
                let run = self.newest(alike.start, alike.end);
                match run.cached {
                    Some(turn) => self.read_packet(run, turn, &mut runs, plan),
                    None => self.read_natively(alike.start, run, &mut runs, plan),
                }
                alike.start += run.blocks;
                hit |= run.cached.is_some();
                missed |= run.cached.is_none();
            }
        }
        let ops = runs.end(plan);
        plan.set_extents(ops.max(1));
        self.counters.read_hits += u64::from(hit && !missed);
        self.counters.read_misses += u64::from(!hit);
        self.counters.read_split += u64::from(hit && missed);
        // What is being collected is in memory: such a read waits for nothing.
        if !self.collecting(r.span()) {
            self.acknowledge_early(plan);
            self.wait_of_read(plan);
        }
    }

    /// How far along its track a packet of the log begins, in blocks.
    fn turn_of(&self, packet: u32) -> u64 {
        u64::from(self.log.packet(packet).offset) % self.layout.track
    }

    /// Reads from the log. From packet to packet the time is that of the turn between their beginnings; from elsewhere the
    /// mechanics bring the head there.
    fn read_packet(&mut self, run: CopyRun, turn: u64, runs: &mut ReadRuns, plan: &mut Plan) {
        runs.end(plan);
        runs.push(run.pba, run.blocks, plan);
        runs.end(plan);
        let track = self.layout.track;
        if self.at == At::Log {
            let gap = (turn + track - self.read_last) % track;
            let passes = if self.passes_too_soon(turn) { track } else { gap };
            plan.lasting(self.layout.turns(passes + run.blocks, track));
        }
        (self.at, self.read_last) = (At::Log, turn);
    }

    /// Whether a packet that begins so many blocks along its track is missed behind the one that was read last: see the options.
    fn passes_too_soon(&self, turn: u64) -> bool {
        let (apart, late) = (turn.abs_diff(self.read_last), self.o.log_late);
        let in_first_third = 3 * turn.min(self.read_last) < self.layout.track;
        if late > 0 && apart.abs_diff(late) <= 1 { in_first_third } else { apart < late }
    }

    /// Reads from the native band. Without read-ahead a request that goes on behind the last one, or begins on its track,
    /// and a change to the next track lose a revolution.
    fn read_natively(&mut self, lba: u64, run: CopyRun, runs: &mut ReadRuns, plan: &mut Plan) {
        let (band, mut offset) = self.layout.native_of(lba);
        let (track, end) = (self.layout.native[band].track, offset + run.blocks);
        if self.o.read_ahead {
            runs.push(run.pba, run.blocks, plan);
            self.at = At::Native { band, next: end };
            return;
        }
        let first = run.pba.0 - offset;
        while offset < end {
            let blocks = end.min((offset / track + 1) * track) - offset;
            runs.end(plan);
            runs.push(Pba(first + offset), blocks, plan);
            runs.end(plan);
            if self.goes_on(band, offset, track) {
                plan.lasting(self.layout.turns(track + blocks, track));
            }
            offset += blocks;
            self.at = At::Native { band, next: offset };
        }
    }

    /// Whether the head is on the track of a native block, or just before it.
    fn goes_on(&self, band: usize, offset: u64, track: u64) -> bool {
        let At::Native { band: last, next } = self.at else { return false };
        band == last && (next == offset || next.saturating_sub(1) / track == offset / track)
    }

    /// Whether all of a read is among what the present sub-step collects.
    fn collecting(&self, span: Range<u64>) -> bool {
        let Some(job) = self.jobs.front() else { return false };
        let Some(Work::Collect(part)) = job.steps.get(job.done).map(|s| &s.work) else { return false };
        let base = self.layout.host(job.band).start;
        let counts_here = |packet| job.counts_at(packet, base).is_some_and(|at| part.contains(&at));
        let mut at = span.start;
        let behind = job.taken.partition_point(|e| e.lba + e.blocks <= span.start);
        for e in job.taken[behind..].iter().take_while(|e| e.lba < span.end) {
            if e.lba > at || !counts_here(e.packet) {
                return false;
            }
            at = e.lba + e.blocks;
        }
        at >= span.end
    }
}
