//! Deaths and replacements: a lost disk's segments are made from the stripe table, obsolete members included.

use super::Dvs;
use super::operation::{Operation, RebuildOp};
use crate::layouts::chunks::{SlotRead, Slots};
use crate::layouts::rebuild::{Order, Rebuild};
use crate::layouts::segments::ChunkPlace;
use crate::{MemberId, MemberPlan, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeSet;

impl Dvs {
    /// What the rebuild of a disk begins with.
    pub(super) fn rebuilds(&self, now: SimTime) -> impl Fn(u64) -> Rebuild + use<> {
        let (groups, seed) = (self.shape.groups, self.options.seed);
        move |disk| Rebuild::new(disk, groups, Order::Address, seed, now)
    }

    /// Groups of which a fresh disk lacks nothing: what is being written now was planned without it.
    pub(super) fn empty_groups(&self) -> Vec<u64> {
        let under_way: BTreeSet<u64> =
            self.operations.iter().flat_map(|(_, operation)| operation.groups_written()).collect();
        let empty =
            |g: &u64| !under_way.contains(g) && self.group(*g).is_none_or(|tables| tables.written() == 0);
        (0..self.shape.groups).filter(empty).collect()
    }

    /// Reads all that the other disks' segments hold.
    pub(super) fn begin_rebuild(&mut self, ticket: Ticket, group: u64, plan: &mut MemberPlan) {
        let target = self.disks.target();
        let others = (0..self.shape.disks).filter(|d| Some(*d) != target);
        let lost = others.clone().any(|d| !self.disks.has(d, group));
        let (Some(disk), false) = (target, lost) else {
            self.disks.give_up(plan);
            return plan.end(ticket);
        };
        let start = self.shape.start(group);
        // A group that was never written has no tables.
        let pointers = self.group(group).map_or(&[][..], |tables| tables.pointers());
        let chunks = |disk: u64| u64::from(pointers.get(disk as usize).copied().unwrap_or(0));
        let read = |disk| SlotRead { disk, start, blocks: chunks(disk) * self.shape.chunk };
        let reads: Vec<SlotRead> = others.filter(|disk| chunks(*disk) > 0).map(read).collect();
        let mut op = RebuildOp { group, changes: self.disks.changes(), sources: None };
        if reads.is_empty() {
            // There is nothing to write either: a flush ends the phase.
            plan.ask(ticket, MemberId(disk as u32), HostRequest::flush(), |_| {});
        } else {
            let slots = Slots { reads };
            slots.plan(ticket, Cause::Rebuild, plan);
            op.sources = Some(slots.reads);
        }
        self.operations.put(ticket, Operation::Rebuild(op));
    }

    /// A phase of a rebuild is over: the target is written, or all is done.
    pub(super) fn go_on_with_rebuild(&mut self, ticket: Ticket, mut op: RebuildOp, plan: &mut MemberPlan) {
        let Some(sources) = op.sources.take() else {
            self.disks.rebuilt(op.group, op.changes, plan);
            return plan.end(ticket);
        };
        match self.write_rebuilt(ticket, op.group, &sources, plan) {
            true => self.operations.put(ticket, Operation::Rebuild(op)),
            false => plan.end(ticket),
        }
    }

    /// Writes the segment of the replaced disk; answers whether it is still there.
    fn write_rebuilt(&self, ticket: Ticket, group: u64, sources: &[SlotRead], plan: &mut MemberPlan) -> bool {
        let target = self.disks.target();
        let (Some(disk), Some(tables)) = (target, self.group(group)) else { return false };
        let chunk = self.shape.chunk;
        let n = u64::from(tables.pointers()[disk as usize]);
        if n == 0 {
            // Nothing to write: a flush ends the phase.
            plan.ask(ticket, MemberId(disk as u32), HostRequest::flush(), |_| {});
            return true;
        }
        let (lba, blocks) = (Lba(self.shape.start(group)), Blocks(n * chunk));
        let request = HostRequest::new(HostOp::Write, lba, blocks).because(Cause::Rebuild);
        plan.ask(ticket, MemberId(disk as u32), request, |out| {
            for at in 0..n {
                let stripe = tables.stripe_at(ChunkPlace { disk, at }).unwrap_or_default();
                let others = stripe.into_iter().filter(|other| other.disk != disk);
                let terms: Vec<Term> = others
                    .filter_map(|other| {
                        let slot = sources.iter().position(|read| read.disk == other.disk)?;
                        Some(Term::slot(slot as u32, Blocks(other.at * chunk)))
                    })
                    .collect();
                let end = out.sum(&terms);
                out.push(Blocks(chunk), end);
            }
        });
        true
    }
}
