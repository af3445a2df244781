//! Numbers out of a fuzzer's bytes; zeroes when they have run out.

/// What is left of the input.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Whether there is more.
    pub fn more(&self) -> bool {
        !self.0.is_empty()
    }

    /// Up to `n` bytes.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (now, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        now
    }

    /// A number of `n` bytes, at most eight.
    pub fn number(&mut self, n: usize) -> u64 {
        let mut bytes = [0; 8];
        let found = self.take(n);
        bytes[..found.len()].copy_from_slice(found);
        u64::from_le_bytes(bytes)
    }

    /// A number below `limit`, from two bytes; 0 for a limit of 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number(2).checked_rem(limit).unwrap_or(0)
    }
}
