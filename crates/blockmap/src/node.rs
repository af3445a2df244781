//! A node of the unit tree: one region or leaf, in whichever form is cheapest for what it holds.

use std::ops::Range;

use crate::entries::{
    clip, end, find, guess, heft, make_room, place, runs, sparse_bytes, splice_of, throughout,
};
use crate::payload::Payload;
use crate::prefetch::prefetch;
use crate::search::partition_near;

/// Units in a leaf (4 MiB).
pub(crate) const LEAF: usize = 1024;
/// Leaves in a region.
pub(crate) const FAN: usize = 32;
/// Units in a region (128 MiB). Offsets in a region fit 16 bits.
pub(crate) const REGION: usize = LEAF * FAN;
/// Entries of a region's sorted array before it splits: longer ones cost more to shift than they save.
const REGION_ENTRIES: usize = 512;
/// A fill of an empty node with at most so many entries starts a sorted array rather than a dense one.
const SHORT_FILL: usize = 16;

/// A plain array of a leaf's values.
pub(crate) struct Dense<P> {
    weight: u64,
    values: [P; LEAF],
}

/// One region or leaf. `size`, in units, comes from above: [`REGION`] or [`LEAF`].
pub(crate) enum Node<P: Payload> {
    /// The same value throughout.
    Const(P),
    /// Runs of units that have a value, ascending; never empty.
    Sparse(Vec<P::Entry>),
    /// Every unit of a leaf.
    Dense(Box<Dense<P>>),
    /// The leaves of a region.
    Split(Box<[Node<P>; FAN]>),
}

/// Entries of a sorted array beyond which another form is taken.
fn limit<P: Payload>(size: usize) -> usize {
    if size == LEAF { P::LEAF_ENTRIES } else { REGION_ENTRIES }
}

impl<P: Payload> Node<P> {
    /// Bytes on the heap below this node.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Const(_) => 0,
            Self::Sparse(entries) => sparse_bytes::<P>(entries),
            Self::Dense(_) => size_of::<Dense<P>>(),
            Self::Split(leaves) => {
                size_of::<[Self; FAN]>() + leaves.iter().map(Self::heap_bytes).sum::<usize>()
            }
        }
    }

    /// The sum of the weights of all units.
    fn weight(&self, size: usize) -> u64 {
        match self {
            Self::Const(v) => v.weight() * size as u64,
            Self::Sparse(entries) => entries.iter().map(heft::<P>).sum(),
            Self::Dense(dense) => dense.weight,
            Self::Split(leaves) => leaves.iter().map(|leaf| leaf.weight(LEAF)).sum(),
        }
    }

    /// Whether nothing is here.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Const(v) if *v == P::default())
    }

    /// The value at `offset`.
    #[inline]
    pub(crate) fn get(&self, offset: usize, size: usize) -> P {
        match self {
            Self::Const(v) => *v,
            Self::Sparse(entries) => {
                find::<P>(entries, offset, size).map_or(P::default(), |at| P::value(&entries[at]))
            }
            Self::Dense(dense) => dense.values[offset],
            Self::Split(leaves) => leaves[offset / LEAF].get(offset % LEAF, LEAF),
        }
    }

    /// The value at `offset` and the first offset behind it at which another may begin; from `until` on nobody looks.
    pub(crate) fn piece(&self, offset: usize, until: usize, size: usize) -> (usize, P) {
        match self {
            Self::Split(leaves) => {
                let base = offset - offset % LEAF;
                let (end, value) = leaves[offset / LEAF].piece_flat(offset % LEAF, until - base, LEAF);
                (base + end, value)
            }
            _ => self.piece_flat(offset, until, size),
        }
    }

    #[inline]
    fn piece_flat(&self, offset: usize, until: usize, size: usize) -> (usize, P) {
        match self {
            Self::Const(v) => (size, *v),
            Self::Sparse(entries) => match find::<P>(entries, offset, size) {
                Ok(at) => (end::<P>(&entries[at]), P::value(&entries[at])),
                Err(at) => (entries.get(at).map_or(size, P::offset), P::default()),
            },
            Self::Dense(dense) => {
                let value = dense.values[offset];
                let rest = &dense.values[offset..until.clamp(offset, LEAF)];
                (offset + rest.iter().take_while(|v| **v == value).count(), value)
            }
            Self::Split(_) => (offset + 1, self.get(offset, size)),
        }
    }

    /// Hints that `offset` of a region will be used soon. The node itself is read; where it is split, its leaf is only
    /// hinted, and [`prefetch_leaf`](Self::prefetch_leaf) goes on.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        match self {
            Self::Split(leaves) => prefetch(&leaves[..], offset / LEAF),
            _ => self.prefetch_flat(offset, REGION),
        }
    }

    /// The second step of that.
    #[inline]
    pub(crate) fn prefetch_leaf(&self, offset: usize) {
        if let Self::Split(leaves) = self {
            leaves[offset / LEAF].prefetch_flat(offset % LEAF, LEAF);
        }
    }

    #[inline]
    fn prefetch_flat(&self, offset: usize, size: usize) {
        match self {
            Self::Const(_) | Self::Split(_) => {}
            Self::Sparse(entries) => {
                // The line before the guess, and those that an insertion there would shift.
                let line = 64 / size_of::<P::Entry>();
                let from = guess(entries.len(), offset, size).saturating_sub(line);
                for lines in 0..6 {
                    prefetch(entries, from + lines * line);
                }
                prefetch(entries, entries.len() - 1);
            }
            Self::Dense(dense) => prefetch(&dense.values, offset),
        }
    }

    fn replace(&mut self, new: Self, mem: &mut usize) {
        *mem = *mem + new.heap_bytes() - self.heap_bytes();
        *self = new;
    }

    /// Turns one value or a sorted array into the next larger form.
    fn expand(&mut self, size: usize, mem: &mut usize) {
        let (base, entries) = match self {
            Self::Const(v) => (*v, &[][..]),
            Self::Sparse(entries) => (P::default(), entries.as_slice()),
            Self::Dense(_) | Self::Split(_) => return,
        };
        let new = if size == LEAF { Self::dense(base, entries) } else { Self::split(base, entries) };
        self.replace(new, mem);
    }

    fn dense(base: P, entries: &[P::Entry]) -> Self {
        let mut dense = Box::new(Dense { weight: base.weight() * LEAF as u64, values: [base; LEAF] });
        for e in entries {
            dense.values[P::offset(e)..end::<P>(e)].fill(P::value(e));
            dense.weight += heft::<P>(e);
        }
        Self::Dense(dense)
    }

    fn split(base: P, entries: &[P::Entry]) -> Self {
        Self::Split(Box::new(std::array::from_fn(|i| {
            let leaf = i * LEAF..(i + 1) * LEAF;
            let from = entries.partition_point(|e| end::<P>(e) <= leaf.start);
            let mine = entries[from..].iter().take_while(|e| P::offset(e) < leaf.end);
            let mine = mine.map(|e| clip::<P>(e, &leaf));
            let mine: Vec<_> =
                mine.map(|e| P::pack(P::offset(&e) - leaf.start, P::len(&e), P::value(&e))).collect();
            if mine.is_empty() {
                return Self::Const(base);
            }
            if let Some(value) = throughout::<P>(&mine, LEAF) {
                return Self::Const(value);
            }
            if mine.len() > P::LEAF_ENTRIES { Self::dense(base, &mine) } else { Self::Sparse(mine) }
        })))
    }

    /// Replaces the value at `offset` by `change` of it; answers with the old and the new one.
    #[inline]
    pub(crate) fn modify(
        &mut self,
        offset: usize,
        size: usize,
        mem: &mut usize,
        change: impl FnOnce(P) -> P,
    ) -> (P, P) {
        match self {
            Self::Split(leaves) => {
                let leaf = &mut leaves[offset / LEAF];
                let was_const = matches!(leaf, Self::Const(_));
                let result = leaf.modify_flat(offset % LEAF, LEAF, mem, change);
                if !was_const && matches!(leaf, Self::Const(_)) {
                    self.tidy(mem);
                }
                result
            }
            _ => self.modify_flat(offset, size, mem, change),
        }
    }

    #[inline]
    fn modify_flat(
        &mut self,
        offset: usize,
        size: usize,
        mem: &mut usize,
        change: impl FnOnce(P) -> P,
    ) -> (P, P) {
        match self {
            Self::Sparse(entries) => {
                let slot = find::<P>(entries, offset, size);
                let old = slot.map_or(P::default(), |at| P::value(&entries[at]));
                let new = change(old);
                match slot {
                    Ok(at) if new != P::default() && P::len(&entries[at]) == 1 => {
                        entries[at] = P::pack(offset, 1, new);
                    }
                    Err(at) if new != P::default() && entries.len() < limit::<P>(size) => {
                        if entries.len() == entries.capacity() {
                            let before = sparse_bytes::<P>(entries);
                            make_room(entries, entries.len() + 1);
                            *mem += sparse_bytes::<P>(entries) - before;
                        }
                        entries.insert(at, P::pack(offset, 1, new));
                    }
                    _ if new == old => {}
                    _ => _ = self.fill(offset..offset + 1, size, new, mem),
                }
                (old, new)
            }
            Self::Dense(dense) => {
                let old = dense.values[offset];
                let new = change(old);
                dense.values[offset] = new;
                dense.weight = dense.weight + new.weight() - old.weight();
                self.settle(mem);
                (old, new)
            }
            Self::Const(v) if *v == P::default() => {
                let new = change(P::default());
                if new != P::default() {
                    let entries = vec![P::pack(offset, 1, new)];
                    *mem += sparse_bytes::<P>(&entries);
                    // One value owns no memory that would have to be given back.
                    std::mem::forget(std::mem::replace(self, Self::Sparse(entries)));
                }
                (P::default(), new)
            }
            Self::Const(_) | Self::Split(_) => {
                let old = self.get(offset, size);
                let new = change(old);
                if new != old {
                    self.fill(offset..offset + 1, size, new, mem);
                }
                (old, new)
            }
        }
    }

    /// Gives all of `range` one value; answers with the weight that was there.
    pub(crate) fn fill(&mut self, range: Range<usize>, size: usize, value: P, mem: &mut usize) -> u64 {
        if range == (0..size) {
            let old = self.weight(size);
            self.replace(Self::Const(value), mem);
            return old;
        }
        match self {
            Self::Const(v) => {
                let base = *v;
                if base == value {
                    return value.weight() * range.len() as u64;
                }
                if base == P::default() && range.len() <= SHORT_FILL * P::RUN {
                    self.replace(Self::Sparse(runs(range, value).collect()), mem);
                    return 0;
                }
                self.expand(size, mem);
                self.fill(range, size, value, mem)
            }
            Self::Sparse(_) => self.fill_sparse(range, size, value, mem),
            Self::Dense(dense) => {
                let old = dense.values[range.clone()].iter().map(|v| v.weight()).sum();
                dense.weight = dense.weight + value.weight() * range.len() as u64 - old;
                dense.values[range].fill(value);
                self.settle(mem);
                old
            }
            Self::Split(leaves) => {
                let mut old = 0;
                let mut any_const = false;
                for i in range.start / LEAF..range.end.div_ceil(LEAF) {
                    let base = i * LEAF;
                    let part = range.start.max(base) - base..range.end.min(base + LEAF) - base;
                    old += leaves[i].fill(part, LEAF, value, mem);
                    any_const |= matches!(leaves[i], Self::Const(_));
                }
                if any_const {
                    self.tidy(mem);
                }
                old
            }
        }
    }

    /// The same of a sorted array.
    fn fill_sparse(&mut self, range: Range<usize>, size: usize, value: P, mem: &mut usize) -> u64 {
        let Self::Sparse(entries) = self else { return 0 };
        let from = place::<P>(entries, range.start, size);
        let to = from + partition_near(&entries[from..], 0, |e| P::offset(e) < range.end);
        let old = entries[from..to].iter().map(|e| heft::<P>(&clip::<P>(e, &range))).sum();
        let (cut, put) = splice_of(entries, from..to, range.clone(), value);
        let at = cut.start + put.clone().count();
        let len = at + entries.len() - cut.end;
        if len > limit::<P>(size) {
            self.expand(size, mem);
            return self.fill(range, size, value, mem);
        }
        let before = sparse_bytes::<P>(entries);
        make_room(entries, len);
        let behind = cut.end..entries.len();
        if len > entries.len() {
            entries.resize(len, P::pack(0, 1, value));
        }
        entries.copy_within(behind, at);
        entries.truncate(len);
        entries[cut.start..].iter_mut().zip(put).for_each(|(e, new)| *e = new);
        if entries.len() < entries.capacity() / 4 {
            entries.shrink_to(entries.len() * 3 / 2);
        }
        *mem = *mem + sparse_bytes::<P>(entries) - before;
        if let Some(value) = throughout::<P>(entries, size) {
            self.replace(Self::Const(value), mem);
        }
        old
    }

    /// Gives each unit of a leaf of a region a value of its own, none of which is the default; answers with the weights that were
    /// there and are there now. The form is the one that it would have if they came one by one.
    pub(crate) fn fill_leaf(
        &mut self,
        leaf: usize,
        mem: &mut usize,
        value: impl Fn(usize) -> P,
    ) -> (u64, u64) {
        self.expand(REGION, mem);
        let Self::Split(leaves) = self else { return (0, 0) };
        let old = leaves[leaf].weight(LEAF);
        let values: [P; LEAF] = std::array::from_fn(value);
        let weight = values.iter().map(|v| v.weight()).sum();
        leaves[leaf].replace(Self::Dense(Box::new(Dense { weight, values })), mem);
        (old, weight)
    }

    /// Takes a plain array that became full or nearly empty back to a cheaper form.
    #[inline]
    fn settle(&mut self, mem: &mut usize) {
        let Self::Dense(dense) = self else { return };
        if let Some(value) = P::saturated(dense.weight, LEAF) {
            self.replace(Self::Const(value), mem);
        } else if dense.weight < P::LEAF_ENTRIES as u64 / 4 {
            let held = dense.values.iter().enumerate().filter(|(_, v)| **v != P::default());
            let mut entries: Vec<_> = held.map(|(offset, v)| P::pack(offset, 1, *v)).collect();
            entries.shrink_to_fit();
            self.replace(
                if entries.is_empty() { Self::Const(P::default()) } else { Self::Sparse(entries) },
                mem,
            );
        }
    }

    /// Joins the leaves of a region if they became one value, or few entries.
    fn tidy(&mut self, mem: &mut usize) {
        let Self::Split(leaves) = self else { return };
        let mut total = 0;
        let mut uniform = true;
        for leaf in leaves.iter() {
            match leaf {
                Self::Const(v) => {
                    uniform &= matches!(&leaves[0], Self::Const(first) if first == v);
                    total += if *v == P::default() { 0 } else { LEAF };
                }
                Self::Sparse(entries) => {
                    uniform = false;
                    total += entries.len();
                }
                Self::Dense(_) | Self::Split(_) => return,
            }
        }
        if uniform {
            let value = leaves[0].get(0, LEAF);
            self.replace(Self::Const(value), mem);
        } else if total < REGION_ENTRIES / 4 {
            let mut joined = Vec::with_capacity(total);
            for (i, leaf) in leaves.iter().enumerate() {
                if let Self::Sparse(entries) = leaf {
                    let there = |e| P::pack(i * LEAF + P::offset(e), P::len(e), P::value(e));
                    joined.extend(entries.iter().map(there));
                }
            }
            self.replace(Self::Sparse(joined), mem);
        }
    }
}
