//! Host requests that need the disks: misses, discards, and writes where there is no write cache. A job takes the stripes of the array
//! within; then that does the request, under its ticket.

use super::pages;
use super::{Cached, SLOT, Stage, Task};
use crate::plan::Outcome;
use crate::{End, MemberPlan, Term, Ticket};
use smrlab_stl::HostRequest;
use smrlab_units::{Blocks, HostOp};
use std::ops::Range;

/// A host request that the array within does.
#[derive(Clone, Debug)]
pub(super) struct OnDisks {
    request: HostRequest,
    /// The job that has the stripes for it.
    job: Ticket,
    /// Of a read: dirty blocks that are laid over what it brings, by their offsets in the request.
    dirty: Vec<Range<u64>>,
}

impl Cached {
    /// Has a job take the stripes of a request.
    pub(super) fn take_stripes(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        self.stages.put(ticket, Stage::Stripes(*r));
        plan.awaited_job(Task::TakeStripes(u64::from(ticket.0)));
    }

    /// `job` has the stripes: the array within begins.
    pub(super) fn start_on_disks(&mut self, ticket: Ticket, job: Ticket, plan: &mut MemberPlan) {
        let Some(&Stage::Stripes(request)) = self.stages.get(ticket) else { return plan.end(job) };
        let outcome = self.ask_inner(ticket, request, plan);
        let dirty = match outcome {
            Some(Outcome::Refused(..)) => Vec::new(),
            _ if request.op == HostOp::Read => self.read_dirty(ticket, &request, plan),
            _ => Vec::new(),
        };
        let reads_dirty = !dirty.is_empty();
        let on_disks = OnDisks { request, job, dirty };
        if outcome.is_some() && reads_dirty {
            return self.stages.put(ticket, Stage::ReadDirty(on_disks));
        }
        self.stages.put(ticket, Stage::OnDisks(on_disks));
        self.on_disks_over(ticket, outcome, plan);
    }

    /// Reads what is dirty of a request from the SSD, while the disks read the rest; answers its offsets.
    fn read_dirty(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) -> Vec<Range<u64>> {
        let mut dirty = Vec::new();
        let read = HostRequest::new(HostOp::Read, r.lba, r.blocks);
        for part in self.parts(&r.span()) {
            let Some(found) = self.dirty.get(part.page) else { continue };
            let sectors = found.valid & part.mask();
            let to_slot = |run: &Range<u64>| End::Slot(SLOT, Blocks(part.in_range(run).start));
            self.ask_ssd(ticket, &read, (found.slot, sectors), plan, to_slot);
            pages::runs(sectors, |run| dirty.push(part.in_range(&run)));
        }
        dirty
    }

    /// The array within ended or refused such a request, or (`None`) went on with it.
    pub(super) fn on_disks_over(&mut self, ticket: Ticket, outcome: Option<Outcome>, plan: &mut MemberPlan) {
        let Some(ended) = outcome else { return };
        let Some(Stage::OnDisks(on_disks)) = self.stages.take(ticket) else { return };
        let Outcome::Refused(_, why) = ended else { return self.disks_did(ticket, &on_disks, plan) };
        self.leaves_disks(ticket, plan);
        plan.refuse(ticket, why);
        plan.end(on_disks.job);
        self.admit(plan);
    }

    /// The disks have done their part: dirty blocks are laid over a read, and what it brought is cached.
    pub(super) fn disks_did(&mut self, ticket: Ticket, done: &OnDisks, plan: &mut MemberPlan) {
        let OnDisks { request: r, job, dirty } = done;
        // Where discarded blocks keep what they held, dirty ones may too.
        if r.op == HostOp::Discard && self.settings.write > 0 && self.settings.discards {
            self.forget(r, plan);
        }
        self.leaves_disks(ticket, plan);
        plan.end(*job);
        for run in dirty {
            let at = Blocks(run.start);
            plan.deliver(ticket, at, Blocks(run.end - run.start), &[Term::slot(SLOT, at)]);
        }
        let before = plan.ops().len();
        if r.op == HostOp::Read && self.settings.read > 0 && !self.changing.meets(&r.span()) {
            self.fill(ticket, r, plan);
        }
        if plan.ops().len() > before {
            plan.acknowledge(ticket);
            self.stages.put(ticket, Stage::Last);
        } else {
            plan.end(ticket);
        }
        self.admit(plan);
    }

    /// A request is not under way on the disks any more.
    fn leaves_disks(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        self.reading.remove(ticket);
        self.changing.remove(ticket);
        if !self.left_for_discards.is_empty() {
            let left = std::mem::take(&mut self.left_for_discards);
            left.into_iter().for_each(|group| self.destage_policy.touched(group));
            self.destage_more(plan);
        }
    }
}
