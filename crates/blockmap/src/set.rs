//! A set of blocks.

use std::ops::Range;

use crate::UNIT_BLOCKS;
use crate::node::REGION;
use crate::payload::Payload;
use crate::tree::UnitTree;

/// A bit for each block of the unit.
impl Payload for u8 {
    /// Offset, then length less 1, then mask.
    type Entry = u32;
    const RUN: usize = 1 << 9;
    /// At this many a sorted array is as large as the bitmap of 1 KiB, and that costs 7 bytes for each unit.
    const LEAF_ENTRIES: usize = 144;

    fn pack(offset: usize, len: usize, value: Self) -> u32 {
        (offset as u32) << 17 | (len as u32 - 1) << 8 | u32::from(value)
    }
    fn offset(entry: &u32) -> usize {
        (entry >> 17) as usize
    }
    fn len(entry: &u32) -> usize {
        (entry >> 8 & 0x1ff) as usize + 1
    }
    fn value(entry: &u32) -> Self {
        *entry as u8
    }
    fn weight(self) -> u64 {
        u64::from(self.count_ones())
    }
    fn saturated(weight: u64, units: usize) -> Option<Self> {
        (weight == units as u64 * UNIT_BLOCKS).then_some(u8::MAX)
    }
}

/// A set of 512-byte blocks over a huge space. Blocks are below 2^43.
///
/// Memory: at most 16 bytes for each 4 KiB unit touched where they are scattered over a drive, at most 8 where they are
/// dense (0.25 in a bitmap, nothing for regions that are full); see the crate's page.
#[derive(Default)]
pub struct BlockSet {
    tree: UnitTree<u8>,
}

/// The bits of `unit` that lie in `range`.
#[inline]
fn mask(unit: u64, range: &Range<u64>) -> u8 {
    let base = unit * UNIT_BLOCKS;
    let low = range.start.saturating_sub(base);
    let high = UNIT_BLOCKS - (range.end - base).min(UNIT_BLOCKS);
    (u8::MAX << low) & (u8::MAX >> high)
}

impl BlockSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `range`; answers how many of its blocks are new.
    #[inline]
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        let unit = range.start / UNIT_BLOCKS;
        if range.start < range.end && range.end <= (unit + 1) * UNIT_BLOCKS {
            let mask = mask(unit, &range);
            let (old, _) = self.tree.modify(unit, |old| old | mask);
            return (mask & !old).weight();
        }
        let before = self.tree.weight();
        self.change(&range, u8::MAX);
        self.tree.weight() - before
    }

    /// Removes `range`; answers how many of its blocks were there.
    #[inline]
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let before = self.tree.weight();
        self.change(&range, 0);
        before - self.tree.weight()
    }

    fn change(&mut self, range: &Range<u64>, value: u8) {
        if range.is_empty() {
            return;
        }
        let (first, last) = (range.start / UNIT_BLOCKS, (range.end - 1) / UNIT_BLOCKS);
        let whole = range.start.div_ceil(UNIT_BLOCKS)..range.end / UNIT_BLOCKS;
        let mut edge = |unit| {
            let mask = mask(unit, range);
            self.tree.modify(unit, |old| old & !mask | value & mask);
        };
        if first < whole.start {
            edge(first);
        }
        if last >= whole.end.max(whole.start) {
            edge(last);
        }
        if !whole.is_empty() {
            self.tree.fill(whole, value);
        }
    }

    /// How many blocks are in the set.
    pub fn count(&self) -> u64 {
        self.tree.weight()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Whether `block` is in the set.
    #[inline]
    pub fn contains(&self, block: u64) -> bool {
        self.tree.get(block / UNIT_BLOCKS) >> (block % UNIT_BLOCKS) & 1 == 1
    }

    /// Whether any block of `range` is in the set.
    #[inline]
    pub fn contains_any(&self, range: Range<u64>) -> bool {
        self.find(range.clone(), true) < range.end
    }

    /// Whether every block of `range` is in the set (true of an empty range).
    #[inline]
    pub fn contains_all(&self, range: Range<u64>) -> bool {
        self.find(range.clone(), false) >= range.end
    }

    /// How many blocks of `range` are in the set.
    #[inline]
    pub fn count_in(&self, range: Range<u64>) -> u64 {
        let unit = range.start / UNIT_BLOCKS;
        if range.start < range.end && range.end <= (unit + 1) * UNIT_BLOCKS {
            return (self.tree.get(unit) & mask(unit, &range)).weight();
        }
        self.count_in_units(range)
    }

    fn count_in_units(&self, range: Range<u64>) -> u64 {
        let mut count = 0;
        let mut unit = range.start / UNIT_BLOCKS;
        while unit * UNIT_BLOCKS < range.end {
            let inside = mask(unit, &range);
            let (end, value) = self.tree.piece(unit, range.end.div_ceil(UNIT_BLOCKS));
            count += (value & inside).weight();
            // The units behind the first share its value; the last of them may lie in the range in part.
            let whole = end.min(range.end / UNIT_BLOCKS).max(unit + 1);
            count += value.weight() * (whole - unit - 1);
            unit = whole;
        }
        count
    }

    /// The first block of `range` that is (`wanted`) or is not in the set; `range.end` if none.
    fn find(&self, range: Range<u64>, wanted: bool) -> u64 {
        self.look().find(range, wanted)
    }

    /// To ask of ranges that lie near each other, the later ones behind the earlier ones.
    #[inline]
    pub fn look(&self) -> Look<'_> {
        Look { tree: &self.tree, known: 0..0, value: 0 }
    }

    /// The first block in the set at `block` or behind it.
    pub fn next_set(&self, block: u64) -> Option<u64> {
        let found = self.find(block..MAX_BLOCK, true);
        (found < MAX_BLOCK).then_some(found)
    }

    /// The first block not in the set at `block` or behind it.
    pub fn next_unset(&self, block: u64) -> u64 {
        self.find(block..MAX_BLOCK, false)
    }

    /// The maximal runs of blocks in the set, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.runs_in(0..MAX_BLOCK)
    }

    /// The maximal runs of blocks in the set that lie in `range` (cut at its ends), ascending.
    pub fn runs_in(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let (mut look, mut at) = (self.look(), range.start);
        std::iter::from_fn(move || {
            let run = look.first_run(at..range.end)?;
            at = run.end;
            Some(run)
        })
    }

    /// Hints that `block` will be asked for or changed some requests from now. Never changes an answer.
    #[inline]
    pub fn prefetch(&self, block: u64) {
        self.tree.prefetch(block / UNIT_BLOCKS);
    }

    /// Hints as [`prefetch`](Self::prefetch) at `block`, and at `other` where that is kept elsewhere.
    #[inline]
    pub fn prefetch_both(&self, block: u64, other: u64) {
        const NEAR: u64 = REGION as u64 * UNIT_BLOCKS;
        self.prefetch(block);
        if block / NEAR != other / NEAR {
            self.prefetch(other);
        }
    }

    /// Empties the set and frees its memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Bytes on the heap, exact but for what the allocator itself adds and one empty page at the most.
    pub fn bytes(&self) -> usize {
        self.tree.bytes()
    }
}

/// A look at a set that goes on upwards: a unit in which one run of blocks ends and another begins is searched for once.
pub struct Look<'a> {
    tree: &'a UnitTree<u8>,
    /// The blocks of the units that were found last, and what each of these has.
    known: Range<u64>,
    value: u8,
}

impl Look<'_> {
    /// Whether any block of `range` is in the set.
    #[inline]
    pub fn contains_any(&mut self, range: Range<u64>) -> bool {
        self.find(range.clone(), true) < range.end
    }

    /// Whether every block of `range` is in the set.
    #[inline]
    pub fn contains_all(&mut self, range: Range<u64>) -> bool {
        self.find(range.clone(), false) >= range.end
    }

    /// The first of the maximal runs of blocks in the set that lie in `range`, cut at its ends.
    #[inline]
    pub fn first_run(&mut self, range: Range<u64>) -> Option<Range<u64>> {
        let start = self.find(range.clone(), true);
        let end = self.find(start..range.end, false);
        (start < range.end).then_some(start..end)
    }

    /// As [`BlockSet::find`].
    fn find(&mut self, range: Range<u64>, wanted: bool) -> u64 {
        let mut at = range.start;
        while at < range.end {
            let unit = at / UNIT_BLOCKS;
            if !self.known.contains(&at) {
                let (end, value) = self.tree.piece(unit, range.end.div_ceil(UNIT_BLOCKS));
                (self.known, self.value) = (unit * UNIT_BLOCKS..end.saturating_mul(UNIT_BLOCKS), value);
            }
            // Mostly units have all of their blocks or none.
            at = match if wanted { self.value } else { !self.value } {
                u8::MAX => return at,
                0 => self.known.end,
                bits => match bits & mask(unit, &(at..range.end)) {
                    0 => (unit + 1) * UNIT_BLOCKS,
                    inside => return unit * UNIT_BLOCKS + u64::from(inside.trailing_zeros()),
                },
            };
        }
        range.end
    }
}

/// No block is at or above this.
const MAX_BLOCK: u64 = 1 << 43;
