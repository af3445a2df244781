//! An SSD of an array: blocks that stay where they were written, in a store of their own.

use crate::error::Result;
use crate::store::Store;
use serde_json::{Value, json};
use smrlab_stl::{HostBuffer, HostRequest, following};
use smrlab_units::BLOCK_BYTES;
use std::sync::Arc;

/// Requests and blocks, reads then writes.
type Counts = [(u64, u64); 2];

/// See the [module](self).
pub(super) struct SsdBytes {
    store: Arc<dyn Store>,
    counts: Counts,
}

impl SsdBytes {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, counts: Counts::default() }
    }

    /// Carries out a request.
    ///
    /// # Errors
    /// What the store answers.
    pub(super) fn carry_out(&mut self, request: &HostRequest, host: HostBuffer<'_>) -> Result<()> {
        let (at, blocks) = (request.lba.0 * BLOCK_BYTES, request.blocks.0);
        let kind = match host {
            HostBuffer::Read(out) => self.store.read(at, out).map(|()| 0)?,
            HostBuffer::Write(data) => self.store.write(at, data).map(|()| 1)?,
            HostBuffer::Lend(take) => {
                self.store.lend(at, blocks * BLOCK_BYTES, &mut following(0, take)).map(|()| 0)?
            }
            HostBuffer::None => return Ok(()),
        };
        let counts = &mut self.counts[kind];
        *counts = (counts.0 + 1, counts.1 + blocks);
        Ok(())
    }

    /// Where its bytes are.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// What was counted.
    pub(super) fn stats(&self) -> Value {
        let [reads, writes] = self.counts;
        json!({"reads": reads.0, "blocks_read": reads.1, "writes": writes.0, "blocks_written": writes.1})
    }

    /// Begins counting anew.
    pub(super) fn count_anew(&mut self) {
        self.counts = Counts::default();
    }
}
