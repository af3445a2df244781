//! The host's disk as far as its cache goes: what is durable, and what is not yet; and what of it a loss of power leaves.

use parking_lot::Mutex;
use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::machine::Machine;
use smrlab_device::medium::Mode;
use smrlab_device::store::Store;
use smrlab_device::{Config, Device, Result};
use smrlab_units::rng::Rng;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) const SECTOR: usize = 512;
static ZEROES: [u8; 16 * SECTOR] = [0; 16 * SECTOR];

/// The store of a drive, of an SSD, or of what an array keeps.
#[derive(Default)]
struct Part {
    data: Vec<u8>,
    since: Vec<(usize, Vec<u8>)>,
    /// The newest log when it was synced last.
    log: (u64, Vec<u8>),
    /// The server goes on behind what is known of it. One that starts goes on behind what it takes of it, which may be less.
    followed: bool,
    /// A sync of the data is done, that of the log may be; and how many flushes had been answered then.
    syncing: Option<u64>,
}

/// See the module.
pub(crate) struct Disk {
    dir: PathBuf,
    /// By directory below that: an array's own, which is the last to be synced, has no data.
    parts: BTreeMap<String, Part>,
    /// Flushes that the client was answered.
    pub answered: u64,
    /// Operations until the power goes.
    pub left: u64,
    /// Nothing is lost of what was written: only the server is killed.
    pub all_survives: bool,
    /// What a power loss left.
    pub image: Option<TempDir>,
    /// Is shown what a power loss would leave at every single operation.
    pub at_every: Option<Box<dyn FnMut(TempDir) + Send>>,
    random: Rng,
    /// Nobody asks what a power loss would leave.
    unwatched: bool,
}

pub(crate) fn scratch() -> TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.unwrap()
}

fn newest_log(dir: &Path) -> (u64, Vec<u8>) {
    let mut log = (u64::MAX, Vec::new());
    follow(dir, false, &mut log);
    log
}

/// The newest log as it is now. Where it goes `on` behind what was in it that stays as it is, but for the end of the last chunk.
fn follow(dir: &Path, on: bool, (number, used): &mut (u64, Vec<u8>)) {
    let all = std::fs::read_dir(dir).into_iter().flatten();
    let names = all.map(|e| e.unwrap().file_name().into_string().unwrap());
    let newest = names.filter_map(|n| n.strip_prefix("log.")?.parse().ok()).max().unwrap_or(0);
    let mut chunk = vec![0; ZEROES.len()];
    let kept = if on && *number == newest { used.len().saturating_sub(chunk.len()) } else { 0 };
    *number = newest;
    used.truncate(kept);
    if let Ok(log) = std::fs::File::open(dir.join(format!("log.{newest}"))) {
        // What follows is space that was taken in advance.
        while log.read_at(&mut chunk, used.len() as u64).unwrap() == chunk.len() && chunk != ZEROES {
            used.extend_from_slice(&chunk);
        }
    }
}

impl Part {
    /// Everything in `dir` is durable.
    fn of(dir: &Path) -> Self {
        let data = std::fs::read(dir.join("data.000")).unwrap_or_default();
        Self { data, log: newest_log(dir), ..Self::default() }
    }

    /// A sync of the log that was under way is done.
    fn synced(&mut self, dir: &Path) {
        if self.syncing.take().is_some() {
            follow(dir, self.followed, &mut self.log);
            self.followed = true;
        }
    }

    fn settle(&mut self) {
        for (at, bytes) in self.since.drain(..) {
            self.data[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// `synced`: the log that is being synced is durable.
    fn lose_power(&self, (dir, synced): (&Path, bool), to: &Path, mut survives: impl FnMut() -> bool) {
        let mut data = self.data.clone();
        for (at, bytes) in &self.since {
            for (i, sector) in bytes.chunks(SECTOR).enumerate() {
                if survives() {
                    data[at + i * SECTOR..][..sector.len()].copy_from_slice(sector);
                }
            }
        }
        let (newest, mut log) = newest_log(dir);
        if !(synced && self.syncing.is_some()) {
            let old = if newest == self.log.0 { &self.log.1[..] } else { &[] };
            for (i, sector) in log.chunks_mut(SECTOR).enumerate() {
                let before = old.get(i * SECTOR..(i + 1) * SECTOR).unwrap_or(&[0; SECTOR]);
                if sector != before && !survives() {
                    sector.copy_from_slice(before);
                }
            }
        }
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap()).filter(|e| e.path().is_file()) {
            let name = entry.file_name().into_string().unwrap();
            let into = to.join(&name);
            match name.as_str() {
                "data.000" => std::fs::write(into, &data).unwrap(),
                _ if name == format!("log.{newest}") => std::fs::write(into, &log).unwrap(),
                _ => _ = std::fs::copy(dir.join(&name), into).unwrap(),
            }
        }
    }
}

impl Disk {
    /// A disk on which everything in `dir` is durable.
    pub(crate) fn of(dir: &Path, left: u64, random: Rng) -> Self {
        let mut parts = BTreeMap::new();
        for path in [dir.to_owned()].into_iter().chain(folders(dir)) {
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            parts.insert(name, Part::of(&path));
        }
        Self {
            dir: dir.to_owned(),
            parts,
            answered: 0,
            left,
            all_survives: false,
            image: None,
            at_every: None,
            random,
            unwatched: false,
        }
    }

    /// A disk that never loses power.
    pub(crate) fn unwatched() -> Self {
        Self { unwatched: true, ..Self::of(Path::new("nowhere"), u64::MAX, Rng::new(0)) }
    }

    /// An operation begins; perhaps the power goes.
    fn step(&mut self) {
        self.left = self.left.saturating_sub(1);
        if let Some(mut see) = self.at_every.take() {
            let image = self.lose_power();
            see(image);
            self.at_every = Some(see);
        } else if self.left == 0 && self.image.is_none() {
            self.image = Some(self.lose_power());
        }
        for (name, part) in &mut self.parts {
            part.synced(&self.dir.join(name));
        }
    }

    fn lose_power(&mut self) -> TempDir {
        let to = scratch();
        let share = if self.all_survives { 100 } else { [5, 50, 95][self.random.below(3) as usize] };
        let mut synced = true;
        // What the array keeps comes last.
        for (name, part) in self.parts.iter().rev() {
            // The log's sync has ended, or else nobody was told yet.
            let told = part.syncing.is_none_or(|before| before != self.answered);
            synced &= told || self.random.below(2) == 0;
            let survives = || self.random.below(100) < share;
            part.lose_power((&self.dir.join(name), synced), &to.path().join(name), survives);
        }
        to
    }

    fn write(&mut self, name: &str, offset: u64, bytes: Vec<u8>) {
        if self.unwatched {
            return;
        }
        self.step();
        let part = self.parts.entry(name.to_owned()).or_default();
        let end = offset as usize + bytes.len();
        let size = part.data.len().max(end);
        part.data.resize(size, 0);
        part.since.push((offset as usize, bytes));
        self.step();
    }

    fn sync(&mut self, name: &str) {
        if self.unwatched {
            return;
        }
        // The one that was synced before is so with its log.
        for (other, part) in self.parts.iter_mut().filter(|(other, _)| !other.is_empty()) {
            part.synced(&self.dir.join(other));
        }
        self.step();
        self.parts.entry(name.to_owned()).or_default().settle();
        self.step();
        let answered = self.answered;
        for (_, part) in self.parts.iter_mut().filter(|(other, _)| *other == name || other.is_empty()) {
            part.syncing = Some(answered);
        }
    }
}

fn folders(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let all = std::fs::read_dir(dir).into_iter().flatten().map(|e| e.unwrap().path());
    all.filter(|p| p.is_dir())
}

/// What a loss of power left of a store: the directory that has it as `store`, and a disk on which all of it is durable.
pub(crate) fn left_of(disk: &Mutex<Disk>, random: Rng) -> (TempDir, Arc<Mutex<Disk>>) {
    let (image, dir) = (disk.lock().image.take().unwrap(), scratch());
    let store = dir.path().join("store");
    std::fs::rename(image.keep(), &store).unwrap();
    let disk = Arc::new(Mutex::new(Disk::of(&store, u64::MAX, random)));
    (dir, disk)
}

/// A store whose writes stay in the host's cache until it is synced.
pub(crate) struct Cached {
    pub inner: Box<dyn Store>,
    /// Its directory below the disk's.
    pub name: String,
    pub disk: Arc<Mutex<Disk>>,
}

impl Store for Cached {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read(offset, buf)
    }
    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.disk.lock().write(&self.name, offset, buf.to_vec());
        self.inner.write(offset, buf)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.lock().write(&self.name, offset, vec![0; len as usize]);
        self.inner.zero(offset, len)
    }
    fn sync(&self) -> Result<()> {
        self.disk.lock().sync(&self.name);
        self.inner.sync()
    }
}

/// Whether the drives of a stack have buffers, which a killed server loses.
pub(crate) fn is_buffered(stack: &str) -> bool {
    stack.contains("write_cache=on")
}

/// `layer`, or `array over layer`; with `on DRIVE` behind that of such drives; with `in media` behind that they keep their maps on the medium,
/// and with `for N` at the end the host has so many bytes at least. Where a drive's controller is described behind its name the model's time counts, 200 times as fast.
pub(crate) fn config(stack: &str, store: StoreKind) -> Config {
    let (stack, size) = stack.rsplit_once(" for ").unwrap_or((stack, ""));
    let (stack, metadata) = stack.strip_suffix(" in media").map_or((stack, "nv"), |s| (s, "media"));
    let (stack, drive) = stack.split_once(" on ").unwrap_or((stack, "tiny"));
    let (array, layer) = stack.split_once(" over ").map_or((None, stack), |(a, l)| (Some(a.to_owned()), l));
    let host_size = size.parse().ok();
    let mut config = Config { array, host_size, ..Config::new("t", drive, layer, store) };
    metadata.clone_into(&mut config.metadata);
    if drive.contains(',') {
        let locates =
            smrlab_stl::registry::find(layer.split(',').next().unwrap()).unwrap().capabilities.locates;
        (config.timing, config.speed) = (Timing::Model, 200.0);
        config.scheduler = if locates { "sptf,depth=8" } else { "fcfs,depth=8" }.to_owned();
    }
    Config { mode: Mode::Data, map_budget: 1 << 20, ..config }
}

/// A [`config`] with so many bytes for the host, or as many as the drives have.
pub(crate) fn open(
    stack: &str,
    host_size: Option<u64>,
    (dir, boot): (&Path, u64),
    disk: &Arc<Mutex<Disk>>,
) -> Arc<Device> {
    let config = config(stack, StoreKind::Directory(dir.to_owned()));
    let config = Config { host_size: host_size.or(config.host_size), ..config };
    let disks = config.array.as_deref().map(|text| smrlab_array::parse(text).unwrap().disks as usize);
    let disk = disk.clone();
    disk.lock().parts.values_mut().for_each(|part| part.followed = false);
    let between = Arc::new(move |i: usize, inner| {
        let name = disks.map_or(String::new(), |n| match i.checked_sub(n) {
            None => format!("disk.{i}"),
            Some(0) => "ssd".into(),
            Some(ssd) => format!("ssd.{ssd}"),
        });
        Box::new(Cached { inner, name, disk: disk.clone() }) as Box<dyn Store>
    });
    Device::open_on(config, Machine { boot, between }).unwrap()
}

/// Whether the array, or one that is a member of it, has copies or parities to look at.
pub(crate) fn in_doubt(device: &Device) -> bool {
    device.stats()["array"].to_string().contains("rows_in_doubt")
}

fn print(sector: &[u8]) -> u64 {
    let words = sector.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    words.fold(0, |print: u64, word| (print.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// What each block may read as after a power loss.
pub(crate) struct Allowed(Vec<Vec<u64>>);

impl Allowed {
    pub(crate) fn only(all: &[u8]) -> Self {
        Self(all.chunks(SECTOR).map(|b| vec![print(b)]).collect())
    }

    pub(crate) fn add(&mut self, at: usize, bytes: &[u8]) {
        for (may, b) in self.0[at / SECTOR..].iter_mut().zip(bytes.chunks(SECTOR)) {
            let b = print(b);
            if may.last() != Some(&b) {
                may.push(b);
            }
        }
    }

    /// They are these from now on.
    pub(crate) fn set(&mut self, at: usize, bytes: &[u8]) {
        for (may, b) in self.0[at / SECTOR..].iter_mut().zip(bytes.chunks(SECTOR)) {
            *may = vec![print(b)];
        }
    }

    /// Blocks that read as nothing they ever were.
    pub(crate) fn wrong(&self, all: &[u8]) -> Vec<usize> {
        let blocks = all.chunks(SECTOR).zip(&self.0).enumerate();
        blocks.filter(|(_, (b, may))| !may.contains(&print(b))).map(|(i, _)| i).collect()
    }
}
