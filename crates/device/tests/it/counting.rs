//! What a served device counts: its layer, its drives' buffers, how full its cache is; and counting anew.

use serde_json::Value;
use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::{Config, Device};
use std::sync::Arc;

/// `tiny` with a write cache.
const BUFFERED: &str = "tiny,write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100";

fn served(layer: &str, array: Option<&str>) -> Arc<Device> {
    let array = array.map(str::to_owned);
    let config = Config::new("c", BUFFERED, layer, StoreKind::Memory);
    Device::open(Config { array, timing: Timing::Model, speed: 300.0, ..config }).unwrap()
}

fn rewrite(device: &Device, times: u64) {
    for i in 0..times {
        device.write(i % 7 * 65_536, &[i as u8; 4096], false).unwrap();
        device.read(i % 5 * 65_536, &mut [0; 4096]).unwrap();
    }
}

fn sum(counters: &Value, names: &[&str]) -> u64 {
    names.iter().map(|name| counters[name].as_u64().unwrap()).sum()
}

const READS: [&str; 3] = ["read_hits", "read_partial_hits", "read_misses"];
const WRITES: [&str; 2] = ["writes_buffered", "writes_through"];

/// Each request is counted as what it is, once; what is wrong with itself or ends badly is an error besides.
#[test]
fn requests_are_counted_by_what_they_are() {
    for layer in ["cmr", "raw,tracks=3"] {
        let config = Config { errors: true, ..Config::new("c", "tiny", layer, StoreKind::Memory) };
        let device = Device::open(config).unwrap();
        let track = 512 * 64;
        device.write(0, &[1; 1024], false).unwrap();
        device.write(0, &[1; 512], true).unwrap();
        (0..3).for_each(|_| device.read(0, &mut [0; 2048]).unwrap());
        (0..4).for_each(|_| device.flush().unwrap());
        (0..5).for_each(|i| device.trim(track, 512, i == 0).unwrap());
        (0..6).for_each(|i| device.zero(track, 512, i < 2).unwrap());
        let counted = |name: &str| device.stats()["host"][name].as_u64().unwrap();
        let requests =
            ["reads", "writes", "bytes_read", "bytes_written", "flushes", "trims", "zeroes", "fua"];
        assert_eq!(requests.map(counted), [3, 2, 6144, 1536, 4, 5, 6, 4], "{layer}");
        let before = counted("errors");
        assert!(device.read(device.size(), &mut [0; 512]).is_err());
        assert!(counted("errors") >= before, "{layer}");
        device.reset_stats();
        assert_eq!(requests.map(counted), [0; 8], "{layer}");
    }
}

#[test]
fn buffer_and_layer_are_counted_anew() {
    let device = served("disk-cache", None);
    rewrite(&device, 40);
    let before = device.stats()["media"].clone();
    assert_eq!((sum(&before["buffer"], &READS), sum(&before["buffer"], &WRITES)), (40, 40), "{before}");
    device.reset_stats();
    let reset = device.stats()["media"].clone();
    assert!(reset["buffer"].as_object().unwrap().values().all(|n| n == 0), "{reset}");
    assert_eq!(reset["by_cause"], serde_json::json!({}));
    // What there is at present is no count: it stays.
    let (was, is) = (before["layer"].as_object().unwrap(), reset["layer"].as_object().unwrap());
    assert!(was.iter().any(|(_, n)| *n != 0) && was.len() == is.len(), "{before}");
    for (name, n) in is {
        assert!(*n == if name.starts_with("cache") { was[name].clone() } else { 0.into() }, "{name}: {n}");
    }
    rewrite(&device, 3);
    let after = device.stats()["media"].clone();
    assert_eq!((sum(&after["buffer"], &READS), sum(&after["buffer"], &WRITES)), (3, 3), "{after}");
}

/// Each disk tells what a drive by itself tells.
#[test]
fn disks_of_an_array_tell_of_their_buffers() {
    let device = served("disk-cache", Some("raid5,disks=3,chunk=4KiB"));
    rewrite(&device, 20);
    let disks = device.stats()["disks"].clone();
    for disk in disks.as_array().unwrap() {
        let media = sum_of_requests(&disk["by_cause"]);
        assert!(sum(&disk["buffer"], &WRITES) > 0 && media > 0, "{disk}");
        assert!(disk["cache"]["blocks"].as_u64().unwrap() > 0 && disk["map_bytes"].is_u64(), "{disk}");
    }
    device.array().unwrap().0.fail(device.array().unwrap().1, 1).unwrap();
    device.reset_stats();
    let stats = device.stats();
    for disk in stats["disks"].as_array().unwrap() {
        assert!(disk["buffer"].as_object().unwrap().values().all(|n| n == 0), "{disk}");
        assert_eq!(disk["by_cause"], serde_json::json!({}));
    }
    assert_eq!((&stats["array"]["rows_modified"], &stats["array"]["disks_dead"]), (&0.into(), &1.into()));
}

fn sum_of_requests(by_cause: &Value) -> u64 {
    by_cause.as_object().unwrap().values().map(|c| c["writes"].as_u64().unwrap()).sum()
}

/// Four packets of one block each, of a map for a hundred.
#[test]
fn a_cache_is_as_full_as_its_map() {
    let layer = "persistent-cache,map_trigger=90,map_limit=100,idle=off";
    let device = Device::open(Config::new("c", "tiny", layer, StoreKind::Memory)).unwrap();
    let apart = device.size() / 4 / 4096 * 4096;
    for packet in 0..4 {
        device.write(packet * apart, &[1; 512], false).unwrap();
    }
    let cache = device.stats()["media"]["cache"].clone();
    let blocks = cache["blocks"].as_u64().unwrap();
    assert_eq!(cache["cached_blocks"], (blocks * 4 / 100).max(4), "{cache}");
}

/// What the SSD before an array did is counted anew, too.
#[test]
fn an_ssd_is_counted_anew() {
    let device = served("cmr", Some("striped,disks=2,chunk=4KiB,ssd_write=64KiB,ssd_page=4KiB"));
    let written = || device.stats()["array"]["ssd"]["writes"].as_u64().unwrap();
    rewrite(&device, 20);
    let before = written();
    device.reset_stats();
    assert!(before >= 20, "{before}");
    assert_eq!(written(), 0);
}

/// Every count of a device begins anew: after a reset it tells what a fresh one does, but for what there is at present.
#[test]
fn lateness_and_responses_are_counted_anew() {
    for array in [None, Some("mirror,disks=2".to_owned())] {
        let (timing, speed) = (Timing::Model, 1e6);
        let config = Config { array, timing, speed, ..Config::new("c", "tiny", "cmr", StoreKind::Memory) };
        let device = Device::open(config).unwrap();
        let told = |key: &str| device.stats()[key].clone();
        let fresh = ["lateness", "response_ms"].map(told);
        rewrite(&device, 5);
        assert_eq!(told("lateness")["requests"], 10, "five writes, each read back");
        assert!(told("response_ms")["max"].as_f64() > Some(0.0));
        device.reset_stats();
        assert_eq!(["lateness", "response_ms"].map(told), fresh);
        rewrite(&device, 1);
        assert_eq!(told("lateness")["requests"], 2);
    }
}
