//! The event loop: an array and its members in simulated time.
//!
//! A member without a scheduler is first come, first served, so the end of a request is known when it is issued; what the loop keeps
//! are the ends of phases, turns on a shared bus, the deaths and replacements of members, and nothing else. Events at the same time come in the order
//! in which they were found out, deaths first; decisions of schedulers come after all of them.

mod bus;
mod queued;
mod serving;

use crate::locks::Table;
use crate::member::{How, Slot};
use crate::plan::Outcome;
use crate::tickets::Tickets;
use crate::{Array, ArrayObserver, Job, Locks, Member, MemberId, MemberOp, MemberPlan, Phase, Ticket, Work};
pub use bus::SharedBus;
use bus::{Bus, Piece};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{HostOp, SimTime};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What befalls members, and what they share.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// A member that has not answered a request for so long is thrown out.
    pub timeout: Option<SimTime>,
    /// Members that die at a given time.
    pub fails: Vec<(MemberId, SimTime)>,
    /// How long after a death a spare takes the place.
    pub replace_after: Option<SimTime>,
    /// Buses that drives share; the others have one each.
    pub buses: Vec<SharedBus>,
}

/// A host request that is done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// What was asked.
    pub request: HostRequest,
    /// When it was sent.
    pub arrival: SimTime,
    /// When its first member request was issued: not before its stripes were free.
    pub start: SimTime,
    /// When the host was acknowledged.
    pub ack: SimTime,
    /// Media operations that were done for it by then.
    pub ops: u64,
    /// Why it was not done.
    pub refusal: Option<Refusal>,
}

/// A work under way.
#[derive(Clone, Debug)]
struct Running {
    work: Work,
    locks: Locks,
    /// Stripes that it still waits for.
    missing: u32,
    arrival: SimTime,
    start: Option<SimTime>,
    /// When the last request of the phase ends.
    phase_end: SimTime,
    in_phase: bool,
    /// All requests of the phase are issued; so many of them wait for a scheduler, or for their turn on a shared bus.
    issued: bool,
    waits: u32,
    lost: bool,
    acked: bool,
    ops: u64,
    cleaning: Option<(&'static str, u64)>,
}

/// What a member answered.
#[derive(Clone, Copy, Debug)]
struct Answered {
    /// When it began, and when it was done.
    start: SimTime,
    end: SimTime,
    ok: bool,
    /// Media operations.
    ops: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Failed(MemberId),
    Replaced(MemberId),
    Phase(Ticket),
    Piece(Piece),
}

/// See the [module](self).
pub struct Controller {
    array: Box<dyn Array>,
    members: Vec<Slot>,
    spares: Vec<Member>,
    schedule: Schedule,
    plan: MemberPlan,
    works: Tickets<Running>,
    free: Vec<Ticket>,
    tickets: u32,
    table: Table,
    events: BinaryHeap<Reverse<(SimTime, bool, u64, Event)>>,
    seq: u64,
    ready: VecDeque<Ticket>,
    done: VecDeque<Done>,
    now: SimTime,
    hosts: u64,
    idle_since: SimTime,
    instantly: bool,
    by_step: bool,
    /// See [`records_wait`](Controller::records_wait).
    records_wait: bool,
    /// No job begins: those that were to.
    held: Option<Vec<Job>>,
    /// Some member has a scheduler.
    queued: bool,
    deaths: u64,
    buses: Vec<Bus>,
}

impl Controller {
    /// An array at time 0. `spares` take the places of dead members, the last first.
    pub fn new(
        array: Box<dyn Array>,
        members: Vec<Member>,
        spares: Vec<Member>,
        schedule: Schedule,
        wants_data: bool,
    ) -> Self {
        let queued = members.iter().any(|m| matches!(m, Member::Queued(_)));
        let mut all = Self {
            queued,
            array,
            members: members.into_iter().map(Slot::new).collect(),
            spares,
            plan: MemberPlan::new(wants_data),
            works: Tickets::default(),
            free: Vec::new(),
            tickets: 0,
            table: Table::default(),
            events: BinaryHeap::new(),
            seq: 0,
            ready: VecDeque::new(),
            done: VecDeque::new(),
            now: SimTime::ZERO,
            hosts: 0,
            idle_since: SimTime::ZERO,
            instantly: false,
            by_step: false,
            records_wait: false,
            held: None,
            deaths: 0,
            buses: schedule.buses.iter().cloned().map(Bus::new).collect(),
            schedule: Schedule::default(),
        };
        for &(member, at) in &schedule.fails {
            all.dies(member, at);
        }
        all.schedule = schedule;
        all
    }

    /// The array.
    pub fn array(&self) -> &dyn Array {
        &*self.array
    }

    /// The members, in the order of their numbers.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().map(|s| &s.member)
    }

    /// How many members have died.
    pub fn deaths(&self) -> u64 {
        self.deaths
    }

    /// Whether a member is dead.
    pub fn is_dead(&self, member: MemberId) -> bool {
        self.members[member.at()].dead
    }

    /// Host requests that are not acknowledged yet.
    pub fn in_flight(&self) -> u64 {
        self.hosts
    }

    /// The next host request that is done, in the order of acknowledgement.
    #[inline]
    pub fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// A hint that `request` will be sent some requests from now.
    #[inline]
    pub fn prefetch(&mut self, request: &HostRequest) {
        self.array.prefetch(request);
    }

    /// Sends a request at `now`, which never falls; what was due until then has been done ([`advance`](Self::advance)).
    pub fn submit(&mut self, now: SimTime, request: &HostRequest, watch: &mut impl ArrayObserver) {
        self.now = now;
        // Arrays have no zones.
        if matches!(request.op, HostOp::Append | HostOp::Zone(_)) {
            let (request, refusal) = (*request, Some(Refusal::Unsupported));
            return self.done.push_back(Done {
                request,
                arrival: now,
                start: now,
                ack: now,
                ops: 0,
                refusal,
            });
        }
        self.hosts += 1;
        self.enter(Work::Host(*request));
        self.run_ready(watch);
    }

    /// Does everything that is due until `now`.
    pub fn advance(&mut self, now: SimTime, watch: &mut impl ArrayObserver) {
        while self.step(Some(now), watch) {}
        self.now = self.now.max(now);
    }

    /// Does the next thing that is due, not after `until`; `false`: there is none.
    pub fn step(&mut self, until: Option<SimTime>, watch: &mut impl ArrayObserver) -> bool {
        let due = self.events.peek().map(|e| e.0.0);
        if let Some((at, member)) = self.next_decision()
            && due.is_none_or(|d| at < d)
            && until.is_none_or(|u| at < u)
        {
            self.decide(at, member, watch);
            return true;
        }
        let idle = (self.hosts == 0).then_some(self.idle_since);
        let wake = self.array.wake_at(idle).filter(|_| self.held.is_none()).map(|t| t.max(self.now));
        let wake = wake.filter(|w| until.is_none_or(|u| *w < u) && due.is_none_or(|d| *w < d));
        if let Some(at) = wake {
            self.now = at;
            self.planned(|array, plan| array.wake(at, plan), watch);
            return true;
        }
        if due.is_none_or(|d| until.is_some_and(|u| d > u)) {
            return false;
        }
        if let Some(Reverse((at, _, _, event))) = self.events.pop() {
            self.now = self.now.max(at);
            self.happens(event, watch);
        }
        true
    }

    /// Serves a request without time, as prefilling does.
    pub fn instantly(&mut self, request: &HostRequest, watch: &mut impl ArrayObserver) {
        self.instantly = true;
        self.submit(self.now, request, watch);
        while self.events.peek().is_some_and(|e| e.0.0 <= self.now) && self.step(Some(self.now), watch) {}
        self.instantly = false;
        self.done.clear();
    }

    fn push(&mut self, at: SimTime, event: Event) {
        self.seq += 1;
        self.events.push(Reverse((at, matches!(event, Event::Phase(_) | Event::Piece(_)), self.seq, event)));
    }

    /// The member will be dead at `at`, unless it is before.
    fn dies(&mut self, member: MemberId, at: SimTime) {
        let slot = &mut self.members[member.at()];
        if !slot.dead && slot.dies_at.is_none_or(|d| at < d) {
            slot.dies_at = Some(at);
            self.push(at, Event::Failed(member));
        }
    }

    fn happens(&mut self, event: Event, watch: &mut impl ArrayObserver) {
        let now = self.now;
        match event {
            Event::Phase(ticket) => {
                let Some(running) = self.works.get_mut(ticket) else { return };
                let phase = Phase { ticket, lost: running.lost, busy: self.hosts > 0 };
                (running.in_phase, running.lost) = (false, false);
                self.planned(|array, plan| array.complete(now, phase, plan), watch);
            }
            Event::Piece(piece) => self.passes(piece),
            Event::Failed(member) => {
                let slot = &mut self.members[member.at()];
                if slot.dead || slot.dies_at != Some(now) {
                    return;
                }
                slot.dead = true;
                self.deaths += 1;
                watch.died(member);
                self.bury(member);
                if let Some(after) = self.schedule.replace_after {
                    self.push(now + after, Event::Replaced(member));
                }
                self.planned(|array, plan| array.failed(now, member, plan), watch);
            }
            Event::Replaced(member) => {
                let Some(spare) = self.spares.pop() else { return };
                self.put_in(member, spare);
                watch.replaced(member);
                self.planned(|array, plan| array.replaced(now, member, plan), watch);
            }
        }
    }

    fn enter(&mut self, work: Work) {
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.tickets += 1;
            Ticket(self.tickets - 1)
        });
        let locks = self.array.locks(&work);
        let missing = self.table.acquire(ticket, &locks);
        let arrival = self.now;
        let running = Running {
            work,
            locks,
            missing,
            arrival,
            start: None,
            phase_end: arrival,
            in_phase: false,
            issued: false,
            waits: 0,
            lost: false,
            acked: false,
            ops: 0,
            cleaning: None,
        };
        self.works.put(ticket, running);
        if missing == 0 {
            self.ready.push_back(ticket);
        }
    }

    fn run_ready(&mut self, watch: &mut impl ArrayObserver) {
        while let Some(ticket) = self.ready.pop_front() {
            let now = self.now;
            let Some(running) = self.works.get_mut(ticket) else { continue };
            running.start = Some(now);
            let work = running.work;
            self.carry_out(|array, plan| array.start(now, ticket, &work, plan), watch);
        }
    }

    fn planned(&mut self, act: impl FnOnce(&mut dyn Array, &mut MemberPlan), watch: &mut impl ArrayObserver) {
        self.carry_out(act, watch);
        self.run_ready(watch);
    }

    fn carry_out(
        &mut self,
        act: impl FnOnce(&mut dyn Array, &mut MemberPlan),
        watch: &mut impl ArrayObserver,
    ) {
        self.plan.clear();
        act(&mut *self.array, &mut self.plan);
        if self.records_wait && !self.plan.records().is_empty() {
            self.write_back(watch);
        }
        watch.planned(self.now, &self.plan);
        for &(kind, ticket, relocated) in self.plan.cleanings() {
            if let Some(running) = self.works.get_mut(ticket) {
                running.cleaning = Some((kind, relocated.0));
            }
        }
        // By number: the plan stays where it is, because it is large.
        for i in 0..self.plan.outcomes().len() {
            self.outcome(self.plan.outcomes()[i], watch);
        }
        for i in 0..self.plan.ops().len() {
            self.issue_next(i, watch);
        }
        for i in 0..self.plan.jobs().len() {
            let job = self.plan.jobs()[i];
            match &mut self.held {
                Some(held) if !job.awaited => held.push(job),
                _ => self.enter(Work::Job(job)),
            }
        }
    }

    /// Issues the plan's request of this number.
    fn issue_next(&mut self, i: usize, watch: &mut impl ArrayObserver) {
        let mut op = self.plan.ops()[i];
        let (Some(running), Some(_)) = (self.works.get(op.buffers), self.works.get(op.ticket)) else {
            debug_assert!(false, "a request of a work that is over: {op:?}");
            return;
        };
        op.request.id = if let Work::Host(r) = &running.work { r.id } else { u64::MAX };
        let issued = self.issue(&op, watch);
        let now = self.now;
        let answered = issued.unwrap_or(Answered { start: now, end: now, ok: true, ops: 0 });
        let times = (answered.start, answered.end);
        let mut shares = || answered.ok && self.takes_turns((op.member, op.ticket), &op.request, times);
        let waits = issued.is_none() || shares();
        let Answered { ok, ops, .. } = answered;
        self.counts(op.buffers, ops);
        let Some(running) = self.works.get_mut(op.ticket) else { return };
        let end = if waits { now } else { answered.end };
        running.phase_end = if running.in_phase { running.phase_end.max(end) } else { end };
        running.waits += u32::from(waits);
        running.in_phase = true;
        running.lost |= !ok && op.request.op == HostOp::Read;
        // The phase is complete with the plan's last request of this work.
        running.issued = !self.plan.ops()[i + 1..].iter().any(|o| o.ticket == op.ticket);
        if running.issued && running.waits == 0 {
            let end = running.phase_end;
            self.push(end, Event::Phase(op.ticket));
        }
        if issued.is_none() {
            self.take_answers(op.member);
        }
    }

    /// So many media operations were done for a work.
    fn counts(&mut self, ticket: Ticket, ops: u64) {
        if let Some(running) = self.works.get_mut(ticket) {
            running.ops += ops;
        }
    }

    /// What a member answered; `None`: the request waits for a scheduler.
    fn issue(&mut self, op: &MemberOp, watch: &mut impl ArrayObserver) -> Option<Answered> {
        let now = self.now;
        let slot = &mut self.members[op.member.at()];
        let lost = |end| Answered { start: now, end, ok: false, ops: 0 };
        if slot.dead {
            return Some(lost(now));
        }
        let how = How { instantly: self.instantly, by_step: self.by_step };
        let (served, refusal) = slot.issue(now, op, &self.plan, how, watch)?;
        if !watch.answered() {
            self.dies(op.member, now);
            return Some(lost(now));
        }
        let slot = &self.members[op.member.at()];
        let ops = slot.member.drive().map_or(1, |drive| drive.plan().ops().len() as u64);
        if let Some(limit) = self.schedule.timeout.filter(|t| served.ack.since(now) > *t) {
            self.dies(op.member, now + limit);
        }
        Some(match self.members[op.member.at()].dies_at {
            Some(at) if served.ack > at => Answered { ops, ..lost(at.max(now)) },
            _ => Answered { start: served.start, end: served.ack, ok: refusal.is_none(), ops },
        })
    }

    fn outcome(&mut self, outcome: Outcome, watch: &mut impl ArrayObserver) {
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
        let Some(running) = self.works.get(ticket) else { return };
        debug_assert!(!running.in_phase, "a work that ends in mid-phase: {running:?}");
        if let Some((kind, relocated)) = running.cleaning {
            watch.cleaned(kind, running.start.unwrap_or(running.arrival), self.now, relocated);
        }
        let locks = running.locks.clone();
        self.works.remove(ticket);
        let (works, ready) = (&mut self.works, &mut self.ready);
        self.table.release(ticket, &locks, |other| {
            if let Some(other_work) = works.get_mut(other) {
                other_work.missing -= 1;
                if other_work.missing == 0 {
                    ready.push_back(other);
                }
            }
        });
        self.free.push(ticket);
    }
}
