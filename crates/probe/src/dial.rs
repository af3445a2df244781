//! The disk as a clock hand: the end of a read of one block says at which angle the block lies.

use crate::Result;
use crate::stats::{earliest_angle, wrap};
use crate::target::{TimedTarget, Timing};
use crate::watch::Watch;
use serde::{Deserialize, Serialize};
use smrlab_units::rng::Rng;
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

impl Quality {
    /// What was needed in two sittings; the noise is that of the last one that measured it.
    pub(crate) fn and(self, later: Self) -> Self {
        Self {
            requests: self.requests + later.requests,
            cache_hits: self.cache_hits + later.cache_hits,
            outliers: self.outliers + later.outliers,
            noise_ns: if later.noise_ns > 0.0 { later.noise_ns } else { self.noise_ns },
            seconds: self.seconds + later.seconds,
        }
    }
}

/// Reads that push everything else out of the drive's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Eviction {
    /// How many.
    pub reads: u64,
    /// Blocks from one to the next: short ways past fresh blocks, many in a revolution. 0: anywhere.
    pub stride: u64,
}

/// More blocks than a drive reads ahead.
pub(crate) const FAR: u64 = 1 << 12;
/// How long it is deaf to who asks it to stop, in nanoseconds.
const PATIENCE: u64 = 250_000_000;
/// Blocks between what is measured and where evictions read.
const ASIDE: u64 = 1 << 20;

/// See the [module](self). Angles are in revolutions.
pub struct Dial<'a> {
    target: &'a mut dyn TimedTarget,
    watch: &'a mut dyn Watch,
    /// Nanoseconds in a revolution.
    period: f64,
    /// Reads that took less were answered by the drive's cache; 0 where there is none.
    hit_ns: f64,
    /// What pushes a block out of the drive's cache.
    eviction: Eviction,
    /// Where the last eviction ended.
    swept: u64,
    /// Standard deviation of an angle.
    noise: f64,
    /// Tracks are told apart by the revolution that a read over their boundary loses: see [`step`](Self::step).
    across: bool,
    quality: Quality,
    stage: String,
    last: SimTime,
    last_lba: u64,
    rng: Rng,
    /// A block, and when its end passed the head, in nanoseconds.
    mark: (u64, f64),
}

impl<'a> Dial<'a> {
    /// Knows nothing yet of how fast the disk turns.
    pub fn new(target: &'a mut dyn TimedTarget, watch: &'a mut dyn Watch) -> Self {
        Self {
            target,
            watch,
            period: 0.0,
            hit_ns: 0.0,
            eviction: Eviction::default(),
            swept: 0,
            noise: 0.0,
            across: false,
            quality: Quality::default(),
            stage: String::new(),
            last: SimTime::ZERO,
            last_lba: 0,
            rng: Rng::new(1),
            mark: (0, 0.0),
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

    /// By how much the [earliest](crate::stats::earliest) of `n` completions is late, about, in revolutions, and the standard
    /// error of what lies [between](Self::between) two: of delays with a sharp beginning it goes down with their number, not
    /// with its root.
    pub fn late(&self, n: u64) -> f64 {
        4.2 * self.noise / (n as f64 + 1.0)
    }

    /// A completion may be this much earlier than the middle one of several, in revolutions.
    pub fn early(&self) -> f64 {
        3.0 * self.noise + 1e-4
    }

    /// How often to repeat a measurement of an angle for a standard error of `want` revolutions, about `most` times at most.
    pub fn repeats(&self, want: f64, most: u64) -> u64 {
        let n = (4.2 * self.noise / want.max(1e-9)).ceil().min(1e9) as u64;
        // Where the host is noisy, single completions may also come much too late.
        let least = if self.noise > 1e-4 { 3 } else { 1 };
        n.clamp(least, most.max(least))
    }

    /// Period and noise as measured.
    pub(crate) fn set_period(&mut self, period: f64, noise_ns: f64) {
        self.period = period;
        self.noise = noise_ns / period;
        self.quality.noise_ns = noise_ns;
    }

    /// Remembers when a block passed the head, for [`tune`](Self::tune).
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub(crate) fn mark(&mut self, lba: u64) -> Result<()> {
        self.mark = (lba, self.passed(lba)?);
        Ok(())
    }

    /// Takes the period again from the marked block: the more exact the longer ago that was. Angles from before do not
    /// compare with those to come.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub(crate) fn tune(&mut self) -> Result<()> {
        let apart = self.passed(self.mark.0)? - self.mark.1;
        let turns = (apart / self.period).round();
        if turns >= 1.0 {
            self.period = apart / turns;
        }
        Ok(())
    }

    /// A time at which the block's end passed the head, in nanoseconds.
    fn passed(&mut self, lba: u64) -> Result<f64> {
        let angles = (0..self.repeats(0.001, 32)).map(|_| self.angle(lba)).collect::<Result<Vec<_>, _>>()?;
        let late = wrap(self.angle_at(self.last) - self.earliest(&angles));
        Ok(self.last.0 as f64 - late * self.period)
    }

    pub(crate) fn set_cache(&mut self, hit_ns: f64, eviction: Eviction) {
        self.hit_ns = hit_ns;
        self.eviction = eviction;
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
        debug_assert!((0.0..=1.0).contains(&share), "{share} of {}", self.stage);
        self.watch.progress(&self.stage, share, self.last.as_secs_f64());
    }

    /// One request; stops where asked to.
    ///
    /// # Errors
    /// The target's, or that it was asked to stop.
    pub fn access(&mut self, dir: Dir, lba: u64, blocks: u64) -> Result<Timing> {
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
    pub fn read(&mut self, lba: u64) -> Result<Timing> {
        self.access(Dir::Read, lba, 1)
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn flush(&mut self) -> Result<Timing> {
        self.watch.check()?;
        let t = self.target.flush()?;
        self.last = t.end;
        Ok(t)
    }

    /// Writes and makes it durable: a write that the drive's own memory takes is over when it is on the medium.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn write(&mut self, lba: u64, blocks: u64) -> Result<Timing> {
        let start = self.access(Dir::Write, lba, blocks)?.start;
        let end = self.flush()?.end;
        Ok(Timing { start, end })
    }

    /// Sends nothing for this many nanoseconds; less where it is asked to stop, which the next request then says.
    pub fn pause(&mut self, ns: f64) {
        let mut left = ns.max(0.0) as u64;
        while left > 0 && !self.watch.stopped() {
            let part = left.min(PATIENCE);
            self.target.pause(SimTime(part));
            left -= part;
        }
    }

    /// The end of the last request on the target's clock.
    pub fn now(&self) -> SimTime {
        self.last
    }

    /// A number below `n`, the same in every run.
    pub fn random(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    /// Pushes everything out of the drive's cache by reads not far from each other.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn evict(&mut self) -> Result<()> {
        let (blocks, at) = (self.blocks(), self.last_lba);
        let Eviction { reads, stride } = self.eviction;
        if stride > 0 {
            let aside = ASIDE.min(blocks / 4);
            let window = (2 * ASIDE).max(4 * reads * stride).min(blocks / 4);
            let first =
                if at + aside + window < blocks { at + aside } else { at.saturating_sub(aside + window) };
            for i in 0..reads {
                // The drive may have read ahead behind the last one, meanwhile.
                self.swept += if i == 0 { stride.max(FAR) } else { stride };
                if !(first..first + window).contains(&self.swept) {
                    self.swept = first;
                }
                self.read(self.swept)?;
            }
        } else {
            let window = (blocks / 128).max(1 << 20).min(blocks);
            let first = at.saturating_sub(window / 2).min(blocks - window);
            for _ in 0..reads {
                let lba = first + self.random(window);
                self.read(lba)?;
            }
        }
        self.last_lba = at;
        Ok(())
    }

    /// Whether the drive's cache answers a read of the block.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn hit(&mut self, lba: u64) -> Result<bool> {
        let t = self.read(lba)?;
        Ok(self.is_hit(t))
    }

    /// Whether the drive's cache answered it.
    pub fn is_hit(&self, t: Timing) -> bool {
        t.took() < self.hit_ns
    }

    /// Reads a block from the medium: where the drive's cache had it, again after pushing it out.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn read_medium(&mut self, lba: u64) -> Result<Timing> {
        let mut t = self.read(lba)?;
        for _ in 0..3 {
            if !self.is_hit(t) {
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
    pub fn angle(&mut self, lba: u64) -> Result<f64> {
        let t = self.read_medium(lba)?;
        Ok(self.angle_at(t.end))
    }

    /// By how much the end of `to` lies behind the end of `from`, in [-0.5, 0.5): the earliest of `repeats` measurements of
    /// each, which follow each other closely. The later block is read first, so that read-ahead does not help.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn between(&mut self, from: u64, to: u64, repeats: u64) -> Result<f64> {
        let mut ends = [Vec::new(), Vec::new()];
        for _ in 0..repeats.max(1) {
            for (ends, lba) in ends.iter_mut().zip([from.max(to), from.min(to)]) {
                ends.push(self.angle(lba)?);
            }
        }
        let [later, sooner] = ends.map(|e| self.earliest(&e));
        Ok(wrap(if from < to { later - sooner } else { sooner - later }))
    }

    /// The earliest of angles of one block; counts those that are far from it.
    pub(crate) fn earliest(&mut self, angles: &[f64]) -> f64 {
        let found = earliest_angle(angles, self.early());
        let limit = 8.0 * self.noise + 0.01;
        let far = angles.iter().filter(|a| wrap(*a - found).abs() > limit).count();
        self.quality.outliers += if angles.len() > 2 { far as u64 } else { 0 };
        found
    }

    /// Whether tracks are told apart by lost revolutions; see [`step`](Self::step).
    pub(crate) fn across(&self) -> bool {
        self.across
    }

    pub(crate) fn set_across(&mut self, across: bool) {
        self.across = across;
    }

    /// As [`between`](Self::between), for two blocks less than half a revolution apart, of which `sectors` make one. Where
    /// tracks follow each other without skew their angles do not show the boundary, but a read over it loses a revolution:
    /// that is counted as [`LOST`].
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn step(&mut self, from: u64, to: u64, sectors: f64, repeats: u64) -> Result<f64> {
        if !self.across {
            return self.between(from, to, repeats);
        }
        let (mut ends, mut lost) = ([Vec::new(), Vec::new()], 0);
        for _ in 0..repeats.max(1) {
            if self.cached() {
                self.evict()?;
            }
            let first = self.read(from)?.end;
            let (from, whole) = if self.cached() { (from + 1, 0.0) } else { (from, 1.0) };
            let second = self.access(Dir::Read, from, to + 1 - from)?;
            // What follows a read one is on its way into the drive's cache, or there already.
            if self.is_hit(second) {
                continue;
            }
            lost += u64::from(self.turns(first, second.end) - whole > 0.75);
            for (ends, end) in ends.iter_mut().zip([first, second.end]) {
                ends.push(self.angle_at(end));
            }
        }
        let seen = ends[0].len() as u64;
        let [first, second] = ends.map(|e| self.earliest(&e));
        let turned = if seen > 0 { wrap(second - first) } else { (to - from) as f64 / sectors };
        Ok(wrap(turned + if 2 * lost > seen { LOST } else { 0.0 }))
    }

    /// Revolutions from one moment to another.
    fn turns(&self, from: SimTime, to: SimTime) -> f64 {
        (to.0 as f64 - from.0 as f64) / self.period
    }
}

/// What a lost revolution counts in a [`step`](Dial::step), in revolutions.
pub(crate) const LOST: f64 = 0.5;

#[cfg(test)]
mod tests;
