//! One drive: which write every block of its medium holds, and which one its host would read.
//!
//! Every write gives its blocks tags; a media operation moves them as the plan says, and destroys what interferes with
//! it. What a layer reads for the host must be what the host last wrote there. Tags are 31 bits: a mistake goes
//! unnoticed with a chance of about one in 2^31 a block.
//!
//! A conventional drive does each request where it is asked to, so that every block holds what is expected there. As long as all plans are
//! such, tags are kept once, for the medium, and reads are right. Of an array's drive they are not kept at all: the array knows what it wrote
//! there, and tells it before the first plan that is not such.

use super::tags::{CONSTANT, Fresh, NEVER, TagRun, Tags, nth};
use super::taken::Taken;
use crate::error::{Result, RunError};
use smrlab_disk::{Geometry, Interference};
use smrlab_drive::TimedPlan;
use smrlab_stl::{Cause, Endpoint, HostRequest, MediaOp, OpId, Outcome, Plan};
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, counted};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// On the medium: encoded records, which no host reads.
const RECORDS: u32 = CONSTANT + 1;
/// Expected by the host: zeroes, after a discard.
const ZEROED: u32 = CONSTANT + 2;
/// In a read's buffer: nothing was delivered here.
const NOTHING: u32 = CONSTANT + 3;
/// Of a destroyed block: this plus the number of the write that did it.
const DESTROYED: u32 = CONSTANT + 16;
/// Writes that are remembered, to say which one destroyed a block.
const REMEMBERED: usize = 1 << 16;

/// A write that was carried out.
#[derive(Clone, Copy, Debug)]
struct Wrote {
    number: u64,
    op: MediaOp,
    /// Host request that it was done for, once that is known.
    request: Option<u64>,
}

/// A block that the host would not get back.
#[derive(Clone, Copy, Debug)]
struct Lost {
    lba: Lba,
    at: Option<Pba>,
    found: u32,
}

/// See the [module](self).
pub struct Disk {
    geometry: Arc<Geometry>,
    interference: Interference,
    discards: bool,
    medium: Tags,
    /// Nothing yet while every plan was [in place](Disk::is_in_place): it is what the medium holds.
    expected: Option<Tags>,
    /// So far the array knows what was written: nothing is kept here.
    untold: bool,
    /// Tags for what the host writes.
    fresh: Fresh,
    media_writes: u64,
    wrote: VecDeque<Wrote>,
    /// Remembered writes whose request is not known yet.
    unknown: usize,
    /// What the reads of the plan brought: ends of their runs, and the runs, from the operation's first block on.
    read_ends: Vec<usize>,
    staged: Vec<TagRun>,
    /// What a piece moves: kept for its room.
    moved: Vec<TagRun>,
    /// What a read must bring: kept for its room.
    wanted: Vec<TagRun>,
    lost: Option<Lost>,
    /// What the drive's own buffer took.
    taken: Taken,
}

impl Disk {
    /// An empty medium on which writes destroy what `interference` says. `discards`: discarded blocks must read as
    /// zeroes.
    pub fn new(geometry: Arc<Geometry>, interference: Interference, discards: bool) -> Self {
        Self {
            geometry,
            expected: (!interference.is_none()).then(Tags::default),
            untold: false,
            interference,
            discards,
            medium: Tags::default(),
            fresh: Fresh::default(),
            media_writes: 0,
            wrote: VecDeque::new(),
            unknown: 0,
            read_ends: Vec::new(),
            staged: Vec::new(),
            moved: Vec::new(),
            wanted: Vec::new(),
            lost: None,
            taken: Taken::default(),
        }
    }

    /// One of an array, which [tells](Self::told) what was written when it [is asked](Self::has_to_know).
    pub fn of_array(self) -> Self {
        Self { untold: self.expected.is_none() && !self.discards, ..self }
    }

    /// Whether it has to be [told](Self::told) what was written before a plan is carried out.
    pub fn has_to_know(&self, request: Option<&HostRequest>, executed: &TimedPlan<'_>) -> bool {
        let (plan, done) = (executed.plan, executed.done);
        let refused = plan.refusal().is_some();
        self.untold && !refused && !request.is_some_and(|r| self.is_in_place(plan, done, r))
    }

    /// These blocks were written, each in its place, no others were.
    pub fn told(&mut self, written: impl Iterator<Item = Range<u64>>) {
        self.untold = false;
        for run in written {
            let blocks = run.end - run.start;
            self.medium.set(TagRun { first: run.start, blocks, tag: self.fresh.next(Blocks(blocks)) });
        }
    }

    /// The drive's buffer took a write; [`served`](Self::served) follows when it is written.
    pub fn accepted(&mut self, write: &HostRequest) {
        self.taken.add(write);
    }

    /// A read was answered from `write`, which the buffer took.
    ///
    /// # Errors
    /// [`RunError::Verification`] where that is not what the host wrote last.
    pub fn answered(&self, read: &HostRequest, write: &HostRequest) -> Result<()> {
        self.taken.answered(read, write)
    }

    /// A request was refused.
    ///
    /// # Errors
    /// [`RunError::Verification`] where the buffer had acknowledged it.
    pub fn refused(&self, request: &HostRequest) -> Result<()> {
        self.taken.refused(request)
    }

    /// Bytes that the tags take.
    pub fn bytes(&self) -> usize {
        self.medium.bytes() + self.expected.as_ref().map_or(0, Tags::bytes)
    }

    /// A request that was served before the run.
    pub fn prefilled(&mut self, request: &HostRequest, executed: &TimedPlan<'_>) {
        self.carry_out(executed.plan, executed.done, Some(request));
        self.unknown = 0;
    }

    /// Carries out the first `done` operations of a plan on the tags.
    fn carry_out(&mut self, plan: &Plan, done: usize, request: Option<&HostRequest>) {
        if plan.refusal().is_some() {
            // Nothing was done, and nothing is delivered that could be wrong.
            return;
        }
        let writes = request.filter(|r| matches!(r.op, HostOp::Write | HostOp::Append));
        let base = writes.map_or(NEVER, |r| self.fresh.next(r.blocks));
        if self.expected.is_none() && request.is_some_and(|r| self.is_in_place(plan, done, r)) {
            let written = writes.filter(|_| !self.untold).map(|r| TagRun {
                first: r.lba.0,
                blocks: r.blocks.0,
                tag: base,
            });
            return written.into_iter().for_each(|run| self.medium.set(run));
        }
        let mut expected = self.expected.take().unwrap_or_else(|| self.medium.clone());
        self.read_ends.clear();
        self.staged.clear();
        for (i, op) in plan.ops()[..done].iter().enumerate() {
            match op.dir {
                Dir::Read => self.medium.runs(op.pba.span(op.blocks), &mut self.staged),
                Dir::Write => self.write(plan, OpId(i as u32), op, base),
            }
            self.read_ends.push(self.staged.len());
        }
        match request {
            Some(r) if r.op == HostOp::Read => self.check(plan, done, r, &expected),
            Some(r) if writes.is_some() => {
                let at = if let Outcome::Appended(at) = plan.outcome() { at } else { r.lba };
                expected.set(TagRun { first: at.0, blocks: r.blocks.0, tag: base });
            }
            Some(r) if r.op == HostOp::Discard && self.discards => {
                expected.set(TagRun { first: r.lba.0, blocks: r.blocks.0, tag: ZEROED });
            }
            _ => {}
        }
        // What a zone held that is reset reads as zeroes, or is refused.
        for zone in plan.zones_reset() {
            expected.set(TagRun { first: zone.start, blocks: zone.end - zone.start, tag: ZEROED });
        }
        self.expected = Some(expected);
    }

    /// Whether a plan reads or writes all that is asked for at the very address, and does nothing else.
    fn is_in_place(&self, plan: &Plan, done: usize, r: &HostRequest) -> bool {
        let ([], []) = (plan.zeroes(), plan.zones_reset()) else { return false };
        let dir = match r.op {
            HostOp::Read => Dir::Read,
            HostOp::Write => Dir::Write,
            op => return (op == HostOp::Flush || op == HostOp::Discard && !self.discards) && done == 0,
        };
        let ([op], 1) = (plan.ops(), done) else { return false };
        let [piece] = plan.pieces(OpId(0)) else { return false };
        let whole = piece.end == Endpoint::Host(Blocks::ZERO) && piece.blocks == r.blocks;
        whole && op.dir == dir && op.pba.span(op.blocks) == r.span()
    }

    fn write(&mut self, plan: &Plan, id: OpId, op: &MediaOp, base: u32) {
        let mut at = op.pba.0;
        for piece in plan.pieces(id) {
            let (first, blocks) = (at, piece.blocks.0);
            match piece.end {
                Endpoint::Host(from) => self.medium.set(TagRun { first, blocks, tag: nth(base, from.0) }),
                Endpoint::Zero => self.medium.set(TagRun { first, blocks, tag: NEVER }),
                Endpoint::Records => self.medium.set(TagRun { first, blocks, tag: RECORDS }),
                Endpoint::Held(from) => {
                    self.moved.clear();
                    self.medium.runs(from.span(piece.blocks), &mut self.moved);
                    self.moved.iter_mut().for_each(|run| run.first = run.first - from.0 + first);
                    self.medium.put(first..first + blocks, &self.moved);
                }
                Endpoint::Staged(read, from) => {
                    let source = plan.ops()[read.0 as usize].pba.0 + from.0;
                    let range = source..source + blocks;
                    let staged = &self.staged[self.runs_of(read)];
                    let begin = staged.partition_point(|run| run.end() <= range.start);
                    let parts = staged[begin..].iter().map_while(|run| run.within(&range));
                    self.moved.clear();
                    self.moved.extend(parts.map(|run| TagRun { first: run.first - source + first, ..run }));
                    self.medium.put(first..first + blocks, &self.moved);
                }
            }
            at += blocks;
        }
        self.destroy(op);
    }

    /// The indices of the runs that a read brought.
    fn runs_of(&self, read: OpId) -> Range<usize> {
        let i = read.0 as usize;
        let first = if i == 0 { 0 } else { self.read_ends[i - 1] };
        first..self.read_ends[i]
    }

    fn destroy(&mut self, op: &MediaOp) {
        if self.interference.is_none() {
            return;
        }
        let number = self.media_writes;
        self.media_writes += 1;
        if self.wrote.len() == REMEMBERED {
            self.wrote.pop_front();
            self.unknown = self.unknown.min(REMEMBERED - 1);
        }
        self.wrote.push_back(Wrote { number, op: *op, request: None });
        self.unknown += 1;
        let tag = DESTROYED + (number % u64::from(u32::MAX - DESTROYED)) as u32;
        let medium = &mut self.medium;
        // Blocks that were never written have nothing to lose.
        self.interference.victims(&self.geometry, op.pba, op.blocks, &mut |r| medium.destroy(&r, tag));
    }

    /// Compares what the plan delivers to the host with what was last written there.
    fn check(&mut self, plan: &Plan, done: usize, r: &HostRequest, expected: &Tags) {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        expected.runs(r.span(), &mut wanted);
        if !self.read_in_one_piece(plan, done, r, &wanted) {
            self.compare(plan, done, r, &wanted);
        }
        self.wanted = wanted;
    }

    /// Whether one operation brought all that is asked for, and the runs that are wanted.
    fn read_in_one_piece(&self, plan: &Plan, done: usize, r: &HostRequest, wanted: &[TagRun]) -> bool {
        let ([op], 1, []) = (plan.ops(), done, plan.zeroes()) else { return false };
        let [piece] = plan.pieces(OpId(0)) else { return false };
        let whole = piece.end == Endpoint::Host(Blocks::ZERO) && op.blocks == r.blocks && op.dir == Dir::Read;
        let here =
            |run: &TagRun| TagRun { first: run.first.wrapping_sub(op.pba.0).wrapping_add(r.lba.0), ..*run };
        whole && self.staged.iter().map(here).eq(wanted.iter().copied())
    }

    /// The same block by block, to name the one that is wrong.
    fn compare(&mut self, plan: &Plan, done: usize, r: &HostRequest, wanted: &[TagRun]) {
        let mut got = vec![(NOTHING, None); r.blocks.0 as usize];
        for (i, op) in plan.ops()[..done].iter().enumerate().filter(|(_, op)| op.dir == Dir::Read) {
            let id = OpId(i as u32);
            let [piece] = plan.pieces(id) else { continue };
            let Endpoint::Host(from) = piece.end else { continue };
            let to = from.0 as usize;
            for (j, cell) in got[to..to + op.blocks.0 as usize].iter_mut().enumerate() {
                *cell = (NEVER, Some(Pba(op.pba.0 + j as u64)));
            }
            for run in &self.staged[self.runs_of(id)] {
                let first = to + (run.first - op.pba.0) as usize;
                (0..run.blocks).for_each(|j| got[first + j as usize].0 = nth(run.tag, j));
            }
        }
        for &(from, blocks) in plan.zeroes() {
            got[from.0 as usize..(from + blocks).0 as usize].fill((NEVER, None));
        }
        for run in wanted {
            for j in 0..run.blocks {
                let (found, at) = got[(run.first - r.lba.0 + j) as usize];
                let want = match nth(run.tag, j) {
                    ZEROED => NEVER,
                    tag => tag,
                };
                if found != want && self.lost.is_none() {
                    self.lost = Some(Lost { lba: Lba(run.first + j), at, found });
                }
            }
        }
    }

    /// A step was carried out for no request; its writes stay without one.
    pub fn background(&mut self, executed: &TimedPlan<'_>) {
        self.carry_out(executed.plan, executed.done, None);
        self.unknown = 0;
    }

    /// A request was served: whether it got what it should.
    ///
    /// # Errors
    /// [`RunError::Verification`], which names the block, and the operation that destroyed it where there is one.
    pub fn served(&mut self, request: &HostRequest, executed: &TimedPlan<'_>) -> Result<()> {
        self.taken.dispatched(request)?;
        self.carry_out(executed.plan, executed.done, Some(request));
        let id = request.id;
        let known = self.wrote.len() - self.unknown;
        self.wrote.range_mut(known..).for_each(|w| w.request = Some(id));
        self.unknown = 0;
        match self.lost {
            None => Ok(()),
            Some(lost) => Err(RunError::Verification(self.describe(id, lost))),
        }
    }

    fn describe(&self, id: u64, lost: Lost) -> String {
        let place = match lost.at {
            Some(pba) => format!("from PBA {pba}"),
            None => "without the medium".to_owned(),
        };
        let what = match lost.found {
            NOTHING => "the layer delivered nothing for it".to_owned(),
            NEVER => "it was read as never written".to_owned(),
            RECORDS => "it holds the layer's own records".to_owned(),
            tag if tag >= DESTROYED => self.destroyer(u64::from(tag - DESTROYED)),
            _ => "it holds other data: something older, or from another address".to_owned(),
        };
        format!(
            "verify-media: request {id} read LBA {} {place}, and not what was last written there: {what}",
            lost.lba
        )
    }

    fn destroyer(&self, tag: u64) -> String {
        let period = u64::from(u32::MAX - DESTROYED);
        match self.wrote.iter().rev().find(|w| w.number % period == tag) {
            None => {
                format!("media write {tag} (counted from 0) destroyed it; media_log shows which one that is")
            }
            Some(w) => {
                let who = match w.request {
                    Some(id) => format!("request {id}"),
                    None => "the prefill or background work".to_owned(),
                };
                let (op, why) = (w.op, w.op.cause.name());
                let whole = if op.cause == Cause::Host { "" } else { ", which the host did not ask for" };
                format!(
                    "media write {} of {who} ({why}{whole}, {} at PBA {}) destroyed it",
                    w.number,
                    counted(op.blocks.0, "block"),
                    op.pba
                )
            }
        }
    }
}
