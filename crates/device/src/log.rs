//! The state on disk: checkpoints and logs of records, safe against the end of the process and of the machine.
//!
//! `checkpoint.N` holds the state when `log.N` was begun (for N = 0 there is none); the data to which it refers are durable
//! when it is there. A record is put into the mapped log without a system call: it survives the process at once, and the
//! machine once a mark behind it is durable. Recovery takes the newest whole checkpoint and of the logs from it on what
//! [`replay`](crate::scan) says.
#![allow(unsafe_code)]

use crate::entry::{ENTRY, Entry, salt};
use crate::error::{DeviceError, Result};
use crate::scan::{Position, Scan, mark, opened};
use crate::store::header::{replace, sync_directory};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

/// The log grows by this many bytes at a time; their space is taken before it is used.
const STEP: u64 = 4 << 20;
/// And before it is as long as one of those: many logs stay short, and an array has one for each disk.
const FIRST: u64 = 256 << 10;
/// A log below this size is not worth a checkpoint.
const ENOUGH: u64 = 32 << 20;
/// A log above this size takes too long to replay, however large the checkpoint.
const MOST: u64 = 64 << 20;

/// The log being written.
pub struct Log {
    dir: PathBuf,
    id: u64,
    epoch: u64,
    file: Arc<File>,
    map: MmapRaw,
    /// Records so far.
    len: u64,
    /// Whether any of them is more than a mark.
    used: bool,
    boot: u64,
    stale: bool,
    checkpoint_bytes: u64,
}

impl Log {
    /// Recovers the state in `dir` on this `boot` of the host: every record that holds goes to `each`, in order; the log
    /// goes on behind the last one.
    ///
    /// # Errors
    /// When a file cannot be read, or a checkpoint is damaged (then nothing was changed).
    pub fn open(dir: &Path, id: u64, boot: u64, each: &mut dyn FnMut(Entry)) -> Result<Self> {
        let fail = |e| DeviceError::io(format!("recovering the state in {}", dir.display()), &e);
        let newest = numbers(dir, "checkpoint").map_err(fail)?.into_iter().max().unwrap_or(0);
        let mut checkpoint_bytes = 0;
        if newest > 0 {
            checkpoint_bytes = read_checkpoint(&dir.join(format!("checkpoint.{newest}")), id, newest, each)?;
        }
        if newest == 0 && !dir.join("log.0").exists() && !numbers(dir, "log").map_err(fail)?.is_empty() {
            let text = format!("{}: the checkpoint that the logs go on from is missing", dir.display());
            return Err(DeviceError::input(text + "; restore it; nothing was changed"));
        }
        let scan = Scan::of(dir, id, newest)?;
        let holds = scan.holds(boot);
        let used = scan.replay(dir, id, holds, each)?;
        let mut log = Self::map(dir, id, scan.end, boot).map_err(fail)?;
        (log.checkpoint_bytes, log.stale) = (checkpoint_bytes, scan.stale(boot));
        log.mark_begin(holds)?;
        log.used = used;
        log.discard_older(newest);
        Ok(log)
    }

    /// Goes on, or begins, at `end`.
    fn map(dir: &Path, id: u64, end: Position, boot: u64) -> std::io::Result<Self> {
        let Position { epoch, index: len } = end;
        let path = dir.join(format!("log.{epoch}"));
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        // What follows the last whole record is the tail of a lost machine: out of the way of what comes, and durably so,
        // because the numbers of its records will be used again.
        file.set_len(len * ENTRY as u64)?;
        file.sync_all()?;
        sync_directory(dir)?;
        let map = grown(&file, len, len * ENTRY as u64)?;
        let (dir, file) = (dir.to_owned(), Arc::new(file));
        Ok(Self { dir, id, epoch, file, map, len, used: false, boot, stale: false, checkpoint_bytes: 0 })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// When the disk is full: the record is not there then.
    #[inline]
    pub fn append(&mut self, entry: Entry) -> Result<()> {
        self.append_all([entry].into_iter())
    }

    /// Appends records that hold together: a process that ends in the middle of it leaves none of them.
    ///
    /// # Errors
    /// When the disk is full: none is there then.
    #[inline]
    pub fn append_all(
        &mut self,
        entries: impl DoubleEndedIterator<Item = Entry> + ExactSizeIterator,
    ) -> Result<()> {
        let (start, end) = (self.len, self.len + entries.len() as u64);
        if end as usize * ENTRY > self.map.len() {
            self.map = grown(&self.file, end, self.map.len() as u64)
                .map_err(|e| DeviceError::io(format!("extending the log in {}", self.dir.display()), &e))?;
        }
        // Backwards: whoever reads the log ends where a record is missing, and the first one comes last.
        for (i, entry) in entries.enumerate().rev() {
            let index = start + i as u64;
            let bytes = entry.encode(salt(self.id, self.epoch, index));
            compiler_fence(Ordering::Release);
            // SAFETY: within the mapping, whose space on disk was taken when it grew; nobody else writes to it.
            unsafe {
                let to = self.map.as_mut_ptr().add(index as usize * ENTRY);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, ENTRY);
            }
        }
        self.len = end;
        self.used |= start < end;
        Ok(())
    }

    /// Whether the host started again between the last server and this one: there may be data without records.
    pub fn stale(&self) -> bool {
        self.stale
    }

    /// Behind the last record.
    pub fn position(&self) -> Position {
        Position { epoch: self.epoch, index: self.len }
    }

    /// Notes that all records before `upto` are durable together with the data to which they refer; the note itself is so, and says
    /// something, once it is [synced](Marked::sync).
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn mark(&mut self, upto: Position) -> Result<Marked> {
        let (used, alone) = (self.used, self.position() == upto);
        self.append(mark(upto))?;
        self.used = used;
        Ok(Marked { file: self.file.clone(), upto: if alone { self.position() } else { upto } })
    }

    /// The file to sync so that all records so far are durable; may be synced without holding any lock.
    pub fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Whether a checkpoint is due: the log has grown so long that one would be read faster, or there is anything in it and `anyway`.
    pub fn wants_checkpoint(&self, anyway: bool) -> bool {
        let long = self.len * ENTRY as u64 > (2 * self.checkpoint_bytes).clamp(ENOUGH, MOST);
        long || (anyway && self.used)
    }

    /// Whether there is anything that a checkpoint would take up.
    pub fn is_empty(&self) -> bool {
        !self.used
    }

    /// Begins the next log. The caller then writes the state by [`Checkpoint::write`].
    ///
    /// # Errors
    /// When the old log cannot be made durable or the new one not be made; the old one goes on then.
    pub fn rotate(&mut self, entries: u64) -> Result<Checkpoint> {
        let fail = |e| DeviceError::io(format!("beginning a new log in {}", self.dir.display()), &e);
        self.file.sync_data().map_err(fail)?;
        let begin = Position { epoch: self.epoch + 1, index: 0 };
        let mut new = Self::map(&self.dir, self.id, begin, self.boot).map_err(fail)?;
        new.mark_begin(self.position())?;
        *self = new;
        self.checkpoint_bytes = entries * ENTRY as u64;
        Ok(Checkpoint { dir: self.dir.clone(), id: self.id, epoch: begin.epoch })
    }

    /// The first record: which boot it is, and where the log before ended.
    fn mark_begin(&mut self, before: Position) -> Result<()> {
        self.append(opened(self.boot, before))?;
        self.used = false;
        Ok(())
    }

    fn discard_older(&self, epoch: u64) {
        discard_older(&self.dir, epoch);
    }
}

/// A mapping of the log with room for a step beyond `len` records; where there is none, the file is as long as `before`, in bytes.
fn grown(file: &File, len: u64, before: u64) -> std::io::Result<MmapRaw> {
    let used = len * ENTRY as u64;
    let step = if used < STEP { FIRST } else { STEP };
    let size = (used / step + 1) * step;
    // SAFETY: a plain system call on an open descriptor.
    if unsafe { libc::posix_fallocate64(file.as_raw_fd(), 0, size as i64) } != 0 {
        // Give back what was taken in part, and say why.
        let e = std::io::Error::from_raw_os_error(libc::ENOSPC);
        file.set_len(before)?;
        return Err(e);
    }
    MmapOptions::new().len(size as usize).map_raw(file)
}

fn numbers(dir: &Path, stem: &str) -> std::io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|n| n.strip_prefix(stem)?.strip_prefix('.')?.parse().ok());
        found.extend(number);
    }
    Ok(found)
}

fn discard_older(dir: &Path, epoch: u64) {
    for stem in ["checkpoint", "log"] {
        for n in numbers(dir, stem).unwrap_or_default().into_iter().filter(|n| *n < epoch) {
            let _ = fs::remove_file(dir.join(format!("{stem}.{n}")));
        }
    }
}

/// A log that says up to where it is durable, which is so once it is synced.
#[must_use]
pub struct Marked {
    file: Arc<File>,
    upto: Position,
}

impl Marked {
    /// Makes it so, holding no lock; logs before this one were synced when it was begun. Answers up to where all is durable now.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn sync(self) -> Result<Position> {
        self.file.sync_data().map_err(|e| DeviceError::io("making the log durable", &e))?;
        Ok(self.upto)
    }
}

/// A checkpoint to be written.
pub struct Checkpoint {
    dir: PathBuf,
    id: u64,
    epoch: u64,
}

impl Checkpoint {
    /// Writes the state as it was at [`Log::rotate`], or as it became since where the new log says the same once more;
    /// what it replaces goes. By the end of `entries` all of it has to be durable.
    ///
    /// # Errors
    /// When the disk is full or fails, and the first one of `entries`: recovery then still has the checkpoint before and
    /// both logs.
    pub fn write(&self, entries: impl Iterator<Item = Result<Entry>>) -> Result<()> {
        let path = self.dir.join(format!("checkpoint.{}", self.epoch));
        let mut failed = None;
        let written = replace(&path, |file| {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            let mut n = 0;
            for e in entries {
                let e = e.map_err(|e| {
                    failed = Some(e);
                    std::io::Error::other("see above")
                })?;
                out.write_all(&e.encode(salt(self.id, self.epoch, n)))?;
                n += 1;
            }
            let end = Entry { tag: 0, words: [n, self.epoch, 0] };
            out.write_all(&end.encode(salt(self.id, self.epoch, n)))?;
            out.flush()
        });
        written.map_err(|e| {
            failed.unwrap_or_else(|| DeviceError::io(format!("writing {}", path.display()), &e))
        })?;
        discard_older(&self.dir, self.epoch);
        Ok(())
    }
}

/// Hands out the records of a checkpoint; answers with its size in bytes.
fn read_checkpoint(path: &Path, id: u64, epoch: u64, each: &mut dyn FnMut(Entry)) -> Result<u64> {
    let fail = |e| DeviceError::io(format!("reading {}", path.display()), &e);
    let damaged = || {
        let text =
            format!("{}: damaged, truncated or foreign checkpoint; nothing was changed", path.display());
        DeviceError::input(text + "; restore it from a snapshot")
    };
    let file = File::open(path).map_err(fail)?;
    let bytes = file.metadata().map_err(fail)?.len();
    let count = (bytes / ENTRY as u64).checked_sub(1).filter(|_| bytes % ENTRY as u64 == 0);
    let count = count.ok_or_else(damaged)?;
    let (mut file, mut record) = (BufReader::with_capacity(1 << 20, file), [0; ENTRY]);
    for i in 0..=count {
        file.read_exact(&mut record).map_err(fail)?;
        let entry = Entry::decode(&record, salt(id, epoch, i)).ok_or_else(damaged)?;
        match (entry.tag == 0, i == count) {
            (false, false) => each(entry),
            (true, true) if entry.words[0] == count => {}
            _ => return Err(damaged()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No file has so many bytes. What was taken of them in part is given back: the file is as long as its mapping is.
    #[test]
    fn a_log_that_cannot_grow_gives_back_what_it_took() {
        let (file, mapped) = (tempfile::tempfile().unwrap(), FIRST);
        file.set_len(mapped + STEP / 2).unwrap();
        let e = grown(&file, (1 << 62) / ENTRY as u64, mapped).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(file.metadata().unwrap().len(), mapped);
    }

    /// Records that come while data are synced are durable with the next mark; where none come the mark itself is, too.
    #[test]
    fn a_mark_says_no_more_than_was_synced() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 1, 1, &mut |_| ()).unwrap();
        for came in [0, 1, 2] {
            let upto = log.position();
            (0..came).for_each(|n| log.append(Entry { tag: 7, words: [n, 0, 0] }).unwrap());
            let durable = log.mark(upto).unwrap().sync().unwrap();
            let expected = if came == 0 { log.position() } else { upto };
            assert_eq!(durable, expected, "{came} came meanwhile");
        }
    }

    /// A log may be twice as long as the checkpoint before it, from 32 MiB on and to 64 MiB.
    #[test]
    fn a_checkpoint_is_due_where_the_log_is_long_beside_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 1, 1, &mut |_| ()).unwrap();
        for (before, due) in [(0, 32 << 20), (16 << 20, 32 << 20), (20 << 20, 40 << 20), (1 << 30, 64 << 20)]
        {
            log.checkpoint_bytes = before;
            let wants = [due, due + ENTRY as u64].map(|bytes| {
                log.len = bytes / ENTRY as u64;
                log.wants_checkpoint(false)
            });
            assert_eq!(wants, [false, true], "{before}");
        }
    }

    /// After a restart the next checkpoint is due where it was before; the record that ends one counts.
    #[test]
    fn a_log_that_is_opened_again_knows_how_long_its_checkpoint_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 1, 1, &mut |_| ()).unwrap();
        let entry = |n| Entry { tag: 7, words: [n, 0, 0] };
        let checkpoint = log.rotate(100).unwrap();
        checkpoint.write((0..100).map(|n| Ok(entry(n)))).unwrap();
        assert_eq!(log.checkpoint_bytes, 100 * ENTRY as u64);
        drop(log);
        let log = Log::open(dir.path(), 1, 2, &mut |_| ()).unwrap();
        assert_eq!(log.checkpoint_bytes, 101 * ENTRY as u64);
    }
}
