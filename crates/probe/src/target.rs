//! What a drive is to who looks from outside: requests that take time.

use smrlab_units::{Blocks, Dir, Lba, SimTime, Zone, ZoneKind};

/// When a request was sent and when it had completed, on the target's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Sent.
    pub start: SimTime,
    /// Completed, as the host saw it.
    pub end: SimTime,
}

impl Timing {
    /// From sending to completion, in nanoseconds.
    pub fn took(&self) -> f64 {
        self.end.since(self.start).0 as f64
    }
}

/// The first zone that has room for two physical blocks of 4 KiB behind its write pointer.
pub fn zone_with_room(zones: impl IntoIterator<Item = Zone>) -> Option<Zone> {
    zones.into_iter().find(|zone| zone.pointer.is_some_and(|p| p.0 + 16 <= zone.end().0))
}

/// Whether a write that failed was refused by the zone that the target reports.
pub(crate) fn refuses(zone: Option<&Zone>, dir: Dir) -> bool {
    dir == Dir::Write && zone.is_some_and(|zone| zone.kind == ZoneKind::SequentialRequired)
}

/// Why a target did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct TargetError {
    /// One sentence.
    pub what: String,
    /// The target is gone, or lacks what is asked (and not: the user named a wrong one).
    pub gone: bool,
}

/// A drive that is looked at from outside, one request at a time.
///
/// Its clock only rises; a request is sent at once when its function is called.
pub trait TimedTarget {
    /// How many blocks it has.
    fn blocks(&self) -> Blocks;

    /// Reads or writes, and waits for the end. What is written does not matter.
    ///
    /// # Errors
    /// When the target is gone or refuses.
    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError>;

    /// Makes everything written so far durable, and waits for that.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    fn flush(&mut self) -> Result<Timing, TargetError>;

    /// A zone with room behind its write pointer, where the target reports zones.
    fn zone(&self) -> Option<Zone> {
        None
    }

    /// The target is known to report this zone, whatever carries its requests says: where it requires sequential writes, a write that fails is
    /// one that the target refuses.
    fn reports(&mut self, zone: Zone) {
        let _ = zone;
    }

    /// What was done about the drive's own cache, one phrase.
    fn own_cache(&self) -> String {
        "defeated by the pattern of accesses: the target has no commands for it".to_owned()
    }

    /// Ends the measurement: what was changed of the target is put back. Says in one sentence what could not be.
    fn finish(&mut self) -> Option<String> {
        None
    }

    /// Sends nothing for this long.
    fn pause(&mut self, span: SimTime);
}
