//! Works under way: what each waits for, and what its members answered.

use super::{Done, Event, EventLoop};
use crate::plan::Outcome;
use crate::queue::{Answer, Asked};
use crate::{ArrayObserver, Locks, MemberId, Ticket, Work};
use smrlab_drive::Served;
use smrlab_stl::Refusal;
use smrlab_units::{HostOp, SimTime};
use std::ops::Range;

/// What a work waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// For so many stripes that others have.
    Stripes(u32),
    /// For nothing: the array has planned, or is about to.
    Nothing,
    /// For the members: requests of its phase that are not answered, when the last of the others ends, and what was missed.
    Members { open: u32, end: SimTime, missed: Missed },
}

/// What the members did not do of a phase: see [`Phase`](crate::Phase).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missed {
    pub lost: bool,
    pub untaken: Option<Refusal>,
}

impl Missed {
    /// Of a request that was refused, or was not.
    pub(super) fn of(refusal: Option<Refusal>, op: HostOp) -> Self {
        let untaken = refusal.filter(|_| op == HostOp::Write);
        Self { lost: refusal.is_some() && op == HostOp::Read, untaken }
    }
}

/// A work under way.
#[derive(Clone, Debug)]
pub(super) struct Running {
    work: Work,
    locks: Locks,
    stage: Stage,
    arrival: SimTime,
    /// When it had its stripes.
    start: Option<SimTime>,
    acked: bool,
    /// Media operations that were done for it.
    ops: u64,
    pub(super) cleaning: Option<(&'static str, u64)>,
}

impl EventLoop {
    pub(super) fn enter(&mut self, work: Work) {
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.tickets += 1;
            Ticket(self.tickets - 1)
        });
        // Word by word: what was just answered in words is slow to copy as more of them at once.
        let Locks { stripes: Range { start, end }, shared } = self.array.locks(&work);
        let locks = Locks { stripes: start..end, shared };
        let missing = self.table.acquire(ticket, &locks);
        let (stage, arrival) = (Stage::Stripes(missing), self.now);
        let place = self.works.place(ticket);
        *place =
            Some(Running { work, locks, stage, arrival, start: None, acked: false, ops: 0, cleaning: None });
        if missing == 0 {
            self.ready.push_back(ticket);
        }
    }

    /// Has the array plan the first phase of each work that has all its stripes.
    pub(super) fn run_ready<O: ArrayObserver>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        while let Some(ticket) = self.ready.pop_front() {
            let now = self.now;
            let Some(running) = self.works.get_mut(ticket) else { continue };
            (running.start, running.stage) = (Some(now), Stage::Nothing);
            let work = running.work;
            if let Work::Host(request) = &work {
                watch.began(ticket, request);
            }
            self.carry_out(|array, plan| array.start(ticket, &work, plan), watch)?;
        }
        Ok(())
    }

    /// The plan's requests of each work are a phase of it.
    pub(super) fn phases_begin(&mut self) {
        for op in self.plan.ops() {
            let Some(running) = self.works.get_mut(op.ticket) else { continue };
            match &mut running.stage {
                Stage::Members { open, .. } => *open += 1,
                stage => *stage = Stage::Members { open: 1, end: self.now, missed: Missed::default() },
            }
        }
    }

    /// Issues the plan's request of this number.
    pub(super) fn issue<O: ArrayObserver>(&mut self, i: usize, watch: &mut O) -> Result<(), O::Error> {
        let op = &self.plan.ops()[i];
        let (Some(running), Some(_)) = (self.works.get(op.buffers), self.works.get(op.ticket)) else {
            debug_assert!(false, "a request of a work that is over: {op:?}");
            return Ok(());
        };
        let id = if let Work::Host(r) = &running.work { r.id } else { u64::MAX };
        // Where it lies: what was just put together from parts is slow to copy.
        self.plan.number(i, id);
        let op = &self.plan.ops()[i];
        let (now, member) = (self.now, op.member);
        let slot = &mut self.members[member.at()];
        debug_assert!(slot.holds(&op.request), "beyond its member: {op:?}");
        if slot.dead {
            let nothing = Answer::none(op, now);
            self.answer(member, nothing);
            return Ok(());
        }
        let asked = Asked { op, plan: &self.plan };
        let Some((served, refusal)) = slot.issue(now, asked, self.instantly, watch)? else {
            self.take_answers(member);
            return Ok(());
        };
        let thrown_out = watch.throws_out();
        let ops = slot.member.drive().map_or(1, |drive| drive.plan().ops().len() as u64);
        let Served { start, ack, .. } = served;
        // Mostly nothing comes between a member and its answer, and then nobody has to know what it was asked.
        let at_once = slot.dies_at.is_none() && self.schedule.timeout.is_none() && self.buses.is_empty();
        if at_once && !thrown_out && refusal.is_none() {
            let (ticket, buffers) = (op.ticket, op.buffers);
            self.counts(buffers, ops);
            self.answered(ticket, ack, Missed::default());
            return Ok(());
        }
        let nothing = Answer::none(op, now);
        if thrown_out {
            self.dies(member, now);
            self.answer(member, nothing);
            return Ok(());
        }
        self.answer(member, Answer { start, ack, refusal, ops, ..nothing });
        Ok(())
    }

    /// So many media operations were done for a work.
    #[inline]
    fn counts(&mut self, of: Ticket, ops: u64) {
        if let Some(running) = self.works.get_mut(of) {
            running.ops += ops;
        }
    }

    /// A member answered, unless it is dead by then or, a drive, thrown out because that took too long.
    pub(super) fn answer(&mut self, member: MemberId, mut a: Answer) {
        let now = self.now;
        self.times(member, a.came, a.ack);
        if let Some(at) = self.members[member.at()].dies_at.filter(|at| a.ack > *at) {
            (a.ack, a.refusal) = (at.max(now), Some(Refusal::Lost));
        }
        self.counts(a.buffers, a.ops);
        if !(a.refusal.is_none() && self.takes_turns(member, &a)) {
            self.answered(a.ticket, a.ack, Missed::of(a.refusal, a.request.op));
        }
    }

    /// A drive is thrown out where a request that came at `came` is not answered before `end` and that is too long.
    pub(super) fn times(&mut self, member: MemberId, came: SimTime, end: SimTime) {
        let timeout = self.schedule.timeout.filter(|_| self.members[member.at()].member.drive().is_some());
        if let Some(limit) = timeout.filter(|limit| end.since(came) > *limit) {
            self.dies(member, self.now.max(came + limit));
        }
    }

    /// A request of the work's phase ends at `end`.
    #[inline]
    pub(super) fn answered(&mut self, ticket: Ticket, end: SimTime, missed: Missed) {
        let Some(running) = self.works.get_mut(ticket) else { return };
        let Stage::Members { open, end: last, missed: all } = &mut running.stage else { return };
        (*open, *last) = (*open - 1, end.max(*last));
        (all.lost, all.untaken) = (all.lost | missed.lost, all.untaken.or(missed.untaken));
        if *open == 0 {
            let end = (*last).max(self.now);
            self.push(end, Event::Phase(ticket));
        }
    }

    /// The phase of a work is over.
    pub(super) fn phase_over(&mut self, ticket: Ticket) -> Option<Missed> {
        let running = self.works.get_mut(ticket)?;
        let Stage::Members { missed, .. } = std::mem::replace(&mut running.stage, Stage::Nothing) else {
            return None;
        };
        Some(missed)
    }

    pub(super) fn outcome(&mut self, outcome: Outcome, watch: &mut impl ArrayObserver) {
        match outcome {
            Outcome::Acknowledged(ticket) => self.acknowledge(ticket, None),
            Outcome::Ended(ticket) => self.over(ticket, watch),
            Outcome::Refused(ticket, why) => {
                self.acknowledge(ticket, Some(why));
                self.over(ticket, watch);
            }
        }
    }

    fn acknowledge(&mut self, ticket: Ticket, refusal: Option<Refusal>) {
        let now = self.now;
        let Some(running) = self.works.get_mut(ticket).filter(|r| !r.acked) else { return };
        running.acked = true;
        if let Work::Host(request) = running.work {
            let (arrival, start) = (running.arrival, running.start.unwrap_or(now));
            self.done.push_back(Done { request, arrival, start, ack: now, ops: running.ops, refusal });
            self.hosts -= 1;
            self.idle_since = now;
        }
    }

    fn over(&mut self, ticket: Ticket, watch: &mut impl ArrayObserver) {
        self.acknowledge(ticket, None);
        let Some(running) = self.works.take(ticket) else { return };
        debug_assert!(running.stage == Stage::Nothing, "a work that ends in mid-phase: {running:?}");
        if let Some((kind, relocated)) = running.cleaning {
            watch.cleaned(kind, running.start.unwrap_or(running.arrival), self.now, relocated);
        }
        let (works, ready) = (&mut self.works, &mut self.ready);
        self.table.release(ticket, &running.locks, |other| {
            if let Some(Running { stage: Stage::Stripes(missing), .. }) = works.get_mut(other) {
                *missing -= 1;
                if *missing == 0 {
                    ready.push_back(other);
                }
            }
        });
        self.free.push(ticket);
    }
}
