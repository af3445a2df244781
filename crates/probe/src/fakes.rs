//! Targets that tests make up: whatever they say when a request ends.

use crate::{TargetError, TimedTarget, Timing, Watch};
use smrlab_units::{Blocks, Dir, Lba, SimTime};

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

/// Asks to stop after so many accesses.
pub(crate) struct StopAfter(pub std::cell::Cell<u64>);

impl Watch for StopAfter {
    fn stopped(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}
