//! The plan: the ordered media operations that serve one host request or one step of background work.
//!
//! Whoever carries a plan out goes by [`Plan::walk`]: time, bytes, power cuts, metadata. *Bytes* also needs the
//! [`Piece`]s: where the data of each operation come from or go to. Pieces and records cost time to build, so a layer
//! asks [`Plan::wants_data`] before it enumerates many of them; the operations must be the same either way.

use crate::{AnyRecord, Change, Outcome, Records, Refusal};
pub use smrlab_units::Dir;
use smrlab_units::{Blocks, Lba, Pba, SimTime, named};
use std::ops::Range;

named! {
    /// Why an operation is done.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Cause {
        /// Serves the host's data directly.
        Host => "host",
        /// Read-modify-write and band cleaning.
        Clean => "clean",
        /// Cached data on their way home.
        Destage => "destage",
        /// Compaction within a ring or log.
        Defrag => "defrag",
        /// Maps, pointers and tables.
        Metadata => "metadata",
        /// Copies that make an update survive a power cut.
        Journal => "journal",
        /// Completing a partly written unit.
        Fill => "fill",
        /// Parity of an array.
        Parity => "parity",
        /// Rebuilding a lost disk; making copies and parities fit that are in doubt.
        Rebuild => "rebuild",
    }
}

/// One transfer of consecutive PBAs. PBAs within one operation are transferred in ascending order.
///
/// In this order: a byte at an aligned place may be read as a word, which waits for the bytes that were just written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct MediaOp {
    /// First block.
    pub pba: Pba,
    /// Length, at least one block.
    pub blocks: Blocks,
    /// Read or write.
    pub dir: Dir,
    /// Why.
    pub cause: Cause,
}

/// The index of an operation within its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpId(pub u32);

/// Where the bytes of a written piece come from. Never a PBA: the write itself may destroy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The host's data, from this offset in blocks.
    Host(Blocks),
    /// What an earlier read of the same plan brought, from this offset in blocks.
    Staged(OpId, Blocks),
    /// What lies there on the medium, from this block on: an earlier plan read it into the drive's memory, and nothing has
    /// touched it since. The drive takes it from its memory, which costs no time; whoever carries plans out may read the
    /// medium instead. The write must not reach these blocks.
    Held(Pba),
    /// Zeroes.
    Zero,
    /// Bytes that nobody reads back: the encoded records of a metadata write.
    Records,
}

/// A part of an operation: consecutive blocks with one source (write) or one destination (read).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Length.
    pub blocks: Blocks,
    /// Of a write: the source. Of a read: `Host(offset)` delivers to the host, anything else only stages.
    pub end: Endpoint,
}

/// A span of operations that is one cleaning event: one collected set, one destaged group, one compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// What kind of event, in the layer's own words ("band-clean", "group-destage").
    pub kind: &'static str,
    /// First operation.
    pub first: u32,
    /// One past the last operation.
    pub end: u32,
    /// Live blocks that were moved.
    pub relocated: Blocks,
}

/// What of a plan belongs to a cleaning event: operations, and pauses before, between and behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First operation.
    pub first: u32,
    /// One past the last operation.
    pub end: u32,
    /// Pauses of the plan that are over with it: those from the first operation on belong to it.
    pub pauses: u32,
}

/// Time that passes in a plan without a media operation: a commit, a command of the drive's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Why.
    pub cause: Cause,
    /// How long.
    pub time: SimTime,
}

/// See the [module](self). Cleared and reused from request to request, so that the hot path allocates nothing.
#[derive(Debug, Default)]
pub struct Plan {
    ops: Vec<MediaOp>,
    piece_ends: Vec<u32>,
    pieces: Vec<Piece>,
    records: Records,
    /// After how many operations each of the records is durable, ascending.
    recorded_after: Vec<u32>,
    fences: Vec<u32>,
    zeroes: Vec<(Blocks, Blocks)>,
    cleanings: Vec<Cleaning>,
    /// What belongs to each of these, with the steps of it that were planned before in this plan.
    cleaning_parts: Vec<Part>,
    /// The cleaning event that a later plan goes on with, and what of it is here.
    unfinished: Option<(&'static str, Part)>,
    pauses: Vec<(u32, Pause)>,
    /// Operations whose duration is stated, ascending.
    lasting: Vec<(u32, SimTime)>,
    /// After how many operations and pauses.
    ack: Option<(u32, u32)>,
    outcome: Outcome,
    extents: u32,
    zones_reset: Vec<Range<u64>>,
    wants_data: bool,
    wants_records: bool,
}

impl Plan {
    /// An empty plan that collects pieces and records only where asked to.
    pub fn new(wants_data: bool, wants_records: bool) -> Self {
        Self { wants_data, wants_records, extents: 1, ..Self::default() }
    }

    /// Empties the plan for the next request.
    #[inline]
    pub fn clear(&mut self) {
        self.ops.clear();
        if self.wants_data {
            self.piece_ends.clear();
            self.pieces.clear();
            self.zeroes.clear();
        }
        if self.wants_records {
            self.records.clear();
            self.recorded_after.clear();
            self.fences.clear();
        }
        self.cleanings.clear();
        self.cleaning_parts.clear();
        self.unfinished = None;
        self.pauses.clear();
        self.lasting.clear();
        self.ack = None;
        self.outcome = Outcome::Done;
        self.extents = 1;
        self.zones_reset.clear();
    }

    /// Whether pieces are collected.
    pub fn wants_data(&self) -> bool {
        self.wants_data
    }

    /// Whether records are collected.
    pub fn wants_records(&self) -> bool {
        self.wants_records
    }

    /// Reads `blocks` and delivers them to the host's buffer at `host` (offset in blocks).
    #[inline]
    pub fn read_to_host(&mut self, cause: Cause, pba: Pba, blocks: Blocks, host: Blocks) -> OpId {
        self.push(Dir::Read, cause, pba, blocks);
        self.close(Piece { blocks, end: Endpoint::Host(host) })
    }

    /// Reads or writes what the host asks for, where it lies: `blocks` from the beginning of the host's buffer.
    #[inline]
    pub fn in_place(&mut self, dir: Dir, pba: Pba, blocks: Blocks) -> OpId {
        self.push(dir, Cause::Host, pba, blocks);
        self.close(Piece { blocks, end: Endpoint::Host(Blocks::ZERO) })
    }

    /// Reads `blocks` into the plan's volatile staging memory, for later writes of the same plan.
    #[inline]
    pub fn read_staged(&mut self, cause: Cause, pba: Pba, blocks: Blocks) -> OpId {
        self.push(Dir::Read, cause, pba, blocks);
        self.close(Piece { blocks, end: Endpoint::Zero })
    }

    /// Writes `blocks` from one source.
    #[inline]
    pub fn write(&mut self, cause: Cause, pba: Pba, blocks: Blocks, source: Endpoint) -> OpId {
        self.push(Dir::Write, cause, pba, blocks);
        self.close(Piece { blocks, end: source })
    }

    /// Writes `blocks` assembled from several sources; `pieces` is called only where data are wanted, must be in
    /// ascending order and add up to `blocks`.
    #[inline]
    pub fn write_pieces(
        &mut self,
        cause: Cause,
        pba: Pba,
        blocks: Blocks,
        pieces: impl FnOnce(&mut Vec<Piece>),
    ) -> OpId {
        self.push(Dir::Write, cause, pba, blocks);
        if self.wants_data {
            let first = self.pieces.len();
            pieces(&mut self.pieces);
            debug_assert_eq!(self.pieces[first..].iter().map(|p| p.blocks.0).sum::<u64>(), blocks.0);
            self.piece_ends.push(self.pieces.len() as u32);
        }
        OpId(self.ops.len() as u32 - 1)
    }

    /// The host reads zeroes here: blocks that were discarded, or never written where the layer knows.
    #[inline]
    pub fn zero_to_host(&mut self, host: Blocks, blocks: Blocks) {
        if self.wants_data {
            self.zeroes.push((host, blocks));
        }
    }

    /// A change of the layer's durable state; it is durable once all operations planned so far have ended.
    #[inline]
    pub fn record(&mut self, change: impl Change) {
        if self.wants_records {
            self.records.add(&change);
            self.recorded_after.push(self.ops.len() as u32);
        }
    }

    /// The same for changes as they are kept.
    pub(crate) fn take_records(&mut self, records: &Records) {
        if self.wants_records {
            self.records.append(records);
            self.recorded_after.resize(self.records.len(), self.ops.len() as u32);
        }
    }

    /// All operations and records of the plans so far, and of this one up to here, must be durable before the operations
    /// that follow reach the medium: they overwrite, or damage, what the state at the last fence or flush refers to. A
    /// medium that is durable at once has nothing to do here.
    #[inline]
    pub fn fence(&mut self) {
        let here = self.ops.len() as u32;
        if self.wants_records && self.fences.last() != Some(&here) {
            self.fences.push(here);
        }
    }

    /// The host is acknowledged at the end of the operations planned so far; what follows is done before the next
    /// request starts. Without this call the host is acknowledged at the end of the plan.
    #[inline]
    pub fn acknowledge(&mut self) {
        self.ack = Some((self.ops.len() as u32, self.pauses.len() as u32));
    }

    /// A step of background work cannot be given up any more once `op` is done: what follows it is done, too.
    pub(crate) fn commit_with(&mut self, op: OpId) {
        let pauses = self.pauses.iter().filter(|(before, _)| *before <= op.0).count();
        self.ack = Some((op.0 + 1, pauses as u32));
    }

    /// Lets time pass behind the operations planned so far.
    pub fn pause(&mut self, cause: Cause, time: SimTime) {
        self.pauses.push((self.ops.len() as u32, Pause { cause, time }));
    }

    /// The operation planned last takes this long, whatever the mechanics say, and leaves the head where it was: a pass of
    /// the drive's own whose whole duration was measured, the ways there and back included.
    pub fn lasting(&mut self, time: SimTime) {
        debug_assert!(!self.ops.is_empty(), "no operation to state the duration of");
        self.lasting.push((self.ops.len() as u32 - 1, time));
    }

    /// Does not do what was asked, because of this block: the plan must be empty, and stays so.
    pub fn refuse(&mut self, why: Refusal, lba: Lba) {
        debug_assert!(self.ops.is_empty() && self.records.is_empty(), "a refusal changes nothing");
        self.outcome = Outcome::Refused { why, lba };
    }

    /// An append puts its data here.
    pub fn appended(&mut self, lba: Lba) {
        self.outcome = Outcome::Appended(lba);
    }

    /// How the request ends.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Why the request is not done.
    #[inline]
    pub fn refusal(&self) -> Option<Refusal> {
        self.outcome.refusal()
    }

    /// The operations from `first` to here are one cleaning event.
    #[inline]
    pub fn cleaned(&mut self, kind: &'static str, first: usize, relocated: Blocks) {
        self.cleaned_to(kind, first..self.ops.len(), relocated);
    }

    /// As [`cleaned`](Self::cleaned), for operations that others follow.
    pub(crate) fn cleaned_to(&mut self, kind: &'static str, ops: Range<usize>, relocated: Blocks) {
        let (first, end, pauses) = (ops.start as u32, ops.end as u32, self.pauses.len() as u32);
        let from = self.unfinished.take().map_or(first, |(_, step)| step.first.min(first));
        let cleaning = Cleaning { kind, first, end, relocated };
        self.put_cleaning(cleaning, Part { first: from, end, pauses });
    }

    /// A cleaning event that ends here, and what of the plan belongs to it.
    pub(crate) fn put_cleaning(&mut self, cleaning: Cleaning, part: Part) {
        self.cleanings.push(cleaning);
        self.cleaning_parts.push(part);
    }

    /// The operations from `first` to here, and pauses without any, are a step of a cleaning event that is not over with it:
    /// the next [`cleaned`](Self::cleaned) of the kind ends it, in this plan or in a later one.
    pub fn cleaned_in_part(&mut self, kind: &'static str, first: usize) {
        let first = self.unfinished.map_or(first as u32, |(_, step)| step.first);
        let (end, pauses) = (self.ops.len() as u32, self.pauses.len() as u32);
        self.put_unfinished(kind, Part { first, end, pauses });
    }

    /// What is here of a cleaning event that a later plan goes on with.
    pub(crate) fn put_unfinished(&mut self, kind: &'static str, part: Part) {
        self.unfinished = Some((kind, part));
    }

    /// Into how many extents the layer split the host's request (He & Du count sub-requests per extent); 1 at first.
    pub fn set_extents(&mut self, extents: u32) {
        self.extents = extents;
    }

    /// A zone that was not empty, these LBAs, is reset: what it held is gone.
    pub fn reset_zone(&mut self, zone: Range<u64>) {
        self.zones_reset.push(zone);
    }

    /// The zones that are reset and were not empty.
    pub fn zones_reset(&self) -> &[Range<u64>] {
        &self.zones_reset
    }

    /// Adds operation `op` of `other`, whose own operations have other numbers here: `id` says which.
    pub(crate) fn push_from(&mut self, other: &Self, op: OpId, id: impl Fn(OpId) -> OpId) {
        let MediaOp { dir, cause, pba, blocks } = other.ops[op.0 as usize];
        self.push(dir, cause, pba, blocks);
        if let Some(time) = other.stated(op) {
            self.lasting(time);
        }
        if self.wants_data {
            self.pieces.extend(other.pieces(op).iter().map(|p| match p.end {
                Endpoint::Staged(op, at) => Piece { end: Endpoint::Staged(id(op), at), ..*p },
                _ => *p,
            }));
            self.piece_ends.push(self.pieces.len() as u32);
        }
    }

    #[inline]
    fn push(&mut self, dir: Dir, cause: Cause, pba: Pba, blocks: Blocks) {
        debug_assert!(blocks.0 > 0, "an operation without blocks");
        self.ops.push(MediaOp { dir, cause, pba, blocks });
    }

    #[inline]
    fn close(&mut self, piece: Piece) -> OpId {
        if self.wants_data {
            self.pieces.push(piece);
            self.piece_ends.push(self.pieces.len() as u32);
        }
        OpId(self.ops.len() as u32 - 1)
    }

    /// The operations, in the order in which they are done.
    pub fn ops(&self) -> &[MediaOp] {
        &self.ops
    }

    /// The pieces of operation `op`, empty where data are not wanted.
    pub fn pieces(&self, op: OpId) -> &[Piece] {
        let i = op.0 as usize;
        if !self.wants_data {
            return &[];
        }
        let first = if i == 0 { 0 } else { self.piece_ends[i - 1] as usize };
        &self.pieces[first..self.piece_ends[i] as usize]
    }

    /// Changes of state.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// After how many operations each of the records is durable, ascending.
    pub fn recorded_after(&self) -> &[u32] {
        &self.recorded_after
    }

    /// The records that are durable once so many operations have ended.
    pub fn records_within(&self, ops: usize) -> impl Iterator<Item = AnyRecord<'_>> {
        self.records.iter().take(self.recorded_after.partition_point(|after| *after as usize <= ops))
    }

    /// After how many operations all must be made durable, ascending. Records that stand at a fence come before it.
    pub fn fences(&self) -> &[u32] {
        &self.fences
    }

    /// Parts of the host's buffer (offset, length) that read as zeroes without touching the medium.
    pub fn zeroes(&self) -> &[(Blocks, Blocks)] {
        &self.zeroes
    }

    /// The cleaning events that end here, in order.
    pub fn cleanings(&self) -> &[Cleaning] {
        &self.cleanings
    }

    /// What of this plan belongs to each of these, with the steps before its last one.
    pub fn cleaning_parts(&self) -> &[Part] {
        &self.cleaning_parts
    }

    /// The cleaning event that a later plan goes on with, and what of it is here.
    #[inline]
    pub fn unfinished(&self) -> Option<(&'static str, Part)> {
        self.unfinished
    }

    /// After how many operations the host is acknowledged.
    #[inline]
    pub fn ack_after(&self) -> usize {
        self.ack.map_or(self.ops.len(), |a| a.0 as usize)
    }

    /// Whether a step of background work of which so many operations are done cannot be given up any more.
    #[inline]
    pub fn is_committed(&self, done: usize) -> bool {
        self.ack.is_some_and(|(after, _)| done >= after as usize)
    }

    /// Time that passes between operations, each with the number of operations before it, ascending.
    pub fn pauses(&self) -> &[(u32, Pause)] {
        &self.pauses
    }

    /// The stated duration of an operation; `None`: the mechanics say.
    #[inline]
    pub fn stated(&self, op: OpId) -> Option<SimTime> {
        if self.lasting.is_empty() {
            return None;
        }
        self.lasting.binary_search_by_key(&op.0, |l| l.0).ok().map(|i| self.lasting[i].1)
    }

    /// The operations, where the plan is nothing else and is acknowledged at their end, as nearly all are.
    #[inline(always)]
    pub fn plain(&self) -> Option<&[MediaOp]> {
        let plain = self.ack.is_none()
            && self.records.is_empty()
            && self.fences.is_empty()
            && self.pauses.is_empty()
            && self.lasting.is_empty();
        plain.then_some(&self.ops)
    }

    /// After how many operations and pauses the host is acknowledged, where that is not at the end.
    pub(crate) fn ack(&self) -> Option<(u32, u32)> {
        self.ack
    }

    /// See [`set_extents`](Self::set_extents).
    pub fn extents(&self) -> u32 {
        self.extents
    }
}
