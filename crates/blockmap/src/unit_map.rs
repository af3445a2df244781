//! A tag for each unit.

use std::ops::Range;

use crate::payload::Payload;
use crate::tree::UnitTree;

impl Payload for u32 {
    /// Offset, then the tag's low and high half: 6 bytes, aligned to 2.
    type Entry = [u16; 3];
    const RUN: usize = 1;
    /// At this many the plain array of 4 KiB costs 14 bytes for each unit.
    const LEAF_ENTRIES: usize = 288;

    fn pack(offset: usize, _len: usize, value: Self) -> [u16; 3] {
        [offset as u16, value as u16, (value >> 16) as u16]
    }
    fn offset(entry: &[u16; 3]) -> usize {
        usize::from(entry[0])
    }
    fn len(_entry: &[u16; 3]) -> usize {
        1
    }
    fn value(entry: &[u16; 3]) -> Self {
        u32::from(entry[1]) | u32::from(entry[2]) << 16
    }
    fn weight(self) -> u64 {
        u64::from(self != 0)
    }
    fn saturated(_weight: u64, _units: usize) -> Option<Self> {
        None
    }
}

/// A sparse map from the index of a 4 KiB unit (below 2^40) to a tag; 0 is "absent".
///
/// Memory: at most 5 bytes for each unit where they are dense, 16 where they are scattered over a drive, nothing for
/// units without a tag; see the crate's page.
#[derive(Default)]
pub struct UnitMap {
    tree: UnitTree<u32>,
}

impl UnitMap {
    /// The map without any tag.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tag of `unit`; 0 if it has none.
    #[inline]
    pub fn get(&self, unit: u64) -> u32 {
        self.tree.get(unit)
    }

    /// Gives `unit` a tag (0 takes it away); answers with the one before.
    #[inline]
    pub fn set(&mut self, unit: u64, tag: u32) -> u32 {
        self.tree.modify(unit, |_| tag).0
    }

    /// Gives each unit of `range` a tag of its own, none of which is 0. Long ranges take a fraction of the time of one unit after the
    /// other, and leave the same map.
    pub fn set_each(&mut self, range: Range<u64>, tag: impl Fn(u64) -> u32) {
        self.tree.fill_each(range, tag);
    }

    /// Takes the tag from every unit of `range`; answers how many had one.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        self.tree.fill(range, 0)
    }

    /// The tags in `range`, ascending, as runs of units that share one. Units without a tag are passed over, and cost
    /// nothing where there are none at all.
    pub fn runs_in(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, u32)> + '_ {
        let mut at = range.start;
        std::iter::from_fn(move || {
            while at < range.end {
                let (end, tag) = self.tree.piece(at, range.end);
                let run = at..end.min(range.end);
                at = run.end;
                if tag != 0 {
                    return Some((run, tag));
                }
            }
            None
        })
    }

    /// How many units have a tag.
    pub fn len(&self) -> u64 {
        self.tree.weight()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hints that `unit` will be asked for or changed some requests from now. Never changes an answer.
    #[inline]
    pub fn prefetch(&self, unit: u64) {
        self.tree.prefetch(unit);
    }

    /// Empties the map and frees its memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Bytes on the heap, exact but for what the allocator itself adds and one empty page at the most.
    pub fn bytes(&self) -> usize {
        self.tree.bytes()
    }
}
