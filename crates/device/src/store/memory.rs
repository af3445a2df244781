//! Bytes in memory that is taken only where something was written.
//!
//! What a layer moves is not copied: it lies in memory once, until one of the two places is written.
#![allow(unsafe_code)]

use super::shared::Shared;
use super::{Store, stream};
use crate::error::{DeviceError, Result};
use memmap2::{MmapOptions, MmapRaw};
use parking_lot::{RwLock, RwLockWriteGuard};
use smrlab_units::BLOCK_BYTES;

/// A store of at most this part of the machine's memory takes it in huge pages: large transfers then spend less time
/// looking for their pages, and scattered writes take more than they need.
const ROOMY: u64 = 8;

/// Bytes of memory that the machine has.
fn physical() -> u64 {
    // SAFETY: plain questions to the system.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).unwrap_or(0) * u64::try_from(size).unwrap_or(0)
}

/// Anonymous memory; lost with the process.
pub struct Memory {
    map: MmapRaw,
    /// Where blocks lie. Transfers hold it for as long as they take; who changes it is alone.
    shared: RwLock<Shared>,
}

impl Memory {
    /// Room for `bytes`, of which none is taken yet.
    ///
    /// # Errors
    /// When the address space does not suffice.
    pub fn new(bytes: u64) -> Result<Self> {
        let map = MmapOptions::new().len(bytes as usize).no_reserve_swap().map_anon();
        let map = map.map_err(|e| DeviceError::io(format!("a memory store of {bytes} bytes"), &e))?;
        let map = MmapRaw::from(map);
        if bytes <= physical() / ROOMY {
            // SAFETY: advice about a mapping of our own; where it is not taken nothing changes.
            unsafe { libc::madvise(map.as_mut_ptr().cast(), map.len(), libc::MADV_HUGEPAGE) };
        }
        // In a larger one, which is mostly empty, blocks are copied.
        let shared = Shared::new(if bytes <= physical() { bytes / BLOCK_BYTES } else { 0 });
        Ok(Self { map, shared: RwLock::new(shared) })
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        if !(offset | len).is_multiple_of(BLOCK_BYTES) {
            return Err(DeviceError::input("a store in memory has whole blocks only"));
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.map.len() as u64 => Ok(()),
            _ => Err(DeviceError::new(libc::EIO, "beyond the end of the store")),
        }
    }

    /// Where a byte of memory is; within the mapping, because all places are.
    fn at(&self, place: u64) -> *mut u8 {
        debug_assert!(place <= self.map.len() as u64);
        // SAFETY: within the mapping or just behind it.
        unsafe { self.map.as_mut_ptr().add(place as usize) }
    }

    /// Fills `buf` from `offset`.
    fn fetch(&self, shared: &Shared, mut offset: u64, mut buf: &mut [u8]) {
        while !buf.is_empty() {
            let (place, n) = shared.run(offset, buf.len() as u64);
            let (part, behind) = buf.split_at_mut(n as usize);
            // SAFETY: `place` is valid for `n` bytes and never aliased by a reference. Transfers of the same bytes at
            // the same time may tear, as on any disk; callers that mind do not overlap them.
            unsafe { std::ptr::copy_nonoverlapping(self.at(place), part.as_mut_ptr(), part.len()) };
            (buf, offset) = (behind, offset + n);
        }
    }

    /// Puts `buf` at `offset`, on blocks that are not shared.
    fn put(&self, shared: &Shared, mut offset: u64, mut buf: &[u8]) {
        let large = buf.len() >= stream::LARGE;
        while !buf.is_empty() {
            let (place, n) = shared.run(offset, buf.len() as u64);
            let (part, behind) = buf.split_at(n as usize);
            shared.touch(place, n);
            let to = self.at(place);
            // SAFETY: as in `fetch`.
            unsafe {
                if large {
                    stream::copy(part, to);
                } else {
                    std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                }
            }
            (buf, offset) = (behind, offset + n);
        }
    }
}

impl Store for Memory {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, buf.len() as u64)?;
        self.fetch(&self.shared.read(), offset, buf);
        Ok(())
    }

    fn lend(&self, offset: u64, len: u64, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.check(offset, len)?;
        // Nobody transfers meanwhile.
        let shared = self.shared.write();
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let (place, n) = shared.run(at, end - at);
            // SAFETY: within the mapping, which is always readable; whoever writes to it holds the lock.
            take(unsafe { std::slice::from_raw_parts(self.at(place), n as usize) });
            at += n;
        }
        Ok(())
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let len = buf.len() as u64;
        self.check(offset, len)?;
        let mut shared = self.shared.read();
        if shared.shares(offset, len) {
            drop(shared);
            let mut alone = self.shared.write();
            alone.own(offset, len);
            shared = RwLockWriteGuard::downgrade(alone);
        }
        self.put(&shared, offset, buf);
        Ok(())
    }

    fn copies(&self) -> bool {
        true
    }

    fn copy(&self, from: u64, to: u64, len: u64) -> Result<()> {
        self.check(from, len)?;
        self.check(to, len)?;
        if from == to {
            return Ok(());
        }
        if !self.shared.write().share(from, to, len) {
            // SAFETY: both lie within the mapping; as in `fetch`.
            unsafe { std::ptr::copy(self.at(from), self.at(to), len as usize) };
        }
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        const PAGE: u64 = 4096;
        self.check(offset, len)?;
        let mut shared = self.shared.write();
        shared.own(offset, len);
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let (place, n) = shared.run(at, end - at);
            let (first, last) = (place.next_multiple_of(PAGE), (place + n) / PAGE * PAGE);
            // SAFETY: all within the mapping; whole private anonymous pages come back zeroed after MADV_DONTNEED.
            unsafe {
                if first >= last {
                    std::ptr::write_bytes(self.at(place), 0, n as usize);
                } else {
                    std::ptr::write_bytes(self.at(place), 0, (first - place) as usize);
                    std::ptr::write_bytes(self.at(last), 0, (place + n - last) as usize);
                    if libc::madvise(self.at(first).cast(), (last - first) as usize, libc::MADV_DONTNEED) != 0
                    {
                        return Err(DeviceError::io("giving memory back", &std::io::Error::last_os_error()));
                    }
                }
            }
            at += n;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    const BLOCKS: u64 = 160;

    fn small() -> Memory {
        Memory::new(BLOCKS * BLOCK_BYTES).unwrap()
    }

    /// Transfers, copies and zeroes of any blocks against plain bytes.
    #[test]
    fn what_is_copied_reads_as_copied() {
        for seed in 1..40 {
            let (store, mut random) = (small(), Rng::new(seed));
            let mut plain = vec![0; (BLOCKS * BLOCK_BYTES) as usize];
            for step in 0..400u64 {
                let len = 1 + random.below(BLOCKS / 2);
                let [from, to] = [(); 2].map(|()| random.below(BLOCKS - len + 1) * BLOCK_BYTES);
                let len = len * BLOCK_BYTES;
                let target = to as usize..(to + len) as usize;
                match random.below(8) {
                    0..3 => {
                        let data: Vec<u8> = (0..len).map(|i| (i / 512 + step * 7 + 1) as u8).collect();
                        store.write(to, &data).unwrap();
                        plain[target].copy_from_slice(&data);
                    }
                    3..7 => {
                        store.copy(from, to, len).unwrap();
                        plain.copy_within(from as usize..(from + len) as usize, to as usize);
                    }
                    _ => {
                        store.zero(to, len).unwrap();
                        plain[target].fill(0);
                    }
                }
                let mut all = vec![0xee; plain.len()];
                store.read(0, &mut all).unwrap();
                assert!(all == plain, "seed {seed}, step {step}");
                all.clear();
                store.lend(from, len, &mut |piece| all.extend(piece)).unwrap();
                assert!(all == plain[from as usize..(from + len) as usize], "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn copies_take_no_memory_until_they_are_written() {
        let store = small();
        let place = |block: u64| store.shared.read().run(block * BLOCK_BYTES, BLOCK_BYTES).0 / BLOCK_BYTES;
        store.write(0, &[7; 3 * 512]).unwrap();
        store.copy(512, 20 * 512, 2 * 512).unwrap();
        assert_eq!([1, 2, 20, 21].map(place), [1, 2, 1, 2]);
        // What was there before is free for who needs a block of his own.
        store.write(512, &[9; 2 * 512]).unwrap();
        assert_eq!([1, 2, 20, 21].map(place), [20, 21, 1, 2]);
    }

    /// A write over blocks of which some are shared lies in a row, where there is room for that.
    #[test]
    fn what_is_written_at_once_lies_in_a_row() {
        let store = small();
        let run = |block: u64, n: u64| store.shared.read().run(block * BLOCK_BYTES, n * BLOCK_BYTES);
        store.write(0, &[7; 8 * 512]).unwrap();
        store.copy(0, 20 * 512, 4 * 512).unwrap();
        store.copy(0, 60 * 512, 8 * 512).unwrap();
        store.write(21 * 512, &[9; 8 * 512]).unwrap();
        assert_eq!(run(21, 8), (60 * 512, 8 * 512), "exactly as long");
        // What it had before is free, and one run with what was free beside it.
        store.write(0, &[5; 8 * 512]).unwrap();
        assert_eq!(run(0, 8), (20 * 512, 8 * 512));
    }

    /// A block that lies where 300 others do, of which each gets one of its own in turn: the last needs none.
    #[test]
    fn many_blocks_lie_where_one_does() {
        let store = Memory::new(302 * BLOCK_BYTES).unwrap();
        let at = |block: u64| block * BLOCK_BYTES;
        store.write(0, &[7; 512]).unwrap();
        (1..302).for_each(|block| store.copy(0, at(block), 512).unwrap());
        let mut out = [0; 512];
        for block in 0..302 {
            store.read(at(block), &mut out).unwrap();
            assert_eq!(out, [7; 512], "{block}");
            store.write(at(block), &[9; 512]).unwrap();
        }
        for block in 0..302 {
            store.read(at(block), &mut out).unwrap();
            assert_eq!(out, [9; 512], "{block}");
        }
    }

    #[test]
    fn beyond_the_end_is_an_error() {
        let (store, end) = (small(), BLOCKS * BLOCK_BYTES);
        assert!(store.read(end - 512, &mut [0; 1024]).is_err());
        assert!(store.write(u64::MAX / 512 * 512, &[0; 512]).is_err());
        assert!(store.copy(0, end - 512, 1024).is_err() && store.copy(end - 512, 0, 1024).is_err());
        assert!(store.zero(end, 512).is_err() && store.read(1, &mut [0; 512]).is_err());
        assert!(store.lend(end, 512, &mut |_| panic!("there is nothing")).is_err());
    }
}
