//! What the run map of a large drive takes: memory, time to write, to make a checkpoint, and to recover.
//!
//! `cargo bench -p smrlab-device --bench map -- [small] [bands] [random=RUNS] [budget=MIB] [dir=DIR]`: `small` gives the CPU
//! time of 4 KiB requests to 512 MiB in memory, `bands` writes a drive of 20 TB from end to end in bands of 64 tracks,
//! `random` scatters 4 KiB writes over it. These two write zeroes, so that they take no space.

use smrlab_device::config::StoreKind;
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device};
use smrlab_units::rng::Rng;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const MIB: u64 = 1 << 20;

struct Options {
    small: bool,
    bands: bool,
    random: u64,
    budget: u64,
    dir: PathBuf,
}

fn options() -> Options {
    let mut found = Options { small: false, bands: false, random: 0, budget: 256, dir: std::env::temp_dir() };
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            None if word == "small" => found.small = true,
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

fn config(drive: &str, layer: &str, store: StoreKind, budget: u64) -> Config {
    Config { mode: Mode::Data, map_budget: budget * MIB, ..Config::new("map", drive, layer, store) }
}

/// The device, and how long that took: in all, and in CPU time.
fn open(dir: &Path, layer: &str, budget: u64) -> (Arc<Device>, String) {
    let (begun, cpu) = (Instant::now(), cpu_ns());
    let store = StoreKind::Directory(dir.join("store"));
    let device = Device::open(config(&twenty_terabytes(dir), layer, store, budget));
    let device = device.expect("a device");
    (device, format!("{:.2} s ({:.2} s of CPU)", begun.elapsed().as_secs_f64(), (cpu_ns() - cpu) / 1e9))
}

/// Random numbers below n.
fn random_numbers() -> impl FnMut(u64) -> u64 {
    let mut random = Rng::new(1);
    move |n| random.below(n)
}

/// CPU time of this process: on a shared machine wall time says little.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat begins with CPU time in ns")
}

/// Medians of five rounds, in turns.
fn small() {
    const COUNT: u64 = 300_000;
    let layers = ["raw,tracks=1", "raw,tracks=3", "raw,tracks=8", "cmr", "s-block"];
    let mut next = random_numbers();
    let (mut buf, others) = (vec![1; MIB as usize], vec![2u8; 16 * MIB as usize]);
    let devices = layers.map(|layer| {
        let small = Config { size: Some(2048 * MIB), ..config("modern-7200", layer, StoreKind::Memory, 256) };
        let device = Device::open(small).expect("a device");
        (0..512).for_each(|i| device.write(i * MIB, &buf, false).expect("a write"));
        device
    });
    let mut found = vec![[const { Vec::new() }; 2]; layers.len()];
    for _ in 0..5 {
        for (device, found) in devices.iter().zip(&mut found) {
            for (kind, found) in found.iter_mut().enumerate() {
                let begun = cpu_ns();
                for i in 0..COUNT {
                    let at = next(512 * MIB / 4096) * 4096;
                    // As the kernel does with the server's socket: other memory passes through the caches.
                    let pass = (i * 8192 % (15 * MIB)) as usize;
                    buf[4096..12288].copy_from_slice(&others[pass..pass + 8192]);
                    match kind {
                        0 => device.write(at, &buf[..4096], false).expect("a write"),
                        _ => device.read(at, &mut buf[..4096]).expect("a read"),
                    }
                }
                found.push((cpu_ns() - begun) / COUNT as f64);
            }
        }
    }
    for (layer, found) in layers.iter().zip(&mut found) {
        let [write, read] = [0, 1].map(|kind: usize| {
            found[kind].sort_by(f64::total_cmp);
            found[kind][2]
        });
        println!("{layer:14} 4 KiB random write {write:6.0} ns of CPU, read {read:6.0} ns");
    }
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
    say(&format!("recovered from checkpoint and log in {seconds}"), &device);
    let begun = Instant::now();
    device.close().expect("a checkpoint");
    println!("checkpoint at the end in {:.2} s", begun.elapsed().as_secs_f64());
    drop(device);
    let (device, seconds) = open(dir, layer, budget);
    say(&format!("recovered from a checkpoint in {seconds}"), &device);
}

fn bands(dir: &Path, budget: u64) {
    let layer = "raw,tracks=3,band=64";
    let (device, seconds) = open(dir, layer, budget);
    say(&format!("{:.2} TB made in {seconds}", device.size() as f64 / 1e12), &device);
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
    let mut next = random_numbers();
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
    if o.small {
        small();
    }
    let dir = tempfile::tempdir_in(&o.dir).expect("a directory");
    if o.bands {
        bands(dir.path(), o.budget);
    }
    let _ = std::fs::remove_dir_all(dir.path().join("store"));
    if o.random > 0 {
        random(dir.path(), o.random, o.budget);
    }
}
