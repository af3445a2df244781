//! What an array keeps beside its disks: its records, in a log of the same kind as a medium's.
//!
//! A record survives the process at once, and the host once it was synced; that comes after the disks were synced, because
//! records say what is on them.

use crate::changes::{Assembly, Entries};
use crate::entry::Entry;
use crate::error::Result;
use crate::log::Log;
use crate::scan::Position;
use crate::store::header::StoreDir;
use crate::synced::Synced;
use parking_lot::Mutex;
use smrlab_array::{Records, Stop};

/// Every disk was made.
const FORMED: u32 = 4;
/// A server was stopped in good order.
const CLOSED: u32 = 5;
/// A server began.
const OPENED: u32 = 6;
/// Disks are being written from here on.
const AT_WORK: u32 = 7;
/// No work is under way.
const AT_REST: u32 = 8;

/// What was found in a ledger.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The array's records, in order.
    pub records: Records,
    /// Every disk was made once: one that is missing now is lost.
    pub formed: bool,
    /// How the server before ended.
    pub stop: Stop,
}

struct OpenLog {
    log: Log,
    /// The newest word of it is that disks are written, and some were since [`rest`](Ledger::rest) was called last.
    at_work: bool,
    lately: bool,
    /// The newest durable word is that the server has ended.
    closed: bool,
}

/// See the [module](self).
pub(crate) struct Ledger {
    state: Mutex<OpenLog>,
    synced: Synced,
    /// Locked for as long as it is used.
    _dir: StoreDir,
}

impl Ledger {
    /// Opens, or begins, the ledger in an array's directory.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub(crate) fn open(dir: StoreDir, boot: u64) -> Result<(Self, Found)> {
        let (mut found, mut closed, mut at_work) = (Found::default(), false, false);
        let mut assembly = Assembly::default();
        let log = Log::open(&dir.path, dir.header.id, boot, &mut |e| {
            closed = e.tag == CLOSED;
            at_work = e.tag == AT_WORK || (at_work && !closed && e.tag != AT_REST);
            match e.tag {
                FORMED => found.formed = true,
                CLOSED | OPENED | AT_WORK | AT_REST => {}
                _ => assembly.take(&e, &mut found.records),
            }
        })?;
        found.stop = match found.formed && !closed {
            true if log.stale() => Stop::PowerLost,
            true if at_work => Stop::Killed,
            _ => Stop::Orderly,
        };
        let state = Mutex::new(OpenLog { log, at_work, lately: false, closed: false });
        Ok((Self { state, synced: Synced::default(), _dir: dir }, found))
    }

    /// A server begins, and all that is on the disks is durable: what a killed server left in the ledger becomes so by this.
    ///
    /// # Errors
    /// What the operating system answers.
    pub(crate) fn opened(&self) -> Result<()> {
        self.note(OPENED)
    }

    /// Every disk is there.
    ///
    /// # Errors
    /// What the operating system answers.
    pub(crate) fn formed(&self) -> Result<()> {
        self.note(FORMED)
    }

    /// Everything is durable, and the server ends.
    ///
    /// # Errors
    /// What the operating system answers.
    pub(crate) fn closed(&self) -> Result<()> {
        self.note(CLOSED)?;
        let state = &mut *self.state.lock();
        (state.at_work, state.closed) = (false, true);
        Ok(())
    }

    /// A disk is about to be written: a server that is killed from here on leaves work that may be half done. Answers whether that has
    /// to be durable first, with all that was kept so far: who starts after a loss of power would find that the server had
    /// [ended](Self::closed).
    ///
    /// # Errors
    /// When the disk is full.
    pub(crate) fn at_work(&self) -> Result<bool> {
        let state = &mut *self.state.lock();
        state.lately = true;
        if !state.at_work {
            state.at_work = true;
            state.log.append(Entry { tag: AT_WORK, words: [0; 3] })?;
        }
        Ok(std::mem::take(&mut state.closed))
    }

    /// No work is under way: if that was so for a while, it is noted.
    ///
    /// # Errors
    /// When the disk is full.
    pub(crate) fn rest(&self) -> Result<()> {
        let mut state = self.state.lock();
        let still = !std::mem::take(&mut state.lately);
        if state.at_work && still {
            state.at_work = false;
            state.log.append(Entry { tag: AT_REST, words: [0; 3] })?;
        }
        Ok(())
    }

    fn note(&self, tag: u32) -> Result<()> {
        self.state.lock().log.append(Entry { tag, words: [0; 3] })?;
        self.sync(self.position())
    }

    /// Keeps records of the array that hold together: a server that is killed in the middle of it leaves none of them.
    ///
    /// # Errors
    /// When the disk is full.
    pub(crate) fn keep(&self, records: &Records) -> Result<()> {
        self.state.lock().log.append_all(Entries::of(records).into_iter())
    }

    /// What was kept so far, for [`sync`](Self::sync).
    pub(crate) fn position(&self) -> Position {
        self.state.lock().log.position()
    }

    /// Makes durable what was kept up to a position; what it refers to must be.
    ///
    /// # Errors
    /// What the operating system answers; every later call fails then, because what was still to be written may be gone.
    pub(crate) fn sync(&self, upto: Position) -> Result<()> {
        let mark = || self.state.lock().log.mark(upto);
        self.synced.reach(upto, || mark()?.sync()).map(drop)
    }

    /// Whether all that was kept is durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.synced.covers(self.position())
    }

    /// Whether a checkpoint is due.
    pub(crate) fn wants_checkpoint(&self, anyway: bool) -> bool {
        self.state.lock().log.wants_checkpoint(anyway)
    }

    /// Writes the array's state in the place of all that was kept, while nothing changes the array.
    ///
    /// # Errors
    /// What the operating system answers.
    pub(crate) fn checkpoint(&self, entries: Entries) -> Result<()> {
        let mut state = self.state.lock();
        let formed = Entry { tag: FORMED, words: [0; 3] };
        let at_work = state.at_work.then_some(Entry { tag: AT_WORK, words: [0; 3] });
        let all = entries.len() as u64 + 1 + u64::from(state.at_work);
        let checkpoint = state.log.rotate(all)?;
        checkpoint.write(std::iter::once(formed).chain(at_work).chain(entries.into_iter()).map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::header::Header;
    use std::path::Path;

    fn open(dir: &Path, boot: u64) -> (Ledger, Found) {
        let header = Header { id: 1, blocks: 8, layer: String::new(), drive: String::new(), device: None };
        let at = if StoreDir::exists(dir) { StoreDir::open(dir) } else { StoreDir::create(dir, header) };
        Ledger::open(at.unwrap(), boot).unwrap()
    }

    fn records(numbers: std::ops::Range<u64>) -> Records {
        let mut all = Records::default();
        numbers.for_each(|n| all.push(0x1_0000, [n]));
        all
    }

    /// Formed, opened, at work, rest, a checkpoint, closed; `|`: the server is killed and another begins. What the next one is told, on the
    /// same boot and on another.
    #[test]
    fn how_a_server_ended_is_what_was_noted_last() {
        let (orderly, killed, lost) = (Stop::Orderly, Stop::Killed, Stop::PowerLost);
        for (steps, same, another) in [
            ("", orderly, orderly),
            ("f", orderly, lost),
            ("fw", killed, lost),
            // It was at work since it was asked last.
            ("fwr", killed, lost),
            ("fwrr", orderly, lost),
            ("fwrrw", killed, lost),
            ("fwk", killed, lost),
            ("fwrrk", orderly, lost),
            ("fw|o", killed, lost),
            ("fwc", orderly, orderly),
            ("fwc|o", orderly, lost),
            // It went on all the same.
            ("fwcw", killed, lost),
        ] {
            for (boot, stop) in [(1, same), (2, another)] {
                let dir = tempfile::tempdir().unwrap();
                let mut ledger = open(dir.path(), 1).0;
                for step in steps.chars() {
                    match step {
                        'f' => ledger.formed(),
                        'o' => ledger.opened(),
                        // As a fence does.
                        'w' if ledger.at_work().unwrap() => ledger.sync(ledger.position()),
                        'w' => Ok(()),
                        'r' => ledger.rest(),
                        'k' => ledger.checkpoint(Entries::default()),
                        'c' => ledger.closed(),
                        _ => {
                            drop(ledger);
                            ledger = open(dir.path(), 1).0;
                            Ok(())
                        }
                    }
                    .unwrap();
                }
                drop(ledger);
                assert_eq!(open(dir.path(), boot).1.stop, stop, "{steps:?}, boot {boot}");
            }
        }
    }

    /// A loss of power leaves what was synced, each time, and what a server found when it was opened.
    #[test]
    fn records_are_durable_when_that_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = open(dir.path(), 1).0;
        ledger.formed().unwrap();
        for step in [0..2, 2..5] {
            ledger.keep(&records(step)).unwrap();
            ledger.sync(ledger.position()).unwrap();
        }
        ledger.keep(&records(5..7)).unwrap();
        drop(ledger);
        let (ledger, found) = open(dir.path(), 1);
        assert_eq!(found.records, records(0..7));
        ledger.opened().unwrap();
        ledger.keep(&records(7..9)).unwrap();
        drop(ledger);
        assert_eq!(open(dir.path(), 2).1.records, records(0..7));
    }
}
