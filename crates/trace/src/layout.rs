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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole units, each behind the one before; a place that is too short is left for another, and 2^54 blocks are full.
    #[test]
    fn places_lie_behind_each_other_until_nothing_is_left() {
        let mut layout = Layout::new(8);
        let mut place = |name: u64, blocks| layout.place(name, blocks);
        let asked = [(1, 1), (2, 9), (3, 8), (1, 8), (1, 9), (2, 16), (1, 3)];
        assert_eq!(asked.map(|(name, n)| place(name, n).unwrap()), [0, 8, 24, 0, 32, 8, 32]);
        assert_eq!(place(4, (1 << 54) - 48 - 8), Ok(48));
        assert_eq!(place(5, 8), Err("the files fill 2^63 bytes".into()));
        assert_eq!(place(6, u64::MAX - 7), Err("the files fill 2^63 bytes".into()));
    }

    /// Names are told apart by each of their bytes, by their length, and by what stands where.
    #[test]
    fn hashes_are_of_every_byte() {
        let names: Vec<Vec<u8>> =
            (0..40).flat_map(|n| (0..2).map(move |last| [vec![0; n], vec![last]].concat())).collect();
        let swapped = [b"aaaaaaaabbbbbbbb".to_vec(), b"bbbbbbbbaaaaaaaa".to_vec(), Vec::new()];
        let all: Vec<_> = names.iter().chain(&swapped).collect();
        let hashes: std::collections::BTreeSet<u64> = all.iter().map(|name| hash(name)).collect();
        assert_eq!(hashes.len(), all.len());
    }
}
