//! What of a medium survives: its log, flushes, and checkpoints.

use super::{BATCH, Medium, ShingleLog};
use crate::changes::Entries;
use crate::entry::Entry;
use crate::error::{DeviceError, Result};
use crate::log::{Checkpoint, Log, Marked};
use crate::run_map::WriteRun;
use crate::scan::Position;
use crate::tag;
use parking_lot::MutexGuard;
use smrlab_stl::AnyRecord;

impl Medium {
    /// Makes everything so far durable: first the data, then the log with a mark that says so. What others write
    /// meanwhile is not said to be. Answers whether there was anything to do; else it costs next to nothing.
    ///
    /// # Errors
    /// What the operating system answers; every later call fails then, because what it had yet to write may be gone.
    pub fn sync(&self) -> Result<bool> {
        let Some(wanted) = self.position() else { return Ok(false) };
        self.synced.reach(wanted, || self.sync_all())
    }

    pub(super) fn position(&self) -> Option<Position> {
        self.state.read().log.as_ref().map(Log::position)
    }

    /// Answers up to where everything is durable now.
    fn sync_all(&self) -> Result<Position> {
        let upto = self.position().unwrap_or_default();
        self.store.sync()?;
        let marked = self.state.write().log.as_mut().map(|log| log.mark(upto)).transpose()?;
        marked.map_or(Ok(upto), Marked::sync)
    }

    /// Keeps what is recorded: it survives the process at once and the machine after [`sync`](Self::sync). It holds together: a
    /// process that ends in the middle of it leaves none of it.
    ///
    /// # Errors
    /// When the disk is full.
    pub(crate) fn keep(&self, entries: Entries) -> Result<()> {
        match &mut self.state.write().log {
            Some(log) => log.append_all(entries.into_iter()),
            None => Ok(()),
        }
    }

    /// The same for one record; where there is no log nothing is made of it.
    pub(crate) fn keep_one(&self, record: AnyRecord<'_>) -> Result<()> {
        if self.logged { self.keep(Entries::one(record)) } else { Ok(()) }
    }

    /// Writes a checkpoint of a medium without a layer; see [`checkpoint_with`](Self::checkpoint_with).
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint(&self, anyway: bool) -> Result<()> {
        self.checkpoint_with(anyway, || Some(()), |_, _| ())
    }

    /// Writes a checkpoint if the log has grown long, or there is anything in it and `anyway`. What `lock` brings keeps the layer as it is
    /// while `state` adds what that keeps; `None`: now is no time for a checkpoint. It is not held while the medium's own is written.
    ///
    /// # Errors
    /// What the operating system answers; the old checkpoint and the logs remain then.
    pub(crate) fn checkpoint_with<L>(
        &self,
        anyway: bool,
        lock: impl FnOnce() -> Option<L>,
        state: impl FnOnce(&L, &mut Entries),
    ) -> Result<()> {
        if !self.wants_checkpoint(anyway)? {
            return Ok(());
        }
        let Some(locked) = lock() else { return Ok(()) };
        let begun = self.begin_checkpoint(anyway, |out| state(&locked, out))?;
        drop(locked);
        begun.map_or(Ok(()), Begun::finish)
    }

    /// Whether the log has grown long, or there is anything in it and `anyway`. If so it is made durable, so that little
    /// is left to be when the next one is begun.
    ///
    /// # Errors
    /// What the operating system answers.
    fn wants_checkpoint(&self, anyway: bool) -> Result<bool> {
        let file = self.state.read().log.as_ref().filter(|log| log.wants_checkpoint(anyway)).map(Log::file);
        let Some(file) = file else { return Ok(false) };
        file.sync_data().map_err(|e| DeviceError::io("making the log durable", &e))?;
        Ok(true)
    }

    /// Begins a checkpoint if [it is due](Self::wants_checkpoint); `more` adds what the layer keeps, and nothing may change
    /// the layer meanwhile. It may change while the checkpoint is [finished](Begun::finish).
    ///
    /// # Errors
    /// What the operating system answers; the old checkpoint and the logs remain then.
    pub fn begin_checkpoint(
        &self,
        anyway: bool,
        more: impl FnOnce(&mut Entries),
    ) -> Result<Option<Begun<'_>>> {
        let alone = self.alone.lock();
        let mut state = self.state.write();
        let ShingleLog { shingle, log } = &mut *state;
        let Some(log) = log.as_mut().filter(|log| log.wants_checkpoint(anyway)) else { return Ok(None) };
        let mut records = Entries::default();
        more(&mut records);
        let checkpoint = log.rotate((shingle.runs().len() + records.len()) as u64)?;
        Ok(Some(Begun { medium: self, checkpoint, records, _alone: alone }))
    }
}

/// A checkpoint of which the runs are still to be copied, while writes go on: the new log has all of these, and replayed
/// over the copy they give the medium as it is (see [`copy_from`](crate::shingle::Shingle::copy_from)).
#[must_use]
pub struct Begun<'a> {
    medium: &'a Medium,
    checkpoint: Checkpoint,
    records: Entries,
    _alone: MutexGuard<'a, ()>,
}

impl Begun<'_> {
    /// Copies the runs and writes the checkpoint.
    ///
    /// # Errors
    /// As [`Medium::checkpoint`].
    pub fn finish(self) -> Result<()> {
        let Self { medium, checkpoint, records, .. } = self;
        let (mut next, mut runs) = (Some(0), Vec::with_capacity(BATCH));
        let runs = std::iter::from_fn(|| {
            runs.clear();
            next = medium.state.read().shingle.copy_from(next?, BATCH, &mut runs);
            let run = |r: &WriteRun| Ok(Entry { tag: tag::RUN, words: [r.start, r.end, r.seq] });
            (!runs.is_empty()).then(|| runs.iter().map(run).collect::<Vec<_>>())
        });
        // What was copied may be later than what was durable: it has to be, and its records, before the checkpoint counts.
        let durable = std::iter::once_with(|| medium.sync().err().map(Err)).flatten();
        checkpoint.write(records.into_iter().map(Ok).chain(runs.flatten()).chain(durable))
    }
}
