//! Works under way, and the memory that they use again.

use super::destage::Destage;
use super::{Dvs, Task};
use crate::layouts::chunks::Slots;
use crate::{MemberPlan, Ticket};
use smrlab_stl::HostRequest;
use std::ops::Range;

/// What a work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// A request of the host's.
    Host(HostRequest),
    /// A write of the runs of its [`State`].
    Runs,
    /// Work of the array's own.
    Task(Task),
}

/// What a work is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// The reads of the host's, or a flush: nothing follows.
    Last,
    /// Tables being read that it needs first.
    Tables,
    /// The reads before a write.
    Olds,
    /// Waits for a place of the journal.
    Room,
    /// The chunks of a collection being written to the journal.
    Journal,
    /// The writes.
    Writes,
    /// The reads of a rebuild.
    Sources,
}

/// What a read wants of a lost chunk.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    /// Where in the request.
    pub host: u64,
    pub blocks: u64,
    /// The slots that are put together.
    pub slots: Range<u32>,
}

/// A work under way.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub doing: Doing,
    pub at: At,
    pub changes: u64,
    pub destages: Vec<Destage>,
    /// More of them, when these are written: the journal has no room for all at once.
    pub rest: Vec<Destage>,
    pub slots: Slots,
    /// Of a read: what is put together at the end.
    pub missing: Vec<Missing>,
    /// Of a write of several runs: these.
    pub runs: Vec<Range<u64>>,
}

impl Dvs {
    pub(super) fn begin(&mut self, doing: Doing, at: At) -> Box<State> {
        let changes = self.disks.changes();
        if let Some(mut state) = self.pool.pop() {
            (state.doing, state.at, state.changes) = (doing, at, changes);
            return state;
        }
        let (destages, rest, slots) = (Vec::new(), Vec::new(), Slots::default());
        let (missing, runs) = (Vec::new(), Vec::new());
        Box::new(State { doing, at, changes, destages, rest, slots, missing, runs })
    }

    /// A work is over: what it used is used again.
    pub(super) fn end(&mut self, ticket: Ticket, mut state: Box<State>, plan: &mut MemberPlan) {
        plan.end(ticket);
        for mut destage in state.destages.drain(..) {
            destage.chunks.clear();
            destage.stripes.clear();
            self.spare.push(destage);
        }
        state.rest.clear();
        state.slots.reads.clear();
        state.missing.clear();
        state.runs.clear();
        self.pool.push(state);
    }

    /// Nothing to write to a group yet.
    pub(super) fn destage(&mut self, group: u64, collect: bool) -> Destage {
        let (chunks, stripes) = (Vec::new(), Vec::new());
        let new = || Destage { group, chunks, fresh: 0, collect, stripes, journal: None };
        let destage = self.spare.pop().unwrap_or_else(new);
        Destage { group, fresh: 0, collect, journal: None, ..destage }
    }
}
