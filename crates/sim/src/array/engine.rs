//! Requests of a trace meet an array.

use super::watch::ArrayWatch;
use crate::control::Control;
use crate::engine::{AHEAD, Arrivals, CHECK_EVERY, Feed};
use crate::error::RunError;
use smrlab_array::Controller;
use smrlab_units::SimTime;
use std::collections::VecDeque;

/// When requests are sent.
struct Sender {
    arrivals: Arrivals,
    /// Closed loop: when the next ones may be sent, ascending.
    slots: VecDeque<SimTime>,
}

impl Sender {
    fn new(arrivals: Arrivals) -> Self {
        let slots = match arrivals {
            Arrivals::Trace => VecDeque::new(),
            Arrivals::Closed { depth, .. } => vec![SimTime::ZERO; depth].into(),
        };
        Self { arrivals, slots }
    }

    /// Takes what is done.
    fn drain(&mut self, array: &mut Controller, watch: &mut ArrayWatch) -> Result<(), RunError> {
        while let Some(done) = array.next_done() {
            watch.done(&done)?;
            if let Arrivals::Closed { think, .. } = self.arrivals {
                self.slots.push_back(done.ack + think);
            }
        }
        Ok(())
    }

    /// When the next request is sent; the trace says `at`.
    fn next(
        &mut self,
        at: SimTime,
        array: &mut Controller,
        watch: &mut ArrayWatch,
    ) -> Result<SimTime, RunError> {
        if self.arrivals == Arrivals::Trace {
            return Ok(at.max(array.now()));
        }
        loop {
            if let Some(at) = self.slots.pop_front() {
                return Ok(at.max(array.now()));
            }
            if !array.step(None, watch) {
                return Err(RunError::Request("the array holds a request that it never answers".to_owned()));
            }
            self.drain(array, watch)?;
        }
    }
}

/// Runs all requests of `feed`, and what the array has begun by then; returns the largest number of requests in it.
pub(super) fn run(
    array: &mut Controller,
    feed: &mut Feed,
    arrivals: Arrivals,
    watch: &mut ArrayWatch,
    control: &Control,
) -> Result<Option<u64>, RunError> {
    let mut sender = Sender::new(arrivals);
    let (mut most, mut count) = (0, 0);
    while feed.next_batch()? {
        for i in 0..feed.len() {
            if i % CHECK_EVERY == 0 {
                control.check()?;
            }
            if i + AHEAD < feed.len() {
                let later = feed.request(i + AHEAD);
                array.prefetch(later);
                watch.total.coming(later);
            }
            let request = *feed.request(i);
            let at = sender.next(feed.arrival(i), array, watch)?;
            array.advance(at, watch);
            sender.drain(array, watch)?;
            watch.arrived(at, &request);
            array.submit(at, &request, watch);
            most = most.max(array.in_flight());
            sender.drain(array, watch)?;
        }
        count += feed.len() as u64;
        control.progress(count, feed.progress());
    }
    let mut steps = 0usize;
    let busy =
        |array: &Controller| array.in_flight() > 0 || array.array().unfinished() || array.members_wait();
    while busy(array) && array.step(None, watch) {
        sender.drain(array, watch)?;
        steps += 1;
        if steps.is_multiple_of(CHECK_EVERY) {
            control.check()?;
        }
    }
    sender.drain(array, watch)?;
    // Drives that had nothing to do at the end were idle meanwhile.
    while array.idle_step(array.now(), watch) {
        steps += 1;
        if steps.is_multiple_of(CHECK_EVERY) {
            control.check()?;
        }
    }
    Ok((arrivals == Arrivals::Trace).then_some(most))
}
