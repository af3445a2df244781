//! `segment`: bands cut by angle into segments, each updated in place.
//!
//! A segment is the same arc of all tracks of a band. A write destroys what lies behind it in its own segment only, so these chunks are
//! read and written again: of `n` arcs on a track an `n`-th of what `rmw` copies.

mod entry;
mod layout;

pub use entry::ENTRY;
pub(crate) use entry::shared_guards;
pub use layout::Layout;
use layout::{Chunk, Column};

use crate::parts::live::Live;
use crate::parts::split::ReadRuns;
use crate::parts::update::{Journal, Update, advanced};
use crate::{Cause, Dir, Endpoint, Facts, HostRequest, OpId, Plan, Records, Refusal, Sink, TranslationLayer};
use smrlab_blockmap::{BlockSet, Look, UNIT_BLOCKS};
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime};
use std::ops::Range;

/// What an update rewrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Whole chunks: the written one and those behind it.
    Chunks,
    /// Of each chunk behind the written one only the angles that were written.
    Arc,
}

/// The part of a request that lies in one segment.
#[derive(Clone, Debug)]
struct SegmentPart {
    segment: u64,
    /// Blocks of the segment.
    blocks: Range<u64>,
    /// Offset in the host's buffer.
    host: u64,
}

/// A piece of what is written to the chunks that a part of a request touches. They follow each other without a gap.
#[derive(Clone, Debug)]
struct Written {
    /// Offsets in the segment.
    blocks: Range<u64>,
    /// Where its first block comes from.
    source: Endpoint,
}

/// What a write of a part of a request finds in its segment.
struct Found<'a> {
    layout: &'a Layout,
    rewrite: Rewrite,
    part: &'a SegmentPart,
    column: Column<'a>,
    /// The first and the last chunk of the part, and where the first one lies.
    first: u64,
    last: u64,
    place: Chunk,
    live: Look<'a>,
}

impl<'a> Found<'a> {
    #[inline]
    fn new(layout: &'a Layout, rewrite: Rewrite, live: &'a BlockSet, part: &'a SegmentPart) -> Self {
        let column = layout.column(part.segment);
        let (first, last) = (layout.chunk_of(part.blocks.start), layout.chunk_of(part.blocks.end - 1));
        let place = column.chunk(first);
        Self { layout, rewrite, part, column, first, last, place, live: live.look() }
    }

    #[inline]
    fn place(&self, chunk_no: u64) -> Chunk {
        if chunk_no == self.first { self.place } else { self.column.chunk(chunk_no) }
    }

    /// Whether any of these blocks of a chunk holds data.
    #[inline]
    fn holds(&mut self, chunk_no: u64, within: &Range<u64>) -> bool {
        let start = self.part.segment * self.layout.segment_blocks() + chunk_no * self.layout.chunk;
        !within.is_empty() && self.live.contains_any(start + within.start..start + within.end)
    }

    /// What is rewritten of each chunk behind the part; `None`: all of it.
    #[inline]
    fn arc(&self) -> Option<Range<u64>> {
        let (base, Range { start, end }) = (self.first * self.layout.chunk, self.part.blocks.clone());
        (self.rewrite == Rewrite::Arc && self.first == self.last).then(|| start - base..end - base)
    }

    /// Calls `each` with the runs of the chunks before and behind the part that are written with it, in the order in which they are read:
    /// offset in the segment, first block, length. Answers whether all of the part itself is known to hold data; of long ones it is not:
    /// to put them in makes the set smaller.
    #[inline]
    fn beside(&mut self, mut each: impl FnMut(u64, Pba, Blocks)) -> bool {
        let (chunk, Range { start, end }) = (self.layout.chunk, self.part.blocks.clone());
        let mut keep = |found: &mut Self, chunk_no: u64, within: Range<u64>| {
            if found.holds(chunk_no, &within) {
                let base = chunk_no * chunk;
                found.place(chunk_no).runs(within, |from, pba, blocks| each(base + from, pba, blocks));
            }
        };
        if self.rewrite == Rewrite::Chunks {
            keep(self, self.first, 0..start - self.first * chunk);
        }
        let base = self.part.segment * self.layout.segment_blocks();
        let known = end - start <= UNIT_BLOCKS && self.live.contains_all(base + start..base + end);
        if self.arc().is_none() {
            keep(self, self.last, end - self.last * chunk..chunk);
        }
        known
    }

    /// Calls `each` with the chunks behind those of the part that have to be put back, and with what of each.
    #[inline]
    fn behind(&mut self, mut each: impl FnMut(Chunk, Range<u64>)) {
        let arc = self.arc().unwrap_or(0..self.layout.chunk);
        // What is destroyed ends where as many chunks in a row hold nothing as the head reaches.
        let mut gap = 0;
        for chunk_no in self.last + 1..self.layout.length {
            if self.holds(chunk_no, &arc) {
                each(self.column.chunk(chunk_no), arc.clone());
                gap = 0;
            } else {
                gap += 1;
                if gap >= self.layout.reach {
                    break;
                }
            }
        }
    }

    /// Lists the writes of `pieces`, the part and what lies beside it, chunk by chunk in the order of their PBAs.
    #[inline]
    fn list(&self, pieces: &[Written], update: &mut Update) {
        let (mut at, all) = (pieces[0].blocks.start, pieces[pieces.len() - 1].blocks.end);
        while at < all {
            let chunk_no = self.layout.chunk_of(at);
            let base = chunk_no * self.layout.chunk;
            let end = all.min(base + self.layout.chunk);
            let (mut runs, mut count) = ([const { (Pba(0), 0..0) }; 2], 0);
            self.place(chunk_no).runs(at - base..end - base, |from, pba, blocks| {
                runs[count] = (pba, base + from..base + from + blocks.0);
                count += 1;
            });
            // A chunk goes on, if anywhere, at the beginning of its track.
            for (pba, run) in runs[..count].iter().rev() {
                update.start(*pba);
                for piece in pieces {
                    let (lo, hi) = (piece.blocks.start.max(run.start), piece.blocks.end.min(run.end));
                    if lo < hi {
                        update
                            .piece(Blocks(hi - lo), advanced(piece.source, Blocks(lo - piece.blocks.start)));
                    }
                }
            }
            at = end;
        }
    }
}

/// See the [module](self) and the registry's page.
pub struct Segments {
    layout: Layout,
    rewrite: Rewrite,
    journal: Journal,
    /// LBAs that hold data. Blocks that do not may have been destroyed: they read as zeroes.
    live: Live,
    update: Update,
    /// What the present update writes to the chunks of the part, in the order of offsets.
    pieces: Vec<Written>,
}

impl Segments {
    /// Builds the layer.
    pub fn new(layout: Layout, rewrite: Rewrite, journal: Journal) -> Self {
        let (live, update) = Default::default();
        Self { layout, rewrite, journal, live, update, pieces: Vec::new() }
    }

    fn parts(&self, lba: Lba, blocks: Blocks) -> impl Iterator<Item = SegmentPart> + use<> {
        let size = self.layout.segment_blocks();
        let (mut at, end) = (lba.0, lba.0 + blocks.0);
        // A request mostly lies in one.
        let (mut segment, mut from) = self.layout.segment_of(at);
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let n = (size - from).min(end - at);
                let part = SegmentPart { segment, blocks: from..from + n, host: at - lba.0 };
                (at, segment, from) = (at + n, segment + 1, 0);
                part
            })
        })
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let mut extents = 0;
        for part in self.parts(r.lba, r.blocks) {
            self.write_part(&part, r.lba.0 + part.host, plan);
            extents += 1;
        }
        plan.set_extents(extents);
    }

    fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        self.live.remove(r.span(), plan);
    }

    fn write_part(&mut self, part: &SegmentPart, lba: u64, plan: &mut Plan) {
        let first_op = plan.ops().len();
        let (update, pieces) = (&mut self.update, &mut self.pieces);
        let mut found = Found::new(&self.layout, self.rewrite, self.live.set(), part);
        pieces.clear();
        let mut relocated = Blocks::ZERO;
        let known = found.beside(|from, pba, blocks| {
            let source = Endpoint::Staged(plan.read_staged(Cause::Fill, pba, blocks), Blocks::ZERO);
            pieces.push(Written { blocks: from..from + blocks.0, source });
            relocated += blocks;
        });
        let of_host = Written { blocks: part.blocks.clone(), source: Endpoint::Host(Blocks(part.host)) };
        pieces.insert(pieces.partition_point(|p| p.blocks.start < part.blocks.start), of_host);
        update.begin(&self.journal, plan);
        found.list(pieces, update);
        found.behind(|place, within| {
            let (mut runs, mut count) = ([(Pba(0), Blocks::ZERO, OpId(0)); 2], 0);
            place.runs(within, |_, pba, blocks| {
                runs[count] = (pba, blocks, plan.read_staged(Cause::Clean, pba, blocks));
                count += 1;
                relocated += blocks;
            });
            // As in `list`.
            for &(pba, blocks, op) in runs[..count].iter().rev() {
                update.start_with(pba, blocks, Endpoint::Staged(op, Blocks::ZERO));
            }
        });
        let (live, blocks) = (&mut self.live, part.blocks.end - part.blocks.start);
        self.update.emit(&mut self.journal, plan, |plan| {
            if !known {
                live.insert(lba..lba + blocks, plan);
            }
        });
        if relocated.0 > 0 {
            plan.cleaned("segment-rewrite", first_op, relocated);
        }
    }

    fn read(&self, r: &HostRequest, plan: &mut Plan) {
        let chunk = self.layout.chunk;
        let mut runs = ReadRuns::to_host(0);
        for part in self.parts(r.lba, r.blocks) {
            let column = self.layout.column(part.segment);
            let mut at = part.blocks.start;
            while at < part.blocks.end {
                let (chunk_no, from) = (at / chunk, at % chunk);
                let n = (chunk - from).min(part.blocks.end - at);
                column.chunk(chunk_no).runs(from..from + n, |_, pba, blocks| {
                    runs.push(pba, blocks.0, plan);
                });
                at += n;
            }
        }
        let ops = runs.end(plan);
        plan.set_extents(ops);
        if plan.wants_data() {
            self.live.zero_rest(r.span(), Blocks::ZERO, plan);
        }
    }

    /// The lowest PBA of the host's blocks in the first chunk that a part touches.
    fn first_write(&self, part: &SegmentPart) -> Pba {
        let chunk = self.layout.chunk;
        let (chunk_no, from) = (part.blocks.start / chunk, part.blocks.start % chunk);
        let end = chunk.min(from + part.blocks.end - part.blocks.start);
        let mut first = Pba(u64::MAX);
        let place = self.layout.column(part.segment).chunk(chunk_no);
        place.runs(from..end, |_, pba, _| first = first.min(pba));
        first
    }
}

impl TranslationLayer for Segments {
    fn host_blocks(&self) -> Blocks {
        self.layout.host_blocks()
    }

    by_operation!();

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        let part = self.parts(r.lba, r.blocks).next()?;
        match r.op {
            HostOp::Read => {
                let (chunk_no, from) =
                    (part.blocks.start / self.layout.chunk, part.blocks.start % self.layout.chunk);
                let mut first = None;
                let place = self.layout.column(part.segment).chunk(chunk_no);
                place.runs(from..from + 1, |_, pba, _| first = Some(pba));
                Some((first?, Dir::Read))
            }
            HostOp::Write => {
                let mut first = None;
                let mut found = Found::new(&self.layout, self.rewrite, self.live.set(), &part);
                found.beside(|_, pba, _| first = first.or(Some(pba)));
                if first.is_none() {
                    found.behind(|place, within| {
                        place.runs(within, |_, pba, _| first = first.or(Some(pba)));
                    });
                }
                if let Some(pba) = first {
                    return Some((pba, Dir::Read));
                }
                let blocks = Blocks(part.blocks.end - part.blocks.start);
                Some((self.journal.first(self.first_write(&part), blocks), Dir::Write))
            }
            _ => None,
        }
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        for record in records.changes() {
            if self.live.take(&record).is_none() {
                self.journal.take(&record);
            }
        }
        self.journal.recover(plan);
    }

    fn durable(&mut self) {
        self.journal.durable();
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.live.checkpoint(out);
        self.journal.checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.live.set().runs_in(lba.span(blocks)).for_each(out);
    }

    fn facts(&self) -> Facts<'_> {
        Facts { bands: Some(&self.layout.bands), ..Facts::default() }
    }

    fn map_bytes(&self) -> u64 {
        self.live.set().bytes() as u64 + self.layout.bytes()
    }
}
