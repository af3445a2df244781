//! The cursor: what the ring holds of a region is read, then the region itself, and both are written to the spare place.
//!
//! A region is on its way in steps; its blocks before the cursor are in the spare place, those behind where they were. When
//! all are there the place that it left is the spare one. So nothing is ever written over that is needed.

use super::{ERegion, records};
use crate::parts::extents::Extent;
use crate::{Cause, Endpoint, OpId, Piece, Plan, Record, TranslationLayer};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// Steps that follow a write where the ring is full.
pub(super) const MOST_STEPS: usize = 9;

/// Positions in use, of so many, from which on one step follows each write, from which on two, and so on.
pub(super) fn paces(size: u64, pace: f64) -> [u64; MOST_STEPS] {
    let steps = |used: u64| {
        let above = used as f64 / size as f64 - pace;
        if above > 0.0 { 1 + (above / (1.0 - pace) * (MOST_STEPS - 1) as f64) as usize } else { 0 }
    };
    std::array::from_fn(|i| {
        let (mut fewer, mut from) = (0, size + 1);
        while fewer < from {
            let middle = fewer + (from - fewer) / 2;
            if steps(middle) > i { from = middle } else { fewer = middle + 1 }
        }
        from
    })
}

/// Blocks of a region that go to the spare place next.
#[derive(Clone, Debug)]
pub(super) struct Step {
    region: u64,
    /// Offsets in the region.
    part: Range<u64>,
}

/// Blocks that lie together in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    lba: u64,
    blocks: u64,
    pba: Pba,
    /// The operation that reads them, and how many blocks it reads before them.
    read: (OpId, u64),
}

/// Reads parts in the order in which they lie; those side by side at once.
fn read_in_order(parts: &mut [Part], plan: &mut Plan) {
    parts.sort_unstable_by_key(|part| part.pba);
    let beside = |a: &Part, b: &Part| a.pba + Blocks(a.blocks) == b.pba;
    for run in parts.chunk_by_mut(beside) {
        let first = run[0].pba;
        let blocks = run.iter().map(|part| part.blocks).sum();
        let op = plan.read_staged(Cause::Destage, first, Blocks(blocks));
        run.iter_mut().for_each(|part| part.read = (op, part.pba.0 - first.0));
    }
}

/// The blocks of a step in their order: what the ring had, and between these `older` for what holds data.
fn put_together(
    lbas: Range<u64>,
    live: &[Range<u64>],
    newer: &[Part],
    older: &dyn Fn(u64) -> Endpoint,
    out: &mut Vec<Piece>,
) {
    let mut piece = |run: Range<u64>, source: &dyn Fn(u64) -> Endpoint| {
        if !run.is_empty() {
            out.push(Piece { blocks: Blocks(run.end - run.start), end: source(run.start) });
        }
    };
    let zero = |_| Endpoint::Zero;
    let (mut at, mut newer) = (lbas.start, newer.iter().peekable());
    for live in live {
        piece(at..live.start, &zero);
        at = live.start;
        while let Some(part) = newer.next_if(|part| part.lba < live.end) {
            piece(at..part.lba, older);
            at = part.lba + part.blocks;
            piece(part.lba..at, &|_| Endpoint::Staged(part.read.0, Blocks(part.read.1)));
        }
        piece(at..live.end, older);
        at = live.end;
    }
    piece(at..lbas.end, &zero);
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

    /// Plans a step, and leaves what the ring holds there; answers the record of it.
    pub(super) fn plan_step(&mut self, step: &Step, plan: &mut Plan) -> Record {
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        held.extend(self.cached.within(self.lbas_of(step)));
        let record = self.plan_refresh(step, &held, plan);
        self.held = held;
        record
    }

    fn lbas_of(&self, step: &Step) -> Range<u64> {
        let base = step.region * self.places.region;
        base + step.part.start..base + step.part.end
    }

    /// Plans a step, of whose blocks the ring holds these; answers the record of it.
    fn plan_refresh(&mut self, step: &Step, held: &[Extent], plan: &mut Plan) -> Record {
        if step.part.start == 0 && self.spare_needed {
            plan.fence();
        }
        let (first, lbas) = (plan.ops().len(), self.lbas_of(step));
        let (mut live, mut newer) = (std::mem::take(&mut self.live_runs), std::mem::take(&mut self.newer));
        live.clear();
        live.extend(self.live.set().runs_in(lbas.clone()));
        newer.clear();
        let (home, moved) = self.sources(&live, held, &mut newer);
        read_in_order(&mut newer, plan);
        // In one run: the head passes over what the ring has newer copies of anyway.
        let at_home = (!home.is_empty()).then(|| {
            let blocks = Blocks(home.end - home.start);
            plan.read_staged(Cause::Destage, self.home(home.start).0, blocks)
        });
        let to = self.places.regions[self.spare as usize] + Blocks(step.part.start);
        plan.write_pieces(Cause::Destage, to, Blocks(lbas.end - lbas.start), |out| {
            newer.sort_unstable_by_key(|part| part.lba);
            let older = |lba: u64| match at_home {
                Some(op) => Endpoint::Staged(op, Blocks(lba - home.start)),
                None => Endpoint::Zero,
            };
            put_together(lbas, &live, &newer, &older, out);
        });
        (self.live_runs, self.newer) = (live, newer);
        plan.cleaned("refresh", first, Blocks(moved));
        let record = records::refreshed(step.region, &step.part);
        plan.record(record);
        record
    }

    /// Where the newest copies are of blocks of a region that hold data: at home from the first to the last of what is answered, but
    /// for the parts that the ring has, which all hold data. Answers how many there are, too.
    fn sources(&self, live: &[Range<u64>], held: &[Extent], newer: &mut Vec<Part>) -> (Range<u64>, u64) {
        let (mut home, mut moved) = (0..0, 0);
        let mut at_home = |run: Range<u64>| {
            if !run.is_empty() {
                home = if home.is_empty() { run } else { home.start..run.end };
            }
        };
        let mut held = held.iter();
        let mut next = held.next();
        for live in live {
            let mut at = live.start;
            moved += live.end - live.start;
            while let Some(e) = next.filter(|e| e.lba < live.end) {
                at_home(at..e.lba);
                at = e.lba + e.blocks;
                debug_assert!(live.start <= e.lba && at <= live.end, "{e:?} holds what {live:?} does not");
                self.for_places(e, |run, pba| {
                    newer.push(Part { lba: run.start, blocks: run.end - run.start, pba, read: (OpId(0), 0) });
                });
                next = held.next();
            }
            at_home(at..live.end);
        }
        (home, moved)
    }

    fn take_step(&mut self, plan: &mut Plan) {
        let step = self.next_step().expect("what fills the ring belongs to a region");
        let first = step.part.start == 0;
        // What is planned is done at once: the map is searched once for both.
        let mut held = std::mem::take(&mut self.held);
        self.cached.take(self.lbas_of(&step), &mut held);
        self.plan_refresh(&step, &held, plan);
        if first && self.spare_needed {
            self.durable();
        }
        self.refreshed(step.region, step.part, &held);
        self.held = held;
    }

    /// After a write: steps where the ring is fuller than it should be, the more of them the fuller it is, and whatever
    /// the next write needs.
    pub(super) fn make_room(&mut self, plan: &mut Plan) {
        let used = self.ring.used();
        let steps = self.paces.iter().take_while(|from| used >= **from).count();
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
            self.move_to_head(&e, plan);
        }
        plan.cleaned("ring-move", first, Blocks(blocks));
        true
    }

    /// Writes blocks that the ring holds to its head.
    fn move_to_head(&mut self, e: &Extent, plan: &mut Plan) {
        let mut staged: Vec<(u64, u64, OpId)> = Vec::new();
        self.for_places(e, |run, pba| {
            let n = run.end - run.start;
            staged.push((run.start, n, plan.read_staged(Cause::Defrag, pba, Blocks(n))));
        });
        for (lba, n, op) in staged {
            self.fence_before(n, plan);
            self.plan_append(n, plan, |at| (Cause::Defrag, Endpoint::Staged(op, Blocks(at))));
            plan.record(records::appended(lba, n));
            self.append(lba, n);
            self.counters.moved += n;
        }
    }
}
