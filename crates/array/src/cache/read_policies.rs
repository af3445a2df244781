//! Which page of the read cache goes: one type a policy, one line each in [`named`].

use lru::LruCache;

/// Chooses among the pages of the read cache.
pub(super) trait ReadPolicy: Send {
    /// A page that is cached was read.
    fn hit(&mut self, page: u64);
    /// A page comes in; answers the one that goes.
    fn insert(&mut self, page: u64) -> Option<u64>;
    /// A page is not cached any more.
    fn remove(&mut self, page: u64);
}

/// Names of the policies.
pub(super) const NAMES: &[&str] = &["lru", "arc"];

/// The policy of this name for so many pages.
pub(super) fn named(name: &str, pages: u64) -> Box<dyn ReadPolicy> {
    match name {
        "arc" => Box::new(Arc::new(pages as usize)),
        _ => Box::new(Lru { pages: pages as usize, list: LruCache::unbounded() }),
    }
}

type List = LruCache<u64, ()>;

/// The least recently used goes.
struct Lru {
    pages: usize,
    list: List,
}

impl ReadPolicy for Lru {
    fn hit(&mut self, page: u64) {
        self.list.promote(&page);
    }

    fn insert(&mut self, page: u64) -> Option<u64> {
        self.list.put(page, ());
        if self.list.len() > self.pages { self.list.pop_lru().map(|p| p.0) } else { None }
    }

    fn remove(&mut self, page: u64) {
        self.list.pop(&page);
    }
}

/// Megiddo & Modha, ARC (FAST 2003): pages seen once and pages seen again, each with a list of those that went; a page
/// that comes back tells which of the two deserves more room.
struct Arc {
    pages: usize,
    /// Room that pages seen once deserve.
    target: usize,
    once: List,
    again: List,
    gone_once: List,
    gone_again: List,
}

impl Arc {
    fn new(pages: usize) -> Self {
        let list = LruCache::unbounded;
        Self { pages, target: 0, once: list(), again: list(), gone_once: list(), gone_again: list() }
    }

    /// One of the cached pages goes.
    fn replace(&mut self, in_gone_again: bool) -> Option<u64> {
        let n = self.once.len();
        if n > 0 && (n > self.target || (in_gone_again && n == self.target) || self.again.is_empty()) {
            let page = self.once.pop_lru()?.0;
            self.gone_once.put(page, ());
            return Some(page);
        }
        let page = self.again.pop_lru()?.0;
        self.gone_again.put(page, ());
        Some(page)
    }

    fn full(&self) -> bool {
        self.once.len() + self.again.len() >= self.pages
    }
}

impl ReadPolicy for Arc {
    fn hit(&mut self, page: u64) {
        if self.once.pop(&page).is_some() {
            self.again.put(page, ());
        } else {
            self.again.promote(&page);
        }
    }

    fn insert(&mut self, page: u64) -> Option<u64> {
        let (one, two) = (self.gone_once.len().max(1), self.gone_again.len().max(1));
        if self.gone_once.pop(&page).is_some() {
            self.target = (self.target + (two / one).max(1)).min(self.pages);
            let gone = if self.full() { self.replace(false) } else { None };
            self.again.put(page, ());
            return gone;
        }
        if self.gone_again.pop(&page).is_some() {
            self.target = self.target.saturating_sub((one / two).max(1));
            let gone = if self.full() { self.replace(true) } else { None };
            self.again.put(page, ());
            return gone;
        }
        let gone = if self.full() { self.replace(false) } else { None };
        self.once.put(page, ());
        // Neither list of those that went outgrows the cache.
        while self.once.len() + self.gone_once.len() > self.pages && self.gone_once.pop_lru().is_some() {}
        let all = |a: &Self| a.once.len() + a.again.len() + a.gone_once.len() + a.gone_again.len();
        while all(self) > 2 * self.pages && self.gone_again.pop_lru().is_some() {}
        gone
    }

    fn remove(&mut self, page: u64) {
        self.once.pop(&page);
        self.again.pop(&page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Reads of `pages`; how many were cached.
    fn hits(policy: &str, capacity: u64, pages: impl Iterator<Item = u64>) -> u64 {
        let (mut policy, mut held, mut hits) = (named(policy, capacity), BTreeSet::new(), 0);
        for page in pages {
            if held.contains(&page) {
                hits += 1;
                policy.hit(page);
            } else {
                held.insert(page);
                policy.insert(page).map(|gone| held.remove(&gone));
            }
            assert!(held.len() as u64 <= capacity);
        }
        hits
    }

    #[test]
    fn the_least_recently_used_goes() {
        assert_eq!(hits("lru", 2, [1, 2, 1, 3, 1, 2].into_iter()), 2);
        assert_eq!(hits("lru", 3, (0..40).map(|i| i % 4)), 0);
    }

    /// Pages used again and again beside a scan that never comes back: LRU forgets the former, ARC keeps them.
    #[test]
    fn arc_keeps_what_is_used_again_from_a_scan() {
        let twice = || (0..16).map(|i| i % 8);
        let mixed = || twice().chain((0..6000).map(|i| if i % 3 == 0 { i / 3 % 8 } else { 1000 + i }));
        let (lru, arc) = (hits("lru", 16, mixed()), hits("arc", 16, mixed()));
        assert!(lru < 100 && arc > 1500, "lru {lru}, arc {arc}");
    }
}
