//! Cleaning: which band, what a step of it reads and writes, and how many steps follow a write.
//!
//! A step is planned without a change of the layer's state, as records; applying them is what recovery does too. So a step in idle
//! time is the same step, applied when its last operation has ended.

use super::{AHEAD, BandState, SURVIVORS, SteadyLog, Victim, records};
use crate::parts::holdings::LiveRun;
use crate::parts::victim::{Candidate, Victim as Rule};
use crate::{Cause, Endpoint, OpId, Piece, Plan, Record};
use smrlab_disk::BandId;
use smrlab_units::{Blocks, Pba};

/// So many times the blocks that a step moves it passes at most, live and dead.
const PASSED: u64 = 2;

/// A live run, and the read that brought it, from which block on.
#[derive(Clone, Copy, Debug)]
struct Staged {
    run: LiveRun,
    op: OpId,
    offset: u64,
}

impl SteadyLog {
    /// Free bands are so few that cleaning keeps pace with the host.
    pub(super) fn is_short(&self) -> bool {
        self.free.len() < self.reserve + AHEAD
    }

    /// A step of cleaning follows the present write.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_short() && (self.victim.is_none() || self.debt > 0 || self.free.len() < self.reserve)
    }

    /// As many steps as win back what the host wrote, and as many more as the reserve needs.
    #[inline]
    pub(super) fn keep_pace(&mut self, plan: &mut Plan) {
        while self.is_due() && self.take_step(plan) {}
    }

    /// Steps until the reserve is free again.
    pub(super) fn make_room(&mut self, plan: &mut Plan) {
        while self.free.len() < self.reserve && self.take_step(plan) {}
    }

    /// A step, now; `false`: nothing is dead anywhere.
    fn take_step(&mut self, plan: &mut Plan) -> bool {
        let Some(victim) = self.victim.or_else(|| self.choose(false)) else { return false };
        let mut step = std::mem::take(&mut self.step);
        if self.plan_step(victim, plan, &mut step) {
            self.free.durable();
        }
        step.iter().for_each(|r| self.apply(r));
        step.clear();
        self.step = step;
        true
    }

    /// The band to clean, at its beginning: the one with the smallest share of live blocks; in idle time only one that is worth it.
    pub(super) fn choose(&self, ripe: bool) -> Option<Victim> {
        let closed = self.ledger.states.iter().enumerate().filter(|(_, s)| **s == BandState::Closed);
        let candidates = closed.map(|(i, _)| {
            let (slots, live) = (self.holdings.written(i as u32), self.holdings.live(i as u32));
            Candidate { band: i as u32, slots, live, age: 0, heat: 0 }
        });
        let band =
            Rule::Greedy.choose(candidates.filter(|c| !ripe || self.ledger.is_ripe(c.slots, c.live)))?;
        Some(self.begun(band))
    }

    /// The band as a victim of which nothing was done yet.
    pub(super) fn begun(&self, band: u32) -> Victim {
        Victim { band, done: 0, dead: self.holdings.written(band) - self.holdings.live(band) }
    }

    /// Plans a step of the cleaning of a band, and lists what it changes; answers whether the plan has a fence.
    pub(super) fn plan_step(&self, victim: Victim, plan: &mut Plan, out: &mut Vec<Record>) -> bool {
        let first = plan.ops().len();
        let Victim { band, done, .. } = victim;
        if done == 0 {
            note(records::begun(band), plan, out);
        }
        let end = u64::from(self.holdings.written(band)).min(done + PASSED * self.options.step);
        let runs = self.holdings.live_in(band, done..end, Blocks(self.options.step));
        let moved: u64 = runs.iter().map(|run| run.blocks).sum();
        let staged = self.stage(band, &runs, plan);
        let fenced = self.move_on(&staged, plan, out);
        let passed =
            runs.last().filter(|_| moved == self.options.step).map_or(end, |run| run.at + run.blocks);
        let over = passed == u64::from(self.holdings.written(band));
        note(if over { records::freed(band) } else { records::passed(band, passed) }, plan, out);
        if moved > 0 {
            plan.cleaned("step", first, Blocks(moved));
        }
        fenced
    }

    /// Plans the reads of live runs. Runs that less than a step lies between are read in
    /// one operation, with what lies between them: the medium turns that far in any case.
    fn stage(&self, band: u32, runs: &[LiveRun], plan: &mut Plan) -> Vec<Staged> {
        let mut staged = Vec::with_capacity(runs.len());
        let start = self.holdings.bands().start(BandId(band.into()));
        for near in runs.chunk_by(|a, b| b.at - (a.at + a.blocks) < self.options.step) {
            let last = near[near.len() - 1];
            let blocks = last.at + last.blocks - near[0].at;
            let op = plan.read_staged(Cause::Defrag, start + Blocks(near[0].at), Blocks(blocks));
            staged.extend(near.iter().map(|&run| Staged { run, op, offset: run.at - near[0].at }));
        }
        staged
    }

    /// Plans the writes of what was staged, to the end of the survivors' band and of free ones behind it.
    fn move_on(&self, staged: &[Staged], plan: &mut Plan, out: &mut Vec<Record>) -> bool {
        let (mut ahead, mut fenced, mut from) = (0, false, 0);
        let mut target: Option<(Pba, u64)> = self.heads[SURVIVORS].map(|band| {
            let room = self.holdings.length(band) - self.holdings.written(band);
            (self.holdings.end(band), u64::from(room))
        });
        let mut rest = staged;
        while let Some(&next) = rest.first() {
            let (at, room) = target.unwrap_or_else(|| {
                let (band, due) = self.free.peek(ahead).expect("the reserve holds every victim");
                if due && !fenced {
                    plan.fence();
                    fenced = true;
                }
                ahead += 1;
                note(records::opened(band, SURVIVORS), plan, out);
                (self.holdings.bands().start(BandId(band.into())), self.holdings.length(band).into())
            });
            let mut part: Vec<Staged> = Vec::new();
            let mut n = 0;
            while let Some(next) = rest.first().filter(|_| n < room) {
                let blocks = (next.run.blocks - from).min(room - n);
                let run = LiveRun { lba: next.run.lba + from, blocks, at: next.run.at + from };
                part.push(Staged { run, op: next.op, offset: next.offset + from });
                (n, from) = (n + blocks, from + blocks);
                if from == next.run.blocks {
                    (rest, from) = (&rest[1..], 0);
                }
            }
            debug_assert!(n > 0, "no room for {next:?}");
            write(at, &part, plan);
            for runs in part.chunk_by(|a, b| a.run.lba + a.run.blocks == b.run.lba) {
                let end = runs[runs.len() - 1].run;
                note(records::appended(&(runs[0].run.lba..end.lba + end.blocks), SURVIVORS), plan, out);
            }
            target = (n < room).then(|| (at + Blocks(n), room - n));
        }
        fenced
    }
}

/// Plans one write of what was staged.
fn write(at: Pba, staged: &[Staged], plan: &mut Plan) {
    let blocks = Blocks(staged.iter().map(|s| s.run.blocks).sum());
    plan.write_pieces(Cause::Defrag, at, blocks, |out| {
        out.extend(
            staged.iter().map(|s| Piece {
                blocks: Blocks(s.run.blocks),
                end: Endpoint::Staged(s.op, Blocks(s.offset)),
            }),
        );
    });
}

fn note(record: Record, plan: &mut Plan, out: &mut Vec<Record>) {
    plan.record(record);
    out.push(record);
}
