//! Splitting a host's request into units that a layer maps as a whole, and completing the first and the last one.

use crate::{Cause, Endpoint, OpId, Piece, Plan};
use smrlab_units::{Blocks, Lba, Pba};
use std::ops::Range;

/// The units that a request touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitSpan {
    /// Blocks in a unit.
    pub unit: u64,
    /// First unit.
    pub first: u64,
    /// One past the last unit.
    pub end: u64,
    /// Blocks of the first unit before the request.
    pub before: u64,
    /// Blocks of the last unit behind the request.
    pub behind: u64,
}

impl UnitSpan {
    /// Of `blocks` from `lba` on; `unit` is a power of two or small: it is divided by once a request.
    #[inline]
    pub fn of(lba: Lba, blocks: Blocks, unit: u64) -> Self {
        let end = lba.0 + blocks.0;
        let (first, last) = (lba.0 / unit, end.div_ceil(unit));
        Self { unit, first, end: last, before: lba.0 - first * unit, behind: last * unit - end }
    }

    /// The units that the request covers wholly.
    pub fn whole(&self) -> Range<u64> {
        let first = self.first + u64::from(self.before > 0);
        first..(self.end - u64::from(self.behind > 0)).max(first)
    }

    /// The parts of the first and the last unit that the request leaves as they are: the unit, and which of its blocks. Of
    /// a single unit with both it is the whole unit, so that one read brings them.
    #[inline]
    pub fn kept(&self) -> [Option<(u64, Range<u64>)>; 2] {
        if self.first + 1 == self.end && self.before > 0 && self.behind > 0 {
            return [Some((self.first, 0..self.unit)), None];
        }
        let front = (self.before > 0).then_some((self.first, 0..self.before));
        let back = (self.behind > 0).then_some((self.end - 1, self.unit - self.behind..self.unit));
        [front, back]
    }

    /// Plans the reads that complete the first and last unit; `home` says where a unit is, if it was ever written.
    #[inline]
    pub fn fill(&self, mut home: impl FnMut(u64) -> Option<Pba>, plan: &mut Plan) -> Fill {
        if self.before == 0 && self.behind == 0 {
            return Fill::default();
        }
        let [front, back] = self.kept();
        // One read of a single unit serves both ends.
        let one = front.is_some() && back.is_none() && self.behind > 0;
        let [front, back] = [front, back].map(|part| {
            let (unit, blocks) = part?;
            let at = home(unit)? + Blocks(blocks.start);
            let op = plan.read_staged(Cause::Fill, at, Blocks(blocks.end - blocks.start));
            Some((op, blocks.start))
        });
        Fill { front, back: if one { front } else { back } }
    }

    /// The pieces of a write of units `part`: the host's blocks, completed by what [`fill`](Self::fill) read, or by
    /// zeroes where nothing was.
    pub fn pieces(&self, part: Range<u64>, fill: Fill, out: &mut Vec<Piece>) {
        let source = |from: Option<(OpId, u64)>, at: u64| {
            from.map_or(Endpoint::Zero, |(op, first)| Endpoint::Staged(op, Blocks(at - first)))
        };
        let mut piece = |blocks: u64, end: Endpoint| {
            if blocks > 0 {
                out.push(Piece { blocks: Blocks(blocks), end });
            }
        };
        let before = if part.start == self.first { self.before } else { 0 };
        let behind = if part.end == self.end { self.behind } else { 0 };
        piece(before, source(fill.front, 0));
        let host = part.start * self.unit + before - (self.first * self.unit + self.before);
        piece((part.end - part.start) * self.unit - before - behind, Endpoint::Host(Blocks(host)));
        piece(behind, source(fill.back, self.unit - behind));
    }
}

/// What completes the first and the last unit: a staged read, and which block of the unit it begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    front: Option<(OpId, u64)>,
    back: Option<(OpId, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_what_is_kept_of_them() {
        let s = UnitSpan::of(Lba(3), Blocks(10), 8);
        assert_eq!((s.first, s.end, s.before, s.behind, s.whole()), (0, 2, 3, 3, 1..1));
        assert_eq!(s.kept(), [Some((0, 0..3)), Some((1, 5..8))]);
        let s = UnitSpan::of(Lba(8), Blocks(24), 8);
        assert_eq!((s.whole(), s.kept()), (1..4, [None, None]));
        let s = UnitSpan::of(Lba(10), Blocks(2), 8);
        assert_eq!((s.whole(), s.kept()), (2..2, [Some((1, 0..8)), None]));
    }

    #[test]
    fn one_read_serves_both_ends_of_a_unit_and_zeroes_what_was_never_written() {
        let mut plan = Plan::new(true, false);
        let s = UnitSpan::of(Lba(10), Blocks(2), 8);
        let pieces = |fill: Fill| {
            let mut out = Vec::new();
            s.pieces(1..2, fill, &mut out);
            out.iter().map(|p| (p.blocks.0, p.end)).collect::<Vec<_>>()
        };
        let fill = s.fill(|_| Some(Pba(100)), &mut plan);
        assert_eq!((plan.ops().len(), plan.ops()[0].pba, plan.ops()[0].blocks), (1, Pba(100), Blocks(8)));
        let staged = |at| Endpoint::Staged(OpId(0), Blocks(at));
        assert_eq!(pieces(fill), [(2, staged(0)), (2, Endpoint::Host(Blocks(0))), (4, staged(4))]);
        let none = s.fill(|_| None, &mut plan);
        assert_eq!(pieces(none), [(2, Endpoint::Zero), (2, Endpoint::Host(Blocks(0))), (4, Endpoint::Zero)]);
    }

    #[test]
    fn a_part_of_a_long_write_takes_its_part_of_the_hosts_blocks() {
        let mut plan = Plan::new(true, false);
        let s = UnitSpan::of(Lba(3), Blocks(26), 8);
        let fill = s.fill(|unit| Some(Pba(100 * unit)), &mut plan);
        let mut out = Vec::new();
        s.pieces(1..4, fill, &mut out);
        let back = Piece { blocks: Blocks(3), end: Endpoint::Staged(OpId(1), Blocks(0)) };
        assert_eq!(out, [Piece { blocks: Blocks(21), end: Endpoint::Host(Blocks(5)) }, back]);
        assert_eq!(plan.ops()[1].pba, Pba(305));
    }
}
