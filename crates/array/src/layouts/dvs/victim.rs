//! Which group is collected in idle time: one line a rule, in [`NAMES`] and [`named`].

use super::Dvs;
use std::cmp::Reverse;
use std::ops::Range;

/// What a rule may know of a group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Data chunks that are not current any more.
    pub obsolete: u64,
    /// Chunks that hold data of the host's.
    pub live: u64,
    /// Requests of the host's that touched it.
    pub accesses: u64,
    /// Number of the last of them.
    pub last: u64,
}

/// The group of which this is largest goes first; among equals that with the lower number.
pub type Rule = fn(&Seen) -> u64;

/// Names of the rules.
pub const NAMES: &[&str] = &["most-invalid", "fewest-valid", "frequent", "recent", "least-recent"];

/// The rule of this name.
pub fn named(name: &str) -> Rule {
    match name {
        "fewest-valid" => |seen| u64::MAX - seen.live,
        "frequent" => |seen| seen.accesses,
        "recent" => |seen| seen.last,
        "least-recent" => |seen| u64::MAX - seen.last,
        _ => |seen| seen.obsolete,
    }
}

impl Dvs {
    /// Where the group stands among those worth collecting.
    fn rank(&self, group: u64) -> Option<(u64, Reverse<u64>)> {
        self.options.idle?;
        let tables = self.group(group)?;
        let (accesses, last) = self.touched[group as usize];
        let seen = Seen { accesses: u64::from(accesses), last, ..tables.seen() };
        let share = seen.obsolete as f64 / (seen.obsolete + seen.live).max(1) as f64;
        let worth = seen.obsolete > 0 && share >= self.options.obsolete;
        worth.then_some(((self.options.victim)(&seen), Reverse(group)))
    }

    /// A request of the host's touches these groups.
    pub(super) fn touch(&mut self, groups: Range<u64>) {
        if self.options.idle.is_none() {
            return;
        }
        self.touches += 1;
        for group in groups {
            self.unlist(group);
            if self.group(group).is_some() {
                let (accesses, last) = &mut self.touched[group as usize];
                (*accesses, *last) = (accesses.saturating_add(1), self.touches);
            }
            self.list(group);
        }
    }

    pub(super) fn unlist(&mut self, group: u64) {
        if let Some(rank) = self.rank(group) {
            self.victims.remove(&rank);
        }
    }

    pub(super) fn list(&mut self, group: u64) {
        if let Some(rank) = self.rank(group) {
            self.victims.insert(rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three groups, each the first by another measure: 0 was touched most often, 1 has most obsolete chunks and was touched
    /// last, 2 has fewest live chunks and was touched longest ago.
    #[test]
    fn every_rule_has_its_order() {
        let seen = [
            Seen { obsolete: 3, live: 9, accesses: 12, last: 20 },
            Seen { obsolete: 7, live: 8, accesses: 8, last: 21 },
            Seen { obsolete: 4, live: 2, accesses: 6, last: 9 },
        ];
        let order = |name: &str| {
            let mut all = [0, 1, 2];
            all.sort_by_key(|g| std::cmp::Reverse(named(name)(&seen[*g])));
            all
        };
        let orders: Vec<_> = NAMES.iter().map(|name| order(name)).collect();
        assert_eq!(orders, [[1, 2, 0], [2, 1, 0], [0, 1, 2], [1, 0, 2], [2, 0, 1]]);
    }
}
