//! Pages on the SSD: which sectors of them are valid, and where they are.

use crate::layouts::chunks::cut;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// Sectors of a page, a bit each.
pub(super) type Mask = u128;

/// Most blocks of a page: 64 KiB.
pub(super) const LARGEST: u64 = 128;

/// The bits of blocks `within` a page.
pub(super) fn mask(within: &Range<u64>) -> Mask {
    let below = |n: u64| if n >= 128 { Mask::MAX } else { (1 << n) - 1 };
    below(within.end) & !below(within.start)
}

/// The runs of ones.
pub(super) fn runs(mut mask: Mask, mut each: impl FnMut(Range<u64>)) {
    let mut at = 0;
    while mask != 0 {
        let skip = u64::from(mask.trailing_zeros());
        mask >>= skip;
        at += skip;
        let n = u64::from(mask.trailing_ones());
        each(at..at + n);
        mask = if n >= 128 { 0 } else { mask >> n };
        at += n;
    }
}

/// Whether two ranges have a block in common.
pub(super) fn meet(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// What a range of blocks has in one page.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub page: u64,
    /// Blocks of the page.
    pub within: Range<u64>,
    /// Where the first of them is in the range.
    pub at: u64,
}

impl Part {
    /// A range, page by page of `size` blocks.
    pub(super) fn of(blocks: &Range<u64>, size: u64) -> impl Iterator<Item = Self> + use<> {
        cut(blocks, size).map(|(page, within, at)| Self { page, within, at })
    }

    /// The blocks themselves.
    pub(super) fn span(&self, size: u64) -> Range<u64> {
        self.page * size + self.within.start..self.page * size + self.within.end
    }

    /// Its sectors of the page.
    pub(super) fn mask(&self) -> Mask {
        mask(&self.within)
    }

    /// Where these blocks of the page are in the range.
    pub(super) fn in_range(&self, within: &Range<u64>) -> Range<u64> {
        let moved = |block: u64| self.at + block - self.within.start;
        moved(within.start)..moved(within.end)
    }
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Its place on the SSD, counted in pages.
    pub slot: u64,
    /// Sectors that are valid.
    pub valid: Mask,
    /// When it was last written: larger is later.
    pub stamp: u64,
}

/// Free places, the one that is free for the longest first: in runs, because an SSD has millions that were never used.
#[derive(Clone, Debug)]
struct Free {
    runs: VecDeque<Range<u64>>,
    len: u64,
}

impl Free {
    /// All of these, which ascend.
    fn of(runs: impl Iterator<Item = Range<u64>>) -> Self {
        let runs: VecDeque<_> = runs.filter(|run| !run.is_empty()).collect();
        Self { len: runs.iter().map(|run| run.end - run.start).sum(), runs }
    }

    fn take(&mut self) -> Option<u64> {
        let first = self.runs.front_mut()?;
        let slot = first.next();
        if first.is_empty() {
            self.runs.pop_front();
        }
        self.len -= 1;
        slot
    }

    fn put(&mut self, slot: u64) {
        match self.runs.back_mut() {
            Some(last) if last.end == slot => last.end += 1,
            _ => self.runs.push_back(slot..slot + 1),
        }
        self.len += 1;
    }
}

/// The pages of one cache, and its places on the SSD.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pages: BTreeMap<u64, Page>,
    slots: Range<u64>,
    free: Free,
    /// So many of the last free ones became so lately: after a loss of power they hold what they held.
    needed: u64,
}

impl Pages {
    /// None, in these places.
    pub(super) fn new(slots: Range<u64>) -> Self {
        Self { pages: BTreeMap::new(), free: Free::of(std::iter::once(slots.clone())), slots, needed: 0 }
    }

    /// Whether a page has a place, or can have one.
    pub(super) fn has_room(&self, page: u64) -> bool {
        self.free.len > 0 || self.get(page).is_some()
    }

    /// Pages held.
    pub(super) fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The page of this number.
    #[inline]
    pub(super) fn get(&self, page: u64) -> Option<&Page> {
        self.pages.get(&page)
    }

    /// Its valid sectors.
    #[inline]
    pub(super) fn valid(&self, page: u64) -> Mask {
        self.get(page).map_or(0, |p| p.valid)
    }

    /// Pages of a range, ascending.
    pub(super) fn range(&self, pages: Range<u64>) -> impl Iterator<Item = (u64, &Page)> {
        self.pages.range(pages).map(|(n, p)| (*n, p))
    }

    /// Makes sectors valid; a page that is not there takes a free place. `None`: there is none.
    pub(super) fn put(&mut self, page: u64, sectors: Mask, stamp: u64) -> Option<Page> {
        let found = match self.pages.entry(page) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(new) => new.insert(Page { slot: self.free.take()?, valid: 0, stamp }),
        };
        found.valid |= sectors;
        found.stamp = stamp;
        Some(*found)
    }

    /// Whether the next place to be taken is one that is still needed after a loss of power.
    pub(super) fn next_is_needed(&self) -> bool {
        self.needed == self.free.len && self.needed > 0
    }

    /// What was recorded so far, and what the disks hold, survives a loss of power.
    pub(super) fn durable(&mut self) {
        self.needed = 0;
    }

    /// Puts a page where a record says it is; [`restored`](Self::restored) follows the last one.
    pub(super) fn restore(&mut self, page: u64, found: Page) {
        self.pages.insert(page, found);
    }

    /// All records were heard: places that no page has are free. What they hold is needed until it is known to be durable that
    /// they are.
    pub(super) fn restored(&mut self) {
        let taken: BTreeSet<u64> = self.pages.values().map(|p| p.slot).collect();
        let begins = std::iter::once(self.slots.start).chain(taken.iter().map(|slot| slot + 1));
        let ends = taken.iter().copied().chain(std::iter::once(self.slots.end));
        self.free = Free::of(begins.zip(ends).map(|(begin, end)| begin..end));
        self.needed = self.free.len;
    }

    /// Makes sectors invalid; `true`: the page is gone by that. One that is to `stay` keeps its place.
    pub(super) fn drop_sectors(&mut self, page: u64, sectors: Mask, stay: bool) -> bool {
        let Some(p) = self.pages.get_mut(&page) else { return false };
        p.valid &= !sectors;
        let gone = p.valid == 0 && !stay;
        if gone {
            self.remove(page);
        }
        gone
    }

    /// The page is gone.
    pub(super) fn remove(&mut self, page: u64) {
        if let Some(p) = self.pages.remove(&page) {
            self.free.put(p.slot);
            self.needed += 1;
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        (self.pages.len() * 48 + self.free.runs.len() * 16) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place that became free, or was free before a restart, is needed until the state that says so is durable; others go first.
    #[test]
    fn what_places_held_is_needed_until_it_is_durable_that_they_are_free() {
        let mut pages = Pages::new(0..3);
        for page in [7, 8] {
            assert!(!pages.next_is_needed());
            pages.put(page, 1, page);
        }
        pages.remove(7);
        assert!(!pages.next_is_needed(), "the third place was never used");
        assert_eq!(pages.put(9, 1, 9).map(|p| p.slot), Some(2));
        assert!(pages.next_is_needed());
        pages.durable();
        assert!(!pages.next_is_needed());
        let mut again = Pages::new(0..3);
        again.restore(8, *pages.get(8).unwrap());
        again.restored();
        assert!(again.next_is_needed());
        again.durable();
        assert!(!again.next_is_needed());
        assert_eq!(
            [10, 11, 12].map(|page| again.put(page, 1, page).map(|p| p.slot)),
            [Some(0), Some(2), None]
        );
        assert!(!again.next_is_needed(), "none is free");
    }

    /// Places are taken in the order in which they became free, never used ones first; ten million million take no memory.
    #[test]
    fn places_are_taken_in_the_order_in_which_they_became_free() {
        let mut pages = Pages::new(5..10_000_000_000_000);
        let put = |pages: &mut Pages, page| pages.put(page, 1, page).map(|p| p.slot);
        assert_eq!([1, 2, 3, 4].map(|page| put(&mut pages, page)), [5, 6, 7, 8].map(Some));
        assert_eq!(pages.bytes(), 4 * 48 + 16);
        let mut small = Pages::new(0..4);
        (0..4).for_each(|page| _ = put(&mut small, page));
        [2, 3, 0].into_iter().for_each(|page| small.remove(page));
        assert_eq!([10, 11, 12, 13].map(|page| put(&mut small, page)), [Some(2), Some(3), Some(0), None]);
        assert!(small.has_room(10) && !small.has_room(14));
        // Three are known after a restart: the places between, before and behind them are free.
        let mut again = Pages::new(0..7);
        [(1, 4), (2, 5), (3, 1)]
            .into_iter()
            .for_each(|(page, slot)| again.restore(page, Page { slot, valid: 1, stamp: 0 }));
        again.restored();
        assert_eq!(
            [20, 21, 22, 23, 24].map(|page| put(&mut again, page)),
            [Some(0), Some(2), Some(3), Some(6), None]
        );
    }

    #[test]
    fn runs_of_a_mask_are_its_ranges() {
        let cases: [&[(u64, u64)]; 5] =
            [&[(0, 1)], &[(3, 5), (7, 128)], &[(0, 128)], &[(0, 64), (65, 66), (127, 128)], &[]];
        for ranges in cases {
            let ranges: Vec<Range<u64>> = ranges.iter().map(|(from, to)| *from..*to).collect();
            let all = ranges.iter().fold(0, |m, r| m | mask(r));
            let mut found = Vec::new();
            runs(all, |r| found.push(r));
            assert_eq!(found, ranges);
        }
    }
}
