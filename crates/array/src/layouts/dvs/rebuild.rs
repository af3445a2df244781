//! Deaths and replacements: a lost disk's segments are made from the stripe table, obsolete members included.

use super::group::{Holds, Place};
use super::*;

impl Dvs {
    pub(super) fn lose(&mut self, disk: u64) {
        self.rebuild = self.rebuild.take().filter(|r| r.disk != disk);
        self.dead[disk as usize] = true;
        self.changes += 1;
    }

    pub(super) fn replace(&mut self, disk: u64, now: SimTime) -> bool {
        let alone = self.dead.iter().filter(|d| **d).count() == 1 && self.dead[disk as usize];
        if alone {
            let mut rebuild = Rebuild::new(disk, self.shape.groups, ORDER, self.options.seed, now);
            // What is being written now was planned without this disk.
            let under_way: BTreeSet<u64> =
                self.states.iter().flat_map(|(_, s)| s.destages.iter().map(|d| d.group)).collect();
            let empty =
                |g: &u64| !under_way.contains(g) && self.group(*g).is_none_or(|tables| tables.written() == 0);
            let whole = (0..self.shape.groups).filter(empty).fold(false, |_, g| rebuild.finished(g));
            self.rebuild = Some(rebuild);
            if whole {
                self.whole();
            }
        }
        alone
    }

    pub(super) fn whole(&mut self) {
        if let Some(rebuild) = self.rebuild.take() {
            self.dead[rebuild.disk as usize] = false;
        }
    }

    /// Reads all that the other disks' segments hold.
    pub(super) fn start_rebuild(&mut self, ticket: Ticket, group: u64, plan: &mut MemberPlan) -> State {
        let mut state = self.begin(&Work::Job(group), At::Sources);
        let target = self.rebuild.as_ref().map(|r| r.disk);
        let others = (0..self.shape.disks).filter(|d| Some(*d) != target);
        let lost = others.clone().any(|d| !self.disks().alive(d, group));
        let (Some(tables), false, true) = (self.group(group), lost, target.is_some()) else {
            self.rebuild = None;
            plan.end(ticket);
            return state;
        };
        let start = group * self.shape.length * self.shape.chunk;
        for disk in others {
            let blocks = u64::from(tables.pointers()[disk as usize]) * self.shape.chunk;
            if blocks > 0 {
                state.slots.reads.push((disk, start, blocks));
            }
        }
        state.slots.plan(ticket, Cause::Rebuild, plan);
        if let (true, Some(disk)) = (plan.ops().is_empty(), target) {
            // The group was emptied meanwhile: there is nothing to write either.
            state.at = At::Writes;
            plan.ask(ticket, MemberId(disk as u32), HostRequest::flush(), |_| {});
        }
        state
    }

    /// Writes the segment of the replaced disk.
    pub(super) fn write_rebuilt(&mut self, ticket: Ticket, state: &mut State, plan: &mut MemberPlan) {
        state.at = At::Writes;
        let Work::Job(group) = state.work else { return };
        let target = self.rebuild.as_ref().map(|r| r.disk);
        let (Some(disk), Some(tables)) = (target, self.group(group)) else { return plan.end(ticket) };
        let chunk = self.shape.chunk;
        let n = u64::from(tables.pointers()[disk as usize]);
        if n == 0 {
            // Nothing to write: a flush ends the phase.
            return plan.ask(ticket, MemberId(disk as u32), HostRequest::flush(), |_| {});
        }
        let (lba, blocks) = (Lba(group * self.shape.length * chunk), Blocks(n * chunk));
        let request = HostRequest { why: Cause::Rebuild, ..HostRequest::new(HostOp::Write, lba, blocks) };
        let slot = |disk: u64| state.slots.reads.iter().position(|r| r.0 == disk);
        plan.ask(ticket, MemberId(disk as u32), request, |out| {
            for at in 0..n {
                let mut terms = Vec::new();
                let stripe = tables.stripe_at(Place { disk, at }).unwrap_or_default();
                for (other, cell) in stripe.iter().enumerate() {
                    if other as u64 != disk
                        && cell.holds() != Holds::Nothing
                        && let Some(slot) = slot(other as u64)
                    {
                        terms.push(Term::Slot(slot as u32, Blocks(u64::from(cell.at) * chunk)));
                    }
                }
                let end = out.xor(&terms);
                out.push(Blocks(chunk), end);
            }
        });
    }

    pub(super) fn rebuilt(&mut self, now: SimTime, ticket: Ticket, state: &State, plan: &mut MemberPlan) {
        let Work::Job(group) = state.work else { return };
        if let Some(rebuild) = self.rebuild.as_mut().filter(|_| state.changes == self.changes) {
            rebuild.under_way = rebuild.under_way.saturating_sub(1);
            plan.record(Record { tag: REBUILT, words: [group, 0, 0] });
            if rebuild.finished(group) {
                self.counts.rebuilds += 1;
                self.counts.rebuild_ns += now.since(rebuild.began).0;
                self.whole();
                plan.record(Record { tag: WHOLE, words: [0; 3] });
            }
        }
        plan.end(ticket);
    }
}
