//! A device that begins with another's state does what that one does next; and the sizes that a host is offered.

use serde_json::Value;
use smrlab_array::ArrayState;
use smrlab_device::config::{Config, StoreKind};
use smrlab_device::device::Device;
use smrlab_drive::SavedState;
use std::ops::Range;
use std::path::{Path, PathBuf};
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

/// What was done on the medium of each drive since the last reset.
pub(crate) fn media(device: &Device) -> Vec<Value> {
    let stats = device.stats();
    let alone = || vec![stats["media"]["by_cause"].clone()];
    let disks = stats["disks"].as_array();
    disks.map_or_else(alone, |all| all.iter().map(|disk| disk["by_cause"].clone()).collect())
}

/// What the host wrote, as a file with a state says.
fn written(file: &Path) -> Vec<Range<u64>> {
    smrlab_drive::SavedState::decode(&std::fs::read(file).unwrap()).unwrap().written
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
        assert!(media(&first)[0].is_object(), "{layer}: {}", first.stats());
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
        let written = written(&file);
        std::fs::remove_file(&file).unwrap();
        let again = Device::open(kept).unwrap();
        again.write_state(&file).unwrap();
        assert!(!written.is_empty() && self::written(&file) == written, "{layer}: {written:?}");
        work(&again, 500, 800);
        assert_eq!(media(&again), media(&first), "{layer}, started again");
    }
}

const ARRAYS: &[&str] = &[
    "striped,disks=2",
    "mirror",
    "raid5,disks=3",
    "raid6,disks=4,ssd_write=1MiB,ssd_read=1MiB",
    "dvs,disks=3",
    "raid4s,disks=3",
    "raid5,disks=3 / mirror",
];

#[test]
fn an_array_from_a_state_does_what_the_first_one_does_next() {
    let folder = folder("arrays");
    for (number, array) in ARRAYS.iter().enumerate() {
        let config =
            || Config { array: Some((*array).to_owned()), size: Some(64 << 20), ..config(LAYERS[0]) };
        let first = Device::open(config()).unwrap();
        work(&first, 0, 400);
        let file = folder.0.join("state");
        let about = first.write_state(&file).unwrap();
        assert_eq!(about["disks"], media(&first).len(), "{array}: {about}");
        // Most arrays do not know which of their blocks hold data; the layers of their disks do.
        let state = ArrayState::decode(&std::fs::read(&file).unwrap()).unwrap();
        let held = |state: &SavedState| state.written.iter().map(|r| r.end - r.start).sum::<u64>();
        let (all, knows) = (first.size() / 512, array.starts_with("dvs"));
        assert!(held(&state.array) > 0 && (held(&state.array) < all) == knows, "{array}");
        // A conventional drive keeps no such list: that of raid4s is the last.
        let shingled = &state.members[..state.members.len() - usize::from(array.starts_with("raid4s"))];
        assert!(shingled.iter().all(|member| (1..member.blocks).contains(&held(member))), "{array}");
        first.reset_stats();
        work(&first, 400, 700);
        let from_state = Config { from_state: Some(file.clone()), ..config() };
        let second = Device::open(from_state.clone()).unwrap();
        second.reset_stats();
        work(&second, 400, 700);
        assert!(media(&first).iter().any(Value::is_object), "{array}: {}", first.stats());
        assert_eq!(media(&second), media(&first), "{array}");
        // On a store on disk it outlives the server, and the file is needed no more.
        let store = StoreKind::Directory(folder.0.join(number.to_string()));
        let kept = Config { store, ..from_state };
        drop(Device::open(kept.clone()).unwrap());
        std::fs::remove_file(&file).unwrap();
        let again = Device::open(kept).unwrap();
        again.reset_stats();
        work(&again, 400, 700);
        assert_eq!(media(&again), media(&first), "{array}, started again");
    }
}

#[test]
fn an_array_that_is_not_whole_or_not_the_states_is_refused() {
    let folder = folder("arrays-refused");
    let file = folder.0.join("state");
    let array = |text: &str| Config { array: Some(text.to_owned()), size: Some(64 << 20), ..config("cmr") };
    let device = Device::open(array("raid5,disks=3")).unwrap();
    device.write_state(&file).unwrap();
    let says = |text: &str| {
        let wanted = Config { from_state: Some(file.clone()), ..array(text) };
        Device::open(wanted).err().unwrap().to_string()
    };
    assert!(
        says("raid5,disks=4").ends_with("it is the state of disks=3, and here disks=4: give disks=3"),
        "{}",
        says("raid5,disks=4")
    );
    let (served, clock) = device.array().unwrap();
    served.fail(clock, 1).unwrap();
    assert!(device.write_state(&file).unwrap_err().to_string().contains("disk 1 is not whole"));
    let one = Config { from_state: Some(file.clone()), ..config("cmr") };
    assert!(Device::open(one).err().unwrap().to_string().contains("array"));
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
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(says("rmw").ends_with("a damaged state: make it again"), "{}", says("rmw"));
    for array in [None, Some("raid5,disks=3".to_owned())] {
        let says = |path: &str| {
            let wanted = Config { from_state: Some(path.into()), array: array.clone(), ..config("rmw") };
            Device::open(wanted).err().unwrap().to_string()
        };
        let none = if array.is_some() { "no state of an array" } else { "no state that --save-state" };
        assert!(says("/dev/zero").starts_with(&format!("/dev/zero: {none}")), "{}", says("/dev/zero"));
        assert_eq!(says("/"), "/: is a folder: name a file in it");
    }
    assert!(
        Device::open(config("raw")).unwrap().write_state(&file).unwrap_err().to_string().contains("snapshot")
    );
    let nowhere = folder.0.join("nowhere/state");
    let e = Device::open(config("rmw")).unwrap().write_state(&nowhere).unwrap_err();
    assert!(e.to_string().ends_with("; choose another --out"), "{e}");
    assert_eq!(e.errno(), libc::ENOENT);
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

/// A drive of zones is as large as was asked for, or a few zones larger: a little more medium may give one on each surface.
#[test]
fn a_drive_of_zones_is_little_larger_than_asked_for() {
    for layer in ["zoned", "zoned,zone=16MiB", "zoned,zone=64MiB,conventional=0%"] {
        for wanted in [1 << 30, 8 << 30] {
            let config = Config { size: None, host_size: Some(wanted), ..config(layer) };
            let config = Config { drive: "modern-7200".into(), ..config };
            let device = Device::open(config).unwrap_or_else(|e| panic!("{layer}: {e}"));
            assert!(
                (wanted..=wanted + wanted / 8).contains(&device.size()),
                "{layer}: {} for {wanted}",
                device.size()
            );
        }
    }
}

/// As a store is that another version made, which found another medium for the same size.
#[test]
fn a_store_keeps_the_medium_that_it_was_made_with() {
    let folder = folder("medium");
    let zoned = ("zoned,zone=16MiB", None);
    for (i, (layer, array)) in
        [zoned, ("s-block", None), ("s-block", Some("raid5,disks=3"))].into_iter().enumerate()
    {
        let store = StoreKind::Directory(folder.0.join(i.to_string()));
        let array = array.map(str::to_owned);
        let made = Config { drive: "modern-7200".into(), size: Some(3 << 29), array, store, ..config(layer) };
        let whole = Device::open(made.clone()).unwrap().size();
        let asked = (whole - whole / 4) >> 12 << 12;
        let again = |bytes| Device::open(Config { size: None, host_size: Some(bytes), ..made.clone() });
        assert_eq!(again(asked).unwrap().size(), if i == 0 { whole } else { asked }, "{layer}");
        assert!(again(asked / 2).err().unwrap().to_string().contains("was made with"), "{layer}");
    }
}

/// A server that was killed between a checkpoint and the removal of what that replaces.
#[test]
fn what_a_checkpoint_replaced_goes_with_the_next_start() {
    let folder = folder("older");
    let store = folder.0.join("store");
    let config = || Config { store: StoreKind::Directory(store.clone()), ..config("s-block") };
    let device = Device::open(config()).unwrap();
    let begun = std::fs::read(store.join("log.0")).unwrap();
    work(&device, 0, 20);
    device.close().unwrap();
    drop(device);
    let logs = || {
        let names =
            std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut kept: Vec<_> =
            names.filter(|n| n.starts_with("log.") || n.starts_with("checkpoint.")).collect();
        kept.sort();
        kept
    };
    assert_eq!(logs(), ["checkpoint.1", "log.1"]);
    std::fs::write(store.join("log.0"), begun).unwrap();
    drop(Device::open(config()).unwrap());
    assert_eq!(logs(), ["checkpoint.1", "log.1"]);
}
