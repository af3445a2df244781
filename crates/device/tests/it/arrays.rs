//! Arrays with real bytes: read back over restarts, killed servers, disks that die and are rebuilt, and power losses.

use serde_json::Value;
use smrlab_device::config::StoreKind;
use smrlab_device::machine::Machine;
use smrlab_device::{Config, Device};
use smrlab_units::rng::Rng;
use std::path::Path;
use std::sync::Arc;

pub(crate) const ARRAYS: &[&str] = &[
    "spanning,disks=3",
    "striped,disks=4,chunk=7blk",
    "dedicated,disks=2",
    "raid5,disks=5,chunk=8blk",
    "raid5,disks=4,chunk=4KiB,layout=left-symmetric,intent=on",
    "dvs,disks=4,chunk=4blk,segment=8,overprovision=20%",
    "dvs,groups=moving,fill=1,disks=4,chunk=4blk,segment=5,overprovision=20%,batch=6",
    "full-stripe,disks=4,chunk=4blk,segment=5",
    "full-stripe,disks=3,chunk=4blk,segment=6,stripes=wait,ssd_write=64KiB,ssd_page=2KiB",
    "striped,disks=2,ssd_read=16KiB,ssd_page=4KiB",
    "raid5,disks=4,chunk=8blk,ssd_write=32KiB,ssd_read=16KiB,ssd_page=4KiB",
    "dvs,disks=4,chunk=4blk,segment=8,overprovision=20%,ssd_write=64KiB,ssd_page=2KiB,journal=on",
    "raid5,disks=3,chunk=8blk,journal=on",
    "raid5,disks=4,chunk=8blk,parity=log,log=24blk,log_region=64blk,intent=on",
    "raid5,disks=5,chunk=16blk,parity=log,log=9blk,log_region=64blk,log_on=ssd",
    "raid4s,disks=4,chunk=8blk,intent=on",
    "raid6,disks=5,chunk=8blk,intent=on",
    "raid6,disks=4,chunk=8blk,journal=on,ssd_write=32KiB,ssd_page=4KiB",
    "mirror,disks=3,copies=3,chunk=8blk",
    "mirror,disks=3,chunk=8blk,intent=on,reads=turns",
    "mirror,chunk=8blk / striped,disks=2,chunk=4blk",
    "raid5,disks=3,chunk=8blk,intent=on / mirror,chunk=4blk,intent=on",
    "raid5,disks=3,chunk=8blk / spanning,disks=1,ssd_write=32KiB,ssd_page=4KiB",
    "raid5,disks=3,chunk=8blk,intent=on / zone-log",
];

/// What its drives are.
pub(crate) fn layers(array: &str) -> &'static [&'static str] {
    if array.contains("zone-log") { &["zoned,zone=8KiB,conventional=0%"] } else { &["cmr", "s-block"] }
}

fn redundant() -> impl Iterator<Item = &'static &'static str> {
    ARRAYS.iter().filter(|a| smrlab_array::parse(a).unwrap().capabilities().losses > 0)
}

pub(crate) fn scratch() -> tempfile::TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.unwrap()
}

pub(crate) fn config(array: &str, layer: &str, dir: &Path) -> Config {
    let store = StoreKind::Directory(dir.join("store"));
    let array = Some(array.to_owned());
    Config { array, map_budget: 1 << 20, ..Config::new("a", "tiny", layer, store) }
}

/// A device, and what it should hold.
pub(crate) struct Checked {
    pub(crate) device: Arc<Device>,
    plain: Vec<u8>,
    random: Rng,
}

impl Checked {
    fn new(config: Config) -> Self {
        Self::of(Device::open(config).unwrap(), 88172645463325252)
    }

    /// A blank device, of which `seed` says what is asked.
    pub(crate) fn of(device: Arc<Device>, seed: u64) -> Self {
        let plain = vec![0; device.size() as usize];
        Self { device, plain, random: Rng::new(seed) }
    }

    /// The server is killed, and another one starts.
    pub(crate) fn again(self, config: Config) -> Self {
        let Self { device, plain, random } = self;
        drop(device);
        Self { device: Device::open(config).unwrap(), plain, random }
    }

    pub(crate) fn write(&mut self, requests: u64) {
        let blocks = self.device.size() / 512;
        for i in 0..requests {
            let start = self.random.below(blocks);
            let len = (1 + self.random.below(60)).min(blocks - start);
            let range = (start * 512) as usize..((start + len) * 512) as usize;
            match self.random.below(12) {
                0 => {
                    self.device.zero(start * 512, len * 512, false).unwrap();
                    self.plain[range].fill(0);
                }
                1 => self.device.flush().unwrap(),
                _ => {
                    let stamp = self.random.below(255) as u8 | 1;
                    for (j, byte) in self.plain[range.clone()].iter_mut().enumerate() {
                        *byte = stamp ^ (j / 512 + i as usize) as u8;
                    }
                    self.device.write(start * 512, &self.plain[range], false).unwrap();
                }
            }
        }
    }

    pub(crate) fn check(&self, when: &str) {
        let mut all = vec![0xee; self.plain.len()];
        let step = 97 * 512;
        for (i, part) in all.chunks_mut(step).enumerate() {
            self.device.read((i * step) as u64, part).unwrap();
        }
        if let Some(at) = all.iter().zip(&self.plain).position(|(a, b)| a != b) {
            panic!("{when}: byte {at} of block {} differs", at / 512);
        }
    }

    fn state(&self, disk: usize) -> String {
        let info = self.device.info();
        info["engine"]["disks"][disk]["state"].as_str().unwrap().to_owned()
    }

    /// Lets the server do what it does between requests until the disk is rebuilt.
    pub(crate) fn rebuilt(&mut self, disk: usize, meanwhile: u64) {
        let mut last = 0;
        for _ in 0..100_000 {
            let state = &self.device.info()["engine"]["disks"][disk];
            if state["state"] == "whole" {
                return;
            }
            let done = state["rebuilt"].as_u64().unwrap();
            assert!(done >= last, "the rebuild goes back from {last} to {done}");
            last = done;
            self.device.housekeeping();
            self.write(meanwhile);
        }
        panic!("disk {disk} is not rebuilt: {}", self.device.stats());
    }
}

fn events(device: &Device, kind: &str) -> usize {
    device.events.after(0).iter().filter(|e| e.kind == kind).count()
}

/// What an array says of its extents: they follow each other from the first byte asked for, and what holds anything is data; arrays with
/// tables know what was never written.
#[test]
fn extents_leave_out_nothing_that_holds_data() {
    for array in ARRAYS {
        let dir = scratch();
        let mut checked = Checked::new(config(array, layers(array)[0], dir.path()));
        let size = checked.device.size();
        let holes = |checked: &Checked| {
            let (mut at, mut holes) = (4096, 0);
            while at < size {
                let mut next = at;
                let each = &mut |from: u64, n: u64, data: bool| {
                    assert!(from == next && n > 0, "{array}: {from} after {next}");
                    let bytes = &checked.plain[from as usize..(from + n) as usize];
                    assert!(data || bytes.iter().all(|b| *b == 0), "{array}: data in the hole at {from}");
                    (next, holes) = (from + n, holes + if data { 0 } else { n });
                };
                checked.device.extents(at, size - at, each).unwrap();
                at = next;
            }
            assert_eq!(at, size, "{array}");
            holes
        };
        if array.starts_with("dvs") || array.starts_with("full-stripe") {
            assert_eq!(holes(&checked), size - 4096, "{array}: nothing was written");
        }
        checked.write(12);
        holes(&checked);
    }
}

#[test]
fn every_array_keeps_data_over_restarts_and_killed_servers() {
    for array in ARRAYS {
        for layer in layers(array) {
            let dir = scratch();
            let mut checked = Checked::new(config(array, layer, dir.path()));
            for round in 0..4 {
                checked.write(150);
                checked.check(&format!("{array} on {layer}, round {round}"));
                if round == 1 {
                    checked.device.close().unwrap();
                }
                // Dropped as it is, as a killed server is.
                checked = checked.again(config(array, layer, dir.path()));
                checked.check(&format!("{array} on {layer}, started after round {round}"));
            }
        }
    }
}

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

/// A kernel that starts again without a goodbye leaves rows in doubt: all parity is made good, and remembered until it is.
#[test]
fn after_a_power_loss_parity_is_made_good() {
    let open = |dir: &Path, boot| {
        let machine = Machine { boot, ..Machine::default() };
        Device::open_on(config("raid5,disks=4,chunk=8blk", "cmr", dir), machine).unwrap()
    };
    let doubt = |device: &Device| device.stats()["array"]["rows_in_doubt"].clone();
    let dir = scratch();
    let plain = vec![0; open(dir.path(), 1).size() as usize];
    let mut checked = Checked { device: open(dir.path(), 1), plain, random: Rng::new(7) };
    checked.write(100);
    // What was never written is zeroes after a power loss: the first three rows were.
    checked.device.write(0, &[0x11; 3 * 3 * 8 * 512], false).unwrap();
    checked.device.flush().unwrap();
    // What a cut between data and parity leaves: rows that do not fit.
    let spoiled = checked.device.medium(Some(0)).unwrap();
    for row in 0..3 {
        spoiled.write(8 * row + 3, &[0x77; 512]).unwrap();
    }
    drop((checked.device, spoiled));
    let device = open(dir.path(), 2);
    assert_eq!(events(&device, "unclean"), 1);
    assert!(doubt(&device).as_u64().unwrap() > 0);
    drop(device);
    // Another start on the same boot: the doubt is not forgotten.
    let device = open(dir.path(), 2);
    assert_eq!(events(&device, "unclean"), 0);
    for _ in 0..100_000 {
        if doubt(&device) == Value::Null {
            break;
        }
        device.housekeeping();
    }
    assert_eq!(doubt(&device), Value::Null);
    let mut before = vec![0; device.size() as usize];
    device.read(0, &mut before).unwrap();
    let spoiled = before[..3 * 3 * 8 * 512].chunks(512).filter(|block| **block == [0x77; 512]).count();
    assert_eq!(spoiled, 3, "data stay as the power loss left them");
    let (served, clock) = device.array().unwrap();
    served.fail(clock, 0).unwrap();
    let mut after = vec![0; device.size() as usize];
    device.read(0, &mut after).unwrap();
    assert!(before == after, "a disk was made from parity that does not fit");
    device.close().unwrap();
    drop(device);
    // Stopped in good order: another boot means nothing.
    assert_eq!(events(&open(dir.path(), 3), "unclean"), 0);
}

/// Of an array of arrays each member tells what it counts and what it doubts, as it does in a run.
#[test]
fn members_tell_what_is_in_doubt_there() {
    let dir = scratch();
    let open = |boot| {
        let machine = Machine { boot, ..Machine::default() };
        let own = config("striped,disks=2,chunk=8blk / raid5,disks=3,chunk=8blk", "cmr", dir.path());
        Device::open_on(own, machine).unwrap()
    };
    let device = open(1);
    device.write(0, &[7; 64 * 512], true).unwrap();
    drop(device);
    let device = open(2);
    let of = |member: usize, key: &str| device.stats()["array"]["members"][member][key].as_u64();
    assert!([0, 1].into_iter().all(|member| of(member, "rows_in_doubt").is_some_and(|rows| rows > 0)));
    while of(0, "rows_in_doubt").or(of(1, "rows_in_doubt")).is_some() {
        device.housekeeping();
    }
    device.write(0, &[8; 8 * 512], false).unwrap();
    let ways = ["rows_written_whole", "rows_modified", "rows_reconstructed"];
    let writes = |member| ways.into_iter().filter_map(|way| of(member, way)).sum::<u64>();
    assert_eq!([writes(0), writes(1)], [1, 0], "{}", device.stats()["array"]);
}

/// A server that was killed while disks were written may have left a row half done; one that was killed at rest, or stopped, has
/// not; and with `intent=on` it is known which rows.
#[test]
fn after_a_kill_parity_is_made_good_where_rows_were_under_way() {
    for (array, unclean) in [("raid5,disks=4,chunk=8blk", 1), ("raid5,disks=4,chunk=8blk,intent=on", 0)] {
        let dir = scratch();
        let mut checked = Checked::new(config(array, "cmr", dir.path()));
        checked.write(30);
        let again = |checked: Checked| {
            let Checked { device, plain, random } = checked;
            drop(device);
            Checked { device: Device::open(config(array, "cmr", dir.path())).unwrap(), plain, random }
        };
        let doubt = |c: &Checked| c.device.stats()["array"]["rows_in_doubt"].as_u64();
        let mut checked = again(checked);
        assert_eq!(events(&checked.device, "unclean"), 1, "{array}");
        assert_eq!(doubt(&checked).is_some(), unclean == 1, "{array}");
        while doubt(&checked).is_some() {
            checked.device.housekeeping();
        }
        checked.check(array);
        checked.write(5);
        // Noted as being at rest after a while without writes.
        (0..3).for_each(|_| checked.device.housekeeping());
        let checked = again(checked);
        assert_eq!(events(&checked.device, "unclean"), 0, "{array}: killed at rest");
        checked.device.close().unwrap();
        let mut checked = again(checked);
        assert_eq!(events(&checked.device, "unclean"), 0, "{array}: stopped");
        checked.write(5);
        checked.device.close().unwrap();
        assert_eq!(events(&again(checked).device, "unclean"), 0, "{array}: stopped after writes");
    }
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

#[test]
fn what_cannot_be_served_says_why() {
    let dir = scratch();
    let said = |change: &dyn Fn(&mut Config)| {
        let mut config = config("raid5,disks=3", "cmr", dir.path());
        change(&mut config);
        Device::open(config).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(said(&|c| c.layer = "raw,tracks=3".into()).contains("keep their data"));
    assert!(said(&|c| c.array = Some("raid5,disk=3".into())).contains("did you mean 'disks'"));
    for key in ["fail=1@2s", "replace=5s", "spares=2"] {
        let said = said(&|c| c.array = Some(format!("raid5,{key}")));
        assert!(said.contains("device fail NAME --disk N") && said.contains("device replace NAME"), "{said}");
    }
    assert!(said(&|c| c.host_size = Some(1 << 60)).contains("of this drive offers the host"));
    // The conventional drive of raid4s is one below a member, too.
    let zoned = |c: &mut Config| {
        c.array = Some("raid4s,disks=3,chunk=8blk / zone-log".into());
        c.layer = "zoned,zone=8KiB".into();
    };
    assert!(said(&zoned).contains("the drive below it shows no zones"), "{}", said(&zoned));
}
