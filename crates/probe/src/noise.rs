//! A target behind a host that sees completions late.

use crate::target::{TargetError, TimedTarget, Timing};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Dir, Lba, SimTime};

/// Adds to every completion a delay like the absolute value of a normal variable; the next request is sent after it. One
/// completion in `spike_every` comes much later, as when the host serves somebody else.
#[derive(Debug)]
pub struct Noisy<T> {
    inner: T,
    sigma: f64,
    spike_every: u64,
    rng: Rng,
}

impl<T> Noisy<T> {
    /// `sigma` is the standard deviation of the normal variable; `spike_every` of 0 means never.
    pub fn new(inner: T, sigma: SimTime, spike_every: u64, seed: u64) -> Self {
        Self { inner, sigma: sigma.0 as f64, spike_every, rng: Rng::new(seed) }
    }

    fn delay(&mut self) -> u64 {
        let spike = self.spike_every > 0 && self.rng.one_in(self.spike_every);
        let more = if spike { 5e6 + 2e7 * self.rng.unit() } else { 0.0 };
        ((self.rng.normal() * self.sigma).abs() + more) as u64
    }
}

impl<T: TimedTarget> Noisy<T> {
    fn late(&mut self, t: Timing) -> Timing {
        let delay = SimTime(self.delay());
        self.inner.pause(delay);
        Timing { start: t.start, end: t.end + delay }
    }
}

impl<T: TimedTarget> TimedTarget for Noisy<T> {
    fn blocks(&self) -> Blocks {
        self.inner.blocks()
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let t = self.inner.access(dir, lba, blocks)?;
        Ok(self.late(t))
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        let t = self.inner.flush()?;
        Ok(self.late(t))
    }

    fn pause(&mut self, span: SimTime) {
        self.inner.pause(span);
    }
}
