//! How the S-block ring turns: room for an S-block at its head, bought by moving on what lies at its tail.

use super::blocks::NONE;
use super::section::Section;
use super::work::Work;
use super::{Rules, records};
use crate::{Cause, Endpoint, Plan};
use smrlab_units::{Blocks, Dir, Pba};

/// Invalid slots that are freed at the most before an S-block is written, as long as there is room.
const POPPED: u64 = 8;

impl Section {
    /// Everything in `x` was discarded: it gives up its slot.
    pub(super) fn vacate(&mut self, x: u32) {
        let s = self.blocks.at(x);
        if !self.slots.is_placed(s.slot) {
            return;
        }
        if s.first != NONE {
            let gone = self.cache.invalidate_all(self.blocks.at_mut(x));
            self.recount(x, true, 0, gone);
        }
        self.blocks.at_mut(x).slot = self.slots.vacate(x, s.slot);
    }

    /// Algorithm V.5, before `x` is written: S-blocks at the tail move to the head until the ring has room. The slot of
    /// `x` itself, which this write makes invalid, need not move (unless by the literal rules).
    pub(super) fn make_slot(&mut self, x: u32, rules: &Rules, work: &mut Work, plan: &mut Plan) {
        let low = self.low_room(rules);
        if self.slots.room() >= low {
            return;
        }
        let (first, most) = (plan.ops().len(), self.most_steps(rules));
        let (mut moved, mut steps) = (0, 0);
        while self.slots.room() < low && (steps < most || self.slots.room() < 2) {
            steps += 1;
            match self.slots.at_tail() {
                None => self.pop_slot(rules, plan),
                Some(y) if y == x && !rules.literal => break,
                Some(y) => {
                    let slot = self.blocks.at(y).slot;
                    let staged = plan.read_staged(Cause::Defrag, self.slots.pba(slot), Blocks(rules.size));
                    self.spend_slot(work, plan);
                    let head = self.slots.pba(self.slots.ring.head() as u32);
                    plan.write(
                        Cause::Defrag,
                        head,
                        Blocks(rules.size),
                        Endpoint::Staged(staged, Blocks::ZERO),
                    );
                    Self::record(plan, records::PLACED, [self.first + u64::from(y), 0, 0]);
                    self.placed(y, false);
                    self.pop_slot(rules, plan);
                    moved += rules.size;
                    work.counters.sblock_copies += 1;
                }
            }
        }
        if moved > 0 {
            plan.cleaned("sblock-defrag", first, Blocks(moved));
        }
    }

    /// The tail moves on only below so many slots of room: by the paper not until there is none.
    fn low_room(&self, rules: &Rules) -> u64 {
        let spare = self.slots.spare();
        if rules.paced { (spare - spare / 8).max(2) } else { 2 }
    }

    /// How many slots the tail moves on at the most, as long as there is any room. By the paper until there is room.
    ///
    /// Paced, in steps: as many slots as it takes to come to the next invalid ones while there still is room. These may be
    /// few, so in the last quarter of the spare slots it is as many as turn the whole ring before that is used up.
    fn most_steps(&self, rules: &Rules) -> u64 {
        if !rules.paced {
            return u64::MAX;
        }
        let (room, spare) = (self.slots.room(), self.slots.spare());
        match self.slots.next_invalid() {
            Some((0, _)) => POPPED,
            Some((distance, run)) => {
                let steps = distance / room.saturating_sub(1).max(1);
                let few = run < spare / 4 && room < spare / 4;
                if few { steps.max(4 * self.slots.ring.used() / spare + 1) } else { steps }
            }
            None => 0,
        }
    }

    /// Frees the slot at the tail where it is invalid and room is short.
    pub(super) fn pop_slot(&mut self, rules: &Rules, plan: &mut Plan) {
        if self.slots.room() < self.low_room(rules) && self.slots.at_tail().is_none() {
            self.slots.pop();
            Self::record(plan, records::POP, [self.first, 0, 0]);
        }
    }

    /// A write of a whole S-block goes to the S-block ring directly.
    pub(super) fn bypass(&mut self, x: u32, host: u64, rules: &Rules, work: &mut Work, plan: &mut Plan) {
        self.see_fences(work);
        self.make_slot(x, rules, work, plan);
        self.spend_slot(work, plan);
        let head = self.slots.pba(self.slots.ring.head() as u32);
        plan.write(Cause::Host, head, Blocks(rules.size), Endpoint::Host(Blocks(host)));
        Self::record(plan, records::PLACED, [self.first + u64::from(x), 2, 0]);
        self.placed(x, true);
        self.pop_slot(rules, plan);
        work.counters.bypassed += 1;
    }

    pub(super) fn first_of_destage(&self, x: u32, rules: &Rules) -> Pba {
        let copied = self.first_of_slot(x, rules);
        copied.unwrap_or_else(|| {
            let s = self.blocks.at(x);
            if self.slots.is_placed(s.slot) {
                return self.slots.pba(s.slot);
            }
            let mut parts = Vec::new();
            self.cache.parts(&s, 0, rules.size, &mut parts);
            let lowest = parts.iter().map(|p| p.at).min();
            lowest.map_or(self.slots.pba(s.slot), |at| self.cache.laid.pba(at))
        })
    }

    /// The first operation of a bypass.
    pub(super) fn first_of_bypass(&self, x: u32, rules: &Rules) -> (Pba, Dir) {
        let head = self.slots.pba(self.slots.ring.head() as u32);
        self.first_of_slot(x, rules).map_or((head, Dir::Write), |copied| (copied, Dir::Read))
    }

    /// The first copy that making room for `x` needs.
    fn first_of_slot(&self, x: u32, rules: &Rules) -> Option<Pba> {
        let low = self.low_room(rules);
        let (mut room, mut ahead) = (self.slots.room(), 0);
        if room >= low {
            return None;
        }
        let most = self.most_steps(rules);
        while room < low && (ahead < most || room < 2) {
            match self.slots.owner_ahead(ahead) {
                None => (room, ahead) = (room + 1, ahead + 1),
                Some(y) if y == x && !rules.literal => return None,
                Some(y) => return Some(self.slots.pba(self.blocks.at(y).slot)),
            }
        }
        None
    }
}
