//! Sorting by arrival within a window of time.

use crate::{Batch, Record, Result, TraceError, TraceSource};
use smrlab_units::SimTime;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Sorts requests that come at most a window out of order; equal arrivals keep their order.
///
/// Memory: the requests of one window. The inner source may break the rule that arrivals never fall.
pub struct SortWindow<S> {
    inner: S,
    window: SimTime,
    name: String,
    batch: Batch,
    waiting: BinaryHeap<Waiting>,
    count: u64,
    latest: SimTime,
    ended: bool,
}

/// Ordered so that the heap's greatest is the earliest, and among equals the first that came.
struct Waiting {
    record: Record,
    number: u64,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.record.arrival, other.number).cmp(&(self.record.arrival, self.number))
    }
}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Waiting {}

impl<S: TraceSource> SortWindow<S> {
    /// `name` is what messages call the trace.
    pub fn new(inner: S, window: SimTime, name: &str) -> Self {
        Self {
            inner,
            window,
            name: name.to_owned(),
            batch: Batch::new(),
            waiting: BinaryHeap::new(),
            count: 0,
            latest: SimTime::ZERO,
            ended: false,
        }
    }

    fn refill(&mut self) -> Result<()> {
        self.ended = !self.inner.next_batch(&mut self.batch)?;
        for record in self.batch.iter() {
            if record.arrival < self.latest.since(self.window) {
                return Err(TraceError::RunsBack {
                    file: self.name.clone(),
                    place: format!(", request {}", self.count + 1),
                    at: record.arrival,
                    after: self.latest,
                    needed: self.latest.since(record.arrival),
                });
            }
            self.latest = self.latest.max(record.arrival);
            self.waiting.push(Waiting { record, number: self.count });
            self.count += 1;
        }
        Ok(())
    }
}

impl<S: TraceSource> TraceSource for SortWindow<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        while !out.is_full() {
            let safe = self.latest.since(self.window);
            match self.waiting.peek() {
                Some(w) if self.ended || w.record.arrival < safe => {
                    out.push(w.record);
                    self.waiting.pop();
                }
                None if self.ended => break,
                _ => self.refill()?,
            }
        }
        Ok(!out.is_empty())
    }
    crate::pass_through!();
}
