//! What an array keeps beside its disks: its records, in a log of the same kind as a medium's.
//!
//! A record survives the process at once, and the host once it was synced; that comes after the disks were synced, because
//! records say what is on them.

use crate::entry::Entry;
use crate::error::{DeviceError, Result};
use crate::log::Log;
use crate::medium::tag;
use crate::scan::Position;
use crate::store::header::StoreDir;
use parking_lot::Mutex;
use smrlab_stl::Record;

/// Every disk was made.
const FORMED: u32 = 4;
/// A server was stopped in good order.
const CLOSED: u32 = 5;
/// A server began.
const OPENED: u32 = 6;

/// What was found in a ledger.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The array's records, in order.
    pub records: Vec<Record>,
    /// Every disk was made once: one that is missing now is lost.
    pub formed: bool,
    /// The host lost its power while the array was served.
    pub unclean: bool,
}

struct State {
    log: Log,
    /// Records so far, and those of them that are durable.
    kept: u64,
    durable: u64,
}

/// See the [module](self).
pub(crate) struct Ledger {
    state: Mutex<State>,
    /// Locked for as long as it is used.
    _dir: StoreDir,
}

impl Ledger {
    /// Opens, or begins, the ledger in an array's directory.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open(dir: StoreDir, boot: u64) -> Result<(Self, Found)> {
        let (mut found, mut closed) = (Found::default(), false);
        let log = Log::open(&dir.path, dir.header.id, boot, &mut |e| {
            closed = e.tag == CLOSED;
            match e.tag {
                FORMED => found.formed = true,
                CLOSED | OPENED => {}
                _ => found.records.push(Record { tag: e.tag & !tag::LAYER, words: e.words }),
            }
        })?;
        found.unclean = log.stale() && found.formed && !closed;
        let ledger = Self { state: Mutex::new(State { log, kept: 0, durable: 0 }), _dir: dir };
        ledger.note(OPENED)?;
        Ok((ledger, found))
    }

    /// Every disk is there.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn formed(&self) -> Result<()> {
        self.note(FORMED)
    }

    /// Everything is durable, and the server ends.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn closed(&self) -> Result<()> {
        self.note(CLOSED)
    }

    fn note(&self, tag: u32) -> Result<()> {
        self.append(Entry { tag, words: [0; 3] })?;
        self.sync(self.position())
    }

    fn append(&self, entry: Entry) -> Result<()> {
        let mut state = self.state.lock();
        state.log.append(entry)?;
        state.kept += 1;
        Ok(())
    }

    /// Keeps a record of the array.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn keep(&self, record: Record) -> Result<()> {
        self.append(Entry { tag: tag::LAYER | record.tag, words: record.words })
    }

    /// What was kept so far, for [`sync`](Self::sync).
    pub fn position(&self) -> (u64, Position) {
        let state = self.state.lock();
        (state.kept, state.log.position())
    }

    /// Makes durable what was kept up to a position; what it refers to must be.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn sync(&self, (kept, upto): (u64, Position)) -> Result<()> {
        let mut state = self.state.lock();
        if state.durable >= kept {
            return Ok(());
        }
        state.log.mark(upto)?;
        state.log.file().sync_data().map_err(|e| DeviceError::io("making the array's log durable", &e))?;
        state.durable = kept;
        Ok(())
    }

    /// Whether a checkpoint is due.
    pub fn wants_checkpoint(&self, anyway: bool) -> bool {
        let state = self.state.lock();
        state.log.wants_checkpoint() || (anyway && !state.log.is_empty())
    }

    /// Writes `records` in the place of all that was kept, while nothing changes the array.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn checkpoint(&self, records: &[Record]) -> Result<()> {
        let mut state = self.state.lock();
        let formed = Entry { tag: FORMED, words: [0; 3] };
        let checkpoint = state.log.rotate(records.len() as u64 + 1)?;
        let entries = records.iter().map(|r| Entry { tag: tag::LAYER | r.tag, words: r.words });
        checkpoint.write(std::iter::once(formed).chain(entries).map(Ok))
    }
}
