//! What the percentiles of a trace's gaps and sizes are.

use serde::Serialize;
use smrlab_units::Histogram;

/// Mean, percentiles and maximum of values in some unit; percentiles as [`Histogram::percentile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Exact.
    pub mean: f64,
    /// Half are at or below.
    pub p50: f64,
    /// 90 % are at or below.
    pub p90: f64,
    /// 95 % are at or below.
    pub p95: f64,
    /// 99 % are at or below.
    pub p99: f64,
    /// Exact.
    pub max: f64,
}

impl Percentiles {
    /// Of a histogram, its values multiplied by `unit`.
    pub fn of(values: &Histogram, unit: f64) -> Self {
        let p = |share| values.percentile(share) * unit;
        Self {
            mean: values.mean() * unit,
            p50: p(0.5),
            p90: p(0.9),
            p95: p(0.95),
            p99: p(0.99),
            max: values.max() as f64 * unit,
        }
    }
}
