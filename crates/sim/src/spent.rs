//! Where the time of a request went: the last columns of `requests.parquet`.
//!
//! The time from the start of a request to its completion is cut along the operations of its plan. Operations that make
//! room (causes clean, destage, defrag) are cleaning, as a whole; the others are seek (head switch and settle with it),
//! rotation and transfer as the mechanics say. The rest is other: command overhead, buffer and bus, pauses, and passes
//! of the drive's own whose whole duration was measured. What goes on after the completion does not count, nor what a buffer
//! hides: a write that it takes is overhead and bus alone, while the medium seeks.
//!
//! A request of an array has operations on several drives at a time. Its time is cut along those that it waited for: from its
//! completion backwards, each time the operation that ended last before the one already found began. Waiting for other
//! requests of a drive, and for a bus, is other.

use smrlab_disk::Phases;
use smrlab_drive::OpDone;
use smrlab_stl::{Cause, Pause};
use smrlab_units::SimTime;
use std::collections::HashMap;

/// The columns, in nanoseconds; together they are completion - start.
pub(crate) const COLUMNS: [&str; 5] = ["seek_ns", "rotation_ns", "transfer_ns", "clean_ns", "other_ns"];

const CLEAN: usize = 3;

/// Column, from, until.
type Stretch = (usize, SimTime, SimTime);

/// Where the time of an operation went that the mechanics timed, from its end backwards: reading ahead may have begun before
/// the request.
fn stretches(done: &OpDone<'_>, phases: &Phases) -> [Stretch; 3] {
    let Phases { seek, rotation, transfer, .. } = *phases;
    let mut end = done.end;
    [(2, transfer), (1, rotation), (0, seek)].map(|(column, took)| {
        let from = SimTime(end.0.saturating_sub(took.0));
        (column, from, std::mem::replace(&mut end, from))
    })
}

fn makes_room(cause: Cause) -> bool {
    matches!(cause, Cause::Clean | Cause::Destage | Cause::Defrag)
}

/// An operation of one of several drives.
struct DriveOp {
    start: SimTime,
    end: SimTime,
    stretches: Vec<Stretch>,
}

/// What was done for requests that are under way.
#[derive(Default)]
pub(crate) struct Spent {
    /// By one drive, since the last request.
    one: Vec<Stretch>,
    /// By the drives of an array, for each request.
    many: Option<HashMap<u64, Vec<DriveOp>>>,
}

impl Spent {
    /// Of one drive, or of an array of `members`.
    pub(crate) fn new(members: usize) -> Self {
        Self { one: Vec::new(), many: (members > 0).then(HashMap::new) }
    }

    /// A request of the host's came.
    pub(crate) fn arrived(&mut self, request: u64) {
        if let Some(many) = &mut self.many {
            many.insert(request, Vec::new());
        }
    }

    /// An operation was carried out.
    pub(crate) fn op(&mut self, done: &OpDone<'_>) {
        let Some(request) = done.request else { return };
        let cleaning = makes_room(done.cause).then_some((CLEAN, done.start, done.end));
        let phases = done.phases().filter(|_| cleaning.is_none());
        let parts = phases.iter().flat_map(|phases| stretches(done, phases)).chain(cleaning);
        match self.many.as_mut().map(|many| many.get_mut(&request)) {
            None => self.one.extend(parts),
            Some(None) => {}
            Some(Some(of)) => {
                of.push(DriveOp { start: done.start, end: done.end, stretches: parts.collect() });
            }
        }
    }

    /// A drive spent time without a media operation.
    pub(crate) fn paused(&mut self, request: Option<u64>, pause: &Pause, start: SimTime) {
        if self.many.is_none() && request.is_some() && makes_room(pause.cause) {
            self.one.push((CLEAN, start, start + pause.time));
        }
    }

    /// The request that this was done for was answered from a buffer: it waited for nothing of it.
    pub(crate) fn hidden(&mut self) {
        self.one.clear();
    }

    /// The columns of a request that was served from `start` until `ack`.
    pub(crate) fn of(&mut self, request: u64, start: SimTime, ack: SimTime) -> [u64; 5] {
        if let Some(many) = &mut self.many {
            let mut parts = many.remove(&request).unwrap_or_default();
            parts.sort_by_key(|part| std::cmp::Reverse(part.end));
            let mut until = ack;
            for part in parts {
                if part.end <= until {
                    until = part.start;
                    self.one.extend(part.stretches);
                }
            }
        }
        let mut columns = [0; 5];
        for (column, from, until) in self.one.drain(..) {
            columns[column] += until.min(ack).since(from.max(start)).0;
        }
        columns[4] = ack.since(start).0.saturating_sub(columns.iter().sum());
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two disks read from 0 to 10 and 0 to 14, two write from 20 to 30 and 16 to 26; the request is done at 31.
    #[test]
    fn a_request_of_an_array_waits_for_the_last_of_its_parts() {
        let mut spent = Spent::new(4);
        let part = |start, end, column| {
            let (start, end) = (SimTime(start), SimTime(end));
            DriveOp { start, end, stretches: vec![(column, start, end)] }
        };
        let parts = vec![part(0, 10, 0), part(0, 14, 1), part(20, 30, 2), part(16, 26, CLEAN)];
        spent.many.as_mut().unwrap().insert(7, parts);
        assert_eq!(spent.of(7, SimTime(0), SimTime(31)), [0, 14, 10, 0, 7]);
        assert!(spent.many.unwrap().is_empty());
    }

    #[test]
    fn what_lies_outside_the_request_is_not_its_time() {
        // It is served from 3 to 20; the transfer takes 5 to 8, what was read ahead for it 1 to 4, and cleaning 10 to 40.
        let ns = |from, until| (SimTime(from), SimTime(until));
        let parts = [(2, ns(5, 8)), (1, ns(1, 4)), (CLEAN, ns(10, 40))];
        let mut spent = Spent::new(0);
        spent.one = parts.map(|(column, (from, until))| (column, from, until)).to_vec();
        assert_eq!(spent.of(0, SimTime(3), SimTime(20)), [0, 1, 3, 10, 3]);
        assert_eq!(spent.of(0, SimTime(20), SimTime(25)), [0, 0, 0, 0, 5], "and is told once");
        spent.one.push((0, SimTime(25), SimTime(40)));
        spent.hidden();
        assert_eq!(spent.of(0, SimTime(25), SimTime(30)), [0, 0, 0, 0, 5], "a seek that a buffer hides");
    }
}
