//! Works under way, and the reads that they need.

use super::FullStripe;
use super::table::{Stripe, StripeCell};
use crate::layouts::chunks::{Chunk, Lost, LostPiece, Old, SlotRead, Slots, numbers};
use crate::layouts::segments::{ChunkPlace, Segments};
use crate::{End, MemberId, MemberPlan, Ticket};
use smrlab_stl::HostRequest;
use smrlab_units::{Blocks, HostOp, Lba};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// An operation that waits for something.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// See [`ReadOp`].
    Read(ReadOp),
    /// See [`WriteOp`].
    Write(WriteOp),
    /// See [`RebuildOp`].
    Rebuild(RebuildOp),
}

/// What an operation reads, and the groups that must stay as they are for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    pub(super) slots: Slots,
    pub(super) pins: Vec<u64>,
}

/// A read of the host's, or a flush, which reads nothing. It has one phase; at its end lost chunks are made from what was read.
#[derive(Clone, Debug)]
pub(super) struct ReadOp {
    pub(super) request: HostRequest,
    /// [`Disks::changes`](crate::layouts::disks::Disks::changes) when it began.
    pub(super) changes: u64,
    pub(super) reads: Reads,
    pub(super) missing: Vec<LostPiece>,
}

/// Chunks that are written to new stripes.
#[derive(Clone, Debug)]
pub(super) struct WriteOp {
    pub(super) purpose: Purpose,
    pub(super) changes: u64,
    pub(super) phase: WritePhase,
    pub(super) reads: Reads,
    /// Chunks that are not on their way yet.
    pub(super) left: VecDeque<Chunk>,
    /// Chunks that are being written, and their stripes.
    pub(super) chunks: Vec<Chunk>,
    pub(super) stripes: Vec<Stripe>,
}

/// What a write is for: enough to begin it, and to begin it again.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// A write or a discard of the host's.
    Host(HostRequest),
    /// A write of several runs, of which the host's buffer holds one after the other.
    Runs(Vec<Range<u64>>),
    /// Some chunks of the group that is being emptied, and where they were.
    Collect(BTreeMap<u64, StripeCell>),
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WritePhase {
    /// Another write of some of the same chunks is ahead of it.
    AwaitTurn,
    /// Old data are read.
    ReadOld,
    /// A group has to become free.
    AwaitRoom,
    /// Stripes are written.
    WriteStripes,
}

/// A unit of a replaced disk.
#[derive(Clone, Debug)]
pub(super) struct RebuildOp {
    pub(super) unit: u64,
    pub(super) changes: u64,
    pub(super) phase: RebuildPhase,
    pub(super) reads: Reads,
}

/// What a rebuild waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RebuildPhase {
    /// Stripes that are on their way to the group.
    AwaitStripes,
    /// The others of its stripes are read.
    ReadOthers,
    /// The replaced disk is written.
    WriteTarget,
}

impl ReadOp {
    /// Nothing planned yet.
    pub(super) fn new(request: HostRequest, changes: u64) -> Self {
        Self { request, changes, reads: Reads::default(), missing: Vec::new() }
    }
}

impl WriteOp {
    /// Nothing done yet.
    pub(super) fn new(purpose: Purpose, changes: u64) -> Self {
        let (phase, reads) = (WritePhase::ReadOld, Reads::default());
        Self {
            purpose,
            changes,
            phase,
            reads,
            left: VecDeque::new(),
            chunks: Vec::new(),
            stripes: Vec::new(),
        }
    }

    /// Whether it moves what a group holds that is being emptied.
    pub(super) fn is_collection(&self) -> bool {
        matches!(self.purpose, Purpose::Collect(_))
    }
}

/// The chunks that a work writes.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    ticket: Ticket,
    chunks: Vec<Range<u64>>,
}

/// A read of consecutive blocks of a disk, and where they go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Where they are.
    pub(super) from: SlotRead,
    /// Where they go.
    pub(super) to: End,
}

/// Asks for all that is wanted: adjacent blocks of a disk are one request.
pub(super) fn ask(ticket: Ticket, like: &HostRequest, mut wanted: Vec<Wanted>, plan: &mut MemberPlan) {
    wanted.sort_by_key(|w| (w.from.disk, w.from.start));
    let follows =
        |a: &Wanted, b: &Wanted| a.from.disk == b.from.disk && a.from.start + a.from.blocks == b.from.start;
    for run in wanted.chunk_by(follows) {
        let blocks = Blocks(run.iter().map(|w| w.from.blocks).sum());
        let read = HostRequest { op: HostOp::Read, lba: Lba(run[0].from.start), blocks, ..*like };
        plan.ask(ticket, MemberId(run[0].from.disk as u32), read, |out| {
            run.iter().for_each(|w| out.push(Blocks(w.from.blocks), w.to));
        });
    }
}

impl FullStripe {
    /// Reads all slots of a work.
    pub(super) fn read_slots(
        &self,
        ticket: Ticket,
        like: &HostRequest,
        reads: &Reads,
        plan: &mut MemberPlan,
    ) {
        let slots = (0..).zip(&reads.slots.reads);
        let wanted =
            slots.map(|(slot, from)| Wanted { from: *from, to: End::Slot(slot, Blocks::ZERO) }).collect();
        ask(ticket, like, wanted, plan);
    }

    /// The group stays as it is until this work is over.
    pub(super) fn pin(&mut self, reads: &mut Reads, group: u64) {
        if !reads.pins.contains(&group) {
            reads.pins.push(group);
            self.table.pin(group);
        }
    }

    /// The segments of a group.
    pub(super) fn segments(&self, group: u64) -> Segments<'_> {
        self.shape.segments(group, &self.disks)
    }

    /// Where the current version of a chunk is on the disks.
    pub(super) fn place(&self, cell: StripeCell) -> Result<ChunkPlace, Lost> {
        let group = self.table.group(u64::from(cell.group)).ok_or(Lost)?;
        group.places(cell.stripe).find(|p| p.disk == u64::from(cell.disk)).ok_or(Lost)
    }

    /// Reads blocks of the chunk in a cell, or of what it can be made from.
    pub(super) fn read_chunk(
        &mut self,
        reads: &mut Reads,
        cell: StripeCell,
        range: &Range<u64>,
    ) -> Result<Old, Lost> {
        let group = u64::from(cell.group);
        self.pin(reads, group);
        let stripe = || Some(self.table.group(group)?.places(cell.stripe));
        self.segments(group).read(self.place(cell)?, stripe, range, &mut reads.slots)
    }

    /// A work is over.
    pub(super) fn over(&mut self, ticket: Ticket, reads: &Reads) {
        reads.pins.iter().for_each(|group| self.table.unpin(*group));
        self.claims.retain(|claim| claim.ticket != ticket);
    }

    /// Destages of a cache that gathers chunks from everywhere lock nothing: of them and of the host's own writes one at a time has a
    /// chunk. `false`: it is another's turn.
    pub(super) fn claim(&mut self, ticket: Ticket, purpose: &Purpose) -> bool {
        let runs = match purpose {
            Purpose::Host(r) => vec![r.span()],
            Purpose::Runs(runs) => runs.clone(),
            Purpose::Collect(_) => return true,
        };
        let chunk = self.shape.chunk;
        let chunks: Vec<Range<u64>> = runs.iter().map(|r| numbers(r, chunk)).collect();
        let meets = |other: &Range<u64>| chunks.iter().any(|c| c.start < other.end && other.start < c.end);
        if self.claims.iter().any(|claim| claim.chunks.iter().any(meets)) {
            return false;
        }
        self.claims.push(Claim { ticket, chunks });
        true
    }
}
