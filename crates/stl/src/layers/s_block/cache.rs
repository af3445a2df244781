//! A section's cache ring: host blocks in the order in which they came, and which of them are still the newest.
//!
//! An *item* is a place in the ring with up to eight consecutive blocks of one aligned unit of the host's space and a mask
//! of those that are still valid. Items of one S-block form a list; [`Items`] keeps them in the order of the ring.

use super::blocks::{END, NONE, SBlock, SBlocks};
use super::items::{Ends, Items};
use super::leaves::Item;
use crate::parts::ring::{Laid, Ring};

/// Cached blocks of an S-block that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedPart {
    /// Position in the ring.
    pub at: u64,
    /// Offset in the S-block.
    pub offset: u64,
    pub blocks: u64,
}

/// What lies at the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// So many blocks, side by side on the medium, all valid.
    Valid(u64),
    /// So many invalid blocks.
    Invalid(u64),
    /// Nothing.
    Empty,
}

/// Blocks in the ring that lie side by side, all valid or all not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingRun {
    pub position: u64,
    pub blocks: u64,
    /// The item, where the blocks are valid.
    pub item: Option<u32>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct CacheRing {
    pub ring: Ring,
    pub laid: Laid,
    /// Positions that are never filled: what a write at the head damages, and a batch of blocks on its way from the tail.
    reserve: u64,
    items: Items,
    /// Invalid blocks at the tail that belong to no item any more.
    hole: u64,
    /// Valid blocks.
    live: u64,
}

impl CacheRing {
    pub(super) fn new(laid: Laid, reserve: u64) -> Self {
        let ring = Ring::new(laid.size());
        Self { ring, laid, reserve, items: Items::new(), hole: 0, live: 0 }
    }

    /// Blocks that the ring can hold.
    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.ring.size() - self.reserve
    }

    /// The longest write in units of `granularity` blocks, a power of two.
    #[inline]
    pub(super) fn longest(&self, granularity: u64) -> u64 {
        ((self.capacity() / 2) & !(granularity - 1)).max(granularity)
    }

    /// Blocks that can be put at the head.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.ring.free() - self.reserve
    }

    /// Blocks in use that are not valid any more.
    #[inline]
    pub(super) fn invalid(&self) -> u64 {
        self.ring.used() - self.live
    }

    #[inline]
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Where the first item lies that comes behind the hole at the tail.
    #[inline]
    fn tail(&self) -> u64 {
        self.ring.wrap(self.ring.tail() + self.hole)
    }

    fn push(&mut self, item: Item, len: u64, blocks: &mut SBlocks) -> u32 {
        let ends = Ends { head: self.ring.head(), tail: self.tail() };
        self.items.push(item, len, ends, blocks)
    }

    /// Puts `n` blocks of S-block `x` from `offset` on at the head, where they lie side by side. No older copies may be
    /// left.
    #[inline]
    pub(super) fn put(&mut self, x: u32, offset: u64, n: u64, blocks: &mut SBlocks) {
        debug_assert!(n <= self.laid.at(self.ring.head()).1.0);
        let (mut offset, end) = (offset, offset + n);
        while offset < end {
            let (unit, first) = (offset >> 3, offset & 7);
            let k = (8 - first).min(end - offset);
            let mask = (((1u32 << k) - 1) << first) as u8;
            let id =
                self.push(Item { next: END | x, unit: unit as u16, first: first as u8, mask }, k, blocks);
            let s = blocks.at_mut(x);
            self.items.link(s, id);
            self.ring.push(k);
            offset += k;
        }
        self.live += n;
    }

    /// Puts invalid blocks at the head: a place that was given up before a checkpoint.
    pub(super) fn put_invalid(&mut self, n: u64, blocks: &mut SBlocks) {
        let mut left = n;
        while left > 0 {
            let k = left.min(8);
            self.push(Item::INVALID, k, blocks);
            self.ring.push(k);
            left -= k;
        }
    }

    /// Makes blocks of an S-block invalid; answers how many were valid.
    #[inline]
    pub(super) fn invalidate(&mut self, s: &mut SBlock, offset: u64, n: u64) -> u64 {
        let (from, to) = (offset >> 3, (offset + n - 1) >> 3);
        if !s.may_have(from, to) { 0 } else { self.invalidate_listed(s, offset, n) }
    }

    fn invalidate_listed(&mut self, s: &mut SBlock, offset: u64, n: u64) -> u64 {
        let (mut gone, mut items) = (0, 0);
        for unit in self.items.lists_of(s, offset >> 3, (offset + n - 1) >> 3) {
            let first = self.items.head(s, unit);
            let (left, blocks, emptied) = self.thin_out(first, offset, n);
            *self.items.head_mut(s, unit) = left;
            (gone, items) = (gone + blocks, items + emptied);
        }
        self.items.uncounted(s, items);
        self.live -= gone;
        gone
    }

    /// Makes blocks of a list invalid; answers what its first item is then, how many blocks were valid, and how many items
    /// hold nothing any more.
    #[inline]
    fn thin_out(&mut self, first: u32, offset: u64, n: u64) -> (u32, u64, u32) {
        let (mut first, mut gone, mut emptied) = (first, 0, 0);
        let (mut before, mut id) = (NONE, first);
        while id & END == 0 {
            let item = self.items.get_mut(id);
            let hit = item.mask & span_mask(u64::from(item.unit), offset, n);
            item.mask &= !hit;
            gone += u64::from(hit.count_ones());
            let next = item.next;
            if item.mask != 0 {
                before = id;
            } else {
                emptied += 1;
                self.items.emptied(id);
                if before != NONE {
                    self.items.get_mut(before).next = next;
                } else {
                    first = if next & END == 0 { next } else { NONE };
                }
            }
            id = next;
        }
        (first, gone, emptied)
    }

    /// The item behind `item` in its S-block's list, or [`NONE`]; where `item` is not valid any more, anything.
    pub(super) fn next_item(&self, item: u32) -> u32 {
        let next = self.items.get(item).next;
        if next & END == 0 { next } else { NONE }
    }

    /// Hints that a unit of an S-block will be asked for or written soon: first its list, later the list's first item.
    #[inline]
    pub(super) fn fetch_list(&self, s: &SBlock, unit: u64) {
        self.items.fetch_head(s, unit);
    }

    /// The second step of that.
    #[inline]
    pub(super) fn fetch_listed(&self, s: &SBlock, unit: u64) {
        let first = self.items.head(s, unit);
        if first & END == 0 && s.may_have(unit, unit) {
            self.items.fetch(first);
        }
    }

    /// Hints that `item` will be looked at soon.
    #[inline]
    pub(super) fn fetch(&self, item: u32) {
        self.items.fetch(item);
    }

    /// Makes all cached blocks of an S-block invalid; answers how many there were.
    pub(super) fn invalidate_all(&mut self, s: &mut SBlock) -> u64 {
        let mut gone = 0;
        for list in 0..self.items.lists(s) {
            let mut id = self.items.head(s, list);
            while id & END == 0 {
                let item = self.items.get_mut(id);
                gone += u64::from(item.mask.count_ones());
                item.mask = 0;
                let next = item.next;
                self.items.emptied(id);
                id = next;
            }
        }
        self.items.unlist(s);
        self.live -= gone;
        *s = SBlock::at(s.slot);
        gone
    }

    /// Adds the cached parts of an S-block that lie in `offset..offset + n`, in no particular order. What was cached together, and still lies
    /// together, is one part as a rule.
    #[inline]
    pub(super) fn parts(&self, s: &SBlock, offset: u64, n: u64, out: &mut Vec<CachedPart>) {
        let (first, last) = (offset >> 3, (offset + n - 1) >> 3);
        if s.may_have(first, last) {
            for unit in self.items.lists_of(s, first, last) {
                self.parts_of(self.items.head(s, unit), offset, n, out);
            }
        }
    }

    /// The same of one list.
    #[inline]
    fn parts_of(&self, first: u32, offset: u64, n: u64, out: &mut Vec<CachedPart>) {
        let mut id = first;
        while id & END == 0 {
            let item = self.items.get(id);
            let mut mask = item.mask & span_mask(u64::from(item.unit), offset, n);
            let place = if mask == 0 { 0 } else { self.items.position(id, self.tail()) };
            while mask != 0 {
                let from = mask.trailing_zeros() as u64;
                let blocks = (mask >> from).trailing_ones() as u64;
                let at = self.ring.wrap(place + from - u64::from(item.first));
                self.add_part(CachedPart { at, offset: u64::from(item.unit) * 8 + from, blocks }, out);
                mask &= !((((1u32 << blocks) - 1) << from) as u8);
            }
            id = item.next;
        }
    }

    /// Adds a part to the others, to the last one where it follows that in the S-block and on the medium.
    #[inline]
    fn add_part(&self, part: CachedPart, out: &mut Vec<CachedPart>) {
        if let Some(last) = out.last_mut()
            && last.offset + last.blocks == part.offset
            && last.at + last.blocks == part.at
            && last.blocks + part.blocks <= self.laid.at(last.at).1.0
        {
            last.blocks += part.blocks;
            return;
        }
        out.push(part);
    }

    /// What lies at the tail, up to the end of an item.
    #[inline]
    pub(super) fn front(&self) -> Front {
        if self.hole > 0 {
            return Front::Invalid(self.hole);
        }
        let Some((valid, len)) = self.items.front() else { return Front::Empty };
        match valid {
            0 => Front::Invalid(len),
            valid if valid & 1 == 1 => Front::Valid(u64::from(valid.trailing_ones()).min(len)),
            valid => Front::Invalid(u64::from(valid.trailing_zeros())),
        }
    }

    /// Everything in the ring from the tail to the head; no run goes on beyond an item.
    pub(super) fn runs(&self) -> impl Iterator<Item = RingRun> + '_ {
        let hole =
            (self.hole > 0).then_some(RingRun { position: self.ring.tail(), blocks: self.hole, item: None });
        let places = self.items.in_order().scan(self.tail(), |next, (id, len)| {
            let position = *next;
            *next = self.ring.wrap(position + len);
            Some((id, len, position))
        });
        let items = places.flat_map(|(id, len, mut position)| {
            let (mut valid, mut left) = (self.items.valid(id), len);
            std::iter::from_fn(move || {
                let ones = u64::from(valid.trailing_ones());
                let zeros = if valid == 0 { left } else { u64::from(valid.trailing_zeros()) };
                let blocks = if ones > 0 { ones } else { zeros }.min(left);
                let run = RingRun { position, blocks, item: (ones > 0).then_some(id) };
                valid = valid.checked_shr(blocks as u32).unwrap_or(0);
                left -= blocks;
                position += blocks;
                (blocks > 0).then_some(run)
            })
        });
        hole.into_iter().chain(items)
    }

    /// The places from the tail to the head: their blocks, and of those with valid blocks the S-block, the offset in it and
    /// a bit for each valid block.
    pub(super) fn contents(&self, out: &mut dyn FnMut(u64, Option<(u32, u64, u8)>)) {
        if self.hole > 0 {
            out(self.hole, None);
        }
        for (id, len) in self.items.in_order() {
            let valid = self.items.valid(id);
            out(
                len,
                (valid != 0).then(|| {
                    let item = self.items.get(id);
                    let offset = u64::from(item.unit) * 8 + u64::from(item.first);
                    (self.items.owner(id), offset, valid)
                }),
            );
        }
    }

    /// The S-block of the first valid block from the tail on.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.runs().find_map(|r| r.item).map(|id| self.items.owner(id))
    }

    /// How far the oldest cached block of an S-block lies from the head, as a share of the ring. Invalid places before
    /// it do not count: freeing them must not change a choice that was announced.
    pub(super) fn age(&self, s: &SBlock) -> f64 {
        let mut most = 0;
        for list in 0..self.items.lists(s) {
            let mut id = self.items.head(s, list);
            while id & END == 0 {
                let item = self.items.get(id);
                let at = self.items.position(id, self.tail()) + u64::from(item.valid().trailing_zeros());
                most = most.max(self.ring.ahead(self.ring.wrap(at), self.ring.head()));
                id = item.next;
            }
        }
        most as f64 / self.ring.size() as f64
    }

    /// The tail and the head move on by `n` blocks, which were copied.
    fn turn(&mut self, n: u64) {
        self.ring.push(n);
        self.ring.pop(n);
    }

    /// Moves up to `most` valid blocks from the tail to the head, as long as items are valid as a whole; answers how many.
    /// `most` blocks lie side by side at both places.
    #[inline]
    pub(super) fn move_whole(&mut self, most: u64, blocks: &mut SBlocks) -> u64 {
        if self.hole > 0 {
            return 0;
        }
        let moved = self.items.pass_whole(most, &self.ring, blocks);
        self.turn(moved);
        moved
    }

    /// Moves `n` valid blocks from the tail to the head. They lie side by side at both places.
    pub(super) fn move_tail(&mut self, n: u64, blocks: &mut SBlocks) {
        let mut left = n;
        while left > 0 {
            debug_assert_eq!(self.hole, 0, "invalid blocks at the tail");
            let Some((_, len)) = self.items.tail() else { return };
            let k = len.min(left);
            let gap = if k < len { self.part(k, len, blocks) } else { Some(0) };
            if let Some(gap) = gap {
                self.items.pass(1, self.ring.head(), blocks);
                self.hole = gap;
            }
            self.turn(k);
            left -= k;
        }
    }

    /// Parts the first `k` blocks of the item at the tail, all valid, from the rest. Where nothing of the rest is valid,
    /// the item ends before it, and the rest is a hole of so many blocks; else the parted blocks are put at the head.
    #[cold]
    fn part(&mut self, k: u64, len: u64, blocks: &mut SBlocks) -> Option<u64> {
        let (id, _) = self.items.tail()?;
        let item = *self.items.get(id);
        let mask = item.mask & ((((1u32 << k) - 1) << item.first) as u8);
        let rest = item.mask & !mask;
        if rest == 0 {
            self.items.resize_tail(k, blocks);
            return Some(len - k);
        }
        self.cut_front(k, len, blocks);
        let ends = Ends { head: self.ring.head(), tail: self.ring.wrap(self.ring.tail() + k) };
        let new = self.items.push(Item { mask, ..item }, k, ends, blocks);
        // The rest may have got another number.
        let (rest, _) = self.items.tail()?;
        self.items.get_mut(new).next = self.items.get(rest).next;
        self.items.get_mut(rest).next = new;
        let owner = self.items.owner(new);
        self.items.counted(blocks.at_mut(owner));
        None
    }

    /// The item at the tail loses its first `k` blocks.
    fn cut_front(&mut self, k: u64, len: u64, blocks: &mut SBlocks) {
        self.items.resize_tail(len - k, blocks);
        let Some((id, _)) = self.items.tail() else { return };
        let item = self.items.get_mut(id);
        item.first += k as u8;
        item.mask &= !((1u32 << item.first) - 1) as u8;
    }

    /// Frees `n` blocks at the tail, all invalid.
    #[inline]
    pub(super) fn reclaim(&mut self, n: u64, blocks: &mut SBlocks) {
        let mut left = n;
        while left > 0 {
            let k = match (self.hole, self.items.front()) {
                (0, Some((valid, len))) => match valid {
                    0 => {
                        self.items.pop(blocks);
                        let k = len.min(left);
                        self.hole = len - k;
                        k
                    }
                    valid => {
                        let k = u64::from(valid.trailing_zeros()).min(left);
                        debug_assert!(k > 0, "valid blocks are freed");
                        self.cut_front(k, len, blocks);
                        k
                    }
                },
                (hole, _) => {
                    let k = hole.min(left);
                    self.hole -= k;
                    k
                }
            };
            self.ring.pop(k);
            left -= k;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.items.bytes() + self.laid.bytes()
    }
}

/// The blocks of `unit` that lie in `offset..offset + n`.
#[inline]
fn span_mask(unit: u64, offset: u64, n: u64) -> u8 {
    let from = offset.saturating_sub(unit * 8).min(8);
    let to = (offset + n).saturating_sub(unit * 8).min(8);
    ((1u32 << to) - (1u32 << from.min(to))) as u8
}
