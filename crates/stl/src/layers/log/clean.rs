//! Compaction: which band, and what is read, written and recorded for it.
//!
//! A compaction is planned without a change of the layer's state, as records; applying them is what recovery does too. So
//! a step in idle time is the same compaction, applied when its last operation has ended.

use super::{LogLayer, Separate, State, classes, records};
use crate::parts::homes::Live;
use crate::parts::victim::Candidate;
use crate::{Cause, OpId, Piece, Plan, Record, Source};
use smrlab_units::Blocks;

/// Live units and which read of the plan brought each: operation and offset in blocks.
type Staged = (Live, OpId, u64);

/// Where what is moved goes: the open band of a head, as the plan so far leaves it.
struct Target {
    band: Option<u32>,
    written: u32,
}

impl LogLayer {
    /// Cleans until the reserve is free again.
    pub(super) fn make_room(&mut self, plan: &mut Plan) {
        while self.free.len() < self.reserve {
            let victim = self.cleaning.or_else(|| self.choose(false));
            let victim = victim.expect("the spare bands hold more than open and free bands do");
            let mut step = std::mem::take(&mut self.step);
            if self.plan_compaction(victim, plan, &mut step) {
                self.free.durable();
            }
            step.iter().for_each(|r| self.apply(r));
            step.clear();
            self.step = step;
        }
    }

    /// The band to clean; in idle time only one that is worth it.
    pub(super) fn choose(&self, ripe: bool) -> Option<u32> {
        let closed = self.bands.iter().enumerate().filter(|(_, b)| b.state == State::Closed);
        let candidates = closed.map(|(i, b)| Candidate {
            band: i as u32,
            slots: self.slots().count(i as u32),
            live: self.homes.live(i as u32),
            age: self.clock - b.stamp,
            heat: self.homes.weight(i as u32),
        });
        self.options.victim.choose(candidates.filter(|c| !ripe || self.is_ripe(c.band)))
    }

    /// Plans the compaction of one band, and lists what it changes; answers whether the plan has a fence.
    pub(super) fn plan_compaction(&self, victim: u32, plan: &mut Plan, out: &mut Vec<Record>) -> bool {
        let first = plan.ops().len();
        note(records::cleaning(victim), plan, out);
        let staged = self.stage(victim, plan);
        let (mut ahead, mut fenced) = (0, false);
        for class in 0..classes(self.options.separate) {
            let of_class = |s: &&Staged| self.cooled(s.0.note).1 == class;
            let units: Vec<Staged> = match self.options.separate {
                Separate::None => staged.clone(),
                _ => staged.iter().filter(of_class).copied().collect(),
            };
            let head = self.survivors_head(victim, class);
            let band = self.heads[head as usize];
            let mut target = Target { band, written: band.map_or(0, |b| self.homes.written(b)) };
            let mut rest = &units[..];
            while !rest.is_empty() {
                let band = target.band.unwrap_or_else(|| {
                    let (band, due) = self.free.peek(ahead).expect("the reserve holds every victim");
                    if due && !fenced {
                        plan.fence();
                        fenced = true;
                    }
                    ahead += 1;
                    note(records::opened(band, head), plan, out);
                    target.written = 0;
                    band
                });
                let room = self.slots().count(band) - target.written;
                let part;
                (part, rest) = rest.split_at(rest.len().min(room as usize));
                self.move_to(band, target.written, part, plan);
                runs(part, |unit, n| note(records::moved(unit, n, head), plan, out));
                target.written += part.len() as u32;
                target.band = (part.len() < room as usize).then_some(band);
            }
        }
        note(records::freed(victim), plan, out);
        if !staged.is_empty() {
            let relocated = Blocks(staged.len() as u64 * self.slots().unit());
            plan.cleaned("compaction", first, relocated);
        }
        fenced
    }

    /// The head to which survivors of a band go: of the stream that filled it.
    fn survivors_head(&self, victim: u32, class: u32) -> u32 {
        let classes = classes(self.options.separate);
        let of_host = self.options.streams * classes;
        let stream = self.bands[victim as usize].head % of_host / classes;
        stream * classes + class + if self.options.own { of_host } else { 0 }
    }

    /// Reads the live units of a band, neighbours in one operation.
    fn stage(&self, victim: u32, plan: &mut Plan) -> Vec<Staged> {
        let g = self.slots().unit();
        let mut staged: Vec<Staged> = Vec::new();
        let mut run: Vec<Live> = Vec::new();
        let mut read = |run: &mut Vec<Live>, plan: &mut Plan| {
            let Some(first) = run.first() else { return };
            let op =
                plan.read_staged(Cause::Defrag, self.slots().pba(first.slot), Blocks(run.len() as u64 * g));
            staged.extend(run.drain(..).zip(0u64..).map(|(live, i)| (live, op, i * g)));
        };
        for live in self.homes.live_in(victim) {
            if run.last().is_some_and(|last| last.slot + 1 != live.slot) {
                read(&mut run, plan);
            }
            run.push(live);
        }
        read(&mut run, plan);
        staged
    }

    /// Writes units to a band from its slot `written` on.
    fn move_to(&self, band: u32, written: u32, units: &[Staged], plan: &mut Plan) {
        let g = self.slots().unit();
        let at = self.slots().pba_in(band, written);
        plan.write_pieces(Cause::Defrag, at, Blocks(units.len() as u64 * g), |out| {
            let first = out.len();
            for &(_, op, offset) in units {
                match out[first..].last_mut() {
                    Some(Piece { blocks, end: Source::Staged(last, from) })
                        if *last == op && from.0 + blocks.0 == offset =>
                    {
                        blocks.0 += g;
                    }
                    _ => out.push(Piece { blocks: Blocks(g), end: Source::Staged(op, Blocks(offset)) }),
                }
            }
        });
    }
}

fn note(record: Record, plan: &mut Plan, out: &mut Vec<Record>) {
    plan.record(record);
    out.push(record);
}

/// Calls `each` with the first unit and the length of each run of units that follow each other.
fn runs(units: &[Staged], mut each: impl FnMut(u64, u64)) {
    let mut open = (0, 0);
    for &(live, ..) in units {
        if open.1 > 0 && open.0 + open.1 == live.unit {
            open.1 += 1;
            continue;
        }
        if open.1 > 0 {
            each(open.0, open.1);
        }
        open = (live.unit, 1);
    }
    if open.1 > 0 {
        each(open.0, open.1);
    }
}
