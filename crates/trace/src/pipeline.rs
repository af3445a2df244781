//! What is done to the requests of a trace on their way, in one order and by one rule for all: a run, a stored trace and
//! a characterisation see the same requests.
//!
//! The order is: a stretch of time, a filter, a limit, scaled times, wrapped addresses.

use crate::{Batch, Filter, Result, TraceError, TraceSource};
use smrlab_units::{Blocks, Lba, SimTime};

/// What is done; by default nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// Requests that arrive from here on; the trace's time then begins here.
    pub from: SimTime,
    /// Requests that arrive before.
    pub until: SimTime,
    /// Requests that the filter takes.
    pub filter: Option<Filter>,
    /// At most so many requests.
    pub limit: Option<u64>,
    /// Arrivals are multiplied by this: above 1 is slower. See [`Steps::check`].
    pub scale_time: f64,
    /// Addresses modulo so many blocks (He & Du 2014, section 5: `LBA mod usage · capacity`).
    ///
    /// A request that would cross the end is moved back so that it ends there: it stays one request of its length, so
    /// that counts, lengths and volume are those of the trace. One that is longer than the space is cut to it.
    pub wrap: Option<Blocks>,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            from: SimTime::ZERO,
            until: SimTime::MAX,
            filter: None,
            limit: None,
            scale_time: 1.0,
            wrap: None,
        }
    }
}

/// The factors by which times can be multiplied.
pub const SCALES: std::ops::RangeInclusive<f64> = 1e-9..=1e12;

impl Steps {
    /// Whether they can be done.
    ///
    /// # Errors
    /// A stretch of time that ends before it begins, a limit of 0, a factor outside [`SCALES`], a space of 0 blocks.
    pub fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(TraceError::Request(why));
        if self.from >= self.until {
            return refuse(format!("no time lies from {} on and before {}", self.from, self.until));
        }
        if self.limit == Some(0) {
            return refuse("a limit of 0 requests leaves nothing: a whole number from 1".to_owned());
        }
        if !SCALES.contains(&self.scale_time) {
            return refuse(format!("time scale {:?}: it must be from 1e-9 to 1e12", self.scale_time));
        }
        if self.wrap == Some(Blocks::ZERO) {
            return refuse("cannot wrap addresses to a space of 0 blocks".to_owned());
        }
        Ok(())
    }
}

/// A trace with [`Steps`] applied.
pub struct Pipeline<S> {
    inner: S,
    steps: Steps,
    scale: Option<Factor>,
    left: u64,
    ended: bool,
}

impl<S: TraceSource> Pipeline<S> {
    /// `inner`, changed as `steps` say.
    ///
    /// # Errors
    /// As [`Steps::check`].
    pub fn new(inner: S, steps: Steps) -> Result<Self> {
        steps.check()?;
        let scale = (steps.scale_time != 1.0).then(|| Factor::new(steps.scale_time));
        Ok(Self { inner, scale, left: steps.limit.unwrap_or(u64::MAX), ended: false, steps })
    }

    /// Keeps what arrives within the stretch of time, and lets time begin there.
    fn cut(&mut self, out: &mut Batch) {
        let Steps { from, until, .. } = self.steps;
        if from == SimTime::ZERO && until == SimTime::MAX {
            return;
        }
        // Arrivals never fall: nothing later than one beyond the end can be within.
        self.ended = out.arrival.last().is_some_and(|at| *at >= until);
        out.retain(|r| (from..until).contains(&r.arrival));
        out.arrival.iter_mut().for_each(|at| *at = at.since(from));
    }

    fn change(&mut self, out: &mut Batch) -> Result<()> {
        self.cut(out);
        if let Some(filter) = &mut self.steps.filter {
            filter.apply(out, &self.inner);
        }
        out.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= out.len() as u64;
        if let Some(factor) = self.scale {
            for at in &mut out.arrival {
                *at = factor.times(*at).ok_or_else(|| {
                    TraceError::Request(
                        "the scaled times go beyond 584 years: use a smaller factor".to_owned(),
                    )
                })?;
            }
        }
        if let Some(space) = self.steps.wrap {
            wrap(out, space.0);
        }
        Ok(())
    }
}

/// Addresses modulo `space` blocks; see [`Steps::wrap`].
fn wrap(out: &mut Batch, space: u64) {
    for (lba, blocks) in out.lba.iter_mut().zip(&mut out.blocks) {
        if lba.0 + u64::from(*blocks) <= space {
            continue;
        }
        let n = u64::from(*blocks).min(space);
        *blocks = n as u32;
        *lba = Lba((lba.0 % space).min(space - n));
    }
}

impl<S: TraceSource> TraceSource for Pipeline<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        while self.left > 0 && !self.ended && self.inner.next_batch(out)? {
            self.change(out)?;
            if !out.is_empty() {
                return Ok(true);
            }
        }
        out.clear();
        Ok(false)
    }
    fn device_name(&self, device: u32) -> String {
        self.inner.device_name(device)
    }
    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }
    fn progress(&self) -> Option<f64> {
        let share = self.steps.limit.map(|n| 1.0 - self.left as f64 / n as f64);
        match (self.inner.progress(), share) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }
}

/// A real number as a whole one of 53 bits over a power of two, so that products are exact before they are rounded.
#[derive(Clone, Copy, Debug)]
struct Factor {
    mantissa: u64,
    shift: u32,
}

impl Factor {
    /// `x` must be within [`SCALES`].
    fn new(x: f64) -> Self {
        let bits = x.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i64 - 1075;
        Self { mantissa: (bits & ((1 << 52) - 1)) | 1 << 52, shift: (-exponent) as u32 }
    }

    /// The product, rounded to the nearest nanosecond.
    fn times(self, at: SimTime) -> Option<SimTime> {
        let product = u128::from(at.0) * u128::from(self.mantissa);
        let rounded = (product + (1u128 << (self.shift - 1))) >> self.shift;
        u64::try_from(rounded).ok().map(SimTime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of requests a second apart, of which the third cannot be read.
    struct Broken(u64);

    impl TraceSource for Broken {
        fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
            out.clear();
            self.0 += 1;
            if self.0 == 3 {
                return Err(TraceError::Nothing("the file is damaged there".to_owned()));
            }
            for second in [10, 11, 12].map(|n| n * self.0) {
                let (arrival, lba) = (SimTime::from_ms(1000 * second), Lba(second));
                let (op, fua) = (smrlab_units::HostOp::Read, false);
                out.push(crate::Record { arrival, op, lba, blocks: 1, device: 0, stream: 0, fua });
            }
            Ok(true)
        }
    }

    /// 10, 11, 12, 20, 22 and 24 s: what lies behind the batch in which a stretch or a limit ends is not looked at.
    #[test]
    fn nothing_is_read_behind_the_end() {
        let until = |s: u64| Steps { until: SimTime::from_ms(1000 * s), ..Steps::default() };
        let limit = |n| Steps { limit: Some(n), ..Steps::default() };
        for (steps, rows) in [
            (until(12), Some(2)),
            (until(21), Some(4)),
            (until(24), Some(5)),
            (until(25), None),
            (limit(6), Some(6)),
            (limit(7), None),
        ] {
            let all = crate::read_all(&mut Pipeline::new(Broken(0), steps).unwrap());
            assert_eq!(all.ok().map(|all| all.len()), rows);
        }
    }

    /// Of batches of three writes with addresses of their own those in which the filter leaves nothing are not handed on.
    #[test]
    fn a_batch_that_is_handed_on_has_a_request() {
        struct Batches(u64);
        impl TraceSource for Batches {
            fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
                out.clear();
                self.0 += 1;
                for n in 0..3 {
                    let (arrival, lba) = (SimTime(10 * self.0 + n), Lba(100 * self.0 + n));
                    let (op, fua) = (smrlab_units::HostOp::Write, false);
                    out.push(crate::Record { arrival, op, lba, blocks: 1, device: 0, stream: 0, fua });
                }
                Ok(self.0 <= 9)
            }
        }
        let of = |steps: Steps| {
            let (mut pipeline, mut batch, mut rows) =
                (Pipeline::new(Batches(0), steps).unwrap(), Batch::new(), Vec::new());
            while pipeline.next_batch(&mut batch).unwrap() {
                assert!(!batch.is_empty(), "behind {rows:?}");
                rows.extend(batch.iter().map(|r| r.lba.0));
            }
            assert!(batch.is_empty(), "nothing is left in the last one");
            rows
        };
        let filter = |text: &str| Steps { filter: Some(Filter::parse(text).unwrap()), ..Steps::default() };
        assert_eq!(of(filter("lba=301blk..502blk")), [301, 302, 400, 401, 402, 500, 501]);
        assert_eq!(of(filter("lba=950blk..")), [0; 0]);
        let from = Steps { from: SimTime(51), until: SimTime(72), ..Steps::default() };
        assert_eq!(of(from), [501, 502, 600, 601, 602, 700, 701]);
    }

    #[test]
    fn factors_are_exact_from_the_smallest_to_the_largest() {
        assert_eq!(Factor::new(2.0 / 3.0).times(SimTime(1_000_000)), Some(SimTime(666_667)));
        assert_eq!(Factor::new(1e-9).times(SimTime(1_500_000_000)), Some(SimTime(2)));
        assert_eq!(Factor::new(1e12).times(SimTime(3)), Some(SimTime(3_000_000_000_000)));
        assert_eq!(Factor::new(1e12).times(SimTime(1 << 62)), None);
        let odd = (1u64 << 60) + 1;
        assert_eq!(Factor::new(3.0).times(SimTime(odd)), Some(SimTime(3 * odd)), "no bits are lost");
        assert_eq!(Factor::new(0.5).times(SimTime(odd)), Some(SimTime(odd / 2 + 1)), "half is rounded up");
    }
}
