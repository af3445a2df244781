//! A drive at rest as a file: what its layer would write as a checkpoint, where its heads are, and what the host had
//! written. A drive that was aged in the simulator goes on from it as a served device, and the other way round.
//!
//! Format 1: a line `smrlab state 1`, then, compressed (zstd), lines `key value` up to an empty one, then little-endian
//! words: records (tag and three words each), and ranges of written LBAs (first and end each).

use crate::Drive;
use smrlab_stl::{AnyRecord, Plan, Record, Records, Sink as _};
use smrlab_units::Pba;
use std::ops::Range;

const MAGIC: &[u8] = b"smrlab state 1\n";
const ANY: &[u8] = b"smrlab state ";
/// Fast, and still a third of the size.
const LEVEL: i32 = 1;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    /// The drive's text with every override, or a drive file's path.
    pub drive: String,
    /// The layer's text with every parameter.
    pub layer: String,
    /// Where maps are kept: `nv` or `media`.
    pub metadata: String,
    /// Blocks of the medium.
    pub blocks: u64,
    /// The block at the head.
    pub head: u64,
    /// The layer's checkpoint.
    pub records: Records,
    /// What the host had written, as ranges of LBAs, ascending and apart.
    pub written: Vec<Range<u64>>,
}

impl SavedState {
    /// Takes the state of a drive on which nothing is under way; who it is and what was written are the caller's.
    pub fn take(drive: &Drive, identity: Self) -> Self {
        Self::take_within(drive, identity, usize::MAX).unwrap_or_default()
    }

    /// The same, unless the layer's checkpoint has more than `most` records.
    pub fn take_within(drive: &Drive, identity: Self, most: usize) -> Option<Self> {
        let (mut records, mut more) = (Records::default(), false);
        drive.layer().checkpoint(&mut |record: AnyRecord<'_>| {
            more |= records.len() >= most;
            if !more {
                records.take(record);
            }
        });
        let head = drive.mechanics().head().next.0;
        let blocks = drive.mechanics().geometry().blocks().0;
        (!more).then_some(Self { blocks, head, records, ..identity })
    }

    /// Brings a fresh drive to this state, at time 0. `plan` receives media operations that the layer asks for first.
    pub fn give(&self, drive: &mut Drive, plan: &mut Plan) {
        drive.rest_at(Pba(self.head));
        if !self.records.is_empty() {
            drive.layer_mut().recover(&self.records, plan);
        }
    }

    /// Whether it is the state of such a drive.
    ///
    /// # Errors
    /// What differs, and what to write instead.
    pub fn expect(&self, drive: &str, layer: &str, metadata: &str, blocks: u64) -> Result<(), String> {
        let pairs = [
            ("drive", &*self.drive, drive),
            ("layer", &*self.layer, layer),
            ("metadata", &*self.metadata, metadata),
        ];
        for (what, there, here) in pairs {
            if there != here {
                return Err(format!(
                    "it is the state of {what}={there}, and here {what}={here}: give {what}={there}"
                ));
            }
        }
        if self.blocks != blocks {
            return Err(format!(
                "it is the state of a medium of {} blocks, and this one has {blocks}",
                self.blocks
            ));
        }
        Ok(())
    }

    /// The file.
    ///
    /// # Errors
    /// What the compressor says.
    pub fn encode(&self) -> std::io::Result<Vec<u8>> {
        let mut body = format!(
            "drive {}\nlayer {}\nmetadata {}\nblocks {}\nhead {}\nrecords {}\nwritten {}\n\n",
            self.drive,
            self.layer,
            self.metadata,
            self.blocks,
            self.head,
            self.records.len(),
            self.written.len()
        )
        .into_bytes();
        for r in self.records.changes::<Record>() {
            body.extend(u64::from(r.tag).to_le_bytes());
            r.words.iter().for_each(|w| body.extend(w.to_le_bytes()));
        }
        for r in &self.written {
            body.extend(r.start.to_le_bytes());
            body.extend(r.end.to_le_bytes());
        }
        Ok([MAGIC, &zstd::bulk::compress(&body, LEVEL)?].concat())
    }

    /// The state in a file.
    ///
    /// # Errors
    /// No state, another version, or a damaged file.
    pub fn decode(file: &[u8]) -> Result<Self, String> {
        let Some(packed) = file.strip_prefix(MAGIC) else {
            return Err(match file.strip_prefix(ANY) {
                Some(_) => "a state of another version of smrlab: make it again with this one".into(),
                None => "no state that --save-state or 'device state' has written".into(),
            });
        };
        let damaged = || "a damaged state: make it again".to_owned();
        let body = zstd::stream::decode_all(packed).map_err(|_| damaged())?;
        Self::parse(&body).ok_or_else(damaged)
    }

    fn parse(body: &[u8]) -> Option<Self> {
        let split = body.windows(2).position(|w| w == b"\n\n")?;
        let head = std::str::from_utf8(&body[..split]).ok()?;
        let value =
            |key: &str| head.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')).map(str::to_owned);
        let number = |key: &str| value(key)?.parse::<u64>().ok();
        let (records, written) = (number("records")? as usize, number("written")? as usize);
        let words = &body[split + 2..];
        if words.len() != records.checked_mul(32)?.checked_add(written.checked_mul(16)?)? {
            return None;
        }
        let mut words = words.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap_or_default()));
        let mut next = || words.next();
        let mut state = Self {
            drive: value("drive")?,
            layer: value("layer")?,
            metadata: value("metadata")?,
            blocks: number("blocks")?,
            head: number("head")?,
            ..Self::default()
        };
        for _ in 0..records {
            let tag = u32::try_from(next()?).ok()?;
            state.records.push(tag, [next()?, next()?, next()?]);
        }
        for _ in 0..written {
            state.written.push(next()?..next()?);
        }
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> SavedState {
        SavedState {
            drive: "tiny".into(),
            layer: "disk-cache,cache=1%".into(),
            metadata: "nv".into(),
            blocks: 2400,
            head: 17,
            records: (0..100).map(|i| Record { tag: i, words: [u64::MAX - u64::from(i), 2, 3] }).collect(),
            written: vec![0..7, 9..2000],
        }
    }

    #[test]
    fn a_file_says_what_was_put_into_it_and_damage_is_seen() {
        let file = state().encode().unwrap();
        assert_eq!(SavedState::decode(&file), Ok(state()));
        assert!(SavedState::decode(&file[..file.len() - 3]).unwrap_err().contains("damaged"));
        let body = zstd::stream::decode_all(&file[MAGIC.len()..]).unwrap();
        for more in [-32, -16, -8, -1, 1, 8, 16, 32] {
            let mut body = body.clone();
            body.resize(body.len().checked_add_signed(more).unwrap(), 0);
            let file = [MAGIC, &zstd::bulk::compress(&body, LEVEL).unwrap()].concat();
            assert!(SavedState::decode(&file).unwrap_err().contains("damaged"), "{more} bytes more");
        }
        assert!(SavedState::decode(b"smrlab state 9\nxxx").unwrap_err().contains("another version"));
        assert!(SavedState::decode(b"{}").unwrap_err().contains("no state"));
    }

    #[test]
    fn another_drive_or_layer_is_refused_with_the_remedy() {
        let s = state();
        assert_eq!(s.expect("tiny", "disk-cache,cache=1%", "nv", 2400), Ok(()));
        assert!(s.expect("tiny", "rmw", "nv", 2400).unwrap_err().contains("give layer=disk-cache,cache=1%"));
        for blocks in [1, 2399, 2401] {
            let refused = s.expect("tiny", "disk-cache,cache=1%", "nv", blocks).unwrap_err();
            assert!(refused.contains("2400 blocks") && refused.ends_with(&format!("has {blocks}")));
        }
    }
}
