//! Bytes of members' works in terms of the work above.
//!
//! What a member knows as its host's buffer is what the request of the array above names: pieces of the host's buffer, of slots,
//! of sums. What it reads into slots of its own goes into slots of the work above that only it uses.

use crate::part::{End, OpPart, Source, Term};
use crate::plan::Delivery;
use crate::{MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_units::{Blocks, HostOp};
use std::collections::BTreeMap;

/// The first slot of a work above that is a member's: above the array's own, and below that of its cache.
const FIRST: u32 = 1 << 20;

/// A member's slot that none of its arrays has: a copy of what its host's buffer held.
const COPY: u32 = u32::MAX - 1;

/// Which slot of the work above a slot of a member's work is.
#[derive(Debug, Default)]
pub(super) struct Slots(BTreeMap<(Ticket, u32), u32>);

impl Slots {
    fn of(&mut self, ticket: Ticket, slot: u32) -> u32 {
        let next = FIRST + self.0.len() as u32;
        *self.0.entry((ticket, slot)).or_insert(next)
    }
}

/// Where the bytes of a request are.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// Length, and what is summed there: nothing are zeroes, or nowhere.
    pieces: Vec<(Blocks, Vec<Term>)>,
}

impl Buffers {
    /// Those of a request in a plan.
    pub(super) fn of(plan: &MemberPlan, op: &MemberOp) -> Self {
        let piece = |part: &OpPart| (part.blocks, plan.terms_of(part.end));
        Self { pieces: plan.parts(op).iter().map(piece).collect() }
    }

    /// What is at `at` blocks, and for how many blocks that goes on.
    fn at(&self, at: Blocks) -> (Blocks, Vec<Term>) {
        let mut within = at.0;
        for (blocks, terms) in &self.pieces {
            if within < blocks.0 {
                let on = terms.iter().map(|term| term.moved(Blocks(within))).collect();
                return (Blocks(blocks.0 - within), on);
            }
            within -= blocks.0;
        }
        debug_assert!(false, "a request without the buffer that its member names");
        (Blocks(u64::MAX), Vec::new())
    }

    /// `blocks` of what a member's work sums, piece by piece in terms of the work above.
    fn each(
        &self,
        blocks: Blocks,
        own: &[Term],
        mut slot: impl FnMut(u32) -> u32,
        out: &mut dyn FnMut(Blocks, &[Term]),
    ) {
        let mut done = Blocks::ZERO;
        while done < blocks {
            let mut n = Blocks(blocks.0 - done.0);
            let mut terms = Vec::new();
            for term in own {
                let moved = term.moved(done);
                match moved.from {
                    Source::Host(at) => {
                        let (goes_on, all) = self.at(at);
                        n = n.min(goes_on);
                        terms.extend(all.into_iter().map(|t| t.times(term.times)));
                    }
                    Source::Slot(own, at) => terms.push(Term { from: Source::Slot(slot(own), at), ..moved }),
                }
            }
            out(n, &terms);
            done += n;
        }
    }

    /// Asks for what a member asks for, under the ticket of its work. What it writes of a request that it has `answered`, as a read cache
    /// does, is copied first: the work above goes on in this plan, and puts something else together in its buffers before that is written.
    pub(super) fn ask(
        &self,
        own: &MemberPlan,
        (op, member, answered): (&MemberOp, MemberId, bool),
        (of, slots): (Ticket, &mut Slots),
        plan: &mut MemberPlan,
    ) {
        if answered && op.request.op == HostOp::Write {
            return self.ask_with_copies(own, (op, member), (of, slots), plan);
        }
        plan.ask_as(MemberOp { member, buffers: of, ..*op }, |out| {
            // Discards have no bytes, whatever is said of them.
            let moves = matches!(op.request.op, HostOp::Read | HostOp::Write);
            for part in own.parts(op).iter().filter(|_| moves) {
                let slot = |slot| slots.of(op.buffers, slot);
                self.each(part.blocks, &own.terms_of(part.end), slot, &mut |n, terms| {
                    let end = out.sum(terms);
                    out.push(n, end);
                });
            }
        });
    }

    fn ask_with_copies(
        &self,
        own: &MemberPlan,
        (op, member): (&MemberOp, MemberId),
        (of, slots): (Ticket, &mut Slots),
        plan: &mut MemberPlan,
    ) {
        let copy = slots.of(op.buffers, COPY);
        let mut ends = Vec::new();
        for part in own.parts(op) {
            let terms = own.terms_of(part.end);
            let of_host =
                terms.iter().find_map(|t| if let Source::Host(at) = t.from { Some(at) } else { None });
            let mut at = of_host.unwrap_or_default();
            self.each(part.blocks, &terms, |slot| slots.of(op.buffers, slot), &mut |n, terms| {
                plan.deliver_to(of, End::Slot(copy, at), n, terms);
                ends.push((n, End::Slot(copy, at)));
                at += n;
            });
        }
        let ends = ends.into_iter();
        plan.ask_as(MemberOp { member, buffers: of, ..*op }, |out| {
            ends.for_each(|(n, end)| out.push(n, end))
        });
    }

    /// Delivers what a member delivers to its host.
    pub(super) fn deliver(
        &self,
        own: &MemberPlan,
        delivery: &Delivery,
        (of, slots): (Ticket, &mut Slots),
        plan: &mut MemberPlan,
    ) {
        let (ticket, all) = (delivery.ticket, own.terms_of(delivery.part.end));
        let mut pieces = Vec::new();
        let to = own.terms_of(delivery.to);
        self.each(delivery.part.blocks, &to, |s| slots.of(ticket, s), &mut |n, to| {
            pieces.push((n, to.to_vec()))
        });
        let mut at = Blocks::ZERO;
        for (n, to) in pieces {
            let from: Vec<Term> = all.iter().map(|term| term.moved(at)).collect();
            at += n;
            let mut within = Blocks::ZERO;
            self.each(n, &from, |s| slots.of(ticket, s), &mut |n, terms| {
                let to = match to.first().map(|term| term.moved(within).from) {
                    Some(Source::Host(at)) => End::Host(at),
                    Some(Source::Slot(slot, at)) => End::Slot(slot, at),
                    None => End::Zero,
                };
                plan.deliver_to(of, to, n, terms);
                within += n;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf::Gf;
    use smrlab_stl::HostRequest;
    use smrlab_units::Lba;

    /// A request of three blocks: one of the host's, one of zeroes, one that is the sum of a slot and twice the host's. Its member
    /// writes the three, and then its own parity: three times the middle of it and a slot of its own.
    #[test]
    fn sums_of_sums_are_one_sum() {
        let (of, ticket) = (Ticket(1), Ticket(5));
        let two = Gf::power(1);
        let mut above = MemberPlan::new(true);
        let request = HostRequest::new(HostOp::Write, Lba(0), Blocks(3));
        above.ask(of, MemberId(0), request, |p| {
            p.push(Blocks(1), End::Host(Blocks(8)));
            p.push(Blocks(1), End::Zero);
            let sum = p.sum(&[Term::slot(2, Blocks(4)), Term::host(9).times(two)]);
            p.push(Blocks(1), sum);
        });
        let buffers = Buffers::of(&above, &above.ops()[0]);
        let (mut own, mut plan, mut slots) = (MemberPlan::new(true), MemberPlan::new(true), Slots::default());
        own.ask(ticket, MemberId(1), request, |p| p.push(Blocks(3), End::Host(Blocks(0))));
        own.ask(ticket, MemberId(2), HostRequest::new(HostOp::Write, Lba(7), Blocks(2)), |p| {
            let sum = p.sum(&[Term::host(1).times(two), Term::slot(0, Blocks(3))]);
            p.push(Blocks(2), sum);
        });
        for op in own.ops() {
            buffers.ask(&own, (op, MemberId(op.member.0 + 10), false), (of, &mut slots), &mut plan);
        }
        let ends = |i: usize| {
            let op = &plan.ops()[i];
            assert_eq!((op.ticket, op.buffers, op.member), (ticket, of, MemberId(11 + i as u32)));
            plan.parts(op).iter().map(|p| (p.blocks.0, plan.terms_of(p.end))).collect::<Vec<_>>()
        };
        let last = vec![Term::slot(2, Blocks(4)), Term::host(9).times(two)];
        assert_eq!(ends(0), [(1, vec![Term::host(8)]), (1, vec![]), (1, last)]);
        let own_slot = |at| Term::slot(FIRST, Blocks(at));
        let twice = vec![Term::slot(2, Blocks(4)).times(two), Term::host(9).times(two * two), own_slot(4)];
        assert_eq!(ends(1), [(1, vec![own_slot(3)]), (1, twice)]);
    }

    /// What a member puts together for its host goes where the request above wants it.
    #[test]
    fn a_delivery_goes_to_slots_and_hosts() {
        let (of, ticket) = (Ticket(1), Ticket(5));
        let mut above = MemberPlan::new(true);
        above.ask(of, MemberId(0), HostRequest::new(HostOp::Read, Lba(0), Blocks(5)), |p| {
            p.push(Blocks(2), End::Host(Blocks(6)));
            p.push(Blocks(3), End::Slot(4, Blocks(1)));
        });
        let buffers = Buffers::of(&above, &above.ops()[0]);
        let (mut own, mut plan, mut slots) = (MemberPlan::new(true), MemberPlan::new(true), Slots::default());
        own.deliver(ticket, Blocks(1), Blocks(3), &[Term::slot(0, Blocks(2)), Term::slot(1, Blocks(0))]);
        buffers.deliver(&own, &own.deliveries()[0], (of, &mut slots), &mut plan);
        let got: Vec<_> = plan
            .deliveries()
            .iter()
            .map(|d| (d.ticket, d.to, d.part.blocks.0, plan.terms_of(d.part.end)))
            .collect();
        let sum = |at| vec![Term::slot(FIRST, Blocks(2 + at)), Term::slot(FIRST + 1, Blocks(at))];
        assert_eq!(got, [(of, End::Host(Blocks(7)), 1, sum(0)), (of, End::Slot(4, Blocks(1)), 2, sum(1))]);
    }

    /// A member has answered a read of two blocks, and its cache takes them: a copy is written, which is made before the array above puts
    /// something else together in the host's buffer.
    #[test]
    fn what_a_member_writes_of_what_it_answered_is_copied_first() {
        let (of, ticket, blocks) = (Ticket(1), Ticket(5), Blocks(2));
        let mut above = MemberPlan::new(true);
        let read = HostRequest::new(HostOp::Read, Lba(0), blocks);
        above.ask(of, MemberId(0), read, |p| p.push(blocks, End::Host(Blocks(6))));
        let buffers = Buffers::of(&above, &above.ops()[0]);
        let (mut own, mut plan, mut slots) = (MemberPlan::new(true), MemberPlan::new(true), Slots::default());
        let fill = HostRequest::new(HostOp::Write, Lba(40), Blocks(1));
        own.ask(ticket, MemberId(1), fill, |p| p.push(Blocks(1), End::Host(Blocks(1))));
        buffers.ask(&own, (&own.ops()[0], MemberId(11), true), (of, &mut slots), &mut plan);
        let copied = End::Slot(FIRST, Blocks(1));
        let delivery = &plan.deliveries()[0];
        assert_eq!((delivery.ticket, delivery.to), (of, copied));
        assert_eq!(plan.terms_of(delivery.part.end), [Term::host(7)]);
        assert!(plan.parts(&plan.ops()[0]).iter().map(|p| (p.blocks, p.end)).eq([(Blocks(1), copied)]));
    }
}
