//! Response and service times as they are counted, and their mean and percentiles as results have them.

use smrlab_units::{Histogram, SimTime};

/// Response times by read (0), write (1) and other (2), and service times. Of a request that did not wait the two are the
/// same and counted once.
#[derive(Default)]
pub struct Times {
    at_once: [Histogram; 3],
    waited: [Histogram; 3],
    /// Of those that waited.
    service: Histogram,
}

impl Times {
    /// A request was answered so long after it came and after it was begun.
    #[inline]
    pub fn add(&mut self, kind: usize, response: SimTime, service: SimTime) {
        if response == service {
            self.at_once[kind].add(response.0);
        } else {
            self.waited[kind].add(response.0);
            self.service.add(service.0);
        }
    }

    /// Response times of reads, of writes and of others.
    pub fn responses(&self) -> [Histogram; 3] {
        [0, 1, 2].map(|kind| {
            let mut all = self.at_once[kind].clone();
            all.merge(&self.waited[kind]);
            all
        })
    }

    /// Service times of all.
    pub fn services(&self) -> Histogram {
        let mut all = self.service.clone();
        self.at_once.iter().for_each(|h| all.merge(h));
        all
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_alike_whether_or_not_requests_waited() {
        let mut times = Times::default();
        let mut plain: ([Histogram; 3], Histogram) = Default::default();
        for i in 0..3000u64 {
            let (kind, service) = (i as usize % 3, 1000 + i * i);
            let response = service + if i % 5 < 2 { 0 } else { i };
            times.add(kind, SimTime(response), SimTime(service));
            plain.0[kind].add(response);
            plain.1.add(service);
        }
        let got: Vec<_> = times.responses().into_iter().chain([times.services()]).collect();
        let want: Vec<_> = plain.0.into_iter().chain([plain.1]).collect();
        for (got, want) in got.iter().zip(&want) {
            assert!(got.rows().eq(want.rows()));
            assert_eq!(Summary::of(got), Summary::of(want));
        }
    }
}
