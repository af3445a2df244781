//! Schedulers before a served drive: requests of many threads, in modelled time.

use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::{Config, Device};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn served(layer: &str, scheduler: &str, speed: f64) -> Arc<Device> {
    of_drive("tiny", layer, scheduler, speed, StoreKind::Memory)
}

fn of_drive(drive: &str, layer: &str, scheduler: &str, speed: f64, store: StoreKind) -> Arc<Device> {
    let scheduler = scheduler.to_owned();
    let timing = Timing::Model;
    let config = Config { timing, speed, scheduler, ..Config::new("q", drive, layer, store) };
    Device::open(config).unwrap()
}

/// `tiny` with a write cache of so little that it is often full.
const CACHED: &str = "tiny,write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100";

/// 16 threads write 4 KiB blocks of their own in a scattered order and read them back; answers the model's time.
fn scattered(device: &Arc<Device>, rounds: u64) -> f64 {
    let begun = std::time::Instant::now();
    let bad = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16u64 {
            let (device, bad) = (device.clone(), &bad);
            scope.spawn(move || {
                let units = device.size() / 4096 / 16;
                for i in 0..rounds {
                    let unit = (thread * 5 + i * 7) % units * 16 + thread;
                    let data = [(thread * 31 + i) as u8; 4096];
                    device.write(unit * 4096, &data, false).unwrap();
                    let mut out = [0xee; 4096];
                    device.read(unit * 4096, &mut out).unwrap();
                    bad.fetch_add(u64::from(out != data), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(bad.load(Ordering::Relaxed), 0, "a read gave something else than the write before it");
    begun.elapsed().as_secs_f64()
}

#[test]
fn what_waits_in_the_queue_keeps_its_data() {
    for layer in ["cmr", "s-block", "disk-cache", "static-R(4123)"] {
        for scheduler in ["sptf,depth=32", "c-look,depth=4", "fcfs"] {
            let device = served(layer, scheduler, 300.0);
            scattered(&device, 12);
            device.close().unwrap();
        }
    }
}

/// Writes are answered before they are written, read back from the drive's buffer, and none is lost.
#[test]
fn what_the_buffer_took_is_read_back() {
    for layer in ["cmr", "s-block", "disk-cache", "static-R(4123)"] {
        for scheduler in ["sptf,depth=32", "fcfs"] {
            let device = of_drive(CACHED, layer, scheduler, 300.0, StoreKind::Memory);
            scattered(&device, 12);
            let stats = device.stats();
            let count = |name: &str| stats["media"]["buffer"][name].as_u64().unwrap();
            // 16 threads wrote and read 12 times each.
            assert_eq!(count("writes_buffered") + count("writes_through"), 192, "{layer}: {stats}");
            let reads = ["read_hits", "read_partial_hits", "read_misses"].map(count);
            assert!(reads.iter().sum::<u64>() == 192 && count("writes_buffered") > 0, "{layer}: {stats}");
            device.close().unwrap();
        }
    }
}

#[test]
fn closing_and_asking_for_extents_write_what_the_buffer_took() {
    let folder = tempfile::tempdir().unwrap();
    let store = || StoreKind::Directory(folder.path().to_owned());
    for layer in ["cmr", "rmw"] {
        // So slow that nothing is written by itself before the device is closed.
        let device = of_drive(CACHED, layer, "sptf,depth=32", 0.2, store());
        for i in 0..4u64 {
            device.write(i * 16_384, &[i as u8 + 1; 4096], false).unwrap();
        }
        let mut seen = 0;
        device.extents(0, 65_536, &mut |_, len, data| seen += if data { len } else { 0 }).unwrap();
        assert!(seen >= 4 * 4096, "{layer}: {seen}");
        device.write(0, &[9; 4096], false).unwrap();
        device.close().unwrap();
        drop(device);
        let device = of_drive(CACHED, layer, "sptf,depth=32", 300.0, store());
        let mut out = [0; 4096];
        for i in 0..4u64 {
            device.read(i * 16_384, &mut out).unwrap();
            assert_eq!(out, [if i == 0 { 9 } else { i as u8 + 1 }; 4096], "{layer} {i}");
        }
        drop(device);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap()
            } else {
                std::fs::remove_file(path).unwrap()
            }
        }
    }
}

#[test]
fn a_scheduler_serves_more_of_many_waiting_requests() {
    // So slow that the threads of a busy machine come back long before the drive is done with what waits; one of a few tries is to
    // show it.
    let time = |scheduler: &str| scattered(&served("cmr", scheduler, 2.0), 3);
    let mut tries = Vec::new();
    let sooner = (0..5).any(|_| {
        let (fcfs, sptf) = (time("fcfs"), time("sptf,depth=32"));
        tries.push((fcfs, sptf));
        sptf < fcfs * 0.9
    });
    assert!(sooner, "fcfs and sptf in s: {tries:?}");
}

#[test]
fn a_layer_that_cannot_say_where_requests_start_is_not_reordered() {
    let scheduler = "sptf,depth=0".to_owned();
    let timing = Timing::Model;
    let config = Config { timing, scheduler, ..Config::new("q", "tiny", "cmr", StoreKind::Memory) };
    let text = Device::open(config).err().unwrap().to_string();
    assert!(text.contains("scheduler") && text.contains("from 1 to 4096"), "{text}");
}

/// Eight threads fill a zone each and begin another one: every write is judged when it comes, zones are reported with what is not on the medium yet,
/// and after a close all of it is there.
#[test]
fn zones_behind_a_cache_and_a_scheduler_take_the_writes_of_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let layer = "zoned,zone=16KiB,conventional=0%,max_open=16";
    let open = |scheduler: &str| {
        of_drive(CACHED, layer, scheduler, 300.0, StoreKind::Directory(folder.path().to_owned()))
    };
    let device = open("sptf,depth=32");
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let device = &device;
            scope.spawn(move || {
                let data = |i: u64| [(thread * 8 + i) as u8 + 1; 4096];
                let at = |i: u64| thread * 16_384 + i * 4096;
                for i in 0..4 {
                    let early = device.write(at((i + 1) % 4), &data(i), false);
                    assert!(early.is_err(), "off the write pointer");
                    device.write(at(i), &data(i), i == 2).unwrap();
                    let mut out = [0; 4096];
                    device.read(at(i), &mut out).unwrap();
                    assert_eq!(out, data(i), "zone {thread}, {i}");
                }
                device.write((8 + thread) * 16_384, &data(4), false).unwrap();
            });
        }
    });
    let pointers = |device: &Device| {
        let mut all = Vec::new();
        let told = device.zones(smrlab_units::Lba(0), &mut |z| {
            all.push((z.condition.name(), z.pointer.map(|p| p.0 - z.start.0)));
            true
        });
        told.unwrap();
        all.truncate(17);
        all
    };
    let with = |begun| {
        let mut all = vec![("full", None); 8];
        all.extend([(begun, Some(8)); 8]);
        all.push(("empty", Some(0)));
        all
    };
    assert_eq!(pointers(&device), with("implicitly-open"));
    device.close().unwrap();
    drop(device);
    let device = open("fcfs");
    assert_eq!(pointers(&device), with("closed"));
    let mut out = vec![0; 8 * 16_384];
    device.read(0, &mut out).unwrap();
    let want: Vec<u8> = (0..32u64).flat_map(|i| [(i / 4 * 8 + i % 4) as u8 + 1; 4096]).collect();
    assert!(out == want, "what was acknowledged is on the medium");
}
