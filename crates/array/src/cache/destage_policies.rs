//! Which group of the write cache is destaged next: one type a policy, one line each in [`named`].

use super::policy::{DestagePolicy, Dirty};
use super::ring::OneRing;
use super::stow::Stow;
use std::collections::{BTreeMap, BTreeSet};

/// Names of the policies.
pub(super) const NAMES: &[&str] = &["lru-lfu", "lru", "least-rewrite", "scan", "wow", "stow"];

/// The policy of this name. `age`: accesses after which references are halved.
pub(super) fn named(name: &str, age: u64) -> Box<dyn DestagePolicy> {
    match name {
        "lru" => Box::new(Recent { lru: Order::default(), rewrite: false }),
        "least-rewrite" => Box::new(Recent { lru: Order::default(), rewrite: true }),
        "scan" => Box::new(OneRing::new(false)),
        "wow" => Box::new(OneRing::new(true)),
        "stow" => Box::new(Stow::default()),
        _ => Box::new(LruLfu {
            age,
            accesses: 0,
            refs: BTreeMap::new(),
            lru: Order::default(),
            lfu: BTreeSet::new(),
            fallen: BTreeMap::new(),
        }),
    }
}

/// Groups by when they were last touched.
#[derive(Default)]
struct Order {
    stamp: u64,
    stamps: BTreeMap<u64, u64>,
    oldest: BTreeMap<u64, u64>,
}

impl Order {
    fn touch(&mut self, group: u64) {
        // As a write of several pages does.
        if self.oldest.last_key_value().is_some_and(|(_, newest)| *newest == group) {
            return;
        }
        self.remove(group);
        self.stamp += 1;
        self.stamps.insert(group, self.stamp);
        self.oldest.insert(self.stamp, group);
    }

    fn remove(&mut self, group: u64) {
        if let Some(stamp) = self.stamps.remove(&group) {
            self.oldest.remove(&stamp);
        }
    }

    fn pop(&mut self) -> Option<u64> {
        let group = *self.oldest.first_key_value()?.1;
        self.remove(group);
        Some(group)
    }

    fn len(&self) -> usize {
        self.stamps.len()
    }
}

/// Luo et al.: the groups used last are kept in order of use; those that fall out of that list stand in order of how often
/// they were used, and the least used goes. References age by halving, rounded up, so one stays one.
struct LruLfu {
    age: u64,
    accesses: u64,
    refs: BTreeMap<u64, u64>,
    lru: Order,
    /// References, when it fell out of the other list, group.
    lfu: BTreeSet<(u64, u64, u64)>,
    /// The first two of these for each group.
    fallen: BTreeMap<u64, (u64, u64)>,
}

impl LruLfu {
    /// A group is in the list by references no more.
    fn take_out(&mut self, group: u64) {
        if let Some((refs, at)) = self.fallen.remove(&group) {
            self.lfu.remove(&(refs, at, group));
        }
    }

    fn forget(&mut self, group: u64) {
        self.lru.remove(group);
        self.take_out(group);
    }
}

impl DestagePolicy for LruLfu {
    fn touched(&mut self, group: u64) {
        self.accesses += 1;
        *self.refs.entry(group).or_insert(0) += 1;
        // A group is in one of the two lists.
        if !self.lru.stamps.contains_key(&group) {
            self.take_out(group);
        }
        self.lru.touch(group);
        let half = (self.refs.len() / 2).max(1);
        if self.lru.len() > half
            && let Some(out) = self.lru.pop()
        {
            let refs = self.refs.get(&out).copied().unwrap_or(1);
            self.lfu.insert((refs, self.accesses, out));
            self.fallen.insert(out, (refs, self.accesses));
        }
        if self.accesses.is_multiple_of(self.age) {
            self.refs.values_mut().for_each(|r| *r = r.div_ceil(2));
            self.fallen.values_mut().for_each(|(r, _)| *r = r.div_ceil(2));
            self.lfu = self.fallen.iter().map(|(g, (r, at))| (*r, *at, *g)).collect();
        }
    }

    fn victim(&mut self, _: &dyn Fn(u64) -> Dirty) -> Option<u64> {
        let group = self.lfu.first().map(|e| e.2).or_else(|| self.lru.oldest.values().next().copied())?;
        self.forget(group);
        self.refs.remove(&group);
        Some(group)
    }
}

/// The group that was not touched for longest; or, of the 32 such, the one of which fewest pages are rewritten for each
/// page freed (Wan et al. 2012): an in-place segment is rewritten from its first dirty page to its end.
struct Recent {
    lru: Order,
    rewrite: bool,
}

impl DestagePolicy for Recent {
    fn touched(&mut self, group: u64) {
        self.lru.touch(group);
    }

    fn victim(&mut self, dirty: &dyn Fn(u64) -> Dirty) -> Option<u64> {
        if !self.rewrite {
            return self.lru.pop();
        }
        let cost = |group: u64| {
            let d = dirty(group);
            ((d.of - d.first) * 1000 / d.pages.max(1), group)
        };
        let group = self.lru.oldest.values().take(32).copied().min_by_key(|g| cost(*g))?;
        self.lru.remove(group);
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(policy: &str, touches: &[u64], dirty: &dyn Fn(u64) -> Dirty) -> Vec<u64> {
        let mut policy = named(policy, 1000);
        touches.iter().for_each(|g| policy.touched(*g));
        std::iter::from_fn(|| policy.victim(dirty)).collect()
    }

    #[test]
    fn every_policy_has_its_order_and_gives_every_group_once() {
        let dirty = |group: u64| Dirty { pages: 1 + group % 3, first: group % 3, of: 10 };
        let touches = [5, 5, 5, 1, 2, 2, 3, 4];
        assert_eq!(order("lru", &touches, &dirty), [5, 1, 2, 3, 4]);
        // Half of the groups are in the list of those used last; of the others 1 and 5 the less used goes first.
        assert_eq!(order("lru-lfu", &touches, &dirty), [1, 2, 5, 3, 4]);
        // Pages rewritten for each page freed: 8/3 for 2 and 5, 9/2 for 1 and 4, 10 for 3.
        assert_eq!(order("least-rewrite", &touches, &dirty), [2, 5, 1, 4, 3]);
        // By address; with WOW 2 and 5, which were touched again, are passed over once.
        assert_eq!(order("scan", &touches, &dirty), [1, 2, 3, 4, 5]);
        assert_eq!(order("wow", &touches, &dirty), [1, 3, 4, 2, 5]);
        // Nothing is known of streams and of what was written again.
        assert_eq!(order("stow", &touches, &dirty), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn references_age() {
        let mut policy = named("lru-lfu", 8);
        [1, 1, 1, 1, 2, 3, 4, 4].iter().for_each(|g| policy.touched(*g));
        // 1 fell out with four references; after ageing it has two, and 2 still one.
        let dirty = |_| Dirty { pages: 1, first: 0, of: 1 };
        assert_eq!(policy.victim(&dirty), Some(2));
        assert_eq!(policy.victim(&dirty), Some(1));
        // Six references that were halved are fewer than four that came since.
        let mut policy = named("lru-lfu", 6);
        [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3].iter().for_each(|g| policy.touched(*g));
        assert_eq!(policy.victim(&dirty), Some(1));
        // When three references of 1 and one of 2 are halved they are two and one; 3, of which one is left, fell out later than 2.
        let mut policy = named("lru-lfu", 6);
        [1, 1, 1, 2, 3, 3, 4, 5].iter().for_each(|g| policy.touched(*g));
        assert_eq!([(); 5].map(|()| policy.victim(&dirty)), [2, 3, 1, 4, 5].map(Some));
    }

    /// A group of the second model: how often it was used, and where it stands.
    #[derive(Clone, Copy)]
    struct Plain {
        group: u64,
        refs: u64,
        used: u64,
        /// When it fell out of the list of those used last.
        fallen: Option<u64>,
    }

    /// The same from what the pages say, with a list of all groups: who was used, who goes.
    #[derive(Default)]
    struct PlainLruLfu {
        all: Vec<Plain>,
        accesses: u64,
    }

    impl PlainLruLfu {
        fn touched(&mut self, group: u64, age: u64) {
            self.accesses += 1;
            let now = self.accesses;
            let refs = self.all.iter().find(|p| p.group == group).map_or(0, |p| p.refs) + 1;
            self.all.retain(|p| p.group != group);
            self.all.push(Plain { group, refs, used: now, fallen: None });
            let half = (self.all.len() / 2).max(1);
            let mut last: Vec<&mut Plain> = self.all.iter_mut().filter(|p| p.fallen.is_none()).collect();
            if last.len() > half
                && let Some(out) = last.iter_mut().min_by_key(|p| p.used)
            {
                out.fallen = Some(now);
            }
            if now.is_multiple_of(age) {
                self.all.iter_mut().for_each(|p| p.refs = p.refs / 2 + p.refs % 2);
            }
        }

        fn victim(&mut self) -> Option<u64> {
            let fallen = self.all.iter().filter(|p| p.fallen.is_some());
            let least = fallen.min_by_key(|p| (p.refs, p.fallen, p.group));
            let group = least.or_else(|| self.all.iter().min_by_key(|p| p.used))?.group;
            self.all.retain(|p| p.group != group);
            Some(group)
        }
    }

    #[test]
    fn groups_go_as_a_plain_list_says() {
        for seed in 0..40 {
            let mut rng = smrlab_units::rng::Rng::new(seed);
            let age = 3 + rng.below(20);
            let (mut own, mut plain) = (named("lru-lfu", age), PlainLruLfu::default());
            for at in 0..600 {
                if rng.one_in(6) {
                    let dirty = |_| Dirty { pages: 1, first: 0, of: 1 };
                    assert_eq!(own.victim(&dirty), plain.victim(), "seed {seed}, {at}");
                    continue;
                }
                // Few are used often.
                let group = if rng.one_in(2) { rng.below(3) } else { rng.below(16) };
                own.touched(group);
                plain.touched(group, age);
            }
        }
    }
}
