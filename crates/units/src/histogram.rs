//! A log-linear histogram of whole numbers (times in ns, sizes in bytes) with a stated relative error.

/// Buckets per power of two.
const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;

/// The width of a bucket relative to its lower edge: the largest error of a percentile. Where the values in its bucket are
/// all the same the percentile is exact.
pub const RELATIVE_ERROR: f64 = 1.0 / SUB as f64;

/// Values of one bucket: how many, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    count: u64,
    sum: u64,
}

/// Counts of values in buckets whose width grows with the value, one by one below 128; sum, mean and maximum are exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Up to that of the largest value: of thousands of drives each has its own.
    buckets: Vec<Bucket>,
    /// What was counted beyond what buckets could add up.
    beyond: u128,
    max: u64,
}

impl Bucket {
    /// Adds as much of `value` as there is room for; answers what is left of it.
    #[cold]
    fn fill_up(&mut self, value: u64) -> u128 {
        let left = u128::from(self.sum) + u128::from(value) - u128::from(u64::MAX);
        self.sum = u64::MAX;
        left
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    ((shift as usize + 1) << SUB_BITS) + ((value >> shift) as usize & (SUB - 1))
}

/// Lower edge and width of a bucket.
fn edges(bucket: usize) -> (u64, u64) {
    if bucket < SUB {
        return (bucket as u64, 1);
    }
    let shift = (bucket >> SUB_BITS) as u32 - 1;
    (((SUB + (bucket & (SUB - 1))) as u64) << shift, 1 << shift)
}

impl Histogram {
    #[inline]
    fn bucket_of(&mut self, value: u64) -> &mut Bucket {
        let at = bucket(value);
        if at >= self.buckets.len() {
            self.grow(at);
        }
        &mut self.buckets[at]
    }

    /// Makes room for a bucket, and for all of its power of two.
    #[cold]
    fn grow(&mut self, at: usize) {
        self.buckets.resize((at | (SUB - 1)) + 1, Bucket::default());
    }

    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let b = self.bucket_of(value);
        b.count += 1;
        match b.sum.checked_add(value) {
            Some(sum) => b.sum = sum,
            None => self.beyond += b.fill_up(value),
        }
        self.max = self.max.max(value);
    }

    /// Counts a value `n` times.
    pub fn add_times(&mut self, value: u64, n: usize) {
        if n == 0 {
            return;
        }
        let b = self.bucket_of(value);
        b.count += n as u64;
        let sum = u128::from(b.sum) + u128::from(value) * n as u128;
        b.sum = u64::try_from(sum).unwrap_or(u64::MAX);
        self.beyond += sum - u128::from(b.sum);
        self.max = self.max.max(value);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), Bucket::default());
        }
        for (a, b) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            a.count += b.count;
            match a.sum.checked_add(b.sum) {
                Some(sum) => a.sum = sum,
                None => self.beyond += a.fill_up(b.sum),
            }
        }
        self.beyond += other.beyond;
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.count).sum()
    }

    /// The largest value, 0 where there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The exact mean, 0 where there is no value.
    pub fn mean(&self) -> f64 {
        let sum = self.buckets.iter().map(|b| u128::from(b.sum)).sum::<u128>() + self.beyond;
        let count = self.count();
        if count == 0 { 0.0 } else { sum as f64 / count as f64 }
    }

    /// The value that a share `p` of all does not exceed (nearest rank): the mean of its bucket, so exact where the values
    /// there are equal, else within [`RELATIVE_ERROR`]. 0 where there is no value.
    pub fn percentile(&self, p: f64) -> f64 {
        let count = self.count();
        let rank = ((p * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for b in &self.buckets {
            seen += b.count;
            if b.count > 0 && seen >= rank {
                return b.sum as f64 / b.count as f64;
            }
        }
        0.0
    }

    /// The buckets that are not empty, ascending: lower edge, upper edge (exclusive), count.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u128, u64)> + '_ {
        self.buckets.iter().enumerate().filter(|(_, b)| b.count > 0).map(|(i, b)| {
            let (lo, width) = edges(i);
            (lo, u128::from(lo) + u128::from(width), b.count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_between_the_edges_of_its_bucket() {
        let mut last = 0;
        for e in 0..64 {
            for d in [0u64, 1, 2] {
                let value = (1u64 << e).saturating_add(d * ((1 << e) / 3)).saturating_sub(1);
                let b = bucket(value);
                let (lo, width) = edges(b);
                assert!(lo <= value && value - lo < width, "{value}: {lo} + {width}");
                assert!((width - 1) as f64 <= lo as f64 * RELATIVE_ERROR, "{value}");
                assert!(b >= last);
                last = b;
            }
        }
        assert_eq!(bucket(u64::MAX) + 1, (64 - SUB_BITS as usize + 1) * SUB);
    }

    #[test]
    fn percentiles_keep_the_stated_error_and_are_exact_where_values_repeat() {
        let mut h = Histogram::default();
        for i in 1..=100_000u64 {
            h.add(i * 1_000);
        }
        for p in [0.5, 0.9, 0.99, 0.999] {
            let (got, want) = (h.percentile(p), p * 1e8);
            assert!((got / want - 1.0).abs() <= RELATIVE_ERROR, "{p}: {got} for {want}");
        }
        assert_eq!((h.mean(), h.max()), (50_000_500.0, 100_000_000));
        let mut h = Histogram::default();
        (0..99).for_each(|_| h.add(4096));
        h.add(1 << 20);
        assert_eq!(
            (h.percentile(0.5), h.percentile(0.99), h.percentile(0.991)),
            (4096.0, 4096.0, 1_048_576.0)
        );
        assert_eq!((Histogram::default().percentile(0.5), Histogram::default().mean()), (0.0, 0.0));
    }

    #[test]
    fn buckets_are_there_up_to_the_largest_value_alone() {
        let (mut small, mut large) = (Histogram::default(), Histogram::default());
        assert_eq!((small.buckets.capacity(), small.count(), small.max()), (0, 0, 0));
        small.add_times(9, 0);
        assert_eq!(small.buckets.capacity(), 0);
        small.add(300);
        large.add(u64::MAX);
        assert_eq!((small.buckets.len(), large.buckets.len()), (3 * SUB, 58 * SUB));
        let before = large.rows().next();
        large.merge(&small);
        small.merge(&large);
        assert_eq!((large.rows().count(), large.rows().last()), (2, before));
        assert_eq!(small.rows().map(|r| r.2).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn ranks_round_up() {
        let mut h = Histogram::default();
        (1..=10).for_each(|v| h.add(v));
        // Half of ten values: the fifth. A floored rank of 0.55 would still give the fifth, the nearest rank is the sixth.
        assert_eq!((h.percentile(0.5), h.percentile(0.55), h.percentile(0.999)), (5.0, 6.0, 10.0));
    }

    #[test]
    fn the_largest_value_need_not_be_the_last() {
        let mut h = Histogram::default();
        [3, 900, 7].into_iter().for_each(|v| h.add(v));
        assert_eq!(h.max(), 900);
    }

    #[test]
    fn the_mean_is_exact_where_a_bucket_is_full() {
        let (mut a, mut b) = (Histogram::default(), Histogram::default());
        let large = u64::MAX - 1000;
        (0..5).for_each(|_| a.add(large));
        (0..3).for_each(|_| b.add(large));
        assert_eq!(a.mean(), large as f64);
        a.merge(&b);
        assert_eq!((a.mean(), a.count()), (large as f64, 8));
    }

    #[test]
    fn a_value_that_comes_often_is_counted_as_one_by_one() {
        let (mut often, mut each) = (Histogram::default(), Histogram::default());
        for (value, n) in [(5, 3), (4000, 1), (9, 0), (u64::MAX - 1000, 7), (4000, 12)] {
            often.add_times(value, n);
            (0..n).for_each(|_| each.add(value));
        }
        assert_eq!((&often.buckets, often.beyond, often.max), (&each.buckets, each.beyond, each.max));
        assert_eq!(often.mean(), each.mean());
    }

    #[test]
    fn merging_equals_counting_together() {
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for i in 0..1000u64 {
            let value = i * i * 977;
            if i % 3 == 0 {
                a.add(value)
            } else {
                b.add(value)
            }
            both.add(value);
        }
        a.merge(&b);
        assert!(a.rows().eq(both.rows()));
        assert_eq!((a.mean(), a.max(), a.percentile(0.9)), (both.mean(), both.max(), both.percentile(0.9)));
    }
}
