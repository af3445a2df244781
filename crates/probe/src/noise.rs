//! A target behind a host that sees completions late.

use crate::target::{TargetError, TimedTarget, Timing};
use smrlab_units::{Blocks, Dir, Lba, SimTime};

/// Adds to every completion a delay like the absolute value of a normal variable; the next request is sent after it. One
/// completion in `spike_every` comes much later, as when the host serves somebody else.
#[derive(Debug)]
pub struct Noisy<T> {
    inner: T,
    sigma: f64,
    spike_every: u64,
    state: u64,
}

impl<T> Noisy<T> {
    /// `sigma` is the standard deviation of the normal variable; `spike_every` of 0 means never.
    pub fn new(inner: T, sigma: SimTime, spike_every: u64, seed: u64) -> Self {
        Self { inner, sigma: sigma.0 as f64, spike_every, state: seed }
    }

    fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The sum of twelve uniform numbers is normal enough, and the same on every machine.
    fn delay(&mut self) -> u64 {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        let spike = self.spike_every > 0 && self.unit() * (self.spike_every as f64) < 1.0;
        let more = if spike { 5e6 + 2e7 * self.unit() } else { 0.0 };
        ((normal * self.sigma).abs() + more) as u64
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
