//! A member behind a scheduler: its requests wait, and when they end is known only when the scheduler has chosen them.
//!
//! What a request does to the data that the array follows is done in the order in which the array sends; the drive keeps the order of
//! requests that overlap.

use crate::{ArrayObserver, MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_disk::{Mechanics, Phases};
use smrlab_drive::controller::{Controller, Effects};
use smrlab_drive::drive::Tracks;
use smrlab_drive::{Drive, Executed, Observer, OpDone, Served};
use smrlab_stl::{Cause, Facts, HostRequest, MediaOp, Pause};
use smrlab_units::SimTime;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

/// See the [module](self).
pub struct Queue {
    drive: Controller,
    /// Requests that came when the drive's queue was full.
    behind: VecDeque<(SimTime, HostRequest)>,
    known: Known,
}

/// What is known of the requests that the drive has.
#[derive(Default)]
struct Known {
    /// By the numbers that the drive knows them by, which rise with time.
    sent: BTreeMap<u64, Sent>,
    numbers: u64,
    answers: Vec<Answer>,
    /// Some request could not be done.
    could_not: bool,
    /// Media operations of which it is not known yet whom they serve.
    ops: Vec<Carried>,
}

/// A request that is not on the medium yet.
struct Sent {
    op: MemberOp,
    came: SimTime,
    acked: bool,
}

/// A request that is answered, or never will be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub ticket: Ticket,
    /// The work that it was done for.
    pub buffers: Ticket,
    pub request: HostRequest,
    pub came: SimTime,
    /// When the drive began with it.
    pub start: SimTime,
    pub ack: SimTime,
    pub ok: bool,
    /// Media operations that were done for it.
    pub ops: u64,
}

/// An operation, its own.
struct Carried {
    op: MediaOp,
    cause: Cause,
    start: SimTime,
    end: SimTime,
    tracks: Tracks,
    background: bool,
    /// Where its time went, where the mechanics timed it.
    phases: Option<Phases>,
}

impl Queue {
    /// A drive behind its scheduler.
    pub fn new(drive: Controller) -> Self {
        Self { drive, behind: VecDeque::new(), known: Known::default() }
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        self.drive.drive()
    }

    /// The drive, for what is done without time.
    pub(crate) fn drive_mut(&mut self) -> &mut Drive {
        self.drive.drive_mut()
    }

    /// Takes a request.
    pub(crate) fn send(
        &mut self,
        now: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        watch: &mut impl ArrayObserver,
    ) {
        self.known.numbers += 1;
        let number = self.known.numbers;
        self.known.sent.insert(number, Sent { op: *op, came: now, acked: false });
        self.behind.push_back((now, op.request.numbered(number)));
        watch.sent(now, op, number, plan);
        self.fill(op.member, now, watch);
    }

    /// When it will be decided who is next.
    pub(crate) fn next_decision(&self) -> Option<SimTime> {
        self.drive.next_decision()
    }

    /// Makes that decision.
    pub(crate) fn decide(&mut self, member: MemberId, at: SimTime, watch: &mut impl ArrayObserver) {
        let Ok(_) = self.drive.decide_once(at, &mut Sink { member, watch, known: &mut self.known });
        self.fill(member, at, watch);
    }

    /// What was answered since.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.known.answers)
    }

    /// Whether some request could not be done: the drive is to die.
    pub(crate) fn could_not(&self) -> bool {
        self.known.could_not
    }

    /// Has written what the drive's buffer took.
    pub(crate) fn write_back(&mut self, member: MemberId, watch: &mut impl ArrayObserver) {
        let mut sink = Sink { member, watch, known: &mut self.known };
        let Ok(()) = self.drive.write_back(&mut sink);
        let free = self.drive().free_at();
        self.fill(member, free, watch);
    }

    /// The drive is dead at `now`: what was not answered never will be.
    pub(crate) fn dies(&mut self, now: SimTime) {
        for s in std::mem::take(&mut self.known.sent).into_values().filter(|s| !s.acked) {
            let MemberOp { ticket, buffers, request, .. } = s.op;
            let (came, start, ack) = (s.came, now, now);
            self.known.answers.push(Answer { ticket, buffers, request, came, start, ack, ok: false, ops: 0 });
        }
        self.behind.clear();
    }

    /// Requests that came when the queue was full take the places that it has at `now`.
    fn fill(&mut self, member: MemberId, now: SimTime, watch: &mut impl ArrayObserver) {
        while self.drive.has_room()
            && let Some((came, request)) = self.behind.pop_front()
        {
            let mut sink = Sink { member, watch, known: &mut self.known };
            let Ok(_) = self.drive.submit_waited(now.max(came), (came, &request), &mut sink);
        }
    }
}

/// Takes down what the drive did.
struct Sink<'a, O> {
    member: MemberId,
    watch: &'a mut O,
    known: &'a mut Known,
}

impl<O: ArrayObserver> Sink<'_, O> {
    /// Tells whose the operations since the last time were.
    fn tell(&mut self, request: Option<u64>) {
        for c in self.known.ops.drain(..) {
            let Carried { ref op, cause, start, end, tracks, background, phases } = c;
            let done = OpDone { op, cause, start, end, tracks, background };
            self.watch.media(self.member, request, &done);
            if let Some(phases) = phases {
                self.watch.moved(self.member, request, &done, &phases);
            }
        }
    }

    fn answered_at(&mut self, number: u64, served: &Served, (ok, ops): (bool, u64)) {
        if let Some(s) = self.known.sent.get_mut(&number).filter(|s| !s.acked) {
            s.acked = true;
            let MemberOp { ticket, buffers, request, .. } = s.op;
            let (came, Served { start, ack, .. }) = (s.came, *served);
            self.known.answers.push(Answer { ticket, buffers, request, came, start, ack, ok, ops });
        }
    }
}

impl<O: ArrayObserver> Observer for Sink<'_, O> {
    fn op(&mut self, done: &OpDone<'_>) {
        let OpDone { op, cause, start, end, tracks, background } = *done;
        self.known.ops.push(Carried { op: *op, cause, start, end, tracks, background, phases: None });
    }

    fn moved(&mut self, _: &OpDone<'_>, mechanics: &Mechanics) {
        if let Some(last) = self.known.ops.last_mut() {
            last.phases = Some(mechanics.phases());
        }
    }

    fn paused(&mut self, pause: &Pause, start: SimTime, background: bool) {
        self.watch.paused(self.member, pause, start, background);
    }
}

impl<O: ArrayObserver> Effects for Sink<'_, O> {
    type Error = Infallible;

    fn dispatched(
        &mut self,
        came: SimTime,
        request: &HostRequest,
        executed: &Executed<'_>,
    ) -> Result<(), Infallible> {
        self.tell(self.known.sent.get(&request.id).map(|s| s.op.request.id));
        self.watch.dispatched(self.member, came, request, executed);
        let could = self.watch.answered();
        self.known.could_not |= !could;
        let outcome = (could && executed.plan.refusal().is_none(), executed.plan.ops().len() as u64);
        self.answered_at(request.id, &executed.served, outcome);
        self.known.sent.remove(&request.id);
        Ok(())
    }

    fn accepted(&mut self, _: SimTime, request: &HostRequest, served: &Served) -> Result<(), Infallible> {
        self.answered_at(request.id, served, (true, 0));
        self.watch.accepted(self.member, request);
        Ok(())
    }

    fn answered(
        &mut self,
        came: SimTime,
        request: &HostRequest,
        write: &HostRequest,
        served: &Served,
    ) -> Result<(), Infallible> {
        self.answered_at(request.id, served, (true, 0));
        self.known.sent.remove(&request.id);
        self.watch.answered_early(self.member, came, (request, write), served);
        Ok(())
    }

    fn background(&mut self, executed: &Executed<'_>) -> Result<(), Infallible> {
        self.tell(None);
        self.watch.background(self.member, executed);
        Ok(())
    }

    fn looks(&self, at: SimTime) -> bool {
        self.watch.looks(self.member, at)
    }

    fn looked(&mut self, at: SimTime, facts: &Facts<'_>) {
        self.watch.looked(self.member, at, facts);
    }
}
