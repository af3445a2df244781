//! The bytes of an array's works: what writes are put together from, and where reads go.
//!
//! One piece of code for tests, power cuts, verification and a served device. Slots are volatile: a cut loses them.

use crate::plan::{Delivery, Outcome};
use crate::{End, MemberOp, MemberPlan, OpPart, Source, Term, Ticket};
use smrlab_units::{BLOCK_BYTES, Blocks};
use std::collections::BTreeMap;
use std::ops::Range;

/// What fills blocks that nobody reads back.
const RECORDS: u8 = 0x5a;

/// The slots of all works.
#[derive(Clone, Debug)]
pub struct Staging {
    block: usize,
    slots: BTreeMap<(Ticket, u32), Vec<u8>>,
}

impl Default for Staging {
    fn default() -> Self {
        Self::of_blocks(BLOCK_BYTES as usize)
    }
}

impl Staging {
    /// For blocks of so many bytes: fewer where something smaller stands for a block's bytes.
    pub fn of_blocks(bytes: usize) -> Self {
        Self { block: bytes, slots: BTreeMap::new() }
    }

    fn bytes(&self, at: Blocks, blocks: Blocks) -> Range<usize> {
        at.0 as usize * self.block..(at.0 + blocks.0) as usize * self.block
    }

    /// What a write to a member puts there; `host`: the data of the host's write.
    ///
    /// # Panics
    /// When the plan names a slot that no read filled, or was made without data.
    pub fn gather(&self, plan: &MemberPlan, op: &MemberOp, host: &[u8]) -> Vec<u8> {
        let all = op.request.blocks.0 as usize * self.block;
        let mut out = Vec::with_capacity(all);
        for part in plan.parts(op) {
            self.append(plan, op.buffers, part, host, &mut out);
        }
        assert_eq!(out.len(), all, "a write without data: {op:?}");
        out
    }

    /// Takes what a read of a member brought to the host's buffer and to slots of the work, as the request's
    /// [`parts`](MemberPlan::parts) say.
    pub fn scatter(&mut self, ticket: Ticket, parts: &[OpPart], data: &[u8], host: &mut [u8]) {
        let mut at = Blocks::ZERO;
        for part in parts {
            let from = &data[self.bytes(at, part.blocks)];
            match part.end {
                End::Host(to) => host[self.bytes(to, part.blocks)].copy_from_slice(from),
                End::Slot(slot, to) => {
                    let to = self.bytes(to, part.blocks);
                    let slot = self.slots.entry((ticket, slot)).or_default();
                    slot.resize(slot.len().max(to.end), 0);
                    slot[to].copy_from_slice(from);
                }
                End::Zero | End::Records | End::Sum(..) => {}
            }
            at += part.blocks;
        }
    }

    /// Puts together what a phase that is over delivers; `host` is none where nothing was asked of a member for its request: its buffer is
    /// zeroes as it is.
    pub fn deliver(&mut self, plan: &MemberPlan, delivery: &Delivery, host: Option<&mut [u8]>) {
        let mut zeroes = Vec::new();
        let host = match (host, delivery.to) {
            (Some(host), _) => host,
            (None, End::Host(_)) => return,
            (None, _) => {
                let of_host = |term: Term| if let Source::Host(at) = term.from { Some(at) } else { None };
                let last = plan.terms_of(delivery.part.end).into_iter().filter_map(of_host).max();
                zeroes.resize(self.bytes(last.unwrap_or_default(), delivery.part.blocks).end, 0);
                &mut zeroes[..]
            }
        };
        let mut out = Vec::new();
        self.append(plan, delivery.ticket, &delivery.part, host, &mut out);
        let to = OpPart { end: delivery.to, ..delivery.part };
        self.scatter(delivery.ticket, &[to], &out, host);
    }

    /// The work is over: its slots are gone.
    pub fn end(&mut self, ticket: Ticket) {
        let own: Vec<_> = self.slots.range((ticket, 0)..=(ticket, u32::MAX)).map(|s| *s.0).collect();
        own.iter().for_each(|key| _ = self.slots.remove(key));
    }

    fn append(&self, plan: &MemberPlan, ticket: Ticket, part: &OpPart, host: &[u8], out: &mut Vec<u8>) {
        let len = part.blocks.0 as usize * self.block;
        match part.end {
            End::Host(at) => out.extend_from_slice(&host[self.bytes(at, part.blocks)]),
            End::Slot(slot, at) => {
                out.extend_from_slice(self.slot(ticket, slot, self.bytes(at, part.blocks)))
            }
            End::Zero => out.resize(out.len() + len, 0),
            End::Records => out.resize(out.len() + len, RECORDS),
            End::Sum(first, end) => {
                let start = out.len();
                out.resize(start + len, 0);
                for term in plan.terms(first..end) {
                    let from = match term.from {
                        Source::Host(at) => &host[self.bytes(at, part.blocks)],
                        Source::Slot(slot, at) => self.slot(ticket, slot, self.bytes(at, part.blocks)),
                    };
                    term.times.add_times(from, &mut out[start..]);
                }
            }
        }
    }

    fn slot(&self, ticket: Ticket, slot: u32, range: Range<usize>) -> &[u8] {
        match self.slots.get(&(ticket, slot)) {
            Some(data) => &data[range],
            None => panic!("slot {slot} of work {} was not read", ticket.0),
        }
    }
}

/// A request of the host's that an array works on.
#[derive(Clone, Debug)]
struct Host {
    /// What it writes, or what its reads have brought.
    data: Vec<u8>,
    /// It has its answer; its work may go on.
    answered: bool,
}

/// The buffers of the host's requests, by their numbers, and the slots of all works.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    staging: Staging,
    hosts: BTreeMap<u64, Host>,
    /// Whose works are under way.
    tickets: BTreeMap<Ticket, u64>,
}

impl Buffers {
    /// For blocks of so many bytes: fewer where something smaller stands for a block's bytes.
    pub fn of_blocks(bytes: usize) -> Self {
        Self { staging: Staging::of_blocks(bytes), ..Self::default() }
    }

    /// The host sends a request, with what it writes or with room for what it reads.
    pub fn arrived(&mut self, request: u64, data: Vec<u8>) {
        self.hosts.insert(request, Host { data, answered: false });
    }

    /// An array begins with a request.
    pub fn began(&mut self, ticket: Ticket, request: u64) {
        self.tickets.insert(ticket, request);
    }

    /// What a write to a member puts there.
    pub fn gather(&self, plan: &MemberPlan, op: &MemberOp) -> Vec<u8> {
        self.staging.gather(plan, op, self.hosts.get(&op.request.id).map_or(&[], |h| &h.data))
    }

    /// Takes what a read of a member brought to where `parts` say.
    pub fn scatter(&mut self, op: &MemberOp, parts: &[OpPart], data: &[u8]) {
        let host = self.hosts.get_mut(&op.request.id).map_or(&mut [][..], |h| &mut h.data);
        self.staging.scatter(op.buffers, parts, data, host);
    }

    /// A plan was carried out: delivers, and drops what belongs to works that ended.
    pub fn planned(&mut self, plan: &MemberPlan) {
        for delivery in plan.deliveries() {
            let host = self.tickets.get(&delivery.ticket).and_then(|id| self.hosts.get_mut(id));
            self.staging.deliver(plan, delivery, host.map(|h| &mut h.data[..]));
        }
        for outcome in plan.outcomes() {
            if let Outcome::Ended(ticket) | Outcome::Refused(ticket, _) = *outcome {
                self.staging.end(ticket);
                if let Some(id) = self.tickets.remove(&ticket)
                    && self.hosts.get(&id).is_some_and(|h| h.answered)
                {
                    self.hosts.remove(&id);
                }
            }
        }
    }

    /// The host has its answer; what it read, or wrote. It is kept where the request's work goes on.
    pub fn answered(&mut self, request: u64) -> Vec<u8> {
        if self.tickets.values().all(|of| *of != request) {
            return self.hosts.remove(&request).map(|h| h.data).unwrap_or_default();
        }
        let Some(host) = self.hosts.get_mut(&request) else { return Vec::new() };
        host.answered = true;
        host.data.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot is filled by several reads, in any order; what lies behind stays.
    #[test]
    fn a_slot_keeps_what_other_reads_brought() {
        let (mut staging, ticket) = (Staging::of_blocks(1), Ticket(3));
        for (at, data) in [(2, [7, 8]), (0, [5, 6])] {
            let part = OpPart { blocks: Blocks(2), end: End::Slot(1, Blocks(at)) };
            staging.scatter(ticket, &[part], &data, &mut []);
        }
        assert_eq!(staging.slot(ticket, 1, 0..4), [5, 6, 7, 8]);
    }
}
