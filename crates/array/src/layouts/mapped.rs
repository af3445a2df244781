//! Layouts without redundancy: every block of the host's has one place, and a request has one phase.

use super::disks::Disks;
use super::rebuild::{Order, Rebuild};
use crate::{Array, End, Health, MemberId, MemberPlan, Phase, Records, Sink, Ticket, Work};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, forward};

/// A piece of a request on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The member.
    pub member: MemberId,
    /// Its first block there.
    pub lba: Lba,
    /// Length.
    pub blocks: Blocks,
    /// Offset in the request.
    pub host: Blocks,
}

/// Where blocks are.
pub trait Map: Send {
    /// How many blocks the host sees.
    fn host_blocks(&self) -> Blocks;

    /// As [`Array::spaces`].
    fn spaces(&self) -> u16 {
        1
    }

    /// The pieces of a request, in its order.
    fn extents(&self, request: &HostRequest, out: &mut Vec<Extent>);
}

/// A layout by its map.
pub struct Mapped<M> {
    map: M,
    disks: Disks,
    extents: Vec<Extent>,
}

impl<M: Map> Mapped<M> {
    /// On so many members.
    pub fn new(map: M, members: u32) -> Self {
        Self { map, disks: Disks::new(members as usize, 0, 1), extents: Vec::new() }
    }

    fn plan(&mut self, ticket: Ticket, request: &HostRequest, plan: &mut MemberPlan) {
        self.extents.clear();
        self.map.extents(request, &mut self.extents);
        ask(&mut self.extents, ticket, request, plan);
    }
}

/// Asks for pieces of a request, one request a member and run of its blocks.
pub fn ask(all: &mut [Extent], ticket: Ticket, request: &HostRequest, plan: &mut MemberPlan) {
    if all.len() > 1 {
        all.sort_by_key(|e| e.member);
    }
    let mut rest = &*all;
    while let Some(first) = rest.first() {
        let mut end = first.lba + first.blocks;
        let mut n = 1;
        while let Some(next) = rest.get(n).filter(|e| e.member == first.member && e.lba == end) {
            end = next.lba + next.blocks;
            n += 1;
        }
        let blocks = Blocks(end.0 - first.lba.0);
        let part = HostRequest { lba: first.lba, blocks, ..*request };
        plan.ask(ticket, first.member, part, |out| {
            rest[..n].iter().for_each(|e| out.push(e.blocks, End::Host(e.host)));
        });
        rest = &rest[n..];
    }
}

impl<M: Map> Array for Mapped<M> {
    forward! { disks:
        fn failed(&mut self, member: MemberId, plan: &mut MemberPlan);
        fn health(&self, member: MemberId) -> Health;
    }

    fn host_blocks(&self) -> Blocks {
        self.map.host_blocks()
    }

    fn spaces(&self) -> u16 {
        self.map.spaces()
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        let Work::Host(request) = work else { return plan.end(ticket) };
        if request.op == HostOp::Flush {
            if !self.disks.flush(ticket, request, plan) {
                plan.refuse(ticket, Refusal::Lost);
            }
            return;
        }
        self.plan(ticket, request, plan);
        if self.extents.iter().any(|e| self.disks.is_dead(e.member)) {
            plan.clear();
            plan.refuse(ticket, Refusal::Lost);
        }
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        match phase.untaken.or(phase.lost.then_some(Refusal::Lost)) {
            Some(why) => plan.refuse(phase.ticket, why),
            None => plan.end(phase.ticket),
        }
    }

    fn recover(&mut self, records: &Records, _: &mut MemberPlan) {
        // Nothing is ever rebuilt.
        let none = |disk| Rebuild::new(disk, 0, Order::Address, 0, SimTime::ZERO);
        records.iter().for_each(|record| _ = self.disks.recover(record, none));
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.disks.checkpoint(out);
    }
}
