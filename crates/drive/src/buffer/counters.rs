//! What a buffer counts.

use smrlab_units::counters;

counters! {
    /// What the buffer has done so far.
    pub struct Counters {
        /// Reads of which the buffer had everything.
        hits => "read_hits",
        /// Reads of which it had the beginning, or was about to.
        partial_hits => "read_partial_hits",
        /// Other reads.
        misses => "read_misses",
        /// Writes that were acknowledged when they were in the buffer.
        buffered => "writes_buffered",
        /// Writes that waited for the medium.
        through => "writes_through",
        /// Blocks read ahead.
        read_ahead => "blocks_read_ahead",
    }
}
