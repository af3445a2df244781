//! What a random load does, on record: a line of text for each load, with a number for all that happened. Other tests say that what is done is
//! right; a record says that it is what it was. A change of the method fails there though everything is right, and is put on record
//! again: with `$SMRLAB_RECORD` the lines are appended to the file of that name, and nothing is compared.

use std::fmt::{self, Debug, Write as _};
use std::io::Write as _;

/// One number for all that happened, in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Notes some numbers.
    pub fn note(&mut self, words: &[u64]) {
        for word in words {
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x51_7C_C1_B7_27_22_0A_95);
        }
    }

    /// Notes what blocks hold: in four numbers side by side, none of which waits for another.
    pub fn note_bytes(&mut self, blocks: &[u8]) {
        let mut lanes = [*self; 4];
        let (words, _) = blocks.as_chunks();
        for four in words.chunks(4) {
            lanes.iter_mut().zip(four).for_each(|(lane, word)| lane.note(&[u64::from_le_bytes(*word)]));
        }
        self.note(&lanes.map(|lane| lane.0));
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

/// Compares what is said under a name with its line in `on_record`; what differs, as a text for who broke it.
///
/// # Panics
/// When the file of `$SMRLAB_RECORD` cannot be written.
pub fn differs(on_record: &str, name: &str, said: &str) -> Option<String> {
    let line = format!("{name}: {said}");
    if let Some(path) = std::env::var_os("SMRLAB_RECORD") {
        let mut file =
            std::fs::OpenOptions::new().append(true).create(true).open(path).expect("SMRLAB_RECORD");
        file.write_all(format!("{line}\n").as_bytes()).expect("SMRLAB_RECORD");
        return None;
    }
    let Some(recorded) = on_record.lines().find(|l| l.starts_with(&format!("{name}: "))) else {
        return Some(format!("{name} is not on record: SMRLAB_RECORD=FILE appends its line"));
    };
    let others = |a: &str, b: &str| {
        let known: Vec<_> = b.split(' ').collect();
        a.split(' ').filter(|word| !known.contains(word)).collect::<Vec<_>>().join(" ")
    };
    (recorded != line)
        .then(|| format!("{name}: {}; on record: {}", others(&line, recorded), others(recorded, &line)))
}
