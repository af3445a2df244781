//! A record of the log and of a checkpoint: 32 bytes with a checksum.

/// One change of the state: what kind, and three words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// Kind of change.
    pub tag: u32,
    /// Its content.
    pub words: [u64; 3],
}

/// Bytes of a record.
pub(crate) const ENTRY: usize = 32;
impl Entry {
    /// The bytes of the record, sealed by `salt`.
    pub fn encode(&self, salt: u64) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[4..8].copy_from_slice(&self.tag.to_le_bytes());
        for (i, w) in self.words.iter().enumerate() {
            bytes[8 + i * 8..16 + i * 8].copy_from_slice(&w.to_le_bytes());
        }
        let crc = checksum(&bytes[4..], salt);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The record in `bytes`; none where they are not one that was sealed by `salt`.
    pub fn decode(bytes: &[u8], salt: u64) -> Option<Self> {
        let word =
            |i: usize| u64::from_le_bytes(bytes[8 + i * 8..16 + i * 8].try_into().expect("eight bytes"));
        let four = |i: usize| u32::from_le_bytes(bytes[i..i + 4].try_into().expect("four bytes"));
        let entry = Self { tag: four(4), words: [word(0), word(1), word(2)] };
        (four(0) == checksum(&bytes[4..ENTRY], salt)).then_some(entry)
    }
}

fn checksum(bytes: &[u8], salt: u64) -> u32 {
    let mut h = crc32fast::Hasher::new_with_initial(salt as u32 ^ (salt >> 32) as u32);
    h.update(bytes);
    h.finalize()
}

/// Keeps the record of a place apart from those of other stores and of earlier uses of the same space.
pub(crate) fn salt(id: u64, epoch: u64, index: u64) -> u64 {
    id ^ epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index.wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
}
