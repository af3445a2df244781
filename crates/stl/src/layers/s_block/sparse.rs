//! Where few items of a cache ring are valid: in a hot region most places are superseded long before the tail comes to
//! them, and memory is to follow what is cached.
//!
//! A leaf whose places are all invalid is left out, where they are equally long: the leaf behind it counts them until the
//! tail comes there. Two neighbours with few valid items become one leaf, in which one slot stands for all places between
//! two of these that are equally long. Never at the cursor, which adds to its leaf and the one before.

use super::blocks::{END, SBlocks};
use super::items::Items;
use super::leaves::{Gap, Item, LEAF, Leaf};

/// Valid items of a leaf that may be joined with a neighbour: two such leaves need 31 slots where places are equally long.
const SPARSE: u32 = 7;

impl Items {
    /// An item has no valid block any more, and is in no list.
    #[inline]
    pub(super) fn emptied(&mut self, id: u32) {
        let leaf = id as usize / LEAF;
        let live = &mut self.leaves[leaf].live;
        *live &= !(1 << (id as usize % LEAF));
        match *live {
            0 => self.leave_out(leaf),
            live if live.count_ones() <= SPARSE => self.sparse = leaf as u32,
            _ => {}
        }
    }

    fn at_cursor(&self, leaf: usize) -> bool {
        leaf == self.leaf || leaf == self.before
    }

    /// Leaves out a leaf of the circle whose places are all invalid and equally long.
    #[cold]
    pub(super) fn leave_out(&mut self, leaf: usize) {
        let Leaf { next, prev, gap, .. } = self.leaves[leaf];
        let (behind, count) = (self.leaves[next as usize].gap, self.leaves[leaf].all_places());
        let Some(length) = self.leaves[leaf].even().filter(|&n| gap.takes(n) && behind.takes(n)) else {
            return;
        };
        if self.at_cursor(leaf) {
            return;
        }
        self.leaves[next as usize].gap = Gap::new(gap.places() + count + behind.places(), length);
        self.leaves[next as usize].prev = prev;
        self.leaves[prev as usize].next = next;
        self.free(leaf);
    }

    /// Joins the leaf that has few valid items with a neighbour that has few, too.
    #[cold]
    #[inline(never)]
    pub(super) fn thin_leaf(&mut self, blocks: &mut SBlocks) {
        let leaf = std::mem::replace(&mut self.sparse, END) as usize;
        let Leaf { next, prev, .. } = self.leaves[leaf];
        let few = |i: u32| self.leaves[i as usize].live.count_ones() <= SPARSE && !self.at_cursor(i as usize);
        let (first, second) = match (few(leaf as u32), few(next), few(prev)) {
            (true, true, _) => (leaf, next as usize),
            (true, false, true) => (prev as usize, leaf),
            _ => return,
        };
        let gap = self.leaves[second].gap;
        self.leaves[first].compact();
        self.leaves[second].compact();
        let count = self.leaves[first].count();
        let needed = count + usize::from(gap.0 != 0) + self.leaves[second].count();
        if first == second || needed > LEAF {
            return;
        }
        if gap.0 != 0 {
            self.leaves[first].push_invalid(gap);
        }
        self.shift(second, 0..self.leaves[second].count(), first, blocks);
        self.leaves[first].compact();
        let behind = self.leaves[second].next;
        self.leaves[first].next = behind;
        self.leaves[behind as usize].prev = first as u32;
        self.free(second);
    }
}

impl Leaf {
    /// Has one slot stand for invalid places of one length that follow each other.
    fn compact(&mut self) {
        let (mut kept, count) = (0, self.count());
        for rank in 0..count {
            let o = self.order[rank];
            let slot = o & 31;
            let last = self.order[..kept].last().copied().filter(|l| l >> 5 == o >> 5).map(|l| l & 31);
            match last.filter(|&l| (self.live >> l | self.live >> slot) & 1 == 0) {
                Some(l) => {
                    self.set_places(l, self.places(l) + self.places(slot));
                    self.give_back(slot);
                    self.runs &= !(1 << slot);
                }
                None => {
                    self.order[kept] = o;
                    kept += 1;
                }
            }
        }
    }

    /// Adds invalid places behind its last item; there must be a free slot.
    fn push_invalid(&mut self, gap: Gap) {
        let (count, slot) = (self.count(), self.take());
        self.order[count] = slot | (gap.length() as u8 - 1) << 5;
        self.live &= !(1 << slot);
        self.items[usize::from(slot)] = Item::INVALID;
        self.set_places(slot, gap.places());
    }
}
