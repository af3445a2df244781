//! What a flush may claim, and what a lost write leaves behind.

use parking_lot::Mutex;
use smrlab_device::config::StoreKind;
use smrlab_device::machine::Machine;
use smrlab_device::store::Store;
use smrlab_device::{Config, Device, DeviceError, Result};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

const BYTES: usize = 4096;

/// What comes between a device and its store: counts syncs, and lets a write in while the first one armed runs.
#[derive(Default)]
struct Between {
    device: Mutex<Weak<Device>>,
    syncs: AtomicU64,
    /// Where a write is to arrive during the next sync, and whether it can end before that does.
    arrives: Mutex<Option<(u64, bool)>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Told when the store is asked for something.
    asked: Mutex<Option<Sender<()>>>,
    /// Whether syncs fail.
    fails: AtomicBool,
}

impl Between {
    fn seen(&self) {
        if let Some(said) = &*self.asked.lock() {
            let _ = said.send(());
        }
    }

    /// Begins a write; waits until it is done, or until it has begun: its fences wait for the sync that is under way.
    fn arrive(&self, at: u64, ends: bool) {
        let device = self.device.lock().upgrade().unwrap();
        let (said, seen): (_, Receiver<()>) = channel();
        *self.asked.lock() = Some(said);
        let writer = std::thread::spawn(move || device.write(at, &[0xcc; BYTES], false).unwrap());
        if ends {
            writer.join().unwrap();
        } else {
            seen.recv().unwrap();
            *self.writer.lock() = Some(writer);
        }
        *self.asked.lock() = None;
    }
}

struct Watched {
    inner: Box<dyn Store>,
    between: Arc<Between>,
}

impl Store for Watched {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.between.seen();
        self.inner.read(offset, buf)
    }
    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.between.seen();
        self.inner.write(offset, buf)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.zero(offset, len)
    }
    fn sync(&self) -> Result<()> {
        self.between.syncs.fetch_add(1, Ordering::SeqCst);
        if self.between.fails.load(Ordering::SeqCst) {
            return Err(DeviceError::new(libc::EIO, "a dead disk"));
        }
        // What arrives in the middle may be in the store, but not in what this sync began with.
        self.inner.sync()?;
        let arrives = self.between.arrives.lock().take();
        if let Some((at, ends)) = arrives {
            self.between.arrive(at, ends);
        }
        Ok(())
    }
}

fn config(layer: &str, dir: &Path) -> Config {
    let store = StoreKind::Directory(dir.join("store"));
    Config { map_budget: 1 << 20, ..Config::new("t", "tiny", layer, store) }
}

fn watched(layer: &str, dir: &Path) -> (Arc<Device>, Arc<Between>) {
    let between = Arc::new(Between::default());
    let own = between.clone();
    let machine = Machine {
        between: Arc::new(move |_, inner| Box::new(Watched { inner, between: own.clone() })),
        ..Machine::default()
    };
    let device = Device::open_on(config(layer, dir), machine).unwrap();
    *between.device.lock() = Arc::downgrade(&device);
    (device, between)
}

/// The next flush syncs the store for what came while the one before ran; one after that has nothing to do.
#[test]
fn a_flush_does_not_claim_what_arrived_while_it_ran() {
    for layer in ["cmr", "raw,tracks=3"] {
        let dir = tempfile::tempdir().unwrap();
        let (device, between) = watched(layer, dir.path());
        let syncs = || between.syncs.load(Ordering::SeqCst);
        device.write(0, &[0xaa; BYTES], false).unwrap();
        *between.arrives.lock() = Some((1 << 16, true));
        let before = syncs();
        device.flush().unwrap();
        assert_eq!(syncs(), before + 1, "{layer}");
        device.flush().unwrap();
        assert_eq!(syncs(), before + 2, "{layer}: the flush claimed a write that came while it ran");
        device.flush().unwrap();
        assert_eq!(syncs(), before + 2, "{layer}: nothing came since");
    }
}

/// Whatever is forced is durable when it is answered, and what is not is so with the next flush.
#[test]
fn what_is_forced_is_durable() {
    for layer in ["cmr", "raw,tracks=3", "rmw", "disk-cache,cache=5%"] {
        let dir = tempfile::tempdir().unwrap();
        let (device, between) = watched(layer, dir.path());
        let synced = |act: &dyn Fn() -> Result<()>| {
            let before = between.syncs.load(Ordering::SeqCst);
            act().unwrap();
            between.syncs.load(Ordering::SeqCst) - before
        };
        for (fua, syncs) in [(true, [1, 0]), (false, [0, 1])] {
            let write = || device.write(0, &[0xaa; BYTES], fua);
            assert_eq!([synced(&write), synced(&|| device.flush())], syncs, "{layer}: a write, {fua}");
            // Where blocks can be given back zeroes may be nothing new.
            let zero = || device.zero(0, BYTES as u64, fua);
            let zeroes = device.can_trim() || [synced(&zero), synced(&|| device.flush())] == syncs;
            assert!(zeroes, "{layer}: zeroes, {fua}");
        }
    }
}

/// A checkpoint has what was written while it was made: that is durable before it counts.
#[test]
fn what_a_checkpoint_says_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let (device, between) = watched("cmr", dir.path());
    let (medium, syncs) = (device.medium(None).unwrap(), || between.syncs.load(Ordering::SeqCst));
    medium.write(0, &[0xaa; BYTES]).unwrap();
    let begun = medium.begin_checkpoint(true, |_| ()).unwrap().unwrap();
    medium.write(64, &[0xbb; BYTES]).unwrap();
    let before = syncs();
    begun.finish().unwrap();
    assert_eq!(syncs(), before + 1);
    medium.sync().unwrap();
    assert_eq!(syncs(), before + 1, "nothing is left to be synced");
    // So it is with the last one, which comes with the end of the server.
    let last = || std::fs::exists(dir.path().join("store/checkpoint.2")).unwrap();
    assert!(!last());
    device.close().unwrap();
    assert!(last());
}

/// What the failed flush had yet to write may be gone: a later one fails, too, though the store would say that all is well.
#[test]
fn no_flush_claims_what_an_earlier_one_lost() {
    for layer in ["cmr", "raw,tracks=3", "rmw"] {
        let dir = tempfile::tempdir().unwrap();
        let (device, between) = watched(layer, dir.path());
        device.write(0, &[0xaa; BYTES], false).unwrap();
        between.fails.store(true, Ordering::SeqCst);
        assert!(device.flush().unwrap_err().to_string().contains("a dead disk"), "{layer}");
        between.fails.store(false, Ordering::SeqCst);
        for _ in 0..2 {
            let e = device.flush().unwrap_err();
            assert!(
                e.errno() == libc::EIO && e.to_string().contains("an earlier flush failed"),
                "{layer}: {e}"
            );
            assert!(device.write(1 << 16, &[0xbb; BYTES], true).is_err(), "{layer}");
        }
    }
}

/// Who watches a device is told of each command that failed with the first block that it was about, whatever it was; what is about the whole
/// device, a flush and the one at the end of an erasure, is told with the first of all.
#[test]
fn a_command_that_failed_is_told_with_its_first_block() {
    for layer in ["cmr", "raw,tracks=3", "rmw", "s-block", "host-aware,zone=64KiB,conventional=10%"] {
        let dir = tempfile::tempdir().unwrap();
        let (device, between) = watched(layer, dir.path());
        device.write(0, &[0xaa; BYTES], false).unwrap();
        between.fails.store(true, Ordering::SeqCst);
        let (size, at) = (BYTES as u64, |block: u64| block * 512);
        let mut read = [0; BYTES];
        let mut asked: Vec<(&str, u64, Result<()>)> = vec![
            ("a flush", 0, device.flush()),
            ("a write", 24, device.write(at(24), &[0xbb; BYTES], true)),
            ("zeroes", 40, device.zero(at(40), size, true)),
        ];
        if device.can_trim() {
            asked.push(("a trim", 16, device.trim(at(16), size, true)));
        }
        asked.push(("an erasure", 0, device.erase(&|_| ())));
        // Nothing is read from it now.
        asked.push(("a read", 32, device.read(at(32), &mut read)));
        let failed = asked.iter().filter(|(_, _, done)| done.is_err());
        let failed: Vec<_> = failed.map(|(what, block, _)| (*what, Some(*block))).collect();
        assert!(failed.len() == asked.len(), "{layer}: only {failed:?} failed");
        let told = device.events.after(0).into_iter().filter(|e| e.kind == "error").map(|e| e.block);
        let told: Vec<_> = asked.iter().map(|(what, ..)| *what).zip(told).collect();
        assert_eq!(told, failed, "{layer}");
    }
}

/// A layer hears that all is durable only if that is so: what it planned meanwhile still needs its fence. With one band's
/// update filling the journal, an update needs one fence before its home, and another before it where the last update may
/// not be durable at home.
#[test]
fn a_layer_does_not_hear_of_what_arrived_while_a_flush_ran() {
    let fences = |device: &Device| device.stats()["media"]["fences"].as_u64().unwrap();
    let next = |arrives: Option<(u64, bool)>| {
        let dir = tempfile::tempdir().unwrap();
        let (device, between) = watched("rmw,journal=on", dir.path());
        device.write(0, &[0xaa; BYTES], false).unwrap();
        *between.arrives.lock() = arrives;
        device.flush().unwrap();
        let writer = between.writer.lock().take();
        if let Some(writer) = writer {
            writer.join().unwrap();
        }
        let before = fences(&device);
        device.write(0, &[0xbb; BYTES], false).unwrap();
        fences(&device) - before
    };
    assert_eq!(next(None), 1, "all was durable");
    assert_eq!(next(Some((0, false))), 2, "an update came while the flush ran");
}

/// Data of a write whose record was lost with the host's power: on a disk whose space starts as zeroes, what is known to be
/// written is all there is. Before the first run, between runs, and behind the last one.
#[test]
fn a_lost_write_leaves_zeroes_wherever_it_was() {
    for layer in ["cmr", "raw,tracks=1"] {
        let dir = tempfile::tempdir().unwrap();
        let open = |boot| {
            Device::open_on(config(layer, dir.path()), Machine { boot, ..Machine::default() }).unwrap()
        };
        let device = open(1);
        let end = device.size() - BYTES as u64;
        let kept = [1u64 << 16, 3 << 16];
        let lost = [0, 2 << 16, 4 << 16, end];
        kept.iter().for_each(|at| device.write(*at, &[0xaa; BYTES], false).unwrap());
        device.flush().unwrap();
        lost.iter().for_each(|at| device.write(*at, &[0xbb; BYTES], false).unwrap());
        drop(device);
        let device = open(2);
        let mut out = [0xee; BYTES];
        for at in lost {
            device.read(at, &mut out).unwrap();
            assert_eq!(out, [0; BYTES], "{layer}: what was lost at {at}");
        }
        for at in kept {
            device.read(at, &mut out).unwrap();
            assert_eq!(out, [0xaa; BYTES], "{layer}: what was flushed at {at}");
        }
    }
}

/// A disk of an array: its syncs are counted, and may fail.
struct Disk {
    inner: Box<dyn Store>,
    syncs: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

impl Store for Disk {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read(offset, buf)
    }
    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.inner.write(offset, buf)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.zero(offset, len)
    }
    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        match self.fails.load(Ordering::SeqCst) {
            true => Err(DeviceError::new(libc::EIO, "a dead disk")),
            false => self.inner.sync(),
        }
    }
}

/// An array's fence leaves a dead disk alone, whose store answers with errors, and has what took its place again.
#[test]
fn a_fence_is_of_the_disks_that_are_alive() {
    let dir = tempfile::tempdir().unwrap();
    let (syncs, fails) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (of, failing) = (syncs.clone(), fails.clone());
    let between = move |disk: usize, inner: Box<dyn Store>| -> Box<dyn Store> {
        let (syncs, fails) = (of.clone(), failing.clone());
        if disk == 1 { Box::new(Disk { inner, syncs, fails }) } else { inner }
    };
    let machine = Machine { between: Arc::new(between), ..Machine::default() };
    let array = Some("raid5,disks=3,chunk=8blk,journal=on".to_owned());
    let device = Device::open_on(Config { array, ..config("cmr", dir.path()) }, machine).unwrap();
    // Of each row all units, so that each disk is written.
    let written = || (0..8).for_each(|row| device.write(row * 8192, &[0xbb; 8192], false).unwrap());
    let synced = || {
        let before = syncs.load(Ordering::SeqCst);
        written();
        syncs.load(Ordering::SeqCst) - before
    };
    assert!(synced() > 0, "a journal needs fences");
    let (array, clock) = device.array().unwrap();
    array.fail(clock, 1).unwrap();
    fails.store(true, Ordering::SeqCst);
    assert_eq!(synced(), 0);
    fails.store(false, Ordering::SeqCst);
    array.replace(clock, 1).unwrap();
    while device.info()["engine"]["disks"][1]["state"] != "whole" {
        device.housekeeping();
    }
    assert!(synced() > 0, "what is rebuilt is a disk like the others");
}
