//! Splitting a host request: at the borders of units that a layer maps as a whole, and into runs of consecutive PBAs.

use crate::{Cause, Plan};
use smrlab_blockmap::BlockSet;
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// Where the reads of a request bring their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whither {
    Host,
    Staged,
}

/// Joins blocks that are read in the host's order into as few operations as their PBAs allow.
#[derive(Debug)]
pub struct ReadRuns {
    whither: Whither,
    cause: Cause,
    host: u64,
    pba: u64,
    blocks: u64,
    ops: u32,
}

impl ReadRuns {
    /// Delivers to the host's buffer from offset `host` on.
    pub fn to_host(host: u64) -> Self {
        Self { whither: Whither::Host, cause: Cause::Host, host, pba: 0, blocks: 0, ops: 0 }
    }

    /// Stages, for a write of the same plan.
    pub fn staged(cause: Cause) -> Self {
        Self { whither: Whither::Staged, cause, host: 0, pba: 0, blocks: 0, ops: 0 }
    }

    /// The next `blocks` lie at `pba`.
    #[inline]
    pub fn push(&mut self, pba: Pba, blocks: u64, plan: &mut Plan) {
        if self.blocks > 0 && self.pba + self.blocks == pba.0 {
            self.blocks += blocks;
        } else {
            self.end(plan);
            self.pba = pba.0;
            self.blocks = blocks;
        }
    }

    /// The next `blocks` would lie at `pba`, where they were never written: they are read like others, and are zeroes.
    pub fn push_empty(&mut self, pba: Pba, blocks: u64, plan: &mut Plan) {
        if self.whither == Whither::Host {
            plan.zero_to_host(Blocks(self.host + self.blocks), Blocks(blocks));
        }
        self.push(pba, blocks, plan);
    }

    /// The next `blocks` read as zeroes.
    pub fn zeroes(&mut self, blocks: u64, plan: &mut Plan) {
        self.end(plan);
        plan.zero_to_host(Blocks(self.host), Blocks(blocks));
        self.host += blocks;
    }

    /// Plans what is still open; answers how many operations there were in all.
    #[inline]
    pub fn end(&mut self, plan: &mut Plan) -> u32 {
        if self.blocks > 0 {
            match self.whither {
                Whither::Host => {
                    plan.read_to_host(self.cause, Pba(self.pba), Blocks(self.blocks), Blocks(self.host))
                }
                Whither::Staged => plan.read_staged(self.cause, Pba(self.pba), Blocks(self.blocks)),
            };
            self.ops += 1;
            self.host += self.blocks;
            self.blocks = 0;
        }
        self.ops
    }
}

/// The blocks at the front of `span`, which has some, that are alike, and whether they are in `set`.
#[inline]
pub fn first_alike(set: &BlockSet, span: Range<u64>) -> (Range<u64>, bool) {
    if set.is_empty() {
        return (span, false);
    }
    match set.next_set(span.start).unwrap_or(span.end).min(span.end) {
        next if next > span.start => (span.start..next, false),
        _ => (span.start..set.next_unset(span.start).min(span.end), true),
    }
}

/// The parts of `span` that are not in `set`, ascending: what is allocated where the set holds what was discarded.
pub fn unset_runs(set: &BlockSet, mut span: Range<u64>, out: &mut dyn FnMut(Range<u64>)) {
    while !span.is_empty() {
        let (run, is_set) = first_alike(set, span.clone());
        span.start = run.end;
        if !is_set {
            out(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dir, MediaOp};

    #[test]
    fn what_is_between_the_members_of_a_set() {
        let runs = |members: &[Range<u64>]| {
            let (mut set, mut out) = (BlockSet::new(), Vec::new());
            for m in members {
                set.insert(m.clone());
            }
            unset_runs(&set, 10..20, &mut |r| out.push(r));
            out
        };
        assert_eq!(runs(&[]), vec![10..20]);
        assert_eq!(runs(&[0..12, 13..15, 20..30]), vec![12..13, 15..20]);
        assert_eq!(runs(&[5..15, 15..25]), Vec::<Range<u64>>::new());
    }

    #[test]
    fn neighbours_are_one_read_and_zeroes_part_them() {
        let mut plan = Plan::new(true, false);
        let mut r = ReadRuns::to_host(0);
        r.push(Pba(10), 2, &mut plan);
        r.push(Pba(12), 1, &mut plan);
        r.zeroes(4, &mut plan);
        r.push(Pba(13), 1, &mut plan);
        assert_eq!(r.end(&mut plan), 2);
        let op = |pba, blocks| MediaOp {
            dir: Dir::Read,
            cause: Cause::Host,
            pba: Pba(pba),
            blocks: Blocks(blocks),
        };
        assert_eq!(plan.ops(), [op(10, 3), op(13, 1)]);
        assert_eq!(plan.zeroes(), [(Blocks(3), Blocks(4))]);
    }
}
