//! The medium: bytes in a store, destroyed as a shingled head destroys them.

mod durable;
#[cfg(test)]
mod tests;

pub use durable::Begun;

use crate::buffer::Buffer;
use crate::entry::Entry;
use crate::error::{DeviceError, Result};
use crate::faults::{Fate, Faults};
use crate::log::Log;
use crate::run_map::WriteRun;
use crate::shingle::{Piece, Shingle};
use crate::store::Store;
use crate::synced::Synced;
use crate::tag;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use smrlab_stl::WritePart;
use smrlab_units::{BLOCK_BYTES, SimTime};
use std::cell::RefCell;
use std::ops::Range;

/// Zeroes that are written at a time, in blocks.
const ZEROES: u64 = 2048;

/// Writes zeroes with `write`, which takes a first block and bytes, piece by piece; answers with the last piece's answer.
///
/// # Errors
/// Those of `write`.
pub(crate) fn write_zeroes(
    start: u64,
    blocks: u64,
    mut write: impl FnMut(u64, &[u8]) -> Result<SimTime>,
) -> Result<SimTime> {
    let zeroes = Buffer::zeroes((blocks.min(ZEROES) * BLOCK_BYTES) as usize);
    let (mut at, mut ack) = (start, SimTime::ZERO);
    while at < start + blocks {
        let n = ZEROES.min(start + blocks - at);
        ack = write(at, &zeroes[..(n * BLOCK_BYTES) as usize])?;
        at += n;
    }
    Ok(ack)
}

/// Tells of `span` which part holds data and which does not, in order: (from, to, data); `data` ascends.
pub(crate) fn with_gaps(span: Range<u64>, data: Vec<Range<u64>>, out: &mut dyn FnMut(u64, u64, bool)) {
    let mut at = span.start;
    for r in data {
        if at < r.start {
            out(at, r.start, false);
        }
        out(r.start.max(at), r.end, true);
        at = r.end;
    }
    if at < span.end {
        out(at, span.end, false);
    }
}

/// What a destroyed block reads as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The data that destroyed it.
    #[default]
    Data,
    /// Garbage that is the same every time: `0xA5`, with the block's address in its first eight bytes (little endian).
    Performance,
}

/// Runs that are copied at a time, for which writes wait.
const BATCH: usize = 4096;

struct ShingleLog {
    shingle: Shingle,
    log: Option<Log>,
}

/// See the [module](self). Positions and lengths are in blocks of 512 bytes.
pub struct Medium {
    state: RwLock<ShingleLog>,
    store: Box<dyn Store>,
    mode: Mode,
    errors: bool,
    plain: bool,
    logged: bool,
    synced: Synced,
    /// Held by whoever makes a checkpoint.
    alone: Mutex<()>,
    /// What was broken on purpose.
    pub faults: Faults,
}

thread_local! {
    static PIECES: RefCell<Vec<Piece>> = const { RefCell::new(Vec::new()) };
}

/// What destruction looks like to a reader.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// What destroyed blocks read as.
    pub mode: Mode,
    /// Whether reading them is an I/O error.
    pub errors: bool,
}

impl Medium {
    /// A medium over `store`; its state is kept in `log`, if any.
    pub fn new(shingle: Shingle, store: Box<dyn Store>, log: Option<Log>, reading: Reading) -> Self {
        let (plain, logged) = (shingle.plain(), log.is_some());
        let Reading { mode, errors } = reading;
        let state = RwLock::new(ShingleLog { shingle, log });
        let (synced, alone, faults) = Default::default();
        Self { state, store, mode, errors, plain, logged, synced, alone, faults }
    }

    /// Reads blocks from `start`; answers with the first destroyed one, if any.
    ///
    /// # Errors
    /// `EIO` for destroyed blocks where errors were asked for; whatever the store answers.
    pub fn read(&self, start: u64, buf: &mut [u8]) -> Result<Option<u64>> {
        let end = start + buf.len() as u64 / BLOCK_BYTES;
        if self.faults.pass(false, start, end)? == Fate::Cut {
            std::process::abort();
        }
        if self.plain || self.state.read().shingle.clean(start, end) {
            return self.store.read(start * BLOCK_BYTES, buf).map(|()| None);
        }
        self.gather(start, end, buf)
    }

    /// [`read`](Self::read)s blocks, which `take` gets in pieces that follow each other.
    ///
    /// # Errors
    /// As there.
    pub fn lend(&self, start: u64, blocks: u64, take: &mut dyn FnMut(&[u8])) -> Result<Option<u64>> {
        let end = start + blocks;
        if self.faults.pass(false, start, end)? == Fate::Cut {
            std::process::abort();
        }
        if self.plain || self.state.read().shingle.clean(start, end) {
            return self.store.lend(start * BLOCK_BYTES, blocks * BLOCK_BYTES, take).map(|()| None);
        }
        let mut buf = vec![0; (blocks * BLOCK_BYTES) as usize];
        let destroyed = self.gather(start, end, &mut buf)?;
        take(&buf);
        Ok(destroyed)
    }

    #[cold]
    fn gather(&self, start: u64, end: u64, buf: &mut [u8]) -> Result<Option<u64>> {
        let mut pieces = PIECES.take();
        pieces.clear();
        self.state.read().shingle.resolve(start, end, &mut pieces);
        let bad = pieces.iter().find(|p| p.destroyed()).map(|p| p.at);
        let done = match bad {
            Some(block) if self.errors => Err(DeviceError::destroyed(block)),
            _ => pieces.iter().try_for_each(|p| self.fetch(p, start, buf)),
        };
        PIECES.set(pieces);
        done.map(|()| bad)
    }

    fn fetch(&self, p: &Piece, start: u64, buf: &mut [u8]) -> Result<()> {
        let at = ((p.at - start) * BLOCK_BYTES) as usize;
        let part = &mut buf[at..at + (p.blocks * BLOCK_BYTES) as usize];
        if p.destroyed() && self.mode == Mode::Performance {
            for (i, block) in part.chunks_exact_mut(BLOCK_BYTES as usize).enumerate() {
                block.fill(0xA5);
                block[..8].copy_from_slice(&(p.at + i as u64).to_le_bytes());
            }
            return Ok(());
        }
        self.store.read(p.from * BLOCK_BYTES, part)
    }

    /// Writes blocks from `start`, destroying what lies in reach.
    ///
    /// # Errors
    /// Whatever the store or the log answers, such as a full disk; nothing is destroyed then.
    #[inline]
    pub fn write(&self, start: u64, buf: &[u8]) -> Result<()> {
        self.write_parts(start, &[WritePart::Bytes(buf)])
    }

    /// One [`write`](Self::write) of `parts`, one behind the other, each of whole blocks.
    ///
    /// # Errors
    /// As there.
    pub fn write_parts(&self, start: u64, parts: &[WritePart<'_>]) -> Result<()> {
        let bytes = |part: &WritePart<'_>| match part {
            WritePart::Bytes(bytes) => bytes.len() as u64,
            WritePart::Medium(_, blocks) => blocks.bytes(),
        };
        let end = start + parts.iter().map(bytes).sum::<u64>() / BLOCK_BYTES;
        let fate = self.faults.pass(true, start, end)?;
        let stop =
            if fate == Fate::Cut { start + self.faults.first_half(end - start) } else { end } * BLOCK_BYTES;
        if !self.plain
            && let Some(state) = self.state.try_read()
        {
            // While the bytes move.
            state.shingle.prefetch(start);
        }
        let mut at = start * BLOCK_BYTES;
        for part in parts {
            let n = bytes(part).min(stop - at);
            match *part {
                WritePart::Bytes(bytes) => self.store.write(at, &bytes[..n as usize])?,
                WritePart::Medium(from, _) => self.store.copy(from.0 * BLOCK_BYTES, at, n)?,
            }
            at += n;
        }
        if fate == Fate::Cut {
            if start * BLOCK_BYTES < stop {
                self.note(start, stop / BLOCK_BYTES)?;
            }
            std::process::abort();
        }
        self.note(start, end)
    }

    /// See [`smrlab_stl::Medium::read_later`]: data that lie at their own address in a store that copies by itself.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_later(&self, start: u64, blocks: u64) -> Result<bool> {
        let end = start + blocks;
        if !self.store.copies() || !(self.plain || self.intact(start, end)) {
            return Ok(false);
        }
        if self.faults.pass(false, start, end)? == Fate::Cut {
            std::process::abort();
        }
        Ok(true)
    }

    /// Whether none of these blocks is destroyed: looked at block by block where it cannot be seen at once, as of a band that was
    /// written in several pieces.
    fn intact(&self, start: u64, end: u64) -> bool {
        let state = self.state.read();
        if state.shingle.clean(start, end) {
            return true;
        }
        let mut pieces = PIECES.take();
        pieces.clear();
        state.shingle.resolve(start, end, &mut pieces);
        let intact = !pieces.iter().any(Piece::destroyed);
        PIECES.set(pieces);
        intact
    }

    /// Writes zeroes, destroying what lies in reach.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_zeroes(&self, start: u64, blocks: u64) -> Result<()> {
        self.store.zero(start * BLOCK_BYTES, blocks * BLOCK_BYTES)?;
        self.note(start, start + blocks)
    }

    #[inline]
    fn note(&self, start: u64, end: u64) -> Result<()> {
        if self.plain && !self.logged && self.state.read().shingle.known(start, end) {
            return Ok(());
        }
        let mut guard = self.state.write();
        let ShingleLog { shingle, log } = &mut *guard;
        shingle.reserve()?;
        if let Some(log) = log {
            log.append(Entry { tag: tag::WRITE, words: [start, end, 0] })?;
        }
        shingle.write(start, end);
        Ok(())
    }

    /// Makes blocks never written: they read as zeroes and destroy nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn forget(&self, start: u64, end: u64) -> Result<()> {
        self.store.zero(start * BLOCK_BYTES, (end - start) * BLOCK_BYTES)?;
        let mut state = self.state.write();
        state.shingle.reserve()?;
        if let Some(log) = &mut state.log {
            log.append(Entry { tag: tag::FORGET, words: [start, end, 0] })?;
        }
        state.shingle.forget(start, end);
        Ok(())
    }

    /// After a loss of power: blocks that were never written, as far as is known, read as zeroes again, whatever part of a
    /// lost write is there.
    ///
    /// # Errors
    /// What the store answers.
    pub fn forget_unknown(&self) -> Result<()> {
        if !self.store.starts_zeroed() {
            return Ok(());
        }
        let state = self.state.read();
        let (mut known, end) = (0, state.shingle.blocks());
        for written in state.shingle.written(0, end).chain(std::iter::once(end..end)) {
            if known < written.start {
                self.store.zero(known * BLOCK_BYTES, (written.start - known) * BLOCK_BYTES)?;
            }
            known = written.end;
        }
        Ok(())
    }

    /// Calls `f` with the runs as they are now.
    pub fn with_runs<T>(&self, f: impl FnOnce(&Shingle) -> T) -> T {
        f(&self.state.read().shingle)
    }

    /// Where data may lie in `start..end`: ascending ranges with whether they hold any; the rest reads as zeroes.
    pub fn extents(&self, start: u64, end: u64, out: &mut dyn FnMut(u64, u64, bool)) {
        if !self.store.starts_zeroed() {
            return out(start, end, true);
        }
        let mut pieces = Vec::new();
        self.state.read().shingle.resolve(start, end, &mut pieces);
        let mut joined: Option<(u64, u64, bool)> = None;
        for p in &pieces {
            let data = p.written();
            match &mut joined {
                Some((_, to, d)) if *d == data => *to = p.at + p.blocks,
                _ => {
                    if let Some((a, b, d)) = joined.replace((p.at, p.at + p.blocks, data)) {
                        out(a, b, d);
                    }
                }
            }
        }
        if let Some((a, b, d)) = joined {
            out(a, b, d);
        }
    }
}

/// Applies a record of the log to a medium's state; answers with it if it is a layer's.
pub fn recover(shingle: &mut Shingle, entry: Entry) -> Option<Entry> {
    let [start, end, seq] = entry.words;
    match entry.tag {
        tag::WRITE => shingle.write(start, end),
        tag::RUN => shingle.restore(WriteRun { start, end, seq }),
        tag::FORGET => shingle.forget(start, end),
        _ => return Some(entry),
    }
    None
}
