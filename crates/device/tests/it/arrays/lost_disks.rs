//! Disks of served arrays that die, answer with errors or are missing, and are rebuilt.

use super::{Checked, config, events, layers, redundant, scratch};
use serde_json::Value;
use smrlab_device::Device;

#[test]
fn a_disk_is_lost_and_rebuilt_while_the_array_is_used() {
    for array in redundant() {
        for layer in layers(array) {
            let dir = scratch();
            let mut checked = Checked::new(config(array, layer, dir.path()));
            checked.write(200);
            let (served, clock) = checked.device.array().unwrap();
            assert!(served.replace(clock, 1).unwrap_err().to_string().contains("not dead"));
            served.fail(clock, 1).unwrap();
            assert!(served.fail(clock, 1).unwrap_err().to_string().contains("dead already"));
            assert!(served.fail(clock, 9).unwrap_err().to_string().contains("no disk 9"));
            assert_eq!(checked.state(1), "dead");
            checked.check(&format!("{array} on {layer}, degraded"));
            checked.write(100);
            // The dead disk stays dead over a restart, and the rebuild goes on after one.
            let mut checked = checked.again(config(array, layer, dir.path()));
            assert_eq!(checked.state(1), "dead");
            checked.check(&format!("{array} on {layer}, degraded and started again"));
            let (served, clock) = checked.device.array().unwrap();
            served.replace(clock, 1).unwrap();
            assert_eq!(checked.state(1), "rebuilding");
            checked.write(20);
            let mut checked = checked.again(config(array, layer, dir.path()));
            checked.check(&format!("{array} on {layer}, rebuilding and started again"));
            checked.rebuilt(1, 2);
            checked.check(&format!("{array} on {layer}, rebuilt"));
            // What was rebuilt is as good as what was lost.
            let (served, clock) = checked.device.array().unwrap();
            served.fail(clock, 2).unwrap();
            checked.check(&format!("{array} on {layer}, another disk dead"));
            assert!(events(&checked.device, "disk-failed") == 1);
        }
    }
}

/// Two disks of RAID-6 are lost and rebuilt one after the other, over a restart; a third one in between is too many.
#[test]
fn two_disks_are_lost_and_rebuilt() {
    for (array, lost) in [("raid6,disks=5,chunk=8blk", [1, 3]), ("mirror,disks=4,chunk=8blk", [0, 3])] {
        let dir = scratch();
        let mut checked = Checked::new(config(array, "s-block", dir.path()));
        checked.write(150);
        let (served, clock) = checked.device.array().unwrap();
        lost.into_iter().for_each(|disk| _ = served.fail(clock, disk).unwrap());
        checked.check(&format!("{array}, two disks dead"));
        checked.write(60);
        let (served, clock) = checked.device.array().unwrap();
        served.replace(clock, lost[1]).unwrap();
        served.replace(clock, lost[0]).unwrap();
        let states = lost.map(|disk| checked.state(disk as usize));
        assert_eq!(states, ["rebuilding", "rebuilding"]);
        checked.write(20);
        let mut checked = checked.again(config(array, "s-block", dir.path()));
        checked.rebuilt(lost[1] as usize, 0);
        checked.rebuilt(lost[0] as usize, 0);
        let (served, clock) = checked.device.array().unwrap();
        served.fail(clock, 2).unwrap();
        checked.check(&format!("{array}, rebuilt, and another disk dead"));
    }
    let dir = scratch();
    let checked = Checked::new(config("raid6,disks=5,chunk=8blk", "cmr", dir.path()));
    let (served, clock) = checked.device.array().unwrap();
    (0..3).for_each(|disk| _ = served.fail(clock, disk).unwrap());
    let said = served.replace(clock, 1).unwrap_err().to_string();
    assert!(said.contains("disk 0 or 2 is not whole either"), "{said}");
}

/// What was never written needs no rebuild, and is not in its way when the server starts again meanwhile.
#[test]
fn a_nearly_empty_array_is_rebuilt_over_a_restart() {
    for array in redundant() {
        let (dir, layer) = (scratch(), layers(array)[0]);
        let mut checked = Checked::new(config(array, layer, dir.path()));
        checked.write(3);
        let (served, clock) = checked.device.array().unwrap();
        served.fail(clock, 1).unwrap();
        served.replace(clock, 1).unwrap();
        let mut checked = checked.again(config(array, layer, dir.path()));
        checked.rebuilt(1, 0);
        checked.check(&format!("{array}, rebuilt"));
    }
}

#[test]
fn a_missing_store_is_a_lost_disk() {
    let dir = scratch();
    let array = "raid5,disks=3,chunk=8blk";
    let mut checked = Checked::new(config(array, "cmr", dir.path()));
    checked.write(100);
    let Checked { device, plain, random } = checked;
    drop(device);
    std::fs::remove_dir_all(dir.path().join("store/disk.2")).unwrap();
    let device = Device::open(config(array, "cmr", dir.path())).unwrap();
    let mut checked = Checked { device, plain, random };
    assert_eq!(checked.state(2), "dead");
    assert_eq!(events(&checked.device, "disk-failed"), 1);
    checked.check("without disk 2");
    let (served, clock) = checked.device.array().unwrap();
    served.replace(clock, 2).unwrap();
    checked.rebuilt(2, 0);
    checked.check("rebuilt");
}

#[test]
fn a_disk_that_answers_with_errors_is_thrown_out() {
    let dir = scratch();
    let mut checked = Checked::new(config("raid5,disks=3,chunk=8blk", "cmr", dir.path()));
    checked.write(100);
    let injection = serde_json::from_value(serde_json::json!({"unreadable": [0, 1 << 20]})).unwrap();
    checked.device.medium(Some(1)).unwrap().faults.inject(&injection);
    checked.check("with an unreadable disk");
    assert_eq!(checked.state(1), "dead");
    checked.write(50);
    checked.check("without it");
    assert_eq!(events(&checked.device, "disk-failed"), 1);
}

/// Without redundancy nothing is thrown out: reads fail where the disk does, and the rest is served.
#[test]
fn without_redundancy_an_error_is_an_error() {
    let dir = scratch();
    let mut checked = Checked::new(config("spanning,disks=2", "cmr", dir.path()));
    checked.write(100);
    let injection = serde_json::from_value(serde_json::json!({"unreadable": [0, 8]})).unwrap();
    checked.device.medium(Some(1)).unwrap().faults.inject(&injection);
    let half = checked.device.size() / 2;
    let mut out = [0; 4096];
    assert!(checked.device.read(half, &mut out).unwrap_err().to_string().contains("unreadable"));
    checked.device.read(0, &mut out).unwrap();
    assert_eq!(out[..], checked.plain[..4096]);
    let (served, clock) = checked.device.array().unwrap();
    served.fail(clock, 1).unwrap();
    assert!(served.replace(clock, 1).unwrap_err().to_string().contains("no redundancy"));
    assert_eq!(checked.device.read(half, &mut out).unwrap_err().errno(), libc::EIO);
    checked.device.read(0, &mut out).unwrap();
}

/// Dirty data on the SSD survive, and are destaged to what is left of the disks.
#[test]
fn dirty_data_outlive_a_disk_and_a_kill() {
    for (array, pages) in [
        ("raid5,disks=3,chunk=8blk,ssd_write=64KiB,ssd_page=4KiB,ssd_high=90%,ssd_low=80%", 12),
        ("dvs,disks=4,chunk=4blk,segment=8,overprovision=20%,ssd_write=64KiB,ssd_page=2KiB,journal=on", 24),
    ] {
        let dir = scratch();
        let mut checked = Checked::new(config(array, "cmr", dir.path()));
        // Less than the SSD takes: no disk has any of it.
        checked.device.write(0, &[0x5a; 48 << 10], true).unwrap();
        checked.plain[..48 << 10].fill(0x5a);
        let written =
            |c: &Checked, disk: usize| c.device.stats()["disks"][disk]["by_cause"]["host"]["writes"].clone();
        assert!((0..3).all(|d| written(&checked, d) == Value::Null), "{array}: {}", checked.device.stats());
        let ssd = checked.device.stats()["array"]["ssd"].clone();
        assert_eq!((&ssd["writes"], &ssd["blocks_written"]), (&pages.into(), &96.into()), "{array}");
        let (served, clock) = checked.device.array().unwrap();
        served.fail(clock, 1).unwrap();
        let Checked { device, plain, random } = checked;
        drop(device);
        checked = Checked { device: Device::open(config(array, "cmr", dir.path())).unwrap(), plain, random };
        checked.check(&format!("{array}, killed without disk 1"));
        let (served, clock) = checked.device.array().unwrap();
        assert!(served.fail(clock, 9).unwrap_err().to_string().contains("no disk 9"));
        served.replace(clock, 1).unwrap();
        checked.write(200);
        checked.rebuilt(1, 1);
        checked.check(&format!("{array}, rebuilt"));
        let (served, clock) = checked.device.array().unwrap();
        served.fail(clock, 2).unwrap();
        checked.check(&format!("{array}, another disk dead"));
        drop(checked);
        std::fs::rename(dir.path().join("store/ssd"), dir.path().join("gone")).unwrap();
        let e = Device::open(config(array, "cmr", dir.path())).err().unwrap().to_string();
        assert!(e.contains("SSD's store") && e.contains("missing"), "{e}");
        std::fs::rename(dir.path().join("gone"), dir.path().join("store/ssd")).unwrap();
        Device::open(config(array, "cmr", dir.path())).unwrap();
    }
}
