//! The places in use of a cache ring, in the order of the ring, kept such that turning the ring touches none of them.
//!
//! What is valid at the tail is copied to the head, so nearly everything comes round unchanged and in its old order. Items
//! therefore stand in a circle of leaves with a cursor where head and tail meet: an item that was copied is one that the
//! cursor has passed, and it keeps its number. Where it lies follows from where its leaf begins and from the lengths of
//! the items before it. A new item goes to the cursor, mostly into the slot of the one whose place was freed for it; a full
//! leaf is split, and one that stays nearly empty is joined with the one before. Of invalid places little is kept: see
//! [`sparse`](super::sparse).

use super::blocks::{END, NONE, SBlocks};
use super::leaves::{Gap, Item, LEAF, Leaf, Leaves, place};
use super::tables::Tables;
use crate::parts::ring::Ring;

/// Two leaves with so few items become one when the cursor leaves the second.
const JOINED: usize = 24;

/// Where a new item goes, and where the first item lies that the cursor has not passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub head: u64,
    pub tail: u64,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    pub(super) leaves: Leaves,
    /// The cursor's leaf, and how many of its items were passed.
    pub(super) leaf: usize,
    rank: usize,
    /// The leaf before it in the circle, itself if it is the only one.
    pub(super) before: usize,
    /// The first leaf that is not in use, or [`END`].
    unused: u32,
    /// A leaf with few valid items, or [`END`].
    pub(super) sparse: u32,
    /// Where an S-block has many items.
    pub tables: Tables,
}

impl Items {
    pub(super) fn new() -> Self {
        Self { unused: END, sparse: END, ..Self::default() }
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &Item {
        &self.leaves[id as usize / LEAF].items[id as usize % LEAF]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut Item {
        &mut self.leaves[id as usize / LEAF].items[id as usize % LEAF]
    }

    /// The valid blocks of an item, as [`Item::valid`]; of [`NONE`] none.
    #[inline]
    pub(super) fn valid(&self, id: u32) -> u8 {
        if id == NONE { 0 } else { self.get(id).valid() }
    }

    /// Places at the tail that are in no leaf any more.
    #[inline]
    fn gap(&self) -> Gap {
        match self.leaves.get(self.leaf) {
            Some(here) if self.rank >= here.count() => self.leaves[here.next as usize].gap,
            _ => Gap(0),
        }
    }

    /// The S-block of a valid item.
    pub(super) fn owner(&self, id: u32) -> u32 {
        let mut at = id;
        while at & END == 0 {
            at = self.get(at).next;
        }
        at & !END
    }

    /// Hints that an item and its position will be looked at soon.
    #[inline]
    pub(super) fn fetch(&self, id: u32) {
        if let Some(leaf) = self.leaves.get(id as usize / LEAF) {
            smrlab_blockmap::prefetch(&leaf.items, id as usize % LEAF);
            smrlab_blockmap::prefetch(&leaf.order, 0);
        }
    }

    /// Leaf and rank of the item at the tail.
    #[inline]
    fn at_tail(&self) -> Option<(usize, usize)> {
        let here = self.leaves.get(self.leaf)?;
        if self.rank < here.count() {
            return Some((self.leaf, self.rank));
        }
        let next = here.next as usize;
        (self.leaves[next].used != 0 && self.leaves[next].gap.0 == 0).then_some((next, 0))
    }

    /// The item at the tail and its length; [`NONE`] for the item is an invalid place.
    #[inline]
    pub(super) fn tail(&self) -> Option<(u32, u64)> {
        let here = self.leaves.get(self.leaf)?;
        if self.rank < here.count() {
            return Some(place(self.leaf, here.order[self.rank]));
        }
        let next = &self.leaves[here.next as usize];
        match next.gap {
            Gap(0) => (next.used != 0).then(|| place(here.next as usize, next.order[0])),
            gap => Some((NONE, gap.length())),
        }
    }

    /// The valid blocks of the item at the tail, as [`Item::valid`], and its length.
    #[inline]
    pub(super) fn front(&self) -> Option<(u8, u64)> {
        let mut leaf = self.leaves.get(self.leaf)?;
        let mut rank = self.rank;
        if rank >= leaf.count() {
            (leaf, rank) = (&self.leaves[leaf.next as usize], 0);
            match leaf.gap {
                Gap(0) if leaf.used == 0 => return None,
                Gap(0) => {}
                gap => return Some((0, gap.length())),
            }
        }
        let order = leaf.order[rank];
        Some((leaf.items[usize::from(order & 31)].valid(), u64::from(order >> 5) + 1))
    }

    /// All items with their lengths from the tail to the head; [`NONE`] for an item is an invalid place.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let here = self.leaves.get(self.leaf);
        let others =
            std::iter::successors(here.map(|l| l.next as usize), |&i| Some(self.leaves[i].next as usize));
        let others = others.take_while(|&i| i != self.leaf);
        let count = here.map_or(0, Leaf::count);
        let unpassed = here.map(|_| (self.leaf, self.rank..count));
        let passed = here.map(|_| (self.leaf, 0..self.rank));
        let all = unpassed.into_iter().chain(others.map(|i| (i, 0..self.leaves[i].count()))).chain(passed);
        all.flat_map(move |(leaf, ranks)| {
            let gap = if leaf == self.leaf { Gap(0) } else { self.leaves[leaf].gap };
            let before = (0..gap.places()).map(move |_| (NONE, gap.length()));
            let here = &self.leaves[leaf];
            let places = move |&o: &u8| (0..here.places(o & 31)).map(move |_| place(leaf, o));
            before.chain(here.order[ranks].iter().flat_map(places))
        })
    }

    /// The position of an item, perhaps a turn too far; `tail` is that of the first item that was not passed.
    #[inline]
    pub(super) fn position(&self, id: u32, tail: u64) -> u64 {
        let (i, slot) = (id as usize / LEAF, (id % LEAF as u32) as u8);
        let leaf = &self.leaves[i];
        let rank = leaf.rank(slot);
        debug_assert!(rank < leaf.count(), "item {id} is not there");
        if i == self.leaf && rank >= self.rank {
            tail + leaf.length(self.rank..rank)
        } else {
            u64::from(leaf.base) + leaf.length(0..rank)
        }
    }

    /// Puts an item at the head; answers its number.
    #[inline]
    pub(super) fn push(&mut self, item: Item, len: u64, ends: Ends, blocks: &mut SBlocks) -> u32 {
        if self.leaves.is_empty() {
            self.leaf = self.new_leaf();
            self.before = self.leaf;
            let only = self.leaf as u32;
            (self.leaves[self.leaf].next, self.leaves[self.leaf].prev) = (only, only);
        }
        if self.sparse != END {
            self.thin_leaf(blocks);
        }
        if self.leaves[self.leaf].used == u32::MAX {
            self.split(ends.tail, blocks);
        }
        let leaf = &mut self.leaves[self.leaf];
        if self.rank == 0 {
            leaf.base = ends.head as u32;
        }
        let (count, slot) = (leaf.count(), leaf.take());
        leaf.order.copy_within(self.rank..count, self.rank + 1);
        leaf.order[self.rank] = slot | (len as u8 - 1) << 5;
        leaf.live = leaf.live & !(1 << slot) | u32::from(item.mask != 0) << slot;
        self.rank += 1;
        leaf.items[usize::from(slot)] = item;
        (self.leaf * LEAF) as u32 + u32::from(slot)
    }

    /// Passes items from the tail on that are valid as a whole, up to `most` blocks; answers how many blocks.
    #[inline]
    pub(super) fn pass_whole(&mut self, most: u64, ring: &Ring, blocks: &mut SBlocks) -> u64 {
        let mut passed = 0;
        while let Some((leaf, from)) = self.at_tail() {
            let Leaf { order, items, .. } = &self.leaves[leaf];
            let order = &order[..self.leaves[leaf].count()];
            let (mut rank, before) = (from, passed);
            while let Some(&o) = order.get(rank) {
                let (len, item) = (u64::from(o >> 5) + 1, &items[usize::from(o & 31)]);
                let whole = ((1 << len) - 1) << item.first;
                if u64::from(item.mask) != whole || passed + len > most {
                    break;
                }
                passed += len;
                rank += 1;
            }
            let whole = rank == order.len();
            if rank > from {
                self.pass(rank - from, ring.wrap(ring.head() + before), blocks);
            }
            if !whole {
                break;
            }
        }
        passed
    }

    /// Passes `n` items of one leaf, which are at `head` then.
    #[inline]
    pub(super) fn pass(&mut self, n: usize, head: u64, blocks: &mut SBlocks) {
        self.enter(blocks);
        if self.rank == 0 {
            self.leaves[self.leaf].base = head as u32;
        }
        self.rank += n;
    }

    /// Takes the item at the tail away, or the invalid place.
    #[inline]
    pub(super) fn pop(&mut self, blocks: &mut SBlocks) {
        let gap = self.gap();
        if gap.0 != 0 {
            let next = self.leaves[self.leaf].next as usize;
            self.leaves[next].gap = Gap::new(gap.places() - 1, gap.0 & 7);
            return;
        }
        self.enter(blocks);
        let leaf = &mut self.leaves[self.leaf];
        let (count, slot) = (leaf.count(), leaf.order[self.rank] & 31);
        if leaf.runs >> slot & 1 == 1 {
            return leaf.set_places(slot, leaf.places(slot) - 1);
        }
        leaf.give_back(slot);
        leaf.order.copy_within(self.rank + 1..count, self.rank);
    }

    /// The item at the tail has another length.
    pub(super) fn resize_tail(&mut self, len: u64, blocks: &mut SBlocks) {
        self.enter(blocks);
        let order = &mut self.leaves[self.leaf].order[self.rank];
        *order = *order & 31 | (len as u8 - 1) << 5;
    }

    /// If all items of the cursor's leaf were passed: goes on to the next leaf.
    #[inline]
    fn enter(&mut self, blocks: &mut SBlocks) {
        let here = &self.leaves[self.leaf];
        if self.rank < here.count() {
            return;
        }
        let next = here.next as usize;
        // The leaf behind the next one will be needed some requests later.
        let later = self.leaves[next].next as usize;
        self.leaves.fetch(later);
        let together = here.count() + self.leaves[self.before].count();
        if self.before != self.leaf && (here.used == 0 || together <= JOINED) {
            self.join(blocks);
            (self.leaf, self.rank) = (next, 0);
            return;
        }
        let left = std::mem::replace(&mut self.before, self.leaf);
        (self.leaf, self.rank) = (next, 0);
        // It may have been emptied while the cursor was near.
        if self.leaves[left].live == 0 {
            self.leave_out(left);
        }
    }

    /// Appends the items of the cursor's leaf to the leaf before, whose place in the ring they follow.
    fn join(&mut self, blocks: &mut SBlocks) {
        let gone = self.leaf;
        let count = self.leaves[gone].count();
        self.shift(gone, 0..count, self.before, blocks);
        let next = self.leaves[gone].next;
        self.leaves[self.before].next = next;
        self.leaves[next as usize].prev = self.before as u32;
        self.free(gone);
    }

    /// A leaf is in the circle no longer.
    pub(super) fn free(&mut self, leaf: usize) {
        self.leaves[leaf].next = self.unused;
        self.unused = leaf as u32;
        if self.sparse == leaf as u32 {
            self.sparse = END;
        }
    }

    /// Makes room in the cursor's leaf, which is full, by moving the smaller one of its parts to a new leaf.
    #[cold]
    fn split(&mut self, tail: u64, blocks: &mut SBlocks) {
        let (old, new) = (self.leaf, self.new_leaf());
        if self.rank <= LEAF / 2 {
            self.leaves[new].base = self.leaves[old].base;
            self.leaves[old].base = tail as u32;
            self.link_behind(self.before, new);
            self.leaf = new;
            self.shift(old, 0..self.rank, new, blocks);
            return;
        }
        self.leaves[new].base = tail as u32;
        self.link_behind(old, new);
        if self.before == old {
            self.before = new;
        }
        self.shift(old, self.rank..LEAF, new, blocks);
        if self.rank == LEAF {
            (self.before, self.leaf, self.rank) = (old, new, 0);
        }
    }

    /// Puts a leaf into the circle, behind another.
    fn link_behind(&mut self, before: usize, leaf: usize) {
        let next = self.leaves[before].next;
        (self.leaves[leaf].next, self.leaves[leaf].prev) = (next, before as u32);
        self.leaves[before].next = leaf as u32;
        self.leaves[next as usize].prev = leaf as u32;
    }

    /// Moves items of leaf `from` to the end of leaf `to`.
    pub(super) fn shift(
        &mut self,
        from: usize,
        ranks: std::ops::Range<usize>,
        to: usize,
        blocks: &mut SBlocks,
    ) {
        for rank in ranks.clone() {
            let order = self.leaves[from].order[rank];
            let (count, slot) = (self.leaves[to].count(), self.leaves[to].take());
            let (old, new) = (place(from, order).0, (to * LEAF) as u32 + u32::from(slot));
            self.leaves[to].order[count] = slot | order & !31;
            self.leaves[from].give_back(order & 31);
            let live = self.leaves[from].live >> (order & 31) & 1;
            self.leaves[from].live &= !(1 << (order & 31));
            self.leaves[to].live = self.leaves[to].live & !(1 << slot) | live << slot;
            let run = self.leaves[from].runs >> (order & 31) & 1;
            self.leaves[from].runs &= !(1 << (order & 31));
            self.leaves[to].runs |= run << slot;
            *self.get_mut(new) = *self.get(old);
            if self.get(new).mask != 0 {
                self.relink(old, new, blocks);
            }
        }
        self.leaves[from].order.copy_within(ranks.end.., ranks.start);
    }

    /// Whatever led to item `old` leads to `new`.
    fn relink(&mut self, old: u32, new: u32, blocks: &mut SBlocks) {
        let (owner, unit) = (self.owner(new), u64::from(self.get(new).unit));
        let head = self.head_mut(blocks.at_mut(owner), unit);
        if *head == old {
            *head = new;
            return;
        }
        let mut at = *head;
        while self.get(at).next != old {
            at = self.get(at).next;
        }
        self.get_mut(at).next = new;
    }

    fn new_leaf(&mut self) -> usize {
        if self.unused == END {
            return self.leaves.push();
        }
        let leaf = self.unused as usize;
        self.unused = self.leaves[leaf].next;
        self.leaves[leaf] = Leaf::EMPTY;
        leaf
    }

    pub(super) fn bytes(&self) -> u64 {
        self.leaves.bytes() + self.tables.bytes()
    }
}
