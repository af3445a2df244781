//! The leaves in which the items of a cache ring stand: 32 places each, and how many were left out before them.

use super::blocks::END;

/// Items in a leaf: five bits.
pub(super) const LEAF: usize = 32;

/// Up to eight consecutive blocks of one aligned unit of an S-block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Another item of the S-block, or [`END`] and the S-block's number. Where no block is valid: see [`Leaf::runs`].
    pub next: u32,
    pub unit: u16,
    /// The first block's number in the unit.
    pub first: u8,
    /// Valid blocks, by their number in the unit.
    pub mask: u8,
}

impl Item {
    /// A place without valid blocks.
    pub(super) const INVALID: Self = Self { next: END, unit: 0, first: 0, mask: 0 };

    /// The valid blocks, the lowest bit being the block at the item's place.
    #[inline]
    pub(super) fn valid(&self) -> u8 {
        if self.mask == 0 { 0 } else { self.mask >> self.first }
    }
}

/// All but the items in one line of memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Leaf {
    /// Slot (five bits) and length less one (three bits) of each item, in the order of the ring.
    pub order: [u8; LEAF],
    /// Slots in use, a bit each: [`Leaf::take`] and [`Leaf::give_back`] change them.
    pub used: u32,
    /// Slots with valid blocks, a bit each.
    pub live: u32,
    /// Position of its first item. In the cursor's leaf: of the first one that was passed.
    pub base: u32,
    /// The next leaf of the circle, or of those that are not in use.
    pub next: u32,
    /// The leaf before it in the circle.
    pub prev: u32,
    /// Places before its first item, all invalid and equally long, that are in no leaf any more.
    pub gap: Gap,
    /// Slots that stand for several invalid places of one length, a bit each: [`Item::next`] is how many.
    pub runs: u32,
    /// How many slots are in use.
    count: u8,
    /// By slot.
    pub items: [Item; LEAF],
}

impl Leaf {
    pub(super) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// A slot that was free is in use; there must be one.
    #[inline]
    pub(super) fn take(&mut self) -> u8 {
        let slot = self.used.trailing_ones();
        self.used |= 1 << slot;
        self.count += 1;
        slot as u8
    }

    /// A slot that was in use is free.
    #[inline]
    pub(super) fn give_back(&mut self, slot: u8) {
        debug_assert!(self.used >> slot & 1 == 1, "slot {slot} is free");
        self.used &= !(1 << slot);
        self.count -= 1;
    }

    /// Where slot `slot`, which is in use, stands in [`order`](Self::order).
    #[inline]
    pub(super) fn rank(&self, slot: u8) -> usize {
        const ONES: u64 = u64::MAX / 255;
        for (words, i) in self.order.as_chunks().0.iter().zip((0..).step_by(8)) {
            // Bytes that are the slot become 0, of which the first gets its highest bit set.
            let other = (u64::from_le_bytes(*words) & (31 * ONES)) ^ (u64::from(slot) * ONES);
            let found = other.wrapping_sub(ONES) & !other & (ONES << 7);
            if found != 0 {
                return i + found.trailing_zeros() as usize / 8;
            }
        }
        LEAF
    }

    /// How many places slot `slot` stands for.
    pub(super) fn places(&self, slot: u8) -> u32 {
        if self.runs >> slot & 1 == 0 { 1 } else { self.items[usize::from(slot)].next }
    }

    /// Slot `slot` stands for so many invalid places.
    pub(super) fn set_places(&mut self, slot: u8, places: u32) {
        self.runs = self.runs & !(1 << slot) | u32::from(places > 1) << slot;
        self.items[usize::from(slot)].next = places;
    }

    /// All its places.
    pub(super) fn all_places(&self) -> u32 {
        self.order[..self.count()].iter().map(|o| self.places(o & 31)).sum()
    }

    /// The length of its places less one, where it has any and they are equally long.
    pub(super) fn even(&self) -> Option<u32> {
        let (first, rest) = self.order[..self.count()].split_first()?;
        rest.iter().all(|o| o >> 5 == first >> 5).then_some(u32::from(first >> 5))
    }

    #[inline]
    pub(super) fn length(&self, ranks: std::ops::Range<usize>) -> u64 {
        let each = self.order[ranks.clone()].iter().map(|o| u64::from(o >> 5) + 1).sum();
        if self.runs == 0 { each } else { each + self.length_of_runs(&self.order[ranks]) }
    }

    /// What the places are long that share a slot with another one.
    fn length_of_runs(&self, order: &[u8]) -> u64 {
        let runs = order.iter().filter(|&o| self.runs >> (o & 31) & 1 == 1);
        runs.map(|o| u64::from(self.places(o & 31) - 1) * (u64::from(o >> 5) + 1)).sum()
    }
}

/// So many places of one length, the length less one in the lowest three bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap(pub u32);

impl Gap {
    pub(super) fn new(places: u32, length: u32) -> Self {
        if places == 0 { Self(0) } else { Self(places << 3 | length) }
    }

    pub(super) fn places(self) -> u32 {
        self.0 >> 3
    }

    /// The length of each place.
    #[inline]
    pub(super) fn length(self) -> u64 {
        u64::from(self.0 & 7) + 1
    }

    /// Whether places of this length (less one) may be among them.
    pub(super) fn takes(self, length: u32) -> bool {
        self.0 == 0 || self.0 & 7 == length
    }
}

/// A reader of [`Leaf::order`]: the item's number and its length in blocks.
pub(super) fn place(leaf: usize, order: u8) -> (u32, u64) {
    ((leaf * LEAF) as u32 + u32::from(order & 31), u64::from(order >> 5) + 1)
}

impl Leaf {
    pub(super) const EMPTY: Self = Self {
        order: [0; LEAF],
        used: 0,
        live: 0,
        base: 0,
        next: END,
        prev: END,
        gap: Gap(0),
        runs: 0,
        count: 0,
        items: [Item::INVALID; LEAF],
    };
}

/// Leaves that are taken together: more are added without moving any.
const CHUNK: usize = 256;

/// All leaves by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaves {
    /// Of a length that the compiler knows: each look at an item is one at its chunk.
    chunks: Vec<Box<[Leaf; CHUNK]>>,
    len: usize,
}

impl Leaves {
    #[inline]
    pub(super) fn get(&self, leaf: usize) -> Option<&Leaf> {
        (leaf < self.len).then(|| &self[leaf])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.chunks.len() * CHUNK * size_of::<Leaf>()) as u64
    }

    /// Adds an empty leaf; answers its number.
    pub(super) fn push(&mut self) -> usize {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(boxed(Leaf::EMPTY));
        }
        self.len += 1;
        self.len - 1
    }

    /// Hints that a leaf will be passed soon.
    #[inline]
    pub(super) fn fetch(&self, leaf: usize) {
        smrlab_blockmap::prefetch(&self.chunks[leaf / CHUNK][..], leaf % CHUNK);
        (0..LEAF).step_by(8).for_each(|i| smrlab_blockmap::prefetch(&self[leaf].items, i));
    }
}

/// `N` times the same on the heap: too much for the stack.
pub(super) fn boxed<T: Clone, const N: usize>(each: T) -> Box<[T; N]> {
    let Ok(all) = vec![each; N].into_boxed_slice().try_into() else { unreachable!("it has {N} of them") };
    all
}

impl std::ops::Index<usize> for Leaves {
    type Output = Leaf;

    #[inline]
    fn index(&self, leaf: usize) -> &Leaf {
        &self.chunks[leaf / CHUNK][leaf % CHUNK]
    }
}

impl std::ops::IndexMut<usize> for Leaves {
    #[inline]
    fn index_mut(&mut self, leaf: usize) -> &mut Leaf {
        &mut self.chunks[leaf / CHUNK][leaf % CHUNK]
    }
}
