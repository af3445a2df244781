//! Which position of an append-only area holds the newest copy of a key: a hash table whose entries are only positions.
//!
//! The keys themselves stand in the order of their positions, where the area's contents are known anyway: 4 bytes a
//! position. An entry costs 2 bytes at half load, or 3 bytes at three quarters where there are more positions than 16 bits
//! can tell; bits that the positions leave over tell keys apart without a look at them. Eight neighbouring keys share
//! one group of entries, so that a request of several blocks touches one cache line of the table.

/// Entries in a group; keys that differ in the lower three bits only lie in one group.
const GROUP: usize = 8;

/// A table entry: a position with a part of the key's hash above it, or one of two marks.
trait Entry: Copy + Eq {
    const EMPTY: Self;
    const GONE: Self;
    const BITS: u32;
    /// Entries for so many positions.
    const ENTRIES: usize;
    const POSITIONS: usize;
    fn pack(bits: u32) -> Self;
    fn bits(self) -> u32;
}

impl Entry for u16 {
    const EMPTY: Self = Self::MAX;
    const GONE: Self = Self::MAX - 1;
    const BITS: u32 = 16;
    const ENTRIES: usize = 2;
    const POSITIONS: usize = 1;
    fn pack(bits: u32) -> Self {
        bits as Self
    }
    fn bits(self) -> u32 {
        u32::from(self)
    }
}

impl Entry for [u8; 3] {
    const EMPTY: Self = [0xff; 3];
    const GONE: Self = [0xfe, 0xff, 0xff];
    const BITS: u32 = 24;
    const ENTRIES: usize = 4;
    const POSITIONS: usize = 3;
    fn pack(bits: u32) -> Self {
        let [a, b, c, _] = bits.to_le_bytes();
        [a, b, c]
    }
    fn bits(self) -> u32 {
        u32::from_le_bytes([self[0], self[1], self[2], 0])
    }
}

impl Entry for u32 {
    const EMPTY: Self = Self::MAX;
    const GONE: Self = Self::MAX - 1;
    const BITS: u32 = 32;
    const ENTRIES: usize = 4;
    const POSITIONS: usize = 3;
    fn pack(bits: u32) -> Self {
        bits
    }
    fn bits(self) -> u32 {
        self
    }
}

/// The groups of entries.
#[derive(Clone, Debug)]
struct Table<T> {
    entries: Vec<T>,
    groups: u32,
    /// The bits of an entry that are its position; no position has all of them set, nor all but the lowest.
    position: u32,
}

/// Where the search for a key begins, and what an entry's upper bits are if it may be the key's.
#[derive(Clone, Copy)]
struct Sought {
    at: usize,
    tag: u32,
}

impl<T: Entry> Table<T> {
    fn new(positions: u32) -> Self {
        let groups = (positions as usize * T::ENTRIES).div_ceil(GROUP * T::POSITIONS).max(2);
        let position = u32::MAX >> (positions + 1).leading_zeros();
        Self { entries: vec![T::EMPTY; groups * GROUP], groups: groups as u32, position }
    }

    #[inline]
    fn first(&self, key: u32) -> Sought {
        let mixed = (key >> 3).wrapping_mul(0x9E37_79B1);
        let mixed = mixed ^ (mixed >> 15);
        let group = (u64::from(mixed) * u64::from(self.groups)) >> 32;
        // Rotated by the hash, so that keys at a regular distance do not all want the same lane.
        let at = group as usize * GROUP + (key.wrapping_add(mixed) as usize & (GROUP - 1));
        // Its first bits are the lowest of the hash, which took the least part in choosing the group.
        // Short entries have few bits to spare, and half load needs them less.
        let tag = if T::BITS == 16 { 0 } else { mixed.swap_bytes() >> (32 - T::BITS) & !self.position };
        Sought { at, tag }
    }

    /// The position in an entry, if the entry may be the key's: neither of the marks is.
    #[inline]
    fn position(&self, entry: T, sought: Sought) -> Option<usize> {
        let bits = entry.bits();
        if T::BITS == 16 {
            return (entry != T::GONE).then_some(bits as usize);
        }
        (bits & !self.position == sought.tag && entry != T::GONE).then_some((bits & self.position) as usize)
    }

    /// The same lane of the next group; behind the last group the next lane, so that every entry is reached.
    #[inline]
    fn step(&self, at: usize) -> usize {
        let next = at + GROUP;
        if next < self.entries.len() { next } else { (at + 1) & (GROUP - 1) }
    }

    #[inline]
    fn find(&self, keys: &[u32], key: u32) -> Option<(usize, u32)> {
        let sought = self.first(key);
        let mut at = sought.at;
        loop {
            let e = self.entries[at];
            if e == T::EMPTY {
                return None;
            }
            if let Some(position) = self.position(e, sought).filter(|&p| keys[p] == key) {
                return Some((at, position as u32));
            }
            at = self.step(at);
        }
    }

    /// Answers whether the key is new.
    #[inline]
    fn put(&mut self, keys: &[u32], key: u32, position: u32) -> bool {
        let sought = self.first(key);
        let new = T::pack(position | sought.tag);
        let mut at = sought.at;
        let mut gone = None;
        loop {
            let e = self.entries[at];
            if e == T::EMPTY {
                self.entries[gone.unwrap_or(at)] = new;
                return true;
            }
            if e == T::GONE {
                gone = gone.or(Some(at));
            } else if self.position(e, sought).is_some_and(|p| keys[p] == key) {
                self.entries[at] = new;
                return false;
            }
            at = self.step(at);
        }
    }

    fn remove(&mut self, keys: &[u32], key: u32) -> bool {
        let found = self.find(keys, key);
        found.is_some_and(|(at, _)| {
            self.entries[at] = T::GONE;
            true
        })
    }

    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<T>()
    }
}

#[derive(Clone, Debug)]
enum Width {
    Short(Table<u16>),
    Middle(Table<[u8; 3]>),
    Long(Table<u32>),
}

/// See the [module](self). Memory is taken at the first key.
#[derive(Clone, Debug)]
pub struct PositionIndex {
    table: Option<Width>,
    /// The key appended at each position so far.
    keys: Vec<u32>,
    positions: u32,
}

impl PositionIndex {
    /// For an area of `positions` positions.
    pub fn new(positions: u32) -> Self {
        Self { table: None, keys: Vec::new(), positions }
    }

    /// How many positions have been appended since the last [`clear`](Self::clear).
    #[inline]
    pub fn appended(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Positions that are left.
    #[inline]
    pub fn free(&self) -> u32 {
        self.positions - self.appended()
    }

    /// Appends `n` consecutive keys from `key` on; answers how many of them were not there before.
    ///
    /// # Panics
    /// When fewer than `n` positions are left.
    #[inline]
    pub fn append(&mut self, key: u32, n: u32) -> u32 {
        assert!(n <= self.free(), "appended past the end");
        if self.table.is_none() {
            self.allocate();
        }
        let first = self.appended();
        self.keys.extend(key..key + n);
        let keys = &self.keys;
        let mut fresh = 0;
        let mut put = |new: bool| fresh += u32::from(new);
        match &mut self.table {
            Some(Width::Short(t)) => (0..n).for_each(|i| put(t.put(keys, key + i, first + i))),
            Some(Width::Middle(t)) => (0..n).for_each(|i| put(t.put(keys, key + i, first + i))),
            Some(Width::Long(t)) => (0..n).for_each(|i| put(t.put(keys, key + i, first + i))),
            None => {}
        }
        fresh
    }

    #[cold]
    fn allocate(&mut self) {
        self.keys = Vec::with_capacity(self.positions as usize);
        self.table = Some(match self.positions {
            n if n < u32::from(u16::GONE) => Width::Short(Table::new(n)),
            n if n < (1 << 24) - 2 => Width::Middle(Table::new(n)),
            n => Width::Long(Table::new(n)),
        });
    }

    /// Takes up positions whose contents are of no interest, up to `end`.
    pub fn skip_to(&mut self, end: u32) {
        if self.table.is_none() && end > 0 {
            self.allocate();
        }
        self.keys.resize((end as usize).max(self.keys.len()), u32::MAX);
    }

    /// The position of the newest copy of `key`.
    #[inline]
    pub fn find(&self, key: u32) -> Option<u32> {
        let found = match self.table.as_ref()? {
            Width::Short(t) => t.find(&self.keys, key),
            Width::Middle(t) => t.find(&self.keys, key),
            Width::Long(t) => t.find(&self.keys, key),
        };
        found.map(|(_, position)| position)
    }

    /// Forgets `key`; answers whether it was there. Its position stays taken.
    pub fn remove(&mut self, key: u32) -> bool {
        match &mut self.table {
            None => false,
            Some(Width::Short(t)) => t.remove(&self.keys, key),
            Some(Width::Middle(t)) => t.remove(&self.keys, key),
            Some(Width::Long(t)) => t.remove(&self.keys, key),
        }
    }

    /// The keys that are there with their positions, in the order of the positions.
    pub fn live(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let keyed = self.keys.iter().enumerate().filter(|(_, k)| **k != u32::MAX);
        keyed.map(|(p, k)| (*k, p as u32)).filter(|&(k, p)| self.find(k) == Some(p))
    }

    /// Forgets everything; all positions are free again.
    pub fn clear(&mut self) {
        self.keys.clear();
        match &mut self.table {
            None => {}
            Some(Width::Short(t)) => t.entries.fill(u16::EMPTY),
            Some(Width::Middle(t)) => t.entries.fill(Entry::EMPTY),
            Some(Width::Long(t)) => t.entries.fill(u32::EMPTY),
        }
    }

    /// A hint that `key` will be looked up or appended soon.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        match &self.table {
            None => {}
            Some(Width::Short(t)) => smrlab_blockmap::prefetch(&t.entries, t.first(key).at),
            Some(Width::Middle(t)) => smrlab_blockmap::prefetch(&t.entries, t.first(key).at),
            Some(Width::Long(t)) => smrlab_blockmap::prefetch(&t.entries, t.first(key).at),
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        let table = match &self.table {
            None => 0,
            Some(Width::Short(t)) => t.bytes(),
            Some(Width::Middle(t)) => t.bytes(),
            Some(Width::Long(t)) => t.bytes(),
        };
        (table + self.keys.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Against an ordered map, with keys that collide, appended until the area is full, over several fillings.
    fn agrees(positions: u32, span: u32, step: u32, longest: u32) {
        let mut index = PositionIndex::new(positions);
        let mut model = BTreeMap::new();
        let mut seed = 1u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (key, n) = ((seed >> 40) as u32 % span / step * step, 1 + (seed >> 33) as u32 % longest);
            if index.free() < n {
                assert_eq!(index.live().count(), model.len());
                assert!(index.live().all(|(k, p)| model[&k] == p));
                index.clear();
                model.clear();
            }
            if seed >> 62 == 0 {
                assert_eq!(index.remove(key), model.remove(&key).is_some());
                continue;
            }
            let at = index.appended();
            let before = model.len();
            model.extend((0..n).map(|i| (key + i, at + i)));
            assert_eq!(index.append(key, n) as usize, model.len() - before);
            assert_eq!(index.find(key ^ 1), model.get(&(key ^ 1)).copied());
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
    fn eight_bytes_a_block_when_full() {
        for blocks in [50_000, 131_072, 9_000_000] {
            let mut index = PositionIndex::new(blocks);
            assert_eq!(index.bytes(), 0);
            for i in 0..blocks / 8 {
                index.append(i * 104, 8);
            }
            assert_eq!(index.free(), 0);
            assert!(index.bytes().abs_diff(8 * u64::from(blocks)) < 32, "{} bytes", index.bytes());
        }
    }
}
