//! Mean and percentiles of times, as results have them.

use smrlab_units::Histogram;

/// Mean and percentiles of times, in milliseconds; percentiles as [`Histogram::percentile`].
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Exact mean.
    pub mean: f64,
    /// Median.
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

impl Summary {
    /// Of a histogram of nanoseconds; `None` where nothing was counted.
    pub fn of(times: &Histogram) -> Option<Self> {
        let p = |share| times.percentile(share) / 1e6;
        (times.count() > 0).then(|| Self {
            mean: times.mean() / 1e6,
            p50: p(0.5),
            p90: p(0.9),
            p95: p(0.95),
            p99: p(0.99),
            p999: p(0.999),
            max: times.max() as f64 / 1e6,
        })
    }
}
