//! Served arrays that take no more from their SSD: what was acknowledged is read, over killed and stopped servers.

use smrlab_device::config::StoreKind;
use smrlab_device::{Config, Device};
use smrlab_units::rng::Rng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const PAGE: u64 = 4096;

/// Arrays, and how many dead disks are too many.
const CACHED: &[(&str, u64)] = &[
    ("striped,disks=2,chunk=8blk,ssd_write=64KiB,ssd_page=4KiB,ssd_group=32KiB", 1),
    ("mirror,disks=4,chunk=8blk,ssd_write=64KiB,ssd_page=4KiB", 3),
    ("raid5,disks=3,chunk=8blk,ssd_write=64KiB,ssd_read=16KiB,ssd_page=4KiB", 2),
    ("dvs,disks=4,chunk=4blk,segment=8,overprovision=20%,ssd_write=64KiB,ssd_page=4KiB", 2),
];

fn open(array: &str, dir: &Path) -> Arc<Device> {
    let store = StoreKind::Directory(dir.join("store"));
    let array = Some(array.to_owned());
    Device::open(Config { array, map_budget: 1 << 20, ..Config::new("a", "tiny", "cmr", store) }).unwrap()
}

/// Writes pages drawn from the first 60; those that were acknowledged are in `pages`, with what they hold. A page of a write that was
/// refused is left out. How many were refused.
fn write(device: &Device, rng: &mut Rng, pages: &mut BTreeMap<u64, u8>) -> u64 {
    let mut refused = 0;
    for i in 0..80 {
        let (page, stamp) = (rng.below(60), rng.below(255) as u8 | 1);
        match device.write(page * PAGE, &[stamp; PAGE as usize], i % 7 == 0) {
            Ok(_) => _ = pages.insert(page, stamp),
            Err(e) => {
                assert_eq!(e.errno(), libc::EIO, "{e}");
                pages.remove(&page);
                refused += 1;
            }
        }
        if i % 20 == 0 {
            device.flush().unwrap();
        }
    }
    refused
}

fn check(device: &Device, pages: &BTreeMap<u64, u8>, when: &str) {
    for (page, stamp) in pages {
        let mut out = [0; PAGE as usize];
        device.read(page * PAGE, &mut out).unwrap_or_else(|e| panic!("{when}: page {page}: {e}"));
        assert!(out.iter().all(|byte| byte == stamp), "{when}: page {page}");
    }
}

#[test]
fn what_an_array_does_not_take_is_served_from_the_ssd() {
    for &(array, too_many) in CACHED {
        let dir = tempfile::tempdir().unwrap();
        let mut device = open(array, dir.path());
        let (mut rng, mut pages) = (Rng::new(3), BTreeMap::new());
        assert_eq!(write(&device, &mut rng, &mut pages), 0, "{array}");
        check(&device, &pages, array);
        let (served, clock) = device.array().unwrap();
        (0..too_many).for_each(|disk| _ = served.fail(clock, disk).unwrap());
        pages.clear();
        for how in ["killed", "closed", "killed again"] {
            let refused = write(&device, &mut rng, &mut pages);
            assert!(refused > 0 && !pages.is_empty(), "{array}: {refused} refused");
            let stats = device.stats();
            assert!(stats["array"]["kept_ssd_pages"].as_u64() > Some(0), "{array}: {stats}");
            check(&device, &pages, array);
            if how == "closed" {
                device.close().unwrap();
            }
            drop(device);
            device = open(array, dir.path());
            check(&device, &pages, &format!("{array}, {how}"));
        }
    }
}
