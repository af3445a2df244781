//! What is under way: each kind of operation with the phase that it waits for, and what it must know when that is over.

use super::Dvs;
use super::group_write::GroupWrite;
use crate::Ticket;
use crate::job::tasks;
use crate::layouts::chunks::{LostPiece, SlotRead, Slots};
use smrlab_stl::HostRequest;
use std::ops::Range;

tasks! {
    /// What the array does by itself.
    pub(super) enum Task from 0 {
        /// Rebuilds this group of the disk whose turn it is.
        Rebuild,
        /// Collects this group in idle time.
        Collect,
        /// Does again the collection that this place of the journal holds.
        Replay,
        /// Writes the tables that changed to their zone.
        WriteTables,
    }
}

/// What an operation is for: enough to begin it, and to begin it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A request of the host's.
    Host(HostRequest),
    /// A write of several ranges of the host's blocks.
    Runs(Vec<Range<u64>>),
    /// Work of the array's own.
    Task(Task),
}

/// An operation that waits for the end of a phase.
#[derive(Debug)]
pub(super) enum Operation {
    /// Tables that it needs first are read; [`Disks::changes`](crate::layouts::disks::Disks::changes) when that began.
    ReadTables(Purpose, u64),
    /// A flush, or tables that are written to their zone: one phase of which nothing follows.
    Simple,
    /// See [`ReadOp`].
    Read(ReadOp),
    /// See [`WriteOp`].
    Write(Box<WriteOp>),
    /// See [`RebuildOp`].
    Rebuild(RebuildOp),
}

/// A read of the host's. It has one phase; at its end lost chunks are made from what was read.
#[derive(Debug)]
pub(super) struct ReadOp {
    pub request: HostRequest,
    pub changes: u64,
    pub slots: Slots,
    pub lost: Vec<LostPiece>,
}

/// Chunks that are written to new stripes: a write or a partial discard of the host's, or a collection.
#[derive(Debug)]
pub(super) struct WriteOp {
    pub ticket: Ticket,
    pub purpose: Purpose,
    pub changes: u64,
    pub phase: WritePhase,
    /// What is written to each group.
    pub groups: Vec<GroupWrite>,
    /// What is written when that is done: the journal has no room for all collections at once.
    pub rest: Vec<GroupWrite>,
    /// What is read for them.
    pub slots: Slots,
}

/// What a write waits for. Collections go through the journal, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WritePhase {
    /// Old data are read.
    ReadOld,
    /// Places of the journal have to become free.
    AwaitPlaces,
    /// The chunks of collections are written to the journal.
    WriteJournal,
    /// Stripes are written.
    WriteStripes,
}

/// A group of a replaced disk.
#[derive(Debug)]
pub(super) struct RebuildOp {
    pub group: u64,
    pub changes: u64,
    /// The segments of the other disks, one slot each; `None`: they are read and the target is written.
    pub sources: Option<Vec<SlotRead>>,
}

impl Purpose {
    /// Work of the array's own, if it is some.
    pub(super) fn task(&self) -> Option<Task> {
        if let Self::Task(task) = self { Some(*task) } else { None }
    }

    /// Whether it is a collection in idle time.
    pub(super) fn is_idle_collection(&self) -> bool {
        matches!(self, Self::Task(Task::Collect(_)))
    }
}

impl Operation {
    /// A collection in idle time that has not written anything yet.
    pub(super) fn is_begun_collection(&self) -> bool {
        match self {
            Self::ReadTables(purpose, _) => purpose.is_idle_collection(),
            Self::Write(op) => op.phase == WritePhase::ReadOld && op.purpose.is_idle_collection(),
            Self::Simple | Self::Read(_) | Self::Rebuild(_) => false,
        }
    }

    /// The groups that it writes.
    pub(super) fn groups_written(&self) -> impl Iterator<Item = u64> {
        let op = if let Self::Write(op) = self { Some(op) } else { None };
        op.into_iter().flat_map(|op| op.groups.iter().chain(&op.rest).map(|write| write.group))
    }
}

impl Dvs {
    /// A write that begins, in memory of one that is over.
    pub(super) fn new_write(&mut self, ticket: Ticket, purpose: Purpose) -> Box<WriteOp> {
        let (changes, phase) = (self.disks.changes(), WritePhase::ReadOld);
        if let Some(mut op) = self.pool.pop() {
            (op.ticket, op.purpose, op.changes, op.phase) = (ticket, purpose, changes, phase);
            return op;
        }
        let (groups, rest, slots) = (Vec::new(), Vec::new(), Slots::default());
        Box::new(WriteOp { ticket, purpose, changes, phase, groups, rest, slots })
    }

    /// A write waits for the end of what was planned.
    pub(super) fn wait(&mut self, op: Box<WriteOp>) {
        self.operations.put(op.ticket, Operation::Write(op));
    }

    /// A write is over: what it used is used again.
    pub(super) fn recycle(&mut self, mut op: Box<WriteOp>) {
        for mut write in op.groups.drain(..) {
            write.chunks.clear();
            write.stripes.clear();
            self.spare.push(write);
        }
        op.rest.clear();
        op.slots.reads.clear();
        self.pool.push(op);
    }

    /// A write of nothing yet to a group.
    pub(super) fn new_group_write(&mut self, group: u64, collect: bool) -> GroupWrite {
        let (chunks, stripes) = (Vec::new(), Vec::new());
        let new = || GroupWrite { group, chunks, fresh: 0, collect, stripes, journal: None };
        let write = self.spare.pop().unwrap_or_else(new);
        GroupWrite { group, fresh: 0, collect, journal: None, ..write }
    }
}
