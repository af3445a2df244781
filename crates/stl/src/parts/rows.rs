//! Rows: tracks, or whole cylinders where PBAs go round the surfaces, that a layer keeps, moves and maps as wholes.
//!
//! The row behind a row of the same stroke is the one that a write to it destroys first.

use crate::{Cause, Endpoint, OpId, Piece, Plan};
use smrlab_blockmap::BlockSet;
use smrlab_disk::geometry::Geometry;
use smrlab_disk::{DriveModel, TrackNo};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;
use std::sync::Arc;

/// A row's number, in PBA order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub u64);

/// The rows of a drive.
#[derive(Clone, Debug)]
pub struct Rows {
    geometry: Arc<Geometry>,
    unit: u64,
}

impl Rows {
    /// Of a drive.
    pub fn of(drive: &DriveModel) -> Self {
        let geometry = Arc::clone(drive.geometry());
        let unit = geometry.strokes().next().map_or(1, |s| s.unit);
        Self { geometry, unit }
    }

    /// Tracks of a row.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.geometry.tracks() / self.unit
    }

    /// The row that holds a block.
    #[inline]
    pub fn at(&self, pba: Pba) -> Row {
        Row(self.geometry.track_of(pba).0 / self.unit)
    }

    /// The row behind this one.
    pub fn next(&self, row: Row) -> Row {
        Row(row.0 + 1)
    }

    /// Its first block.
    #[inline]
    pub fn first(&self, row: Row) -> Pba {
        self.geometry.track_start(TrackNo(row.0 * self.unit))
    }

    /// The block behind its last one.
    #[inline]
    pub fn end(&self, row: Row) -> Pba {
        self.first(self.next(row))
    }
}

/// What of a row is staged: one run from its first to its last live block, with zeroes where nothing is live.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Where it begins within the row.
    from: Blocks,
    /// Blocks in all.
    pub blocks: Blocks,
    /// Its parts, in order, where data are wanted.
    pieces: Vec<Piece>,
}

impl Span {
    /// Goes on with blocks `part` of the row, and zeroes up to there, for a write of `plan`.
    pub fn push(&mut self, part: Range<u64>, source: Endpoint, plan: &Plan) {
        if self.blocks == Blocks::ZERO {
            self.from = Blocks(part.start);
        }
        let gap = part.start - (self.from + self.blocks).0;
        self.blocks = Blocks(part.end) - self.from;
        if !plan.wants_data() {
            return;
        }
        if gap > 0 {
            self.pieces.push(Piece { blocks: Blocks(gap), end: Endpoint::Zero });
        }
        self.pieces.push(Piece { blocks: Blocks(part.end - part.start), end: source });
    }

    /// Goes on with what is live of `part` of a row, and plans the reads of it: an operation for each run. Answers how many blocks it
    /// reads.
    pub fn stage(&mut self, live: &BlockSet, part: Range<u64>, row: At, plan: &mut Plan) -> u64 {
        let mut staged = 0;
        for run in live.runs_in(part) {
            let (part, blocks) = (run.start - row.number..run.end - row.number, run.end - run.start);
            let op: OpId = plan.read_staged(row.cause, row.pba + Blocks(part.start), Blocks(blocks));
            self.push(part, Endpoint::Staged(op, Blocks::ZERO), plan);
            staged += blocks;
        }
        staged
    }

    /// Plans the one write that brings it to the row that begins at `pba`; nothing where nothing is live.
    pub fn write(&self, pba: Pba, cause: Cause, plan: &mut Plan) {
        if self.blocks > Blocks::ZERO {
            plan.write_pieces(cause, pba + self.from, self.blocks, |out| {
                out.extend_from_slice(&self.pieces);
            });
        }
    }
}

/// Where a row is, and why it is read.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The number of its first block in the live set.
    pub number: u64,
    /// Where its first block lies now.
    pub pba: Pba,
    /// Why.
    pub cause: Cause,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_live_moves_in_one_write_with_zeroes_between() {
        let (mut live, mut plan, mut span) = (BlockSet::new(), Plan::new(true, false), Span::default());
        live.insert(103..105);
        live.insert(108..109);
        live.insert(112..120);
        let row = At { number: 100, pba: Pba(50), cause: Cause::Clean };
        span.stage(&live, 100..110, row, &mut plan);
        span.write(Pba(70), Cause::Clean, &mut plan);
        let ops: Vec<_> = plan.ops().iter().map(|o| (o.pba.0, o.blocks.0)).collect();
        assert_eq!(ops, [(53, 2), (58, 1), (73, 6)]);
        let staged = |op| Endpoint::Staged(OpId(op), Blocks::ZERO);
        let pieces: Vec<_> = plan.pieces(OpId(2)).iter().map(|p| (p.blocks.0, p.end)).collect();
        assert_eq!(pieces, [(2, staged(0)), (3, Endpoint::Zero), (1, staged(1))]);
    }
}
