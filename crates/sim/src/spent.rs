//! Where the time of a request went: the last columns of `requests.parquet`.
//!
//! The time from the start of a request to its completion is cut along the operations of its plan. Operations that make
//! room (causes clean, destage, defrag) are cleaning, as a whole; the others are seek (head switch and settle with it),
//! rotation and transfer as the mechanics say. The rest is other: command overhead, buffer and bus, pauses, and passes
//! of the drive's own whose whole duration was measured. What goes on after the completion does not count, nor what a buffer
//! hides: a write that it takes is overhead and bus alone, while the medium seeks.

use smrlab_disk::{Mechanics, Phases};
use smrlab_drive::OpDone;
use smrlab_stl::{Cause, Pause};
use smrlab_units::SimTime;

/// The columns, in nanoseconds; together they are completion - start.
pub(crate) const COLUMNS: [&str; 5] = ["seek_ns", "rotation_ns", "transfer_ns", "clean_ns", "other_ns"];

const CLEAN: usize = 3;

/// What was done since the last request: column, from, until.
#[derive(Default)]
pub(crate) struct Spent(Vec<(usize, SimTime, SimTime)>);

fn makes_room(cause: Cause) -> bool {
    matches!(cause, Cause::Clean | Cause::Destage | Cause::Defrag)
}

impl Spent {
    /// An operation was carried out.
    pub(crate) fn op(&mut self, done: &OpDone<'_>) {
        if !done.background && makes_room(done.cause) {
            self.0.push((CLEAN, done.start, done.end));
        }
    }

    /// The same one, where it is the mechanics that timed it.
    pub(crate) fn moved(&mut self, done: &OpDone<'_>, mechanics: &Mechanics) {
        if done.background || makes_room(done.cause) {
            return;
        }
        let Phases { seek, rotation, transfer, .. } = mechanics.phases();
        // From its end backwards: reading ahead may have begun before the request.
        let mut end = done.end;
        for (column, took) in [(2, transfer), (1, rotation), (0, seek)] {
            let from = SimTime(end.0.saturating_sub(took.0));
            self.0.push((column, from, end));
            end = from;
        }
    }

    /// The drive spent time without a media operation.
    pub(crate) fn paused(&mut self, pause: &Pause, start: SimTime, background: bool) {
        if !background && makes_room(pause.cause) {
            self.0.push((CLEAN, start, start + pause.time));
        }
    }

    /// The request that this was done for was answered from a buffer: it waited for nothing of it.
    pub(crate) fn hidden(&mut self) {
        self.0.clear();
    }

    /// The columns of a request that was served from `start` until `ack` by what was done since the last one.
    pub(crate) fn of(&mut self, start: SimTime, ack: SimTime) -> [u64; 5] {
        let mut columns = [0; 5];
        for (column, from, until) in self.0.drain(..) {
            columns[column] += until.min(ack).since(from.max(start)).0;
        }
        columns[4] = ack.since(start).0.saturating_sub(columns.iter().sum());
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_the_request_is_not_its_time() {
        // It is served from 3 to 20; the transfer takes 5 to 8, what was read ahead for it 1 to 4, and cleaning 10 to 40.
        let ns = |from, until| (SimTime(from), SimTime(until));
        let parts = [(2, ns(5, 8)), (1, ns(1, 4)), (CLEAN, ns(10, 40))];
        let mut spent = Spent(parts.map(|(column, (from, until))| (column, from, until)).to_vec());
        assert_eq!(spent.of(SimTime(3), SimTime(20)), [0, 1, 3, 10, 3]);
        assert_eq!(spent.of(SimTime(20), SimTime(25)), [0, 0, 0, 0, 5], "and is told once");
        spent.0.push((0, SimTime(25), SimTime(40)));
        spent.hidden();
        assert_eq!(spent.of(SimTime(25), SimTime(30)), [0, 0, 0, 0, 5], "a seek that a buffer hides");
    }
}
