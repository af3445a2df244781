//! Reads: each block from where its newest copy lies.

use super::PersistentCache;
use super::clean::{Job, Work};
use crate::Plan;
use crate::parts::split::ReadRuns;
use smrlab_units::{Blocks, Lba, Pba};
use std::ops::Range;

/// Where the newest copy of consecutive blocks lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub pba: Pba,
    pub blocks: u64,
    pub cached: bool,
}

impl PersistentCache {
    /// The newest copy of the blocks from `lba` on, as far as they lie together, not further than `end`.
    pub(super) fn newest(&self, lba: u64, end: u64) -> Run {
        let mut until = end;
        if let Some(e) = self.log.map.within(lba..end).next() {
            if e.lba == lba {
                let pba = self.cached_at(e.packet) + Blocks(e.at);
                return Run { pba, blocks: e.blocks, cached: true };
            }
            until = e.lba;
        }
        let (band, offset) = self.layout.native_of(lba);
        let host = self.layout.host(band);
        until = until.min(host.end);
        let native = |until: u64| {
            let pba = self.layout.native[band].first + Blocks(offset);
            Run { pba, blocks: until - lba, cached: false }
        };
        let Some(job) = self.jobs.iter().find(|j| j.band == band) else { return native(until) };
        self.newest_in_job(job, lba, until).unwrap_or_else(native)
    }

    /// The same for blocks of a band under cleaning of which nothing newer is cached; `Err`: natively, up to there.
    fn newest_in_job(&self, job: &Job, lba: u64, mut until: u64) -> Result<Run, u64> {
        let base = self.layout.host(job.band).start;
        if let Some(home) = job.home() {
            let (safe, damaged) = (base + home.end, base + home.end + self.layout.reach);
            if (base + home.start..safe).contains(&lba) {
                return Err(until.min(safe));
            }
            if (safe..damaged).contains(&lba) && job.done < job.steps.len() {
                let pba = self.scratch_at(job, lba - base);
                return Ok(Run { pba, blocks: until.min(damaged) - lba, cached: true });
            }
            if lba < base + home.start {
                until = until.min(base + home.start);
            }
        }
        let i = job.taken.partition_point(|e| e.lba + e.blocks <= lba);
        match job.taken.get(i) {
            Some(e) if e.lba <= lba => {
                let pba = self.cached_at(e.packet) + Blocks(e.at + (lba - e.lba));
                Ok(Run { pba, blocks: until.min(e.lba + e.blocks) - lba, cached: true })
            }
            Some(e) => Err(until.min(e.lba)),
            None => Err(until),
        }
    }

    pub(super) fn read(&mut self, lba: Lba, blocks: Blocks, plan: &mut Plan) {
        let end = lba.0 + blocks.0;
        let mut runs = ReadRuns::to_host(0);
        let (mut at, mut hit, mut missed) = (lba.0, false, false);
        while at < end {
            let zero = if self.discarded.is_empty() {
                end
            } else {
                self.discarded.next_set(at).unwrap_or(end).min(end)
            };
            while at < zero {
                let run = self.newest(at, zero);
                runs.push(run.pba, run.blocks, plan);
                at += run.blocks;
                self.at_log = run.cached;
                hit |= run.cached;
                missed |= !run.cached;
            }
            if at < end {
                let until = self.discarded.next_unset(at).min(end);
                runs.zeroes(until - at, plan);
                at = until;
            }
        }
        let ops = runs.end(plan);
        plan.set_extents(ops.max(1));
        self.counters.read_hits += u64::from(hit && !missed);
        self.counters.read_misses += u64::from(!hit);
        self.counters.read_split += u64::from(hit && missed);
        // What is being collected is in memory: such a read waits for nothing.
        if !self.collecting(lba.span(blocks)) {
            self.wait_after(plan);
        }
    }

    /// Whether all of a read is among what the present sub-step collects.
    fn collecting(&self, span: Range<u64>) -> bool {
        let Some(job) = self.jobs.front() else { return false };
        let collects = matches!(job.steps.get(job.done), Some(s) if s.work == Work::Collect);
        collects && job.taken.iter().any(|e| e.lba <= span.start && span.end <= e.lba + e.blocks)
    }
}
