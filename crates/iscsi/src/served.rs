//! A served device as a SCSI disk.

use crate::chap::Secrets;
use crate::erasure::Erasure;
use crate::target::Target;
use parking_lot::{Mutex, RwLock};
use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::store::header::{replace, sync_directory};
use smrlab_device::{Device, DeviceError};
use smrlab_scsi::{
    Change, Disk, Done, Erasing, Extents, Facts, Fault, Kind, Modes, Reservations, SelfTest, Sense, Usage,
};
use smrlab_stl::Refusal;
use smrlab_units::{Blocks, Lba, Zone, ZoneAction, ZoneStatistics};
use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Commands of a session that the modelled drive may have at a time; a SATA drive's queue is as deep.
const DEPTH: usize = 32;
/// Self-tests that are told of.
const TESTS: usize = 20;
/// Where a store has the modes that a host saved, and reservations that are kept.
const SAVED: &str = "modes";
const RESERVED: &str = "reservations";

/// Serves a device at `address` (HOST:PORT) until the process ends; answers with its target.
///
/// # Errors
/// When nobody can listen there; when the file of secrets is none.
pub fn listen(device: Arc<Device>, address: &str) -> smrlab_device::Result<Arc<Target>> {
    let fail = |e| DeviceError::io(format!("iSCSI at {address}"), &e);
    let listener = TcpListener::bind(address).map_err(fail)?;
    // In modelled time commands wait for the drive, and its scheduler chooses among them.
    let workers = if device.config().timing == Timing::Model { DEPTH } else { 1 };
    let name = target_name(&device.config().name);
    let secrets = device.config().chap.as_deref().map(Secrets::read).transpose();
    let secrets = secrets.map_err(DeviceError::input)?;
    let target = Target::new(name, disk(device)?, workers).guarded(secrets);
    let target = Arc::new(target);
    crate::listener::listen(target.clone(), listener).map_err(fail)?;
    Ok(target)
}

/// A served device as a SCSI disk.
///
/// # Errors
/// When what a host saved cannot be read.
pub fn disk(device: Arc<Device>) -> smrlab_device::Result<Box<dyn Disk + Send + Sync>> {
    Ok(Box::new(Served::new(device)?))
}

/// The name of a device's target.
pub fn target_name(device: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    format!("iqn.2026-01.smrlab:{}", device.chars().map(allowed).collect::<String>())
}

struct Served {
    device: Arc<Device>,
    facts: Facts,
    modes: Mutex<Modes>,
    /// What a host saved.
    saved: Mutex<Modes>,
    /// The directory where that is kept, and reservations; `None`: they go with the store in memory.
    kept: Option<PathBuf>,
    /// The last one first.
    tests: Mutex<VecDeque<SelfTest>>,
    erasure: Erasure,
    /// Held by all that commands do together, and alone by what changes it.
    reservations: RwLock<Reservations>,
    /// Held by writes together, and alone by what reads and then writes.
    writers: RwLock<()>,
}

impl Served {
    fn new(device: Arc<Device>) -> smrlab_device::Result<Self> {
        let kept = match &device.config().store {
            StoreKind::Memory => None,
            StoreKind::Directory(dir) | StoreKind::Device { state: dir, .. } => Some(dir.clone()),
        };
        let dir = kept.as_deref();
        let saved = read(dir, SAVED, "modes that a host saved", Modes::from_text)?;
        let reservations = read(dir, RESERVED, "reservations", Reservations::from_text)?;
        let zones = device.zone_limits();
        let facts = Facts {
            blocks: Blocks(device.size() / 512),
            logical: device.block_size(),
            physical: device.physical_block(),
            product: device.config().layer.split(',').next().unwrap_or_default().to_owned(),
            serial: device.config().name.clone(),
            // What is less or more than the page can say is not said.
            rpm: device
                .rpm()
                .and_then(|rpm| u16::try_from(rpm).ok())
                .filter(|rpm| (0x401..0xffff).contains(rpm)),
            discards: device.can_trim(),
            kind: match zones {
                Some(limits) if limits.preferred.is_some() => Kind::HostAware(limits),
                Some(limits) => Kind::HostManaged(limits),
                None if device.drive_managed() => Kind::DriveManaged,
                None => Kind::Conventional,
            },
        };
        Ok(Self {
            device,
            facts,
            modes: Mutex::new(saved),
            saved: Mutex::new(saved),
            kept,
            tests: Mutex::default(),
            erasure: Erasure::default(),
            reservations: RwLock::new(reservations),
            writers: RwLock::default(),
        })
    }

    /// What a host is told of an error: that of a disk that is erased since the command began is no error of the medium.
    fn why(&self, e: &DeviceError, otherwise: Sense) -> Fault {
        self.erasure.begun().err().unwrap_or_else(|| fault(e, otherwise))
    }
}

/// What a file of a directory keeps, if both are there.
fn read<T: Default>(
    dir: Option<&Path>,
    file: &str,
    what: &str,
    from: fn(&str) -> Option<T>,
) -> smrlab_device::Result<T> {
    let Some(path) = dir.map(|dir| dir.join(file)) else { return Ok(T::default()) };
    let text = match std::fs::read_to_string(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(T::default()),
        text => text.map_err(|e| DeviceError::io(format!("reading {}", path.display()), &e))?,
    };
    from(&text).ok_or_else(|| DeviceError::input(format!("{}: no {what}; remove it", path.display())))
}

/// The sense of a refusal, as ZBC-2 has it; a boundary that is crossed is that of a read, or of a write.
fn refused(why: Refusal, otherwise: Sense) -> Sense {
    match why {
        Refusal::NotAtPointer => Sense::UNALIGNED_WRITE,
        Refusal::CrossesZone if otherwise == Sense::UNRECOVERED_READ => Sense::READ_BOUNDARY,
        Refusal::CrossesZone => Sense::WRITE_BOUNDARY,
        Refusal::AbovePointer => Sense::READ_INVALID,
        Refusal::ZoneFull | Refusal::Unsupported => Sense::INVALID_FIELD,
        Refusal::TooManyOpen => Sense::ZONE_RESOURCES,
        Refusal::ZoneReadOnly => Sense::ZONE_READ_ONLY,
        Refusal::ZoneOffline => Sense::ZONE_OFFLINE,
        Refusal::Gap => Sense::GAP,
        Refusal::OutOfRange => Sense::OUT_OF_RANGE,
        Refusal::WriteProtected => Sense::WRITE_PROTECTED,
        Refusal::NoSpace => Sense::NO_SPACE,
        Refusal::Lost => otherwise,
    }
}

/// What a host is told of an error.
fn fault(e: &DeviceError, otherwise: Sense) -> Fault {
    if let Some((why, at)) = e.refusal() {
        return Fault { why: refused(why, otherwise), at };
    }
    let why = match e.errno() {
        libc::EPERM => Sense::WRITE_PROTECTED,
        libc::ENOSPC => Sense::NO_SPACE,
        libc::EINVAL => Sense::OUT_OF_RANGE,
        _ => otherwise,
    };
    Fault { why, at: e.destroyed_block().map(Lba) }
}

impl Disk for Served {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&self, lba: Lba, out: &mut [u8]) -> Done {
        self.device.read(lba.0 * 512, out).map_err(|e| self.why(&e, Sense::UNRECOVERED_READ))
    }

    fn write(&self, lba: Lba, data: &[u8], fua: bool) -> Done {
        let _together = self.writers.read();
        self.erasure.begun()?;
        self.device.write(lba.0 * 512, data, fua).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn change(&self, lba: Lba, bytes: &mut [u8], fua: bool, change: &mut Change<'_>) -> Done {
        let _alone = self.writers.write();
        self.erasure.begun()?;
        self.read(lba, bytes)?;
        change(bytes)?;
        self.device.write(lba.0 * 512, bytes, fua).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn extents(&self, lba: Lba, out: &mut Extents<'_>) -> Done {
        let mut at = lba.0 * 512;
        let mut goes_on = true;
        while goes_on && at < self.device.size() {
            let from = at;
            // The device may end early.
            let each = &mut |start: u64, length: u64, data: bool| {
                if goes_on {
                    goes_on = out(Lba(start / 512)..Lba((start + length) / 512), data);
                    at = start + length;
                }
            };
            let length = self.device.size() - from;
            self.device.extents(from, length, each).map_err(|e| self.why(&e, Sense::UNRECOVERED_READ))?;
            if at == from {
                break;
            }
        }
        Ok(())
    }

    fn modes(&self) -> Modes {
        *self.modes.lock()
    }

    fn set_modes(&self, modes: Modes) {
        *self.modes.lock() = modes;
    }

    fn saved(&self) -> Option<Modes> {
        Some(*self.saved.lock())
    }

    fn save(&self, modes: Modes) -> Done {
        let modes = Modes { stopped: false, ..modes };
        let mut saved = self.saved.lock();
        if let Some(dir) = &self.kept {
            replace(&dir.join(SAVED), |file| file.write_all(modes.to_text().as_bytes()))
                .map_err(|_| Sense::WRITE_ERROR)?;
        }
        *saved = modes;
        Ok(())
    }

    fn erase(&self, why: Erasing, wait: bool) -> Done {
        self.erasure.erase(&self.device, why, wait, &self.writers)
    }

    fn erasing(&self) -> Option<Sense> {
        self.erasure.told()
    }

    fn self_tests(&self) -> Vec<SelfTest> {
        self.tests.lock().iter().copied().collect()
    }

    fn tested(&self, test: SelfTest) {
        let mut tests = self.tests.lock();
        tests.push_front(test);
        tests.truncate(TESTS);
    }

    fn keeps_reservations(&self) -> bool {
        self.kept.is_some()
    }

    fn keep_reservations(&self, text: Option<&str>) -> Done {
        let Some(dir) = &self.kept else { return Ok(()) };
        let path = dir.join(RESERVED);
        let done = match text {
            Some(text) => replace(&path, |file| file.write_all(text.as_bytes())),
            None => std::fs::remove_file(path).and_then(|()| sync_directory(dir)),
        };
        done.map_err(|_| Sense::WRITE_ERROR.into())
    }

    fn reserved(&self, look: &mut dyn FnMut(&Reservations)) {
        look(&self.reservations.read());
    }

    fn reserve(&self, change: &mut dyn FnMut(&mut Reservations)) {
        change(&mut self.reservations.write());
    }

    fn readable(&self, lba: Lba, blocks: Blocks) -> Done {
        self.device.readable(lba, blocks).map_err(|e| fault(&e, Sense::UNRECOVERED_READ))
    }

    fn zone_statistics(&self) -> Option<ZoneStatistics> {
        self.device.zone_statistics()
    }

    fn usage(&self) -> Usage {
        let (counters, now) = self.device.counted();
        Usage {
            read: counters.bytes_read.load(Relaxed),
            written: counters.bytes_written.load(Relaxed),
            unrecovered: counters.destroyed_reads.load(Relaxed),
            minutes: (now.0 / 60_000_000_000) as u32,
        }
    }

    fn flush(&self) -> Done {
        self.device.flush().map_err(|e| self.why(&e, Sense::WRITE_ERROR))
    }

    fn discard(&self, lba: Lba, blocks: Blocks) -> Done {
        let _together = self.writers.read();
        self.erasure.begun()?;
        self.device.trim(lba.0 * 512, blocks.bytes(), false).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn zone(&self, action: ZoneAction, zones: Option<Range<Lba>>) -> Done {
        let _together = self.writers.read();
        self.erasure.begun()?;
        self.device.zones_act(action, zones).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        // Asked only of a device that has some.
        let _ = self.device.zones(from, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_device::Config;

    fn served(layer: &str) -> Served {
        Served::new(Device::open(Config::new("x", "tiny", layer, StoreKind::Memory)).unwrap()).unwrap()
    }

    /// Extents go on from the block that was asked for to the last one, as long as the caller wants more, with what was written in
    /// those that hold data.
    #[test]
    fn extents_go_on_to_the_end_of_the_disk() {
        for layer in ["log", "cmr"] {
            let disk = served(layer);
            let all = disk.facts().blocks.0;
            disk.write(Lba(64), &[7; 4096], false).unwrap();
            let of = |from: u64, most: usize| {
                let mut told: Vec<(Range<u64>, bool)> = Vec::new();
                let each = &mut |range: Range<Lba>, data: bool| {
                    told.push((range.start.0..range.end.0, data));
                    told.len() < most
                };
                disk.extents(Lba(from), each).unwrap();
                told
            };
            for from in [0, 8, 66, all - 1] {
                let told = of(from, usize::MAX);
                let ends: Vec<u64> = told.iter().map(|t| t.0.end).collect();
                let starts: Vec<u64> = told.iter().map(|t| t.0.start).collect();
                assert_eq!((starts[0], *ends.last().unwrap()), (from, all), "{layer}");
                assert_eq!(starts[1..], ends[..ends.len() - 1], "{layer}: {told:?}");
                let data = |block: u64| told.iter().any(|t| t.0.contains(&block) && t.1);
                assert!((64..72).filter(|b| *b >= from).all(data), "{layer}: {told:?}");
                assert!(layer == "cmr" || from > 8 || !data(200), "{told:?}");
            }
            assert_eq!(of(0, 1).len(), 1, "{layer}");
        }
    }

    /// Modes that a host saved, and reservations that are kept, are there when the device is served again; a file that is none is said.
    #[test]
    fn saved_modes_are_kept_with_the_store() {
        let dir = std::env::temp_dir().join(format!("smrlab-modes-{}", std::process::id()));
        let open = || {
            let store = StoreKind::Directory(dir.clone());
            Served::new(Device::open(Config::new("x", "tiny", "cmr", store)).unwrap())
        };
        let off = Modes { write_cache: false, ..Modes::default() };
        let disk = open().unwrap();
        assert_eq!((disk.modes(), disk.saved()), (Modes::default(), Some(Modes::default())));
        disk.save(Modes { stopped: true, ..off }).unwrap();
        drop(disk);
        let disk = open().unwrap();
        assert_eq!((disk.modes(), disk.saved()), (off, Some(off)), "and it is not stopped");
        drop(disk);
        for text in [Some("key a iqn.a\nheld 1 iqn.a\n"), None] {
            open().unwrap().keep_reservations(text).unwrap();
            let mut told = None;
            open().unwrap().reserved(&mut |all| told = all.to_text());
            assert_eq!(told.as_deref(), text);
        }
        std::fs::write(dir.join(SAVED), "?").unwrap();
        let text = open().map(|_| ()).unwrap_err().to_string();
        assert!(text.contains("no modes that a host saved"), "{text}");
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// All blocks of a disk that was erased read as zeroes, and its zones are empty; while it goes on it is not begun again.
    #[test]
    fn a_disk_that_was_erased_is_empty() {
        for layer in
            ["cmr", "s-block", "zoned,zone=64KiB,conventional=10%", "host-aware,zone=64KiB,conventional=10%"]
        {
            for wait in [true, false] {
                let disk = served(layer);
                let all = disk.facts().blocks.0;
                let mut last = Lba(all - 8);
                disk.zones(Lba(all - 8), &mut |zone| {
                    last = zone.start;
                    false
                });
                for lba in [Lba(0), last] {
                    disk.write(lba, &[7; 4096], false).unwrap();
                }
                disk.erase(Erasing::Format, wait).unwrap();
                while let Some(sense) = disk.erasing() {
                    assert!(!wait && sense.progress.is_some(), "{sense:?}");
                    std::thread::yield_now();
                }
                for lba in [Lba(0), last] {
                    let mut data = [1; 4096];
                    disk.read(lba, &mut data).unwrap();
                    assert_eq!(data, [0; 4096], "{layer} {lba:?}");
                }
                disk.zones(last, &mut |zone| {
                    assert_eq!(zone.pointer, Some(zone.start), "{layer}");
                    false
                });
            }
        }
    }

    /// An erasure begins when the writes are over that are at work, and those that were let in meanwhile do nothing.
    #[test]
    fn no_write_lands_in_a_disk_that_is_erased() {
        let disk = served("log");
        disk.write(Lba(0), &[7; 4096], false).unwrap();
        let first = || {
            let mut data = [0; 512];
            disk.read(Lba(0), &mut data).unwrap();
            data[0]
        };
        std::thread::scope(|scope| {
            let at_work = disk.writers.read();
            let erased = scope.spawn(|| disk.erase(Erasing::Format, true));
            while disk.erasing().is_none() {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(30));
            assert_eq!(first(), 7);
            drop(at_work);
            erased.join().unwrap().unwrap();
            assert_eq!(first(), 0);
        });
        let going_on = Erasing::Format.going_on(9);
        *disk.erasure.0.lock() = Some(going_on);
        for done in [
            disk.write(Lba(0), &[7; 512], false),
            disk.discard(Lba(0), Blocks(8)),
            disk.change(Lba(0), &mut [0; 512], false, &mut |_| Ok(())),
            disk.zone(ZoneAction::Reset, None),
        ] {
            assert_eq!(done, Err(going_on.into()));
        }
        // What began before, and comes to the device while it is erased.
        let late = |_: u16| {
            *disk.erasure.0.lock() = Some(going_on);
            for done in [
                disk.read(Lba(0), &mut [0; 512]),
                disk.flush(),
                disk.extents(Lba(0), &mut |_, _| panic!("told")),
            ] {
                assert_eq!(done, Err(going_on.into()));
            }
        };
        disk.device.erase(&late).unwrap();
        *disk.erasure.0.lock() = Some(Erasing::Format.failed());
        disk.write(Lba(0), &[7; 512], false).unwrap();
    }

    /// What a host reads is what it wrote, what is wrong with the device is said in SCSI's words.
    #[test]
    fn a_disk_is_its_device() {
        let disk = served("cmr");
        let all = disk.facts().blocks.0;
        disk.write(Lba(all - 8), &[9; 4096], true).unwrap();
        let mut data = [0; 8192];
        disk.read(Lba(all - 16), &mut data).unwrap();
        assert_eq!((data[..4096] == [0; 4096], data[4096..] == [9; 4096]), (true, true));
        disk.change(Lba(all - 8), &mut [0; 512], false, &mut |bytes| {
            assert_eq!(bytes, [9; 512]);
            bytes.fill(3);
            Ok(())
        })
        .unwrap();
        disk.read(Lba(all - 8), &mut data[..1024]).unwrap();
        assert_eq!((data[..512] == [3; 512], data[512..1024] == [9; 512]), (true, true));
        assert_eq!(disk.read(Lba(all), &mut data[..512]).unwrap_err().why, Sense::OUT_OF_RANGE);
        let read = 8192 + 512 + 1024;
        assert_eq!(disk.usage(), Usage { read, written: 4096 + 512, unrecovered: 0, minutes: 0 });
    }
}
