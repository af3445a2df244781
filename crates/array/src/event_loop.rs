//! The event loop: an array and its members in simulated time.
//!
//! A member without a scheduler is first come, first served, so the end of a request is known when it is issued; what the loop keeps
//! are the ends of phases, turns on a shared bus, the deaths and replacements of members, and nothing else. Events at the same time come in the order
//! in which they were found out, deaths first; decisions of schedulers come after all of them.

mod agenda;
mod bus;
mod queued;
mod serving;
#[cfg(test)]
mod tests;
mod works;

use crate::locks::Table;
use crate::member::Slot;
use crate::tickets::Tickets;
use crate::{Array, ArrayObserver, Job, Member, MemberId, MemberPlan, Phase, Ticket, Work};
use agenda::Agenda;
pub use bus::SharedBus;
use bus::{Bus, Piece, Turns};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{HostOp, SimTime};
use std::collections::VecDeque;
use works::{Missed, Running};

/// What befalls members, and what they share.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// A member that has not answered a request for so long is thrown out.
    pub timeout: Option<SimTime>,
    /// Members that die at a given time: a drive that was put in later, too, where its place has such times still.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Failed(MemberId),
    Replaced(MemberId),
    Phase(Ticket),
    Piece(Piece),
    /// The turns of this number are over.
    Passed(u64),
}

/// See the [module](self).
pub struct EventLoop {
    array: Box<dyn Array>,
    members: Vec<Slot>,
    spares: Vec<Member>,
    schedule: Schedule,
    plan: MemberPlan,
    works: Tickets<Running>,
    free: Vec<Ticket>,
    tickets: u32,
    table: Table,
    agenda: Agenda<Event>,
    ready: VecDeque<Ticket>,
    done: VecDeque<Done>,
    now: SimTime,
    hosts: u64,
    idle_since: SimTime,
    /// Requests take no time, as prefilling has it.
    instantly: bool,
    /// See [`background_by_step`](EventLoop::background_by_step).
    by_step: bool,
    /// See [`records_wait`](EventLoop::records_wait).
    records_wait: bool,
    /// No job begins: those that were to.
    held: Option<Vec<Job>>,
    /// Some member has a scheduler.
    queued: bool,
    deaths: u64,
    buses: Vec<Bus>,
    turns: Turns,
}

impl EventLoop {
    /// An array at time 0. `spares` take the places of dead members, the last first.
    pub fn new(
        array: Box<dyn Array>,
        members: Vec<Member>,
        spares: Vec<Member>,
        schedule: Schedule,
        wants_data: bool,
    ) -> Self {
        let queued = members.iter().any(|m| matches!(m, Member::Drive(queue) if queue.reorders()));
        let mut all = Self {
            queued,
            array,
            members: (0..).map(MemberId).zip(members).map(|(id, member)| Slot::new(id, member)).collect(),
            spares,
            plan: MemberPlan::new(wants_data),
            works: Tickets::default(),
            free: Vec::new(),
            tickets: 0,
            table: Table::default(),
            agenda: Agenda::default(),
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
            turns: Turns::default(),
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
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn submit<O: ArrayObserver>(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.now = now;
        // Arrays have no zones.
        if matches!(request.op, HostOp::Append | HostOp::Zone(_)) {
            let (request, refusal) = (*request, Some(Refusal::Unsupported));
            let done = Done { request, arrival: now, start: now, ack: now, ops: 0, refusal };
            self.done.push_back(done);
            return Ok(());
        }
        self.hosts += 1;
        self.enter(Work::Host(*request));
        self.run_ready(watch)
    }

    /// Does everything that is due until `now`.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn advance<O: ArrayObserver>(&mut self, now: SimTime, watch: &mut O) -> Result<(), O::Error> {
        while self.step(Some(now), watch)? {}
        self.now = self.now.max(now);
        Ok(())
    }

    /// Does the next thing that is due, not after `until`; `false`: there is none.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn step<O: ArrayObserver>(
        &mut self,
        until: Option<SimTime>,
        watch: &mut O,
    ) -> Result<bool, O::Error> {
        let due = self.agenda.next();
        if let Some((at, member)) = self.next_decision()
            && due.is_none_or(|d| at < d)
            && until.is_none_or(|u| at < u)
        {
            return self.decide(at, member, watch).map(|()| true);
        }
        let idle = (self.hosts == 0).then_some(self.idle_since);
        let wake = self.array.wake_at(idle).filter(|_| self.held.is_none()).map(|t| t.max(self.now));
        let wake = wake.filter(|w| until.is_none_or(|u| *w < u) && due.is_none_or(|d| *w < d));
        if let Some(at) = wake {
            self.now = at;
            return self.planned(|array, plan| array.wake(plan), watch).map(|()| true);
        }
        if due.is_none_or(|d| until.is_some_and(|u| d > u)) {
            return Ok(false);
        }
        if let Some((at, event)) = self.agenda.pop() {
            self.now = self.now.max(at);
            self.happens(event, watch)?;
        }
        Ok(true)
    }

    /// Serves a request without time, as prefilling does.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn instantly<O: ArrayObserver>(
        &mut self,
        request: &HostRequest,
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.instantly = true;
        if !self.writes(request, watch) {
            self.submit(self.now, request, watch)?;
        }
        while self.agenda.next().is_some_and(|at| at <= self.now) && self.step(Some(self.now), watch)? {}
        (0..).map(MemberId).zip(&mut self.members).for_each(|(id, slot)| slot.tell(id, watch));
        self.instantly = false;
        self.done.clear();
        Ok(())
    }

    /// Serves a write without time, works and plans, where that comes to the same.
    fn writes<O: ArrayObserver>(&mut self, request: &HostRequest, watch: &mut O) -> bool {
        if request.op != HostOp::Write || self.plan.wants_data() || !self.is_at_rest() {
            return false;
        }
        let members = &mut self.members;
        self.array.writes(request, &mut |member, own| {
            members[member.at()].instantly(member, own, watch);
        })
    }

    // In place: an event that was put together from parts is slow to copy.
    #[inline(always)]
    fn push(&mut self, at: SimTime, event: Event) {
        self.agenda.push(at, matches!(event, Event::Phase(_) | Event::Piece(_) | Event::Passed(_)), event);
    }

    /// The member will be dead at `at`, unless it is before.
    fn dies(&mut self, member: MemberId, at: SimTime) {
        let slot = &mut self.members[member.at()];
        if !slot.dead && slot.dies_at.is_none_or(|d| at < d) {
            slot.dies_at = Some(at);
            self.push(at, Event::Failed(member));
        }
    }

    /// A member is dead from now on: a spare takes its place when the schedule says so.
    fn awaits_spare(&mut self, member: MemberId) {
        if let Some(after) = self.schedule.replace_after {
            self.push(self.now + after, Event::Replaced(member));
        }
    }

    fn happens<O: ArrayObserver>(&mut self, event: Event, watch: &mut O) -> Result<(), O::Error> {
        let now = self.now;
        match event {
            Event::Phase(ticket) => {
                let Some(Missed { lost, untaken }) = self.phase_over(ticket) else { return Ok(()) };
                let phase = Phase { ticket, lost, untaken, busy: self.hosts > 0 };
                self.planned(|array, plan| array.complete(phase, plan), watch)
            }
            Event::Piece(piece) => {
                self.passes(piece);
                Ok(())
            }
            Event::Passed(turns) => {
                self.passed(turns);
                Ok(())
            }
            Event::Failed(member) => {
                let slot = &mut self.members[member.at()];
                if slot.dead || slot.dies_at != Some(now) {
                    return Ok(());
                }
                slot.dead = true;
                self.deaths += 1;
                watch.died(member);
                self.bury(member);
                self.awaits_spare(member);
                self.planned(|array, plan| array.failed(member, plan), watch)
            }
            Event::Replaced(member) => {
                let Some(spare) = self.spares.pop() else { return Ok(()) };
                self.members[member.at()].tell(member, watch);
                self.put_in(member, spare);
                let fails = self.schedule.fails.iter().filter(|(of, at)| *of == member && *at > self.now);
                if let Some(at) = fails.map(|(_, at)| *at).min() {
                    self.dies(member, at);
                }
                watch.replaced(member);
                self.planned(|array, plan| array.replaced(member, plan), watch)
            }
        }
    }

    fn planned<O: ArrayObserver>(
        &mut self,
        act: impl FnOnce(&mut dyn Array, &mut MemberPlan),
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.carry_out(act, watch)?;
        self.run_ready(watch)
    }

    fn carry_out<O: ArrayObserver>(
        &mut self,
        act: impl FnOnce(&mut dyn Array, &mut MemberPlan),
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.plan.begin(self.now);
        act(&mut *self.array, &mut self.plan);
        if self.records_wait && !self.plan.records().is_empty() {
            self.write_back(watch)?;
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
        self.phases_begin();
        for i in 0..self.plan.ops().len() {
            self.issue(i, watch)?;
        }
        for i in 0..self.plan.jobs().len() {
            let job = self.plan.jobs()[i];
            match &mut self.held {
                Some(held) if !job.awaited => held.push(job),
                _ => self.enter(Work::Job(job)),
            }
        }
        Ok(())
    }
}
