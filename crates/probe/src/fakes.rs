//! Targets that tests make up: whatever they say when a request ends.

use crate::{SimTarget, TargetError, TimedTarget, Timing, Watch};
use smrlab_units::{Blocks, Dir, Lba, SimTime};

/// A simulated drive of a preset.
pub(crate) fn simulated(text: &str) -> SimTarget {
    crate::sim::open(text, |_| Err("no files here".to_owned())).unwrap()
}

/// A target of which a function says when an access ends: from its direction, its first block, its blocks and the time, in ns.
pub(crate) struct Fake<F> {
    pub blocks: u64,
    pub now: u64,
    /// Every access.
    pub asked: Vec<(Dir, u64, u64)>,
    pub ends: F,
    /// What a flush takes.
    pub flush: u64,
}

impl<F: FnMut(Dir, u64, u64, u64) -> u64> Fake<F> {
    pub(crate) fn new(blocks: u64, ends: F) -> Self {
        Self { blocks, now: 0, asked: Vec::new(), ends, flush: 0 }
    }
}

impl<F: FnMut(Dir, u64, u64, u64) -> u64> TimedTarget for Fake<F> {
    fn blocks(&self) -> Blocks {
        Blocks(self.blocks)
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let start = SimTime(self.now);
        assert!(lba.0 + blocks.0 <= self.blocks, "{lba:?} is behind the end");
        self.asked.push((dir, lba.0, blocks.0));
        self.now = (self.ends)(dir, lba.0, blocks.0, self.now);
        Ok(Timing { start, end: SimTime(self.now) })
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        let start = SimTime(self.now);
        self.now += self.flush;
        Ok(Timing { start, end: SimTime(self.now) })
    }

    fn pause(&mut self, span: SimTime) {
        self.now += span.0;
    }
}

/// Nanoseconds in a revolution of these.
pub(crate) const TURN: u64 = 10_000_000;

/// The first moment behind `now` at which an angle (in revolutions) passes the head.
pub(crate) fn passes(angle: f64, now: u64) -> u64 {
    let at = ((angle - angle.floor()) * TURN as f64).round() as u64 % TURN;
    let end = now / TURN * TURN + at;
    if end > now { end } else { end + TURN }
}

/// What who watches is told: stages in their order, of each how often a share of it, and the sum of these.
#[derive(Default)]
pub(crate) struct Told(pub Vec<(String, u32, f64)>);

impl Watch for Told {
    fn progress(&mut self, stage: &str, share: f64, _: f64) {
        assert!((0.0..=1.0).contains(&share), "{share} of {stage}");
        match self.0.last_mut().filter(|last| last.0 == stage && share > 0.0) {
            Some((_, n, sum)) => (*n, *sum) = (*n + 1, *sum + share),
            None => self.0.push((stage.to_owned(), u32::from(share > 0.0), share)),
        }
    }
}

/// Asks to stop after so many accesses.
pub(crate) struct StopAfter(pub std::cell::Cell<u64>);

impl Watch for StopAfter {
    fn stopped(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}
