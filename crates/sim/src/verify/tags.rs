//! A tag for every block, in memory that goes with what was touched.
//!
//! Blocks that were written together have tags that count up, so that one tag stands for a whole 4 KiB unit wherever
//! the unit's edges lie within the write. Units whose blocks come from different writes are kept block by block.

use smrlab_blockmap::{UNIT_BLOCKS, UnitMap};
use std::collections::BTreeMap;
use std::ops::Range;

/// Never written.
pub const NEVER: u32 = 0;
/// Tags from here on do not count up: every block of a run has the same.
pub const CONSTANT: u32 = 1 << 31;
/// Within a unit map only: the unit is kept block by block.
const MIXED: u32 = CONSTANT;

/// Consecutive blocks whose tags count up from the first, or are all the same (see [`CONSTANT`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block.
    pub first: u64,
    /// Length.
    pub blocks: u64,
    /// Tag of the first block.
    pub tag: u32,
}

impl Run {
    fn end(&self) -> u64 {
        self.first + self.blocks
    }

    /// The part within `range`, if any.
    pub fn within(&self, range: &Range<u64>) -> Option<Self> {
        let (first, end) = (self.first.max(range.start), self.end().min(range.end));
        (first < end).then(|| Self { first, blocks: end - first, tag: nth(self.tag, first - self.first) })
    }
}

/// The tag `n` blocks behind one with `tag`.
pub fn nth(tag: u32, n: u64) -> u32 {
    if tag == NEVER || tag >= CONSTANT { tag } else { tag + n as u32 }
}

type Unit = [u32; UNIT_BLOCKS as usize];

/// See the [module](self).
#[derive(Default)]
pub struct Tags {
    units: UnitMap,
    mixed: BTreeMap<u64, Unit>,
}

impl Tags {
    fn unit(&self, unit: u64) -> Unit {
        match self.units.get(unit) {
            MIXED => self.mixed.get(&unit).copied().unwrap_or_default(),
            tag => std::array::from_fn(|i| nth(tag, i as u64)),
        }
    }

    fn set_unit(&mut self, unit: u64, tags: Unit) {
        let even = (0..tags.len()).all(|i| tags[i] == nth(tags[0], i as u64));
        let tag = if even { tags[0] } else { MIXED };
        if self.units.set(unit, tag) == MIXED && even {
            self.mixed.remove(&unit);
        }
        if !even {
            self.mixed.insert(unit, tags);
        }
    }

    /// The tag of a block.
    #[cfg(test)]
    pub fn get(&self, block: u64) -> u32 {
        self.unit(block / UNIT_BLOCKS)[(block % UNIT_BLOCKS) as usize]
    }

    /// Gives the blocks of `run` its tags.
    pub fn set(&mut self, run: Run) {
        let (mut at, end) = (run.first, run.end());
        if run.tag == NEVER {
            return self.forget(at..end);
        }
        while at < end {
            let unit = at / UNIT_BLOCKS;
            let stop = end.min((unit + 1) * UNIT_BLOCKS);
            let tag = nth(run.tag, at - run.first);
            if stop - at == UNIT_BLOCKS {
                if self.units.set(unit, tag) == MIXED {
                    self.mixed.remove(&unit);
                }
            } else {
                let mut tags = self.unit(unit);
                for b in at..stop {
                    tags[(b % UNIT_BLOCKS) as usize] = nth(tag, b - at);
                }
                self.set_unit(unit, tags);
            }
            at = stop;
        }
    }

    fn forget(&mut self, range: Range<u64>) {
        for unit in [range.start / UNIT_BLOCKS, range.end / UNIT_BLOCKS] {
            let part = range.start.max(unit * UNIT_BLOCKS)..range.end.min((unit + 1) * UNIT_BLOCKS);
            if !part.is_empty() && part.end - part.start < UNIT_BLOCKS {
                let mut tags = self.unit(unit);
                part.for_each(|b| tags[(b % UNIT_BLOCKS) as usize] = NEVER);
                self.set_unit(unit, tags);
            }
        }
        let whole = range.start.div_ceil(UNIT_BLOCKS)..range.end / UNIT_BLOCKS;
        if whole.start < whole.end {
            self.units.remove(whole.clone());
            while let Some((&unit, _)) = self.mixed.range(whole.clone()).next() {
                self.mixed.remove(&unit);
            }
        }
    }

    /// The runs of blocks in `range` that have a tag, appended to `out`; neighbours that go on are joined.
    pub fn runs(&self, range: Range<u64>, out: &mut Vec<Run>) {
        if range.is_empty() {
            return;
        }
        let from = out.len();
        let units = range.start / UNIT_BLOCKS..range.end.div_ceil(UNIT_BLOCKS);
        for (run, tag) in self.units.runs_in(units) {
            for unit in run {
                let first = unit * UNIT_BLOCKS;
                if tag != MIXED {
                    join(out, from, Run { first, blocks: UNIT_BLOCKS, tag }.within(&range));
                    continue;
                }
                for (i, tag) in self.unit(unit).into_iter().enumerate() {
                    let one = Run { first: first + i as u64, blocks: 1, tag };
                    join(out, from, one.within(&range).filter(|r| r.tag != NEVER));
                }
            }
        }
    }

    /// Bytes on the heap, nearly.
    pub fn bytes(&self) -> usize {
        self.units.bytes() + self.mixed.len() * (size_of::<Unit>() + 2 * size_of::<u64>())
    }
}

/// Appends a run to those from `from` on, or lengthens the last one where it goes on there.
fn join(out: &mut Vec<Run>, from: usize, run: Option<Run>) {
    let Some(run) = run else { return };
    if out.len() > from
        && let Some(last) = out.last_mut()
        && last.end() == run.first
        && nth(last.tag, last.blocks) == run.tag
    {
        last.blocks += run.blocks;
        return;
    }
    out.push(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_array() {
        let (mut tags, mut plain) = (Tags::default(), vec![NEVER; 512]);
        let mut rng = smrlab_units::rng::Rng::new(7);
        let mut next = |n: u64| rng.below(n);
        for step in 0..4000u32 {
            let first = next(500);
            let blocks = 1 + next(40).min(511 - first);
            let tag = match next(4) {
                0 => NEVER,
                1 => CONSTANT + 5 + step,
                _ => 1 + step * 1000,
            };
            tags.set(Run { first, blocks, tag });
            (0..blocks).for_each(|i| plain[(first + i) as usize] = nth(tag, i));
            let probe = next(480);
            let mut runs = Vec::new();
            tags.runs(probe..probe + 30, &mut runs);
            let mut seen = vec![NEVER; 512];
            for r in &runs {
                (0..r.blocks).for_each(|i| seen[(r.first + i) as usize] = nth(r.tag, i));
            }
            assert_eq!(seen[probe as usize..][..30], plain[probe as usize..][..30], "step {step}");
            assert_eq!(tags.get(probe), plain[probe as usize]);
        }
    }

    #[test]
    fn dense_units_cost_few_bytes_and_untouched_ones_none() {
        let mut tags = Tags::default();
        tags.set(Run { first: 3, blocks: 1 << 20, tag: 100 });
        assert!(tags.bytes() < (1 << 17) * 8, "{}", tags.bytes());
        let before = tags.bytes();
        tags.set(Run { first: 1 << 30, blocks: 1 << 28, tag: NEVER });
        assert!(tags.bytes() <= before + 4096, "{} after {before}", tags.bytes());
    }
}
