//! Beyond 4 GiB, and what is durable: a sparse device of 8 GiB.

use smrlab_device::config::StoreKind;
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device};
use std::sync::Arc;

const SIZE: u64 = 8 << 30;

fn device(layer: &str, dir: &std::path::Path) -> Arc<Device> {
    let config = Config::new("t", "modern-7200", layer, StoreKind::Directory(dir.join("store")));
    Device::open(Config { size: Some(SIZE), mode: Mode::Data, map_budget: 1 << 20, ..config }).unwrap()
}

fn block(n: u64) -> Vec<u8> {
    (0..512).map(|i| (n >> (i % 8 * 8)) as u8 ^ i as u8).collect()
}

/// Offsets that agree in their lower 32 bits are different places.
#[test]
fn places_beyond_four_gibibytes_are_places_of_their_own() {
    for layer in ["raw,tracks=1", "cmr", "s-block"] {
        let dir = tempfile::tempdir().unwrap();
        let device = device(layer, dir.path());
        assert!(device.size() > 7 << 30, "{layer}: {} bytes", device.size());
        let places: Vec<u64> = (0..7).map(|g| (g << 30) + 4096).collect();
        for &at in &places {
            device.write(at, &block(at), false).unwrap();
        }
        let mut buf = vec![0; 512];
        for &at in &places {
            device.read(at, &mut buf).unwrap();
            assert_eq!(buf, block(at), "{layer}: offset {at}");
            device.read(at + 512, &mut buf).unwrap();
            assert_eq!(buf, [0; 512], "{layer}: behind offset {at}");
        }
    }
}

/// A write with FUA is no flush; trims and zeroes count as it does.
#[test]
fn forced_writes_are_counted_apart_from_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let device = device("raw,tracks=1", dir.path());
    let counts = || ["fua", "flushes"].map(|name| device.stats()["host"][name].as_u64().unwrap());
    device.write(5 << 30, &block(1), false).unwrap();
    device.zero(5 << 30, 4096, false).unwrap();
    assert_eq!(counts(), [0, 0]);
    device.write(5 << 30, &block(2), true).unwrap();
    assert_eq!(counts(), [1, 0]);
    device.zero(5 << 30, 4096, true).unwrap();
    device.trim(5 << 30, 4096, true).unwrap();
    assert_eq!(counts(), [3, 0]);
    device.flush().unwrap();
    assert_eq!(counts(), [3, 1]);
}

/// The drive of a device is named as a run takes it: with the capacity that was asked for, and the options that it was given.
#[test]
fn a_shortened_drive_is_named_with_its_capacity() {
    for drive in ["modern-7200", "modern-7200,rpm=5400", "modern-7200,capacity=100GB,rpm=5400"] {
        // By the size of its medium, or by what the host is to see.
        for (size, host_size) in [(Some(SIZE), None), (None, Some(SIZE))] {
            let config = Config { size, host_size, ..Config::new("t", drive, "cmr", StoreKind::Memory) };
            let device = Device::open(config).unwrap();
            let info = device.info();
            let named = info["engine"]["drive"].as_str().unwrap();
            let model = smrlab_disk::model::load(named, |_| Err(String::new()))
                .unwrap_or_else(|e| panic!("{named}: {e}"));
            assert_eq!(named.contains("rpm=5400"), drive.contains("rpm=5400"), "{drive}: {named}");
            let medium = device.medium(None).unwrap().with_runs(|s| s.blocks());
            assert_eq!(model.counted_blocks().0, medium, "{drive}: {named}");
            assert!(device.size() <= medium * 512 && device.size() >= SIZE, "{drive}: {named}");
        }
    }
}
