//! Served stacks with parameters that are drawn: killed servers, lost power and lost disks of sets that nobody wrote down.

use crate::arrays::{Checked, config, scratch};
use crate::power_loss::{Lives, lives_of};
use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::{Config, Device};
use smrlab_stl::LayerEntry;
use smrlab_testkit::{DrawnArray, Rng, cases, drawn, layers, random};
use std::path::Path;

/// Draws arrays until so many of them can be served, of which `asked` holds.
fn each(
    written: u64,
    many: u64,
    draw: impl Fn(&mut Rng) -> DrawnArray,
    mut look: impl FnMut(&DrawnArray, &mut Rng),
) {
    let (mut rng, mut looked) = (random(written), 0);
    while looked < many {
        let drawn = draw(&mut rng);
        let dir = scratch();
        let Ok(device) = Device::open(config(&drawn.text, &drawn.layer, dir.path())) else { continue };
        drop(device);
        if largest(dir.path()) > MOST_BYTES {
            continue;
        }
        let seed = rng.bits();
        // What a failure is shown with.
        println!("{} over {}, seed {seed}", drawn.text, drawn.layer);
        looked += 1;
        look(&drawn, &mut Rng::new(seed));
    }
}

/// A write cache of so little that it is often full.
const BUFFER: &str = "write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100";

/// Of one file of a store: they are read whole, again and again. Default sizes of what is on an SSD can be gigabytes.
const MOST_BYTES: u64 = 64 << 20;

/// The length of the largest file in a directory, and in those below it.
fn largest(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let length = |e: std::fs::DirEntry| {
        if e.path().is_dir() { largest(&e.path()) } else { e.metadata().unwrap().len() }
    };
    entries.map(length).max().unwrap_or(0)
}

/// One of which nothing takes the time that a clock shows.
fn unhurried(draw: fn(&mut Rng) -> DrawnArray, asked: fn(&DrawnArray) -> bool, rng: &mut Rng) -> DrawnArray {
    loop {
        let drawn = draw(rng);
        if asked(&drawn) && !drawn.text.contains("rebuild_rate") {
            return drawn;
        }
    }
}

/// Lives of a drive with this layer, if it can be served.
fn alone(entry: &LayerEntry, drive: &str, rng: &mut Rng) {
    let (text, dir, seed) = (drawn::durable_layer(entry, rng), scratch(), rng.below(1 << 32));
    println!("{text}, seed {seed}");
    if Device::open(Config { array: None, ..config("", &text, dir.path()) }).is_ok() {
        lives_of(Lives::new(&(text + drive), seed), 3);
    }
}

/// Layers by themselves, and arrays of them.
#[test]
fn what_was_flushed_survives_lost_power() {
    let mut rng = random(51);
    for entry in layers().into_iter().filter(|e| e.capabilities.survives_cut) {
        for _ in 0..cases(4) {
            alone(entry, "", &mut rng);
        }
    }
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    each(52, cases(40), draw, |drawn, rng| {
        lives_of(Lives::new(&format!("{} over {}", drawn.text, drawn.layer), rng.below(1 << 32)), 4);
    });
}

/// Of drives with queues, and with buffers that the power and a kill empty; only a flush, or what is forced, is beyond them.
#[test]
fn what_was_flushed_survives_behind_buffers() {
    let mut rng = random(54);
    let layers: Vec<_> = layers().into_iter().filter(|e| e.capabilities.survives_cut).collect();
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    each(55, cases(20), draw, |drawn, rng| {
        let drive = if rng.one_in(4) { "tiny".to_owned() } else { format!("tiny,{BUFFER}") };
        let seed = rng.below(1 << 32);
        lives_of(Lives::new(&format!("{} over {} on {drive}", drawn.text, drawn.layer), seed), 3);
    });
    for _ in 0..cases(10) {
        let entry = layers[rng.below(layers.len() as u64) as usize];
        alone(entry, &format!(" on tiny,{BUFFER}"), &mut rng);
    }
}

/// Servers are killed, and disks die as many as may; they are replaced over restarts, and others die.
#[test]
fn what_was_written_survives_killed_servers_and_lost_disks() {
    let draw = |rng: &mut Rng| unhurried(DrawnArray::new, |_| true, rng);
    each(53, cases(60), draw, |drawn, rng| {
        drives_die(&Config::new("", "tiny", "", StoreKind::Memory), drawn, rng)
    });
}

/// The same of drives with queues and buffers, with a flush before each kill: what they do by themselves behind that is lost with the
/// buffers, as where the power goes.
#[test]
fn what_was_flushed_survives_killed_servers_and_lost_disks() {
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    each(56, cases(24), draw, |drawn, rng| {
        let buffered = Config::new("", &format!("tiny,{BUFFER}"), "", StoreKind::Memory);
        drives_die(&Config { timing: Timing::Model, speed: 200.0, ..buffered }, drawn, rng);
    });
}

/// Lives of an array of drives that are as `like` says.
fn drives_die(like: &Config, drawn: &DrawnArray, rng: &mut Rng) {
    let dir = scratch();
    let own = || {
        let (drive, timing, speed) = (like.drive.clone(), like.timing, like.speed);
        Config { drive, timing, speed, ..config(&drawn.text, &drawn.layer, dir.path()) }
    };
    let mut checked = Checked::of(Device::open(own()).unwrap(), rng.bits());
    let again = |mut checked: Checked, rng: &mut Rng| {
        checked.write(rng.below(60));
        if rng.one_in(3) {
            return checked;
        }
        if rng.one_in(3) {
            checked.device.close().unwrap();
        } else if like.timing == Timing::Model {
            checked.device.flush().unwrap();
        }
        checked.again(own())
    };
    checked = again(checked, rng);
    checked.check("started again");
    let disks = smrlab_array::parse(&drawn.text).unwrap().disks;
    let mut lost: Vec<u64> = (0..u64::from(disks)).collect();
    for i in (1..lost.len()).rev() {
        lost.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let others = lost.split_off(drawn.losses());
    for disk in &lost {
        let (served, clock) = checked.device.array().unwrap();
        served.fail(clock, *disk).unwrap();
        println!("{disk} dies");
        checked = again(checked, rng);
        checked.check("degraded");
    }
    for disk in lost.iter().rev() {
        let (served, clock) = checked.device.array().unwrap();
        served.replace(clock, *disk).unwrap();
        println!("{disk} is replaced");
        checked = again(checked, rng);
        checked.check("being rebuilt");
    }
    for disk in &lost {
        checked.rebuilt(*disk as usize, rng.below(3));
    }
    checked = again(checked, rng);
    checked.check("rebuilt");
    for disk in others.iter().take(lost.len()) {
        println!("{disk} dies, too");
        let (served, clock) = checked.device.array().unwrap();
        served.fail(clock, *disk).unwrap();
    }
    checked.check("others are dead");
}
