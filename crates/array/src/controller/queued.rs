//! Members behind schedulers: their decisions are events of the loop, and a phase is over when the last of its requests is answered.

use super::{Controller, Event};
use crate::member::Member;
use crate::{ArrayObserver, MemberId, Ticket};
use smrlab_units::{HostOp, SimTime};

impl Controller {
    /// The next decision of a member's scheduler.
    pub(super) fn next_decision(&self) -> Option<(SimTime, MemberId)> {
        if !self.queued {
            return None;
        }
        let due = |(i, slot): (usize, &crate::member::Slot)| match &slot.member {
            Member::Queued(queue) if !slot.dead => Some((queue.next_decision()?, MemberId(i as u32))),
            _ => None,
        };
        self.members.iter().enumerate().filter_map(due).min()
    }

    /// Whether a member still has to write what it has acknowledged.
    pub fn members_wait(&self) -> bool {
        self.next_decision().is_some()
    }

    pub(super) fn decide(&mut self, at: SimTime, member: MemberId, watch: &mut impl ArrayObserver) {
        self.now = self.now.max(at);
        if let Member::Queued(queue) = &mut self.members[member.at()].member {
            queue.decide(member, at, watch);
        }
        self.take_answers(member);
    }

    /// What a member has answered counts for the phases that waited for it.
    pub(super) fn take_answers(&mut self, member: MemberId) {
        let now = self.now;
        let Member::Queued(queue) = &mut self.members[member.at()].member else { return };
        if queue.could_not() {
            self.dies(member, now);
        }
        let Member::Queued(queue) = &mut self.members[member.at()].member else { return };
        for a in queue.answers() {
            if let Some(limit) = self.schedule.timeout.filter(|t| a.ack.since(a.came) > *t) {
                self.dies(member, now.max(a.came + limit));
            }
            let (end, ok) = match self.members[member.at()].dies_at {
                Some(at) if a.ack > at => (at.max(now), false),
                _ => (a.ack, a.ok),
            };
            self.counts(a.buffers, a.ops);
            let Some(running) = self.works.get_mut(a.ticket) else { continue };
            running.lost |= !ok && a.request.op == HostOp::Read;
            if !(ok && self.takes_turns((member, a.ticket), &a.request, (a.start, end))) {
                self.answered(a.ticket, end);
            }
        }
    }

    /// A request that its phase waited for ends at `end`.
    pub(super) fn answered(&mut self, ticket: Ticket, end: SimTime) {
        let now = self.now;
        let Some(running) = self.works.get_mut(ticket) else { return };
        running.phase_end = running.phase_end.max(end);
        running.waits -= 1;
        if running.waits == 0 && running.issued {
            let end = running.phase_end.max(now);
            self.push(end, Event::Phase(ticket));
        }
    }

    /// A member is dead: nothing of what it had comes back.
    pub(super) fn bury(&mut self, member: MemberId) {
        let now = self.now;
        if let Member::Queued(queue) = &mut self.members[member.at()].member {
            queue.dies(now);
        }
        self.take_answers(member);
    }
}
