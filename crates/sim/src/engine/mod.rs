//! The event engine: requests of a trace meet a volume, which is one drive or an array of them.
//!
//! The memory that it takes does not grow with the backlog: the trace is read no further than the volume's queue reaches.

mod backlog;
mod feed;

pub use backlog::Backlog;
pub use feed::Feed;

use crate::control::Control;
use crate::error::{Result, RunError};
use smrlab_array::{Sent, Volume};
use smrlab_drive::Observer;
use smrlab_units::SimTime;
use std::collections::VecDeque;

/// When requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// At the times of the trace, however long the queue is.
    #[default]
    Trace,
    /// `depth` requests are outstanding at all times; each is followed by the next one `think` after its completion.
    Closed {
        /// Requests outstanding, at least 1.
        depth: usize,
        /// Pause between a completion and the next request.
        think: SimTime,
    },
    /// Each request follows the completion of the one before it by the pause that the trace has between the two.
    Pauses,
}

/// How far ahead of the request that is served, or sent, the memory for later ones is fetched: far enough for the two
/// steps of the containers' hints, of which the second follows eight hints after the first (reads often hint nothing).
const AHEAD: usize = 24;

/// Requests, or steps, between two looks at the cancel flag.
pub(crate) const CHECK_EVERY: usize = 256;

/// The times that tables can hold; a request that begins before has as long again.
const LATEST: SimTime = SimTime(i64::MAX as u64);

/// When the next request is sent, and how many are in the system.
struct Sender {
    arrivals: Arrivals,
    /// Closed loop: when the next ones may be sent, ascending.
    slots: VecDeque<SimTime>,
    backlog: Backlog,
    /// Since when the queue has room for what came when it was full.
    room_since: SimTime,
    /// The latest acknowledgement.
    latest: SimTime,
    /// The trace's time of the last request that was sent.
    before: SimTime,
}

impl Sender {
    fn new(arrivals: Arrivals) -> Self {
        let slots = match arrivals {
            Arrivals::Trace => VecDeque::new(),
            Arrivals::Closed { depth, .. } => vec![SimTime::ZERO; depth].into(),
            Arrivals::Pauses => vec![SimTime::ZERO].into(),
        };
        let [room_since, latest, before] = [SimTime::ZERO; 3];
        Self { arrivals, slots, backlog: Backlog::default(), room_since, latest, before }
    }

    /// When the next request is sent, to which the trace gives the time `at`; `None`: not before another completes.
    #[inline]
    fn next(&self, at: SimTime) -> Option<SimTime> {
        match self.arrivals {
            Arrivals::Trace => Some(at),
            Arrivals::Closed { .. } => self.slots.front().copied(),
            Arrivals::Pauses => self.slots.front().map(|done| *done + (at - self.before)),
        }
    }

    /// A request is sent, to which the trace gives the time `trace`.
    #[inline]
    fn sent(&mut self, at: SimTime, trace: SimTime) {
        self.before = trace;
        match self.arrivals {
            Arrivals::Trace => self.backlog.arrived(at),
            Arrivals::Closed { .. } | Arrivals::Pauses => _ = self.slots.pop_front(),
        }
    }

    /// Whether requests are sent at the times of the trace, and all before one of these were acknowledged when that comes at `at`.
    #[inline]
    fn at_rest(&self, at: SimTime) -> bool {
        matches!(self.arrivals, Arrivals::Trace) && self.latest.max(self.room_since) <= at
    }

    /// Requests were sent and acknowledged one after the other, the last one at these times.
    #[inline]
    fn one_by_one(&mut self, at: SimTime, ack: SimTime) {
        self.sent(at, at);
        self.acknowledged(ack);
    }

    /// A request is acknowledged.
    #[inline]
    fn acknowledged(&mut self, ack: SimTime) {
        self.latest = self.latest.max(ack);
        match self.arrivals {
            Arrivals::Trace => self.backlog.answered(ack),
            Arrivals::Pauses => self.slots.push_back(ack),
            Arrivals::Closed { think, .. } => {
                let at = ack + think;
                if self.slots.back().is_none_or(|last| *last <= at) {
                    return self.slots.push_back(at);
                }
                // What a buffer answers is over before what was sent earlier.
                let later = self.slots.iter().rev().take_while(|slot| **slot > at).count();
                self.slots.insert(self.slots.len() - later, at);
            }
        }
    }

    /// Refuses to go on where the times do not.
    #[inline]
    fn in_time(&self) -> Result<(), RunError> {
        if self.latest <= LATEST {
            return Ok(());
        }
        let what = "the run would go on after 292 years: fewer requests (limit=), shorter pauses (think=), or a trace from time 0 on (start=zero)";
        Err(RunError::Request(what.to_owned()))
    }
}

/// A layout or a filter that forgets a request: nothing a user can mend.
const UNANSWERED: &str = "a request was never answered";

/// Has the volume do what is due before the next request, to which the trace gives the time `trace`; answers when that is
/// sent.
#[inline]
fn wait<V: Volume<O>, O: Observer>(
    sender: &mut Sender,
    trace: SimTime,
    volume: &mut V,
    observer: &mut O,
    control: &Control,
) -> Result<SimTime>
where
    RunError: From<O::Error>,
{
    let mut steps = 0usize;
    loop {
        sender.in_time()?;
        let full = !volume.has_room();
        let until = sender.next(trace).filter(|_| !full);
        match (volume.step(until, observer, &mut |ack| sender.acknowledged(ack))?, until) {
            (Some(at), _) if full => sender.room_since = at,
            (Some(_), _) => {}
            (None, Some(at)) => return Ok(at),
            (None, None) => {
                return Err(RunError::Request(UNANSWERED.to_owned()));
            }
        }
        steps += 1;
        if steps.is_multiple_of(CHECK_EVERY) {
            control.check()?;
        }
    }
}

/// Has the volume take requests of the batch from number `i` on where each is acknowledged before the next comes, and before what runs have time
/// for: how many.
// A call, so that what comes in any order has nothing of it in its way.
#[inline(never)]
fn in_order<V: Volume<O>, O: Observer>(
    sender: &mut Sender,
    feed: &Feed,
    i: usize,
    volume: &mut V,
    observer: &mut O,
) -> Result<Option<usize>>
where
    RunError: From<O::Error>,
{
    let (times, requests) = feed.from(i);
    if !sender.at_rest(times[0]) || times.last().is_some_and(|at| *at > LATEST) {
        return Ok(None);
    }
    let Some((n, ack)) = volume.submit_in_order(times, requests, observer)? else { return Ok(None) };
    sender.one_by_one(times[n - 1], ack);
    Ok(Some(n))
}

/// Runs all requests of `feed` through a volume, and what that has begun by then; returns the largest number of requests in
/// the system at once, where it was counted exactly.
///
/// # Errors
/// A trace that cannot be read, a request beyond the volume, an observer's error, or a cancelled run.
pub fn run<V: Volume<O>, O: Observer>(
    volume: &mut V,
    feed: &mut Feed,
    arrivals: Arrivals,
    observer: &mut O,
    control: &Control,
) -> Result<Option<u64>>
where
    RunError: From<O::Error>,
{
    let mut sender = Sender::new(arrivals);
    let mut count = 0;
    while feed.next_batch()? {
        let rows = feed.len();
        (0..rows.min(AHEAD)).for_each(|i| volume.prefetch(feed.request(i)));
        if let Some(at) =
            Some(count).filter(|n| *n == 0 && rows > 0).and_then(|_| sender.next(feed.arrival(0)))
        {
            observer.first_at(at);
        }
        let mut i = 0;
        while i < rows {
            if i % CHECK_EVERY == 0 {
                control.check()?;
            }
            if volume.goes_on()
                && let Some(n) = in_order(&mut sender, feed, i, volume, observer)?
            {
                control.check()?;
                i += n;
                continue;
            }
            if i + AHEAD < rows {
                let later = feed.request(i + AHEAD);
                volume.prefetch(later);
                observer.coming(later);
            }
            let at = wait(&mut sender, feed.arrival(i), volume, observer, control)?;
            let request = feed.request(i);
            observer.arrived(at, request);
            sender.sent(at, feed.arrival(i));
            let sent = Sent { at, placed: at.max(sender.room_since), request };
            volume.submit(sent, observer, &mut |ack| sender.acknowledged(ack))?;
            i += 1;
        }
        count += rows as u64;
        control.progress(count, feed.progress());
    }
    let mut steps = 0usize;
    while volume.settle(observer, &mut |ack| sender.acknowledged(ack))? {
        sender.in_time()?;
        steps += 1;
        if steps.is_multiple_of(CHECK_EVERY) {
            control.check()?;
        }
    }
    if !sender.backlog.all_answered() {
        return Err(RunError::Request(UNANSWERED.to_owned()));
    }
    Ok(sender.backlog.max().filter(|_| arrivals == Arrivals::Trace))
}
