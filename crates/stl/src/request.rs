//! What a host asks of a drive.

use smrlab_units::{Blocks, HostOp, Lba};

/// One host request. The caller has checked that `lba + blocks` lies within
/// [`host_blocks`](crate::TranslationLayer::host_blocks) and that reads, writes and discards have at least one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// What is asked.
    pub op: HostOp,
    /// First block.
    pub lba: Lba,
    /// Length; zero for a flush.
    pub blocks: Blocks,
    /// Which source sent it (interleaved traces, append streams); 0 where there is one.
    pub stream: u16,
}
