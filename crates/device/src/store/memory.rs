//! Bytes in memory that is taken only where something was written.
#![allow(unsafe_code)]

use super::Store;
use crate::error::{DeviceError, Result};
use memmap2::{MmapOptions, MmapRaw};

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
        Ok(Self { map })
    }

    fn at(&self, offset: u64, len: usize) -> Result<*mut u8> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.map.len() as u64) {
            return Err(DeviceError::new(libc::EIO, "beyond the end of the store"));
        }
        // SAFETY: within the mapping, as just checked.
        Ok(unsafe { self.map.as_mut_ptr().add(offset as usize) })
    }
}

impl Store for Memory {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let from = self.at(offset, buf.len())?;
        // SAFETY: `from` is valid for `buf.len()` bytes and never aliased by a reference. Transfers of the same bytes
        // at the same time may tear, as on any disk; callers that mind do not overlap them.
        unsafe { std::ptr::copy_nonoverlapping(from, buf.as_mut_ptr(), buf.len()) };
        Ok(())
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let to = self.at(offset, buf.len())?;
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(buf.as_ptr(), to, buf.len()) };
        Ok(())
    }

    fn copies(&self) -> bool {
        true
    }

    fn copy(&self, from: u64, to: u64, len: u64) -> Result<()> {
        let (from, to) = (self.at(from, len as usize)?, self.at(to, len as usize)?);
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy(from, to, len as usize) };
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        const PAGE: u64 = 4096;
        let start = self.at(offset, len as usize)?;
        let (first, last) = (offset.next_multiple_of(PAGE), (offset + len) / PAGE * PAGE);
        // SAFETY: all within the mapping; whole private anonymous pages come back zeroed after MADV_DONTNEED.
        unsafe {
            if first >= last {
                std::ptr::write_bytes(start, 0, len as usize);
                return Ok(());
            }
            std::ptr::write_bytes(start, 0, (first - offset) as usize);
            std::ptr::write_bytes(
                self.map.as_mut_ptr().add(last as usize),
                0,
                (offset + len - last) as usize,
            );
            let pages = self.map.as_mut_ptr().add(first as usize).cast();
            if libc::madvise(pages, (last - first) as usize, libc::MADV_DONTNEED) != 0 {
                return Err(DeviceError::io("giving memory back", &std::io::Error::last_os_error()));
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
