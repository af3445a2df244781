//! The order of host requests: which may begin, which wait for their turn or for room, and when those go on.

use super::pages::meet;
use super::{Cached, Stage};
use crate::{MemberPlan, Ticket, Work};
use smrlab_stl::HostRequest;
use smrlab_units::HostOp;
use std::ops::Range;

impl Cached {
    /// A host request comes in.
    pub(super) fn arrive(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        if r.op == HostOp::Flush {
            // The SSD keeps what it has; the disks may not.
            self.probe(plan);
            return self.pass(ticket, &Work::Host(*r), plan);
        }
        if !self.would_overtake(r) && self.may_begin(r, 0) {
            return self.begin(ticket, r, 0, plan);
        }
        self.counts.write_waits += u64::from(r.op == HostOp::Write);
        self.waiting.push_back(ticket);
        self.wait(ticket, r, 0);
        self.destage_more(plan);
    }

    /// A request that is among those that wait does so with its blocks from offset `done` on.
    pub(super) fn wait(&mut self, ticket: Ticket, r: &HostRequest, done: u64) {
        self.stages.put(ticket, Stage::Turn(*r, done));
        // What was learned of room before it came says nothing of it; an attempt under way answers it, too.
        self.refused.probed &= !self.destaging.is_empty();
    }

    /// Whether one of the same blocks waits, or a write to the SSD as this is.
    fn would_overtake(&self, r: &HostRequest) -> bool {
        let span = r.span();
        self.waiting.iter().any(|other| match self.stages.get(*other) {
            Some(Stage::Turn(o, _)) => meet(&o.span(), &span) || (self.caches(o) && self.caches(r)),
            _ => false,
        })
    }

    /// Whether a request is a write to the SSD.
    pub(super) fn caches(&self, r: &HostRequest) -> bool {
        r.op == HostOp::Write && self.settings.write > 0
    }

    /// Whether the page has room in which a write goes on from offset `done`.
    pub(super) fn has_room(&self, r: &HostRequest, done: u64) -> bool {
        self.dirty.has_room((r.lba.0 + done) / self.settings.page)
    }

    /// Whether nothing under way, nor want of room, keeps a request from going on.
    pub(super) fn may_begin(&self, r: &HostRequest, done: u64) -> bool {
        let span = r.span();
        // A discard takes what is dirty when the disks have done theirs.
        if self.settings.write > 0 && self.changing.meets(&span) {
            return false;
        }
        match r.op {
            HostOp::Read => !self.writing.meets(&span),
            HostOp::Write if self.caches(r) => {
                self.has_room(r, done) && !self.reading.meets(&span) && !self.writing.meets(&span)
            }
            _ => !self.reading.meets(&span) && !self.writing.meets(&span) && !self.destages(&span),
        }
    }

    /// Whether blocks of these are on their way to the disks, or about to be. Layouts that lock nothing would let a discard
    /// overtake them.
    fn destages(&self, span: &Range<u64>) -> bool {
        let group_span = |group: &u64| self.group_request(*group).span();
        self.destaging.iter().any(|group| meet(&group_span(group), span))
    }

    /// Lets those go on that waited.
    pub(super) fn admit(&mut self, plan: &mut MemberPlan) {
        while let Some(&ticket) = self.waiting.front() {
            if let Some(&Stage::Turn(r, done)) = self.stages.get(ticket) {
                if !self.may_begin(&r, done) {
                    return;
                }
                self.waiting.pop_front();
                self.begin(ticket, &r, done, plan);
            } else {
                self.waiting.pop_front();
            }
        }
    }

    fn begin(&mut self, ticket: Ticket, r: &HostRequest, done: u64, plan: &mut MemberPlan) {
        match r.op {
            HostOp::Read => self.read(ticket, r, plan),
            HostOp::Write if self.caches(r) => self.write(ticket, r, done, plan),
            _ => {
                if self.settings.write == 0 && (r.op == HostOp::Write || self.settings.discards) {
                    self.forget(r, plan);
                }
                self.changing.add(ticket, r);
                self.take_stripes(ticket, r, plan);
            }
        }
    }
}
