//! Which band to clean next: the rules by which layers that log choose a victim.
//!
//! A rule is a comparison of two candidates by exact integer arithmetic, so the choice is the same on every machine; a tie
//! goes to the candidate that came first. Only bands with something dead in them are candidates: so each cleaning wins
//! space, and cleaning comes to an end.

/// A band that could be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub band: u32,
    /// Units that fit into it.
    pub slots: u32,
    /// Units in it that are live; fewer than `slots`.
    pub live: u32,
    /// Units that the host has written since the youngest data of the band were.
    pub age: u64,
    /// Sum of the write counts of its live units.
    pub heat: u64,
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Victim {
    /// The smallest share of live units.
    #[default]
    Greedy,
    /// The largest `(1 - u) * age / (1 + u)`, where `u` is the share of live units (Rosenblum & Ousterhout 1992, 3.6).
    CostBenefit,
    /// The smallest `(live + heat) / dead`: live units weigh the more the oftener they were written, for those would soon
    /// have died by themselves (after Jones et al. 2016; the weights are this project's).
    ColdWeight,
}

impl Victim {
    /// The best of `candidates`: an empty band, which costs nothing, or else the one that costs least for what it wins.
    #[inline]
    pub fn choose(self, candidates: impl Iterator<Item = Candidate>) -> Option<u32> {
        let dead = |c: &Candidate| c.slots - c.live;
        match self {
            Self::Greedy => least(candidates, |c| (c.live, c.slots), |a, b| u64::from(a) * u64::from(b)),
            Self::CostBenefit => {
                let gain = |c: &Candidate| u128::from(dead(c)) * u128::from(c.age.min(1 << 60));
                least(candidates, |c| (u128::from(c.slots) + u128::from(c.live), gain(c)), |a, b| a * b)
            }
            Self::ColdWeight => {
                let cost = |c: &Candidate| u128::from(c.live) + u128::from(c.heat);
                least(candidates, |c| (cost(c), u128::from(dead(c))), |a, b| a * b)
            }
        }
    }
}

/// The first empty band, or else the first one of those with the smallest quotient. Products are compared instead of quotients.
#[inline]
fn least<T: Copy, P: Ord>(
    candidates: impl Iterator<Item = Candidate>,
    quotient: impl Fn(&Candidate) -> (T, T),
    product: impl Fn(T, T) -> P,
) -> Option<u32> {
    let mut best: Option<(u32, (T, T))> = None;
    for c in candidates.filter(|c| c.live < c.slots) {
        if c.live == 0 {
            return Some(c.band);
        }
        let own = quotient(&c);
        if best.is_none_or(|(_, least)| product(own.0, least.1) < product(least.0, own.1)) {
            best = Some((c.band, own));
        }
    }
    best.map(|b| b.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn c(band: u32, slots: u32, live: u32, age: u64, heat: u64) -> Candidate {
        Candidate { band, slots, live, age, heat }
    }

    #[test]
    fn each_rule_sees_its_own_advantage() {
        let bands =
            [c(0, 100, 100, 9, 0), c(1, 100, 60, 900, 0), c(2, 50, 25, 10, 400), c(3, 100, 50, 10, 300)];
        let choose = |v: Victim| v.choose(bands.iter().copied());
        // Bands 2 and 3 are both half live: the first of them.
        assert_eq!(choose(Victim::Greedy), Some(2));
        // 0.4 * 900 / 1.6 = 225 against 0.5 * 10 / 1.5.
        assert_eq!(choose(Victim::CostBenefit), Some(1));
        // 60 / 40 against 425 / 25 and 350 / 50.
        assert_eq!(choose(Victim::ColdWeight), Some(1));
        assert_eq!(Victim::ColdWeight.choose(bands[2..].iter().copied()), Some(3));
    }

    #[test]
    fn a_band_without_anything_dead_is_no_victim_and_an_empty_one_the_best() {
        for rule in [Victim::Greedy, Victim::CostBenefit, Victim::ColdWeight] {
            assert_eq!(rule.choose([c(0, 8, 8, 99, 0)].into_iter()), None);
            let dead = [c(0, 8, 1, 1, 0), c(1, 8, 0, 1, 0)];
            assert_eq!(rule.choose(dead.into_iter()), Some(1), "{rule:?}");
        }
    }
}
