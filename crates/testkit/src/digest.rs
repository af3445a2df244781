//! One number for all that happened, in its order.

use std::fmt::{self, Debug, Write as _};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Notes some numbers.
    pub fn note(&mut self, words: &[u64]) {
        for word in words {
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x51_7C_C1_B7_27_22_0A_95);
        }
    }

    /// Notes what has no numbers of its own.
    pub fn note_debug(&mut self, what: &impl Debug) {
        _ = write!(self, "{what:?}");
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        s.bytes().for_each(|byte| self.note(&[byte.into()]));
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
