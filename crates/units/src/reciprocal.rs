//! Exact division by a number that is known beforehand, and the search for the run that holds a number.

/// Divides by a fixed divisor with one multiplication.
///
/// With `magic = floor((2^64 - 1) / d)`, the upper half of `(n + 1) * magic` is `n / d` exactly as long as
/// `(n + 1) * d < 2^64`: what is lost is then less than one unit in `1 / d`.
#[derive(Clone, Copy, Debug)]
pub struct Reciprocal {
    magic: u64,
    divisor: u64,
}

impl Reciprocal {
    /// Prepares the division.
    ///
    /// # Panics
    /// When `divisor` is zero.
    pub const fn new(divisor: u64) -> Self {
        Self { magic: u64::MAX / divisor, divisor }
    }

    /// The divisor.
    pub const fn divisor(self) -> u64 {
        self.divisor
    }

    /// For `n` with `(n + 1) * divisor < 2^64`. Not the operator: that would promise any `n`.
    #[expect(clippy::should_implement_trait)]
    #[inline]
    pub fn div(self, n: u64) -> u64 {
        debug_assert!((u128::from(n) + 1) * u128::from(self.divisor) < 1 << 64);
        ((u128::from(n + 1) * u128::from(self.magic)) >> 64) as u64
    }

    /// For any `n`.
    #[inline]
    pub fn div_wide(self, n: u64) -> u64 {
        // `(n + 1) * divisor` fits as long as `n + 1` is at most the magic number.
        if n < self.magic { self.div(n) } else { n / self.divisor }
    }

    /// Quotient and remainder, as [`div`](Self::div).
    #[inline]
    pub fn div_rem(self, n: u64) -> (u64, u64) {
        let q = self.div(n);
        (q, n - q * self.divisor)
    }

    /// Quotient and remainder of any `n`.
    #[inline]
    pub fn div_rem_wide(self, n: u64) -> (u64, u64) {
        let q = self.div_wide(n);
        (q, n - q * self.divisor)
    }

    /// Rounded up, for any `n`.
    #[inline]
    pub fn div_ceil(self, n: u64) -> u64 {
        self.div_wide(n + self.divisor - 1)
    }
}

/// Finds the last of ascending `starts` that is at most a number: a table by the number's upper bits, then a few steps.
#[derive(Clone, Debug)]
pub struct RunIndex {
    starts: Vec<u64>,
    table: Vec<u32>,
    shift: u32,
}

impl RunIndex {
    /// `starts` ascend from any number, of equal ones the last is found; `end` bounds what is looked up.
    pub fn new(starts: Vec<u64>, end: u64) -> Self {
        // Few: the table competes for the processor's first cache.
        let slots = (starts.len() * 16).next_power_of_two().min(1 << 14) as u64;
        let mut shift = 0;
        while (end >> shift) >= slots {
            shift += 1;
        }
        let last = end >> shift;
        let mut table = Vec::with_capacity(last as usize + 1);
        let mut run = 0u32;
        for slot in 0..=last {
            while (run as usize + 1) < starts.len() && starts[run as usize + 1] <= slot << shift {
                run += 1;
            }
            table.push(run);
        }
        Self { starts, table, shift }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        (size_of_val(self.starts.as_slice()) + size_of_val(self.table.as_slice())) as u64
    }

    /// Where run `i` begins.
    #[inline]
    pub fn start(&self, i: usize) -> u64 {
        self.starts[i]
    }

    /// The index of the run that holds `n`; the first one where `n` lies before all.
    #[inline]
    pub fn find(&self, n: u64) -> usize {
        let slot = ((n >> self.shift) as usize).min(self.table.len() - 1);
        let mut run = self.table[slot] as usize;
        while let Some(&next) = self.starts.get(run + 1) {
            if next > n {
                break;
            }
            run += 1;
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn division_is_exact(d in prop_oneof![1u64..20, 1u64..1 << 16, 1u64..1 << 40], n: u64) {
            let r = Reciprocal::new(d);
            let most = u64::MAX / d - 1;
            for n in [n, n >> 20, n >> 40, most, most + 1] {
                let edge = (n / d) * d;
                for n in [n, edge, edge.saturating_sub(1)] {
                    prop_assert_eq!(r.div_wide(n), n / d);
                    if n <= most {
                        prop_assert_eq!(r.div_rem(n), (n / d, n % d));
                    }
                }
            }
        }

        #[test]
        fn runs_are_found(mut starts in proptest::collection::btree_set(0u64..1000, 1..50), n in 0u64..1200) {
            starts.insert(0);
            let once: Vec<u64> = starts.into_iter().collect();
            for starts in [once.clone(), once.iter().flat_map(|s| [*s; 2]).collect()] {
                let want = starts.partition_point(|&s| s <= n) - 1;
                prop_assert_eq!(RunIndex::new(starts, 1000).find(n), want);
            }
        }
    }
}
