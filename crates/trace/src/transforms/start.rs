//! The last stage of opening a trace: where its time starts, and that there is something in it.

use crate::{Batch, TraceError, TraceSource};
use smrlab_units::SimTime;

/// Moves the first request to time 0 where asked, and refuses an empty trace.
pub struct Started<S> {
    inner: S,
    to_zero: bool,
    origin: Option<SimTime>,
    name: String,
}

impl<S: TraceSource> Started<S> {
    /// `name` is what messages call the trace.
    pub fn new(inner: S, to_zero: bool, name: &str) -> Self {
        Self { inner, to_zero, origin: None, name: name.to_owned() }
    }
}

impl<S: TraceSource> TraceSource for Started<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        let more = self.inner.next_batch(out)?;
        if self.origin.is_none() {
            match out.arrival.first() {
                None => return Err(TraceError::Empty(self.name.clone())),
                Some(first) => self.origin = Some(if self.to_zero { *first } else { SimTime::ZERO }),
            }
        }
        if let Some(origin) = self.origin.filter(|o| *o > SimTime::ZERO) {
            out.arrival.iter_mut().for_each(|a| *a = a.since(origin));
        }
        Ok(more)
    }
    fn device_name(&self, device: u32) -> String {
        self.inner.device_name(device)
    }
    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }
    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }
}
