//! A fingerprint of the requests that went through.

use crate::rng::splitmix;
use crate::{Batch, TraceError, TraceSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes a trace through and keeps a 64-bit digest of all requests: equal for equal requests in whatever format.
pub struct Digested<S> {
    inner: S,
    state: u64,
    shown: Arc<AtomicU64>,
}

impl<S: TraceSource> Digested<S> {
    /// The source, and a handle from which the digest of what has been read so far can be had.
    pub fn new(inner: S) -> (Self, Arc<AtomicU64>) {
        let shown = Arc::new(AtomicU64::new(0));
        (Self { inner, state: 0, shown: Arc::clone(&shown) }, shown)
    }
}

impl<S: TraceSource> TraceSource for Digested<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        let more = self.inner.next_batch(out)?;
        let mut state = self.state;
        for r in out.iter() {
            let what = u64::from(r.blocks) | (r.op as u64) << 32 | u64::from(r.stream) << 40;
            state ^= r.arrival.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                ^ r.lba.0.rotate_left(24).wrapping_mul(0xbf58_476d_1ce4_e5b9)
                ^ (what ^ u64::from(r.device) << 8).wrapping_mul(0x94d0_49bb_1331_11eb);
            splitmix(&mut state);
        }
        self.state = state;
        let mut last = state;
        self.shown.store(splitmix(&mut last), Ordering::Relaxed);
        Ok(more)
    }
    pass_through!();
}
