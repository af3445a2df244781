//! A section's cache ring: host blocks in the order in which they came, and which of them are still the newest.
//!
//! An *item* is a place in the ring with up to eight consecutive blocks of one aligned unit of the host's space and a mask
//! of those that are still valid; items stand in the order of their places, so that the tail is examined and copied without
//! a random access. An *entry* leads from an S-block to an item: entries of one S-block form a list, and a copied item only
//! stores its new number in its entry.

use super::items::{Item, Items};
use crate::ring::{Laid, Ring};

/// How many items ahead of the tail the entries are fetched: more than are copied for one request.
const LATER: usize = 48;

/// No entry, no S-block.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of an S-block: 8 bytes for its place, 8 for its cached blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SBlock {
    /// Slot of the S-block ring.
    pub slot: u32,
    /// First of its entries.
    pub first: u32,
    /// Two bits for each unit that may be cached (a Bloom filter): most writes need not walk the list.
    filter: u32,
    /// Cached blocks.
    pub cached: u32,
}

impl SBlock {
    pub fn at(slot: u32) -> Self {
        Self { slot, first: NONE, filter: 0, cached: 0 }
    }

    /// Whether any unit from `first` to `last` may be cached.
    #[inline]
    fn may_have(&self, first: u64, last: u64) -> bool {
        if first == last { self.filter & bits(first) == bits(first) } else { self.first != NONE }
    }
}

/// Leads from an S-block to one of its items.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The item's number: items are numbered as they come, modulo 2^32.
    item: u32,
    /// The next entry of the S-block; of an entry that is not in use, the next one of these.
    next: u32,
}

/// Cached blocks of an S-block that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
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

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct CacheRing {
    pub ring: Ring,
    pub laid: Laid,
    /// Positions that are never filled: what a write at the head damages, and a batch of blocks on its way from the tail.
    reserve: u64,
    items: Items,
    entries: Vec<Entry>,
    /// First entry that is not in use.
    unused: u32,
    /// Valid blocks.
    live: u64,
}

impl CacheRing {
    pub fn new(laid: Laid, reserve: u64) -> Self {
        let ring = Ring::new(laid.size());
        Self { ring, laid, reserve, items: Items::default(), entries: Vec::new(), unused: NONE, live: 0 }
    }

    /// Blocks that the ring can hold.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.ring.size() - self.reserve
    }

    /// Blocks that can be put at the head.
    #[inline]
    pub fn room(&self) -> u64 {
        self.ring.free() - self.reserve
    }

    /// Blocks in use that are not valid any more.
    #[inline]
    pub fn invalid(&self) -> u64 {
        self.ring.used() - self.live
    }

    #[inline]
    pub fn live(&self) -> u64 {
        self.live
    }

    #[inline]
    fn new_entry(&mut self, e: Entry) -> u32 {
        if self.unused == NONE {
            if self.entries.len() == self.entries.capacity() {
                self.entries.reserve_exact((self.entries.len() / 4).max(256));
            }
            self.entries.push(e);
            return self.entries.len() as u32 - 1;
        }
        let id = self.unused;
        self.unused = self.entries[id as usize].next;
        self.entries[id as usize] = e;
        id
    }

    #[inline]
    fn end_entry(&mut self, id: u32) {
        self.entries[id as usize].next = self.unused;
        self.unused = id;
    }

    /// Puts `n` blocks of S-block `x` from `offset` on at the head, where they lie side by side. No older copies may be
    /// left.
    #[inline]
    pub fn put(&mut self, x: u32, s: &mut SBlock, offset: u64, n: u64) {
        debug_assert!(n <= self.laid.at(self.ring.head()).1.0);
        let (mut offset, end) = (offset, offset + n);
        while offset < end {
            let (unit, first) = (offset >> 3, offset & 7);
            let k = (8 - first).min(end - offset);
            let at = self.ring.head() as u32;
            let mask = (((1u32 << k) - 1) << first) as u8;
            let entry = self.new_entry(Entry { item: self.items.next(), next: s.first });
            s.first = entry;
            s.filter |= bits(unit);
            self.items.push(Item { entry, at, sblock: x, unit: unit as u16, first: first as u8, mask });
            self.ring.push(k);
            offset += k;
        }
        s.cached += n as u32;
        self.live += n;
    }

    /// Puts invalid blocks at the head: a place that was given up before a checkpoint.
    pub fn put_invalid(&mut self, n: u64) {
        self.items.push(Item::invalid(self.ring.head() as u32));
        self.ring.push(n);
    }

    /// Makes blocks of an S-block invalid; answers how many were valid.
    #[inline]
    pub fn invalidate(&mut self, s: &mut SBlock, offset: u64, n: u64) -> u64 {
        let (from, to) = (offset >> 3, (offset + n - 1) >> 3);
        if !s.may_have(from, to) { 0 } else { self.invalidate_listed(s, offset, n) }
    }

    fn invalidate_listed(&mut self, s: &mut SBlock, offset: u64, n: u64) -> u64 {
        let mut gone = 0;
        let (mut before, mut id) = (NONE, s.first);
        while id != NONE {
            let next = self.entries[id as usize].next;
            let item = self.items.numbered_mut(self.entries[id as usize].item);
            let hit = item.mask & span_mask(u64::from(item.unit), offset, n);
            item.mask &= !hit;
            gone += u64::from(hit.count_ones());
            if item.mask == 0 {
                if before == NONE {
                    s.first = next;
                } else {
                    self.entries[before as usize].next = next;
                }
                self.end_entry(id);
            } else {
                before = id;
            }
            id = next;
        }
        if s.first == NONE {
            s.filter = 0;
        }
        s.cached -= gone as u32;
        self.live -= gone;
        gone
    }

    /// Hints that the list of entries will be walked soon, from `entry` on; answers the next entry. What it answers may be
    /// out of date: it is for nothing else.
    #[inline]
    pub fn warm(&self, entry: u32) -> u32 {
        let Some(e) = self.entries.get(entry as usize) else { return NONE };
        self.items.fetch(e.item);
        self.fetch(e.next);
        e.next
    }

    /// Hints that `entry` will be looked at soon.
    #[inline]
    pub fn fetch(&self, entry: u32) {
        smrlab_blockmap::prefetch(&self.entries, entry as usize);
    }

    /// Makes all cached blocks of an S-block invalid.
    pub fn invalidate_all(&mut self, s: &mut SBlock) {
        let mut id = s.first;
        while id != NONE {
            let next = self.entries[id as usize].next;
            self.items.numbered_mut(self.entries[id as usize].item).mask = 0;
            self.end_entry(id);
            id = next;
        }
        self.live -= u64::from(s.cached);
        *s = SBlock::at(s.slot);
    }

    /// Adds the cached parts of an S-block that lie in `offset..offset + n`, in no particular order.
    #[inline]
    pub fn parts(&self, s: &SBlock, offset: u64, n: u64, out: &mut Vec<Part>) {
        if !s.may_have(offset >> 3, (offset + n - 1) >> 3) {
            return;
        }
        let mut id = s.first;
        while id != NONE {
            let item = self.items.numbered(self.entries[id as usize].item);
            let mut mask = item.mask & span_mask(u64::from(item.unit), offset, n);
            while mask != 0 {
                let from = mask.trailing_zeros() as u64;
                let blocks = (mask >> from).trailing_ones() as u64;
                out.push(Part {
                    at: u64::from(item.at) + from - u64::from(item.first),
                    offset: u64::from(item.unit) * 8 + from,
                    blocks,
                });
                mask &= !((((1u32 << blocks) - 1) << from) as u8);
            }
            id = self.entries[id as usize].next;
        }
    }

    #[inline]
    fn len_of(&self, i: usize) -> u64 {
        let end = self.items.get(i + 1).map_or(self.ring.head(), |n| u64::from(n.at));
        let n = self.ring.ahead(u64::from(self.items.at(i).at), end);
        if n == 0 { self.ring.size() } else { n }
    }

    /// The valid blocks of item `i`, the lowest bit being the block at its place.
    #[inline]
    fn valid(&self, i: usize) -> u8 {
        let item = self.items.at(i);
        if item.mask == 0 { 0 } else { item.mask >> item.first }
    }

    /// What lies at the tail, looking past `skip` invalid items; at most `most` valid blocks are looked for.
    pub fn front(&self, skip: usize, most: u64) -> Front {
        let Some(first) = self.items.get(skip) else { return Front::Empty };
        let mask = self.valid(skip);
        if mask & 1 == 0 {
            let n = self.len_of(skip);
            return Front::Invalid(if mask == 0 { n } else { u64::from(mask.trailing_zeros()).min(n) });
        }
        let most = most.min(self.laid.at(u64::from(first.at)).1.0);
        let mut blocks = 0;
        for i in skip..self.items.len() {
            let (valid, len) = (u64::from(self.valid(i).trailing_ones()), self.len_of(i));
            blocks += valid.min(len);
            if valid < len || blocks >= most {
                break;
            }
        }
        Front::Valid(blocks.min(most))
    }

    /// The position of item `i` from the tail.
    pub fn position(&self, i: usize) -> u64 {
        u64::from(self.items.at(i).at)
    }

    /// Whether nothing of item `i` from the tail is valid.
    pub fn is_invalid(&self, i: usize) -> bool {
        self.valid(i) == 0
    }

    /// The S-block of the first valid block from the tail on.
    pub fn oldest(&self) -> Option<u32> {
        let i = (0..self.items.len()).find(|&i| self.valid(i) != 0)?;
        Some(self.items.at(i).sblock)
    }

    /// How far the oldest cached block of an S-block lies from the head, as a share of the ring. Invalid places before
    /// it do not count: freeing them must not change a choice that was announced.
    pub fn age(&self, s: &SBlock) -> f64 {
        let (mut most, mut id) = (0, s.first);
        while id != NONE {
            let item = self.items.numbered(self.entries[id as usize].item);
            let at = u64::from(item.at) + u64::from(item.mask.trailing_zeros()) - u64::from(item.first);
            most = most.max(self.ring.ahead(at, self.ring.head()));
            id = self.entries[id as usize].next;
        }
        most as f64 / self.ring.size() as f64
    }

    /// Moves up to `most` valid blocks from the tail to the head, as long as items are valid as a whole; answers how many.
    /// `most` blocks lie side by side at both places.
    #[inline]
    pub fn move_whole(&mut self, most: u64) -> u64 {
        let mut moved = 0;
        while self.items.len() > 1 {
            let mut item = *self.items.at(0);
            let len = self.ring.ahead(u64::from(item.at), u64::from(self.items.at(1).at));
            let whole = (1u32 << len.min(16)) - 1;
            if item.mask == 0 || u32::from(item.mask >> item.first) & whole != whole || moved + len > most {
                break;
            }
            // The entry of an item that will be copied some time later is written then.
            if let Some(later) = self.items.get(LATER) {
                self.fetch(later.entry);
            }
            self.items.pop();
            self.entries[item.entry as usize].item = self.items.next();
            item.at = self.ring.head() as u32;
            self.items.push(item);
            self.ring.push(len);
            self.ring.pop(len);
            moved += len;
        }
        moved
    }

    /// Moves `n` valid blocks from the tail to the head. They lie side by side at both places.
    #[inline]
    pub fn move_tail(&mut self, n: u64, blocks: &mut [SBlock]) {
        let mut left = n;
        while left > 0 {
            let len = self.len_of(0);
            let k = len.min(left);
            let mut item = *self.items.at(0);
            if k == len {
                self.items.pop();
            } else {
                item = self.split(item, k, blocks);
            }
            self.entries[item.entry as usize].item = self.items.next();
            item.at = self.ring.head() as u32;
            self.items.push(item);
            self.ring.push(k);
            self.ring.pop(k);
            left -= k;
        }
    }

    /// Parts the first `k` blocks of the front item, all valid, from the rest, which stays; answers them.
    fn split(&mut self, item: Item, k: u64, blocks: &mut [SBlock]) -> Item {
        let mask = item.mask & ((((1u32 << k) - 1) << item.first) as u8);
        let rest = item.mask & !mask;
        let at = item.at + k as u32;
        if rest == 0 {
            *self.items.at_mut(0) = Item::invalid(at);
            return Item { mask, ..item };
        }
        *self.items.at_mut(0) = Item { at, first: item.first + k as u8, mask: rest, ..item };
        let next = blocks[item.sblock as usize].first;
        let entry = self.new_entry(Entry { item: 0, next });
        blocks[item.sblock as usize].first = entry;
        Item { entry, mask, ..item }
    }

    /// Frees `n` blocks at the tail, all invalid.
    #[inline]
    pub fn reclaim(&mut self, n: u64) {
        let mut left = n;
        while left > 0 {
            let len = self.len_of(0);
            let k = len.min(left);
            if k == len {
                self.items.pop();
            } else {
                let at = self.ring.wrap(u64::from(self.items.at(0).at) + k) as u32;
                let item = self.items.at_mut(0);
                item.at = at;
                if item.mask != 0 {
                    item.first += k as u8;
                }
            }
            self.ring.pop(k);
            left -= k;
        }
    }

    /// Everything in the ring from the tail on: S-block, offset and length of valid blocks, only a length of invalid ones.
    pub fn contents(&self, out: &mut dyn FnMut(Option<(u32, u64)>, u64)) {
        for i in 0..self.items.len() {
            let (mut mask, mut left) = (self.valid(i), self.len_of(i));
            let item = self.items.at(i);
            let mut offset = u64::from(item.unit) * 8 + u64::from(item.first);
            while left > 0 {
                let ones = u64::from(mask.trailing_ones()).min(left);
                let zeros = if mask == 0 { left } else { u64::from(mask.trailing_zeros()).min(left) };
                let n = if ones > 0 { ones } else { zeros };
                out((ones > 0).then_some((item.sblock, offset)), n);
                mask = mask.checked_shr(n as u32).unwrap_or(0);
                offset += n;
                left -= n;
            }
        }
    }

    pub fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>()) as u64 + self.items.bytes() + self.laid.bytes()
    }
}

/// The bits of a unit in [`SBlock::filter`].
#[inline]
fn bits(unit: u64) -> u32 {
    1 << (unit & 31) | 1 << ((unit as u32).wrapping_mul(0x9e37_79b1) >> 27)
}

/// The blocks of `unit` that lie in `offset..offset + n`.
#[inline]
fn span_mask(unit: u64, offset: u64, n: u64) -> u8 {
    let from = offset.saturating_sub(unit * 8).min(8);
    let to = (offset + n).saturating_sub(unit * 8).min(8);
    ((1u32 << to) - (1u32 << from.min(to))) as u8
}
