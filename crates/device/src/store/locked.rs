//! A store in a directory that no other process uses meanwhile.

use super::Store;
use super::header::StoreDir;
use crate::error::Result;
use smrlab_units::forward;

/// A store that keeps its directory locked for as long as it is used.
pub struct Locked {
    store: Box<dyn Store>,
    _dir: StoreDir,
}

impl Locked {
    /// Over `store`, as long as which `dir` is locked.
    pub fn new(store: Box<dyn Store>, dir: StoreDir) -> Self {
        Self { store, _dir: dir }
    }
}

impl Store for Locked {
    forward! { store:
        fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
        fn write(&self, offset: u64, buf: &[u8]) -> Result<()>;
        fn zero(&self, offset: u64, len: u64) -> Result<()>;
        fn sync(&self) -> Result<()>;
        fn starts_zeroed(&self) -> bool;
    }
}
