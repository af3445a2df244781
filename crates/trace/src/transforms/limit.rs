//! The first requests only.

use crate::{Batch, TraceError, TraceSource};

/// Ends a trace after so many requests.
pub struct Limit<S> {
    inner: S,
    left: u64,
    total: u64,
}

impl<S: TraceSource> Limit<S> {
    /// At most `requests`.
    pub fn new(inner: S, requests: u64) -> Self {
        Self { inner, left: requests, total: requests }
    }
}

impl<S: TraceSource> TraceSource for Limit<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        if self.left == 0 {
            out.clear();
            return Ok(false);
        }
        let more = self.inner.next_batch(out)?;
        out.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= out.len() as u64;
        Ok(more)
    }
    fn device_name(&self, device: u32) -> String {
        self.inner.device_name(device)
    }
    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }
    fn progress(&self) -> Option<f64> {
        let share = 1.0 - self.left as f64 / self.total.max(1) as f64;
        Some(self.inner.progress().map_or(share, |p| p.max(share)))
    }
}
