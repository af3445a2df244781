//! Some devices only.

use crate::{Batch, Record, TraceError, TraceSource};

/// Keeps the rows that `keep` accepts, in their order.
pub(super) fn retain(batch: &mut Batch, keep: impl Fn(&Record) -> bool) {
    let mut kept = 0;
    for i in 0..batch.len() {
        let r = batch.get(i);
        if keep(&r) {
            batch.arrival[kept] = r.arrival;
            batch.op[kept] = r.op;
            batch.lba[kept] = r.lba;
            batch.blocks[kept] = r.blocks;
            batch.device[kept] = r.device;
            batch.stream[kept] = r.stream;
            kept += 1;
        }
    }
    batch.truncate(kept);
}

/// Keeps the requests to some devices; they keep their numbers.
pub struct Select<S> {
    inner: S,
    devices: Vec<u32>,
}

impl<S: TraceSource> Select<S> {
    /// The devices to keep.
    pub fn new(inner: S, devices: Vec<u32>) -> Self {
        Self { inner, devices }
    }
}

impl<S: TraceSource> TraceSource for Select<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        while self.inner.next_batch(out)? {
            retain(out, |r| self.devices.contains(&r.device));
            if !out.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
    pass_through!();
}
