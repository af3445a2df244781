//! A trace whose first requests are looked at before it is used.

use crate::{Batch, Result, TraceSource};
use smrlab_units::SimTime;

/// Holds the first batch of a trace.
pub struct Peeked<S> {
    inner: S,
    first: Option<Batch>,
}

impl<S: TraceSource> Peeked<S> {
    /// Reads the first batch.
    ///
    /// # Errors
    /// Those of the trace.
    pub fn new(mut inner: S) -> Result<Self> {
        let mut first = Batch::new();
        inner.next_batch(&mut first)?;
        Ok(Self { inner, first: Some(first) })
    }

    /// When the first request arrives; `None` where there is none.
    pub fn first_arrival(&self) -> Option<SimTime> {
        self.first.as_ref()?.arrival.first().copied()
    }
}

impl<S: TraceSource> TraceSource for Peeked<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        match self.first.take() {
            Some(first) => {
                *out = first;
                Ok(!out.is_empty())
            }
            None => self.inner.next_batch(out),
        }
    }
    crate::pass_through!();
}
