//! Counters by name, as layers, arrays and buffers state them for results.

use crate::TranslationLayer;

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counter {
    name: &'static str,
    n: u64,
    /// It says how much there is at present, not how often something happened.
    level: bool,
}

/// What was counted, in the order in which it was stated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted(Vec<Counter>);

impl Counted {
    /// States how often something happened from the beginning on, such as cache hits.
    pub fn count(&mut self, name: &'static str, n: u64) {
        self.0.push(Counter { name, n, level: false });
    }

    /// States how often each of these happened.
    pub fn counts(&mut self, named: impl IntoIterator<Item = (&'static str, u64)>) {
        named.into_iter().for_each(|(name, n)| self.count(name, n));
    }

    /// States how much there is at present, such as blocks in a cache.
    pub fn level(&mut self, name: &'static str, n: u64) {
        self.0.push(Counter { name, n, level: true });
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|c| (c.name, c.n))
    }

    /// Whether nothing was stated.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The counter of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|c| c.name == name).map(|c| c.n)
    }

    /// What happened after `before` was counted. Levels stay as they are.
    pub fn since(mut self, before: &Self) -> Self {
        for c in self.0.iter_mut().filter(|c| !c.level) {
            c.n = c.n.saturating_sub(before.get(c.name).unwrap_or(0));
        }
        self
    }

    /// Adds each counter of `other` to the one of its name.
    pub fn add(&mut self, other: &Self) {
        for c in &other.0 {
            match self.0.iter_mut().find(|own| own.name == c.name) {
                Some(own) => own.n += c.n,
                None => self.0.push(*c),
            }
        }
    }
}

/// What a layer counted from the beginning on.
pub fn counted(layer: &dyn TranslationLayer) -> Counted {
    let mut all = Counted::default();
    layer.counters(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 hits, 3 of them before; a cache that held 70 blocks and holds 40.
    #[test]
    fn events_are_counted_anew_and_levels_stand() {
        let at = |hits, live| {
            let mut c = Counted::default();
            c.count("live_hits", hits);
            c.level("packets_live", live);
            c
        };
        let since = at(5, 40).since(&at(3, 70));
        assert_eq!(since, at(2, 40));
        let mut all = since;
        all.add(&at(1, 2));
        assert_eq!(all.iter().collect::<Vec<_>>(), [("live_hits", 3), ("packets_live", 42)]);
    }
}
