//! Which position of an append-only area holds the newest copy of a key: a hash table whose entries are only positions.
//!
//! The keys themselves stand in the order of their positions, where the area's contents are known anyway, so an entry
//! costs 2 or 4 bytes at half load and a position 4. Eight neighbouring keys share one group of entries, so that a
//! request of several blocks touches one cache line of the table.

/// Entries in a group; keys that differ in the lower three bits only lie in one group.
const GROUP: usize = 8;

/// A table entry: a position, or one of two marks.
trait Entry: Copy + Eq {
    const EMPTY: Self;
    const GONE: Self;
    fn pack(position: u32) -> Self;
    fn position(self) -> u32;
}

impl Entry for u16 {
    const EMPTY: Self = Self::MAX;
    const GONE: Self = Self::MAX - 1;
    fn pack(position: u32) -> Self {
        position as Self
    }
    fn position(self) -> u32 {
        u32::from(self)
    }
}

impl Entry for u32 {
    const EMPTY: Self = Self::MAX;
    const GONE: Self = Self::MAX - 1;
    fn pack(position: u32) -> Self {
        position
    }
    fn position(self) -> u32 {
        self
    }
}

/// The groups of entries.
#[derive(Clone, Debug)]
struct Table<T> {
    entries: Vec<T>,
    groups: u32,
}

impl<T: Entry> Table<T> {
    fn new(positions: u32) -> Self {
        let groups = (positions as usize * 2).div_ceil(GROUP).max(2);
        Self { entries: vec![T::EMPTY; groups * GROUP], groups: groups as u32 }
    }

    #[inline]
    fn first(&self, key: u32) -> usize {
        let mixed = (key >> 3).wrapping_mul(0x9E37_79B1);
        let mixed = mixed ^ (mixed >> 15);
        let group = (u64::from(mixed) * u64::from(self.groups)) >> 32;
        // Rotated by the hash, so that keys at a regular distance do not all want the same lane.
        group as usize * GROUP + (key.wrapping_add(mixed) as usize & (GROUP - 1))
    }

    /// The same lane of the next group; behind the last group the next lane, so that every entry is reached.
    #[inline]
    fn step(&self, at: usize) -> usize {
        let next = at + GROUP;
        if next < self.entries.len() { next } else { (at + 1) & (GROUP - 1) }
    }

    #[inline]
    fn find(&self, keys: &[u32], key: u32) -> Option<usize> {
        let mut at = self.first(key);
        loop {
            let e = self.entries[at];
            if e == T::EMPTY {
                return None;
            }
            if e != T::GONE && keys[e.position() as usize] == key {
                return Some(at);
            }
            at = self.step(at);
        }
    }

    /// Answers whether the key is new.
    #[inline]
    fn put(&mut self, keys: &[u32], key: u32, position: u32) -> bool {
        let mut at = self.first(key);
        let mut gone = None;
        loop {
            let e = self.entries[at];
            if e == T::EMPTY {
                self.entries[gone.unwrap_or(at)] = T::pack(position);
                return true;
            }
            if e == T::GONE {
                gone = gone.or(Some(at));
            } else if keys[e.position() as usize] == key {
                self.entries[at] = T::pack(position);
                return false;
            }
            at = self.step(at);
        }
    }
}

#[derive(Clone, Debug)]
enum Width {
    Short(Table<u16>),
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
        let mut new = 0;
        match &mut self.table {
            Some(Width::Short(t)) => (0..n).for_each(|i| new += u32::from(t.put(keys, key + i, first + i))),
            Some(Width::Long(t)) => (0..n).for_each(|i| new += u32::from(t.put(keys, key + i, first + i))),
            None => {}
        }
        new
    }

    #[cold]
    fn allocate(&mut self) {
        self.keys = Vec::with_capacity(self.positions as usize);
        self.table = Some(if self.positions < u32::from(u16::GONE) {
            Width::Short(Table::new(self.positions))
        } else {
            Width::Long(Table::new(self.positions))
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
        match self.table.as_ref()? {
            Width::Short(t) => t.find(&self.keys, key).map(|at| t.entries[at].position()),
            Width::Long(t) => t.find(&self.keys, key).map(|at| t.entries[at].position()),
        }
    }

    /// Forgets `key`; answers whether it was there. Its position stays taken.
    pub fn remove(&mut self, key: u32) -> bool {
        let found = match &mut self.table {
            None => None,
            Some(Width::Short(t)) => t.find(&self.keys, key).map(|at| t.entries[at] = u16::GONE),
            Some(Width::Long(t)) => t.find(&self.keys, key).map(|at| t.entries[at] = u32::GONE),
        };
        found.is_some()
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
            Some(Width::Long(t)) => t.entries.fill(u32::EMPTY),
        }
    }

    /// A hint that `key` will be looked up or appended soon.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        match &self.table {
            None => {}
            Some(Width::Short(t)) => smrlab_blockmap::prefetch(&t.entries, t.first(key)),
            Some(Width::Long(t)) => smrlab_blockmap::prefetch(&t.entries, t.first(key)),
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        let table = match &self.table {
            None => 0,
            Some(Width::Short(t)) => t.entries.capacity() * size_of::<u16>(),
            Some(Width::Long(t)) => t.entries.capacity() * size_of::<u32>(),
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
    }

    #[test]
    fn eight_bytes_a_block_when_full() {
        let mut index = PositionIndex::new(50_000);
        assert_eq!(index.bytes(), 0);
        for i in 0..6_250 {
            index.append(i * 104, 8);
        }
        assert_eq!((index.free(), index.bytes()), (0, 8 * 50_000));
    }
}
