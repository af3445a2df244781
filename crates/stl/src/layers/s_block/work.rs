//! What one request needs of a section besides the section.

use super::cache::CachedPart;
use crate::OpId;

/// Lists that are reused from request to request, and counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    pub parts: Vec<CachedPart>,
    /// Operation and offset in it that hold each part.
    pub staged: Vec<(OpId, u64)>,
    /// S-blocks destaged for the present request.
    pub destaged: u32,
    /// Fences and flushes so far, and one.
    pub fences: u64,
    pub counters: Counters,
}

/// Events that are counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub read_hits: u64,
    pub read_misses: u64,
    pub read_split: u64,
    pub write_hits: u64,
    pub write_misses: u64,
    pub bypassed: u64,
    pub destages: u64,
    pub destaged_blocks: u64,
    pub sblock_copies: u64,
    pub defrag_blocks: u64,
}
