//! What a run of an array watches: the host, all members together, each member, and the logs that are asked for.

use crate::engine::HostObserver;
use crate::error::RunError;
use crate::logs::Logs;
use crate::metrics::{Metrics, Work};
use crate::spent::SpentByMany;
use crate::verify::ArrayVerify;
use smrlab_array::{ArrayObserver, ArrayState, Done, MemberId, MemberOp, MemberPlan};
use smrlab_disk::Phases;
use smrlab_drive::{Executed, Observer, OpDone, Served};
use smrlab_stl::{Counted, Facts, HostRequest, Pause};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// See the [module](self).
pub(crate) struct ArrayWatch {
    /// The host's requests, and the media operations of all members.
    pub total: Metrics,
    /// Each member with the requests that it got.
    pub members: Vec<Metrics>,
    logs: Logs,
    /// What was done for each request under way, where requests are logged.
    spent: Option<SpentByMany>,
    /// What every block holds, where that is followed.
    pub verify: Option<ArrayVerify>,
    /// What each member's layer had counted before the run.
    pub before: Vec<Counted>,
    /// What went wrong with a log.
    failed: Option<RunError>,
}

impl ArrayWatch {
    pub(crate) fn new(
        total: Metrics,
        members: Vec<Metrics>,
        logs: Logs,
        verify: Option<ArrayVerify>,
    ) -> Self {
        let spent = logs.requests.is_some().then(SpentByMany::default);
        Self { total, members, logs, spent, verify, before: Vec::new(), failed: None }
    }

    /// The drives were brought to a state: what was written there counts as written before.
    pub(crate) fn restored(&mut self, state: &ArrayState) {
        let members = self.members.iter_mut().zip(&state.members);
        for (metrics, of) in members.chain([(&mut self.total, &state.array)]) {
            for r in &of.written {
                metrics.updates.prefilled(Lba(r.start), Blocks(r.end - r.start), false);
            }
        }
    }

    /// A write before the run, as it is to be sent.
    pub(crate) fn prefills(&mut self, request: HostRequest) -> HostRequest {
        self.verify.as_mut().map_or(request, |v| v.prefill(&request))
    }

    /// A write was served before the run.
    pub(crate) fn host_prefilled(&mut self, request: &HostRequest) {
        self.total.updates.prefilled(request.lba, request.blocks, false);
    }

    /// Ends the logs, and has the members' caches as one.
    pub(crate) fn finish(mut self) -> Result<Self, RunError> {
        self.total.cached_by(&self.members);
        std::mem::take(&mut self.logs).finish()?;
        match self.failed.take() {
            Some(e) => Err(e),
            None => Ok(self),
        }
    }
}

impl HostObserver for ArrayWatch {
    fn coming(&self, request: &HostRequest) {
        self.total.coming(request);
    }

    fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        if self.total.first_arrival.is_none() {
            self.members.iter_mut().for_each(|m| m.began(at));
        }
        self.total.arrived(at, request);
        self.verify.iter_mut().for_each(|v| v.arrived(request));
        self.spent.iter_mut().for_each(|s| s.arrived(request.id));
    }
}

impl ArrayObserver for ArrayWatch {
    type Error = RunError;

    fn completed(&mut self, done: &Done) -> Result<(), RunError> {
        let served = Served { start: done.start, ack: done.ack, end: done.ack };
        if done.refusal.is_some() {
            self.total.refused += 1;
        }
        self.total.counted(done.arrival, &done.request, &served, Work { ops: done.ops, extents: 1 });
        if let Some(log) = &mut self.logs.requests {
            let spent = self.spent.as_mut().map(|s| s.of(done.request.id, served.start, served.ack));
            log.add(done.arrival, &done.request, &served, spent.unwrap_or_default())?;
        }
        if let Some(verify) = &mut self.verify {
            verify.done(done.request.id, done.refusal.is_some())?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    fn media(&mut self, member: MemberId, request: Option<u64>, done: &OpDone<'_>) {
        self.total.op(done);
        self.members[member.at()].op(done);
        if let Some(log) = &mut self.logs.media
            && let Err(e) = log.add_of(member.0, request, done)
        {
            self.failed.get_or_insert(e);
        }
        if let (Some(spent), Some(request)) = (&mut self.spent, request) {
            spent.op(request, done);
        }
    }

    fn moved(&mut self, _: MemberId, request: Option<u64>, done: &OpDone<'_>, phases: &Phases) {
        if let (Some(spent), Some(request)) = (&mut self.spent, request) {
            spent.moved(request, done, phases);
        }
    }

    fn paused(&mut self, member: MemberId, pause: &Pause, start: SimTime, background: bool) {
        self.total.paused(pause, start, background);
        self.members[member.at()].paused(pause, start, background);
    }

    fn issued(
        &mut self,
        at: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        _: &Served,
        executed: Option<&Executed<'_>>,
    ) {
        self.verify.iter_mut().for_each(|v| v.issued(op, plan, executed));
        if let Some(executed) = executed {
            let member = &mut self.members[op.member.at()];
            member.arrived(at, &op.request);
            member.served(at, &op.request, executed);
            self.total.executed(executed);
        }
    }

    fn sent(&mut self, at: SimTime, op: &MemberOp, _: u64, plan: &MemberPlan) {
        self.verify.iter_mut().for_each(|v| v.issued(op, plan, None));
        self.members[op.member.at()].arrived(at, &op.request);
    }

    fn dispatched(
        &mut self,
        member: MemberId,
        came: SimTime,
        request: &HostRequest,
        executed: &Executed<'_>,
    ) {
        self.verify.iter_mut().for_each(|v| v.dispatched(member, request, executed));
        self.members[member.at()].served(came, request, executed);
        self.total.executed(executed);
    }

    fn accepted(&mut self, member: MemberId, request: &HostRequest) {
        self.verify.iter_mut().for_each(|v| v.accepted(member, request));
    }

    fn answered_early(
        &mut self,
        member: MemberId,
        came: SimTime,
        (read, write): (&HostRequest, &HostRequest),
        served: &Served,
    ) {
        self.verify.iter_mut().for_each(|v| v.answered_early(member, read, write));
        self.members[member.at()].counted(came, read, served, Work::default());
    }

    fn prefilled(&mut self, op: &MemberOp, plan: &MemberPlan, executed: Option<&Executed<'_>>) {
        self.verify.iter_mut().for_each(|v| v.prefilled(op, plan, executed));
        if let Some(member) = self.members.get_mut(op.member.at()).filter(|_| op.request.op == HostOp::Write)
        {
            member.updates.prefilled(op.request.lba, op.request.blocks, false);
        }
    }

    fn background(&mut self, member: MemberId, executed: &Executed<'_>) {
        self.total.executed(executed);
        self.members[member.at()].executed(executed);
        self.verify.iter_mut().for_each(|v| v.background(member, executed));
    }

    fn looks(&self, member: MemberId, at: SimTime) -> bool {
        self.members[member.at()].fill.due(at)
    }

    fn looked(&mut self, member: MemberId, at: SimTime, facts: &Facts<'_>) {
        self.members[member.at()].looked(at, facts);
    }

    fn replaced(&mut self, member: MemberId) {
        if let Some(before) = self.before.get_mut(member.at()) {
            *before = Counted::default();
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
