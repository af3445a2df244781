//! The places in use of a cache ring, from the tail to the head, numbered as they come.

use super::cache::NONE;

/// A place in the ring, up to the next one or the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Meaningless where no block is valid.
    pub entry: u32,
    /// Position of block `first`.
    pub at: u32,
    pub sblock: u32,
    pub unit: u16,
    /// The first block's number in the unit.
    pub first: u8,
    /// Valid blocks, by their number in the unit.
    pub mask: u8,
}

impl Item {
    /// A place without valid blocks.
    pub fn invalid(at: u32) -> Self {
        Self { entry: NONE, at, sblock: NONE, unit: 0, first: 0, mask: 0 }
    }
}

/// How many items before an item is pushed its cache line is fetched.
const EARLY: u32 = 24;

/// A queue whose items keep their numbers (modulo 2^32) as long as they are in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    slots: Vec<Item>,
    /// Number of the first item.
    first: u32,
    len: u32,
}

impl Items {
    #[inline]
    fn mask(&self) -> u32 {
        (self.slots.len() as u32).wrapping_sub(1)
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The number that the next item will get.
    #[inline]
    pub fn next(&self) -> u32 {
        self.first.wrapping_add(self.len)
    }

    #[inline]
    pub fn push(&mut self, item: Item) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let mask = self.mask();
        let at = self.next() & mask;
        // Four items a line: the line that will be written next but five.
        if at & 3 == 0 {
            smrlab_blockmap::prefetch(&self.slots, (at.wrapping_add(EARLY) & mask) as usize);
        }
        self.slots[at as usize] = item;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.slots.len() as u32;
        let size = (old * 2).max(64);
        let mut slots = vec![Item::invalid(0); size as usize];
        for i in 0..self.len {
            let number = self.first.wrapping_add(i);
            slots[(number & (size - 1)) as usize] = self.slots[(number & (old - 1)) as usize];
        }
        self.slots = slots;
    }

    #[inline]
    pub fn pop(&mut self) {
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
    }

    /// Item `i` from the tail.
    #[inline]
    pub fn at(&self, i: usize) -> &Item {
        debug_assert!(i < self.len());
        &self.slots[(self.first.wrapping_add(i as u32) & self.mask()) as usize]
    }

    #[inline]
    pub fn at_mut(&mut self, i: usize) -> &mut Item {
        let slot = self.first.wrapping_add(i as u32) & self.mask();
        &mut self.slots[slot as usize]
    }

    /// Item `i` from the tail, if there are as many.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&Item> {
        (i < self.len()).then(|| self.at(i))
    }

    /// The item of this number.
    #[inline]
    pub fn numbered(&self, number: u32) -> &Item {
        &self.slots[(number & self.mask()) as usize]
    }

    #[inline]
    pub fn numbered_mut(&mut self, number: u32) -> &mut Item {
        let slot = number & self.mask();
        &mut self.slots[slot as usize]
    }

    /// A hint that the item of this number will be looked at soon.
    #[inline]
    pub fn fetch(&self, number: u32) {
        smrlab_blockmap::prefetch(&self.slots, (number & self.mask()) as usize);
    }

    pub fn bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<Item>()) as u64
    }
}
