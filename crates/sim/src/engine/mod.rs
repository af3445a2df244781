//! The event engine: requests of a trace meet a drive.
//!
//! [`fcfs`] serves in order of arrival and needs no queue; [`reorder`] lets a scheduler choose. Both work in memory that
//! does not grow with the backlog: the trace is read no further than the scheduler looks.

mod backlog;
mod fcfs;
mod feed;
mod reorder;

pub use backlog::Backlog;
pub use feed::Feed;

use crate::control::Control;
use crate::error::RunError;
use crate::metrics::updates::Updates;
use smrlab_drive::{Controller, Effects};
use smrlab_stl::{HostRequest, Plan};
use smrlab_units::SimTime;
use std::ops::Range;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At the times of the trace, however long the queue is.
    Trace,
    /// `depth` requests are outstanding at all times; each is followed by the next one `think` after its completion.
    Closed {
        /// Requests outstanding, at least 1.
        depth: usize,
        /// Pause between a completion and the next request.
        think: SimTime,
    },
}

/// Observes the drive, and the requests of the host. Its errors end the run: a log that cannot be written, a block that
/// was not what it should be.
pub trait HostObserver: Effects<Error = RunError> {
    /// This request will be sent soon.
    #[inline]
    fn coming(&self, request: &HostRequest) {
        let _ = request;
    }

    /// A request is sent at `at`.
    fn arrived(&mut self, at: SimTime, request: &HostRequest);

    /// A write was served before the run, without time, by `plan`.
    fn prefilled(&mut self, request: &HostRequest, plan: &Plan);

    /// What alone wants to know of writes before the run, where that is so and it needs no plans.
    fn prefilled_apart(&mut self) -> Option<&mut Updates> {
        None
    }

    /// What was written so far, before the run or in it, as ascending ranges of LBAs, unless there are more than `most`.
    fn written_within(&mut self, most: usize) -> Option<Vec<Range<u64>>>;
}

/// How far ahead of the request that is served, or sent, the memory for later ones is fetched: far enough for the two
/// steps of the containers' hints, of which the second follows eight hints after the first (reads often hint nothing).
pub(crate) const AHEAD: usize = 24;

/// Requests between two looks at the cancel flag.
pub(crate) const CHECK_EVERY: usize = 256;

/// Runs all requests of `feed` through a drive; returns the largest number of requests in the system at once, where it
/// was counted exactly.
///
/// # Errors
/// A trace that cannot be read, a request beyond the drive, an observer's error, or a cancelled run.
pub fn run<O: HostObserver>(
    controller: &mut Controller,
    feed: &mut Feed,
    arrivals: Arrivals,
    observer: &mut O,
    control: &Control,
) -> Result<Option<u64>, RunError> {
    if controller.reorders() {
        reorder::run(controller, feed, arrivals, observer, control)
    } else {
        fcfs::run(controller, feed, arrivals, observer, control)
    }
}
