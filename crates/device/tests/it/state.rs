//! A device that begins with another's state does what that one does next; and the sizes that a host is offered.

use serde_json::Value;
use smrlab_device::config::{Config, StoreKind};
use smrlab_device::device::Device;
use std::path::PathBuf;
use std::sync::Arc;

const LAYERS: &[&str] = &[
    "disk-cache,cache=5%",
    "disk-cache,cache=5%,journal=on",
    "s-block,sblock_blocks=256",
    "rmw",
    "static-1234",
];

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("smrlab-device-state-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    Folder(path)
}

fn config(layer: &str) -> Config {
    Config {
        size: Some(256 << 20),
        ..Config::new("d", "modern-7200,band_tracks=4", layer, StoreKind::Memory)
    }
}

/// Requests `from..to` of one random sequence.
fn work(device: &Arc<Device>, from: u64, to: u64) {
    let mut buf = vec![0; 8192];
    for i in from..to {
        let x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i << 17);
        let offset = (x >> 20) % (device.size() / 4096 - 2) * 4096;
        let n = 4096 * (1 + (x as usize >> 8) % 2);
        match x % 3 {
            0 => device.read(offset, &mut buf[..n]).unwrap(),
            _ => device.write(offset, &vec![i as u8; n], false).unwrap(),
        }
    }
}

/// What was done on the medium since the last reset.
fn media(device: &Device) -> Value {
    device.stats()["media"]["by_cause"].clone()
}

#[test]
fn a_device_from_a_state_does_what_the_first_one_does_next() {
    let folder = folder("next");
    for layer in LAYERS {
        let first = Device::open(config(layer)).unwrap();
        work(&first, 0, 500);
        let file = folder.0.join("state");
        first.write_state(&file).unwrap();
        first.reset_stats();
        work(&first, 500, 800);
        let from_state = Config { from_state: Some(file.clone()), ..config(layer) };
        let second = Device::open(from_state.clone()).unwrap();
        work(&second, 500, 800);
        assert!(media(&first).is_object(), "{layer}: {}", first.stats());
        assert_eq!(media(&second), media(&first), "{layer}");
        // The first start ended before the first of the state's records, behind that which says who began: nothing holds.
        let cut = folder.0.join(format!("{layer}, cut short"));
        let begun = Config { store: StoreKind::Directory(cut.clone()), ..from_state.clone() };
        drop(Device::open(begun.clone()).unwrap());
        let mut log = std::fs::read(cut.join("log.0")).unwrap();
        log[32..64].fill(0);
        std::fs::write(cut.join("log.0"), log).unwrap();
        let third = Device::open(begun).unwrap();
        work(&third, 500, 800);
        assert_eq!(media(&third), media(&first), "{layer}, begun twice");
        // On a store on disk it outlives the server, and the file is needed no more.
        let store = StoreKind::Directory(folder.0.join(layer));
        let kept = Config { store, ..from_state };
        drop(Device::open(kept.clone()).unwrap());
        std::fs::remove_file(&file).unwrap();
        let again = Device::open(kept).unwrap();
        work(&again, 500, 800);
        assert_eq!(media(&again), media(&first), "{layer}, started again");
    }
}

#[test]
fn a_state_of_something_else_and_a_raw_device_are_refused() {
    let folder = folder("refused");
    let file = folder.0.join("state");
    Device::open(config("rmw")).unwrap().write_state(&file).unwrap();
    let says = |layer: &str| {
        let wanted = Config { from_state: Some(file.clone()), ..config(layer) };
        Device::open(wanted).err().unwrap().to_string()
    };
    assert!(says("s-block,sblock_blocks=256").contains("give layer=rmw,"));
    assert!(says("raw").contains("snapshot"));
    assert!(
        Device::open(config("raw")).unwrap().write_state(&file).unwrap_err().to_string().contains("snapshot")
    );
}

#[test]
fn the_host_sees_the_size_that_it_asked_for() {
    for layer in ["raw", "rmw", "disk-cache", "s-block", "static-124R(3)"] {
        let wanted = Config { size: None, host_size: Some(1 << 30), ..config(layer) };
        let wanted = Config { drive: "modern-7200".into(), ..wanted };
        let device = Device::open(wanted).unwrap_or_else(|e| panic!("{layer}: {e}"));
        assert_eq!(device.size(), 1 << 30, "{layer}");
        // On a piece of the drive, though small drives may have no room for a layer's bands: not on the 16 TB of all of it.
        let medium = device.medium(None).unwrap().with_runs(|s| s.blocks()) * 512;
        assert!((1 << 30..1 << 33).contains(&medium), "{layer}: {medium}");
    }
    let wanted = Config { size: None, host_size: Some(1 << 60), ..config("rmw") };
    assert!(Device::open(wanted).err().unwrap().to_string().contains("--size can be no more"));
}
