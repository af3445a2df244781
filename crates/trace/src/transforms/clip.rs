//! Only what lies on the drive.

use super::select::retain;
use crate::{Batch, TraceError, TraceSource};
use smrlab_units::{Blocks, HostOp};

/// Drops requests that begin at or beyond a capacity, and cuts those that cross it.
pub struct Clip<S> {
    inner: S,
    capacity: u64,
    dropped: u64,
    cut: u64,
}

impl<S: TraceSource> Clip<S> {
    /// `capacity` in blocks.
    pub fn new(inner: S, capacity: Blocks) -> Self {
        Self { inner, capacity: capacity.0, dropped: 0, cut: 0 }
    }

    /// Requests dropped and requests cut so far.
    pub fn changed(&self) -> (u64, u64) {
        (self.dropped, self.cut)
    }
}

impl<S: TraceSource> TraceSource for Clip<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        loop {
            if !self.inner.next_batch(out)? {
                return Ok(false);
            }
            let rows = out.len();
            retain(out, |r| r.op == HostOp::Flush || r.lba.0 < self.capacity);
            self.dropped += (rows - out.len()) as u64;
            for (lba, blocks) in out.lba.iter().zip(&mut out.blocks) {
                let room = self.capacity.saturating_sub(lba.0);
                if u64::from(*blocks) > room {
                    *blocks = room as u32;
                    self.cut += 1;
                }
            }
            if !out.is_empty() {
                return Ok(true);
            }
        }
    }
    pass_through!();
}
