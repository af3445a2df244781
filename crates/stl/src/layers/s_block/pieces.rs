//! Where the blocks of a write come from: the host, or what was read before.

use super::work::Work;
use crate::{Endpoint, OpId, Piece};
use smrlab_units::Blocks;
use std::ops::Range;

/// What completes units: reads, or zeroes where the S-block holds nothing.
pub(super) struct Fills {
    /// Offset of the first block read.
    pub start: u64,
    pub before: Vec<(Endpoint, u64)>,
    pub behind: Vec<(Endpoint, u64)>,
}

impl Fills {
    /// The pieces of the blocks `part`, of which the host gives `given` from `host` in its buffer on.
    pub(super) fn pieces(&self, part: Range<u64>, given: &Range<u64>, host: u64, out: &mut Vec<Piece>) {
        let staged = |runs: &[(Endpoint, u64)], mut at: u64, out: &mut Vec<Piece>| {
            for &(source, n) in runs {
                let (from, to) = (at.max(part.start), (at + n).min(part.end));
                if from < to {
                    let end = match source {
                        Endpoint::Staged(op, first) => Endpoint::Staged(op, Blocks(first.0 + from - at)),
                        other => other,
                    };
                    out.push(Piece { blocks: Blocks(to - from), end });
                }
                at += n;
            }
        };
        staged(&self.before, self.start, out);
        let (from, to) = (given.start.max(part.start), given.end.min(part.end));
        if from < to {
            out.push(Piece {
                blocks: Blocks(to - from),
                end: Endpoint::Host(Blocks(host + from - given.start)),
            });
        }
        staged(&self.behind, given.end, out);
    }
}

/// The pieces of an S-block patched with its staged parts; without a `base` the rest is zeroes.
pub(super) fn patched(work: &Work, base: Option<OpId>, size: u64, out: &mut Vec<Piece>) {
    let rest = |at: u64| base.map_or(Endpoint::Zero, |op| Endpoint::Staged(op, Blocks(at)));
    let mut order: Vec<usize> = (0..work.parts.len()).collect();
    order.sort_unstable_by_key(|&i| work.parts[i].offset);
    let mut at = 0;
    for i in order {
        let (p, (op, from)) = (work.parts[i], work.staged[i]);
        if p.offset > at {
            out.push(Piece { blocks: Blocks(p.offset - at), end: rest(at) });
        }
        out.push(Piece { blocks: Blocks(p.blocks), end: Endpoint::Staged(op, Blocks(from)) });
        at = p.offset + p.blocks;
    }
    if at < size {
        out.push(Piece { blocks: Blocks(size - at), end: rest(at) });
    }
}
