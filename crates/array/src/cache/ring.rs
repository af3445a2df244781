//! Groups in the order of their addresses, round and round, with a hand: the order of CSCAN and of WOW (Gill & Modha 2005).

use super::policy::{DestagePolicy, Dirty};
use std::collections::BTreeMap;

/// Groups, and where the hand is.
#[derive(Default)]
pub(super) struct Ring {
    /// Whether a group is passed over once.
    groups: BTreeMap<u64, bool>,
    at: u64,
}

impl Ring {
    /// How many groups it has.
    pub(super) fn len(&self) -> u64 {
        self.groups.len() as u64
    }

    /// A group is in it; one that is `used` is passed over once.
    pub(super) fn put(&mut self, group: u64, used: bool) {
        *self.groups.entry(group).or_insert(false) |= used;
    }

    /// Takes a group out; answers whether it was in it.
    pub(super) fn remove(&mut self, group: u64) -> bool {
        self.groups.remove(&group).is_some()
    }

    /// Whether it has this group.
    pub(super) fn has(&self, group: u64) -> bool {
        self.groups.contains_key(&group)
    }

    /// Whether the hand comes to this group within so many others.
    pub(super) fn is_ahead(&self, group: u64, within: u64) -> bool {
        let round = self.groups.range(self.at..).chain(self.groups.range(..self.at));
        round.take(within as usize).any(|(g, _)| *g == group)
    }

    /// Takes out the next group that is not passed over.
    pub(super) fn next(&mut self) -> Option<u64> {
        for _ in 0..=2 * self.groups.len() {
            let next = self.groups.range(self.at..).next().or_else(|| self.groups.iter().next());
            let (group, used) = next.map(|(g, used)| (*g, *used))?;
            self.at = group + 1;
            if !used {
                self.groups.remove(&group);
                return Some(group);
            }
            self.groups.insert(group, false);
        }
        None
    }
}

/// The ring alone: WOW, which passes over what was touched since the hand last came by, or CSCAN, which does not.
pub(super) struct OneRing {
    ring: Ring,
    recency: bool,
}

impl OneRing {
    /// `recency`: WOW.
    pub(super) fn new(recency: bool) -> Self {
        Self { ring: Ring::default(), recency }
    }
}

impl DestagePolicy for OneRing {
    fn touched(&mut self, group: u64) {
        let used = self.recency && self.ring.has(group);
        self.ring.put(group, used);
    }

    fn victim(&mut self, _: &dyn Fn(u64) -> Dirty) -> Option<u64> {
        self.ring.next()
    }
}
