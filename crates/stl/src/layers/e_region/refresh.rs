//! The cursor: region after region is read, completed with what the ring holds of it, and written to the spare place.
//!
//! A region is on its way in steps; its blocks before the cursor are in the spare place, those behind where they were. When
//! all are there the place that it left is the spare one. So nothing is ever written over that is needed.

use super::{ERegion, records};
use crate::{Cause, Endpoint, OpId, Piece, Plan, Record, TranslationLayer};
use smrlab_units::Blocks;
use std::ops::Range;

/// Steps that follow a write where the ring is nearly full, but for the first.
const MOST_STEPS: f64 = 8.0;

/// Blocks of a region that go to the spare place next.
#[derive(Clone, Debug)]
pub(super) struct Step {
    region: u64,
    /// Offsets in the region.
    part: Range<u64>,
}

impl ERegion {
    /// Whether there is a [next step](Self::next_step).
    pub(super) fn has_step(&self) -> bool {
        self.cursor.done > 0 || self.tally.in_ring > 0
    }

    /// The next step: of the region that was begun, or of the next one, in the order of positions, of which the ring
    /// holds something.
    pub(super) fn next_step(&self) -> Option<Step> {
        if !self.has_step() {
            return None;
        }
        let region = if self.cursor.done > 0 {
            self.cursor.region
        } else {
            let (before, ahead) = self.tally.in_region.split_at(self.cursor.region as usize);
            let held = |of: &[u32]| of.iter().position(|&blocks| blocks > 0);
            held(ahead).map_or_else(|| held(before), |i| Some(before.len() + i))? as u64
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
        let (mut at, mut moved, wants_data) = (lbas.start, 0, plan.wants_data());
        let mut piece = |blocks: u64, end: Endpoint| {
            if wants_data {
                pieces.push(Piece { blocks: Blocks(blocks), end });
            }
        };
        for live in self.live.set().runs_in(lbas.clone()) {
            if live.start > at {
                piece(live.start - at, Endpoint::Zero);
            }
            at = live.end;
            self.for_runs(live, &mut |run, pba| {
                let blocks = run.end - run.start;
                let op: OpId = plan.read_staged(Cause::Destage, pba, Blocks(blocks));
                piece(blocks, Endpoint::Staged(op, Blocks::ZERO));
                moved += blocks;
            });
        }
        if at < lbas.end {
            piece(lbas.end - at, Endpoint::Zero);
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
        self.plan_step(&step, plan);
        if first && self.spare_needed {
            self.durable();
        }
        self.refresh(step.region, step.part);
    }

    /// After a write: steps where the ring is fuller than it should be, the more of them the fuller it is, and whatever
    /// the next write needs.
    pub(super) fn make_room(&mut self, plan: &mut Plan) {
        let (used, size) = (self.ring.used() as f64, self.ring.size() as f64);
        let above = used / size - self.options.pace;
        let steps = if above > 0.0 { 1 + (above / (1.0 - self.options.pace) * MOST_STEPS) as u32 } else { 0 };
        for _ in 0..steps {
            if self.has_step() {
                self.take_step(plan);
            }
        }
        // Two for one: the ring's tail gains on its head.
        for _ in 0..2 {
            if 4 * self.ring.free() < self.ring.size() && 2 * self.tally.in_ring <= self.ring.size() {
                self.retire(plan);
            }
        }
        self.make_room_for(self.room(), plan);
    }

    /// Until so many positions are free: retires the oldest entry while little of the ring is needed; else lets the cursor
    /// go on.
    pub(super) fn make_room_for(&mut self, room: u64, plan: &mut Plan) {
        while self.ring.free() < room {
            if 2 * self.tally.in_ring > self.ring.size() || !self.retire(plan) {
                self.take_step(plan);
            }
        }
    }

    /// Moves what is needed of the oldest entry to the head; `false`: there is no room for it.
    fn retire(&mut self, plan: &mut Plan) -> bool {
        let oldest = *self.tally.entries.front().expect("a full ring has entries");
        let needed = self.needed(&oldest);
        let blocks: u64 = needed.iter().map(|e| e.blocks).sum();
        if blocks + self.places.guard > self.ring.free() {
            return false;
        }
        let first = plan.ops().len();
        for e in needed {
            self.move_to_head(e.lba..e.lba + e.blocks, plan);
        }
        plan.cleaned("ring-move", first, Blocks(blocks));
        true
    }

    /// Writes blocks that the ring holds to its head.
    fn move_to_head(&mut self, lbas: Range<u64>, plan: &mut Plan) {
        let mut staged: Vec<(u64, u64, OpId)> = Vec::new();
        self.for_runs(lbas.clone(), &mut |run, pba| {
            let n = run.end - run.start;
            staged.push((run.start - lbas.start, n, plan.read_staged(Cause::Defrag, pba, Blocks(n))));
        });
        for (from, n, op) in staged {
            self.fence_before(n, plan);
            self.plan_append(n, plan, |at| (Cause::Defrag, Endpoint::Staged(op, Blocks(at))));
            plan.record(records::appended(lbas.start + from, n));
            self.append(lbas.start + from, n);
            self.counters.moved += n;
        }
    }
}
