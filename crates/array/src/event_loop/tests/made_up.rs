//! Arrays that do anything, from a seed.

use crate::{Array, Health, Job, Locks, MemberId, MemberPlan, Phase, Ticket, Work};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeMap;

/// Four members, of which the last is the SSD.
pub(super) const MEMBERS: u64 = 4;

/// See the [module](self).
#[derive(Clone)]
pub(super) struct Script {
    rng: Rng,
    /// Phases that are left of each work, and whether it has been acknowledged.
    works: BTreeMap<Ticket, (u64, bool)>,
    /// Jobs that it begins when it has been idle, and those that it still will.
    jobs: u64,
    wakes: u64,
}

impl Script {
    pub(super) fn new(rng: Rng) -> Self {
        Self { rng, works: BTreeMap::new(), jobs: 0, wakes: 0 }
    }

    fn job(&mut self, plan: &mut MemberPlan) {
        self.jobs += 1;
        plan.job(Job { kind: 1, of: self.rng.below(20), awaited: false });
    }

    /// Goes on with a work: a phase, or the end.
    fn go_on(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        let (left, acked) = self.works[&ticket];
        if left == 0 {
            self.works.remove(&ticket);
            match self.rng.below(12) {
                0 if !acked => plan.refuse(ticket, Refusal::Lost),
                _ => plan.end(ticket),
            }
        } else {
            if !acked && self.rng.one_in(4) {
                plan.acknowledge(ticket);
                // Once more is once.
                plan.acknowledge(ticket);
            }
            let acked = acked || plan.outcomes().iter().any(|o| o.ticket() == ticket);
            self.works.insert(ticket, (left - 1, acked));
            for _ in 0..1 + self.rng.below(4) {
                let op =
                    [HostOp::Read, HostOp::Write, HostOp::Write, HostOp::Flush][self.rng.below(4) as usize];
                let blocks = if op == HostOp::Flush { 0 } else { 1 + self.rng.below(20) };
                let mut r = HostRequest::new(op, Lba(self.rng.below(1500)), Blocks(blocks));
                r.why = [Cause::Host, Cause::Parity][self.rng.below(2) as usize];
                plan.ask(ticket, MemberId(self.rng.below(MEMBERS) as u32), r, |_| ());
            }
        }
        if self.jobs < 60 && self.rng.one_in(6) {
            self.job(plan);
        }
    }
}

impl Array for Script {
    fn host_blocks(&self) -> Blocks {
        Blocks(400)
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) if r.op == HostOp::Flush => Locks::NONE,
            Work::Host(r) => {
                let (first, end) = (r.lba.0 / 16, (r.lba.0 + r.blocks.0).div_ceil(16));
                Locks { stripes: first..end, shared: r.op == HostOp::Read }
            }
            Work::Job(job) => Locks { stripes: job.of..job.of + 2, shared: false },
        }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        let phases = self.rng.below(4);
        self.works.insert(ticket, (phases, false));
        if matches!(work, Work::Job(_)) && self.rng.one_in(2) {
            plan.cleaning("cleans", ticket, Blocks(self.rng.below(90)));
        }
        self.go_on(ticket, plan);
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        // What was lost or not taken, and whether others wait, decides how it goes on.
        for _ in [phase.lost || phase.busy, phase.untaken.is_some()].iter().filter(|is| **is) {
            self.rng.below(2);
        }
        self.go_on(phase.ticket, plan);
    }

    fn failed(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.rng.below(1 + u64::from(member.0));
        self.job(plan);
    }

    fn replaced(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.rng.below(1 + u64::from(member.0));
        self.job(plan);
    }

    fn health(&self, _: MemberId) -> Health {
        Health::Whole
    }

    fn wake_at(&self, idle: Option<SimTime>) -> Option<SimTime> {
        idle.filter(|_| self.wakes < 40).map(|since| since + SimTime::from_ms(20 * (self.wakes + 1)))
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        self.wakes += 1;
        self.job(plan);
    }
}
