//! What a run watches: all figures of its result, logs, and what every block holds.

use crate::error::{Result, RunError};
use crate::logs::Logs;
use crate::metrics::{Metrics, Work};
use crate::spent::Spent;
use crate::verify::Verify;
use smrlab_array::{ArrayObserver, Done, MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_drive::{Buffered, Observer, OpDone, Row, Served, TimedPlan};
use smrlab_stl::{Counted, Facts, HostRequest, Pause, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::ops::Range;

/// See the [module](self). Without `EXTRAS` it is of one drive and has metrics alone, which costs that drive's run nothing.
pub(crate) struct Watch<const EXTRAS: bool> {
    /// The host's requests, and the media operations of all drives.
    pub total: Metrics,
    /// Of an array: each drive with the requests that it got.
    pub members: Vec<Metrics>,
    /// What is logged.
    pub logs: Logs,
    spent: Spent,
    /// What every block holds, where that is followed.
    pub verify: Option<Verify>,
    /// What each drive's layer had counted before the run.
    pub before: Vec<Counted>,
}

impl<const EXTRAS: bool> Watch<EXTRAS> {
    /// Of one drive (no `members`) or of an array of such.
    pub(crate) fn new(total: Metrics, members: Vec<Metrics>, logs: Logs, verify: Option<Verify>) -> Self {
        let spent = Spent::new(members.len());
        Self { total, members, logs, spent, verify, before: Vec::new() }
    }

    /// A write before the run, as it is to be sent.
    pub(crate) fn prefills(&mut self, request: HostRequest) -> HostRequest {
        self.verify.as_mut().map_or(request, |v| v.prefill(&request))
    }

    /// A write was served before the run; `executed`: by the one drive, which did this.
    ///
    /// # Errors
    /// What verification found.
    pub(crate) fn host_prefilled(
        &mut self,
        request: &HostRequest,
        executed: Option<&TimedPlan<'_>>,
    ) -> Result<()> {
        let placed = self.total.spaces.placed(request);
        self.total.updates.prefilled(placed.lba, placed.blocks);
        let Some(verify) = &mut self.verify else { return Ok(()) };
        executed.iter().for_each(|e| verify.prefilled(request, e));
        verify.done(request, false)
    }

    /// Ends the logs, and has the members' caches as one.
    ///
    /// # Errors
    /// A log that cannot be written.
    pub(crate) fn finish(mut self) -> Result<Self> {
        if !self.members.is_empty() {
            self.total.looked_by(&self.members);
        }
        std::mem::take(&mut self.logs).finish()?;
        Ok(self)
    }

    /// Where a drive's cache is noted.
    fn of(&self, member: MemberId) -> &Metrics {
        if EXTRAS { self.members.get(member.at()).unwrap_or(&self.total) } else { &self.total }
    }

    fn log(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        served: &Served,
        refusal: Option<Refusal>,
    ) -> Result<()> {
        match &mut self.logs.requests {
            Some(log) => {
                let spent = self.spent.of(request.id, served.start, served.ack);
                log.add(arrival, request, served, spent, refusal)
            }
            None => Ok(()),
        }
    }

    /// What a drive did besides what its metrics count, if that is anything.
    #[inline]
    fn carried_out(&mut self, came: SimTime, request: &HostRequest, executed: &TimedPlan<'_>) -> Result<()> {
        if self.verify.is_none() && self.logs.media.is_none() && !self.members.is_empty() {
            return Ok(());
        }
        self.noted(came, request, executed)
    }

    fn noted(&mut self, came: SimTime, request: &HostRequest, executed: &TimedPlan<'_>) -> Result<()> {
        self.logs.written()?;
        if let Some(verify) = &mut self.verify {
            verify.dispatched(request, executed)?;
        }
        if !self.members.is_empty() {
            return Ok(());
        }
        if executed.buffered {
            self.spent.hidden();
        }
        self.log(came, request, &executed.served, executed.plan.refusal())
    }
}

impl<const EXTRAS: bool> Observer for Watch<EXTRAS> {
    type Error = RunError;

    const PLANS: bool = EXTRAS;

    #[inline]
    fn coming(&self, request: &HostRequest) {
        self.total.coming(request);
    }

    fn first_at(&mut self, at: SimTime) {
        self.total.began(at);
        self.members.iter_mut().for_each(|m| m.began(at));
    }

    #[inline]
    fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        if EXTRAS {
            self.verify.iter_mut().for_each(|v| v.arrived(request));
            if self.logs.requests.is_some() {
                self.spent.arrived(request.id);
            }
        }
        self.total.arrived(at, request);
    }

    #[inline(always)]
    fn op(&mut self, done: &OpDone<'_>) {
        self.total.op(done);
        if EXTRAS {
            if let Some(member) = self.members.get_mut(done.member.at()) {
                member.op(done);
            }
            if let Some(log) = &mut self.logs.media {
                log.add(done);
            }
            if self.logs.requests.is_some() {
                self.spent.op(done);
            }
        }
    }

    fn paused(&mut self, member: MemberId, request: Option<u64>, pause: &Pause, start: SimTime) {
        self.total.paused(request, pause, start);
        if EXTRAS {
            if let Some(member) = self.members.get_mut(member.at()) {
                member.paused(request, pause, start);
            }
            if self.logs.requests.is_some() {
                self.spent.paused(request, pause, start);
            }
        }
    }

    #[inline(always)]
    fn dispatched(&mut self, came: SimTime, request: &HostRequest, executed: &TimedPlan<'_>) -> Result<()> {
        if EXTRAS {
            match self.members.get_mut(executed.member.at()) {
                Some(member) => {
                    member.served(came, request, executed);
                    self.total.executed(executed);
                }
                None => self.total.served(came, request, executed),
            }
            return self.carried_out(came, request, executed);
        }
        self.total.served(came, request, executed);
        Ok(())
    }

    #[inline(always)]
    fn held(&mut self, came: SimTime, request: &HostRequest, served: &Served) -> Result<()> {
        self.total.held(came, request, served);
        Ok(())
    }

    fn held_in_order(&mut self, row: &Row<'_>) -> Result<()> {
        self.total.held_in_order(row);
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<()> {
        if let Some(verify) = &mut self.verify {
            verify.accepted(write.member, write.request);
        }
        Ok(())
    }

    fn answered(&mut self, read: &Buffered<'_>, write: &HostRequest) -> Result<()> {
        let &Buffered { member, came, request, ref served } = read;
        if let Some(verify) = &mut self.verify {
            verify.answered(member, request, write)?;
        }
        if let Some(member) = self.members.get_mut(member.at()) {
            member.counted(came, request, served, Work::default());
            return Ok(());
        }
        self.total.counted(came, request, served, Work::default());
        self.log(came, request, served, None)
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<()> {
        self.total.executed(step);
        if EXTRAS {
            if let Some(member) = self.members.get_mut(step.member.at()) {
                member.executed(step);
            }
            if let Some(verify) = &mut self.verify {
                verify.background(step);
            }
            self.logs.written()?;
        }
        Ok(())
    }

    #[inline]
    fn looks(&self, member: MemberId, at: SimTime) -> bool {
        self.of(member).fill.due(at)
    }

    fn looked(&mut self, member: MemberId, at: SimTime, facts: &Facts<'_>) {
        self.members.get_mut(member.at()).unwrap_or(&mut self.total).looked(at, facts);
    }
}

impl ArrayObserver for Watch<true> {
    fn began(&mut self, ticket: Ticket, request: &HostRequest) {
        self.verify.iter_mut().for_each(|v| v.began(ticket, request));
    }

    fn completed(&mut self, done: &Done) -> Result<()> {
        let served = Served { start: done.start, ack: done.ack, end: done.ack };
        match done.refusal {
            Some(why) => self.total.refused(done.arrival, &done.request, &served, (why, done.request.lba)),
            None => {
                let work = Work { ops: done.ops, extents: 1 };
                let placed = self.total.spaces.placed(&done.request);
                self.total.counted(done.arrival, &placed, &served, work);
            }
        }
        self.log(done.arrival, &done.request, &served, done.refusal)?;
        match &mut self.verify {
            Some(verify) => verify.done(&done.request, done.refusal.is_some()),
            None => Ok(()),
        }
    }

    fn issued(
        &mut self,
        at: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        executed: Option<&TimedPlan<'_>>,
    ) -> Result<()> {
        if let Some(verify) = &mut self.verify {
            let refused = executed.is_some_and(|e| e.plan.refusal().is_some());
            verify.asked(op, (!refused).then_some(plan));
        }
        let Some(executed) = executed else { return Ok(()) };
        self.members[op.member.at()].arrived(at, &op.request);
        self.dispatched(at, &op.request, executed)
    }

    fn sent(&mut self, at: SimTime, op: &MemberOp, _: u64, plan: &MemberPlan) {
        self.verify.iter_mut().for_each(|v| v.asked(op, Some(plan)));
        self.members[op.member.at()].arrived(at, &op.request);
    }

    fn prefilled(&mut self, op: &MemberOp, plan: &MemberPlan, executed: Option<&TimedPlan<'_>>) {
        if let Some(verify) = &mut self.verify {
            verify.asked(op, Some(plan));
            executed.iter().for_each(|e| verify.prefilled(&op.request, e));
        }
        if op.request.op == HostOp::Write {
            self.filled(op.member, op.request.span());
        }
    }

    fn filled(&mut self, member: MemberId, blocks: Range<u64>) {
        if let Some(member) = self.members.get_mut(member.at()) {
            member.updates.prefilled(Lba(blocks.start), Blocks(blocks.end - blocks.start));
        }
    }

    fn replaced(&mut self, member: MemberId) {
        if let Some(before) = self.before.get_mut(member.at()) {
            *before = Counted::default();
        }
        if let Some(metrics) = self.members.get_mut(member.at()) {
            metrics.updates.replaced();
        }
        self.verify.iter_mut().for_each(|v| v.replaced(member));
    }

    fn planned(&mut self, _: SimTime, plan: &MemberPlan) {
        self.verify.iter_mut().for_each(|v| v.planned(plan));
    }

    fn cleaned(&mut self, kind: &'static str, from: SimTime, to: SimTime, relocated: u64) {
        self.total.cleaned_event(kind, from, to, relocated);
    }
}
