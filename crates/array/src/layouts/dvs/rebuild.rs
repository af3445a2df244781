//! Deaths and replacements: a lost disk's segments are made from the stripe table, obsolete members included.

use super::group::{Holds, Place};
use super::state::{At, Doing, State};
use super::{Dvs, ORDER, Task};
use crate::layouts::chunks::SlotRead;
use crate::layouts::rebuild::Rebuild;
use crate::{MemberId, MemberPlan, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeSet;

impl Dvs {
    /// What the rebuild of a disk begins with.
    pub(super) fn rebuilds(&self, now: SimTime) -> impl Fn(u64) -> Rebuild + use<> {
        let (groups, seed) = (self.shape.groups, self.options.seed);
        move |disk| Rebuild::new(disk, groups, ORDER, seed, now)
    }

    /// Groups of which a fresh disk lacks nothing: what is being written now was planned without it.
    pub(super) fn empty_groups(&self) -> Vec<u64> {
        let under_way: BTreeSet<u64> =
            self.states.iter().flat_map(|(_, s)| s.destages.iter().chain(&s.rest).map(|d| d.group)).collect();
        let empty =
            |g: &u64| !under_way.contains(g) && self.group(*g).is_none_or(|tables| tables.written() == 0);
        (0..self.shape.groups).filter(empty).collect()
    }

    /// Reads all that the other disks' segments hold.
    pub(super) fn start_rebuild(&mut self, ticket: Ticket, group: u64, plan: &mut MemberPlan) -> Box<State> {
        let mut state = self.begin(Doing::Task(Task::Rebuild(group)), At::Sources);
        let target = self.disks.target();
        let others = (0..self.shape.disks).filter(|d| Some(*d) != target);
        let lost = others.clone().any(|d| !self.disks.has(d, group));
        let (Some(disk), false) = (target, lost) else {
            self.disks.give_up(plan);
            plan.end(ticket);
            return state;
        };
        let start = self.shape.start(group);
        // A group that was never written has no tables.
        let pointers = self.group(group).map_or(&[][..], |tables| tables.pointers());
        for other in others {
            let chunks = pointers.get(other as usize).copied().unwrap_or(0);
            if chunks > 0 {
                let blocks = u64::from(chunks) * self.shape.chunk;
                state.slots.reads.push(SlotRead { disk: other, start, blocks });
            }
        }
        state.slots.plan(ticket, Cause::Rebuild, plan);
        if plan.ops().is_empty() {
            // There is nothing to write either.
            state.at = At::Writes;
            plan.ask(ticket, MemberId(disk as u32), HostRequest::flush(), |_| {});
        }
        state
    }

    /// Writes the segment of the replaced disk.
    pub(super) fn write_rebuilt(&mut self, ticket: Ticket, state: &mut State, plan: &mut MemberPlan) {
        state.at = At::Writes;
        let Doing::Task(Task::Rebuild(group)) = state.doing else { return };
        let target = self.disks.target();
        let (Some(disk), Some(tables)) = (target, self.group(group)) else { return plan.end(ticket) };
        let chunk = self.shape.chunk;
        let n = u64::from(tables.pointers()[disk as usize]);
        if n == 0 {
            // Nothing to write: a flush ends the phase.
            return plan.ask(ticket, MemberId(disk as u32), HostRequest::flush(), |_| {});
        }
        let (lba, blocks) = (Lba(self.shape.start(group)), Blocks(n * chunk));
        let request = HostRequest { why: Cause::Rebuild, ..HostRequest::new(HostOp::Write, lba, blocks) };
        let slot = |disk: u64| state.slots.reads.iter().position(|r| r.disk == disk);
        plan.ask(ticket, MemberId(disk as u32), request, |out| {
            for at in 0..n {
                let mut terms = Vec::new();
                let stripe = tables.stripe_at(Place { disk, at }).unwrap_or_default();
                for (other, cell) in stripe.iter().enumerate() {
                    if other as u64 != disk
                        && cell.holds() != Holds::Nothing
                        && let Some(slot) = slot(other as u64)
                    {
                        terms.push(Term::slot(slot as u32, Blocks(u64::from(cell.at) * chunk)));
                    }
                }
                let end = out.sum(&terms);
                out.push(Blocks(chunk), end);
            }
        });
    }
}
