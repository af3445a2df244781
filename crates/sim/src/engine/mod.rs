//! The event engine: requests of a trace meet a drive.
//!
//! [`fcfs`] serves in order of arrival and needs no queue; [`queue`] lets a scheduler choose. Both work in memory that
//! does not grow with the backlog: the trace is read no further than the scheduler looks.

mod backlog;
mod fcfs;
mod feed;
mod queue;

pub use backlog::Backlog;
pub use feed::Feed;

use crate::control::Control;
use crate::error::RunError;
use smrlab_drive::sched::Chosen;
use smrlab_drive::{Drive, Executed, Observer, Served};
use smrlab_stl::{HostRequest, Plan};
use smrlab_units::SimTime;

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

/// Observes the drive, and the requests of the host.
pub trait HostObserver: Observer {
    /// A request is sent at `at`.
    fn arrived(&mut self, at: SimTime, request: &HostRequest);

    /// A request that arrived at `arrival` was served as `executed`.
    ///
    /// # Errors
    /// Where the observer cannot go on: a log that cannot be written, a block that was not what it should be.
    fn served(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        executed: &Executed<'_>,
    ) -> Result<(), RunError>;

    /// A step was carried out for no request, all of it or what a request left of it.
    fn background(&mut self, executed: &Executed<'_>);

    /// A write was served before the run, without time, by `plan`.
    fn prefilled(&mut self, request: &HostRequest, plan: &Plan);
}

/// How far ahead of the request that is served, or sent, the memory for later ones is fetched: far enough for the two
/// steps of the containers' hints, of which the second follows eight hints after the first (reads often hint nothing).
const AHEAD: usize = 24;

/// Requests between two looks at the cancel flag.
const CHECK_EVERY: usize = 256;

/// Takes the background steps that are due before `now`.
#[inline]
fn catch_up(drive: &mut Drive, now: SimTime, observer: &mut impl HostObserver) {
    if !drive.idles() {
        while let Some(step) = drive.next_step(now, observer) {
            observer.background(&step);
        }
    }
}

/// Dispatches a request at `now`, when nothing else may come before it any more.
#[inline]
fn dispatch(
    drive: &mut Drive,
    now: SimTime,
    arrival: SimTime,
    request: &HostRequest,
    observer: &mut impl HostObserver,
) -> Result<Served, RunError> {
    if let Some(step) = drive.interrupt() {
        observer.background(&step);
    }
    let executed = drive.dispatch(now, request, observer);
    observer.served(arrival, request, &executed)?;
    Ok(executed.served)
}

/// Runs all requests of `feed` through `drive`; returns the largest number of requests in the system at once, where it
/// was counted exactly.
///
/// # Errors
/// A trace that cannot be read, a request beyond the drive, an observer's error, or a cancelled run.
pub fn run<O: HostObserver>(
    drive: &mut Drive,
    feed: &mut Feed,
    arrivals: Arrivals,
    scheduler: &Chosen,
    observer: &mut O,
    control: &Control,
) -> Result<Option<u64>, RunError> {
    if scheduler.entry.reorders {
        queue::run(drive, feed, arrivals, scheduler, observer, control)
    } else {
        fcfs::run(drive, feed, arrivals, observer, control)
    }
}
