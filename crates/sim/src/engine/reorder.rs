//! A scheduler chooses among the waiting requests; the trace is read no further than it looks.

use super::{AHEAD, Arrivals, CHECK_EVERY, Feed, HostObserver};
use crate::control::Control;
use crate::error::RunError;
use smrlab_drive::Controller;
use smrlab_stl::HostRequest;
use smrlab_units::SimTime;
use std::collections::VecDeque;

/// When requests are sent, read no further ahead than needed.
struct Sender {
    arrivals: Arrivals,
    /// Closed loop: when the next ones may be sent, ascending.
    slots: VecDeque<SimTime>,
    row: usize,
}

impl Sender {
    fn new(arrivals: Arrivals) -> Self {
        let slots = match arrivals {
            Arrivals::Trace => VecDeque::new(),
            Arrivals::Closed { depth, .. } => vec![SimTime::ZERO; depth].into(),
        };
        Self { arrivals, slots, row: 0 }
    }

    /// When the next request is sent; `None`: there is none, or not before another completes.
    fn next(&mut self, feed: &mut Feed) -> Result<Option<SimTime>, RunError> {
        if self.row >= feed.len() {
            self.row = 0;
            if !feed.next_batch()? {
                return Ok(None);
            }
        }
        Ok(match self.arrivals {
            Arrivals::Trace => Some(feed.arrival(self.row)),
            Arrivals::Closed { .. } => self.slots.front().copied(),
        })
    }

    /// Sends it.
    fn take(&mut self, feed: &Feed) -> HostRequest {
        let request = *feed.request(self.row);
        self.slots.pop_front();
        self.row += 1;
        request
    }

    /// A request that will be sent soon.
    fn ahead<'a>(&self, feed: &'a Feed) -> Option<&'a HostRequest> {
        let row = self.row + AHEAD;
        (row < feed.len()).then(|| feed.request(row))
    }

    fn completed(&mut self, ack: SimTime) {
        if let Arrivals::Closed { think, .. } = self.arrivals {
            // What a buffer answers is over before what was sent earlier.
            let at = ack + think;
            let later = self.slots.iter().rev().take_while(|slot| **slot > at).count();
            self.slots.insert(self.slots.len() - later, at);
        }
    }
}

/// See [`super::run`].
pub(super) fn run<O: HostObserver>(
    controller: &mut Controller,
    feed: &mut Feed,
    arrivals: Arrivals,
    observer: &mut O,
    control: &Control,
) -> Result<Option<u64>, RunError> {
    let mut sender = Sender::new(arrivals);
    let (mut served_count, mut most, mut all_seen) = (0usize, 0, true);
    let mut last_ack = SimTime::ZERO;
    // Since when the queue has room for what came when it was full.
    let mut room_since = SimTime::ZERO;
    loop {
        while let Some(at) = sender.next(feed)? {
            let decision = controller.next_decision();
            let full = !controller.has_room();
            if full || decision.is_some_and(|d| at > d) {
                all_seen &= !(full && decision.is_some_and(|d| at <= d));
                break;
            }
            let request = sender.take(feed);
            observer.arrived(at, &request);
            if let Some(later) = sender.ahead(feed) {
                controller.drive().layer().prefetch(later);
                observer.coming(later);
            }
            if let Some(served) = controller.submit_waited(at.max(room_since), (at, &request), observer)? {
                sender.completed(served.ack);
                served_count += 1;
            }
            most = most.max(controller.waiting() as u64 + u64::from(at < last_ack));
        }
        let Some(decision) = controller.next_decision() else {
            control.progress(served_count as u64, Some(1.0));
            let closed = matches!(arrivals, Arrivals::Closed { .. });
            return Ok((all_seen && !closed).then_some(most));
        };
        if served_count % CHECK_EVERY == 0 {
            control.check()?;
            control.progress(served_count as u64, feed.progress());
        }
        if !controller.has_room() {
            room_since = decision;
        }
        // `None`: background work holds the drive for longer, and more may come meanwhile.
        if let Some(served) = controller.decide_once(decision, observer)? {
            last_ack = served.ack;
            sender.completed(served.ack);
            served_count += 1;
        }
    }
}
