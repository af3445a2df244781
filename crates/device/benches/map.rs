//! What the run map of a large drive takes: memory, time to write, to make a checkpoint, and to recover.
//!
//! `cargo bench -p smrlab-device --bench map -- [bands] [random=RUNS] [budget=MIB] [dir=DIR]`: `bands` writes a drive of
//! 20 TB from end to end in bands of 64 tracks, `random` scatters 4 KiB writes over it. Writes are of zeroes, so that
//! they take no space.

use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const MIB: u64 = 1 << 20;

struct Options {
    bands: bool,
    random: u64,
    budget: u64,
    dir: PathBuf,
}

fn options() -> Options {
    let mut found = Options { bands: false, random: 0, budget: 256, dir: std::env::temp_dir() };
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            None if word == "bands" => found.bands = true,
            Some(("random", n)) => found.random = n.parse().expect("random=RUNS"),
            Some(("budget", n)) => found.budget = n.parse().expect("budget=MIB"),
            Some(("dir", dir)) => found.dir = dir.into(),
            _ => {}
        }
    }
    found
}

/// `modern-7200` with a quarter more cylinders.
fn twenty_terabytes(dir: &Path) -> String {
    let preset = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/modern-7200.toml");
    let text = std::fs::read_to_string(preset).expect("the preset").replace("[22712,", "[28390,");
    let path = dir.join("drive.toml");
    std::fs::write(&path, text).expect("the drive");
    path.to_str().expect("a path in UTF-8").to_owned()
}

fn open(dir: &Path, layer: &str, budget: u64) -> (Arc<Device>, f64) {
    let begun = Instant::now();
    let device = Device::open(Config {
        name: "map".into(),
        drive: twenty_terabytes(dir),
        layer: layer.into(),
        size: None,
        store: StoreKind::Directory(dir.join("store")),
        mode: Mode::Data,
        errors: false,
        block: 512,
        timing: Timing::None,
        speed: 1.0,
        control: None,
        record: None,
        map_budget: budget * MIB,
    });
    (device.expect("a device"), begun.elapsed().as_secs_f64())
}

/// Resident memory of this process in MiB: now, of which in anonymous memory, and at most.
fn resident() -> [u64; 3] {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    ["VmRSS:", "RssAnon:", "VmHWM:"].map(|key| {
        let line = text.lines().find(|l| l.starts_with(key)).expect("a line of status");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).expect("kB") / 1024
    })
}

fn say(what: &str, device: &Device) {
    let [now, anonymous, most] = resident();
    let medium = &device.stats()["medium"];
    println!(
        "{what}: {} runs, map {} MiB in memory, {} MiB spilled; resident {now} MiB ({anonymous} anonymous, {most} at most)",
        medium["runs"],
        medium["map_bytes"].as_u64().unwrap_or(0) / MIB,
        medium["map_spilled_bytes"].as_u64().unwrap_or(0) / MIB
    );
}

/// As the server does beside requests.
fn housekeeper(device: &Arc<Device>) -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<f64>) {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let device = device.clone();
    let keep = move || {
        let mut longest = 0f64;
        while stopped
            .recv_timeout(std::time::Duration::from_millis(5))
            .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            let begun = Instant::now();
            device.housekeeping();
            longest = longest.max(begun.elapsed().as_secs_f64());
        }
        longest
    };
    (stop, std::thread::spawn(keep))
}

fn restart(device: Arc<Device>, dir: &Path, layer: &str, budget: u64) {
    drop(device);
    let (device, seconds) = open(dir, layer, budget);
    say(&format!("recovered from checkpoint and log in {seconds:.2} s"), &device);
    let begun = Instant::now();
    device.close().expect("a checkpoint");
    println!("checkpoint at the end in {:.2} s", begun.elapsed().as_secs_f64());
    drop(device);
    let (device, seconds) = open(dir, layer, budget);
    say(&format!("recovered from a checkpoint in {seconds:.2} s"), &device);
}

fn bands(dir: &Path, budget: u64) {
    let layer = "raw,tracks=3,band=64";
    let (device, seconds) = open(dir, layer, budget);
    say(&format!("{:.2} TB made in {seconds:.2} s", device.size() as f64 / 1e12), &device);
    let (stop, keeper) = housekeeper(&device);
    let begun = Instant::now();
    let raw = device.raw().expect("a raw device");
    for i in 0..raw.bands() {
        let band = raw.band(i).expect("a band");
        let (mut at, end) = (band.start * 512, band.guard * 512);
        while at < end {
            let n = (64 * MIB).min(end - at);
            device.zero(at, n, false).expect("a write");
            at += n;
        }
    }
    say(&format!("written in {} bands in {:.1} s", raw.bands(), begun.elapsed().as_secs_f64()), &device);
    drop(stop);
    keeper.join().expect("housekeeping");
    restart(device, dir, layer, budget);
}

fn random(dir: &Path, runs: u64, budget: u64) {
    let layer = "raw,tracks=3";
    let (device, _) = open(dir, layer, budget);
    let (stop, keeper) = housekeeper(&device);
    let mut x = 88172645463325252u64;
    let mut next = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % n
    };
    let (units, step) = (device.size() / 4096, (runs / 10).max(1));
    let mut slowest = 0f64;
    for part in 0..10 {
        let begun = Instant::now();
        for _ in 0..step {
            let at = next(units) * 4096;
            let one = Instant::now();
            device.zero(at, 4096, false).expect("a write");
            slowest = slowest.max(one.elapsed().as_secs_f64());
        }
        let rate = step as f64 / begun.elapsed().as_secs_f64() / 1e3;
        say(&format!("part {part}: {rate:.0} k writes/s, slowest {:.1} ms", slowest * 1e3), &device);
        slowest = 0.0;
    }
    drop(stop);
    println!("longest housekeeping (a checkpoint): {:.2} s", keeper.join().expect("housekeeping"));
    restart(device, dir, layer, budget);
}

fn main() {
    let o = options();
    let dir = tempfile::tempdir_in(&o.dir).expect("a directory");
    if o.bands {
        bands(dir.path(), o.budget);
    }
    let _ = std::fs::remove_dir_all(dir.path().join("store"));
    if o.random > 0 {
        random(dir.path(), o.random, o.budget);
    }
}
