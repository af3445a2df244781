//! Which position of an append-only area holds the newest copy of a key.
//!
//! Eight neighbouring keys are a *group*; keys of one group that were appended side by side are one item with a bit for
//! each key of which it still is the newest copy. A hash table leads from a group to its newest item, and items to older
//! ones of the group that still hold something. Memory follows the keys that are there: 16 bytes an item and 6 of the
//! table, with room to grow at most twice that, for 1 to 8 keys; what was superseded is dropped before anything grows.
//! Keys that are appended in their order before anything else are a range, for whose items there is only room: an area that is filled in
//! order costs nothing.

use std::ops::Range;

/// Keys in a group.
const GROUP: u32 = 8;
/// No item; also an entry of the table that leads nowhere.
const NONE: u32 = u32::MAX;
/// Items that there is room for at first.
const SMALLEST: usize = 12;

/// Keys of one group that were appended side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    group: u32,
    /// The position at which the group's first key would lie; wraps around.
    base: u32,
    /// An older item of the group, or [`NONE`].
    older: u32,
    /// The keys of which this is the newest copy.
    mask: u8,
}

/// See the [module](self). Memory is taken at the first key.
#[derive(Clone, Debug)]
pub struct PositionIndex {
    /// In the order of their positions.
    items: Vec<Item>,
    /// Newest item of a group, with a part of the group's hash in the bits that no item's number has.
    table: Vec<u32>,
    /// The bits of an entry that are an item's number; no number has all of them set.
    number: u32,
    appended: u32,
    positions: u32,
    /// Keys that lie side by side from position `first` on. While there are any, there are neither items nor a table.
    in_order: Range<u32>,
    first: u32,
}

impl PositionIndex {
    /// For an area of `positions` positions.
    pub fn new(positions: u32) -> Self {
        Self {
            items: Vec::new(),
            table: Vec::new(),
            number: 0,
            appended: 0,
            positions,
            in_order: 0..0,
            first: 0,
        }
    }

    /// How many positions have been appended since the last [`clear`](Self::clear).
    pub fn appended(&self) -> u32 {
        self.appended
    }

    /// Positions that are left.
    pub fn free(&self) -> u32 {
        self.positions - self.appended
    }

    /// Where the search for a group begins, and what the upper bits of its entry are.
    #[inline]
    fn sought(&self, group: u32) -> (usize, u32) {
        let mixed = group.wrapping_mul(0x9E37_79B1);
        let mixed = mixed ^ (mixed >> 15);
        let first = (u64::from(mixed) * self.table.len() as u64) >> 32;
        // The lowest bits of the hash took the least part in choosing the entry.
        (first as usize, mixed.swap_bytes() & !self.number)
    }

    /// The group's entry, or the one that it would get. There must be a table.
    #[inline]
    fn entry(&self, group: u32) -> (usize, u32) {
        let (mut at, tag) = self.sought(group);
        loop {
            let entry = self.table[at];
            let same = |n: u32| self.items[n as usize].group == group;
            if entry == NONE || (entry & !self.number == tag && same(entry & self.number)) {
                return (at, tag);
            }
            at = if at + 1 < self.table.len() { at + 1 } else { 0 };
        }
    }

    /// The items of a group, the newest one first; some may hold nothing any more. There must be a table.
    #[inline]
    fn group(&self, group: u32) -> impl Iterator<Item = &Item> {
        let mut at = self.table[self.entry(group).0];
        at = if at == NONE { NONE } else { at & self.number };
        std::iter::from_fn(move || {
            let item = self.items.get(at as usize)?;
            at = item.older;
            Some(item)
        })
    }

    /// Appends `n` consecutive keys from `key` on; answers how many of them were not there before.
    ///
    /// # Panics
    /// When fewer than `n` positions are left.
    #[inline]
    pub fn append(&mut self, key: u32, n: u32) -> u32 {
        assert!(n <= self.free(), "appended past the end");
        if self.table.is_empty() && self.append_in_order(key, n) {
            return n;
        }
        let mut fresh = n;
        for Item { group, base, mask, .. } in items(key..key + n, self.appended) {
            fresh -= self.put(group, base, mask);
        }
        self.appended += n;
        fresh
    }

    /// Appends keys that go on where the others ended, all of them in order; answers whether they do. Takes the memory that
    /// their items would take one after the other.
    #[inline(never)]
    fn append_in_order(&mut self, key: u32, n: u32) -> bool {
        let keys = &self.in_order;
        if keys.is_empty() {
            (self.in_order, self.first) = (key..key, self.appended);
        } else if key != keys.end || self.appended - self.first != keys.end - keys.start {
            self.make_items();
            return false;
        }
        let items = |keys: &Range<u32>| match keys.is_empty() {
            true => 0,
            false => (keys.end.div_ceil(GROUP) - keys.start / GROUP) as usize,
        };
        let before = items(&self.in_order);
        self.in_order.end += n;
        self.appended += n;
        // Room for an item is made before it is known whether the last one goes on.
        let wanted = items(&self.in_order).max(before + 1);
        let mut room = self.items.capacity();
        while room < wanted {
            room += (room / 2).max(SMALLEST);
        }
        if room > self.items.capacity() {
            (self.items, self.table) = (Vec::with_capacity(room), Vec::with_capacity(room + room / 2));
        }
        true
    }

    /// Makes items of the keys that were appended in their order.
    #[cold]
    #[inline(never)]
    fn make_items(&mut self) {
        let keys = std::mem::take(&mut self.in_order);
        if !keys.is_empty() {
            self.items.extend(items(keys, self.first));
            self.rehash();
        }
    }

    /// Appends an item; answers how many of its keys were there before.
    #[inline]
    fn put(&mut self, group: u32, base: u32, mask: u8) -> u32 {
        if self.items.len() == self.items.capacity() {
            self.make_room();
        }
        let (at, tag) = self.entry(group);
        let newest = if self.table[at] == NONE { NONE } else { self.table[at] & self.number };
        let (older, hits) = self.supersede(newest, mask);
        let number = self.items.len() as u32;
        match self.items.get_mut(older as usize) {
            // It goes on where the last one ended.
            Some(last) if older + 1 == number && last.base == base => {
                last.mask |= mask;
                self.table[at] = older | tag;
            }
            _ => {
                self.items.push(Item { group, base, older, mask });
                self.table[at] = number | tag;
            }
        }
        hits
    }

    /// The items from `newest` on are no longer the newest copies of some keys; answers which one is the newest that
    /// still holds something, and of how many keys there was a copy.
    #[inline]
    fn supersede(&mut self, newest: u32, mask: u8) -> (u32, u32) {
        let (mut first, mut before, mut at, mut hits) = (NONE, NONE, newest, 0);
        while at != NONE {
            let item = &mut self.items[at as usize];
            hits += (item.mask & mask).count_ones();
            item.mask &= !mask;
            let (older, gone) = (item.older, item.mask == 0);
            match (gone, before) {
                (true, NONE) => {}
                (true, before) => self.items[before as usize].older = older,
                (false, NONE) => (first, before) = (at, at),
                (false, _) => before = at,
            }
            at = older;
        }
        (first, hits)
    }

    /// Drops items that hold nothing; makes room for more if few are.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let room = self.items.capacity();
        self.items.retain(|item| item.mask != 0);
        if self.items.len() * 4 >= room * 3 {
            let more = (room / 2).max(SMALLEST) + room - self.items.len();
            self.items.reserve_exact(more);
        }
        self.rehash();
    }

    /// Makes the table anew, for all items that there is room for.
    fn rehash(&mut self) {
        let room = self.items.capacity();
        self.number = u32::MAX >> (room as u32 + 1).leading_zeros();
        self.table.clear();
        self.table.reserve_exact(room + room / 2);
        self.table.resize(room + room / 2, NONE);
        for i in 0..self.items.len() {
            let (at, tag) = self.entry(self.items[i].group);
            self.items[i].older = if self.table[at] == NONE { NONE } else { self.table[at] & self.number };
            self.table[at] = i as u32 | tag;
        }
    }

    /// Takes up positions whose contents are of no interest, up to `end`.
    pub fn skip_to(&mut self, end: u32) {
        self.appended = self.appended.max(end);
    }

    /// The position of the newest copy of `key`.
    #[inline]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.find_run(key, 1).0
    }

    /// The same, and how many keys from `key` on, up to `most` and to the end of its group, follow it there or are missing
    /// like it.
    #[inline]
    pub fn find_run(&self, key: u32, most: u32) -> (Option<u32>, u32) {
        let lane = key % GROUP;
        let most = most.min(GROUP - lane);
        if self.table.is_empty() {
            return self.find_in_order(key, most);
        }
        let mut others = 0;
        for item in self.group(key / GROUP) {
            let mask = item.mask >> lane;
            if mask & 1 == 1 {
                return (Some(item.base.wrapping_add(lane)), mask.trailing_ones().min(most));
            }
            others |= mask;
        }
        (None, others.trailing_zeros().min(most))
    }

    fn find_in_order(&self, key: u32, most: u32) -> (Option<u32>, u32) {
        let keys = &self.in_order;
        match key {
            key if key < keys.start => (None, most.min(keys.start - key)),
            key if key < keys.end => (Some(self.first + (key - keys.start)), most.min(keys.end - key)),
            _ => (None, most),
        }
    }

    /// Forgets `key`; answers whether it was there. Its position stays taken.
    pub fn remove(&mut self, key: u32) -> bool {
        if self.in_order.contains(&key) {
            self.make_items();
        }
        if self.table.is_empty() {
            return false;
        }
        let bit = 1 << (key % GROUP);
        let (at, _) = self.entry(key / GROUP);
        let mut next = if self.table[at] == NONE { NONE } else { self.table[at] & self.number };
        while let Some(item) = self.items.get_mut(next as usize) {
            if item.mask & bit != 0 {
                item.mask &= !bit;
                return true;
            }
            next = item.older;
        }
        false
    }

    /// Forgets all keys of a range; answers how many were there. Looks at every item.
    pub fn remove_range(&mut self, keys: Range<u32>) -> u32 {
        self.make_items();
        let mut gone = 0;
        for item in &mut self.items {
            let lane = |key: u32| key.saturating_sub(item.group * GROUP).min(GROUP);
            let mask = ((1u32 << lane(keys.end)) - (1 << lane(keys.start))) as u8;
            gone += (item.mask & mask).count_ones();
            item.mask &= !mask;
        }
        gone
    }

    /// The keys that are there with their positions, in the order of the positions.
    pub fn live(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let of_items = self.items.iter().flat_map(|item| {
            let lanes = (0..GROUP).filter(|lane| item.mask >> lane & 1 == 1);
            lanes.map(|lane| (item.group * GROUP + lane, item.base.wrapping_add(lane)))
        });
        self.in_order.clone().zip(self.first..).chain(of_items)
    }

    /// Forgets everything; all positions are free again.
    pub fn clear(&mut self) {
        *self = Self::new(self.positions);
    }

    /// A hint that `key` will be looked up or appended soon; [`prefetch_item`](Self::prefetch_item) is to follow.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        if !self.table.is_empty() {
            smrlab_blockmap::prefetch(&self.table, self.sought(key / GROUP).0);
            // What is appended comes next to the last.
            smrlab_blockmap::prefetch(&self.items, self.items.len().wrapping_sub(1));
        }
    }

    /// The same once the table is near: of what its entry leads to, if to anything.
    #[inline]
    pub fn prefetch_item(&self, key: u32) {
        if !self.table.is_empty() {
            let entry = self.table[self.sought(key / GROUP).0];
            smrlab_blockmap::prefetch(&self.items, (entry & self.number) as usize);
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        (self.items.capacity() * size_of::<Item>() + self.table.capacity() * size_of::<u32>()) as u64
    }
}

/// The items of `keys`, appended side by side from position `first` on.
#[inline]
fn items(keys: Range<u32>, first: u32) -> impl Iterator<Item = Item> {
    let mut key = keys.start;
    std::iter::from_fn(move || {
        (key < keys.end).then(|| {
            let (group, lane, at) = (key / GROUP, key % GROUP, first + (key - keys.start));
            let k = (GROUP - lane).min(keys.end - key);
            key += k;
            Item { group, base: at.wrapping_sub(lane), older: NONE, mask: (((1u32 << k) - 1) << lane) as u8 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;
    use std::collections::BTreeMap;

    /// Against an ordered map, with keys that collide, appended until the area is full, over several fillings.
    fn agrees(positions: u32, span: u32, step: u32, longest: u32) {
        let mut index = PositionIndex::new(positions);
        let mut model = BTreeMap::new();
        let mut rng = Rng::new(1);
        let mut below = |n: u32| rng.below(n.into()) as u32;
        for _ in 0..20_000 {
            let (key, n) = (below(span) / step * step, 1 + below(longest));
            if index.free() < n {
                assert_eq!(index.live().count(), model.len());
                assert!(index.live().all(|(k, p)| model[&k] == p));
                index.clear();
                model.clear();
            }
            if below(4) == 0 {
                assert_eq!(index.remove(key), model.remove(&key).is_some());
                continue;
            }
            if below(128) == 0 {
                let there = model.range(key..key + 30).count();
                model.retain(|k, _| !(key..key + 30).contains(k));
                assert_eq!(index.remove_range(key..key + 30) as usize, there);
            }
            let at = index.appended();
            let before = model.len();
            model.extend((0..n).map(|i| (key + i, at + i)));
            assert_eq!(index.append(key, n) as usize, model.len() - before);
            assert_eq!(index.find(key ^ 1), model.get(&(key ^ 1)).copied());
            let (position, run) = index.find_run(key ^ 1, 9);
            let alike = |i: u32| model.get(&((key ^ 1) + i)).copied() == position.map(|p| p + i);
            assert!(run > 0 && (0..run).all(alike), "{position:?}, {run} of {key}");
        }
    }

    #[test]
    fn agrees_with_an_ordered_map() {
        agrees(20, 40, 1, 9);
        agrees(3, 64, 8, 1);
        agrees(500, 5_000_000, 1, 9);
        agrees(500, 5_000_000, 8, 1);
        agrees(70_000, 100_000, 1, 9);
        agrees(70_000, 80_000_000, 8, 9);
    }

    #[test]
    fn memory_follows_the_keys_that_are_there() {
        let mut index = PositionIndex::new(9_000_000);
        assert_eq!(index.bytes(), 0);
        index.append(104, 8);
        assert!(index.bytes() < 400, "{} bytes", index.bytes());
        // The same thousand places again and again, until the area is full.
        let places = (0..index.free() / 8).map(|i| i % 997);
        places.for_each(|i| _ = index.append(i * 104, 8));
        assert!(index.bytes() < 8 * 8000, "{} bytes for 8000 keys", index.bytes());
        index.clear();
        (0..index.free() / 8).for_each(|i| _ = index.append(i * 104, 8));
        assert_eq!(index.free(), 0);
        assert!(index.bytes() < 5 * 9_000_000, "{} bytes", index.bytes());
        index.clear();
        assert_eq!((index.bytes(), index.find(0), index.remove(0)), (0, None, false));
    }

    #[test]
    fn keys_one_by_one_cost_no_more_than_together() {
        let mut index = PositionIndex::new(100_000);
        // Behind another one: they are items.
        index.append(99_000, 1);
        (0..80_000).for_each(|key| _ = index.append(key, 1));
        assert!(index.bytes() < 5 * 80_000, "{} bytes", index.bytes());
        assert_eq!((index.find(77_777), index.find_run(77_777, 9)), (Some(77_778), (Some(77_778), 7)));
    }

    /// What is appended in order, by so many keys at a time, is what it would be as items from the first key on, but for the memory
    /// that is touched.
    #[test]
    fn keys_in_order_stand_for_their_items() {
        for (first, at, step, count) in
            [(104, 0, 8, 500), (3, 5, 1, 97), (13, 2, 3, 40), (7, 0, 1000, 9), (6, 0, 2, 1)]
        {
            let mut indices = [PositionIndex::new(100_000), PositionIndex::new(100_000)];
            for index in &mut indices {
                index.skip_to(at);
            }
            let [in_order, as_items] = &mut indices;
            for i in 0..count {
                assert_eq!(
                    (in_order.append(first + i * step, step), as_items.append(first + i * step, step)),
                    (step, step)
                );
                as_items.make_items();
                assert_eq!(in_order.bytes(), as_items.bytes(), "{i} of {step} from {first}");
            }
            assert!(in_order.items.is_empty() && !as_items.items.is_empty());
            assert!(in_order.live().eq(as_items.live()));
            for key in 0..first + count * step + 20 {
                assert_eq!(in_order.find_run(key, 5), as_items.find_run(key, 5), "{key}");
            }
            in_order.make_items();
            assert_eq!((&in_order.items, &in_order.table), (&as_items.items, &as_items.table));
            // An old key again: no longer in order.
            assert_eq!((in_order.append(first, 1), as_items.append(first, 1)), (0, 0));
            assert!(in_order.live().eq(as_items.live()));
        }
    }

    #[test]
    fn what_does_not_go_on_makes_items() {
        let fill = || {
            let mut index = PositionIndex::new(100);
            index.append(10, 20);
            index
        };
        let mut index = fill();
        assert_eq!((index.remove(30), index.items.len()), (false, 0));
        assert_eq!((index.remove(12), index.find(12), index.find(13)), (true, None, Some(3)));
        let mut index = fill();
        assert_eq!((index.remove_range(0..12), index.find(11), index.find(12)), (2, None, Some(2)));
        // Behind positions that nobody wants.
        let mut index = fill();
        index.skip_to(50);
        assert_eq!((index.append(30, 4), index.find(29), index.find(30)), (4, Some(19), Some(50)));
        let mut index = fill();
        assert_eq!((index.append(12, 2), index.find(11), index.find(12)), (0, Some(1), Some(20)));
    }
}
