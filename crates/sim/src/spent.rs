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

use smrlab_disk::{Mechanics, Phases};
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

/// What was done since the last request.
#[derive(Default)]
pub(crate) struct Spent(Vec<Stretch>);

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
        if !done.background && !makes_room(done.cause) {
            self.0.extend(stretches(done, &mechanics.phases()));
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

/// An operation of one of several drives.
struct Part {
    start: SimTime,
    end: SimTime,
    stretches: Vec<Stretch>,
}

/// What was done for each request that is under way, on several drives.
#[derive(Default)]
pub(crate) struct SpentByMany(HashMap<u64, Vec<Part>>);

impl SpentByMany {
    /// A request came.
    pub(crate) fn arrived(&mut self, request: u64) {
        self.0.insert(request, Vec::new());
    }

    /// An operation was carried out for a request.
    pub(crate) fn op(&mut self, request: u64, done: &OpDone<'_>) {
        let cleaning = makes_room(done.cause).then_some((CLEAN, done.start, done.end));
        if let Some(parts) = self.0.get_mut(&request) {
            let stretches = cleaning.into_iter().collect();
            parts.push(Part { start: done.start, end: done.end, stretches });
        }
    }

    /// The same one, where it is the mechanics that timed it.
    pub(crate) fn moved(&mut self, request: u64, done: &OpDone<'_>, phases: &Phases) {
        if let Some(part) = self.0.get_mut(&request).and_then(|parts| parts.last_mut())
            && !makes_room(done.cause)
        {
            part.stretches.extend(stretches(done, phases));
        }
    }

    /// The columns of a request that is done.
    pub(crate) fn of(&mut self, request: u64, start: SimTime, ack: SimTime) -> [u64; 5] {
        let mut parts = self.0.remove(&request).unwrap_or_default();
        parts.sort_by_key(|part| std::cmp::Reverse(part.end));
        let (mut spent, mut until) = (Spent::default(), ack);
        for part in parts {
            if part.end <= until {
                until = part.start;
                spent.0.extend(part.stretches);
            }
        }
        spent.of(start, ack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two disks read from 0 to 10 and 0 to 14, two write from 20 to 30 and 16 to 26; the request is done at 31.
    #[test]
    fn a_request_of_an_array_waits_for_the_last_of_its_parts() {
        let mut many = SpentByMany::default();
        let part = |start, end, column| {
            let (start, end) = (SimTime(start), SimTime(end));
            Part { start, end, stretches: vec![(column, start, end)] }
        };
        many.0.insert(7, vec![part(0, 10, 0), part(0, 14, 1), part(20, 30, 2), part(16, 26, CLEAN)]);
        assert_eq!(many.of(7, SimTime(0), SimTime(31)), [0, 14, 10, 0, 7]);
        assert!(many.0.is_empty());
    }

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
