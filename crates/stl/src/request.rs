//! What a host asks of a drive.

use crate::Cause;
use smrlab_units::{Blocks, HostOp, Lba};

/// One host request. The caller has checked that `lba + blocks` lies within
/// [`host_blocks`](crate::TranslationLayer::host_blocks) and that reads, writes and discards have at least one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// The caller's number for it: completions, logs and refusals name it. 0 where nobody asks.
    pub id: u64,
    /// What is asked.
    pub op: HostOp,
    /// First block.
    pub lba: Lba,
    /// Length; zero for a flush.
    pub blocks: Blocks,
    /// Which source sent it (interleaved traces, append streams); 0 where there is one.
    pub stream: u16,
    /// Why: `Host` for the host's own requests; an array asks its members for parity, rebuilds and the like. What a layer
    /// does for `Host` is counted under this cause.
    pub why: Cause,
    /// A write that is acknowledged only when it is on the medium, whatever caches are on.
    pub fua: bool,
}

impl HostRequest {
    /// A request of the host's, number 0, of stream 0.
    #[inline]
    pub const fn new(op: HostOp, lba: Lba, blocks: Blocks) -> Self {
        Self { id: 0, op, lba, blocks, stream: 0, why: Cause::Host, fua: false }
    }

    /// A flush.
    #[inline]
    pub const fn flush() -> Self {
        Self::new(HostOp::Flush, Lba(0), Blocks(0))
    }

    /// The same with this number.
    #[inline]
    #[must_use]
    pub const fn numbered(self, id: u64) -> Self {
        Self { id, ..self }
    }
}
