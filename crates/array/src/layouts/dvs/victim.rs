//! Which group is collected in idle time: one line a rule, in [`NAMES`] and [`named`].

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
