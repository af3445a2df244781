//! The directory above the regions.

use std::ops::Range;

use crate::node::{LEAF, Node, REGION};
use crate::payload::Payload;
use crate::prefetch::{Hints, prefetch};

/// Regions in a directory page (8 GiB).
const PAGE: usize = 64;
/// Hints between two steps of a prefetch.
const APART: usize = 4;
/// Units in a directory page.
const PAGE_UNITS: u64 = (PAGE * REGION) as u64;

type Page<P> = [Node<P>; PAGE];

/// A value for each unit, nearly all of them the default.
pub(crate) struct UnitTree<P: Payload> {
    pages: Vec<Option<Box<Page<P>>>>,
    /// The page that was emptied last: a set that holds little is mostly emptied and filled again and again.
    spare: Option<Box<Page<P>>>,
    weight: u64,
    heap: usize,
    hints: Hints,
}

impl<P: Payload> Default for UnitTree<P> {
    fn default() -> Self {
        Self { pages: Vec::new(), spare: None, weight: 0, heap: 0, hints: Hints::default() }
    }
}

/// Page, region in it, and offset in that of a unit.
fn place(unit: u64) -> (usize, usize, usize) {
    let (page, rest) = ((unit / PAGE_UNITS) as usize, (unit % PAGE_UNITS) as usize);
    (page, rest / REGION, rest % REGION)
}

impl<P: Payload> UnitTree<P> {
    /// The sum of the weights of all units.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// Bytes on the heap, but for an empty page.
    pub(crate) fn bytes(&self) -> usize {
        self.heap + self.pages.capacity() * size_of::<Option<Box<Page<P>>>>()
    }

    #[inline]
    pub(crate) fn get(&self, unit: u64) -> P {
        let (page, region, offset) = place(unit);
        match self.pages.get(page) {
            Some(Some(page)) => page[region].get(offset, REGION),
            _ => P::default(),
        }
    }

    /// The value at `unit` and the first unit behind it at which another may begin (`u64::MAX`: none does). No further than
    /// `until`, which is behind `unit`, is looked.
    pub(crate) fn piece(&self, unit: u64, until: u64) -> (u64, P) {
        let (page, region, offset) = place(unit);
        match self.pages.get(page) {
            Some(Some(regions)) => {
                let until = (until - unit).min(REGION as u64) as usize + offset;
                let (end, value) = regions[region].piece(offset, until, REGION);
                (unit - offset as u64 + end as u64, value)
            }
            Some(None) => ((page as u64 + 1) * PAGE_UNITS, P::default()),
            None => (u64::MAX, P::default()),
        }
    }

    /// Hints that `unit` will be used soon. Takes three steps, for an address is only known when what leads to it is in the
    /// cache: the region of this unit now, its leaf or entries [`APART`] calls later, what is in the leaf as many later.
    #[inline]
    pub(crate) fn prefetch(&self, unit: u64) {
        let (page, region, _) = place(unit);
        if let Some(Some(page)) = self.pages.get(page) {
            prefetch(&page[..], region);
        }
        let earlier = self.hints.add(unit);
        let (page, region, offset) = place(earlier(APART));
        if let Some(Some(page)) = self.pages.get(page) {
            page[region].prefetch(offset);
        }
        let (page, region, offset) = place(earlier(2 * APART));
        if let Some(Some(page)) = self.pages.get(page) {
            page[region].prefetch_leaf(offset);
        }
    }

    fn page_mut(&mut self, page: usize) -> (&mut Page<P>, &mut usize) {
        if page >= self.pages.len() {
            self.pages.reserve_exact((page + 1 - self.pages.len()).max(self.pages.len() / 4));
            self.pages.resize_with(page + 1, || None);
        }
        let regions = self.pages[page].get_or_insert_with(|| {
            self.heap += size_of::<Page<P>>();
            let empty = || Box::new(std::array::from_fn(|_| Node::Const(P::default())));
            self.spare.take().unwrap_or_else(empty)
        });
        (regions, &mut self.heap)
    }

    /// Takes the page away if nothing is in it any more.
    fn drop_empty_page(&mut self, page: usize) {
        let empty = |regions: &Page<P>| regions.iter().all(Node::is_empty);
        if self.pages[page].as_deref().is_some_and(empty) {
            self.spare = self.pages[page].take();
            self.heap -= size_of::<Page<P>>();
        }
    }

    /// Replaces the value at `unit` by `change` of it; answers with the old and the new one.
    #[inline]
    pub(crate) fn modify(&mut self, unit: u64, change: impl FnOnce(P) -> P) -> (P, P) {
        let (page, region, offset) = place(unit);
        let Some(Some(regions)) = self.pages.get_mut(page) else {
            let new = change(P::default());
            if new != P::default() {
                self.fill(unit..unit + 1, new);
            }
            return (P::default(), new);
        };
        let (old, new) = regions[region].modify(offset, REGION, &mut self.heap, change);
        self.weight = self.weight + new.weight() - old.weight();
        if new == P::default() && new != old && regions[region].is_empty() {
            self.drop_empty_page(page);
        }
        (old, new)
    }

    /// Gives each unit of `range` a value of its own, none of which is the default.
    pub(crate) fn fill_each(&mut self, range: Range<u64>, value: impl Fn(u64) -> P) {
        let mut unit = range.start;
        while unit < range.end {
            let (page, region, offset) = place(unit);
            if !offset.is_multiple_of(LEAF) || range.end - unit < LEAF as u64 {
                self.modify(unit, |_| value(unit));
                unit += 1;
                continue;
            }
            let (regions, heap) = self.page_mut(page);
            let (old, new) = regions[region].fill_leaf(offset / LEAF, heap, |i| value(unit + i as u64));
            self.weight = self.weight + new - old;
            unit += LEAF as u64;
        }
    }

    /// Gives all of `range` one value; answers with the weight that was there.
    pub(crate) fn fill(&mut self, range: Range<u64>, value: P) -> u64 {
        let mut old = 0;
        let mut unit = range.start;
        while unit < range.end {
            let (page, region, offset) = place(unit);
            if value == P::default() && !matches!(self.pages.get(page), Some(Some(_))) {
                unit = if page < self.pages.len() { (page as u64 + 1) * PAGE_UNITS } else { range.end };
                continue;
            }
            let end = (offset as u64 + (range.end - unit)).min(REGION as u64) as usize;
            let (regions, heap) = self.page_mut(page);
            old += regions[region].fill(offset..end, REGION, value, heap);
            if regions[region].is_empty() {
                self.drop_empty_page(page);
            }
            unit += (end - offset) as u64;
        }
        let added = value.weight() * (range.end.saturating_sub(range.start));
        self.weight = self.weight + added - old;
        old
    }
}
