//! The disk as a clock hand: the end of a read of one block says at which angle the block lies.

use crate::ProbeError;
use crate::stats::{median_angle, wrap};
use crate::target::{TimedTarget, Timing};
use crate::watch::Watch;
use serde::{Deserialize, Serialize};
use smrlab_units::{Blocks, Dir, Lba, SimTime};

/// What was needed to measure, and what disturbed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Requests sent.
    pub requests: u64,
    /// Reads that the drive's own cache answered, and that were repeated after pushing the data out of it.
    pub cache_hits: u64,
    /// Measurements that disagreed with their repetitions and were left out.
    pub outliers: u64,
    /// Standard deviation of a completion, in nanoseconds.
    pub noise_ns: f64,
    /// How long it took on the target's clock, in seconds.
    pub seconds: f64,
}

/// See the [module](self). Angles are in revolutions.
pub struct Dial<'a> {
    target: &'a mut dyn TimedTarget,
    watch: &'a mut dyn Watch,
    /// Nanoseconds in a revolution.
    period: f64,
    /// Reads that took less were answered by the drive's cache; 0 where there is none.
    hit_ns: f64,
    /// Reads elsewhere that push a block out of the drive's cache.
    evictions: u64,
    /// Standard deviation of an angle.
    noise: f64,
    /// Tracks are told apart by the revolution that a read over their boundary loses: see [`step`](Self::step).
    across: bool,
    quality: Quality,
    stage: String,
    last: SimTime,
    last_lba: u64,
    seed: u64,
}

impl<'a> Dial<'a> {
    /// Knows nothing yet of how fast the disk turns.
    pub fn new(target: &'a mut dyn TimedTarget, watch: &'a mut dyn Watch) -> Self {
        Self {
            target,
            watch,
            period: 0.0,
            hit_ns: 0.0,
            evictions: 0,
            noise: 0.0,
            across: false,
            quality: Quality::default(),
            stage: String::new(),
            last: SimTime::ZERO,
            last_lba: 0,
            seed: 1,
        }
    }

    /// How many blocks the target has.
    pub fn blocks(&self) -> u64 {
        self.target.blocks().0
    }

    /// Nanoseconds in a revolution.
    pub fn period(&self) -> f64 {
        self.period
    }

    /// Standard deviation of an angle.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// How often to repeat a measurement of an angle for a standard error of `want` revolutions, about `most` times at most.
    pub fn repeats(&self, want: f64, most: u64) -> u64 {
        let n = (self.noise / want.max(1e-9)).powi(2).ceil().min(1e9) as u64;
        // Where the host is noisy, single completions may also come much too late.
        let least = if self.noise > 1e-4 { 3 } else { 1 };
        n.clamp(least, most.max(least))
    }

    pub(crate) fn set_period(&mut self, period: f64, noise_ns: f64) {
        self.period = period;
        self.noise = noise_ns / period;
        self.quality.noise_ns = noise_ns;
    }

    pub(crate) fn set_cache(&mut self, hit_ns: f64, evictions: u64) {
        self.hit_ns = hit_ns;
        self.evictions = evictions;
    }

    /// Whether the drive answers repeated reads from a cache of its own.
    pub fn cached(&self) -> bool {
        self.hit_ns > 0.0
    }

    /// What was needed so far.
    pub fn quality(&self) -> Quality {
        Quality { seconds: self.last.as_secs_f64(), ..self.quality }
    }

    pub(crate) fn count_outlier(&mut self) {
        self.quality.outliers += 1;
    }

    /// Names what is measured next.
    pub fn stage(&mut self, name: &str) {
        name.clone_into(&mut self.stage);
        self.watch.progress(name, 0.0, self.last.as_secs_f64());
    }

    /// Tells who watches how much of the stage is done.
    pub fn share(&mut self, share: f64) {
        self.watch.progress(&self.stage, share, self.last.as_secs_f64());
    }

    /// One request; stops where asked to.
    ///
    /// # Errors
    /// The target's, or that it was asked to stop.
    pub fn access(&mut self, dir: Dir, lba: u64, blocks: u64) -> Result<Timing, ProbeError> {
        self.watch.check()?;
        self.quality.requests += 1;
        let t = self.target.access(dir, Lba(lba), Blocks(blocks))?;
        self.last = t.end;
        self.last_lba = lba;
        Ok(t)
    }

    /// Reads one block.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn read(&mut self, lba: u64) -> Result<Timing, ProbeError> {
        self.access(Dir::Read, lba, 1)
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn flush(&mut self) -> Result<Timing, ProbeError> {
        self.watch.check()?;
        let t = self.target.flush()?;
        self.last = t.end;
        Ok(t)
    }

    /// Writes and makes it durable: a write that the drive's own memory takes is over when it is on the medium.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn write(&mut self, lba: u64, blocks: u64) -> Result<Timing, ProbeError> {
        let start = self.access(Dir::Write, lba, blocks)?.start;
        let end = self.flush()?.end;
        Ok(Timing { start, end })
    }

    /// Sends nothing for this many nanoseconds.
    pub fn pause(&mut self, ns: f64) {
        self.target.pause(SimTime(ns.max(0.0) as u64));
    }

    /// The end of the last request on the target's clock.
    pub fn now(&self) -> SimTime {
        self.last
    }

    /// A number below `n`, the same in every run.
    pub fn random(&mut self, n: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.seed >> 1) * u128::from(n)) >> 63) as u64
    }

    /// Pushes everything out of the drive's cache by reads not far from each other.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn evict(&mut self) -> Result<(), ProbeError> {
        let blocks = self.blocks();
        let window = (blocks / 128).max(1 << 20).min(blocks);
        let first = self.last_lba.saturating_sub(window / 2).min(blocks - window);
        for _ in 0..self.evictions {
            let lba = first + self.random(window);
            self.read(lba)?;
        }
        Ok(())
    }

    /// Whether the drive's cache answers a read of the block.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn hit(&mut self, lba: u64) -> Result<bool, ProbeError> {
        Ok(self.read(lba)?.took() < self.hit_ns)
    }

    /// Reads a block from the medium: where the drive's cache had it, again after pushing it out.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn read_medium(&mut self, lba: u64) -> Result<Timing, ProbeError> {
        let mut t = self.read(lba)?;
        for _ in 0..3 {
            if t.took() >= self.hit_ns {
                break;
            }
            self.quality.cache_hits += 1;
            self.evict()?;
            t = self.read(lba)?;
        }
        Ok(t)
    }

    /// The angle of a completion.
    pub fn angle_at(&self, t: SimTime) -> f64 {
        let turns = t.0 as f64 / self.period;
        turns - turns.floor()
    }

    /// The angle at which the block ends, once measured.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn angle(&mut self, lba: u64) -> Result<f64, ProbeError> {
        let t = self.read_medium(lba)?;
        Ok(self.angle_at(t.end))
    }

    /// The median of `repeats` measurements.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn angle_of(&mut self, lba: u64, repeats: u64) -> Result<f64, ProbeError> {
        let mut angles = Vec::with_capacity(repeats as usize);
        for _ in 0..repeats.max(1) {
            angles.push(self.angle(lba)?);
        }
        Ok(median_angle(&angles))
    }

    /// By how much the end of `to` lies behind the end of `from`, in [-0.5, 0.5): the median of `repeats` measurements,
    /// each of both blocks close after each other. The later block is read first, so that read-ahead does not help.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn between(&mut self, from: u64, to: u64, repeats: u64) -> Result<f64, ProbeError> {
        let mut angles = Vec::with_capacity(repeats as usize);
        for _ in 0..repeats.max(1) {
            let (first, second) = (self.angle(from.max(to))?, self.angle(from.min(to))?);
            angles.push(wrap(if from < to { first - second } else { second - first }));
        }
        let middle = median_angle(&angles);
        if angles.len() > 2 {
            let limit = 8.0 * self.noise + 0.01;
            self.quality.outliers +=
                angles.iter().filter(|a| wrap(**a - middle).abs() > limit).count() as u64;
        }
        Ok(middle)
    }

    /// Whether tracks are told apart by lost revolutions; see [`step`](Self::step).
    pub(crate) fn across(&self) -> bool {
        self.across
    }

    pub(crate) fn set_across(&mut self, across: bool) {
        self.across = across;
    }

    /// As [`between`](Self::between), for two blocks less than half a revolution apart. Where tracks follow each other
    /// without skew their angles do not show the boundary, but a read over it loses a revolution: that is counted as
    /// [`LOST`].
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn step(&mut self, from: u64, to: u64, repeats: u64) -> Result<f64, ProbeError> {
        if !self.across || self.cached() {
            return self.between(from, to, repeats);
        }
        let mut angles = Vec::with_capacity(repeats as usize);
        for _ in 0..repeats.max(1) {
            let first = self.read(from)?.end;
            let second = self.access(Dir::Read, from, to - from + 1)?.end;
            let turns = (second.0 as f64 - first.0 as f64) / self.period - 1.0;
            let lost = (turns + 0.25).floor();
            angles.push(wrap(turns - lost + if lost > 0.0 { LOST } else { 0.0 }));
        }
        Ok(median_angle(&angles))
    }
}

/// What a lost revolution counts in a [`step`](Dial::step), in revolutions.
pub(crate) const LOST: f64 = 0.5;
