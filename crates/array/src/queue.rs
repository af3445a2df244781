//! A drive of an array behind its queue. First come, first served, the times of a request are known when it is asked for; behind a
//! scheduler it waits, and when it ends is known only when the scheduler has chosen it.
//!
//! What a request does to the data that the array follows is done in the order in which the array sends; the drive keeps the order of
//! requests that overlap.

use crate::{ArrayObserver, MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_drive::{Buffered, Drive, Observer, OpDone, ScheduledDrive, Served, TimedPlan};
use smrlab_stl::{Facts, HostRequest, Pause, Refusal};
use smrlab_units::SimTime;
use std::collections::{BTreeMap, VecDeque};

/// What a member answered to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub ticket: Ticket,
    /// The work that it was done for.
    pub buffers: Ticket,
    pub request: HostRequest,
    pub came: SimTime,
    /// When it began, and when it was done.
    pub start: SimTime,
    pub ack: SimTime,
    /// Why it was not done.
    pub refusal: Option<Refusal>,
    /// Media operations that were done for it.
    pub ops: u64,
}

impl Answer {
    /// Nothing, at `now`.
    pub(crate) fn none(op: &MemberOp, now: SimTime) -> Self {
        let MemberOp { ticket, buffers, request, .. } = *op;
        let refusal = Some(Refusal::Lost);
        Self { ticket, buffers, request, came: now, start: now, ack: now, refusal, ops: 0 }
    }
}

/// A request of a plan to a member.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub op: &'a MemberOp,
    pub plan: &'a MemberPlan,
}

/// See the [module](self).
pub struct Queue {
    drive: ScheduledDrive,
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
}

/// A request that is not on the medium yet.
struct Sent {
    op: MemberOp,
    came: SimTime,
    acked: bool,
}

impl Queue {
    /// A drive behind its scheduler.
    pub fn new(drive: ScheduledDrive) -> Self {
        Self { drive, behind: VecDeque::new(), known: Known::default() }
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        self.drive.drive()
    }

    /// The drive without what waits for it.
    pub(crate) fn into_drive(self) -> Drive {
        self.drive.into_drive()
    }

    /// The drive, for what is done without time.
    pub(crate) fn drive_mut(&mut self) -> &mut Drive {
        self.drive.drive_mut()
    }

    /// Whether the drive has a scheduler.
    pub(crate) fn reorders(&self) -> bool {
        self.drive.reorders()
    }

    /// From now on background work is done by [steps](Self::idle_step) alone.
    pub(crate) fn by_step(&mut self) {
        self.drive.background_by_step();
    }

    /// Does a step of the background work that is due at `now`; answers whether there was one.
    pub(crate) fn idle_step<O: ArrayObserver>(
        &mut self,
        now: SimTime,
        watch: &mut O,
    ) -> Result<bool, O::Error> {
        let idle = self.drive.next_decision().is_none();
        Ok(idle && self.drive.step(now, &mut Sink { watch, known: &mut self.known })?)
    }

    /// Has the drive do a request, which comes at `now`; answers when it does, and why it refuses it if it does. `None`: that is known
    /// later.
    #[inline]
    pub(crate) fn ask<O: ArrayObserver>(
        &mut self,
        now: SimTime,
        asked: Asked<'_>,
        dies_at: Option<SimTime>,
        watch: &mut O,
    ) -> Result<Option<(Served, Option<Refusal>)>, O::Error> {
        if self.reorders() {
            return self.send(now, asked, watch).map(|()| None);
        }
        if dies_at.is_some() {
            // Of idle work all is told, whenever it ends.
            self.drive.wake(now, watch)?;
        }
        let until = dies_at.unwrap_or(SimTime::MAX);
        let served = self.drive.submit(now, &asked.op.request, &mut UntilDeath { until, asked, watch })?;
        Ok(served.map(|served| (served, self.drive().plan().refusal())))
    }

    fn send<O: ArrayObserver>(
        &mut self,
        now: SimTime,
        Asked { op, plan }: Asked<'_>,
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.known.numbers += 1;
        let number = self.known.numbers;
        self.known.sent.insert(number, Sent { op: *op, came: now, acked: false });
        self.behind.push_back((now, op.request.numbered(number)));
        watch.sent(now, op, number, plan);
        self.fill(now, watch)
    }

    /// When it will be decided who is next.
    pub(crate) fn next_decision(&self) -> Option<SimTime> {
        self.drive.next_decision()
    }

    /// Makes that decision.
    pub(crate) fn decide<O: ArrayObserver>(&mut self, at: SimTime, watch: &mut O) -> Result<(), O::Error> {
        self.drive.decide_once(at, &mut Sink { watch, known: &mut self.known })?;
        self.fill(at, watch)
    }

    /// What was answered since.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.known.answers)
    }

    /// When the oldest request came that is not answered.
    pub(crate) fn unanswered_since(&self) -> Option<SimTime> {
        self.known.sent.values().find(|s| !s.acked).map(|s| s.came)
    }

    /// Whether some request could not be done: the drive is to die.
    pub(crate) fn could_not(&self) -> bool {
        self.known.could_not
    }

    /// Has written what the drive's buffer took.
    pub(crate) fn write_back<O: ArrayObserver>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        self.drive.write_back(&mut Sink { watch, known: &mut self.known })?;
        let free = self.drive().free_at();
        self.fill(free, watch)
    }

    /// The drive is dead at `now`: what was not answered never will be.
    pub(crate) fn dies(&mut self, now: SimTime) {
        for s in std::mem::take(&mut self.known.sent).into_values().filter(|s| !s.acked) {
            self.known.answers.push(Answer { came: s.came, ..Answer::none(&s.op, now) });
        }
        self.behind.clear();
    }

    /// Requests that came when the queue was full take the places that it has at `now`.
    fn fill<O: ArrayObserver>(&mut self, now: SimTime, watch: &mut O) -> Result<(), O::Error> {
        while self.drive.has_room()
            && let Some((came, request)) = self.behind.pop_front()
        {
            let mut sink = Sink { watch: &mut *watch, known: &mut self.known };
            self.drive.submit_waited(now.max(came), (came, &request), &mut sink)?;
        }
        Ok(())
    }
}

/// Tells what the drive does for one request. Who watches is not told of a request that is not answered before the drive dies; what the
/// drive goes on with after its answer ends with what it finished.
struct UntilDeath<'a, O> {
    until: SimTime,
    asked: Asked<'a>,
    watch: &'a mut O,
}

impl<O: ArrayObserver> Observer for UntilDeath<'_, O> {
    type Error = O::Error;

    // In its place, as where nobody stands between: every operation of an array's drives passes here.
    #[inline(always)]
    fn op(&mut self, done: &OpDone<'_>) {
        if done.end <= self.until {
            self.watch.op(done);
        }
    }

    fn paused(&mut self, member: MemberId, request: Option<u64>, pause: &Pause, start: SimTime) {
        if start + pause.time <= self.until {
            self.watch.paused(member, request, pause, start);
        }
    }

    #[inline(always)]
    fn dispatched(
        &mut self,
        came: SimTime,
        _: &HostRequest,
        executed: &TimedPlan<'_>,
    ) -> Result<(), O::Error> {
        let (Asked { op, plan }, until, served) = (self.asked, self.until, executed.served);
        if served.end <= until {
            return self.watch.issued(came, op, plan, Some(executed));
        }
        if served.ack > until {
            return Ok(());
        }
        let began = until.min(executed.began);
        let last = executed.ends.iter().copied().filter(|end| *end <= until).fold(began, SimTime::max);
        let ends: Vec<SimTime> = executed.ends.iter().map(|end| last.min(*end)).collect();
        let served = Served { end: until, ..served };
        self.watch.issued(came, op, plan, Some(&TimedPlan { ends: &ends, began, served, ..*executed }))
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<(), O::Error> {
        self.watch.background(step)
    }

    #[inline]
    fn looks(&self, member: MemberId, at: SimTime) -> bool {
        at <= self.until && self.watch.looks(member, at)
    }

    fn looked(&mut self, member: MemberId, at: SimTime, facts: &Facts<'_>) {
        self.watch.looked(member, at, facts);
    }
}

/// Takes down what the drive did, and hands it on as done for the array's requests.
struct Sink<'a, O> {
    watch: &'a mut O,
    known: &'a mut Known,
}

impl<O: ArrayObserver> Sink<'_, O> {
    /// The host's request for which the drive does its own of this number.
    fn of_host(&self, number: Option<u64>) -> Option<u64> {
        self.known.sent.get(&number?).map(|s| s.op.request.id)
    }

    fn answered_at(&mut self, number: u64, served: &Served, (refusal, ops): (Option<Refusal>, u64)) {
        if let Some(s) = self.known.sent.get_mut(&number).filter(|s| !s.acked) {
            s.acked = true;
            let (came, Served { start, ack, .. }) = (s.came, *served);
            let nothing = Answer::none(&s.op, ack);
            self.known.answers.push(Answer { came, start, ack, refusal, ops, ..nothing });
        }
    }
}

impl<O: ArrayObserver> Observer for Sink<'_, O> {
    type Error = O::Error;

    fn op(&mut self, done: &OpDone<'_>) {
        self.watch.op(&OpDone { request: self.of_host(done.request), ..*done });
    }

    fn paused(&mut self, member: MemberId, request: Option<u64>, pause: &Pause, start: SimTime) {
        self.watch.paused(member, self.of_host(request), pause, start);
    }

    fn dispatched(
        &mut self,
        came: SimTime,
        request: &HostRequest,
        executed: &TimedPlan<'_>,
    ) -> Result<(), O::Error> {
        self.watch.dispatched(came, request, executed)?;
        let could = !self.watch.throws_out();
        self.known.could_not |= !could;
        let refusal = if could { executed.plan.refusal() } else { Some(Refusal::Lost) };
        let outcome = (refusal, executed.plan.ops().len() as u64);
        self.answered_at(request.id, &executed.served, outcome);
        self.known.sent.remove(&request.id);
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<(), O::Error> {
        self.answered_at(write.request.id, &write.served, (None, 0));
        self.watch.accepted(write)
    }

    fn answered(&mut self, read: &Buffered<'_>, write: &HostRequest) -> Result<(), O::Error> {
        self.answered_at(read.request.id, &read.served, (None, 0));
        self.known.sent.remove(&read.request.id);
        self.watch.answered(read, write)
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<(), O::Error> {
        self.watch.background(step)
    }

    fn looks(&self, member: MemberId, at: SimTime) -> bool {
        self.watch.looks(member, at)
    }

    fn looked(&mut self, member: MemberId, at: SimTime, facts: &Facts<'_>) {
        self.watch.looked(member, at, facts);
    }
}
