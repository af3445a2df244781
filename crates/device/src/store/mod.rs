//! Where the bytes of the medium lie: memory, sparse files, or a block device.

mod file;
mod free;
pub mod header;
mod holes;
mod locked;
mod memory;
mod shared;
mod stream;
mod wide;

pub use file::{BlockDevice, Sparse};
pub use locked::Locked;
pub use memory::Memory;

use crate::error::Result;

/// Bytes by position. Transfers of distinct bytes may run at the same time from many threads; of the same bytes, either
/// order may win, sector by sector.
pub trait Store: Send + Sync {
    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// What the operating system answers.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Reads `len` bytes from `offset` on, which `take` gets in pieces that follow each other: uncopied where they are in memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn lend(&self, offset: u64, len: u64, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut buf = vec![0; len as usize];
        self.read(offset, &mut buf)?;
        take(&buf);
        Ok(())
    }

    /// Writes `buf` at `offset`.
    ///
    /// # Errors
    /// What the operating system answers, such as a full disk.
    fn write(&self, offset: u64, buf: &[u8]) -> Result<()>;

    /// Whether [`copy`](Self::copy) is quicker than reading and writing.
    fn copies(&self) -> bool {
        false
    }

    /// Copies `len` bytes from one position to another; they may overlap.
    ///
    /// # Errors
    /// What the operating system answers.
    fn copy(&self, from: u64, to: u64, len: u64) -> Result<()> {
        let mut buf = vec![0; len as usize];
        self.read(from, &mut buf)?;
        self.write(to, &buf)
    }

    /// Makes `len` bytes from `offset` read as zeroes, giving up their space where that is possible.
    ///
    /// # Errors
    /// What the operating system answers.
    fn zero(&self, offset: u64, len: u64) -> Result<()>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// What the operating system answers.
    fn sync(&self) -> Result<()>;

    /// Whether bytes never written read as zeroes.
    fn starts_zeroed(&self) -> bool {
        true
    }
}
