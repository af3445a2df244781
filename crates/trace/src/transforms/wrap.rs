//! Addresses modulo a capacity.

use crate::{Batch, TraceError, TraceSource};
use smrlab_units::{Blocks, Lba};

/// Takes every address modulo a capacity (paper 003: `LBA mod usage · capacity`).
///
/// A request that would cross the end is moved back so that it ends there: it stays one request of its size, so that
/// counts and sizes are those of the trace. One that is longer than the capacity is cut to it.
pub struct Wrap<S> {
    inner: S,
    capacity: u64,
}

impl<S: TraceSource> Wrap<S> {
    /// `capacity` in blocks.
    ///
    /// # Errors
    /// When the capacity is zero.
    pub fn new(inner: S, capacity: Blocks) -> Result<Self, TraceError> {
        if capacity == Blocks::ZERO {
            return Err(TraceError::Request("cannot wrap addresses to a capacity of 0 blocks".to_owned()));
        }
        Ok(Self { inner, capacity: capacity.0 })
    }
}

impl<S: TraceSource> TraceSource for Wrap<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        let more = self.inner.next_batch(out)?;
        for (lba, blocks) in out.lba.iter_mut().zip(&mut out.blocks) {
            if lba.0 + u64::from(*blocks) <= self.capacity {
                continue;
            }
            let n = u64::from(*blocks).min(self.capacity);
            *blocks = n as u32;
            *lba = Lba((lba.0 % self.capacity).min(self.capacity - n));
        }
        Ok(more)
    }
    pass_through!();
}
