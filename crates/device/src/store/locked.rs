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
        fn lend(&self, offset: u64, len: u64, take: &mut dyn FnMut(&[u8])) -> Result<()>;
        fn write(&self, offset: u64, buf: &[u8]) -> Result<()>;
        fn copies(&self) -> bool;
        fn copy(&self, from: u64, to: u64, len: u64) -> Result<()>;
        fn zero(&self, offset: u64, len: u64) -> Result<()>;
        fn sync(&self) -> Result<()>;
        fn starts_zeroed(&self) -> bool;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use super::super::header::{Header, fresh_id};
    use super::*;

    /// What a store does in a quicker way of its own it does that way under a lock too: memory copies nothing that it lends, and
    /// refuses a copy of what is no block.
    #[test]
    fn a_locked_store_lends_and_copies_as_the_one_within() {
        let dir = tempfile::tempdir().unwrap();
        let (layer, drive) = (String::new(), String::new());
        let header = Header { id: fresh_id(), blocks: 2, layer, drive, device: None };
        let dir = StoreDir::create(&dir.path().join("store"), header).unwrap();
        let store = Locked::new(Box::new(Memory::new(1024).unwrap()), dir);
        let mut at = [0; 2];
        at.iter_mut().for_each(|at| store.lend(512, 512, &mut |b| *at = b.as_ptr() as usize).unwrap());
        assert_eq!((at[0] % 512, at[0]), (0, at[1]));
        store.write(0, &[7; 512]).unwrap();
        store.copy(0, 512, 512).unwrap();
        assert!(store.copies() && store.copy(0, 1, 1).is_err());
    }
}
