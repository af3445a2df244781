//! What was written near each place of a space, as long as that is one extent: four bytes a place answer most requests to a huge
//! drive without a look at the set of all that was written.

use std::ops::Range;

/// Places, at most, into which a space is divided to note what was written: four bytes each, of those that were touched.
const PLACES: u64 = 1 << 24;

/// What was written in each place of a few blocks to a few thousand, as long as that is one extent. Pays where its memory is
/// fetched beforehand.
pub(super) struct Places {
    /// 0: nothing; [`SEVERAL`]; or the extent, its offset in the lower `shift` bits and its length above. Empty: nobody knows.
    cells: Vec<u32>,
    /// A place has two to this power of blocks.
    shift: u32,
}

/// In a place: what the set has.
const SEVERAL: u32 = u32::MAX;

/// What the places know of some blocks.
pub(super) enum Known {
    /// None was ever written.
    Untouched,
    /// So many of them were; the set has none.
    Touched(u64),
    /// What the set says, once it has what the places say.
    Set,
}

impl Places {
    pub(super) fn unknown() -> Self {
        Self { cells: Vec::new(), shift: 0 }
    }

    pub(super) fn new(host: u64) -> Self {
        let mut shift = 3;
        while host >> shift >= PLACES {
            shift += 1;
        }
        // The length has to find room beside the offset.
        if shift > 24 {
            Self::unknown()
        } else {
            Self { cells: vec![0; (host >> shift) as usize + 1], shift }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Nothing is written any more.
    pub(super) fn clear(&mut self) {
        self.cells.fill(0);
    }

    /// Asks for the memory of a block's place.
    #[inline]
    pub(super) fn prefetch(&self, lba: u64) {
        smrlab_blockmap::prefetch(&self.cells, (lba >> self.shift) as usize);
    }

    /// The place that holds all of `n` blocks, at least one, where one does.
    fn only(&self, lba: u64, n: u64) -> Option<usize> {
        let first = lba >> self.shift;
        (first == (lba + n - 1) >> self.shift && first < self.cells.len() as u64).then_some(first as usize)
    }

    /// The extent that was written in a place.
    fn extent(&self, place: usize, cell: u32) -> Range<u64> {
        let at = (place as u64) << self.shift | u64::from(cell) & ((1 << self.shift) - 1);
        at..at + u64::from(cell >> self.shift)
    }

    /// The places of `n` blocks, at least one; what lies beyond the space has none.
    #[inline]
    pub(super) fn all(&self, lba: u64, n: u64) -> Range<usize> {
        let place = |block: u64| usize::try_from(block >> self.shift).unwrap_or(usize::MAX);
        place(lba)..place(lba + n - 1).saturating_add(1).min(self.cells.len())
    }

    /// What is known of `n` blocks, at least one.
    #[inline]
    pub(super) fn known(&self, lba: u64, n: u64) -> Known {
        let Some(place) = self.only(lba, n) else {
            let all = self.all(lba, n);
            let untouched = lba + n <= (self.cells.len() as u64) << self.shift
                && self.cells[all].iter().all(|cell| *cell == 0);
            return if untouched { Known::Untouched } else { Known::Set };
        };
        match self.cells[place] {
            0 => Known::Untouched,
            SEVERAL => Known::Set,
            cell => {
                let one = self.extent(place, cell);
                Known::Touched(one.end.min(lba + n).saturating_sub(one.start.max(lba)))
            }
        }
    }

    /// Notes `n` blocks, at least one, where they are the first in their place; `false`: the set is to have them.
    #[inline]
    pub(super) fn note_first(&mut self, lba: u64, n: u64) -> bool {
        let Some(place) = self.only(lba, n).filter(|&place| self.cells[place] == 0) else { return false };
        // A length that filled the upper bits could look like `SEVERAL`.
        let fits = n < (1 << (32 - self.shift)) - 1;
        if fits {
            self.cells[place] = (n << self.shift | lba & ((1 << self.shift) - 1)) as u32;
        }
        fits
    }

    /// Whatever is written in a place, the set is to have it.
    #[inline]
    pub(super) fn leave_to_set(&mut self, place: usize) {
        self.cells[place] = SEVERAL;
    }

    /// The extent of a place, which is the set's from now on; `None`: nothing, or the set has it.
    #[inline]
    pub(super) fn take(&mut self, place: usize) -> Option<Range<u64>> {
        let cell = self.cells[place];
        if cell == 0 || cell == SEVERAL {
            return None;
        }
        self.cells[place] = SEVERAL;
        Some(self.extent(place, cell))
    }
}
