//! An array at rest as a file: its own state, and that of each of its drives.
//!
//! Format 1: a line `smrlab array state 1`, then the length of each part (eight bytes, little-endian) and the part: the
//! array's own, whose records are its checkpoint, then its drives', all of them [drive states](SavedState). What the SSD's
//! write cache holds is among the array's records; its read cache begins empty.

use crate::{ArrayObserver, EventLoop, MemberId, Records, Stop};
use smrlab_drive::SavedState;
use smrlab_stl::Plan;
use smrlab_units::spec::split_item;

const MAGIC: &[u8] = b"smrlab array state 1\n";
/// How states of drives and of arrays begin, whatever version wrote them.
const ANY: [&[u8]; 2] = [b"smrlab state ", b"smrlab array state "];

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayState {
    /// The array's own: its text is that of the layer, and `written` is what the host had written.
    pub array: SavedState,
    /// Its drives', in the order of their numbers.
    pub members: Vec<SavedState>,
}

impl ArrayState {
    /// Takes the state of an array on which nothing is under way; what its drives do in idle time is given up. Who they are
    /// and what was written are the caller's: `array`, and `member` for every drive.
    pub fn take(event_loop: &mut EventLoop, array: SavedState, member: &SavedState) -> Self {
        let mut records = Records::default();
        event_loop.array().checkpoint(&mut records);
        let blocks = event_loop.array().host_blocks().0;
        let own = SavedState { blocks, records: pack(&records), ..array };
        let count = event_loop.members().count() as u32;
        let drives = (0..count).map(MemberId);
        let members = drives.filter_map(|id| {
            let drive = event_loop.drive_mut(id)?;
            drive.interrupt();
            Some(SavedState::take(drive, member.clone()))
        });
        let members = members.collect();
        Self { array: own, members }
    }

    /// Brings a fresh array on fresh drives to this state, at time 0.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn give<O: ArrayObserver>(&self, event_loop: &mut EventLoop, watch: &mut O) -> Result<(), O::Error> {
        let mut plan = Plan::new(false, false);
        for (id, state) in (0..).map(MemberId).zip(&self.members) {
            if let Some(drive) = event_loop.drive_mut(id) {
                plan.clear();
                state.give(drive, &mut plan);
            }
        }
        event_loop.recover(&self.records(), Stop::Orderly, watch)
    }

    /// Whether it is the state of such an array; `array`: what [`Chosen::identity`](crate::Chosen::identity) says, empty for
    /// one drive.
    ///
    /// # Errors
    /// What differs, and what to write instead.
    pub fn expect(&self, array: &str) -> Result<(), String> {
        let there = &*self.array.layer;
        if there == array {
            return Ok(());
        }
        let (there, here) = (different(there, array), different(array, there));
        Err(match (&*there, &*here) {
            ("", _) => format!("it is the state of an array without {here}: leave that out"),
            (_, "") => format!("it is the state of {there}, and here there is no such: give {there}"),
            _ => format!("it is the state of {there}, and here {here}: give {there}"),
        })
    }

    /// The array's own records.
    pub fn records(&self) -> Records {
        unpack(&self.array.records).unwrap_or_default()
    }

    /// Whether a file is such a one, and not the state of one drive.
    pub fn is_one(file: &[u8]) -> bool {
        file.starts_with(MAGIC)
    }

    /// Whether a file, by its beginning, is a state of a drive or of an array, of this version or another.
    pub fn is_any(file: &[u8]) -> bool {
        ANY.iter().any(|kind| file.starts_with(kind))
    }

    /// The file.
    ///
    /// # Errors
    /// What the compressor says.
    pub fn encode(&self) -> std::io::Result<Vec<u8>> {
        let mut file = MAGIC.to_vec();
        for part in std::iter::once(&self.array).chain(&self.members) {
            let part = part.encode()?;
            file.extend((part.len() as u64).to_le_bytes());
            file.extend(part);
        }
        Ok(file)
    }

    /// The state in a file.
    ///
    /// # Errors
    /// No state of an array, another version, or a damaged file.
    pub fn decode(file: &[u8]) -> Result<Self, String> {
        let Some(mut rest) = file.strip_prefix(MAGIC) else {
            return Err(
                "no state of an array: give one that --save-state has written for such an array".into()
            );
        };
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let damaged = || "a damaged state: make it again".to_owned();
            let (length, more) = rest.split_first_chunk().ok_or_else(damaged)?;
            let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
            let (part, more) = more.split_at_checked(length).ok_or_else(damaged)?;
            parts.push(SavedState::decode(part)?);
            rest = more;
        }
        let mut parts = parts.into_iter();
        let whole = parts.next().filter(|array| unpack(&array.records).is_some());
        let array = whole.ok_or("a damaged state: make it again")?;
        Ok(Self { array, members: parts.collect() })
    }
}

/// What an array's text says that the other does not.
fn different(text: &str, other: &str) -> String {
    let ((name, pairs), (other, others)) = (split_item(text), split_item(other));
    if name != other {
        return format!("array={}", if name.is_empty() { "single" } else { name });
    }
    let own = pairs.iter().filter(|pair| !others.contains(pair));
    own.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Records of any length as words of a drive's records.
fn pack(records: &Records) -> Records {
    let mut words = vec![records.len() as u64];
    for r in records.iter() {
        words.extend([u64::from(r.tag), r.words.len() as u64]);
        words.extend(r.words);
    }
    let three = |some: &[u64]| std::array::from_fn(|i| some.get(i).copied().unwrap_or_default());
    words.chunks(3).map(|some| smrlab_stl::Record { tag: 0, words: three(some) }).collect()
}

/// What was [packed](pack); `None`: damaged.
fn unpack(packed: &Records) -> Option<Records> {
    let mut words = packed.iter().flat_map(|r| r.words).copied();
    let mut records = Records::default();
    for _ in 0..words.next().unwrap_or_default() {
        let (tag, length) = (u32::try_from(words.next()?).ok()?, words.next()? as usize);
        let own: Vec<u64> = words.by_ref().take(length).collect();
        if own.len() != length {
            return None;
        }
        records.push(tag, own);
    }
    Some(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_length_come_back_and_cut_ones_are_seen() {
        let mut records = Records::default();
        for (tag, words) in [(7, vec![]), (9, vec![1, 2, 3, 4, 5]), (0, vec![0])] {
            records.push(tag, words);
        }
        let packed = pack(&records);
        assert_eq!(unpack(&packed), Some(records));
        assert_eq!(unpack(&packed.changes::<smrlab_stl::Record>().take(2).collect()), None);
        assert_eq!(unpack(&Records::default()), Some(Records::default()));
    }

    #[test]
    fn a_file_says_what_was_put_into_it_and_damage_is_seen() {
        let part = |layer: &str, head| SavedState { layer: layer.into(), head, ..SavedState::default() };
        let state = ArrayState { array: part("raid5", 0), members: vec![part("cmr", 3), part("cmr", 9)] };
        let file = state.encode().unwrap();
        assert!(ArrayState::is_one(&file));
        assert_eq!(ArrayState::decode(&file), Ok(state.clone()));
        assert!(ArrayState::decode(&file[..file.len() - 3]).unwrap_err().contains("damaged"));
        assert!(
            ArrayState::decode(&state.array.encode().unwrap()).unwrap_err().contains("no state of an array")
        );
        assert_eq!(state.expect("raid5"), Ok(()));
        let given = "raid5,ssd_write=1MiB";
        let cached = ArrayState { array: part(given, 0), members: Vec::new() };
        for (state, given, says) in [
            (&state, given, "an array without ssd_write=1MiB: leave that out"),
            (&cached, "raid5", "ssd_write=1MiB, and here there is no such: give ssd_write=1MiB"),
            (&cached, "dvs", "array=raid5, and here array=dvs: give array=raid5"),
        ] {
            assert_eq!(state.expect(given), Err(format!("it is the state of {says}")));
        }
    }
}
