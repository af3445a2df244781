//! Which items belong to an S-block: one list while they are few, and lists by unit, in a table of heads, when they are
//! more. Either way what is asked of a unit is answered by a few items.

use super::blocks::{END, NONE, SBlock};
use super::items::Items;
use super::tables::{SIZES, Table};

/// Items for each list of a table beyond which it gets more lists: a table takes 2 to 8 bytes an item.
const FULL: u64 = 2;
/// Bits of [`SBlock::filter`] that are set when a list has some five items.
const LONG: u32 = 8;

impl Items {
    /// The list in which the items of a unit are: the first item's number, or something with [`END`].
    #[inline]
    pub(super) fn head(&self, s: &SBlock, unit: u64) -> u32 {
        Table::at(s.first).map_or(s.first, |t| self.tables.head(t, unit))
    }

    /// The same, to change it.
    #[inline]
    pub(super) fn head_mut<'a>(&'a mut self, s: &'a mut SBlock, unit: u64) -> &'a mut u32 {
        match Table::at(s.first) {
            None => &mut s.first,
            Some(t) => self.tables.head_mut(t, unit),
        }
    }

    /// How many lists there are; those of units that follow each other follow each other too.
    #[inline]
    pub(super) fn lists(&self, s: &SBlock) -> u64 {
        Table::at(s.first).map_or(1, |t| t.lists() as u64)
    }

    /// The lists in which units of an S-block from `first` to `last` may be, each by one unit of it.
    #[inline]
    pub(super) fn lists_of(&self, s: &SBlock, first: u64, last: u64) -> std::ops::Range<u64> {
        first..(last + 1).min(first + self.lists(s))
    }

    /// Puts item `id` before all others of its list.
    #[inline]
    pub(super) fn link(&mut self, s: &mut SBlock, id: u32) {
        if s.first & END == 0 && s.filter.count_ones() >= LONG {
            self.spread(s, 0);
        }
        let unit = u64::from(self.get(id).unit);
        let head = self.head_mut(s, unit);
        let next = std::mem::replace(head, id);
        if next & END == 0 {
            self.get_mut(id).next = next;
        }
        if Table::at(s.first).is_none() {
            s.has(unit);
        }
        self.counted(s);
    }

    /// There is one item more in the lists.
    #[inline]
    pub(super) fn counted(&mut self, s: &mut SBlock) {
        let Some(t) = Table::at(s.first) else { return };
        s.filter += 1;
        if s.filter > FULL * t.lists() as u64 && t.size() + 1 < SIZES {
            self.spread(s, t.size() + 1);
        }
    }

    /// Gives an S-block that has items a table.
    #[cold]
    fn spread(&mut self, s: &mut SBlock, size: usize) {
        let owner = (0..self.lists(s)).map(|list| self.head(s, list)).find(|head| head & END == 0);
        let Some(owner) = owner.map(|id| self.owner(id)) else { return };
        let (new, mut count) = (self.tables.add(size), 0);
        for list in 0..self.lists(s) {
            let mut id = self.head(s, list);
            while id & END == 0 {
                let unit = u64::from(self.get(id).unit);
                let next = std::mem::replace(self.tables.head_mut(new, unit), id);
                let next = if next & END == 0 { next } else { END | owner };
                id = std::mem::replace(&mut self.get_mut(id).next, next);
                count += 1;
            }
        }
        self.unlist(s);
        (s.first, s.filter) = (new.0, count);
    }

    /// So many items are in no list any more.
    #[inline]
    pub(super) fn uncounted(&mut self, s: &mut SBlock, items: u32) {
        if Table::at(s.first).is_some() {
            s.filter -= u64::from(items);
            if s.filter == 0 {
                self.unlist(s);
            }
        } else if s.first == NONE {
            s.filter = 0;
        }
    }

    /// The S-block has no items any more.
    pub(super) fn unlist(&mut self, s: &mut SBlock) {
        if let Some(t) = Table::at(s.first) {
            self.tables.drop(t);
        }
        (s.first, s.filter) = (NONE, 0);
    }

    /// Hints that the head of a unit's list will be looked at soon.
    #[inline]
    pub(super) fn fetch_head(&self, s: &SBlock, unit: u64) {
        match Table::at(s.first) {
            None if s.may_have(unit, unit) && s.first != NONE => self.fetch(s.first),
            None => {}
            Some(t) => self.tables.fetch(t, unit),
        }
    }
}
