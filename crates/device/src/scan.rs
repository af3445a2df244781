//! What the logs of a store say after a restart: which records hold, and which do not.
//!
//! Three things are told apart. A whole record has its checksum. A record is *durable* if a mark behind it says so: a mark
//! is written after the data to which the records before its position refer. A record is *void* if a later start gave it
//! up. After a kill the page cache still has everything, so every whole record that is not void holds. After the host lost
//! its power only durable ones do, because the others may have survived without their data.

use crate::entry::{ENTRY, Entry, salt};
use crate::error::{DeviceError, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A place between two records: everything before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Which log.
    pub epoch: u64,
    /// Records of that log before the place.
    pub index: u64,
}

/// Records before position (`words[0]`, `words[1]`) are durable, and the data to which they refer.
const MARK: u32 = 0x7000_0001;
/// A server began on boot `words[0]` of its host; records from position (`words[1]`, `words[2]`) to here are void.
const OPEN: u32 = 0x7000_0002;

/// The record that says what is durable.
pub fn mark(upto: Position) -> Entry {
    Entry { tag: MARK, words: [upto.epoch, upto.index, 0] }
}

/// The record with which a server begins.
pub fn opened(boot: u64, from: Position) -> Entry {
    Entry { tag: OPEN, words: [boot, from.epoch, from.index] }
}

/// The boot of this machine, so far as it tells: a number that is another one after every start of the kernel.
pub fn this_boot() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(id) => (id >> 64) as u64 ^ id as u64,
        // Unknown: as if it were another one every time, so that nothing is trusted that was not flushed.
        Err(_) => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64),
    }
}

/// Reads the whole records of a log from its beginning; answers how many there are.
fn whole(path: &Path, id: u64, epoch: u64, each: &mut dyn FnMut(u64, Entry)) -> std::io::Result<u64> {
    let file = File::open(path)?;
    let (mut len, mut at, mut buf) = (0, 0, vec![0; 1 << 20]);
    loop {
        let n = file.read_at(&mut buf, at)?;
        for bytes in buf[..n].chunks_exact(ENTRY) {
            match Entry::decode(bytes, salt(id, epoch, len)) {
                Some(e) if e.tag != 0 => each(len, e),
                _ => return Ok(len),
            }
            len += 1;
        }
        at += (n / ENTRY * ENTRY) as u64;
        if n < ENTRY {
            return Ok(len);
        }
    }
}

/// What a first reading of the logs from a checkpoint on found.
#[derive(Debug, Default)]
pub struct Scan {
    first: u64,
    /// Where the logs end.
    pub end: Position,
    /// Whose records the last ones are.
    boot: Option<u64>,
    /// Everything before is durable.
    durable: Position,
    void: Vec<(Position, Position)>,
}

impl Scan {
    /// Reads `log.first` and those that follow it in `dir`.
    ///
    /// # Errors
    /// When a file cannot be read, or a log is shorter than the next one says.
    pub fn of(dir: &Path, id: u64, first: u64) -> Result<Self> {
        let start = Position { epoch: first, index: 0 };
        let mut scan = Self { first, end: start, durable: start, ..Self::default() };
        for epoch in first.. {
            let path = dir.join(format!("log.{epoch}"));
            if !path.exists() {
                break;
            }
            let before = scan.end;
            let len = whole(&path, id, epoch, &mut |index, e| scan.note(Position { epoch, index }, e));
            let index = len.map_err(|e| DeviceError::io(format!("reading {}", path.display()), &e))?;
            let short = |v: &(Position, Position)| v.0.epoch == before.epoch && v.0.index > before.index;
            if epoch > first && scan.void.iter().any(short) {
                let text = format!("{}/log.{} is damaged: it ends too early", dir.display(), before.epoch);
                return Err(DeviceError::input(text + "; restore it from a snapshot; nothing was changed"));
            }
            scan.end = Position { epoch, index };
        }
        Ok(scan)
    }

    fn note(&mut self, at: Position, e: Entry) {
        match e.tag {
            MARK => {
                self.durable = self.durable.max(Position { epoch: e.words[0], index: e.words[1] });
            }
            OPEN => {
                self.boot = Some(e.words[0]);
                let from = Position { epoch: e.words[1], index: e.words[2] };
                // Also where it is empty: it says how long the log before was.
                self.void.push((from, at));
            }
            _ => {}
        }
    }

    /// Up to where records hold for a server that begins on `boot`.
    pub fn holds(&self, boot: u64) -> Position {
        if self.boot == Some(boot) { self.end } else { self.durable }
    }

    /// Whether the host started again since: data may be there whose records do not hold or are lost.
    pub fn stale(&self, boot: u64) -> bool {
        self.boot.map_or(self.end > Position::default(), |b| b != boot)
    }

    /// Hands out the records before `upto` that are not void, in order; answers whether there were any.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn replay(&self, dir: &Path, id: u64, upto: Position, each: &mut dyn FnMut(Entry)) -> Result<bool> {
        let mut any = false;
        let void: Vec<_> = self.void.iter().filter(|v| v.0 < v.1).collect();
        for epoch in self.first..=upto.epoch {
            let path = dir.join(format!("log.{epoch}"));
            if !path.exists() {
                break;
            }
            let done = whole(&path, id, epoch, &mut |index, e| {
                let at = Position { epoch, index };
                let holds = at < upto && !void.iter().any(|v| v.0 <= at && at < v.1);
                if holds && !matches!(e.tag, MARK | OPEN) {
                    any = true;
                    each(e);
                }
            });
            done.map_err(|e| DeviceError::io(format!("reading {}", path.display()), &e))?;
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use std::path::PathBuf;

    fn write(log: &mut Log, numbers: std::ops::Range<u64>) {
        numbers.for_each(|n| log.append(Entry { tag: 7, words: [n, 0, 0] }).unwrap());
    }

    /// Opens on a boot; answers the log and what held.
    fn open(dir: &Path, boot: u64) -> (Log, Vec<u64>) {
        let mut held = Vec::new();
        let log = Log::open(dir, 1, boot, &mut |e| held.push(e.words[0])).unwrap();
        (log, held)
    }

    fn dir() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        (dir, path)
    }

    #[test]
    fn another_boot_keeps_what_a_mark_covers_and_the_same_one_everything() {
        let (_keep, dir) = dir();
        let (mut log, held) = open(&dir, 1);
        assert!(held.is_empty() && log.is_empty());
        write(&mut log, 0..3);
        let upto = log.position();
        // Arrived while the data were being synced.
        write(&mut log, 3..5);
        log.mark(upto).unwrap().sync().unwrap();
        write(&mut log, 5..6);
        drop(log);
        assert_eq!(open(&dir, 1).1, [0, 1, 2, 3, 4, 5]);
        let (mut log, held) = open(&dir, 2);
        assert_eq!(held, [0, 1, 2]);
        // What is void stays so, whoever comes next; what was durable before stays so without another mark.
        write(&mut log, 10..12);
        drop(log);
        assert_eq!(open(&dir, 2).1, [0, 1, 2, 10, 11]);
        let (mut log, held) = open(&dir, 3);
        assert_eq!(held, [0, 1, 2]);
        write(&mut log, 20..21);
        let upto = log.position();
        log.mark(upto).unwrap().sync().unwrap();
        drop(log);
        assert_eq!(open(&dir, 4).1, [0, 1, 2, 20]);
    }

    fn together(log: &mut Log, numbers: std::ops::Range<u64>) {
        let entries: Vec<_> = numbers.map(|n| Entry { tag: 7, words: [n, 0, 0] }).collect();
        log.append_all(entries.into_iter()).unwrap();
    }

    #[test]
    fn of_records_that_hold_together_there_are_all_or_none() {
        let (_keep, dir) = dir();
        let (mut log, _) = open(&dir, 1);
        together(&mut log, 0..3);
        together(&mut log, 3..3);
        let first = log.position().index as usize;
        // So many that the log grows in the middle of them.
        together(&mut log, 3..20_000);
        assert!(open(&dir, 1).1.into_iter().eq(0..20_000));
        // The process ended before the first of them, which is written last.
        let path = dir.join("log.0");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[first * ENTRY..(first + 1) * ENTRY].fill(0);
        std::fs::write(&path, bytes).unwrap();
        let (mut log, held) = open(&dir, 1);
        assert_eq!(held, [0, 1, 2]);
        write(&mut log, 9..11);
        assert_eq!(open(&dir, 1).1, [0, 1, 2, 9, 10]);
    }

    /// Whoever reads meanwhile sees what a start would find if the process ended there.
    #[test]
    fn nobody_sees_a_part_of_what_holds_together() {
        const EACH: u64 = 2000;
        let (_keep, dir) = dir();
        let (mut log, _) = open(&dir, 1);
        let begun = log.position().index;
        let path = dir.join("log.0");
        let reader = std::thread::spawn(move || {
            let mut seen = std::collections::BTreeSet::new();
            while seen.last() < Some(&(100 * EACH)) {
                seen.insert(whole(&path, 1, 0, &mut |_, _| ()).unwrap() - begun);
            }
            seen
        });
        (0..100).for_each(|i| together(&mut log, i * EACH..(i + 1) * EACH));
        let seen = reader.join().unwrap();
        assert!(seen.iter().all(|n| n.is_multiple_of(EACH)), "{seen:?}");
    }

    #[test]
    fn marks_reach_over_logs_and_a_log_that_lost_its_end_is_refused() {
        let (_keep, dir) = dir();
        let (mut log, _) = open(&dir, 1);
        write(&mut log, 0..4);
        let early = log.position();
        write(&mut log, 4..6);
        // The checkpoint is never written.
        let _checkpoint = log.rotate(6).unwrap();
        write(&mut log, 6..8);
        log.mark(early).unwrap().sync().unwrap();
        assert_eq!(open(&dir, 1).1, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(open(&dir, 2).1, [0, 1, 2, 3]);
        let (mut log, _) = open(&dir, 2);
        write(&mut log, 8..9);
        assert_eq!(open(&dir, 2).1, [0, 1, 2, 3, 8]);
        let path = dir.join("log.0");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4 * ENTRY + 10] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let e = Log::open(&dir, 1, 2, &mut |_| ()).err().unwrap().to_string();
        assert!(e.contains("log.0 is damaged") && e.contains("snapshot"), "{e}");
    }

    #[test]
    fn a_checkpoint_is_durable_state() {
        let (_keep, dir) = dir();
        let (mut log, _) = open(&dir, 1);
        write(&mut log, 0..4);
        let checkpoint = log.rotate(2).unwrap();
        assert!(log.is_empty());
        write(&mut log, 9..10);
        checkpoint.write([100, 101].map(|n| Ok(Entry { tag: 7, words: [n, 0, 0] })).into_iter()).unwrap();
        assert!(!dir.join("log.0").exists());
        assert_eq!(open(&dir, 1).1, [100, 101, 9]);
        assert_eq!(open(&dir, 2).1, [100, 101]);
    }
}
