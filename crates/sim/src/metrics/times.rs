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
    /// The last ones that were told of as [`again`](Self::again), all of one kind with one time, which are in no histogram yet.
    same: Same,
}

/// So many requests of one kind that took the same time.
#[derive(Clone, Copy, Default)]
struct Same {
    kind: usize,
    time: u64,
    n: usize,
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

    /// The same of one that mostly takes as long as the one before: what a drive's buffer answers.
    #[inline]
    pub fn again(&mut self, kind: usize, response: SimTime, service: SimTime) {
        if (response.0 == self.same.time) & (kind == self.same.kind) & (response == service) {
            self.same.n += 1;
            return;
        }
        if response == service {
            let before = std::mem::replace(&mut self.same, Same { kind, time: response.0, n: 1 });
            self.at_once[before.kind].add_times(before.time, before.n);
        } else {
            self.add(kind, response, service);
        }
    }

    /// So many of them that did not wait, at least one.
    pub fn again_times(&mut self, kind: usize, time: SimTime, n: u64) {
        self.again(kind, time, time);
        self.same.n += n as usize - 1;
    }

    /// Response times of reads, of writes and of others.
    pub fn responses(&self) -> [Histogram; 3] {
        [0, 1, 2].map(|kind| {
            let mut all = self.at_once[kind].clone();
            all.merge(&self.waited[kind]);
            if kind == self.same.kind {
                all.add_times(self.same.time, self.same.n);
            }
            all
        })
    }

    /// Service times of all.
    pub fn services(&self) -> Histogram {
        let mut all = self.service.clone();
        self.at_once.iter().for_each(|h| all.merge(h));
        all.add_times(self.same.time, self.same.n);
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
            // One after the other takes the same time again and again, also of another kind, and at the end.
            let (kind, service) = match i {
                0..2000 => (i as usize % 3, 1000 + i * i),
                _ => (i as usize / 100 % 3, 1000 + i / 250),
            };
            let response = service + if i % 5 < 2 { 0 } else { i };
            match i % 7 {
                0 => times.add(kind, SimTime(response), SimTime(service)),
                _ => times.again(kind, SimTime(response), SimTime(service)),
            }
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
