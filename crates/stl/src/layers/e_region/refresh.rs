//! The cursor: region after region is read, completed with what the ring holds of it, and written to the spare place.
//!
//! A region is on its way in steps; its blocks before the cursor are in the spare place, those behind where they were. When
//! all are there the place that it left is the spare one. So nothing is ever written over that is needed.

use super::{ERegion, records};
use crate::{Cause, Endpoint, OpId, Piece, Plan, Record};
use smrlab_units::Blocks;
use std::ops::Range;

/// Steps that follow a write where as much of the ring is needed as may be, but for the first.
const MOST_STEPS: f64 = 8.0;

/// The share of the ring that may be needed where its oldest entries are retired: then a quarter of the ring at least is free, or
/// becomes so on the way.
const MOST_NEEDED: f64 = 0.75;

/// Blocks of a region that go to the spare place next.
#[derive(Clone, Debug)]
pub(super) struct Step {
    region: u64,
    /// Offsets in the region.
    part: Range<u64>,
}

impl ERegion {
    /// The next step: of the region that was begun, or of the next one, in the order of positions, of which the ring
    /// holds something.
    pub(super) fn next_step(&self) -> Option<Step> {
        let regions = self.in_region.len() as u64;
        let region = if self.cursor.done > 0 {
            self.cursor.region
        } else {
            let ahead = (0..regions).map(|i| (self.cursor.region + i) % regions);
            (self.in_ring > 0).then_some(())?;
            ahead.into_iter().find(|&r| self.in_region[r as usize] > 0)?
        };
        let end = (self.cursor.done + self.options.step).min(self.places.region);
        Some(Step { region, part: self.cursor.done..end })
    }

    /// Plans a step; answers the record of it.
    pub(super) fn plan_step(&self, step: &Step, plan: &mut Plan) -> Record {
        if step.part.start == 0 && self.spare_needed {
            plan.fence();
        }
        let (first, base) = (plan.ops().len(), step.region * self.places.region);
        let lbas = base + step.part.start..base + step.part.end;
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut at, mut moved) = (lbas.start, 0);
        for live in self.live.set().runs_in(lbas.clone()) {
            if live.start > at {
                pieces.push(Piece { blocks: Blocks(live.start - at), end: Endpoint::Zero });
            }
            at = live.end;
            self.for_runs(live, |run, pba, _| {
                let blocks = Blocks(run.end - run.start);
                let op: OpId = plan.read_staged(Cause::Destage, pba, blocks);
                pieces.push(Piece { blocks, end: Endpoint::Staged(op, Blocks::ZERO) });
                moved += blocks.0;
            });
        }
        if at < lbas.end {
            pieces.push(Piece { blocks: Blocks(lbas.end - at), end: Endpoint::Zero });
        }
        let to = self.places.regions[self.spare as usize] + Blocks(step.part.start);
        let blocks = Blocks(lbas.end - lbas.start);
        plan.write_pieces(Cause::Destage, to, blocks, |out| out.extend_from_slice(&pieces));
        plan.cleaned("refresh", first, Blocks(moved));
        let record = records::refreshed(step.region, &step.part);
        plan.record(record);
        record
    }

    fn take_step(&mut self, plan: &mut Plan) {
        let step = self.next_step().expect("what fills the ring belongs to a region");
        let first = step.part.start == 0;
        let record = self.plan_step(&step, plan);
        if first && self.spare_needed {
            self.all_durable();
        }
        self.apply(&record);
    }

    /// After a write: steps while more of the ring is needed than should be, the more of them the more it is; and whatever the
    /// next write needs.
    pub(super) fn make_room(&mut self, plan: &mut Plan) {
        let (above, most) = (self.needed_share() - self.options.pace, MOST_NEEDED - self.options.pace);
        let steps = if above > 0.0 { 1 + ((above / most.max(0.01)).min(1.0) * MOST_STEPS) as u32 } else { 0 };
        for _ in 0..steps {
            if self.needed_share() > self.options.pace {
                self.take_step(plan);
            }
        }
        if 4 * self.ring.free() < self.ring.size() && self.needed_share() <= MOST_NEEDED {
            self.retire(plan);
        }
        self.make_room_for(self.room(), plan);
    }

    /// The share of the ring that is needed: the rest is free, or was written again since.
    fn needed_share(&self) -> f64 {
        self.in_ring as f64 / self.ring.size() as f64
    }

    /// Until so many positions are free: retires the oldest entries while that gains room soon; else lets the cursor go on.
    pub(super) fn make_room_for(&mut self, room: u64, plan: &mut Plan) {
        while self.ring.free() < room {
            if self.needed_share() > MOST_NEEDED || !self.retire(plan) {
                self.take_step(plan);
            }
        }
    }

    /// Moves what is needed of the oldest entries, of a step's length together, to the head: all is read, then all is written, for
    /// one by one each would cost two seeks. `false`: there is no room for the first.
    fn retire(&mut self, plan: &mut Plan) -> bool {
        let (first, most) = (plan.ops().len(), self.options.step.min(self.longest()));
        let (mut lbas, mut passed, mut moved) = (Vec::new(), 0, 0);
        for entry in &self.entries {
            let needed = self.needed(entry);
            let blocks: u64 = needed.iter().map(|e| e.blocks).sum();
            let ends = !lbas.is_empty() && passed + entry.blocks > most;
            if ends || moved + blocks + self.places.guard > self.ring.free() {
                break;
            }
            (passed, moved) = (passed + entry.blocks, moved + blocks);
            lbas.extend(needed.iter().map(|e| e.lba..e.lba + e.blocks));
        }
        if lbas.is_empty() {
            return false;
        }
        self.move_to_head(&lbas, plan);
        plan.cleaned("ring-move", first, Blocks(moved));
        true
    }

    /// Writes blocks that the ring holds to its head.
    fn move_to_head(&mut self, lbas: &[Range<u64>], plan: &mut Plan) {
        let mut staged: Vec<(Range<u64>, OpId)> = Vec::new();
        for lbas in lbas {
            self.for_runs(lbas.clone(), |run, pba, _| {
                let op = plan.read_staged(Cause::Defrag, pba, Blocks(run.end - run.start));
                staged.push((run, op));
            });
        }
        for (run, op) in staged {
            let n = run.end - run.start;
            self.fence_before(n, plan);
            self.plan_append(n, plan, |at| (Cause::Defrag, Endpoint::Staged(op, Blocks(at))));
            let record = records::appended(run.start, n);
            plan.record(record);
            self.apply(&record);
            self.counters.moved += n;
        }
    }
}
