//! The second event loop.

use super::made_up::Script;
use crate::event_loop::{Done, Schedule};
use crate::plan::Outcome;
use crate::{Array, Job, Locks, Member, MemberId, MemberOp, MemberPlan, Phase, Ticket, Work};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{HostOp, SimTime};
use std::collections::{BTreeMap, VecDeque};

/// A member, and what is known of its death.
struct Slot {
    member: Member,
    dead: bool,
    dies_at: Option<SimTime>,
}

/// A work: its locks, when it came and began, whether the host knows, operations so far, requests that are not answered, and what became of
/// those that were.
struct Running {
    work: Work,
    locks: Locks,
    arrival: SimTime,
    start: Option<SimTime>,
    acked: bool,
    ops: u64,
    open: u32,
    end: SimTime,
    lost: bool,
    untaken: Option<Refusal>,
    cleaning: Option<(&'static str, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Failed(MemberId),
    Replaced(MemberId),
    Phase(Ticket),
}

pub(super) struct World {
    script: Script,
    members: Vec<Slot>,
    spares: Vec<Member>,
    schedule: Schedule,
    works: BTreeMap<Ticket, Running>,
    /// Numbers to be used again, the last first.
    unused: Vec<Ticket>,
    tickets: u32,
    /// Each stripe that a work has or waits for, in the order in which they came.
    stripes: Vec<(u64, Ticket, bool)>,
    ready: VecDeque<Ticket>,
    events: Vec<(SimTime, Event)>,
    pub done: VecDeque<Done>,
    pub now: SimTime,
    pub hosts: u64,
    pub deaths: u64,
    idle_since: SimTime,
    ssd_free: SimTime,
    pub told: Vec<String>,
}

impl World {
    pub(super) fn new(script: Script, members: Vec<Member>, spares: Vec<Member>, schedule: Schedule) -> Self {
        let slot = |(id, mut member): (u32, Member)| {
            member.drive_mut().into_iter().for_each(|d| d.set_member(MemberId(id)));
            Slot { member, dead: false, dies_at: None }
        };
        let mut all = Self {
            script,
            members: (0..).zip(members).map(slot).collect(),
            spares,
            schedule: Schedule::default(),
            works: BTreeMap::new(),
            unused: Vec::new(),
            tickets: 0,
            stripes: Vec::new(),
            ready: VecDeque::new(),
            events: Vec::new(),
            done: VecDeque::new(),
            now: SimTime::ZERO,
            hosts: 0,
            deaths: 0,
            idle_since: SimTime::ZERO,
            ssd_free: SimTime::ZERO,
            told: Vec::new(),
        };
        for (member, at) in &schedule.fails {
            all.dies(*member, *at);
        }
        all.schedule = schedule;
        all
    }

    pub(super) fn at_rest(&self) -> bool {
        self.works.is_empty()
    }

    fn dies(&mut self, member: MemberId, at: SimTime) {
        let slot = &mut self.members[member.at()];
        if !slot.dead && slot.dies_at.is_none_or(|d| at < d) {
            slot.dies_at = Some(at);
            self.events.push((at, Event::Failed(member)));
        }
    }

    pub(super) fn submit(&mut self, now: SimTime, request: &HostRequest) {
        self.now = now;
        if request.op == HostOp::Append {
            let (request, refusal) = (*request, Some(Refusal::Unsupported));
            self.done.push_back(Done { request, arrival: now, start: now, ack: now, ops: 0, refusal });
            return;
        }
        self.hosts += 1;
        self.enter(Work::Host(*request));
        self.begin_what_may();
    }

    pub(super) fn advance(&mut self, now: SimTime) {
        while self.step(Some(now)) {}
        self.now = self.now.max(now);
    }

    pub(super) fn finish(&mut self) {
        while self.hosts > 0 && self.step(None) {}
    }

    fn wake_at(&self) -> Option<SimTime> {
        let idle = if self.hosts == 0 { Some(self.idle_since) } else { None };
        self.script.wake_at(idle).map(|at| at.max(self.now))
    }

    pub(super) fn next_event(&self) -> Option<SimTime> {
        self.events.iter().map(|e| e.0).chain(self.wake_at()).min()
    }

    /// The next thing that is due until then: an event, deaths and replacements before the end of phases; where none is as early, waking up.
    fn step(&mut self, until: Option<SimTime>) -> bool {
        let key = |i: &usize| (self.events[*i].0, matches!(self.events[*i].1, Event::Phase(_)), *i);
        let first = (0..self.events.len()).min_by_key(key);
        let due = first.map(|i| self.events[i].0);
        if let Some(at) = self.wake_at()
            && until.is_none_or(|u| at < u)
            && due.is_none_or(|d| at < d)
        {
            self.now = at;
            self.planned(|array, plan| array.wake(plan));
            return true;
        }
        let Some(i) = first.filter(|_| due <= until || until.is_none()) else { return false };
        let (at, event) = self.events.remove(i);
        self.now = self.now.max(at);
        self.happens(event);
        true
    }

    fn happens(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Phase(ticket) => {
                let Some(w) = self.works.get(&ticket) else { return };
                let phase = Phase { ticket, lost: w.lost, untaken: w.untaken, busy: self.hosts > 0 };
                self.planned(|array, plan| array.complete(phase, plan));
            }
            Event::Failed(member) => {
                let slot = &mut self.members[member.at()];
                if slot.dead || slot.dies_at != Some(now) {
                    return;
                }
                slot.dead = true;
                self.deaths += 1;
                self.told.push(format!("died {member:?}"));
                if let Some(after) = self.schedule.replace_after {
                    self.events.push((now + after, Event::Replaced(member)));
                }
                self.planned(|array, plan| array.failed(member, plan));
            }
            Event::Replaced(member) => {
                let Some(mut spare) = self.spares.pop() else { return };
                spare.drive_mut().into_iter().for_each(|d| d.set_member(member));
                self.members[member.at()] = Slot { member: spare, dead: false, dies_at: None };
                let later: Vec<_> =
                    self.schedule.fails.iter().filter(|(m, at)| *m == member && *at > now).collect();
                if let Some(at) = later.iter().map(|fail| fail.1).min() {
                    self.dies(member, at);
                }
                self.told.push(format!("replaced {member:?}"));
                self.planned(|array, plan| array.replaced(member, plan));
            }
        }
    }

    fn enter(&mut self, work: Work) {
        let ticket = self.unused.pop().unwrap_or_else(|| {
            self.tickets += 1;
            Ticket(self.tickets - 1)
        });
        let locks = self.script.locks(&work);
        self.stripes.extend(locks.stripes.clone().map(|s| (s, ticket, locks.shared)));
        let w = Running {
            work,
            locks,
            arrival: self.now,
            start: None,
            acked: false,
            ops: 0,
            open: 0,
            end: self.now,
            lost: false,
            untaken: None,
            cleaning: None,
        };
        self.works.insert(ticket, w);
        if self.may_begin(ticket) {
            self.ready.push_back(ticket);
        }
    }

    /// Whether nobody that came before stands in its way on any of its stripes.
    fn may_begin(&self, ticket: Ticket) -> bool {
        self.stripes.iter().enumerate().filter(|(_, s)| s.1 == ticket).all(|(i, (stripe, _, shared))| {
            let before = self.stripes[..i].iter().filter(|o| o.0 == *stripe);
            before.clone().all(|o| o.2 && *shared)
        })
    }

    fn begin_what_may(&mut self) {
        while let Some(ticket) = self.ready.pop_front() {
            let (now, work) = (self.now, self.works[&ticket].work);
            self.works.get_mut(&ticket).unwrap().start = Some(now);
            if let Work::Host(r) = &work {
                self.told.push(format!("began {} as {ticket:?}", r.id));
            }
            self.carry_out(|array, plan| array.start(ticket, &work, plan));
        }
    }

    fn planned(&mut self, act: impl FnOnce(&mut Script, &mut MemberPlan)) {
        self.carry_out(act);
        self.begin_what_may();
    }

    fn carry_out(&mut self, act: impl FnOnce(&mut Script, &mut MemberPlan)) {
        let mut plan = MemberPlan::new(false);
        plan.begin(self.now);
        act(&mut self.script, &mut plan);
        for (kind, ticket, relocated) in plan.cleanings() {
            self.works.get_mut(ticket).unwrap().cleaning = Some((kind, relocated.0));
        }
        for outcome in plan.outcomes() {
            match *outcome {
                Outcome::Acknowledged(ticket) => self.acknowledge(ticket, None),
                Outcome::Ended(ticket) => self.over(ticket, None),
                Outcome::Refused(ticket, why) => self.over(ticket, Some(why)),
            }
        }
        for op in plan.ops() {
            let w = self.works.get_mut(&op.ticket).unwrap();
            (w.open, w.end, w.lost, w.untaken) = (w.open + 1, self.now, false, None);
        }
        plan.ops().iter().for_each(|op| self.issue(*op));
        plan.jobs().iter().for_each(|job: &Job| self.enter(Work::Job(*job)));
    }

    fn issue(&mut self, mut op: MemberOp) {
        let (now, work) = (self.now, self.works[&op.ticket].work);
        op.request.id = if let Work::Host(r) = work { r.id } else { u64::MAX };
        let slot = &mut self.members[op.member.at()];
        if slot.dead {
            return self.answered(&op, now, false);
        }
        let r = &op.request;
        let (ack, ops) = match &mut slot.member {
            Member::Drive(queue) => {
                let drive = queue.drive_mut();
                // Idle work that was due before, and the rest of a step is given up.
                while let Some(s) = drive.next_step(now, &mut ()) {
                    self.told
                        .push(format!("step of {:?} from {:?}: {} {}", s.member, s.began, s.done, s.whole));
                }
                if let Some(s) = drive.interrupt() {
                    self.told
                        .push(format!("step of {:?} from {:?}: {} {}", s.member, s.began, s.done, s.whole));
                }
                let e = drive.dispatch(now, r, &mut ());
                let (served, ops) = (e.served, e.plan.ops().len() as u64);
                let told = Some((served.start.0, served.ack.0, op.member));
                // Who watches is told of no request that a drive's death cuts.
                if self.members[op.member.at()].dies_at.is_none_or(|dead| served.ack <= dead) {
                    self.told.push(super::issued(now, &op, told));
                }
                (served.ack, ops)
            }
            Member::Ssd(ssd) => {
                let (_, ack) = ssd_serves(ssd, &mut self.ssd_free, now, r);
                self.told.push(super::issued(now, &op, None));
                (ack, 1)
            }
        };
        let drive = matches!(self.members[op.member.at()].member, Member::Drive(_));
        if drive && self.schedule.timeout.is_some_and(|limit| ack.since(now) > limit) {
            self.dies(op.member, now + self.schedule.timeout.unwrap());
        }
        self.works.get_mut(&op.ticket).unwrap().ops += ops;
        match self.members[op.member.at()].dies_at {
            Some(dead) if ack > dead => self.answered(&op, dead.max(now), false),
            _ => self.answered(&op, ack, true),
        }
    }

    fn answered(&mut self, op: &MemberOp, at: SimTime, ok: bool) {
        let w = self.works.get_mut(&op.ticket).unwrap();
        w.open -= 1;
        w.end = w.end.max(at);
        w.lost |= !ok && op.request.op == HostOp::Read;
        if !ok && op.request.op == HostOp::Write {
            w.untaken = Some(Refusal::Lost);
        }
        if w.open == 0 {
            self.events.push((w.end, Event::Phase(op.ticket)));
        }
    }

    fn acknowledge(&mut self, ticket: Ticket, refusal: Option<Refusal>) {
        let now = self.now;
        let w = self.works.get_mut(&ticket).unwrap();
        if std::mem::replace(&mut w.acked, true) {
            return;
        }
        let Work::Host(request) = w.work else { return };
        let (arrival, start, ops) = (w.arrival, w.start.unwrap(), w.ops);
        self.done.push_back(Done { request, arrival, start, ack: now, ops, refusal });
        self.hosts -= 1;
        self.idle_since = now;
    }

    /// A work is over: its stripes are free one after the other, and who has all of his by that is next.
    fn over(&mut self, ticket: Ticket, refusal: Option<Refusal>) {
        self.acknowledge(ticket, refusal);
        let w = self.works.remove(&ticket).unwrap();
        if let Some((kind, relocated)) = w.cleaning {
            self.told.push(format!("{kind} from {:?} to {:?}: {relocated}", w.start.unwrap(), self.now));
        }
        for stripe in w.locks.stripes {
            self.stripes.retain(|s| (s.0, s.1) != (stripe, ticket));
            let waiting: Vec<Ticket> = self.stripes.iter().filter(|s| s.0 == stripe).map(|s| s.1).collect();
            for other in waiting {
                let began = self.works[&other].start.is_some() || self.ready.contains(&other);
                if !began && self.may_begin(other) {
                    self.ready.push_back(other);
                }
            }
        }
        self.unused.push(ticket);
    }
}

/// An SSD serves data one after the other, latencies beside each other; from when on and until when.
fn ssd_serves(
    ssd: &crate::member::Ssd,
    free: &mut SimTime,
    now: SimTime,
    r: &HostRequest,
) -> (SimTime, SimTime) {
    let moves = matches!(r.op, HostOp::Read | HostOp::Write);
    let start = now.max(*free);
    *free = start + SimTime(if moves { ssd.block_ns * r.blocks.0 } else { 0 });
    (start, *free + ssd.latency)
}
