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
use crate::parts::update::{Journal, Update};
use crate::{Cause, Dir, Endpoint, Facts, HostRequest, OpId, Plan, Records, Refusal, Sink, TranslationLayer};
use smrlab_blockmap::{Look, UNIT_BLOCKS};
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

/// A chunk whose place is known.
struct Own {
    number: u64,
    place: Chunk,
}

impl Own {
    /// The first chunk of a part.
    #[inline]
    fn of(part: &SegmentPart, column: &Column<'_>, layout: &Layout) -> Self {
        let number = layout.chunk_of(part.blocks.start);
        Self { number, place: column.chunk(number) }
    }

    /// The place of this one or another.
    #[inline]
    fn or(&self, column: &Column<'_>, chunk_no: u64) -> Chunk {
        if chunk_no == self.number { self.place } else { column.chunk(chunk_no) }
    }
}

/// A run of blocks of one chunk that an update reads, to write it again.
#[derive(Clone, Copy, Debug)]
struct Kept {
    chunk: u64,
    /// Offset in the chunk.
    from: u64,
    pba: Pba,
    blocks: Blocks,
    cause: Cause,
}

/// A piece of what is written.
#[derive(Clone, Debug)]
struct Written {
    /// Offsets in the segment.
    blocks: Range<u64>,
    /// What is put back was read here, by this operation; what the host writes was not.
    at: Pba,
    op: OpId,
    of_host: bool,
}

/// See the [module](self) and the registry's page.
pub struct Segments {
    layout: Layout,
    rewrite: Rewrite,
    journal: Journal,
    /// LBAs that hold data. Blocks that do not may have been destroyed: they read as zeroes.
    live: Live,
    update: Update,
    /// What the present update writes, in the order of offsets.
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

    /// Calls `each` with the runs that a write of `part` has to read first, in the order in which they are read; `own` is the first
    /// chunk of the part. Answers whether all of the part itself is known to hold data; of long ones it is not: to put them in makes the set
    /// smaller.
    fn kept(&self, part: &SegmentPart, column: &Column<'_>, own: &Own, mut each: impl FnMut(Kept)) -> bool {
        let chunk = self.layout.chunk;
        let (first, last) = (own.number, self.layout.chunk_of(part.blocks.end - 1));
        let arc = match self.rewrite {
            Rewrite::Arc if first == last => {
                part.blocks.start - first * chunk..part.blocks.end - first * chunk
            }
            _ => 0..chunk,
        };
        let base = part.segment * self.layout.segment_blocks();
        let live = &mut self.live.set().look();
        let mut keep = |live: &mut Look<'_>, chunk_no: u64, within: Range<u64>, cause: Cause| {
            let start = base + chunk_no * chunk;
            let blocks = start + within.start..start + within.end;
            let holds = !within.is_empty() && live.contains_any(blocks);
            if holds {
                own.or(column, chunk_no).runs(within, |from, pba, blocks| {
                    each(Kept { chunk: chunk_no, from, pba, blocks, cause });
                });
            }
            holds
        };
        if self.rewrite == Rewrite::Chunks {
            keep(live, first, 0..part.blocks.start - first * chunk, Cause::Fill);
        }
        let itself = base + part.blocks.start..base + part.blocks.end;
        let known = itself.end - itself.start <= UNIT_BLOCKS && live.contains_all(itself);
        let behind = part.blocks.end - last * chunk;
        keep(live, last, behind..arc.end.max(behind), Cause::Fill);
        // What is destroyed ends where as many chunks in a row hold nothing as the head reaches.
        let mut gap = 0;
        for chunk_no in last + 1..self.layout.length {
            if keep(live, chunk_no, arc.clone(), Cause::Clean) {
                gap = 0;
            } else {
                gap += 1;
                if gap >= self.layout.reach {
                    break;
                }
            }
        }
        known
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
        let chunk = self.layout.chunk;
        let first_op = plan.ops().len();
        let column = self.layout.column(part.segment);
        let own = Own::of(part, &column, &self.layout);
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        let mut relocated = Blocks::ZERO;
        let of_host = || Written { blocks: part.blocks.clone(), at: Pba(0), op: OpId(0), of_host: true };
        let mut has_host = false;
        let known = self.kept(part, &column, &own, |k| {
            let op = plan.read_staged(k.cause, k.pba, k.blocks);
            let from = k.chunk * chunk + k.from;
            if !has_host && from > part.blocks.start {
                pieces.push(of_host());
                has_host = true;
            }
            pieces.push(Written { blocks: from..from + k.blocks.0, at: k.pba, op, of_host: false });
            relocated += k.blocks;
        });
        if !has_host {
            pieces.push(of_host());
        }
        self.update.begin(&self.journal, plan);
        list(&mut self.update, &self.layout, (&column, &own), Blocks(part.host), &pieces);
        self.pieces = pieces;
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

/// Lists the writes of `pieces` (ascending in the segment) in the order of their PBAs; the host's begins there in its buffer.
fn list(
    update: &mut Update,
    layout: &Layout,
    (column, own): (&Column<'_>, &Own),
    host: Blocks,
    pieces: &[Written],
) {
    let chunk = layout.chunk;
    let source = |piece: &Written, from: u64| {
        let by = Blocks(from - piece.blocks.start);
        if piece.of_host { Endpoint::Host(host + by) } else { Endpoint::Staged(piece.op, by) }
    };
    let (mut next, mut at) = (0, pieces[0].blocks.start);
    while let Some(piece) = pieces.get(next) {
        let chunk_no = layout.chunk_of(at);
        let chunk_end = (chunk_no + 1) * chunk;
        let (behind, Range { start, end }) = (pieces.get(next + 1), piece.blocks.clone());
        if !piece.of_host && start == at && (end == chunk_end || behind.is_none_or(|p| p.blocks.start > end))
        {
            // What is put back alone goes to where it was read.
            update.start_with(piece.at, Blocks(end - start), source(piece, start));
            next += 1;
            at = behind.map_or(end, |p| p.blocks.start);
            continue;
        }
        // What follows without a gap in the chunk is one write.
        let mut end = at;
        for p in &pieces[next..] {
            if p.blocks.start > end || end >= chunk_end {
                break;
            }
            end = p.blocks.end.min(chunk_end);
        }
        let mut runs = [(Pba(0), 0, Blocks::ZERO); 2];
        let mut count = 0;
        let within = at - chunk_no * chunk..end - chunk_no * chunk;
        own.or(column, chunk_no).runs(within, |from, pba, blocks| {
            runs[count] = (pba, chunk_no * chunk + from, blocks);
            count += 1;
        });
        runs[..count].sort_unstable();
        for &(pba, from, blocks) in &runs[..count] {
            update.start(pba);
            for p in pieces[next..].iter().take_while(|p| p.blocks.start < from + blocks.0) {
                let (lo, hi) = (p.blocks.start.max(from), p.blocks.end.min(from + blocks.0));
                if lo < hi {
                    update.piece(Blocks(hi - lo), source(p, lo));
                }
            }
        }
        while pieces.get(next).is_some_and(|p| p.blocks.end <= end) {
            next += 1;
        }
        at = pieces.get(next).map_or(end, |p| p.blocks.start.max(end));
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
                let column = self.layout.column(part.segment);
                self.kept(&part, &column, &Own::of(&part, &column, &self.layout), |k| {
                    first = first.or(Some(k.pba))
                });
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
