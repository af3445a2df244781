//! Arrays with real bytes: read back over restarts and killed servers, with disks that die and are rebuilt, and after power losses.

mod doubt;
mod lost_disks;

use smrlab_device::config::StoreKind;
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
    pub(crate) plain: Vec<u8>,
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

    /// This seed says what is asked from now on.
    pub(crate) fn seeded(&mut self, seed: u64) {
        self.random = Rng::new(seed);
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

/// A member's read cache takes zeroes of what was never written, for which no drive is asked.
#[test]
fn a_members_cache_takes_what_was_never_written() {
    let dir = scratch();
    let array =
        "mirror,chunk=2blk / full-stripe,chunk=8blk,batch=2,ssd_page=2blk,ssd_read=64blk,ssd_write=2blk";
    let checked = Checked::new(config(array, "zoned,zone=16KiB,conventional=0%", dir.path()));
    (0..2).for_each(|_| checked.check("never written"));
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
    let restricted = |c: &mut Config| {
        c.array = Some("zone-log".into());
        c.layer = "zoned,zone=8KiB,urswrz=off".into();
    };
    assert!(said(&restricted).contains("leave urswrz=off out"), "{}", said(&restricted));
    // The conventional drive of raid4s is one below a member, too.
    let zoned = |c: &mut Config| {
        c.array = Some("raid4s,disks=3,chunk=8blk / zone-log".into());
        c.layer = "zoned,zone=8KiB".into();
    };
    assert!(said(&zoned).contains("the drive below it shows no zones"), "{}", said(&zoned));
}
