//! A histogram of whole numbers with a bounded relative error.

use serde::Serialize;

/// Parts of each power of two: the relative error of a percentile is at most 1/128.
const PARTS_BITS: u32 = 6;
const PARTS: usize = 1 << PARTS_BITS;

/// Counts by value, exact below 64, in buckets of at most 1/64 of their value above.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// What a histogram says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Exact.
    pub mean: f64,
    /// Within 1/128, as all percentiles.
    pub p50: f64,
    /// 90 % are below.
    pub p90: f64,
    /// 95 % are below.
    pub p95: f64,
    /// 99 % are below.
    pub p99: f64,
    /// Exact.
    pub max: f64,
}

fn bucket(value: u64) -> usize {
    if value < PARTS as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - PARTS_BITS;
    // Of the top seven bits the first is always 1.
    (shift as usize + 1) * PARTS + ((value >> shift) as usize - PARTS)
}

/// The middle of a bucket.
fn middle(bucket: usize) -> f64 {
    if bucket < PARTS {
        return bucket as f64;
    }
    let shift = (bucket / PARTS - 1) as u32;
    let low = ((PARTS + bucket % PARTS) as u64) << shift;
    low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Empty.
    pub fn new() -> Self {
        Self { counts: vec![0; (64 - PARTS_BITS as usize + 1) * PARTS], count: 0, sum: 0, max: 0 }
    }

    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// The value that the share `q` of all is at or below.
    pub fn percentile(&self, q: f64) -> f64 {
        let wanted = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut sum = 0;
        for (i, n) in self.counts.iter().enumerate() {
            sum += n;
            if sum >= wanted {
                return middle(i).min(self.max as f64);
            }
        }
        0.0
    }

    /// Mean, percentiles and maximum, multiplied by `unit`.
    pub fn percentiles(&self, unit: f64) -> Percentiles {
        let mean = if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 };
        Percentiles {
            mean: mean * unit,
            p50: self.percentile(0.5) * unit,
            p90: self.percentile(0.9) * unit,
            p95: self.percentile(0.95) * unit,
            p99: self.percentile(0.99) * unit,
            max: self.max as f64 * unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_err_little() {
        let mut last = 0;
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) + (1u64 << shift) / 3, u64::MAX >> (63 - shift)] {
                let b = bucket(value);
                assert!(b >= last, "{value}");
                last = b;
                assert!((middle(b) / value as f64 - 1.0).abs() <= 1.0 / 128.0, "{value} {}", middle(b));
            }
        }
        assert!(last < Histogram::new().counts.len());
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let mut h = Histogram::new();
        (1..=1000).for_each(|v| h.add(v * 1000));
        let p = h.percentiles(1.0);
        assert_eq!((p.mean, p.max), (500_500.0, 1_000_000.0));
        assert!((p.p50 / 500_000.0 - 1.0).abs() < 0.008 && (p.p99 / 990_000.0 - 1.0).abs() < 0.008);
    }
}
