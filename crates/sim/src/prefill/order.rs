//! The order of a random prefill: each unit once, those of one independent part of the layer's space together, a round at a time, so
//! that the maps of a part lie in the processor's caches while it is written to.

use super::{BATCH, UNIT};
use crate::control::Control;
use crate::error::Result;
use smrlab_stl::Independent;
use smrlab_units::Blocks;
use smrlab_units::reciprocal::Reciprocal;

/// Writes to one part up to which its maps lie in the processor's caches while they are done.
const NEAR: usize = 1 << 14;
/// Writes of a random prefill among which those to one part of the layer's space are brought together, at most.
const ROUND: usize = 1 << 25;
/// The units of a random prefill, many at a time: those of a part of the layer's space together, where it has parts.
pub(super) struct Rounds {
    order: Shuffled,
    left: usize,
    /// Units of a round, at most.
    most: usize,
    parts: Option<Independent>,
    pub(super) units: Vec<u64>,
    /// Where each part's units end.
    pub(super) ends: Vec<usize>,
}

impl Rounds {
    /// The units of `volume` blocks within `span`, in the order that `seed` gives.
    pub(super) fn new(span: Blocks, volume: Blocks, seed: u64, parts: Option<Independent>) -> Self {
        let (order, left) = (Shuffled::new(span.0.div_ceil(UNIT), seed), volume.0.div_ceil(UNIT) as usize);
        Self { order, left, most: ROUND, parts, units: Vec::new(), ends: Vec::new() }
    }

    /// The same in rounds of so many units at most.
    #[cfg(test)]
    pub(super) fn of(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Draws the next ones; `false`: there are none.
    ///
    /// # Errors
    /// A cancelled run: drawing a round takes seconds.
    pub(super) fn next(&mut self, control: &Control) -> Result<bool> {
        // As many in each: a short last one would go over all parts for little.
        let n = self.left.div_ceil(self.left.div_ceil(self.most).max(1));
        self.left -= n;
        match self.parts.filter(|parts| parts.each.0.is_multiple_of(UNIT)) {
            Some(parts) => self.by_part(n, parts, control)?,
            None => {
                // There are no parts, or units may lie in two.
                self.units.clear();
                drawn(&mut self.order, n, control, |unit| self.units.push(unit))?;
                self.ends = vec![self.units.len()];
            }
        }
        Ok(!self.units.is_empty())
    }

    /// The next `n`, those of a part together and in their order. They are drawn twice, to be counted and to be put in
    /// their places, which takes less than moving them.
    fn by_part(&mut self, n: usize, parts: Independent, control: &Control) -> Result<()> {
        let (each, count) = (Reciprocal::new(parts.each.0 / UNIT), Reciprocal::new(parts.count));
        let part = |unit: u64| count.div_rem_wide(each.div_wide(unit)).1 as usize;
        self.ends = vec![0; parts.count as usize];
        drawn(&mut self.order.clone(), n, control, |unit| self.ends[part(unit)] += 1)?;
        let mut before = 0;
        for end in &mut self.ends {
            (*end, before) = (before, before + *end);
        }
        self.units.resize(before, 0);
        drawn(&mut self.order, n, control, |unit| {
            let to = &mut self.ends[part(unit)];
            self.units[*to] = unit;
            *to += 1;
        })
    }

    /// Whether the maps of a part lie in the processor's caches while it is written to.
    pub(super) fn near(&self) -> bool {
        self.units.len() <= NEAR * self.ends.len()
    }
}

/// Calls `each` with the next `n` of an order, or as many as there are.
fn drawn(order: &mut Shuffled, n: usize, control: &Control, mut each: impl FnMut(u64)) -> Result<()> {
    for from in (0..n).step_by(BATCH) {
        control.check()?;
        order.by_ref().take(BATCH.min(n - from)).for_each(&mut each);
    }
    Ok(())
}

/// The numbers below `n`, each once, in an order that looks random: a generator of full period, numbers from `n` on
/// being left out.
#[derive(Clone)]
struct Shuffled {
    n: u64,
    mask: u64,
    state: u64,
    step: u64,
    left: u64,
}

impl Shuffled {
    fn new(n: u64, seed: u64) -> Self {
        let mask = n.max(1).next_power_of_two() - 1;
        // An odd increment and a multiplier of the form 4k + 1 give the full period of a power of two.
        let step = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) | 1;
        Self { n, mask, state: seed & mask, step, left: mask + 1 }
    }

    /// Hides the short period of a linear generator's low bits: a bijection of the numbers below the power of two.
    fn scramble(&self, x: u64) -> u64 {
        let half = (self.mask.count_ones() / 2).max(1);
        let x = (x ^ (x >> half)).wrapping_mul(0x2545_f491_4f6c_dd1d) & self.mask;
        x ^ (x >> half)
    }
}

impl Iterator for Shuffled {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.left > 0 {
            self.left -= 1;
            let x = self.scramble(self.state);
            self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(self.step) & self.mask;
            if x < self.n {
                return Some(x);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brought_together_keeps_its_order() {
        let round = |each: u64, left: usize| {
            let parts = Some(Independent { count: 3, each: Blocks(each) });
            let order = Shuffled::new(1000, 7);
            let mut rounds = Rounds { order, left, most: ROUND, parts, units: vec![99; 40], ends: vec![] };
            assert!(rounds.next(&Control::new()).unwrap());
            rounds
        };
        let plain: Vec<u64> = Shuffled::new(1000, 7).take(500).collect();
        // Units 0, 1, 6, 7, 12, 13… lie in part 0, 2, 3, 8, 9… in part 1.
        let mut rounds = round(16, 500);
        let of = |part: u64| plain.iter().filter(move |&unit| unit / 2 % 3 == part).copied();
        assert_eq!(rounds.units, (0..3).flat_map(of).collect::<Vec<_>>());
        assert_eq!(rounds.ends, [of(0).count(), 500 - of(2).count(), 500]);
        assert!(!rounds.next(&Control::new()).unwrap());
        assert_eq!(rounds.order.next(), Shuffled::new(1000, 7).nth(500), "it goes on behind them");
        let undivided = round(12, 500);
        assert_eq!((undivided.units, undivided.ends), (plain, vec![500]), "unit 1 lies in two parts");
        assert_eq!(round(16, 4000).units.len(), 1000, "there are no more");
    }

    #[test]
    fn of_a_cancelled_run_nothing_more_is_drawn() {
        let (control, mut seen) = (Control::new(), 0);
        let done = drawn(&mut Shuffled::new(1 << 20, 7), 1 << 20, &control, |_| {
            seen += 1;
            if seen == 10 {
                control.cancel();
            }
        });
        assert!(done.is_err() && seen <= BATCH, "{seen}");
        for parts in [None, Some(Independent { count: 3, each: Blocks(16) })] {
            let mut rounds = Rounds::new(Blocks(1 << 20), Blocks(1 << 20), 7, parts);
            assert!(rounds.next(&control).is_err() && rounds.units.is_empty());
        }
    }

    #[test]
    fn a_shuffle_visits_everything_once_and_not_in_order() {
        for n in [1, 2, 3, 7, 8, 1000, 4097] {
            let all: Vec<u64> = Shuffled::new(n, 42).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..n).collect::<Vec<_>>(), "{n}");
            let rising = all.windows(2).filter(|w| w[1] == w[0] + 1).count() as u64;
            assert!(n < 100 || rising < n / 10, "{n}: {rising} in order");
        }
    }
}
