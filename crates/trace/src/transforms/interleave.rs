//! Bursts of several traces in turn, as composed for studies of arrays.

use super::merge::Several;
use crate::{Batch, Record, Result, TraceError, TraceSource};
use smrlab_units::SimTime;
use smrlab_units::rng::Rng;

/// Interleaves traces in bursts: while any source is left, one of those left is picked at
/// random, all alike, and its next `burst` requests (or the rest) are emitted. The stream is the source's number.
///
/// The trace's times cannot be kept, for the order is another one: each request comes as long after the one emitted
/// before it as it came after its predecessor in its own source.
pub struct Interleave<S> {
    inner: Several<S>,
    /// Numbers of the sources that are left, rising.
    left: Vec<usize>,
    /// Last arrival of each source, in its own time.
    last: Vec<SimTime>,
    burst: u64,
    in_burst: Option<(usize, u64)>,
    now: SimTime,
    tail: u64,
    rng: Rng,
}

impl<S: TraceSource> Interleave<S> {
    /// Bursts of `burst` requests, at least one.
    ///
    /// # Errors
    /// When there is no source, there are more than 65 536, or `burst` is 0.
    pub fn new(sources: Vec<S>, burst: u64, seed: u64) -> Result<Self> {
        if burst == 0 {
            return Err(TraceError::Request("the burst must be at least 1 request".to_owned()));
        }
        let inner = Several::new(sources)?;
        let n = inner.readings.len();
        Ok(Self {
            inner,
            left: (0..n).collect(),
            last: vec![SimTime::ZERO; n],
            burst,
            in_burst: None,
            now: SimTime::ZERO,
            tail: 0,
            rng: Rng::new(seed),
        })
    }

    /// Requests emitted when only one source was left: they are not interleaved with anything.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    fn next(&mut self) -> Result<Option<Record>> {
        loop {
            let (source, used) = match self.in_burst {
                Some(turn) => turn,
                None if self.left.is_empty() => return Ok(None),
                None => (self.left[self.rng.below(self.left.len() as u64) as usize], 0),
            };
            match self.inner.readings[source].peek()? {
                Some(record) if used < self.burst => {
                    self.inner.readings[source].take();
                    let more = self.inner.readings[source].peek()?.is_some();
                    if self.left.len() == 1 {
                        self.tail += 1;
                    }
                    if !more {
                        self.left.retain(|s| *s != source);
                    }
                    self.in_burst = (more && used + 1 < self.burst).then_some((source, used + 1));
                    let gap = record.arrival.since(self.last[source]);
                    self.now = SimTime(self.now.0.saturating_add(gap.0));
                    self.last[source] = record.arrival;
                    return Ok(Some(self.inner.emitted(source, Record { arrival: self.now, ..record })));
                }
                // Only a source that was empty from the start is found so.
                _ => self.left.retain(|s| *s != source),
            }
        }
    }
}

impl<S: TraceSource> TraceSource for Interleave<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        while !out.is_full() {
            match self.next()? {
                Some(record) => out.push(record),
                None => break,
            }
        }
        Ok(!out.is_empty())
    }
    crate::pass_through!();
}
