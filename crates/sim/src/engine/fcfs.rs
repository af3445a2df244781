//! First come, first served: no queue is needed, each request starts when the drive is free of the one before.

use super::{AHEAD, Arrivals, Backlog, CHECK_EVERY, Feed, HostObserver};
use crate::control::Control;
use crate::error::RunError;
use smrlab_drive::Controller;
use smrlab_units::SimTime;

/// See [`super::run`].
pub(super) fn run<O: HostObserver>(
    drive: &mut Controller,
    feed: &mut Feed,
    arrivals: Arrivals,
    observer: &mut O,
    control: &Control,
) -> Result<Option<u64>, RunError> {
    let mut backlog = Backlog::default();
    match arrivals {
        Arrivals::Trace => {
            let open = |at: SimTime| at;
            serve(drive, feed, open, |a, end| backlog.add(a, end), observer, control)?;
            Ok(backlog.max())
        }
        Arrivals::Closed { depth, think } => {
            // The i-th request is sent when the (i - depth)-th has completed.
            let ends = std::cell::RefCell::new((vec![None::<SimTime>; depth], 0));
            let closed = |_| {
                let (ends, next) = &*ends.borrow();
                ends[*next].map_or(SimTime::ZERO, |end| end + think)
            };
            let done = |_, end| {
                let (ends, next) = &mut *ends.borrow_mut();
                ends[*next] = Some(end);
                *next = (*next + 1) % depth;
            };
            serve(drive, feed, closed, done, observer, control)?;
            Ok(None)
        }
    }
}

fn serve<O: HostObserver>(
    drive: &mut Controller,
    feed: &mut Feed,
    arrives: impl Fn(SimTime) -> SimTime,
    mut done: impl FnMut(SimTime, SimTime),
    observer: &mut O,
    control: &Control,
) -> Result<(), RunError> {
    let mut count = 0;
    while feed.next_batch()? {
        let rows = feed.len();
        for i in 0..rows.min(AHEAD) {
            drive.drive().layer().prefetch(feed.request(i));
        }
        for i in 0..rows {
            if i % CHECK_EVERY == 0 {
                control.check()?;
            }
            if i + AHEAD < rows {
                let later = feed.request(i + AHEAD);
                drive.drive().layer().prefetch(later);
                observer.coming(later);
            }
            let request = feed.request(i);
            let arrival = arrives(feed.arrival(i));
            observer.arrived(arrival, request);
            if let Some(served) = drive.submit(arrival, request, observer)? {
                done(arrival, served.ack);
            }
        }
        count += rows as u64;
        control.progress(count, feed.progress());
    }
    Ok(())
}
