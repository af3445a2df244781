//! What is under way: each kind of operation with the phase that it waits for, and what it must know when that is over.

use super::Parity;
use super::code::Lost;
use super::method::{RowRead, SegmentPlan, WritePlan};
use crate::job::tasks;
use crate::{Term, Ticket};
use smrlab_stl::HostRequest;
use smrlab_units::Blocks;
use std::ops::Range;

tasks! {
    /// What the array does by itself.
    pub(super) enum Task from 0 {
        /// Rebuilds this unit of the disk whose turn it is.
        Rebuild,
        /// Makes the parities of this row fit its data.
        Resync,
        /// Puts the logs of this region into the parity.
        ApplyLogs,
        /// Writes to the disks what this place of the journal holds.
        Replay,
    }
}

/// An operation that waits for the end of a phase.
#[derive(Debug)]
pub(super) enum Operation {
    /// A flush or a discard, which has one phase.
    Simple(HostRequest),
    /// See [`ReadOp`].
    Read(ReadOp),
    /// See [`WriteOp`].
    Write(Box<WriteOp>),
    /// See [`TaskOp`].
    Task(TaskOp),
}

/// A read. It has one phase; at its end lost chunks are made from what was read.
#[derive(Debug)]
pub(super) struct ReadOp {
    pub request: HostRequest,
    /// [`Disks::changes`](crate::layouts::disks::Disks::changes) when it was planned.
    pub changes: u64,
    /// What it reads besides what the host wants, each into the slot of its place in this list.
    pub extra: Vec<RowRead>,
    /// What is made from that.
    pub lost: Vec<LostPiece>,
}

/// Blocks of a lost chunk that a read wants.
#[derive(Clone, Debug)]
pub(super) struct LostPiece {
    pub row: u64,
    pub chunk: u64,
    /// Blocks within the chunk.
    pub blocks: Range<u64>,
    /// What was lost of the row when the read was planned.
    pub lost: Lost,
}

/// A write.
#[derive(Debug)]
pub(super) struct WriteOp {
    pub ticket: Ticket,
    pub request: HostRequest,
    /// Those of the request.
    pub rows: Range<u64>,
    pub changes: u64,
    pub phase: WritePhase,
    /// How the parities of its rows follow, and what is read for that.
    pub plan: WritePlan,
    /// Rows whose parity goes to the log.
    pub logged: Vec<LogWrite>,
    /// Rows that go through the journal now, and the place of each.
    pub journalled: Range<u64>,
    pub places: Vec<u64>,
}

/// What a write waits for. Where there is a journal, the last three come once for each batch of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WritePhase {
    /// Old data and parities are read.
    ReadOld,
    /// Places of the journal have to become free.
    AwaitPlaces,
    /// Rows are written to the journal.
    WriteJournal,
    /// Rows are written to the disks.
    WriteRows,
}

/// The parity of a row goes to the log, to block `at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogWrite {
    pub row: u64,
    pub at: u64,
}

/// Work of the array's own.
#[derive(Debug)]
pub(super) struct TaskOp {
    pub ticket: Ticket,
    pub task: Task,
    pub changes: u64,
    pub phase: TaskPhase,
    /// The disks that it reads, in the order of their slots.
    pub sources: Vec<u64>,
    /// What it reads of logs, into the slots behind those.
    pub images: Vec<RowRead>,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskPhase {
    /// Its reads.
    ReadSources,
    /// Its writes.
    WriteTargets,
}

/// The term for a block that one of `reads` brought into its slot.
pub(super) fn slot_term(reads: &[RowRead], row: u64, role: u64, at: u64) -> Option<Term> {
    let slot = reads.iter().position(|o| o.row == row && o.role == role && o.blocks.contains(&at))?;
    Some(Term::slot(slot as u32, Blocks(at - reads[slot].blocks.start)))
}

impl WriteOp {
    /// The host's blocks.
    pub(super) fn span(&self) -> Range<u64> {
        self.request.span()
    }

    /// The segments of a row, none where the disks of its parities are dead.
    pub(super) fn segments_of(&self, row: u64) -> &[SegmentPlan] {
        // Row by row, ascending; in a row all have a method or none.
        let segments = &self.plan.segments;
        let first = segments.partition_point(|p| p.row < row);
        let n = segments[first..].iter().take_while(|p| p.row == row && p.method.is_some()).count();
        &segments[first..first + n]
    }
}

impl Parity {
    /// A write that begins, in memory of one that is over.
    pub(super) fn new_write(&mut self, ticket: Ticket, request: HostRequest) -> Box<WriteOp> {
        let (changes, phase) = (self.disks.changes(), WritePhase::ReadOld);
        let rows = self.rows.rows_of(request.span());
        let Some(mut op) = self.pool.pop() else {
            return Box::new(WriteOp {
                ticket,
                request,
                rows,
                changes,
                phase,
                plan: WritePlan::default(),
                logged: Vec::new(),
                journalled: 0..0,
                places: Vec::new(),
            });
        };
        (op.ticket, op.request, op.rows, op.changes, op.phase) = (ticket, request, rows, changes, phase);
        op.plan.segments.clear();
        op.plan.reads.clear();
        op.logged.clear();
        op.places.clear();
        op
    }

    /// A write waits for the end of what was planned.
    pub(super) fn wait(&mut self, op: Box<WriteOp>) {
        self.operations.put(op.ticket, Operation::Write(op));
    }
}
