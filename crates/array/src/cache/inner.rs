//! What the array within plans, and what becomes of the works that it ends.

use super::{Cached, SLOT, Stage};
use crate::plan::Outcome;
use crate::{Array, MemberOp, MemberPlan, Ticket, Work};
use smrlab_stl::HostRequest;
use smrlab_units::HostOp;

impl Cached {
    /// Has the array within plan something, and takes its plan over. Answers how `ticket` ended, if it did: that is the caller's; others
    /// that ended and of which the cache has more to do wait for [`Self::go_on`].
    pub(super) fn within(
        &mut self,
        ticket: Option<Ticket>,
        plan: &mut MemberPlan,
        act: impl FnOnce(&mut dyn Array, &mut MemberPlan),
    ) -> Option<Outcome> {
        let mut own = std::mem::take(&mut self.inner_plan).reuse(plan);
        act(&mut *self.inner, &mut own);
        own.ops().iter().for_each(|op| self.take_over(&own, op, plan));
        plan.take_effects(&own);
        own.jobs().iter().for_each(|job| plan.job(*job));
        let mut ended = None;
        for outcome in own.outcomes() {
            match self.stages.get(outcome.ticket()) {
                Some(Stage::Stripes(_) | Stage::OnDisks(_) | Stage::Destage(_))
                    if !matches!(outcome, Outcome::Acknowledged(_)) =>
                {
                    if ticket == Some(outcome.ticket()) {
                        ended = Some(*outcome);
                    } else {
                        self.ended.push_back(*outcome);
                    }
                }
                _ => plan.becomes(*outcome),
            }
        }
        self.inner_plan = own;
        ended
    }

    /// Takes over a request: what a destage writes comes from the slot that its pages were read into.
    fn take_over(&self, own: &MemberPlan, op: &MemberOp, plan: &mut MemberPlan) {
        match self.stages.get(op.ticket) {
            Some(Stage::Destage(destage)) if op.request.op == HostOp::Write => plan.ask_as(*op, |out| {
                for part in own.parts(op) {
                    let terms = own.terms_of(part.end).into_iter();
                    let terms: Vec<_> = terms.map(|t| t.with_host_in(SLOT, destage.in_slot())).collect();
                    let end = out.sum(&terms);
                    out.push(part.blocks, end);
                }
            }),
            _ => plan.ask_again(own, op, op.member),
        }
    }

    /// The array within did what there is to do of a ticket in this phase, and perhaps ended it.
    pub(super) fn went_on(&mut self, ticket: Ticket, outcome: Option<Outcome>, plan: &mut MemberPlan) {
        match self.stages.get(ticket) {
            Some(Stage::Destage(_)) => self.runs_over(ticket, outcome, plan),
            _ => self.on_disks_over(ticket, outcome, plan),
        }
    }

    /// Goes on with works that the array within ended.
    pub(super) fn go_on(&mut self, plan: &mut MemberPlan) {
        while let Some(outcome) = self.ended.pop_front() {
            self.went_on(outcome.ticket(), Some(outcome), plan);
        }
        self.look_at_refused(plan);
    }

    /// Work that the array within does as it is.
    pub(super) fn pass(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        self.stages.put(ticket, Stage::Passed);
        self.within(None, plan, |inner, own| inner.start(ticket, work, own));
    }

    /// Has the array within begin with a request under a ticket; answers how that ended, if it did.
    pub(super) fn ask_inner(
        &mut self,
        ticket: Ticket,
        request: HostRequest,
        plan: &mut MemberPlan,
    ) -> Option<Outcome> {
        self.within(Some(ticket), plan, |inner, own| inner.start(ticket, &Work::Host(request), own))
    }
}
