//! A store with some of its bytes changed: it is refused with a message and left as it was, or opened, and then holds
//! together.

use super::bytes::Input;
use serde_json::json;
use smrlab_device::{Config, Device};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

const LAYERS: &[&str] = &["raw,tracks=3", "cmr", "s-block", "disk-cache,journal=on", "rmw,journal=on"];
/// Whether the store was closed in good order, or its server killed.
const ENDS: u64 = 2;

type Files = BTreeMap<String, Vec<u8>>;

/// A directory that goes with its value.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn scratch() -> Scratch {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let dir = base.join(format!("smrlab-fuzz-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    std::fs::create_dir_all(&dir).expect("a directory for the store");
    Scratch(dir)
}

fn open(layer: &str, dir: &Path) -> smrlab_device::Result<Arc<Device>> {
    let config: Config = serde_json::from_value(json!({
        "name": "fuzz", "drive": "tiny", "layer": layer, "store": {"directory": dir},
    }))
    .expect("a configuration");
    Device::open(config)
}

fn files(dir: &Path) -> Files {
    let read = |e: std::io::Result<std::fs::DirEntry>| {
        let path = e.expect("an entry").path();
        (
            path.file_name().expect("a name").to_string_lossy().into_owned(),
            std::fs::read(path).expect("a file"),
        )
    };
    std::fs::read_dir(dir).expect("the store").map(read).collect()
}

/// A store with a checkpoint, a log behind it, and data.
fn made(layer: &str, closed: bool) -> Files {
    let dir = scratch();
    for round in 0..2 {
        let device = open(layer, &dir.0).expect("a new store");
        let blocks = device.size() / 512;
        for i in 0..60u64 {
            let (start, n) = (i * 7919 % (blocks - 16), 1 + i % 16);
            device.write(start * 512, &vec![i as u8 + 1; n as usize * 512], i % 16 == 0).expect("a write");
        }
        if round == 0 || closed {
            device.close().expect("a good end");
        }
    }
    // Room that the log has taken ahead is all zeroes: it comes back when it is opened.
    let trimmed = |(name, mut bytes): (String, Vec<u8>)| {
        if name.starts_with("log") {
            let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |n| n + 1);
            bytes.truncate(used + 4096);
        }
        (name, bytes)
    };
    files(&dir.0).into_iter().map(trimmed).collect()
}

fn template(which: u64) -> (&'static str, &'static Files) {
    static MADE: OnceLock<Vec<OnceLock<Files>>> = OnceLock::new();
    let all = MADE.get_or_init(|| (0..LAYERS.len() as u64 * ENDS).map(|_| OnceLock::new()).collect());
    let which = which % all.len() as u64;
    let layer = LAYERS[(which / ENDS) as usize];
    (layer, all[which as usize].get_or_init(|| made(layer, which.is_multiple_of(ENDS))))
}

/// Changes the files as `input` says.
fn damage(files: &mut Files, input: &mut Input<'_>) {
    for _ in 0..16 {
        if !input.more() {
            return;
        }
        let names: Vec<String> = files.keys().cloned().collect();
        let Some(name) = names.get(input.number(1) as usize % names.len().max(1)) else { return };
        let kind = input.number(1) % 8;
        let bytes = files.get_mut(name).expect("it is there");
        let at = input.number(4) as usize % bytes.len().max(1);
        match kind {
            0..=2 if !bytes.is_empty() => bytes[at] ^= input.number(1) as u8,
            3 if !bytes.is_empty() => {
                let new = input.take(8);
                let end = bytes.len().min(at + new.len());
                bytes[at..end].copy_from_slice(&new[..end - at]);
            }
            4 => bytes.truncate(at),
            5 => bytes.extend_from_slice(input.take(40)),
            6 => {
                files.remove(name);
            }
            _ => {
                let copy = bytes.clone();
                files.insert(format!("{name}.{}", at % 4), copy);
            }
        }
    }
}

/// Damages a store as `data` says and opens it.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (layer, whole) = template(input.number(1));
    let mut changed = whole.clone();
    damage(&mut changed, &mut input);
    let dir = scratch();
    for (name, bytes) in &changed {
        std::fs::write(dir.0.join(name), bytes).expect("a file of the store");
    }
    let device = match open(layer, &dir.0) {
        Ok(device) => device,
        Err(e) => return refused(&e.to_string(), &changed, &dir.0),
    };
    let mut before = vec![0; device.size() as usize];
    let read = device.read(0, &mut before);
    assert!(read.is_ok(), "an opened store cannot be read: {read:?}");
    let start = input.below(device.size() / 512 - 16) * 512;
    device.write(start, &[0xC3; 8192], true).expect("an opened store can be written");
    let mut now = vec![0; before.len()];
    device.read(0, &mut now).expect("read again");
    let range = start as usize..start as usize + 8192;
    assert!(now[range.clone()].iter().all(|b| *b == 0xC3), "what was written is not there");
    if !layer.starts_with("raw") {
        before[range].fill(0xC3);
        assert!(now == before, "{layer}: a write changed other blocks");
    }
    drop(device);
    let device = open(layer, &dir.0).expect("it was opened before");
    device.read(0, &mut before).expect("read after a restart");
    assert!(now == before, "{layer}: a restart changed what is read");
}

/// A refusal has a message, and nothing but the lock file may have been made.
fn refused(message: &str, changed: &Files, dir: &Path) {
    assert!(message.len() > 20, "no message: {message:?}");
    let mut after = files(dir);
    after.retain(|name, _| name != "lock");
    let mut before = changed.clone();
    before.remove("lock");
    let names = |f: &Files| f.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "{message}");
    assert!(before == after, "refused ({message}), but changed");
}
