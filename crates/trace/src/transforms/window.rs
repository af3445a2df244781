//! A stretch of time only.

use super::select::retain;
use crate::{Batch, TraceError, TraceSource};
use smrlab_units::SimTime;

/// Keeps the requests that arrive from one time on and before another, and moves the first time to 0.
pub struct Window<S> {
    inner: S,
    from: SimTime,
    to: SimTime,
    ended: bool,
}

impl<S: TraceSource> Window<S> {
    /// From `from` on, before `to`.
    pub fn new(inner: S, from: SimTime, to: SimTime) -> Self {
        Self { inner, from, to, ended: false }
    }
}

impl<S: TraceSource> TraceSource for Window<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        while !self.ended && self.inner.next_batch(out)? {
            self.ended = out.arrival.last().is_some_and(|a| *a >= self.to);
            retain(out, |r| (self.from..self.to).contains(&r.arrival));
            out.arrival.iter_mut().for_each(|a| *a = a.since(self.from));
            if !out.is_empty() {
                return Ok(true);
            }
        }
        out.clear();
        Ok(false)
    }
    pass_through!();
}
