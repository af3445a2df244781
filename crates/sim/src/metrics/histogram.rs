//! A log-linear histogram of times with a stated relative error.

use smrlab_units::SimTime;

/// Buckets per power of two: the percentile that is reported lies within [`RELATIVE_ERROR`] of the true one.
const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB;

/// Half the width of a bucket relative to its lower edge: the largest error of a reported percentile.
pub const RELATIVE_ERROR: f64 = 1.0 / (2 * SUB) as f64;

/// Counts of times in buckets whose width grows with the time; sum, minimum and maximum are exact.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    n: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let counts = vec![0; BUCKETS].into_boxed_slice();
        Self { counts: counts.try_into().expect("made with this length"), n: 0, sum: 0, max: 0 }
    }
}

/// Mean and percentiles of times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Exact mean.
    pub mean: f64,
    /// Median, within [`RELATIVE_ERROR`] like all percentiles here.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Exact maximum.
    pub max: f64,
}

#[inline]
fn bucket(ns: u64) -> usize {
    if ns < SUB as u64 {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() - SUB_BITS;
    ((shift as usize + 1) << SUB_BITS) + ((ns >> shift) as usize & (SUB - 1))
}

/// Lower edge and width of a bucket, in ns.
fn edges(bucket: usize) -> (u64, u64) {
    if bucket < SUB {
        return (bucket as u64, 1);
    }
    let shift = (bucket >> SUB_BITS) as u32 - 1;
    (((SUB + (bucket & (SUB - 1))) as u64) << shift, 1 << shift)
}

impl Histogram {
    /// Counts one time.
    #[inline]
    pub fn record(&mut self, t: SimTime) {
        self.counts[bucket(t.0)] += 1;
        self.n += 1;
        self.sum += u128::from(t.0);
        self.max = self.max.max(t.0);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (a, b) in self.counts.iter_mut().zip(other.counts.iter()) {
            *a += b;
        }
        self.n += other.n;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The time that a share `p` of all times does not exceed, in ns: the middle of its bucket, never above the maximum.
    pub fn percentile_ns(&self, p: f64) -> u64 {
        let rank = ((p * self.n as f64).ceil() as u64).clamp(1, self.n.max(1));
        let mut seen = 0;
        for (i, &c) in self.counts.iter().enumerate() {
            seen += c;
            if seen >= rank {
                let (lo, width) = edges(i);
                return (lo + width / 2).min(self.max);
            }
        }
        self.max
    }

    /// Mean and percentiles; `None` where nothing was counted.
    pub fn summary(&self) -> Option<Summary> {
        let p = |share| self.percentile_ns(share) as f64 / 1e6;
        (self.n > 0).then(|| Summary {
            mean: self.sum as f64 / self.n as f64 / 1e6,
            p50: p(0.5),
            p90: p(0.9),
            p95: p(0.95),
            p99: p(0.99),
            p999: p(0.999),
            max: self.max as f64 / 1e6,
        })
    }

    /// The buckets that are not empty: lower and upper edge in ms, and count.
    pub fn rows(&self) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, c)| **c > 0).map(|(i, &c)| {
            let (lo, width) = edges(i);
            (lo as f64 / 1e6, (lo as f64 + width as f64) / 1e6, c)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_between_the_edges_of_its_bucket() {
        let mut last = 0;
        for e in 0..64 {
            for d in [0u64, 1, 2] {
                let ns = (1u64 << e).saturating_add(d * ((1 << e) / 3)).saturating_sub(1);
                let b = bucket(ns);
                let (lo, width) = edges(b);
                assert!(lo <= ns && ns - lo < width, "{ns}: {lo} + {width}");
                assert!(width as f64 / 2.0 <= (lo as f64 * RELATIVE_ERROR).max(0.5), "{ns}");
                assert!(b >= last && b < BUCKETS);
                last = b;
            }
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn percentiles_keep_the_stated_error() {
        let mut h = Histogram::default();
        for i in 1..=100_000u64 {
            h.record(SimTime(i * 1_000));
        }
        for p in [0.5, 0.9, 0.99, 0.999] {
            let (got, want) = (h.percentile_ns(p) as f64, p * 1e8);
            assert!((got / want - 1.0).abs() <= RELATIVE_ERROR, "{p}: {got} for {want}");
        }
        let s = h.summary().unwrap();
        assert_eq!((s.mean, s.max), (50.0005, 100.0));
        assert!(Histogram::default().summary().is_none());
    }

    #[test]
    fn merging_equals_counting_together() {
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for i in 0..1000u64 {
            let t = SimTime(i * i * 977);
            if i % 3 == 0 {
                a.record(t)
            } else {
                b.record(t)
            }
            both.record(t);
        }
        a.merge(&b);
        assert_eq!(a.rows().collect::<Vec<_>>(), both.rows().collect::<Vec<_>>());
        assert_eq!(a.summary(), both.summary());
    }
}
