//! Faults put in on purpose, counted in media operations.

use crate::error::{DeviceError, Result};
use parking_lot::Mutex;
use serde::Deserialize;
use smrlab_units::Blocks;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of a physical block of drives with zones.
pub(crate) const PHYSICAL_OF_ZONES: u32 = 4096;

/// What to break; see `smrlab device inject`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Injection {
    /// Mend everything that was broken before.
    #[serde(default)]
    pub clear: bool,
    /// Blocks of the medium (first, one past the last) that cannot be read until they are written again.
    pub unreadable: Option<(u64, u64)>,
    /// Time that every media operation takes longer, in nanoseconds.
    pub slow_ns: Option<u64>,
    /// The n-th media operation from now fails.
    pub error_at: Option<u64>,
    /// The power goes in the middle of the n-th media operation from now.
    pub cut_at: Option<u64>,
}

/// What is to happen to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out.
    Done,
    /// Its first half is carried out; then the power is gone.
    Cut,
}

/// See the [module](self). Costs one load per operation while nothing is broken.
#[derive(Debug, Default)]
pub struct Faults {
    armed: AtomicBool,
    slow_ns: AtomicU64,
    /// Operations to go; 0: none.
    error_in: AtomicU64,
    cut_in: AtomicU64,
    /// Blocks of a sector of the medium; 0 counts as 1.
    sector: AtomicU64,
    unreadable: Mutex<Vec<(u64, u64)>>,
}

impl Faults {
    /// The medium has sectors of so many blocks: where the power goes, each holds what it held before, or all that is new.
    pub(crate) fn sectors_of(&self, blocks: Blocks) {
        self.sector.store(blocks.0, Relaxed);
    }

    /// How many of the blocks of a write that is cut are written: whole sectors, half of them.
    pub(crate) fn first_half(&self, blocks: u64) -> u64 {
        let sector = self.sector.load(Relaxed).max(1);
        blocks / 2 / sector * sector
    }

    /// Breaks, or mends.
    pub fn inject(&self, what: &Injection) {
        let mut unreadable = self.unreadable.lock();
        if what.clear {
            unreadable.clear();
            self.slow_ns.store(0, Relaxed);
            self.error_in.store(0, Relaxed);
            self.cut_in.store(0, Relaxed);
        }
        unreadable.extend(what.unreadable);
        for (value, field) in
            [(what.slow_ns, &self.slow_ns), (what.error_at, &self.error_in), (what.cut_at, &self.cut_in)]
        {
            if let Some(value) = value {
                field.store(value, Relaxed);
            }
        }
        let counts = [&self.slow_ns, &self.error_in, &self.cut_in];
        self.armed.store(!unreadable.is_empty() || counts.iter().any(|c| c.load(Relaxed) > 0), Relaxed);
    }

    /// Passes an operation on blocks `start..end`.
    ///
    /// # Errors
    /// `EIO` where it is to fail.
    #[inline]
    pub fn pass(&self, write: bool, start: u64, end: u64) -> Result<Fate> {
        if self.armed.load(Relaxed) { self.judge(write, start, end) } else { Ok(Fate::Done) }
    }

    #[cold]
    fn judge(&self, write: bool, start: u64, end: u64) -> Result<Fate> {
        let slow = self.slow_ns.load(Relaxed);
        if slow > 0 {
            std::thread::sleep(Duration::from_nanos(slow));
        }
        let due = |left: &AtomicU64| {
            left.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok_and(|before| before == 1)
        };
        if due(&self.cut_in) {
            return Ok(Fate::Cut);
        }
        if due(&self.error_in) {
            return Err(DeviceError::new(libc::EIO, "injected: this media operation was to fail"));
        }
        let mut unreadable = self.unreadable.lock();
        if write {
            let cut =
                |(a, b): (u64, u64)| [(a, b.min(start)), (a.max(end), b)].into_iter().filter(|(a, b)| a < b);
            *unreadable = unreadable.iter().copied().flat_map(cut).collect();
        } else if let Some((bad, _)) = unreadable.iter().find(|(a, b)| *a < end && *b > start) {
            let bad = start.max(*bad);
            return Err(DeviceError::new(
                libc::EIO,
                format!("injected: block {bad} of the medium is unreadable"),
            ));
        }
        Ok(Fate::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_broken_is_mended_at_once() {
        let faults = Faults::default();
        let broken = Injection {
            slow_ns: Some(1),
            error_at: Some(9),
            cut_at: Some(9),
            unreadable: Some((0, 8)),
            clear: false,
        };
        faults.inject(&broken);
        assert!(faults.armed.load(Relaxed) && faults.pass(false, 0, 1).is_err());
        faults.inject(&Injection { clear: true, ..Injection::default() });
        assert!(!faults.armed.load(Relaxed) && faults.pass(false, 0, 1).is_ok());
        assert_eq!([&faults.slow_ns, &faults.error_in, &faults.cut_in].map(|n| n.load(Relaxed)), [0; 3]);
    }

    /// Blocks 0 to 7 cannot be read: a read names the first of its own that is one of them, and a write of 2 and 3 mends those two.
    #[test]
    fn the_first_block_that_cannot_be_read_is_named() {
        let faults = Faults::default();
        faults.inject(&Injection { unreadable: Some((0, 8)), ..Injection::default() });
        faults.pass(true, 2, 4).unwrap();
        for (read, named) in
            [(0..9, Some(0)), (1..2, Some(1)), (2..4, None), (2..6, Some(4)), (6..7, Some(6)), (8..9, None)]
        {
            let told = faults.pass(false, read.start, read.end).err().map(|e| e.to_string());
            let expected = named.map(|n| format!("injected: block {n} of the medium is unreadable"));
            assert_eq!(told, expected, "{read:?}");
        }
    }

    #[test]
    fn half_of_a_write_is_whole_sectors() {
        let faults = Faults::default();
        assert_eq!([0, 1, 8, 17].map(|n| faults.first_half(n)), [0, 0, 4, 8]);
        faults.sectors_of(Blocks(8));
        assert_eq!([1, 8, 15, 16, 24, 40].map(|n| faults.first_half(n)), [0, 0, 0, 8, 8, 16]);
    }
}
