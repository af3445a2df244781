//! Arrays of arrays: an array whose members are arrays, each over drives and an SSD of its own.
//!
//! To its callers it is one array over all the drives, so that runs, states, served devices and power cuts know nothing of it.
//! A request of the array above to a member becomes a job of the loop, which takes the member's stripes and begins the member's
//! work; when the member acknowledges it, the request is done, and with the last one of its phase the array above goes on. Where
//! the member's bytes come from and go to is said in terms of the work above ([`buffers`]), so a work above ends no earlier than
//! the works that were done for it.
//!
//! A member that refuses a request is thrown out by the array above, as a drive would be; at once when a drive of it dies that it
//! cannot rebuild. With a fresh drive in the place of each dead one it begins anew. Where some of its drives are old, they hold
//! anything: it makes its copies and parities fit as after a loss of power, while the array above rebuilds it.

mod array;
mod buffers;
mod shape;
mod state;

pub(crate) use shape::Shape;

use crate::job::tasks;
use crate::plan::Outcome;
use crate::tickets::Tickets;
use crate::{Array, Health, Job, MemberId, MemberPlan, Phase, Stop, Ticket};
use buffers::{Buffers, Slots};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{HostOp, SimTime, Zone, ZoneCondition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

tasks! {
    /// What is begun for a member, beside the tasks of the array above.
    enum Task from 0x2_0000 {
        /// What has this place in the queue.
        Begin,
    }
}

/// Makes a member by its number, as it was at first.
pub(crate) type Make = Box<dyn Fn(usize) -> Option<Box<dyn Array>> + Send>;

/// A member.
struct Within {
    array: Box<dyn Array>,
    /// The array above has thrown it out.
    lost: bool,
    /// Its drives that were replaced since.
    fresh: BTreeSet<u32>,
    /// What these report of their zones.
    zones: BTreeMap<u32, Vec<Zone>>,
    /// Requests of the array above that it has not answered, and works that are not over.
    requests: u64,
    works: u64,
    idle_since: SimTime,
}

/// What a ticket stands for.
enum Doing {
    /// A work of the array above.
    Above(Above),
    /// A request of the array above to a member.
    Request(Request),
    /// A work of this member's own.
    Own(usize),
}

#[derive(Default)]
struct Above {
    /// A request of the host's that is not acknowledged.
    host: bool,
    /// Requests of its phase that are not answered; those to the SSD count as one.
    waits: u32,
    lost: bool,
    untaken: Option<Refusal>,
    /// Works of members that were begun for it and are not over.
    members: u32,
    /// How it ended, while there are some.
    ended: Option<Outcome>,
    slots: Slots,
}

struct Request {
    /// The work above.
    of: Ticket,
    /// The member.
    to: usize,
    request: HostRequest,
    buffers: Buffers,
    answered: bool,
}

/// What waits for a ticket and its stripes.
enum Queued {
    Request(Request),
    Own(usize, Job),
}

/// How a member answered a request.
struct Answer {
    of: Ticket,
    op: HostOp,
    refusal: Option<Refusal>,
}

/// See the [module](self).
pub(crate) struct Nested {
    above: Box<dyn Array>,
    within: Vec<Within>,
    shape: Shape,
    make: Make,
    /// Of each drive its zones.
    zones: Arc<[Vec<Zone>]>,
    works: Tickets<Doing>,
    queue: Vec<Option<Queued>>,
    free: Vec<usize>,
    /// Requests of the host's that are not acknowledged, and since when there is none.
    hosts: u64,
    idle_since: SimTime,
    /// Emptied plans, for use again.
    spare: Vec<MemberPlan>,
}

impl Nested {
    /// `above` over members that `make` makes, on drives with these zones; `None`: one of them cannot be made.
    pub(crate) fn new(
        above: Box<dyn Array>,
        shape: Shape,
        make: Make,
        zones: Arc<[Vec<Zone>]>,
    ) -> Option<Self> {
        let member = |i| {
            let idle_since = SimTime::ZERO;
            let (fresh, zones, array) = (BTreeSet::new(), BTreeMap::new(), make(i)?);
            Some(Within { array, lost: false, fresh, zones, requests: 0, works: 0, idle_since })
        };
        Some(Self {
            within: (0..shape.members as usize).map(member).collect::<Option<_>>()?,
            above,
            shape,
            make,
            zones,
            works: Tickets::default(),
            queue: Vec::new(),
            free: Vec::new(),
            hosts: 0,
            idle_since: SimTime::ZERO,
            spare: Vec::new(),
        })
    }

    fn idle(&self) -> Option<SimTime> {
        (self.hosts == 0).then_some(self.idle_since)
    }

    /// When a member wants to be woken.
    fn member_wakes(&self, member: &Within) -> Option<SimTime> {
        let idle = (member.requests == 0).then_some(member.idle_since);
        member.array.wake_at(idle).filter(|_| !member.lost)
    }

    /// Queues a job for what is to begin.
    fn begins(&mut self, what: Queued) -> Job {
        let at = self.free.pop().unwrap_or_else(|| {
            self.queue.push(None);
            self.queue.len() - 1
        });
        self.queue[at] = Some(what);
        Task::Begin(at as u64).into()
    }

    fn queued(&self, job: &Job) -> Option<&Queued> {
        let Some(Task::Begin(at)) = Task::of(*job) else { return None };
        self.queue.get(at as usize)?.as_ref()
    }

    /// Has the array above do something.
    fn above(&mut self, plan: &mut MemberPlan, act: impl FnOnce(&mut dyn Array, &mut MemberPlan)) {
        let mut own = self.spare.pop().unwrap_or_default().reuse(plan);
        act(&mut *self.above, &mut own);
        plan.take_effects(&own);
        own.outcomes().iter().for_each(|outcome| self.above_ends(*outcome, plan));
        let mut on_ssd = BTreeSet::new();
        for op in own.ops() {
            let Some(Doing::Above(work)) = self.works.get_mut(op.ticket) else { continue };
            match self.shape.member(op.member) {
                Ok(to) => {
                    work.waits += 1;
                    work.members += 1;
                    let (of, buffers) = (op.ticket, Buffers::of(&own, op));
                    let request = Request { of, to, request: op.request, buffers, answered: false };
                    let member = &mut self.within[to];
                    (member.requests, member.works) = (member.requests + 1, member.works + 1);
                    let job = self.begins(Queued::Request(request));
                    plan.awaited_job(job);
                }
                Err(ssd) => {
                    work.waits += u32::from(on_ssd.insert(op.ticket));
                    plan.ask_again(&own, op, ssd);
                }
            }
        }
        own.jobs().iter().for_each(|job| plan.job(*job));
        self.spare.push(own);
    }

    /// What becomes of a work above: it ends with the last work that was begun for it.
    fn above_ends(&mut self, outcome: Outcome, plan: &mut MemberPlan) {
        let Some(Doing::Above(work)) = self.works.get_mut(outcome.ticket()) else {
            return plan.becomes(outcome);
        };
        if std::mem::take(&mut work.host) {
            self.hosts -= 1;
            self.idle_since = plan.now();
        }
        if matches!(outcome, Outcome::Acknowledged(_)) {
            return plan.becomes(outcome);
        }
        if work.members > 0 {
            if matches!(outcome, Outcome::Ended(_)) {
                plan.acknowledge(outcome.ticket());
            }
            work.ended = Some(outcome);
            return;
        }
        self.works.remove(outcome.ticket());
        plan.becomes(outcome);
    }

    /// Has a member do something.
    fn member(
        &mut self,
        at: usize,
        plan: &mut MemberPlan,
        act: impl FnOnce(&mut dyn Array, &mut MemberPlan),
    ) {
        let mut own = self.spare.pop().unwrap_or_default().reuse(plan);
        act(&mut *self.within[at].array, &mut own);
        own.records().iter().for_each(|record| state::put(at, record, plan.records_mut()));
        plan.take_marks(&own);
        for delivery in own.deliveries() {
            match self.lender(delivery.ticket) {
                Some((request, slots)) => request.buffers.deliver(&own, delivery, (request.of, slots), plan),
                None => {
                    let terms = own.terms_of(delivery.part.end);
                    plan.deliver_to(delivery.ticket, delivery.to, delivery.part.blocks, &terms);
                }
            }
        }
        let mut answers = Vec::new();
        own.outcomes().iter().for_each(|o| answers.extend(self.member_ends(at, *o, plan)));
        for op in own.ops() {
            let to = self.shape.flat(at, op.member);
            match self.lender(op.buffers) {
                Some((request, slots)) => {
                    request.buffers.ask(&own, (op, to, request.answered), (request.of, slots), plan);
                }
                None => plan.ask_again(&own, op, to),
            }
        }
        for job in own.jobs() {
            let begin = self.begins(Queued::Own(at, *job));
            plan.job(Job { awaited: job.awaited, ..begin });
        }
        self.spare.push(own);
        answers.into_iter().for_each(|answer| self.answered(at, &answer, plan));
        self.comes_back(at, plan);
    }

    /// The request for which a work of a member's is done, and the slots of the work above.
    fn lender(&mut self, ticket: Ticket) -> Option<(&Request, &mut Slots)> {
        let Some(Doing::Request(Request { of, .. })) = self.works.get(ticket) else { return None };
        let of = *of;
        match self.works.pair(ticket, of) {
            Some((Doing::Request(request), Doing::Above(work))) => Some((request, &mut work.slots)),
            _ => None,
        }
    }

    /// What becomes of a member's work; how a request was answered by that.
    fn member_ends(&mut self, at: usize, outcome: Outcome, plan: &mut MemberPlan) -> Option<Answer> {
        let ticket = outcome.ticket();
        let refusal = if let Outcome::Refused(_, why) = outcome { Some(why) } else { None };
        let ends = !matches!(outcome, Outcome::Acknowledged(_));
        let Some(Doing::Request(request)) = self.works.get_mut(ticket) else {
            if ends && self.works.take(ticket).is_some() {
                self.within[at].works -= 1;
            }
            plan.becomes(outcome);
            return None;
        };
        let first = !std::mem::replace(&mut request.answered, true);
        let answer = Answer { of: request.of, op: request.request.op, refusal };
        if ends {
            self.works.remove(ticket);
            self.within[at].works -= 1;
            plan.end(ticket);
            if let Some(Doing::Above(work)) = self.works.get_mut(answer.of) {
                work.members -= 1;
                if let Some(ended) = work.ended.filter(|_| work.members == 0) {
                    self.works.remove(answer.of);
                    plan.becomes(ended);
                }
            }
        }
        first.then_some(answer)
    }

    /// A member has answered a request of the array above.
    fn answered(&mut self, at: usize, answer: &Answer, plan: &mut MemberPlan) {
        let member = &mut self.within[at];
        member.requests -= 1;
        if member.requests == 0 {
            member.idle_since = plan.now();
        }
        if answer.refusal.is_some_and(|why| why != Refusal::Unsupported) {
            self.throw_out(at, plan);
        }
        let lost = answer.refusal.is_some() && answer.op == HostOp::Read;
        let untaken = answer.refusal.filter(|_| answer.op == HostOp::Write);
        self.phase(Phase { ticket: answer.of, lost, untaken, busy: false }, plan);
    }

    /// A part of a phase above is over.
    fn phase(&mut self, part: Phase, plan: &mut MemberPlan) {
        let Some(Doing::Above(work)) = self.works.get_mut(part.ticket) else { return };
        work.lost |= part.lost;
        work.untaken = work.untaken.or(part.untaken);
        work.waits -= 1;
        if work.waits == 0 {
            let (lost, untaken) = (std::mem::take(&mut work.lost), work.untaken.take());
            let phase = Phase { lost, untaken, busy: self.hosts > 0, ..part };
            self.above(plan, |above, own| above.complete(phase, own));
        }
    }

    fn throw_out(&mut self, at: usize, plan: &mut MemberPlan) {
        if !std::mem::replace(&mut self.within[at].lost, true) {
            plan.record(state::Event::Lost(at));
            self.above(plan, |above, own| above.failed(MemberId(at as u32), own));
        }
    }

    /// A member that was thrown out begins anew, when its drives allow that and nothing of it is under way.
    fn comes_back(&mut self, at: usize, plan: &mut MemberPlan) {
        let member = &self.within[at];
        if !member.lost || member.works > 0 || member.fresh.is_empty() {
            return;
        }
        let held = (0..self.shape.disks).filter(|disk| !member.fresh.contains(disk)).map(MemberId);
        if held.map(|disk| member.array.health(disk)).any(|health| health == Health::Dead) {
            return;
        }
        let Some(mut array) = (self.make)(at) else { return };
        let member = &mut self.within[at];
        // Drives that are all new hold nothing, as those of an array that is made: its copies and parities fit.
        let blank = member.fresh.len() == self.shape.disks as usize;
        member.fresh.clear();
        let mut reported = std::mem::take(&mut member.zones);
        let each = self.shape.disks as usize;
        for (disk, zones) in (0..).zip(self.zones.iter().skip(at * each).take(each)) {
            let zones = reported.remove(&disk).unwrap_or_else(|| used(zones));
            array.reported(MemberId(disk), &zones);
        }
        (member.array, member.lost) = (array, false);
        plan.record(state::Event::Anew(at));
        if !blank {
            self.member(at, plan, |array, own| array.unclean(Stop::PowerLost, own));
        }
        self.above(plan, |above, own| above.replaced(MemberId(at as u32), own));
    }
}

/// The zones of a drive of which nobody knows what it holds: all that may be full are.
fn used(zones: &[Zone]) -> Vec<Zone> {
    let full = |zone: &Zone| match zone.kind.has_pointer() {
        true => Zone { condition: ZoneCondition::Full, pointer: None, ..*zone },
        false => *zone,
    };
    zones.iter().map(full).collect()
}

#[cfg(test)]
mod tests;
