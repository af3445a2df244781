//! A trace moved to another place.

use crate::{Batch, Result, TraceSource};
use smrlab_units::Blocks;

/// Adds a distance to every address: for traces that share a drive without overlapping.
pub struct Offset<S> {
    inner: S,
    by: Blocks,
}

impl<S: TraceSource> Offset<S> {
    /// `by` in blocks.
    pub fn new(inner: S, by: Blocks) -> Self {
        Self { inner, by }
    }
}

impl<S: TraceSource> TraceSource for Offset<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        let more = self.inner.next_batch(out)?;
        out.lba.iter_mut().for_each(|l| l.0 = l.0.saturating_add(self.by.0));
        Ok(more)
    }
    crate::pass_through!();
}
