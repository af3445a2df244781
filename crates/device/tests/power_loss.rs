//! The host loses its power: of the data written since the last sync any sectors are on its disk, and of the log's newer
//! sectors any. What was flushed has to be there, the rest old or new, and nothing else; again and again on the same store.

use parking_lot::Mutex;
use smrlab_device::config::StoreKind;
use smrlab_device::medium::Mode;
use smrlab_device::open::Machine;
use smrlab_device::store::Store;
use smrlab_device::{Config, Device, Result};
use smrlab_units::Pba;
use smrlab_units::rng::Rng;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const SECTOR: usize = 512;

/// The host's disk as far as its cache goes: what is durable, and what is not yet.
struct Disk {
    dir: PathBuf,
    data: Vec<u8>,
    since: Vec<(usize, Vec<u8>)>,
    /// The newest log when it was synced last.
    log: (u64, Vec<u8>),
    /// A sync of the data is done, that of the log may be; and how many flushes had been answered then.
    syncing: Option<u64>,
    /// Flushes that the client was answered.
    answered: u64,
    /// Operations until the power goes.
    left: u64,
    /// What a power loss left.
    image: Option<TempDir>,
    random: Rng,
}

fn scratch() -> TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.unwrap()
}

fn newest_log(dir: &Path) -> (u64, Vec<u8>) {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let newest = names.filter_map(|n| n.strip_prefix("log.")?.parse().ok()).max().unwrap_or(0);
    let (mut used, mut chunk) = (Vec::new(), vec![0; 128 * SECTOR]);
    if let Ok(log) = std::fs::File::open(dir.join(format!("log.{newest}"))) {
        // What follows is space that was taken in advance.
        while log.read_at(&mut chunk, used.len() as u64).unwrap() == chunk.len()
            && chunk.iter().any(|b| *b != 0)
        {
            used.extend_from_slice(&chunk);
        }
    }
    (newest, used)
}

impl Disk {
    /// A disk on which everything in `dir` is durable.
    fn of(dir: &Path, left: u64, random: Rng) -> Self {
        let data = std::fs::read(dir.join("data.000")).unwrap_or_default();
        let (dir, log) = (dir.to_owned(), newest_log(dir));
        Self { dir, data, since: Vec::new(), log, syncing: None, answered: 0, left, image: None, random }
    }

    /// An operation begins; perhaps the power goes.
    fn step(&mut self) {
        if let Some(answered) = self.syncing {
            // The log's sync has ended, or else nobody was told yet.
            let told = self.answered != answered;
            if told || self.left != 1 || self.random.below(2) == 0 {
                self.syncing = None;
                self.log = newest_log(&self.dir);
            }
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 && self.image.is_none() {
            self.image = Some(self.lose_power());
        }
    }

    fn settle(&mut self) {
        for (at, bytes) in self.since.drain(..) {
            self.data[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }

    fn lose_power(&mut self) -> TempDir {
        let to = scratch();
        let share = [5, 50, 95][self.random.below(3) as usize];
        let survives = |random: &mut Rng| random.below(100) < share;
        let mut data = self.data.clone();
        for (at, bytes) in &self.since {
            for (i, sector) in bytes.chunks(SECTOR).enumerate() {
                if survives(&mut self.random) {
                    data[at + i * SECTOR..][..sector.len()].copy_from_slice(sector);
                }
            }
        }
        let (newest, mut log) = newest_log(&self.dir);
        let old = if newest == self.log.0 { self.log.1.clone() } else { Vec::new() };
        for (i, sector) in log.chunks_mut(SECTOR).enumerate() {
            let before = old.get(i * SECTOR..(i + 1) * SECTOR).unwrap_or(&[0; SECTOR]);
            if sector != before && !survives(&mut self.random) {
                sector.copy_from_slice(before);
            }
        }
        for entry in std::fs::read_dir(&self.dir).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let into = to.path().join(&name);
            match name.as_str() {
                "data.000" => std::fs::write(into, &data).unwrap(),
                _ if name == format!("log.{newest}") => std::fs::write(into, &log).unwrap(),
                _ => _ = std::fs::copy(self.dir.join(&name), into).unwrap(),
            }
        }
        to
    }
}

/// A store whose writes stay in the host's cache until it is synced.
struct Cached {
    inner: Box<dyn Store>,
    disk: Arc<Mutex<Disk>>,
}

impl Cached {
    fn write_through(&self, offset: u64, bytes: Vec<u8>) {
        let mut disk = self.disk.lock();
        disk.step();
        let end = offset as usize + bytes.len();
        let size = disk.data.len().max(end);
        disk.data.resize(size, 0);
        disk.since.push((offset as usize, bytes));
        disk.step();
    }
}

impl Store for Cached {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read(offset, buf)
    }
    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.write_through(offset, buf.to_vec());
        self.inner.write(offset, buf)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.write_through(offset, vec![0; len as usize]);
        self.inner.zero(offset, len)
    }
    fn sync(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.step();
        disk.settle();
        disk.step();
        disk.syncing = Some(disk.answered);
        drop(disk);
        self.inner.sync()
    }
}

fn open(layer: &str, dir: &Path, boot: u64, disk: &Arc<Mutex<Disk>>) -> Arc<Device> {
    let store = StoreKind::Directory(dir.to_owned());
    let config = Config { mode: Mode::Data, map_budget: 1 << 20, ..Config::new("t", "tiny", layer, store) };
    let disk = disk.clone();
    let between = Box::new(move |inner| Box::new(Cached { inner, disk }) as Box<dyn Store>);
    Device::open_on(config, Machine { boot, between }).unwrap()
}

fn print(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// What each block may read as after a power loss.
struct Allowed(Vec<Vec<u64>>);

impl Allowed {
    fn only(all: &[u8]) -> Self {
        Self(all.chunks(SECTOR).map(|b| vec![print(b)]).collect())
    }

    fn add(&mut self, at: usize, bytes: &[u8]) {
        for (may, b) in self.0[at / SECTOR..].iter_mut().zip(bytes.chunks(SECTOR)) {
            let b = print(b);
            if may.last() != Some(&b) {
                may.push(b);
            }
        }
    }

    fn check(&self, all: &[u8], what: &str) {
        let wrong: Vec<_> = (all.chunks(SECTOR).zip(&self.0).enumerate())
            .filter(|(_, (b, may))| !may.contains(&print(b)))
            .map(|(i, _)| i)
            .collect();
        assert!(wrong.is_empty(), "{what}: {} blocks read as nothing they ever were: {wrong:?}", wrong.len());
    }
}

/// A store through many lives.
struct Lives {
    layer: &'static str,
    raw: bool,
    dir: TempDir,
    disk: Arc<Mutex<Disk>>,
    boot: u64,
    boots_change: bool,
    allowed: Allowed,
    model: Vec<u8>,
    random: Rng,
    stamp: u64,
    fences: u64,
}

impl Lives {
    fn new(layer: &'static str, seed: u64) -> Self {
        let dir = scratch();
        let disk = Arc::new(Mutex::new(Disk::of(dir.path(), u64::MAX, Rng::new(seed + 1))));
        let random = Rng::new(seed * 7919 + 12345);
        let raw = layer.starts_with("raw");
        Self {
            layer,
            raw,
            dir,
            disk,
            boot: 1,
            boots_change: true,
            allowed: Allowed(Vec::new()),
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
        let device = open(self.layer, &store, self.boot, &self.disk);
        if self.model.is_empty() {
            self.model = self.all(&device);
            self.allowed = Allowed::only(&self.model);
            let random = Rng::new(self.random.below(u64::MAX) | 1);
            *self.disk.lock() = Disk::of(&store, u64::MAX, random);
        }
        assert!(self.all(&device) == self.model, "{}: a start changes what is read", self.layer);
        self.disk.lock().left = 1 + self.random.below(400);
        for _ in 0..requests {
            self.request(&device);
            if self.disk.lock().image.is_some() {
                self.fences += device.stats()["media"]["fences"].as_u64().unwrap_or(0);
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

    fn track_end(&self, block: u64) -> u64 {
        let drive = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
        let (g, track) = (drive.geometry(), drive.geometry().track_of(Pba(block)));
        g.track_start(track).0 + g.track_blocks(track).0
    }

    fn request(&mut self, device: &Device) {
        let blocks = device.size() / 512;
        let start = self.random.below(blocks);
        // A raw write that destroyed what it wrote itself would pass through states that cannot be seen from here.
        let most = if self.raw { self.track_end(start) } else { blocks };
        let len = (1 + self.random.below(24)).min(most - start);
        let (at, n) = ((start * 512) as usize, (len * 512) as usize);
        let (kind, fua) = (self.random.below(20), self.random.below(12) == 0);
        let flushed = match kind {
            0 => {
                device.flush().unwrap();
                true
            }
            1 if self.random.below(4) == 0 => {
                device.close().unwrap();
                true
            }
            // As housekeeping does for a long log: no flush, and yet durable state.
            1 if self.raw => {
                device.medium(None).unwrap().checkpoint(true).unwrap();
                false
            }
            2 => {
                self.allowed.add(at, &vec![0; n]);
                device.zero(at as u64, n as u64, fua).unwrap();
                self.model[at..at + n].fill(0);
                fua
            }
            _ => {
                self.stamp += 1;
                let data: Vec<u8> = (0..n as u64 / 8)
                    .flat_map(|i| (self.stamp << 24 | (i / 64) << 8 | 1).to_le_bytes())
                    .collect();
                self.allowed.add(at, &data);
                device.write(at as u64, &data, fua).unwrap();
                self.model[at..at + n].copy_from_slice(&data);
                fua
            }
        };
        if self.raw {
            self.add_victims(device, start..start + len);
        }
        let mut disk = self.disk.lock();
        disk.answered += u64::from(flushed);
        if flushed && disk.image.is_none() {
            self.allowed = Allowed::only(&self.model);
        }
    }

    /// What else a write destroyed, which near the edge of a zone more than one of its blocks can.
    fn add_victims(&mut self, device: &Device, written: Range<u64>) {
        self.model = self.all(device);
        self.allowed.add(0, &self.model);
        let mut pieces = Vec::new();
        device.medium(None).unwrap().with_runs(|s| s.resolve(0, s.blocks(), &mut pieces));
        for p in pieces.iter().filter(|p| p.destroyed()) {
            for (at, from) in (p.at..p.at + p.blocks).zip(p.from..) {
                for other in [from.wrapping_sub(1), from + 1].into_iter().filter(|o| written.contains(o)) {
                    self.allowed.add(at as usize * SECTOR, &self.model[other as usize * SECTOR..][..SECTOR]);
                }
            }
        }
    }

    /// The host starts again with what its disk has.
    fn lose_power(&mut self) {
        let image = self.disk.lock().image.take().unwrap();
        let next = scratch();
        std::fs::rename(image.path(), next.path().join("store")).unwrap();
        std::mem::forget(image);
        self.dir = next;
        self.boot += u64::from(self.boots_change);
        let store = self.dir.path().join("store");
        let random = Rng::new(self.random.below(u64::MAX) | 1);
        self.disk = Arc::new(Mutex::new(Disk::of(&store, u64::MAX, random)));
        let device = open(self.layer, &store, self.boot, &self.disk);
        let all = self.all(&device);
        self.allowed.check(&all, &format!("{} on boot {}", self.layer, self.boot));
        if self.raw || self.layer == "cmr" {
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

fn lives(layer: &'static str, losses: u64, boots_change: bool) {
    let mut lives = Lives::new(layer, losses + layer.len() as u64);
    lives.boots_change = boots_change;
    let (mut lost, mut all) = (0, 0);
    while lost < losses {
        let requests = 1 + lives.random.below(80);
        lost += u64::from(lives.live(requests));
        all += 1;
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
}

/// The control: a server that took all records that are there, as after a kill, would serve mixed-up data.
#[test]
fn records_that_nothing_marks_as_durable_are_not_to_be_taken() {
    for layer in ["cmr", "raw,tracks=3", "s-block"] {
        let trusting = std::panic::catch_unwind(|| lives(layer, 30, false));
        assert!(trusting.is_err(), "{layer}: nothing was lost");
    }
}
