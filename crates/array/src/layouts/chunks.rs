//! Chunks that are written to new stripes, and the reads that they need: what layouts that append share.

use crate::{MemberId, MemberPlan, Term, Ticket};
use smrlab_stl::Cause;
use smrlab_units::{Blocks, Lba};
use std::collections::BTreeSet;
use std::ops::Range;

/// Slots that together, by XOR, are the old copy of a chunk.
#[derive(Clone, Debug)]
pub struct Old {
    /// The slots.
    pub slots: Range<u32>,
    /// The block of the chunk that they begin with.
    pub from: u64,
}

/// A chunk that is written.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Its number.
    pub lcn: u64,
    /// Blocks of it that are new.
    pub new: Range<u64>,
    /// Where they are in the host's buffer; `None`: zeroes.
    pub host: Option<u64>,
    /// More blocks of it that are new, behind those, and where they are in the host's buffer.
    pub more: Vec<(Range<u64>, u64)>,
    /// Where the rest comes from; `None`: zeroes.
    pub old: Option<Old>,
}

impl Chunk {
    /// One that is written again as it is.
    pub fn moved(lcn: u64, old: Old) -> Self {
        Self { lcn, new: 0..0, host: None, more: Vec::new(), old: Some(old) }
    }

    /// The terms of block `at`.
    fn terms(&self, at: u64, out: &mut Vec<Term>) {
        if self.new.contains(&at) {
            out.extend(self.host.map(|host| Term::host(host + at - self.new.start)));
        } else if let Some((run, host)) = self.more.iter().find(|(run, _)| run.contains(&at)) {
            out.push(Term::host(host + at - run.start));
        } else if let Some(old) = &self.old {
            out.extend(old.slots.clone().map(|slot| Term::slot(slot, Blocks(at - old.from))));
        }
    }

    fn borders(&self, out: &mut Vec<u64>) {
        out.extend([self.new.start, self.new.end]);
        out.extend(self.more.iter().flat_map(|(run, _)| [run.start, run.end]));
    }
}

/// A read into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRead {
    /// The disk, or the SSD behind them.
    pub disk: u64,
    /// Its first block there.
    pub start: u64,
    /// Length.
    pub blocks: u64,
}

/// Reads that a work needs, one slot each.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// In the order of their slots.
    pub reads: Vec<SlotRead>,
}

/// A chunk cannot be read: too many disks are dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl Slots {
    /// Reads a whole chunk from one place.
    pub fn read(&mut self, from: SlotRead) -> Old {
        let slot = self.reads.len() as u32;
        self.reads.push(from);
        Old { slots: slot..slot + 1, from: 0 }
    }

    /// Plans the reads.
    pub fn plan(&self, ticket: Ticket, why: Cause, plan: &mut MemberPlan) {
        for (slot, &SlotRead { disk, start, blocks }) in self.reads.iter().enumerate() {
            let place = (Lba(start), Blocks(blocks));
            plan.read_slot(ticket, MemberId(disk as u32), why, place, slot as u32);
        }
    }
}

/// Blocks of a lost chunk that a read of the host's wants.
#[derive(Clone, Debug)]
pub struct LostPiece {
    /// Where they are in the host's buffer.
    pub host: Blocks,
    /// How many.
    pub blocks: Blocks,
    /// The slots of which they are the XOR.
    pub slots: Range<u32>,
}

/// All slots are filled: makes what dead disks held.
pub fn deliver_lost(lost: &[LostPiece], ticket: Ticket, plan: &mut MemberPlan) {
    for piece in lost {
        let terms: Vec<Term> = piece.slots.clone().map(|s| Term::slot(s, Blocks::ZERO)).collect();
        plan.deliver(ticket, piece.host, piece.blocks, &terms);
    }
}

/// The numbers of the pieces of `size` blocks each that a range touches: chunks, pages, zones.
pub fn numbers(blocks: &Range<u64>, size: u64) -> Range<u64> {
    blocks.start / size..blocks.end.div_ceil(size)
}

/// A range cut into such pieces: number, blocks within it, offset in the range.
#[inline]
pub fn cut(blocks: &Range<u64>, size: u64) -> impl Iterator<Item = (u64, Range<u64>, u64)> + use<> {
    let Range { start, end } = *blocks;
    numbers(blocks, size).map(move |n| {
        let (from, to) = (start.max(n * size), end.min((n + 1) * size));
        (n, from - n * size..to - n * size, from - start)
    })
}

/// The numbers of the chunks that ranges of the host's blocks touch.
pub fn touched(runs: &[Range<u64>], chunk: u64) -> BTreeSet<u64> {
    runs.iter().flat_map(|r| numbers(r, chunk)).collect()
}

/// Those parts of ranges of the host's blocks that are in `chunks`, a chunk at a time.
pub fn parts_in(runs: &[Range<u64>], chunk: u64, chunks: &BTreeSet<u64>) -> Vec<Range<u64>> {
    let all = runs.iter().flat_map(|r| cut(r, chunk)).filter(|(c, ..)| chunks.contains(c));
    all.map(|(c, within, _)| c * chunk + within.start..c * chunk + within.end).collect()
}

/// The blocks of a chunk that must be read where `new` are written: one range.
pub fn missing(chunk: u64, new: &Range<u64>) -> Option<Range<u64>> {
    match (new.start, new.end == chunk) {
        (0, true) => None,
        (0, false) => Some(new.end..chunk),
        (start, true) => Some(0..start),
        _ => Some(0..chunk),
    }
}

/// The XOR of chunks, in parts each with the same terms throughout.
pub fn pieces(chunk: u64, of: &[&Chunk], out: &mut crate::part::Parts<'_>) {
    let mut borders = vec![0, chunk];
    of.iter().for_each(|c| c.borders(&mut borders));
    borders.sort_unstable();
    borders.dedup();
    for pair in borders.windows(2) {
        let mut terms = Vec::new();
        of.iter().for_each(|c| c.terms(pair[0], &mut terms));
        let end = out.sum(&terms);
        out.push(Blocks(pair[1] - pair[0]), end);
    }
}
