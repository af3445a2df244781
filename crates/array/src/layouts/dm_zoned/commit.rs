//! Metadata on the drive: two sets, each in zones of its own. A flush writes what changed to the second set and validates it by its
//! superblock, then to the first one.

use super::table::UNIT;
use super::{DRIVE, DmZoned, Doing, Wait};
use crate::{End, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp};
use std::ops::Range;

/// What a commit does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Blocks,
    Superblock,
    /// Free zones are reset: what is on the drive says nothing of what they hold any more.
    Resets,
}

/// A commit under way.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    flush: HostRequest,
    /// Metadata blocks that changed, in runs.
    runs: Vec<Range<u64>>,
    /// Set and step, the next one last.
    steps: Vec<(u64, Step)>,
}

impl DmZoned {
    /// Begins a commit, unless nothing changed; writes wait until it is done.
    pub(super) fn flush(&mut self, ticket: Ticket, flush: HostRequest, plan: &mut MemberPlan) {
        if self.committing {
            self.works.put(ticket, Doing::Flushing(flush));
            return self.parked.push_back((ticket, Wait::Commit));
        }
        let runs = self.table.uncommitted();
        self.table.dirty.clear();
        plan.ask(ticket, DRIVE, flush, |_| {});
        if runs.is_empty() {
            return self.works.put(ticket, Doing::Last);
        }
        self.committing = true;
        self.counters.commits += 1;
        let both = [(0, Step::Superblock), (0, Step::Blocks), (1, Step::Superblock), (1, Step::Blocks)];
        let steps = [(0, Step::Resets)].into_iter().chain(both).collect();
        self.works.put(ticket, Doing::Committing(Commit { flush, runs, steps }));
    }

    /// A step of a commit is done: the next one.
    pub(super) fn commit(&mut self, ticket: Ticket, mut commit: Commit, plan: &mut MemberPlan) {
        let Some((set, step)) = commit.steps.pop() else {
            self.committing = false;
            return plan.end(ticket);
        };
        if step == Step::Resets {
            return self.reset_free(ticket, commit, plan);
        }
        let first = set * u64::from(self.table.shape.set) * self.table.shape.size;
        let mut write = |blocks: Range<u64>, fua| {
            let n = Blocks((blocks.end - blocks.start) * UNIT);
            let lba = self.table.shape.at(0, first + blocks.start * UNIT);
            let why = Cause::Metadata;
            let request = HostRequest { why, fua, ..HostRequest::new(HostOp::Write, lba, n) };
            plan.ask(ticket, DRIVE, request, |out| out.push(n, End::Records));
            self.counters.metadata += blocks.end - blocks.start;
        };
        match step {
            Step::Blocks => commit.runs.iter().for_each(|run| write(run.clone(), false)),
            Step::Superblock => write(0..1, true),
            Step::Resets => {}
        }
        if step == Step::Blocks {
            // Before the superblock says so.
            plan.ask(ticket, DRIVE, commit.flush, |_| {});
        }
        self.works.put(ticket, Doing::Committing(commit));
    }

    /// Resets the free zones that hold anything, behind what says that they are free.
    fn reset_free(&mut self, ticket: Ticket, commit: Commit, plan: &mut MemberPlan) {
        let held = |zone: &u32| self.table.pointer(*zone) > 0;
        let zones: Vec<u32> = self.table.free_sequential.iter().copied().filter(held).collect();
        if zones.is_empty() {
            return self.commit(ticket, commit, plan);
        }
        plan.fence();
        self.table.durable();
        zones.into_iter().for_each(|zone| self.reset(ticket, zone, 0, plan));
        self.works.put(ticket, Doing::Committing(commit));
    }
}
