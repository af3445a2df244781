//! What is known of pages of a space, found by hashing: the same on every run, because the hash has no seed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// Spreads page numbers, which mostly follow each other or a stride.
#[derive(Clone, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, n: u64) {
        // The map looks at the upper seven bits and at the lower ones.
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// Something of each page that was touched.
#[derive(Clone)]
pub(super) struct Hashed<T>(HashMap<u64, T, BuildHasherDefault<Spread>>);

impl<T> Default for Hashed<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T> Hashed<T> {
    #[inline]
    pub(super) fn get(&self, page: u64) -> Option<&T> {
        self.0.get(&page)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, page: u64) -> Option<&mut T> {
        self.0.get_mut(&page)
    }

    pub(super) fn insert(&mut self, page: u64, of: T) {
        self.0.insert(page, of);
    }

    pub(super) fn remove(&mut self, page: u64) {
        self.0.remove(&page);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Pages to look at for all of `range` that were touched, ascending; others may be among them.
    pub(super) fn keys(&self, range: Range<u64>) -> Keys {
        if range.end.saturating_sub(range.start) <= self.0.len() as u64 {
            return Keys { all: range, touched: None };
        }
        let mut touched: Vec<u64> = self.0.keys().copied().filter(|page| range.contains(page)).collect();
        touched.sort_unstable();
        Keys { all: 0..0, touched: Some(touched.into_iter()) }
    }

    /// All pages that were touched, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.0.iter().map(|(page, of)| (*page, of))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    /// Bytes of the table, nearly.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * (size_of::<(u64, T)>() + 1) * 8 / 7
    }
}

/// See [`Hashed::keys`].
pub(super) struct Keys {
    all: Range<u64>,
    touched: Option<std::vec::IntoIter<u64>>,
}

impl Iterator for Keys {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match &mut self.touched {
            None => self.all.next(),
            Some(touched) => touched.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a range with fewer pages than were touched, and of one with more: all that were touched, ascending, and none twice.
    #[test]
    fn a_range_of_pages_is_looked_at_in_order() {
        let mut pages = Hashed::default();
        let touched = [5u64, 1 << 40, 6, 900, 7, 0, u64::MAX / 1024];
        touched.iter().for_each(|page| pages.insert(*page, page + 1));
        for (range, want) in [(5..8, vec![5, 6, 7]), (0..1000, vec![0, 5, 6, 7, 900]), (8..900, vec![])] {
            let found: Vec<u64> = pages.keys(range).filter(|page| pages.get(*page).is_some()).collect();
            assert_eq!(found, want);
        }
        pages.remove(6);
        assert_eq!((pages.get(6), pages.get(7)), (None, Some(&8)));
        assert_eq!(pages.values().sum::<u64>(), touched.iter().map(|page| page + 1).sum::<u64>() - 7);
    }
}
