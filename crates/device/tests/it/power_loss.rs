//! The host loses its power: of the data written since the last sync any sectors are on its disk, and of the log's newer
//! sectors any. What was flushed has to be there, the rest old or new, and nothing else; again and again on the same store.

use crate::power::{Allowed, Disk, SECTOR, config, in_doubt, is_buffered, left_of, open, scratch};
use parking_lot::Mutex;
use smrlab_device::Device;
use smrlab_device::config::StoreKind;
use smrlab_disk::{DriveModel, Interference};
use smrlab_units::Pba;
use smrlab_units::rng::Rng;
use std::ops::Range;
use std::sync::Arc;
use tempfile::TempDir;

fn fences(device: &Device) -> u64 {
    let stats = device.stats();
    let disks = stats["disks"].as_array().into_iter().flatten();
    let all = disks.chain([&stats["media"], &stats["array"]]);
    all.map(|of| of["fences"].as_u64().unwrap_or(0)).sum()
}

/// A store through many lives.
pub(crate) struct Lives {
    layer: String,
    raw: bool,
    /// Drives have buffers, which a killed server loses.
    buffered: bool,
    dir: TempDir,
    disk: Arc<Mutex<Disk>>,
    boot: u64,
    boots_change: bool,
    /// A disk of the array is dead from the start.
    degraded: bool,
    allowed: Allowed,
    model: Vec<u8>,
    random: Rng,
    stamp: u64,
    fences: u64,
}

impl Lives {
    /// Of a new store of a [stack](crate::power::config).
    pub(crate) fn new(layer: &str, seed: u64) -> Self {
        let dir = scratch();
        let disk = Arc::new(Mutex::new(Disk::of(&dir.path().join("store"), u64::MAX, Rng::new(seed + 1))));
        let random = Rng::new(seed * 7919 + 12345);
        let raw = layer.starts_with("raw");
        Self {
            layer: layer.to_owned(),
            raw,
            buffered: is_buffered(layer),
            dir,
            disk,
            boot: 1,
            boots_change: true,
            degraded: false,
            allowed: Allowed::only(&[]),
            model: Vec::new(),
            random,
            stamp: 0,
            fences: 0,
        }
    }

    fn all(&self, device: &Device) -> Vec<u8> {
        let mut all = vec![0; device.size() as usize];
        device.read(0, &mut all).unwrap();
        all
    }

    /// One life of the server; answers whether the power was lost.
    fn live(&mut self, requests: u64) -> bool {
        let store = self.dir.path().join("store");
        let device = open(&self.layer, None, (&store, self.boot), &self.disk);
        if self.model.is_empty() {
            if self.degraded {
                let (array, clock) = device.array().unwrap();
                array.fail(clock, 1).unwrap();
            }
            self.model = self.all(&device);
            self.allowed = Allowed::only(&self.model);
            let random = Rng::new(self.random.below(u64::MAX) | 1);
            *self.disk.lock() = Disk::of(&store, u64::MAX, random);
        }
        let all = self.all(&device);
        if self.buffered {
            let wrong = self.allowed.wrong(&all);
            assert!(wrong.is_empty(), "{}: a killed server lost what was durable: {wrong:?}", self.layer);
            self.model = all;
        } else {
            assert!(all == self.model, "{}: a start changes what is read", self.layer);
        }
        // What the start synced it has synced.
        self.disk.lock().answered += 1;
        self.disk.lock().left = 1 + self.random.below(400);
        for _ in 0..requests {
            self.request(&device);
            if self.layer.contains(" over ") && self.random.below(8) == 0 {
                device.housekeeping();
            }
            if self.disk.lock().image.is_some() {
                self.fences += fences(&device);
                drop(device);
                self.lose_power();
                return true;
            }
        }
        if self.random.below(3) == 0 {
            device.close().unwrap();
            self.disk.lock().answered += 1;
            if self.disk.lock().image.is_none() {
                self.allowed = Allowed::only(&self.model);
            }
        }
        drop(device);
        if self.disk.lock().image.is_some() {
            self.lose_power();
            return true;
        }
        false
    }

    fn drive(&self) -> DriveModel {
        let drive = config(&self.layer, StoreKind::Memory).drive;
        let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
        smrlab_disk::model::load(&drive, read).unwrap()
    }

    /// To where a write that begins at `block` destroys nothing that it wrote itself.
    fn unharmed_end(&self, block: u64) -> u64 {
        let drive = self.drive();
        if matches!(drive.interference(), Interference::Blocks(_)) {
            return block + 1;
        }
        let (g, track) = (drive.geometry(), drive.geometry().track_of(Pba(block)));
        g.track_start(track).0 + g.track_blocks(track).0
    }

    fn request(&mut self, device: &Device) {
        let blocks = device.size() / 512;
        // Of an array mostly a few stripes, so that journals and what is collected are used again and again.
        let few = self.layer.contains(" over ") && self.random.below(4) > 0;
        let start = self.random.below(if few { blocks / 8 } else { blocks });
        // A raw write that destroyed what it wrote itself would pass through states that cannot be seen from here.
        let most = if self.raw { self.unharmed_end(start).min(blocks) } else { blocks };
        let len = (1 + self.random.below(24)).min(most - start);
        let (at, n) = ((start * 512) as usize, (len * 512) as usize);
        let (kind, fua) = (self.random.below(20), self.random.below(12) == 0);
        let (durable, written) = match kind {
            0 => {
                device.flush().unwrap();
                (true, false)
            }
            1 if self.random.below(4) == 0 => {
                device.close().unwrap();
                (true, false)
            }
            // As housekeeping does for a long log: no flush, and yet durable state.
            1 if self.raw => {
                device.medium(None).unwrap().checkpoint(true).unwrap();
                (false, false)
            }
            _ => {
                let zero = kind == 2;
                self.stamp += 1;
                let data: Vec<u8> = match zero {
                    true => vec![0; n],
                    false => (0..n as u64 / 8)
                        .flat_map(|i| (self.stamp << 24 | (i / 64) << 8 | 1).to_le_bytes())
                        .collect(),
                };
                let done = match zero {
                    true => device.zero(at as u64, n as u64, fua),
                    false => device.write(at as u64, &data, fua),
                };
                match done {
                    // Guards are not to be written.
                    Err(e) if self.raw && e.errno() == 1 => return,
                    done => done.unwrap(),
                }
                self.allowed.add(at, &data);
                self.model[at..at + n].copy_from_slice(&data);
                (fua, true)
            }
        };
        if self.raw {
            self.add_victims(device, start..start + len);
        }
        let mut disk = self.disk.lock();
        disk.answered += u64::from(durable);
        if durable && disk.image.is_none() {
            match written && self.buffered {
                // What else is in the drives' buffers stays there.
                true => self.allowed.set(at, &self.model[at..at + n]),
                false => self.allowed = Allowed::only(&self.model),
            }
        }
    }

    /// What else a write destroyed, which near the edge of a zone more than one of its blocks can: as many as lie beside one.
    fn add_victims(&mut self, device: &Device, written: Range<u64>) {
        self.model = self.all(device);
        self.allowed.add(0, &self.model);
        let (mut pieces, blocks) = (Vec::new(), device.size() / SECTOR as u64);
        device.medium(None).unwrap().with_runs(|s| s.resolve(0, s.blocks(), &mut pieces));
        let drive = self.drive();
        let sectors = drive.spec().geometry.zones.iter().map(|zone| zone.sectors);
        let beside = u64::from(sectors.clone().max().unwrap().div_ceil(sectors.min().unwrap()));
        for p in pieces.iter().filter(|p| p.destroyed()) {
            // Of a drive that is longer than what the host has.
            for (at, from) in (p.at..p.at + p.blocks).zip(p.from..).take_while(|(at, _)| *at < blocks) {
                for other in written.clone().filter(|other| other.abs_diff(from) <= beside) {
                    self.allowed.add(at as usize * SECTOR, &self.model[other as usize * SECTOR..][..SECTOR]);
                }
            }
        }
    }

    /// The host starts again with what its disk has.
    fn lose_power(&mut self) {
        let random = Rng::new(self.random.below(u64::MAX) | 1);
        (self.dir, self.disk) = left_of(&self.disk, random);
        self.boot += u64::from(self.boots_change);
        let store = self.dir.path().join("store");
        let device = open(&self.layer, None, (&store, self.boot), &self.disk);
        let all = self.all(&device);
        let (wrong, what) = (self.allowed.wrong(&all), format!("{} on boot {}", self.layer, self.boot));
        assert!(wrong.is_empty(), "{what}: {} blocks read as nothing they ever were: {wrong:?}", wrong.len());
        if self.raw || self.layer.starts_with("cmr") {
            let mut hole = |at: u64, n: u64, data: bool| {
                let zero = data || all[at as usize..(at + n) as usize].iter().all(|b| *b == 0);
                assert!(zero, "{}: a hole at {at} that does not read as zeroes", self.layer);
            };
            device.extents(0, device.size(), &mut hole).unwrap();
        }
        self.allowed = Allowed::only(&all);
        self.model = all;
    }
}

impl Lives {
    /// Parity fits what it is the parity of, once it is made good.
    fn lose_a_disk(&mut self) {
        let device = open(&self.layer, None, (&self.dir.path().join("store"), self.boot), &self.disk);
        self.disk.lock().left = u64::MAX;
        while in_doubt(&device) {
            device.housekeeping();
        }
        let before = self.all(&device);
        let (array, clock) = device.array().unwrap();
        array.fail(clock, 1).unwrap();
        assert!(self.all(&device) == before, "{}: a disk was made from parity that does not fit", self.layer);
    }
}

fn lives(layer: &str, losses: u64, boots_change: bool) {
    lives_of(Lives { boots_change, ..Lives::new(layer, losses + layer.len() as u64) }, losses);
}

/// Lives until the power was lost so many times, and then a disk.
pub(crate) fn lives_of(mut lives: Lives, losses: u64) {
    let layer = lives.layer.clone();
    let (mut lost, mut all) = (0, 0);
    while lost < losses {
        let requests = 1 + lives.random.below(80);
        lost += u64::from(lives.live(requests));
        all += 1;
    }
    if let Some((array, _)) = layer.split_once(" over ")
        && !lives.degraded
        && smrlab_array::parse(array).unwrap().capabilities().losses > 0
    {
        lives.lose_a_disk();
    }
    println!("{layer}: {lost} losses of power in {all} lives, {} fences", lives.fences);
}

macro_rules! survives {
    ($($name:ident: $layer:expr, $losses:expr;)*) => {$(
        #[test]
        fn $name() {
            lives($layer, $losses, true);
        }
    )*};
}

survives! {
    cmr: "cmr", 20;
    raw: "raw,tracks=1", 20;
    raw_shingled: "raw,tracks=3", 20;
    rmw: "rmw,journal=on", 20;
    rmw_partial: "rmw,mode=partial,journal=on", 20;
    static_map: "static-R(4123),journal=on", 20;
    disk_cache: "disk-cache,journal=on,band=16,cache=20%", 20;
    disk_cache_partial: "disk-cache,journal=on,cleaning=partial,clean_bands=2,band=16,cache=10%", 20;
    s_block: "s-block", 20;
    striped: "striped,disks=2,chunk=7blk,ssd_read=16KiB,ssd_page=2KiB over s-block", 20;
    raid5: "raid5,disks=3,chunk=4blk over s-block", 20;
    raid5_journal: "raid5,disks=3,chunk=4blk,journal=on over cmr", 20;
    raid6: "raid6,disks=4,chunk=4blk over s-block", 20;
    raid6_journal: "raid6,disks=4,chunk=4blk,journal=on over cmr", 20;
    mirror: "mirror,disks=3,chunk=4blk over s-block", 20;
    dm_zoned: "dm-zoned,reserved=1,copy=4KiB over zoned,zone=32KiB,conventional=50%", 20;
    zone_log: "zone-log over zoned,zone=8KiB,conventional=0%", 20;
    mirror_of_zone_logs: "mirror,chunk=4blk / zone-log over zoned,zone=8KiB,conventional=0%", 20;
    full_stripe: "full-stripe,disks=3,chunk=4blk,segment=4,batch=3 over s-block", 20;
    full_stripe_zones: "full-stripe,disks=3,chunk=8blk,batch=3 over zoned,zone=16KiB,conventional=0%", 20;
    ssd_before_full_stripe:
        "full-stripe,disks=4,chunk=4blk,segment=6,stripes=wait,ssd_write=32KiB,ssd_page=2KiB over cmr", 20;
    dvs_moving: "dvs,groups=moving,fill=1,disks=4,chunk=4blk,segment=5,overprovision=20%,batch=5 over cmr", 20;
    ssd_before_disks: "striped,disks=2,chunk=7blk,ssd_write=16KiB,ssd_page=2KiB over cmr", 20;
    ssd_before_raid5: "raid5,disks=3,chunk=4blk,ssd_write=32KiB,ssd_page=2KiB,ssd_read=8KiB over s-block", 20;
    ssd_before_dvs:
        "dvs,disks=4,chunk=4blk,segment=8,overprovision=20%,journal=on,ssd_write=32KiB,ssd_page=2KiB over cmr", 20;
    dvs_journal: "dvs,disks=4,chunk=4blk,segment=8,overprovision=20%,journal=on over s-block", 20;
}

/// What a row's journal holds is durable before the row is written: a dead disk's blocks are not lost with a power cut in it. In the
/// first lives of the first one a server is killed and its successor loses its power: what the ledger had of the first must not
/// become durable before what it is about.
#[test]
fn a_journal_saves_the_rows_of_a_dead_disk() {
    for array in [
        "raid5,disks=3,chunk=4blk,journal=on over cmr",
        "raid5,disks=4,chunk=4blk,journal=on,ssd_write=16KiB,ssd_page=2KiB over s-block",
        "raid6,disks=4,chunk=4blk,journal=on over cmr",
    ] {
        lives_of(Lives { degraded: true, ..Lives::new(array, 3) }, 20);
    }
    let bare = "raid5,disks=3,chunk=4blk over cmr";
    let hole = || lives_of(Lives { degraded: true, ..Lives::new(bare, 11) }, 40);
    assert!(std::panic::catch_unwind(hole).is_err(), "without a journal nothing was lost");
}

/// A zone that was reset, to be written anew, when the power failed: the records of its group before that say that there is room in it.
#[test]
fn a_zone_that_was_reset_is_not_written_on() {
    for seed in [1, 11] {
        let array = "full-stripe,disks=3,chunk=8blk,batch=3 over zoned,zone=20KiB,conventional=10%";
        lives_of(Lives::new(array, seed), 20);
    }
}

/// Likewise the chunks of a group that DVS collects.
#[test]
fn without_a_journal_collections_lose_what_was_flushed() {
    let bare = || lives("dvs,disks=4,chunk=4blk,segment=8,overprovision=20% over cmr", 40, true);
    assert!(std::panic::catch_unwind(bare).is_err(), "nothing was lost");
}

/// A server goes on behind its end: a loss of power then was no orderly end, and what the array recorded by then, of writes to the
/// SSD too, is durable no sooner than what it is about.
#[test]
fn a_server_that_goes_on_has_not_ended() {
    let of_ssd = "raid4s,chunk=4blk,ssd_page=2blk,ssd_write=7blk over cmr";
    for (array, seed) in [("raid4s,chunk=4blk over laz-raz", 283), (of_ssd, 319), (of_ssd, 796)] {
        lives_of(Lives::new(array, seed), 4);
    }
}

/// The control: a server that took all records that are there, as after a kill, would serve mixed-up data.
#[test]
fn records_that_nothing_marks_as_durable_are_not_to_be_taken() {
    let ssd = "striped,disks=2,chunk=7blk,ssd_write=16KiB,ssd_page=2KiB over cmr";
    for layer in ["cmr", "raw,tracks=3", "s-block", ssd] {
        let trusting = std::panic::catch_unwind(|| lives(layer, 30, false));
        assert!(trusting.is_err(), "{layer}: nothing was lost");
    }
}

/// A log that ends in what a loss of power tore is written on before that: what the kit's disk has of it is what the server has.
#[test]
fn a_torn_log_is_written_on_before_its_end() {
    lives_of(Lives::new("virtualguard", 4_262_872_555), 3);
}
