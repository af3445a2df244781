use super::*;
use crate::scan::{Position, Scan};
use crate::store::Memory;
use crate::tracks::Tracks;
use smrlab_disk::{Geometry, GeometrySpec, ZoneSpec};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

/// Memory that tells when it is synced, and fails then if it is told to.
struct Told {
    bytes: Arc<Memory>,
    zeroed: bool,
    synced: Box<dyn Fn() -> Result<()> + Send + Sync>,
}

impl Store for Told {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bytes.read(offset, buf)
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.bytes.write(offset, buf)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.bytes.zero(offset, len)
    }

    fn sync(&self) -> Result<()> {
        (self.synced)()
    }

    fn starts_zeroed(&self) -> bool {
        self.zeroed
    }
}

/// Five tracks of eight blocks below a head of two tracks.
fn medium(store: Told, log: Option<Log>) -> Medium {
    let geometry = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(5, 8)])).unwrap();
    let shingle = Shingle::new(Arc::new(Tracks::new(Arc::new(geometry))), 2);
    Medium::new(shingle, Box::new(store), log, Reading { mode: Mode::Data, errors: false })
}

fn memory() -> Arc<Memory> {
    Arc::new(Memory::new(40 * BLOCK_BYTES).unwrap())
}

/// A medium with a log in `dir` that calls `synced` whenever its data are synced.
fn logged(dir: &Path, synced: impl Fn() -> Result<()> + Send + Sync + 'static) -> Medium {
    let log = Log::open(dir, 1, 1, &mut |_| ()).unwrap();
    medium(Told { bytes: memory(), zeroed: true, synced: Box::new(synced) }, Some(log))
}

/// Up to where a loss of power leaves what is in the logs from `first` on.
fn durable(dir: &Path, first: u64) -> Position {
    Scan::of(dir, 1, first).unwrap().holds(2)
}

/// When data are synced the log says nothing yet of the writes that made them; and nothing at all if they cannot be synced.
#[test]
fn data_are_durable_before_the_log_says_so() {
    let (dir, seen) = (tempfile::tempdir().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let (path, notes) = (dir.path().to_owned(), seen.clone());
    let medium = logged(dir.path(), move || {
        let mut notes = notes.lock();
        notes.push(durable(&path, 0));
        match notes.len() {
            3 => Err(DeviceError::new(libc::EIO, "no more")),
            _ => Ok(()),
        }
    });
    let mut said = vec![durable(dir.path(), 0)];
    for _ in 0..2 {
        medium.write(0, &[7; 512]).unwrap();
        let written = medium.position().unwrap();
        assert!(medium.sync().unwrap());
        assert!(!medium.sync().unwrap(), "there is nothing to do");
        said.push(durable(dir.path(), 0));
        assert!(said.last() >= Some(&written));
    }
    medium.write(8, &[7; 512]).unwrap();
    medium.sync().unwrap_err();
    assert_eq!(*seen.lock(), said);
    assert_eq!(durable(dir.path(), 0), said[2]);
}

/// What a checkpoint copied may be newer than what was synced: it is synced before the checkpoint is there. If it cannot be, there is none.
#[test]
fn what_a_checkpoint_copied_is_durable_before_it_counts() {
    for fails in [false, true] {
        let (dir, seen) = (tempfile::tempdir().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (checkpoint, notes) = (dir.path().join("checkpoint.1"), seen.clone());
        let path = checkpoint.clone();
        let medium = logged(dir.path(), move || {
            notes.lock().push(path.exists());
            if fails { Err(DeviceError::new(libc::EIO, "no more")) } else { Ok(()) }
        });
        medium.write(0, &[7; 512]).unwrap();
        let begun = medium.begin_checkpoint(true, |_| ()).unwrap().unwrap();
        medium.write(20, &[7; 512]).unwrap();
        assert_eq!(begun.finish().is_err(), fails);
        assert_eq!(*seen.lock(), [false]);
        assert_eq!(checkpoint.exists(), !fails);
        // Both writes are there after a kill, and after a loss of power where the checkpoint is.
        drop(medium);
        for boot in [1, 2] {
            let mut held = Vec::new();
            let _log = Log::open(dir.path(), 1, boot, &mut |e| held.push(e.words[0])).unwrap();
            held.dedup();
            let expected: &[u64] = if boot == 1 || !fails { &[0, 20] } else { &[] };
            held.sort_unstable();
            held.dedup();
            assert_eq!(held, expected, "boot {boot}, fails: {fails}");
        }
    }
}

/// Blocks 4 to 6 and 10 were written. What a lost write left before, between and behind them, to the end, is zeroes again; not where
/// zeroes were never promised.
#[test]
fn what_a_lost_write_left_is_forgotten_everywhere() {
    for zeroed in [true, false] {
        let bytes = memory();
        let medium = medium(Told { bytes: bytes.clone(), zeroed, synced: Box::new(|| Ok(())) }, None);
        bytes.write(0, &[9; 40 * 512]).unwrap();
        medium.write(4, &[7; 2 * 512]).unwrap();
        medium.write(10, &[7; 512]).unwrap();
        medium.forget_unknown().unwrap();
        let lost = if zeroed { 0 } else { 9 };
        for block in 0..40 {
            let mut out = [1; 512];
            bytes.read(block * 512, &mut out).unwrap();
            let expected = if matches!(block, 4 | 5 | 10) { 7 } else { lost };
            assert_eq!(out, [expected; 512], "block {block}, zeroed: {zeroed}");
        }
    }
}

/// Where nothing was written there may be a hole; on a block device nobody knows what is there.
#[test]
fn holes_are_told_where_zeroes_are() {
    for (zeroed, expected) in [
        (true, vec![(2, 4, false), (4, 6, true), (6, 10, false), (10, 11, true), (11, 12, false)]),
        (false, vec![(2, 12, true)]),
    ] {
        let medium = medium(Told { bytes: memory(), zeroed, synced: Box::new(|| Ok(())) }, None);
        medium.write(4, &[7; 2 * 512]).unwrap();
        medium.write(10, &[7; 512]).unwrap();
        let mut told = Vec::new();
        medium.extents(2, 12, &mut |from, to, data| told.push((from, to, data)));
        assert_eq!(told, expected);
    }
}

/// What is written while data are synced is not in the checkpoint that they are synced for: a loss of power leaves none of it.
#[test]
fn a_checkpoint_has_nothing_that_came_during_its_sync() {
    let (dir, own) = (tempfile::tempdir().unwrap(), Arc::new(OnceLock::<Weak<Medium>>::new()));
    let late = own.clone();
    let medium = Arc::new(logged(dir.path(), move || match late.get().and_then(Weak::upgrade) {
        Some(medium) => medium.write(30, &[7; 512]),
        None => Ok(()),
    }));
    medium.write(0, &[7; 512]).unwrap();
    let begun = medium.begin_checkpoint(true, |_| ()).unwrap().unwrap();
    own.set(Arc::downgrade(&medium)).unwrap();
    begun.finish().unwrap();
    drop(medium);
    let mut held = Vec::new();
    let _log = Log::open(dir.path(), 1, 2, &mut |e| held.push(e.words[0])).unwrap();
    assert_eq!(held, [0]);
}

/// A map that has no room in its file takes no more writes: they fail before the bytes that they would need a run for are logged.
#[test]
fn a_write_whose_run_has_no_room_fails() {
    let (dir, spilled) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let blocks = 40_000u64;
    let geometry = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(5_000, 8)])).unwrap();
    let mut shingle = Shingle::new(Arc::new(Tracks::new(Arc::new(geometry))), 1);
    shingle.spill_into(spilled.path(), 1).unwrap();
    let log = Log::open(dir.path(), 1, 1, &mut |_| ()).unwrap();
    let store = Box::new(Memory::new(blocks * BLOCK_BYTES).unwrap());
    let medium = Medium::new(shingle, store, Some(log), Reading { mode: Mode::Data, errors: false });
    let write = |n: u64| medium.write(2 * n, &[7; 512]);
    (0..8_000).for_each(|n| write(n).unwrap());
    medium.state.write().shingle.disk_is_full();
    let failed = (8_000..blocks / 2).find_map(|n| Some((n, write(n).err()?)));
    let (n, e) = failed.expect("the map grew without room");
    assert!(e.to_string().contains("spilling the run map into"), "{e}");
    drop(medium);
    let mut held = 0;
    let _log = Log::open(dir.path(), 1, 1, &mut |_| held += 1).unwrap();
    assert_eq!(held, n, "what failed is logged");
}
