//! Where files and objects lie on a drive, for traces that name them instead of addresses: an assumed layout in the order
//! of first use.

use crate::fields::Reason;
use smrlab_units::rng::splitmix;
use std::collections::HashMap;

/// A place: first block and blocks.
#[derive(Clone, Copy)]
struct FileExtent {
    first: u64,
    blocks: u64,
}

/// Gives every name a place behind the one placed before it, in whole units of `unit` blocks. A name that needs more room
/// than its place has moves to a new one at the end. Memory: 24 bytes and the map's overhead a name.
pub(crate) struct Layout {
    /// By a 64-bit hash of the name. Only looked up in, never walked.
    places: HashMap<u64, FileExtent>,
    end: u64,
    unit: u64,
}

impl Layout {
    /// Places begin and end at multiples of `unit` blocks, at least 1.
    pub(crate) fn new(unit: u64) -> Self {
        Self { places: HashMap::new(), end: 0, unit }
    }

    /// The first block of the place of what has this hash, with room for `blocks`.
    pub(crate) fn place(&mut self, hash: u64, blocks: u64) -> Result<u64, Reason> {
        let place = self.places.entry(hash).or_insert(FileExtent { first: 0, blocks: 0 });
        if place.blocks < blocks {
            let room = blocks.next_multiple_of(self.unit);
            *place = FileExtent { first: self.end, blocks: room };
            self.end =
                self.end.checked_add(room).filter(|e| *e < 1 << 54).ok_or("the files fill 2^63 bytes")?;
        }
        Ok(place.first)
    }
}

/// A 64-bit hash of a name, the same on every machine.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut state = bytes.len() as u64;
    let mut mixed = 0;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state ^= u64::from_le_bytes(word) ^ mixed;
        mixed = splitmix(&mut state);
    }
    mixed
}
