//! A scheduler chooses among the waiting requests. Overlapping requests of which one writes keep their order.

use super::{AHEAD, Arrivals, CHECK_EVERY, Feed, HostObserver, catch_up, dispatch};
use crate::control::Control;
use crate::error::RunError;
use smrlab_drive::Drive;
use smrlab_drive::sched::{Candidate, Chosen, View};
use smrlab_stl::HostRequest;
use smrlab_units::{Dir, HostOp, SimTime};
use std::collections::VecDeque;
use std::ops::Range;

/// A request that waits.
#[derive(Clone, Copy)]
struct Waiting {
    seq: u64,
    arrival: SimTime,
    request: HostRequest,
    /// Older waiting requests that it must not overtake.
    blockers: u32,
}

/// Whether the order of the two matters.
fn conflict(a: &HostRequest, b: &HostRequest) -> bool {
    if a.op == HostOp::Flush || b.op == HostOp::Flush {
        return true;
    }
    if a.op == HostOp::Read && b.op == HostOp::Read {
        return false;
    }
    let (a, b) = (a.lba.span(a.blocks), b.lba.span(b.blocks));
    a.start < b.end && b.start < a.end
}

/// The waiting requests: those that may be chosen, with their candidates side by side, and those that may not yet.
#[derive(Default)]
struct Waitings {
    free: Vec<Waiting>,
    candidates: Vec<Candidate>,
    blocked: Vec<Waiting>,
}

impl Waitings {
    fn len(&self) -> usize {
        self.free.len() + self.blocked.len()
    }

    fn admit(&mut self, mut w: Waiting, drive: &Drive) {
        let earlier = self.free.iter().chain(&self.blocked);
        w.blockers = earlier.filter(|e| conflict(&e.request, &w.request)).count() as u32;
        if w.blockers == 0 { self.release(w, drive) } else { self.blocked.push(w) }
    }

    fn release(&mut self, w: Waiting, drive: &Drive) {
        self.candidates.push(candidate(drive, &w));
        self.free.push(w);
    }

    /// Takes the `i`-th free request out and frees those that waited only for it.
    fn take(&mut self, i: usize, drive: &Drive) -> Waiting {
        let taken = self.free.swap_remove(i);
        self.candidates.swap_remove(i);
        let mut j = 0;
        while j < self.blocked.len() {
            let w = &mut self.blocked[j];
            if w.seq > taken.seq && conflict(&taken.request, &w.request) {
                w.blockers -= 1;
                if w.blockers == 0 {
                    let w = self.blocked.swap_remove(j);
                    self.release(w, drive);
                    continue;
                }
            }
            j += 1;
        }
        taken
    }

    /// Asks the layer again where requests start that were to start in `places`.
    fn relocate(&mut self, drive: &Drive, places: Range<u64>) {
        for (c, w) in self.candidates.iter_mut().zip(&self.free) {
            if places.contains(&c.target.pba().0) {
                *c = candidate(drive, w);
            }
        }
    }

    /// The oldest that may be chosen, if it has waited for `limit` at `now`.
    fn overdue(&self, now: SimTime, limit: SimTime) -> Option<usize> {
        let (i, w) = self.free.iter().enumerate().min_by_key(|(_, w)| w.seq)?;
        (now.since(w.arrival) >= limit).then_some(i)
    }
}

/// Requests without a media operation count as being where the head is.
fn candidate(drive: &Drive, w: &Waiting) -> Candidate {
    let (pba, dir) = drive.locate(&w.request).unwrap_or_else(|| (drive.head(), Dir::Read));
    Candidate { seq: w.seq, target: drive.target(pba), dir }
}

/// Where requests may start elsewhere now that the drive has served `request`.
fn affected(drive: &Drive, request: &HostRequest) -> Range<u64> {
    let layer = drive.layer();
    let everywhere = 0..u64::MAX;
    let Some(reach) = layer.location_reach() else { return everywhere };
    if request.op == HostOp::Discard || layer.background_after().is_some() {
        return everywhere;
    }
    let ops = drive.plan().ops().iter();
    let lowest = ops.clone().map(|op| op.pba.0).min().unwrap_or(u64::MAX);
    let end = ops.map(|op| op.pba.0 + op.blocks.0).max().unwrap_or(0);
    lowest.saturating_sub(reach.0)..end + reach.0
}

/// When requests are sent, read no further ahead than needed.
struct Sender {
    arrivals: Arrivals,
    /// Closed loop: when the next ones may be sent, ascending.
    slots: VecDeque<SimTime>,
    row: usize,
    sent: u64,
}

impl Sender {
    fn new(arrivals: Arrivals) -> Self {
        let slots = match arrivals {
            Arrivals::Trace => VecDeque::new(),
            Arrivals::Closed { depth, .. } => vec![SimTime::ZERO; depth].into(),
        };
        Self { arrivals, slots, row: 0, sent: 0 }
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
    fn take(&mut self, feed: &Feed, arrival: SimTime) -> Waiting {
        let request = feed.request(self.row);
        let w = Waiting { seq: self.sent, arrival, request, blockers: 0 };
        self.slots.pop_front();
        self.row += 1;
        self.sent += 1;
        w
    }

    /// A request that will be sent soon.
    fn ahead(&self, feed: &Feed) -> Option<HostRequest> {
        let row = self.row + AHEAD;
        (row < feed.len()).then(|| feed.request(row))
    }

    fn completed(&mut self, ack: SimTime) {
        if let Arrivals::Closed { think, .. } = self.arrivals {
            self.slots.push_back(ack + think);
        }
    }
}

/// See [`super::run`].
pub(super) fn run<O: HostObserver>(
    drive: &mut Drive,
    feed: &mut Feed,
    arrivals: Arrivals,
    chosen: &Chosen,
    observer: &mut O,
    control: &Control,
) -> Result<Option<u64>, RunError> {
    let mut policy = (chosen.entry.build)();
    let mut sender = Sender::new(arrivals);
    let mut waiting = Waitings::default();
    let moving = !drive.stable_locations();
    let (mut served_count, mut most, mut all_seen) = (0usize, 0, true);
    let mut last_ack = SimTime::ZERO;
    loop {
        let mut now = drive.free_at();
        // Idle until something arrives; background work may then hold the drive for longer.
        loop {
            while let Some(at) = sender.next(feed)? {
                let full = waiting.len() >= chosen.depth;
                if full || (at > now && waiting.len() > 0) {
                    all_seen &= !(full && at <= now);
                    break;
                }
                now = now.max(at);
                catch_up(drive, now, observer);
                let w = sender.take(feed, at);
                observer.arrived(at, &w.request);
                if let Some(later) = sender.ahead(feed) {
                    drive.layer().prefetch(&later);
                }
                waiting.admit(w, drive);
                most = most.max(waiting.len() as u64 + u64::from(at < last_ack));
            }
            if drive.free_at() <= now {
                break;
            }
            now = drive.free_at();
        }
        if waiting.len() == 0 {
            control.progress(served_count as u64, Some(1.0));
            let closed = matches!(arrivals, Arrivals::Closed { .. });
            return Ok((all_seen && !closed).then_some(most));
        }
        if served_count % CHECK_EVERY == 0 {
            control.check()?;
            control.progress(served_count as u64, feed.progress());
        }
        let overdue = chosen.max_wait.and_then(|limit| waiting.overdue(now, limit));
        let pick = overdue.unwrap_or_else(|| {
            let mechanics = drive.mechanics();
            policy.pick(&View { now, mechanics, candidates: &waiting.candidates })
        });
        let w = waiting.take(pick, drive);
        catch_up(drive, now, observer);
        let served = dispatch(drive, now, w.arrival, &w.request, observer)?;
        last_ack = served.ack;
        sender.completed(served.ack);
        if moving {
            waiting.relocate(drive, affected(drive, &w.request));
        }
        served_count += 1;
    }
}
