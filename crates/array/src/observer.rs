//! What callers of an array get to see of its members.

use crate::{Done, MemberId, MemberOp, MemberPlan};
use smrlab_disk::Phases;
use smrlab_drive::{Executed, OpDone, Served};
use smrlab_stl::{Facts, HostRequest, Pause};
use smrlab_units::SimTime;
use std::convert::Infallible;

/// Is told what members do, in the order in which requests are issued.
pub trait ArrayObserver {
    /// What keeps the caller from going on.
    type Error;

    /// A request of the host's is done, or was refused.
    ///
    /// # Errors
    /// What keeps the caller from going on; what went wrong before with a member, too.
    fn completed(&mut self, done: &Done) -> Result<(), Self::Error> {
        let _ = done;
        Ok(())
    }

    /// A media operation was carried out, for the host request of this number or in the background.
    fn media(&mut self, member: MemberId, request: Option<u64>, done: &OpDone<'_>) {
        let _ = (member, request, done);
    }

    /// The operation that [`media`](Self::media) was just told of was timed by the mechanics, not stated by its plan.
    fn moved(&mut self, member: MemberId, request: Option<u64>, done: &OpDone<'_>, phases: &Phases) {
        let _ = (member, request, done, phases);
    }

    /// A member spent time without a media operation.
    fn paused(&mut self, member: MemberId, pause: &Pause, start: SimTime, background: bool) {
        let _ = (member, pause, start, background);
    }

    /// A member request was issued at `at`; `executed`: by a drive, which did this.
    fn issued(
        &mut self,
        at: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        served: &Served,
        executed: Option<&Executed<'_>>,
    ) {
        let _ = (at, op, plan, served, executed);
    }

    /// A member behind a scheduler has got a request, which it knows by `number`.
    fn sent(&mut self, at: SimTime, op: &MemberOp, number: u64, plan: &MemberPlan) {
        let _ = (at, op, number, plan);
    }

    /// It has done one that came at `came`; the request has the member's number.
    fn dispatched(
        &mut self,
        member: MemberId,
        came: SimTime,
        request: &HostRequest,
        executed: &Executed<'_>,
    ) {
        let _ = (member, came, request, executed);
    }

    /// Its buffer took a write: it is answered, and will be done.
    fn accepted(&mut self, member: MemberId, request: &HostRequest) {
        let _ = (member, request);
    }

    /// It answered a read from such a write, which has all of the read's blocks; both have the member's numbers.
    fn answered_early(
        &mut self,
        member: MemberId,
        came: SimTime,
        (read, write): (&HostRequest, &HostRequest),
        served: &Served,
    ) {
        let _ = (member, came, read, write, served);
    }

    /// A member request was done without time, before the run.
    fn prefilled(&mut self, op: &MemberOp, plan: &MemberPlan, executed: Option<&Executed<'_>>) {
        let _ = (op, plan, executed);
    }

    /// A member took a background step.
    fn background(&mut self, member: MemberId, executed: &Executed<'_>) {
        let _ = (member, executed);
    }

    /// Whether it wants to see what a member's layer is like at `at`.
    fn looks(&self, member: MemberId, at: SimTime) -> bool {
        let _ = (member, at);
        false
    }

    /// A member's layer is like this at `at`.
    fn looked(&mut self, member: MemberId, at: SimTime, facts: &Facts<'_>) {
        let _ = (member, at, facts);
    }

    /// A member died, or is found dead when an array is taken up.
    fn died(&mut self, member: MemberId) {
        let _ = member;
    }

    /// A fresh drive took the place of a dead member.
    fn replaced(&mut self, member: MemberId) {
        let _ = member;
    }

    /// A work of the array's was a cleaning event.
    fn cleaned(&mut self, kind: &'static str, from: SimTime, to: SimTime, relocated: u64) {
        let _ = (kind, from, to, relocated);
    }

    /// Whether the member could do what was issued last; one that could not dies.
    fn answered(&mut self) -> bool {
        true
    }

    /// A plan was carried out at `at`: who follows the data delivers, and drops the slots of works that ended.
    fn planned(&mut self, at: SimTime, plan: &MemberPlan) {
        let _ = (at, plan);
    }
}

/// Observes nothing.
impl ArrayObserver for () {
    type Error = Infallible;
}
