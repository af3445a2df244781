//! What one request needs of a section besides the section.

use super::cache::CachedPart;
use crate::OpId;
use smrlab_units::counters;

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

counters! {
    /// Events that are counted.
    pub(super) struct Counters {
        read_hits => "read_hits",
        read_misses => "read_misses",
        read_split => "read_split",
        write_hits => "write_hits",
        write_misses => "write_misses",
        bypassed => "bypassed",
        destages => "group_destages",
        destaged_blocks => "destaged_blocks",
        sblock_copies => "sblock_copies",
        defrag_blocks => "defrag_blocks",
    }
}
