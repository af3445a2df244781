//! The plan of an array: member requests in phases, and what becomes of the works they belong to.

use crate::MemberId;
use crate::job::{Job, Ticket};
use crate::part::{End, OpPart, Parts, Term};
use crate::{Change, Records};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::ops::Range;

/// A request to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberOp {
    /// The work that it belongs to.
    pub ticket: Ticket,
    /// Who does it.
    pub member: MemberId,
    /// What is asked; `why` says what for, `id` is the host request's.
    pub request: HostRequest,
    /// The work whose host's buffer and slots its parts name: `ticket`, but for an array that is a member of another.
    pub buffers: Ticket,
    pub(crate) parts: (u32, u32),
}

/// Bytes that are put together when a phase is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The work whose host's buffer and slots are meant.
    pub ticket: Ticket,
    /// Where to: the host's buffer, of an array that is a member of another perhaps a slot.
    pub to: End,
    /// Length and source.
    pub part: OpPart,
}

/// What becomes of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The host is told that its request is done; the work goes on.
    Acknowledged(Ticket),
    /// The work is over: its stripes are free, its slots are gone. A host that was not acknowledged is now.
    Ended(Ticket),
    /// The work is over and was not done.
    Refused(Ticket, Refusal),
}

impl Outcome {
    /// The work.
    pub const fn ticket(&self) -> Ticket {
        match *self {
            Self::Acknowledged(ticket) | Self::Ended(ticket) | Self::Refused(ticket, _) => ticket,
        }
    }
}

/// See the [module](self). Cleared and reused from call to call.
///
/// Deliveries are carried out first; then records are durable, and with a [fence](MemberPlan::fence) all that was done before;
/// then outcomes hold; then the member requests begin, and then the jobs. The requests of one work in one plan are a phase: when all have ended the array is told.
#[derive(Debug, Default)]
pub struct MemberPlan {
    now: SimTime,
    ops: Vec<MemberOp>,
    parts: Vec<OpPart>,
    terms: Vec<Term>,
    deliveries: Vec<Delivery>,
    outcomes: Vec<Outcome>,
    jobs: Vec<Job>,
    records: Records,
    cleanings: Vec<(&'static str, Ticket, Blocks)>,
    fence: bool,
    wants_data: bool,
}

impl MemberPlan {
    /// An empty plan that collects parts only where asked to.
    pub fn new(wants_data: bool) -> Self {
        Self { wants_data, ..Self::default() }
    }

    /// One with data, of this time.
    #[cfg(test)]
    pub(crate) fn at(now: SimTime) -> Self {
        Self { now, ..Self::new(true) }
    }

    /// The same memory for an empty plan that collects parts where `like` does.
    pub(crate) fn reuse(self, like: &Self) -> Self {
        let mut plan = Self { wants_data: like.wants_data, ..self };
        plan.begin(like.now);
        plan
    }

    /// Empties it for what is planned at `now`.
    #[inline]
    pub fn begin(&mut self, now: SimTime) {
        self.now = now;
        self.clear();
    }

    /// When it is planned.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Drops what is planned so far.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.outcomes.clear();
        self.jobs.clear();
        self.records.clear();
        self.cleanings.clear();
        self.fence = false;
        if self.wants_data {
            self.parts.clear();
            self.terms.clear();
            self.deliveries.clear();
        }
    }

    /// Whether parts are collected; where they are not, an array need not enumerate them.
    pub fn wants_data(&self) -> bool {
        self.wants_data
    }

    /// Asks `member` for `request`; `parts` says where its bytes are, and is called only where data are wanted.
    #[inline]
    pub fn ask(
        &mut self,
        ticket: Ticket,
        member: MemberId,
        request: HostRequest,
        parts: impl FnOnce(&mut Parts<'_>),
    ) {
        self.ask_as(MemberOp { ticket, member, request, buffers: ticket, parts: (0, 0) }, parts);
    }

    /// The same, of whatever work its buffers are.
    #[inline]
    pub(crate) fn ask_as(&mut self, op: MemberOp, parts: impl FnOnce(&mut Parts<'_>)) {
        let request = &op.request;
        let first = self.parts.len() as u32;
        if self.wants_data {
            parts(&mut Parts { parts: &mut self.parts, terms: &mut self.terms });
            let all = self.parts[first as usize..].iter().map(|p| p.blocks.0).sum::<u64>();
            debug_assert!(
                all == request.blocks.0 || !matches!(request.op, HostOp::Read | HostOp::Write),
                "parts of {all} blocks for {request:?}"
            );
        }
        self.ops.push(MemberOp { parts: (first, self.parts.len() as u32), ..op });
    }

    /// Asks `member` for what `op` of another plan asks somebody for.
    pub(crate) fn ask_again(&mut self, other: &Self, op: &MemberOp, member: MemberId) {
        self.ask_as(MemberOp { member, ..*op }, |out| {
            for part in other.parts(op) {
                let end =
                    if let End::Sum(..) = part.end { out.sum(&other.terms_of(part.end)) } else { part.end };
                out.push(part.blocks, end);
            }
        });
    }

    /// Reads `blocks` of a member into slot `slot` of the work.
    #[inline]
    pub fn read_slot(
        &mut self,
        ticket: Ticket,
        member: MemberId,
        why: Cause,
        place: (Lba, Blocks),
        slot: u32,
    ) {
        let request = HostRequest::new(HostOp::Read, place.0, place.1).because(why);
        self.ask(ticket, member, request, |p| p.push(place.1, End::Slot(slot, Blocks::ZERO)));
    }

    /// Puts together, now that the phase is over, `blocks` of the host's buffer from `at` on.
    pub fn deliver(&mut self, ticket: Ticket, at: Blocks, blocks: Blocks, terms: &[Term]) {
        self.deliver_to(ticket, End::Host(at), blocks, terms);
    }

    /// The same, to any place.
    pub(crate) fn deliver_to(&mut self, ticket: Ticket, to: End, blocks: Blocks, terms: &[Term]) {
        if self.wants_data {
            let end = Parts { parts: &mut self.parts, terms: &mut self.terms }.sum(terms);
            self.deliveries.push(Delivery { ticket, to, part: OpPart { blocks, end } });
        }
    }

    /// The host is told that its request is done.
    #[inline]
    pub fn acknowledge(&mut self, ticket: Ticket) {
        self.outcomes.push(Outcome::Acknowledged(ticket));
    }

    /// The work is over.
    #[inline]
    pub fn end(&mut self, ticket: Ticket) {
        self.outcomes.push(Outcome::Ended(ticket));
    }

    /// The work is over and cannot be done.
    pub fn refuse(&mut self, ticket: Ticket, why: Refusal) {
        self.outcomes.push(Outcome::Refused(ticket, why));
    }

    /// Whatever becomes of a work.
    pub(crate) fn becomes(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    /// Starts work of the array's own, as soon as its stripes are free.
    pub fn job(&mut self, job: impl Into<Job>) {
        self.jobs.push(job.into());
    }

    /// The same, where work that is under way waits for it.
    pub(crate) fn awaited_job(&mut self, job: impl Into<Job>) {
        self.jobs.push(Job { awaited: true, ..job.into() });
    }

    /// Takes over what another plan says of its works beside requests and outcomes: a fence, cleaning events.
    pub(crate) fn take_marks(&mut self, other: &Self) {
        self.fence |= other.fence;
        self.cleanings.extend_from_slice(&other.cleanings);
    }

    /// The same, and its changes of state and deliveries.
    pub(crate) fn take_effects(&mut self, other: &Self) {
        self.take_marks(other);
        self.records.append(&other.records);
        for delivery in &other.deliveries {
            let terms = other.terms_of(delivery.part.end);
            self.deliver_to(delivery.ticket, delivery.to, delivery.part.blocks, &terms);
        }
    }

    /// A durable change of the array's state, in its own memory: durable now, before the requests of this plan begin.
    pub fn record(&mut self, change: impl Change) {
        self.records.add(&change);
    }

    /// Where parts that layouts share put down their changes.
    pub(crate) fn records_mut(&mut self) -> &mut Records {
        &mut self.records
    }

    /// The requests of this plan go over space that the state before needs, or must not reach the disks before what is recorded:
    /// all records so far, and what members did, survive a loss of power from here on. Only callers that can lose power
    /// ([`EventLoop`](crate::EventLoop) cannot) have something to do.
    pub fn fence(&mut self) {
        self.fence = true;
    }

    /// The work as a whole is a cleaning event that moves `relocated` live blocks.
    pub fn cleaning(&mut self, kind: &'static str, ticket: Ticket, relocated: Blocks) {
        self.cleanings.push((kind, ticket, relocated));
    }

    /// Member requests, in the order in which they are issued.
    pub fn ops(&self) -> &[MemberOp] {
        &self.ops
    }

    /// Gives the request at `i` the number by which who asked for it knows it.
    pub(crate) fn number(&mut self, i: usize, id: u64) {
        self.ops[i].request.id = id;
    }

    /// The parts of a request, empty where data are not wanted.
    pub fn parts(&self, op: &MemberOp) -> &[OpPart] {
        &self.parts[op.parts.0 as usize..op.parts.1 as usize]
    }

    /// The bytes at an end as a sum: of nothing where they are zeroes, or nobody's.
    pub(crate) fn terms_of(&self, end: End) -> Vec<Term> {
        match end {
            End::Host(at) => vec![Term::host(at.0)],
            End::Slot(slot, at) => vec![Term::slot(slot, at)],
            End::Zero | End::Records => Vec::new(),
            End::Sum(first, end) => self.terms(first..end).to_vec(),
        }
    }

    /// The terms of an [`End::Sum`].
    pub fn terms(&self, of: Range<u32>) -> &[Term] {
        &self.terms[of.start as usize..of.end as usize]
    }

    /// What is put together for the host.
    pub fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// What becomes of works.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Jobs to start.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Changes of state. Those of one plan hold together: after a kill there are all of them or none.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Whether all so far has to be durable before the requests begin.
    pub fn is_fence(&self) -> bool {
        self.fence
    }

    /// Cleaning events: kind, work, live blocks moved.
    pub fn cleanings(&self) -> &[(&'static str, Ticket, Blocks)] {
        &self.cleanings
    }

    /// The place of each request in the plan, by work.
    pub fn of(&self, ticket: Ticket) -> impl Iterator<Item = &MemberOp> {
        self.ops.iter().filter(move |op| op.ticket == ticket)
    }
}
