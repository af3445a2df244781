//! Arrays whose drives have schedulers and buffers, in modelled time: requests of many threads, flushes, restarts.

use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::{Config, Device};
use smrlab_units::rng::Rng;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A write cache of so little that it is often full.
const CACHED: &str = "tiny,write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100";

const ARRAYS: &[&str] = &[
    "striped,disks=3,chunk=8blk",
    "raid5,disks=4,chunk=8blk",
    "raid5,disks=3,chunk=8blk,intent=on",
    "raid5,disks=3,chunk=8blk,ssd_write=32KiB,ssd_page=4KiB",
    "dvs,disks=4,chunk=8blk,segment=8,overprovision=20%,journal=on",
];

fn served(drive: &str, array: &str, layer: &str, speed: f64, store: StoreKind) -> Arc<Device> {
    let (timing, scheduler) = (Timing::Model, "sptf,depth=8".to_owned());
    let array = Some(array.to_owned());
    let config = Config { array, timing, speed, scheduler, ..Config::new("q", drive, layer, store) };
    Device::open(config).unwrap()
}

/// 12 threads write 4 KiB blocks of their own in a scattered order, flush now and then, and read them back.
fn scattered(device: &Arc<Device>, rounds: u64) {
    let bad = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..12u64 {
            let bad = &bad;
            scope.spawn(move || {
                let units = device.size() / 4096 / 12;
                for i in 0..rounds {
                    let unit = (thread * 5 + i * 7) % units * 12 + thread;
                    let data = [(thread * 31 + i) as u8; 4096];
                    device.write(unit * 4096, &data, i % 5 == 4).unwrap();
                    let mut out = [0xee; 4096];
                    device.read(unit * 4096, &mut out).unwrap();
                    bad.fetch_add(u64::from(out != data), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(bad.load(Ordering::Relaxed), 0, "a read gave something else than the write before it");
}

#[test]
fn what_waits_in_the_queues_of_drives_keeps_its_data() {
    for array in ARRAYS {
        for (drive, layer) in
            [("tiny", "cmr"), ("tiny", "s-block"), (CACHED, "cmr"), (CACHED, "rmw,journal=on")]
        {
            let device = served(drive, array, layer, 500.0, StoreKind::Memory);
            scattered(&device, 8);
            device.close().unwrap();
        }
    }
}

/// A drive that dies with requests in its queue: they are done without it, and its successor is rebuilt behind a queue as well.
#[test]
fn a_drive_dies_with_requests_in_its_queue() {
    for array in ARRAYS.iter().filter(|a| !a.starts_with("striped")) {
        for drive in ["tiny", CACHED] {
            let device = served(drive, array, "cmr", 500.0, StoreKind::Memory);
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| scattered(&device, 12));
                let (served, clock) = device.array().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(30));
                served.fail(clock, 1).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(30));
                served.replace(clock, 1).unwrap();
                writer.join().unwrap();
            });
            scattered(&device, 4);
            for _ in 0..200_000 {
                if device.info()["engine"]["disks"][1]["state"] == "whole" {
                    break;
                }
                device.housekeeping();
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            assert_eq!(device.info()["engine"]["disks"][1]["state"], "whole", "{array}: {}", device.stats());
        }
    }
}

/// A disk that cannot be read is thrown out by what its scheduler had it do.
#[test]
fn an_error_behind_a_scheduler_throws_the_disk_out() {
    let device = served("tiny", "raid5,disks=3,chunk=8blk", "cmr", 500.0, StoreKind::Memory);
    device.write(0, &[7; 64 * 1024], false).unwrap();
    let injection = serde_json::from_value(serde_json::json!({"unreadable": [0, 1 << 20]})).unwrap();
    device.medium(Some(1)).unwrap().faults.inject(&injection);
    let mut out = vec![0; 64 * 1024];
    device.read(0, &mut out).unwrap();
    assert!(out.iter().all(|b| *b == 7));
    assert_eq!(device.info()["engine"]["disks"][1]["state"], "dead");
}

/// A flush is a barrier over the queues and buffers of all drives: what it covers survives a killed server, and of what came later
/// each block is old or new.
#[test]
fn what_was_flushed_survives_a_killed_server() {
    for array in ARRAYS {
        for drive in ["tiny", CACHED] {
            let folder = scratch();
            let store = || StoreKind::Directory(folder.path().join("store"));
            let mut random = Rng::new(5);
            let mut device = served(drive, array, "cmr", 500.0, store());
            let mut may: Vec<Vec<u8>> = vec![vec![0]; (device.size() / 4096) as usize];
            for round in 0..4u8 {
                for i in 0..40u8 {
                    let unit = random.below(may.len() as u64);
                    let stamp = round * 50 + i + 1;
                    may[unit as usize].push(stamp);
                    device.write(unit * 4096, &[stamp; 4096], false).unwrap();
                    if i == 25 {
                        device.flush().unwrap();
                        may.iter_mut().for_each(|m| *m = vec![m[m.len() - 1]]);
                    }
                }
                // As a killed server is.
                drop(device);
                device = served(drive, array, "cmr", 500.0, store());
                for (unit, may) in may.iter_mut().enumerate() {
                    let mut out = [0; 4096];
                    device.read(unit as u64 * 4096, &mut out).unwrap();
                    assert!(
                        may.contains(&out[0]),
                        "{array} on {drive}: {unit} is {}, not of {may:?}",
                        out[0]
                    );
                    *may = vec![out[0]];
                }
            }
        }
    }
}

fn scratch() -> tempfile::TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.unwrap()
}

/// The units of `may` read as one of what they may be, and those that were new are what they are from now on.
fn among(device: &Device, may: &mut [Vec<u8>], when: &str) {
    for (unit, may) in may.iter_mut().enumerate() {
        let mut out = [0; 4096];
        device.read(unit as u64 * 4096, &mut out).unwrap();
        assert!(may.contains(&out[0]), "{when}: {unit} is {}, not of {may:?}", out[0]);
        *may = vec![out[0]];
    }
}

/// The array may note that the SSD's copy is needed no more only when the disks have the data, and not just their buffers: a server
/// that is killed has lost those.
#[test]
fn pages_leave_the_ssd_when_disks_have_them_and_not_their_buffers() {
    for array in ["striped,disks=2,chunk=8blk,ssd_write=32KiB,ssd_page=4KiB", ARRAYS[3]] {
        let folder = scratch();
        let drive = "tiny,write_cache=on,segments=32,cache_size=256KiB,command=0.1ms,bus=100";
        let open = || served(drive, array, "cmr", 10.0, StoreKind::Directory(folder.path().join("store")));
        let (mut random, mut device) = (Rng::new(7), open());
        let mut may: Vec<Vec<u8>> = vec![vec![0]; (device.size() / 4096) as usize];
        for kill in 0..3 {
            for i in 0..16 {
                let (unit, stamp) = (random.below(may.len() as u64), 1 + kill * 16 + i);
                may[unit as usize].push(stamp);
                device.write(unit * 4096, &[stamp; 4096], false).unwrap();
                if i == 7 {
                    device.flush().unwrap();
                    may.iter_mut().for_each(|m| *m = vec![m[m.len() - 1]]);
                }
            }
            drop(device);
            device = open();
            among(&device, &mut may, &format!("{array}, kill {kill}"));
        }
    }
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|e| e.unwrap()) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copied(&path, &to) } else { _ = std::fs::copy(path, to).unwrap() }
    }
}

/// Destaging writes a row's data and its parity to different disks: a server that is stopped between them does both, since after an
/// orderly stop nobody looks whether parity fits.
#[test]
fn a_server_that_stops_ends_what_it_began() {
    let array =
        "raid5,disks=3,chunk=8blk,ssd_write=128KiB,ssd_page=4KiB,ssd_depth=8,ssd_high=40%,ssd_low=10%";
    for stop in 0..8 {
        let folder = scratch();
        let at = |name: &str| folder.path().join(name);
        let device = served("tiny", array, "cmr", 10.0, StoreKind::Directory(at("store")));
        let (mut random, mut is) = (Rng::new(stop + 1), vec![vec![0]; (device.size() / 4096) as usize]);
        for stamp in 1..=60 {
            let unit = random.below(is.len() as u64);
            device.write(unit * 4096, &[stamp; 4096], false).unwrap();
            is[unit as usize] = vec![stamp];
        }
        std::thread::sleep(std::time::Duration::from_micros(stop * 200));
        device.housekeeping();
        device.close().unwrap();
        drop(device);
        for disk in 0..3u64 {
            let name = format!("without-{disk}");
            copied(&at("store"), &at(&name));
            let array = Some(array.to_owned());
            let store = StoreKind::Directory(at(&name));
            let device = Device::open(Config { array, ..Config::new("q", "tiny", "cmr", store) }).unwrap();
            let (served, clock) = device.array().unwrap();
            served.fail(clock, disk).unwrap();
            among(&device, &mut is, &format!("stop {stop}, without disk {disk}"));
        }
    }
}
