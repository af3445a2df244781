//! What a buffer counts.

/// What the buffer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads of which the buffer had everything.
    pub hits: u64,
    /// Reads of which it had the beginning, or was about to.
    pub partial_hits: u64,
    /// Other reads.
    pub misses: u64,
    /// Writes that were acknowledged when they were in the buffer.
    pub buffered: u64,
    /// Writes that waited for the medium.
    pub through: u64,
    /// Blocks read ahead.
    pub read_ahead: u64,
}

impl Counters {
    /// Each with its name in results.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("read_hits", self.hits),
            ("read_partial_hits", self.partial_hits),
            ("read_misses", self.misses),
            ("writes_buffered", self.buffered),
            ("writes_through", self.through),
            ("blocks_read_ahead", self.read_ahead),
        ]
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, o: Self) -> Self {
        Self {
            hits: self.hits + o.hits,
            partial_hits: self.partial_hits + o.partial_hits,
            misses: self.misses + o.misses,
            buffered: self.buffered + o.buffered,
            through: self.through + o.through,
            read_ahead: self.read_ahead + o.read_ahead,
        }
    }
}
