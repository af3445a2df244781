//! The write amplifier (He & Du 2014, sections 3 and 4): what an update in place destroys and has to put back.
//!
//! An update destroys the live blocks that interfere with it; writing those again destroys further ones, until a write
//! hits nothing live. For a head of width `W` that is when `W - 1` tracks in a row hold nothing live at these angles. All
//! impacted runs are read first, then everything is written in ascending order: one operation for each contiguous span
//! of a track.

use crate::parts::update::{Update, stage};
use crate::{Endpoint, OpId, Plan};
use smrlab_blockmap::{BlockSet, Look};
use smrlab_disk::{BandId, Geometry, Interference};
use smrlab_units::{Blocks, Pba};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A run that the host writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostRun {
    /// The band: runs are sorted by band, then by place.
    pub band: BandId,
    /// First block.
    pub pba: Pba,
    /// Length; within one track.
    pub blocks: Blocks,
    /// Offset in the host's buffer.
    pub host: Blocks,
    /// What is written in the band from this block on destroys nothing but the guard behind it.
    pub harmless: Pba,
}

impl HostRun {
    /// Its blocks.
    pub fn range(&self) -> Range<u64> {
        self.pba.span(self.blocks)
    }
}

/// Finds impacted runs; its memory is reused from request to request.
#[derive(Debug, Default)]
pub struct Amplifier {
    /// Destroyed ranges that are not looked at yet, lowest first.
    todo: BinaryHeap<Reverse<(u64, u64)>>,
    /// Live blocks that have to be put back, ascending.
    impacted: Vec<Range<u64>>,
}

impl Amplifier {
    /// Whether a write of this run destroys anything live.
    #[inline]
    pub fn harms(g: &Geometry, interference: &Interference, live: &BlockSet, run: &HostRun) -> bool {
        if run.pba >= run.harmless {
            return false;
        }
        let mut harms = false;
        interference.victims(g, run.pba, run.blocks, &mut |hit| harms = harms || live.contains_any(hit));
        harms
    }

    /// Finds what a write of `host` (ascending runs of one band) impacts. What is live may have been asked of the host's runs by the
    /// same look: it mostly knows a track further on, too.
    ///
    /// Victims lie behind the run that hits them, so the lowest unseen one is final when its turn comes.
    pub fn find(&mut self, g: &Geometry, interference: &Interference, live: &mut Look<'_>, host: &[HostRun]) {
        self.impacted.clear();
        self.todo.clear();
        let Some(&HostRun { harmless, .. }) = host.first() else { return };
        for run in host.iter().filter(|run| run.pba < harmless) {
            let todo = &mut self.todo;
            interference.victims(g, run.pba, run.blocks, &mut |hit| todo.push(Reverse((hit.start, hit.end))));
        }
        let (mut seen, mut next_host) = (0, 0);
        while let Some(Reverse((start, end))) = self.todo.pop() {
            let mut at = start.max(seen);
            seen = seen.max(end);
            while at < end {
                while host.get(next_host).is_some_and(|h| h.range().end <= at) {
                    next_host += 1;
                }
                let (stop, resume) = match host.get(next_host) {
                    Some(h) if h.range().start < end => (h.range().start.max(at), h.range().end),
                    _ => (end, end),
                };
                while let Some(run) = live.first_run(at..stop) {
                    at = run.end;
                    let (todo, blocks) = (&mut self.todo, Blocks(run.end - run.start));
                    if run.start < harmless.0 {
                        interference.victims(g, Pba(run.start), blocks, &mut |hit| {
                            todo.push(Reverse((hit.start, hit.end)));
                        });
                    }
                    add(&mut self.impacted, g, run);
                }
                at = resume;
            }
        }
    }

    /// The first block that it found.
    pub fn first(&self) -> Option<Pba> {
        self.impacted.first().map(|r| Pba(r.start))
    }

    /// Blocks that it found.
    pub fn blocks(&self) -> Blocks {
        Blocks(self.impacted.iter().map(|r| r.end - r.start).sum())
    }

    /// Plans the reads of what was found and lists all writes in `update`, which was begun.
    pub fn plan(&self, g: &Geometry, host: &[HostRun], plan: &mut Plan, update: &mut Update) {
        let first = plan.ops().len() as u32;
        for run in &self.impacted {
            stage(plan, Pba(run.start), Blocks(run.end - run.start));
        }
        let mut host = host.iter().peekable();
        let mut end = None;
        let mut write = |range: Range<u64>, source: Endpoint| {
            if end != Some(range.start) || starts_track(g, range.start) {
                update.start_with(Pba(range.start), Blocks(range.end - range.start), source);
            } else {
                update.piece(Blocks(range.end - range.start), source);
            }
            end = Some(range.end);
        };
        for (i, run) in self.impacted.iter().enumerate() {
            while let Some(h) = host.next_if(|h| h.pba.0 < run.start) {
                write(h.range(), Endpoint::Host(h.host));
            }
            write(run.clone(), Endpoint::Staged(OpId(first + i as u32), Blocks::ZERO));
        }
        host.for_each(|h| write(h.range(), Endpoint::Host(h.host)));
    }
}

/// Adds a run behind the others, joined with the last one where they meet on one track.
fn add(runs: &mut Vec<Range<u64>>, g: &Geometry, run: Range<u64>) {
    match runs.last_mut() {
        Some(last) if last.end == run.start && !starts_track(g, run.start) => last.end = run.end,
        _ => runs.push(run),
    }
}

fn starts_track(g: &Geometry, block: u64) -> bool {
    g.track_start(g.track_of(Pba(block))).0 == block
}
