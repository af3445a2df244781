//! Runs of keys mapped to values that advance with the key.

use std::ops::Range;

use smrlab_units::{Blocks, Lba, Pba};

use crate::prefetch::prefetch;
use crate::search::partition_near;

/// Extents in a leaf at most.
const LEAF_MAX: usize = 64;
/// A leaf with fewer than this many is joined with its neighbour if both fit well into one.
const LEAF_MIN: usize = 16;
/// A leaf's room grows by this many.
const LEAF_STEP: usize = 8;
/// Leaves in a branch at most.
const BRANCH_MAX: usize = 512;
/// Keys in one extent at most; longer ones are kept in pieces.
const LEN_MAX: u64 = u32::MAX as u64;

/// A value of which the one for the next key follows.
pub trait Affine: Copy + PartialEq {
    /// The value `keys` further on.
    fn advance(self, keys: u64) -> Self;
}

impl Affine for u64 {
    fn advance(self, keys: u64) -> Self {
        self + keys
    }
}

impl Affine for Pba {
    fn advance(self, keys: u64) -> Self {
        self + Blocks(keys)
    }
}

impl Affine for Lba {
    fn advance(self, keys: u64) -> Self {
        self + Blocks(keys)
    }
}

/// A stretch of keys in the answer to a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<V> {
    /// The keys.
    pub range: Range<u64>,
    /// The first key's value; none if the keys are not mapped.
    pub value: Option<V>,
}

/// Packed to 20 bytes for an 8-byte value.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Extent<V: Copy> {
    start: u64,
    value: V,
    len: u32,
}

impl<V: Affine> Extent<V> {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    /// The part of it that lies in `range`, which it overlaps.
    fn cut(&self, range: &Range<u64>) -> Self {
        let start = self.start.max(range.start);
        let len = (self.end().min(range.end) - start) as u32;
        Self { start, value: { self.value }.advance(start - self.start), len }
    }

    /// Whether `next` carries on where this one ends.
    fn joins(&self, next: &Self) -> bool {
        self.end() == next.start
            && { self.value }.advance(u64::from(self.len)) == { next.value }
            && u64::from(self.len) + u64::from(next.len) <= LEN_MAX
    }
}

/// Up to five extents that take the place of others.
struct Pieces<V: Copy> {
    items: [Option<Extent<V>>; 5],
    len: usize,
}

impl<V: Affine> Pieces<V> {
    fn push(&mut self, piece: Extent<V>) {
        if let Some(Some(last)) = self.len.checked_sub(1).map(|i| &mut self.items[i])
            && last.joins(&piece)
        {
            last.len += piece.len;
            return;
        }
        self.items[self.len] = Some(piece);
        self.len += 1;
    }
}

type Leaf<V> = Vec<Extent<V>>;

/// Leaves, none empty, with the first key of each.
struct Branch<V: Copy> {
    firsts: Vec<u64>,
    leaves: Vec<Leaf<V>>,
}

/// A map from keys to [`Affine`] values, kept as extents: a tree of three levels with packed leaves.
///
/// Extents that carry on from each other are joined (but for the few that meet at the border of two leaves, which
/// only memory notices: lookups join them). About 23 bytes for each extent with an 8-byte value, at most 32.
pub struct ExtentMap<V: Copy> {
    firsts: Vec<u64>,
    branches: Vec<Branch<V>>,
    extents: usize,
    mapped: u64,
    leaf_bytes: usize,
}

impl<V: Affine> Default for ExtentMap<V> {
    fn default() -> Self {
        Self { firsts: Vec::new(), branches: Vec::new(), extents: 0, mapped: 0, leaf_bytes: 0 }
    }
}

/// The last of the ascending `firsts` that is not above `key`, or the first of all.
#[inline]
fn last_at_or_below(firsts: &[u64], key: u64) -> usize {
    let (Some(low), Some(high)) = (firsts.first(), firsts.last()) else { return 0 };
    let guess = even(key.saturating_sub(*low), high - low, firsts.len());
    partition_near(firsts, guess, |first| *first <= key).saturating_sub(1)
}

/// The share `part / whole` of `len`, for a guess.
#[inline]
fn even(part: u64, whole: u64, len: usize) -> usize {
    (part as f64 / whole as f64 * len as f64) as usize
}

fn leaf_bytes<V: Copy>(leaf: &Leaf<V>) -> usize {
    leaf.capacity() * size_of::<Extent<V>>()
}

impl<V: Affine> ExtentMap<V> {
    /// The map in which nothing is mapped.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps `range` to `value` and its successors, over whatever was mapped there.
    #[inline]
    pub fn insert(&mut self, range: Range<u64>, value: V) {
        self.replace(range, Some(value), |_, _| {});
    }

    /// Unmaps `range`.
    #[inline]
    pub fn remove(&mut self, range: Range<u64>) {
        self.replace(range, None, |_, _| {});
    }

    /// Maps (or unmaps) `range` and calls `displaced` for each piece that was mapped in it, ascending.
    pub fn replace(&mut self, range: Range<u64>, value: Option<V>, mut displaced: impl FnMut(Range<u64>, V)) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + LEN_MAX);
            let value = value.map(|v| v.advance(start - range.start));
            self.replace_piece(start..end, value, &mut displaced);
            start = end;
        }
    }

    fn replace_piece(
        &mut self,
        range: Range<u64>,
        value: Option<V>,
        displaced: &mut impl FnMut(Range<u64>, V),
    ) {
        let at = self.locate(range.start);
        if self.next_first(at).is_none_or(|next| range.end <= next) {
            return self.edit_leaf(at, &range, value, displaced);
        }
        // More than one leaf: clear them one by one, then there is room in one.
        let mut from = range.start;
        while from < range.end {
            let at = self.locate(from);
            let next = self.next_first(at).unwrap_or(u64::MAX).min(range.end);
            self.edit_leaf(at, &(from..next), None, displaced);
            from = next;
        }
        if value.is_some() {
            self.edit_leaf(self.locate(range.start), &range, value, displaced);
        }
    }

    /// The leaf in which `key` belongs.
    #[inline]
    fn locate(&self, key: u64) -> (usize, usize) {
        let branch = last_at_or_below(&self.firsts, key);
        (branch, self.branches.get(branch).map_or(0, |b| last_at_or_below(&b.firsts, key)))
    }

    /// The first key of the leaf behind.
    #[inline]
    fn next_first(&self, (branch, leaf): (usize, usize)) -> Option<u64> {
        let in_branch = self.branches.get(branch)?.firsts.get(leaf + 1);
        in_branch.or(self.firsts.get(branch + 1)).copied()
    }

    /// Where in its leaf `key` would be if extents lay evenly; the leaf itself is not read.
    #[inline]
    fn guess(&self, (branch, at): (usize, usize), key: u64) -> usize {
        let b = &self.branches[branch];
        let len = b.leaves[at].len();
        let first = b.firsts[at];
        match self.next_first((branch, at)) {
            Some(next) => even(key.saturating_sub(first), next - first, len),
            None => len,
        }
    }

    /// Replaces within one leaf; `range` reaches into no other.
    #[inline]
    fn edit_leaf(
        &mut self,
        (branch, at): (usize, usize),
        range: &Range<u64>,
        value: Option<V>,
        displaced: &mut impl FnMut(Range<u64>, V),
    ) {
        if self.branches.is_empty() {
            if let Some(value) = value {
                self.first_extent(range, value);
            }
            return;
        }
        let guess = self.guess((branch, at), range.start);
        let leaf = &mut self.branches[branch].leaves[at];
        let mut from = partition_near(leaf, guess, |e| e.end() <= range.start);
        let mut to = from;
        let mut pieces = Pieces { items: [None; 5], len: 0 };
        let new =
            value.map(|value| Extent { start: range.start, value, len: (range.end - range.start) as u32 });
        if let Some(first) = leaf.get(from)
            && first.start < range.start
        {
            pieces.push(first.cut(&(0..range.start)));
        } else if let (Some(new), Some(before)) = (&new, from.checked_sub(1))
            && leaf[before].joins(new)
        {
            from = before;
            to = before + 1;
            pieces.push(leaf[before]);
        }
        let overlapped = to;
        while leaf.get(to).is_some_and(|e| e.start < range.end) {
            let gone = leaf[to].cut(range);
            self.mapped -= u64::from(gone.len);
            displaced(gone.start..gone.end(), gone.value);
            to += 1;
        }
        if let Some(new) = new {
            self.mapped += u64::from(new.len);
            pieces.push(new);
        }
        if to > overlapped && leaf[to - 1].end() > range.end {
            pieces.push(leaf[to - 1].cut(&(range.end..u64::MAX)));
        } else if let (Some(new), Some(behind)) = (&new, leaf.get(to))
            && new.joins(behind)
        {
            pieces.push(*behind);
            to += 1;
        }
        let before = (leaf.len(), leaf_bytes(leaf));
        splice(leaf, from..to, &pieces);
        self.extents = self.extents + leaf.len() - before.0;
        self.leaf_bytes = self.leaf_bytes + leaf_bytes(leaf) - before.1;
        let len = leaf.len();
        if from == 0 && len > 0 {
            self.set_first((branch, at));
        }
        if len > LEAF_MAX {
            self.split_leaf((branch, at), from + pieces.len >= len);
        } else if len < LEAF_MIN && len < before.0 {
            self.shrink((branch, at));
        }
    }

    fn first_extent(&mut self, range: &Range<u64>, value: V) {
        let mut leaf = Vec::with_capacity(LEAF_STEP);
        let len = (range.end - range.start) as u32;
        leaf.push(Extent { start: range.start, value, len });
        self.leaf_bytes = leaf_bytes(&leaf);
        self.firsts.push(range.start);
        self.branches.push(Branch { firsts: vec![range.start], leaves: vec![leaf] });
        self.extents = 1;
        self.mapped = u64::from(len);
    }

    fn set_first(&mut self, (branch, at): (usize, usize)) {
        let b = &mut self.branches[branch];
        b.firsts[at] = b.leaves[at][0].start;
        self.firsts[branch] = b.firsts[0];
    }

    /// Halves a leaf; one that grows at its end keeps nearly all, so that ascending input fills its leaves.
    fn split_leaf(&mut self, (branch, at): (usize, usize), at_end: bool) {
        let b = &mut self.branches[branch];
        let leaf = &mut b.leaves[at];
        let before = leaf_bytes(leaf);
        let upper = leaf.split_off(if at_end { LEAF_MAX } else { LEAF_MAX / 2 });
        leaf.shrink_to(leaf.len() + if at_end { 0 } else { LEAF_STEP });
        self.leaf_bytes = self.leaf_bytes + leaf_bytes(leaf) + leaf_bytes(&upper) - before;
        b.firsts.insert(at + 1, upper[0].start);
        b.leaves.insert(at + 1, upper);
        if b.leaves.len() > BRANCH_MAX {
            let middle = if at_end { BRANCH_MAX } else { BRANCH_MAX / 2 };
            let (firsts, leaves) = (b.firsts.split_off(middle), b.leaves.split_off(middle));
            self.firsts.insert(branch + 1, firsts[0]);
            self.branches.insert(branch + 1, Branch { firsts, leaves });
        }
    }

    /// Takes a leaf that became empty away, or joins one that became small with the next.
    fn shrink(&mut self, (branch, at): (usize, usize)) {
        let b = &mut self.branches[branch];
        if b.leaves[at].is_empty() {
            self.leaf_bytes -= leaf_bytes(&b.leaves[at]);
            b.leaves.remove(at);
            b.firsts.remove(at);
        } else if at + 1 < b.leaves.len() && b.leaves[at].len() + b.leaves[at + 1].len() < LEAF_MAX * 3 / 4 {
            let upper = b.leaves.remove(at + 1);
            b.firsts.remove(at + 1);
            let leaf = &mut b.leaves[at];
            let before = leaf_bytes(leaf) + leaf_bytes(&upper);
            leaf.reserve_exact(upper.len());
            leaf.extend(upper);
            self.leaf_bytes = self.leaf_bytes + leaf_bytes(leaf) - before;
        } else {
            let leaf = &mut b.leaves[at];
            let before = leaf_bytes(leaf);
            leaf.shrink_to(leaf.len() + LEAF_STEP);
            self.leaf_bytes = self.leaf_bytes + leaf_bytes(leaf) - before;
        }
        if b.leaves.is_empty() {
            self.branches.remove(branch);
            self.firsts.remove(branch);
        } else {
            self.firsts[branch] = b.firsts[0];
        }
    }

    /// The value of `key`, if it is mapped.
    #[inline]
    pub fn get(&self, key: u64) -> Option<V> {
        let (branch, at) = self.locate(key);
        let leaf = self.branches.get(branch)?.leaves.get(at)?;
        let extent = leaf.get(partition_near(leaf, self.guess((branch, at), key), |e| e.end() <= key))?;
        (extent.start <= key).then(|| { extent.value }.advance(key - extent.start))
    }

    /// What `range` is mapped to: runs and gaps in turn that make up the whole of it, each as long as can be.
    #[inline]
    pub fn runs(&self, range: Range<u64>) -> Runs<'_, V> {
        let (branch, leaf) = self.locate(range.start);
        let extents = self.branches.get(branch).and_then(|b| b.leaves.get(leaf));
        let extent = extents.map_or(0, |extents| {
            partition_near(extents, self.guess((branch, leaf), range.start), |e| e.end() <= range.start)
        });
        Runs { map: self, branch, leaf, extent, range }
    }

    /// Everything mapped, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, V)> + '_ {
        self.runs(0..u64::MAX).filter_map(|run| run.value.map(|value| (run.range, value)))
    }

    /// How many extents are kept.
    pub fn len(&self) -> usize {
        self.extents
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.extents == 0
    }

    /// How many keys are mapped.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Hints that `key` will be asked for or changed some requests from now. Never changes an answer.
    #[inline]
    pub fn prefetch(&self, key: u64) {
        let (branch, at) = self.locate(key);
        if let Some(leaf) = self.branches.get(branch).and_then(|b| b.leaves.get(at)) {
            let line = 64 / size_of::<Extent<V>>().min(64);
            let guess = self.guess((branch, at), key);
            for lines in 0..5 {
                prefetch(leaf, (guess + line * lines).saturating_sub(2 * line));
            }
        }
    }

    /// Empties the map and frees its memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Bytes on the heap, exact but for what the allocator itself adds. Takes a step for each 32 768 extents.
    pub fn bytes(&self) -> usize {
        let branch = |b: &Branch<V>| {
            b.firsts.capacity() * size_of::<u64>() + b.leaves.capacity() * size_of::<Leaf<V>>()
        };
        self.leaf_bytes
            + self.firsts.capacity() * size_of::<u64>()
            + self.branches.capacity() * size_of::<Branch<V>>()
            + self.branches.iter().map(branch).sum::<usize>()
    }
}

/// Puts `pieces` in the place of `range`.
#[inline]
fn splice<V: Affine>(leaf: &mut Leaf<V>, range: Range<usize>, pieces: &Pieces<V>) {
    let pieces = pieces.items[..pieces.len].iter().flatten();
    let count = pieces.clone().count();
    let grown = leaf.len() + count - range.len();
    if grown > leaf.capacity() {
        leaf.reserve_exact(grown + LEAF_STEP - 1 - leaf.len());
    }
    let mut at = range.start;
    for piece in pieces {
        if at < range.end {
            leaf[at] = *piece;
        } else {
            leaf.insert(at, *piece);
        }
        at += 1;
    }
    if at < range.end {
        leaf.drain(at..range.end);
    }
}

/// The iterator of [`ExtentMap::runs`].
pub struct Runs<'a, V: Copy> {
    map: &'a ExtentMap<V>,
    branch: usize,
    leaf: usize,
    extent: usize,
    range: Range<u64>,
}

impl<V: Affine> Runs<'_, V> {
    /// The extent at the cursor, which moves on over the ends of leaves and branches.
    #[inline]
    fn peek(&mut self) -> Option<Extent<V>> {
        loop {
            let branch = self.map.branches.get(self.branch)?;
            match branch.leaves.get(self.leaf) {
                None => (self.branch, self.leaf, self.extent) = (self.branch + 1, 0, 0),
                Some(leaf) => match leaf.get(self.extent) {
                    None => (self.leaf, self.extent) = (self.leaf + 1, 0),
                    Some(extent) => return Some(*extent),
                },
            }
        }
    }
}

impl<V: Affine> Iterator for Runs<'_, V> {
    type Item = Run<V>;

    #[inline]
    fn next(&mut self) -> Option<Run<V>> {
        let Range { start, end } = self.range;
        if start >= end {
            return None;
        }
        let extent = self.peek().filter(|e| e.start < end);
        let gap_end = extent.map_or(end, |e| e.start);
        if gap_end > start {
            self.range.start = gap_end;
            return Some(Run { range: start..gap_end, value: None });
        }
        let extent = extent?;
        let value = { extent.value }.advance(start - extent.start);
        let mut stop = extent.end();
        self.extent += 1;
        while stop < end
            && let Some(next) = self.peek()
            && next.start == stop
            && { next.value } == value.advance(stop - start)
        {
            stop = next.end();
            self.extent += 1;
        }
        let stop = stop.min(end);
        self.range.start = stop;
        Some(Run { range: start..stop, value: Some(value) })
    }
}
