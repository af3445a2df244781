//! The requests that wait in a drive. Overlapping requests of which one writes keep their order; those that change something keep it within the
//! blocks that the layer says: a zone that must be written in order.

use crate::sched::Candidate;
use crate::{Drive, Served};
use smrlab_stl::{Dir, HostRequest};
use smrlab_units::{HostOp, SimTime};
use std::ops::Range;

/// How a request came.
#[derive(Clone, Debug)]
pub struct Came {
    /// When it came.
    pub at: SimTime,
    /// When it got its place in the queue: later, where that was full.
    pub placed: SimTime,
    /// The blocks within which it keeps its order with others that change something.
    pub order: Range<u64>,
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Order of arrival.
    pub seq: u64,
    /// When it came.
    pub arrival: SimTime,
    /// When it got its place in the queue: later, where that was full.
    pub placed: SimTime,
    /// What is asked.
    pub request: HostRequest,
    /// A write that the drive's buffer took: it was acknowledged then, and waits to be written.
    pub accepted: Option<Served>,
    precedence: Precedence,
    /// Older waiting requests that it must not overtake.
    blockers: u32,
}

/// What of a request decides whom it must not overtake.
#[derive(Clone, Copy, Debug)]
struct Precedence {
    /// What it reads or changes.
    start: u64,
    end: u64,
    /// Within these blocks it keeps its order with what else changes something; none where it reads.
    from: u64,
    to: u64,
    reads: bool,
}

impl Precedence {
    fn of(r: &HostRequest, order: &Range<u64>) -> Self {
        let own = match r.op {
            HostOp::Flush => 0..u64::MAX,
            // Where an append goes, and which zones a command changes, is the layer's to say.
            HostOp::Append | HostOp::Zone(_) => order.clone(),
            _ => r.span(),
        };
        let reads = r.op == HostOp::Read;
        let order = match r.op {
            HostOp::Read => 0..0,
            HostOp::Flush => own.clone(),
            _ => order.clone(),
        };
        Self { start: own.start, end: own.end, from: order.start, to: order.end, reads }
    }

    /// Whether the order of the two matters. Without a branch: it is asked of everything that waits.
    #[inline]
    fn conflicts(&self, o: &Self) -> bool {
        let ordered = (self.from < o.to) & (o.from < self.to);
        (self.overlaps(o) & (self.reads ^ o.reads)) | ordered
    }

    #[inline]
    fn overlaps(&self, o: &Self) -> bool {
        (self.start < o.end) & (o.start < self.end)
    }

    /// Whether it keeps its order within its own blocks alone. Of two such requests the order matters where they overlap and one of them
    /// changes something.
    #[inline]
    fn is_plain(&self) -> bool {
        self.reads || (self.from, self.to) == (self.start, self.end)
    }
}

/// What of the waiting writes a read concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// None of them.
    Nothing,
    /// The newest that it concerns, this one, is in the buffer and has all that is asked for.
    Whole(HostRequest),
    /// Something else: it has to wait.
    Parts,
}

/// The waiting requests: those that may be chosen, with their candidates side by side, and those that may not yet.
#[derive(Debug, Default)]
pub struct WaitingList {
    free: Vec<Waiting>,
    candidates: Vec<Candidate>,
    /// Of those that may be chosen.
    precedences: Vec<Precedence>,
    /// How many of these keep their order within more than their own blocks.
    not_plain: usize,
    /// The oldest of them: its place in the order of arrival, and when it got its place in the queue.
    oldest: Option<(u64, SimTime)>,
    blocked: Vec<Waiting>,
    seen: u64,
}

impl WaitingList {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.free.len() + self.blocked.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.free.is_empty() && self.blocked.is_empty()
    }

    /// When the oldest got its place.
    pub fn oldest(&self) -> Option<SimTime> {
        // The oldest of all waits for nobody.
        self.oldest.map(|o| o.1)
    }

    /// Those that may be chosen now.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Takes in a request that comes after all others.
    pub fn admit(&mut self, came: &Came, request: HostRequest, accepted: Option<Served>, drive: &Drive) {
        let precedence = Precedence::of(&request, &came.order);
        let of = self.precedences.iter();
        // Nearly always plain, and half of the work then.
        let free: u32 = if self.not_plain == 0 && precedence.is_plain() {
            of.map(|e| u32::from(e.overlaps(&precedence) & !(e.reads & precedence.reads))).sum()
        } else {
            of.map(|e| u32::from(e.conflicts(&precedence))).sum()
        };
        let blocked = self.blocked.iter().filter(|e| e.precedence.conflicts(&precedence)).count() as u32;
        let blockers = free + blocked;
        let (arrival, placed) = (came.at, came.placed);
        let w = Waiting { seq: self.seen, arrival, placed, request, accepted, precedence, blockers };
        self.seen += 1;
        if blockers == 0 { self.release(w, drive) } else { self.blocked.push(w) }
    }

    fn release(&mut self, w: Waiting, drive: &Drive) {
        self.candidates.push(candidate(drive, &w));
        self.precedences.push(w.precedence);
        self.not_plain += usize::from(!w.precedence.is_plain());
        if self.oldest.is_none_or(|o| w.seq < o.0) {
            self.oldest = Some((w.seq, w.placed));
        }
        self.free.push(w);
    }

    /// Takes the `i`-th candidate out; [`free_behind`](Self::free_behind) follows when it was dispatched.
    pub fn take(&mut self, i: usize) -> Waiting {
        let taken = self.free.swap_remove(i);
        self.candidates.swap_remove(i);
        let precedence = self.precedences.swap_remove(i);
        self.not_plain -= usize::from(!precedence.is_plain());
        if self.oldest.is_some_and(|o| o.0 == taken.seq) {
            self.oldest = self.free.iter().map(|w| (w.seq, w.placed)).min();
        }
        taken
    }

    /// Frees those that waited only for what was taken out, and is done: they start where the layer says now.
    pub fn free_behind(&mut self, taken: &Waiting, drive: &Drive) {
        let mut j = 0;
        while j < self.blocked.len() {
            let w = &mut self.blocked[j];
            if w.seq > taken.seq && taken.precedence.conflicts(&w.precedence) {
                w.blockers -= 1;
                if w.blockers == 0 {
                    let w = self.blocked.swap_remove(j);
                    self.release(w, drive);
                    continue;
                }
            }
            j += 1;
        }
    }

    /// The oldest write that waits for the medium, or for room in the buffer.
    pub fn oldest_write(&self) -> Option<&Waiting> {
        let own = |w: &&Waiting| w.accepted.is_none() && w.request.op == HostOp::Write;
        self.free.iter().chain(&self.blocked).filter(own).min_by_key(|w| w.seq)
    }

    /// The buffer took this write.
    pub fn accepted(&mut self, seq: u64, served: Served) {
        if let Some(w) = self.free.iter_mut().chain(&mut self.blocked).find(|w| w.seq == seq) {
            w.accepted = Some(served);
        }
    }

    /// What of the waiting writes a read concerns.
    pub fn concerns(&self, read: &HostRequest) -> Concern {
        let precedence = Precedence::of(read, &(0..0));
        if self.blocked.is_empty()
            && !self.precedences.iter().fold(false, |any, e| any | e.conflicts(&precedence))
        {
            return Concern::Nothing;
        }
        let all = self.free.iter().chain(&self.blocked);
        let Some(newest) = all.filter(|w| w.precedence.conflicts(&precedence)).max_by_key(|w| w.seq) else {
            return Concern::Nothing;
        };
        let (w, r) = (newest.request.span(), read.span());
        let whole = newest.accepted.is_some() && w.start <= r.start && r.end <= w.end;
        if whole { Concern::Whole(newest.request) } else { Concern::Parts }
    }

    /// Asks the layer again where requests start that were to start in `places`.
    pub fn relocate(&mut self, drive: &Drive, places: Range<u64>) {
        for (c, w) in self.candidates.iter_mut().zip(&self.free) {
            if places.contains(&c.target.pba().0) {
                *c = candidate(drive, w);
            }
        }
    }

    /// Whether all that may be chosen start where the layer would start them now.
    pub fn is_fresh(&self, drive: &Drive) -> bool {
        let same = |c: &Candidate, (pba, dir)| (c.target.pba(), c.dir) == (pba, dir);
        let all = self.candidates.iter().zip(&self.free);
        all.into_iter().all(|(c, w)| drive.locate(&w.request).is_none_or(|at| same(c, at)))
    }

    /// The oldest that may be chosen, if it has waited for `limit` at `now`.
    pub fn overdue(&self, now: SimTime, limit: SimTime) -> Option<usize> {
        let (i, w) = self.free.iter().enumerate().min_by_key(|(_, w)| w.seq)?;
        (now.since(w.arrival) >= limit).then_some(i)
    }
}

/// Requests without a media operation count as being where the head is.
fn candidate(drive: &Drive, w: &Waiting) -> Candidate {
    let at = drive.locate(&w.request);
    let (pba, dir) = at.unwrap_or_else(|| (drive.head(), Dir::Read));
    Candidate { seq: w.seq, target: drive.target(pba), dir }
}

/// Where requests may start elsewhere now that the drive has served `request`.
pub fn affected(drive: &Drive, request: &HostRequest) -> Range<u64> {
    let layer = drive.layer();
    let everywhere = 0..u64::MAX;
    let Some(reach) = layer.location_reach() else { return everywhere };
    let anywhere = matches!(request.op, HostOp::Discard | HostOp::Append | HostOp::Zone(_));
    if anywhere || layer.background_after().is_some() {
        return everywhere;
    }
    let ops = drive.plan().ops().iter();
    let lowest = ops.clone().map(|op| op.pba.0).min().unwrap_or(u64::MAX);
    let end = ops.map(|op| op.pba.0 + op.blocks.0).max().unwrap_or(0);
    lowest.saturating_sub(reach.0)..end + reach.0
}
