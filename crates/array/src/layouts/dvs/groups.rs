//! The groups of an array, in pages: large drives have millions of groups, of which a run may touch few.

use super::group::Group;
use super::shape::Shape;
use smrlab_blockmap::{Hints, prefetch};

/// Groups in a page.
const PAGE: usize = 64;
/// Hints between the steps of a prefetch.
const APART: usize = 6;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Groups {
    pages: Vec<Option<Box<[Group]>>>,
    hints: Hints,
}

impl Groups {
    /// So many, none of them written.
    pub fn new(groups: u64) -> Self {
        let pages = vec![None; (groups as usize).div_ceil(PAGE)];
        Self { pages, hints: Hints::default() }
    }

    /// Hints that `group` will be used soon. Takes three steps, because each address is known when what the one before is
    /// the address of is in the cache: its page now, its own place in that of the group hinted [`APART`] calls ago, and what
    /// the one before those has.
    #[inline]
    pub fn prefetch(&self, group: u64) {
        let page = |group: u64| self.pages.get(group as usize / PAGE)?.as_deref();
        prefetch(&self.pages, group as usize / PAGE);
        let earlier = self.hints.add(group);
        let near = earlier(APART);
        if let Some(page) = page(near) {
            prefetch(page, near as usize % PAGE);
        }
        let first = earlier(2 * APART);
        if let Some(page) = page(first) {
            page[first as usize % PAGE].prefetch();
        }
    }

    /// A group that was written.
    #[inline]
    pub fn get(&self, group: u64) -> Option<&Group> {
        let page = self.pages[group as usize / PAGE].as_deref()?;
        Some(&page[group as usize % PAGE]).filter(|g| !g.is_new())
    }

    /// A group, with what it has when it is first written.
    #[inline]
    pub fn begin(&mut self, group: u64, shape: &Shape) -> &mut Group {
        let page = &mut self.pages[group as usize / PAGE];
        let page = page.get_or_insert_with(|| vec![Group::default(); PAGE].into_boxed_slice());
        let tables = &mut page[group as usize % PAGE];
        tables.begin(shape);
        tables
    }

    /// Those that were written, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Group)> {
        let pages = (0..).zip(&self.pages).filter_map(|(i, page)| Some((i, page.as_deref()?)));
        let groups = pages.flat_map(|(i, page): (u64, _)| (i * PAGE as u64..).zip(page));
        groups.filter(|(_, g)| !g.is_new())
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        let pages = self.pages.iter().flatten().map(|page| size_of_val(&**page)).sum::<usize>();
        let own = size_of_val(&*self.pages) + pages;
        own as u64 + self.iter().map(|(_, g)| g.bytes()).sum::<u64>()
    }
}
