//! One set: a cache band and what is in it; and which set a native band belongs to.

use super::Shares;
use crate::parts::position_index::PositionIndex;
use smrlab_units::Pba;
use smrlab_units::reciprocal::Reciprocal;

/// A native band's set is not decided.
const NONE: u32 = u32::MAX;

/// A cache band, the index of the units in it, and how many of them belong to each native band.
#[derive(Clone, Debug)]
pub(super) struct Set {
    /// First block of the cache band.
    pub base: Pba,
    pub index: PositionIndex,
    live: Vec<u32>,
    /// Cached units of all native bands.
    pub live_units: u64,
    /// How many fences there had been, and one, when it was emptied; 0: never.
    pub emptied: u64,
    /// The native band of each slot, where association is dynamic.
    pub natives: Vec<u32>,
}

impl Set {
    pub(super) fn new(base: Pba, units: u32, slots: usize) -> Self {
        Self {
            base,
            index: PositionIndex::new(units),
            live: vec![0; slots],
            live_units: 0,
            emptied: 0,
            natives: Vec::new(),
        }
    }

    pub(super) fn key(slot: u32, units: u64, unit: u64) -> u32 {
        (u64::from(slot) * units + unit) as u32
    }

    /// Units of a native band that are cached.
    #[inline]
    pub(super) fn live(&self, slot: u32) -> u32 {
        self.live[slot as usize]
    }

    pub(super) fn slots(&self) -> u32 {
        self.live.len() as u32
    }

    /// Appends `n` units of a native band from `unit` on; answers how many were not cached before.
    #[inline]
    pub(super) fn append(&mut self, slot: u32, units: u64, unit: u64, n: u64) -> u64 {
        let new = self.index.append(Self::key(slot, units, unit), n as u32);
        self.live[slot as usize] += new;
        self.live_units += u64::from(new);
        u64::from(new)
    }

    /// The position of a unit's newest copy.
    #[inline]
    pub(super) fn find(&self, slot: u32, units: u64, unit: u64) -> Option<u32> {
        self.index.find(Self::key(slot, units, unit))
    }

    /// The same, and how many units up to `most` follow it there, or are not cached like it.
    #[inline]
    pub(super) fn find_run(&self, slot: u32, units: u64, unit: u64, most: u64) -> (Option<u32>, u64) {
        // A key's group may go on in the next band's units, which nobody asked for.
        let (position, n) = self.index.find_run(Self::key(slot, units, unit), most as u32);
        (position, u64::from(n))
    }

    /// Takes a unit out; answers whether it was there.
    pub(super) fn forget(&mut self, slot: u32, units: u64, unit: u64) -> bool {
        let was = self.index.remove(Self::key(slot, units, unit));
        self.live[slot as usize] -= u32::from(was);
        self.live_units -= u64::from(was);
        was
    }

    /// Takes all units of a native band out; answers how many there were.
    pub(super) fn forget_band(&mut self, slot: u32, units: u64) -> u64 {
        let first = Self::key(slot, units, 0);
        let gone = self.index.remove_range(first..first + units as u32);
        self.live[slot as usize] -= gone;
        self.live_units -= u64::from(gone);
        u64::from(gone)
    }

    #[inline]
    pub(super) fn prefetch(&self, key: u32, units: Reciprocal) {
        self.index.prefetch(key);
        smrlab_blockmap::prefetch(&self.live, units.div(key.into()) as usize);
    }

    /// Gives a native band a slot: the one that it had since the cache band was empty, the next one, or, where there are as many as
    /// units, that of another band of which nothing is cached; answers with that one, too.
    fn adopt(&mut self, native: u64) -> (u32, Option<u64>) {
        if let Some(slot) = self.natives.iter().position(|&n| u64::from(n) == native) {
            return (slot as u32, None);
        }
        let full = self.natives.len() >= (self.index.appended() + self.index.free()) as usize;
        if full && let Some(slot) = self.live.iter().position(|&units| units == 0) {
            let other = std::mem::replace(&mut self.natives[slot], native as u32);
            return (slot as u32, Some(other.into()));
        }
        self.natives.push(native as u32);
        self.live.push(0);
        (self.live.len() as u32 - 1, None)
    }

    /// Empties the cache band.
    pub(super) fn reset(&mut self) {
        self.index.clear();
        self.live_units = 0;
        if self.natives.is_empty() {
            self.live.fill(0);
        } else {
            self.natives.clear();
            self.live.clear();
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.index.bytes() + ((self.live.capacity() + self.natives.capacity()) * size_of::<u32>()) as u64
    }
}

/// Which set serves a native band, and the band's number ("slot") within the set.
#[derive(Clone, Debug)]
pub(super) enum Homes {
    /// Native band `i` belongs to set `i mod M` for ever (section IV.A).
    Fixed(Reciprocal),
    /// To the set that had the most room when the band's first block was cached.
    Dynamic(Vec<(u32, u32)>),
}

/// Set and slot of a native band for ever.
#[inline]
fn fixed(sets: Reciprocal, native: u64) -> (usize, u32) {
    let (slot, set) = sets.div_rem(native);
    (set as usize, slot as u32)
}

impl Homes {
    pub(super) fn new(shares: Shares, dynamic: bool) -> Self {
        if dynamic {
            Self::Dynamic(vec![(NONE, 0); shares.native as usize])
        } else {
            Self::Fixed(Reciprocal::new(shares.cache))
        }
    }

    /// Set and slot of a native band; `None` where it has none.
    #[inline]
    pub(super) fn of(&self, native: u64) -> Option<(usize, u32)> {
        match self {
            Self::Fixed(sets) => Some(fixed(*sets, native)),
            Self::Dynamic(homes) => {
                let (set, slot) = homes[native as usize];
                (set != NONE).then_some((set as usize, slot))
            }
        }
    }

    /// The same, choosing one for a native band of which nothing is cached.
    #[inline]
    pub(super) fn for_write(&mut self, native: u64, sets: &mut [Set]) -> (usize, u32) {
        match self.of(native) {
            Some(home) if matches!(self, Self::Fixed(_)) || sets[home.0].live(home.1) > 0 => home,
            _ => self.choose(native, sets),
        }
    }

    fn choose(&mut self, native: u64, sets: &mut [Set]) -> (usize, u32) {
        let roomiest = (0..sets.len()).rev().max_by_key(|&s| sets[s].index.free()).unwrap_or(0);
        match self.of(native) {
            Some(home) if home.0 == roomiest => home,
            _ => self.settle(native, roomiest, sets),
        }
    }

    /// Gives `native` to `set`.
    pub(super) fn settle(&mut self, native: u64, set: usize, sets: &mut [Set]) -> (usize, u32) {
        match self {
            Self::Fixed(sets) => fixed(*sets, native),
            Self::Dynamic(homes) => {
                let (slot, other) = sets[set].adopt(native);
                if let Some(other) = other.filter(|&other| homes[other as usize] == (set as u32, slot)) {
                    homes[other as usize] = (NONE, 0);
                }
                homes[native as usize] = (set as u32, slot);
                (set, slot)
            }
        }
    }

    /// The native band of a slot.
    pub(super) fn native(&self, set: usize, slot: u32, sets: &[Set]) -> u64 {
        match self {
            Self::Fixed(n) => u64::from(slot) * n.divisor() + set as u64,
            Self::Dynamic(_) => u64::from(sets[set].natives[slot as usize]),
        }
    }

    /// The slots of a set are about to be given up.
    pub(super) fn release(&mut self, set: usize, sets: &[Set]) {
        if let Self::Dynamic(homes) = self {
            for &native in &sets[set].natives {
                if homes[native as usize].0 == set as u32 {
                    homes[native as usize] = (NONE, 0);
                }
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Fixed(_) => 0,
            Self::Dynamic(homes) => (homes.capacity() * size_of::<(u32, u32)>()) as u64,
        }
    }
}
