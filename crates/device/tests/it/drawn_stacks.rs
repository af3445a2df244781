//! Served stacks with parameters that are drawn: killed servers, lost power and lost disks of sets that nobody wrote down.

use crate::arrays::{Checked, scratch};
use crate::power;
use crate::power_loss::{Lives, lives_of};
use smrlab_device::Device;
use smrlab_device::config::StoreKind;
use smrlab_stl::LayerEntry;
use smrlab_testkit::{DrawnArray, Rng, cases, drawn, drives, layers, random};
use std::path::Path;

/// Draws arrays until so many of them can be served, of which `asked` holds, on drives that `on` draws: behind the name what
/// [`power::config`] reads.
pub(crate) fn each(
    written: u64,
    many: u64,
    draw: impl Fn(&mut Rng) -> DrawnArray,
    on: impl Fn(&mut Rng, &Path) -> String,
    mut look: impl FnMut(&DrawnArray, &str, &mut Rng),
) {
    let (mut rng, mut looked) = (random(written), 0);
    while looked < many {
        let (drawn, dir) = (draw(&mut rng), scratch());
        let stack = format!("{} over {}{}", drawn.text, drawn.layer, on(&mut rng, dir.path()));
        let Some(stack) = sized(stack, &mut rng) else { continue };
        let seed = rng.bits();
        // What a failure is shown with.
        println!("{stack}, seed {seed}");
        looked += 1;
        look(&drawn, &stack, &mut Rng::new(seed));
    }
}

/// The stack, perhaps with less space than its drives have; `None`: it cannot be served.
pub(crate) fn sized(stack: String, rng: &mut Rng) -> Option<String> {
    let size = size(&stack)?;
    let asked = LEAST_BYTES + (size - LEAST_BYTES) * rng.below(100) / 100 / 4096 * 4096;
    let less = format!("{stack} for {asked}");
    let got = self::size(&less).filter(|_| rng.one_in(3));
    assert!(got.is_none_or(|got| asked <= got && got <= size), "{less}: {got:?} of {size}");
    Some(if got.is_some() { less } else { stack })
}

/// The bytes of a stack that can be served, with space for more than a few requests and files that can be read whole.
fn size(stack: &str) -> Option<u64> {
    let dir = scratch();
    let device = Device::open(power::config(stack, StoreKind::Directory(dir.path().join("store")))).ok()?;
    Some(device.size()).filter(|size| *size >= LEAST_BYTES && largest(dir.path()) <= MOST_BYTES)
}

/// A write cache of so little that it is often full.
pub(crate) const BUFFER: &str = "write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100";

/// What is served at least: requests of 12 KiB have to fit in.
const LEAST_BYTES: u64 = 24 << 10;

/// Of one file of a store: they are read whole, again and again. Default sizes of what is on an SSD can be gigabytes.
const MOST_BYTES: u64 = 64 << 20;

/// Drives of the kit, or that nobody wrote down, described in `dir`; one in four has its maps on the medium.
pub(crate) fn drawn_drive(rng: &mut Rng, dir: &Path) -> String {
    let file = dir.join("drive.toml");
    let text = smrlab_disk::model::write(drives::drawn(rng).1.spec(), &|_| ("assumed", "drawn".to_owned()));
    std::fs::write(&file, text).unwrap();
    let media = if rng.one_in(4) { " in media" } else { "" };
    format!(" on {}{media}", file.display())
}

/// The length of the largest file in a directory, and in those below it.
fn largest(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let length = |e: std::fs::DirEntry| {
        if e.path().is_dir() { largest(&e.path()) } else { e.metadata().unwrap().len() }
    };
    entries.map(length).max().unwrap_or(0)
}

/// One of which nothing takes the time that a clock shows.
pub(crate) fn unhurried(
    draw: fn(&mut Rng) -> DrawnArray,
    asked: fn(&DrawnArray) -> bool,
    rng: &mut Rng,
) -> DrawnArray {
    loop {
        let drawn = draw(rng);
        if asked(&drawn) && !["rebuild_rate", "ssd_rate"].iter().any(|key| drawn.text.contains(key)) {
            return drawn;
        }
    }
}

/// Lives of a drive with this layer, once one of a few that are drawn can be served; answers whether one could.
fn alone(entry: &LayerEntry, on: impl Fn(&mut Rng, &Path) -> String, rng: &mut Rng) -> bool {
    (0..60).any(|_| {
        let dir = scratch();
        let stack = drawn::durable_layer(entry, rng) + &on(rng, dir.path());
        let Some(stack) = sized(stack, rng) else { return false };
        let seed = rng.below(1 << 32);
        println!("{stack}, seed {seed}");
        lives_of(Lives::new(&stack, seed), 3);
        true
    })
}

/// Layers by themselves, and arrays of them.
#[test]
fn what_was_flushed_survives_lost_power() {
    let mut rng = random(51);
    for entry in layers().into_iter().filter(|e| e.capabilities.survives_cut) {
        for _ in 0..cases(4) {
            alone(entry, |_, _| String::new(), &mut rng);
        }
    }
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    each(
        52,
        cases(40),
        draw,
        |_, _| String::new(),
        |_, stack, rng| {
            lives_of(Lives::new(stack, rng.below(1 << 32)), 4);
        },
    );
}

/// Of drives with other geometries: layers by themselves, `raw` too, and arrays of them.
#[test]
fn what_was_flushed_survives_on_any_drive() {
    let mut rng = random(57);
    let entries = layers().into_iter().filter(|e| e.capabilities.survives_cut || e.name == "raw");
    for entry in entries {
        let fit: Vec<bool> = (0..cases(8)).map(|_| alone(entry, drawn_drive, &mut rng)).collect();
        assert!(fit.contains(&true), "{} fits on no drive", entry.name);
    }
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    each(58, cases(20), draw, drawn_drive, |_, stack, rng| {
        lives_of(Lives::new(stack, rng.below(1 << 32)), 3);
    });
}

/// Of drives with queues, and with buffers that the power and a kill empty; only a flush, or what is forced, is beyond them.
#[test]
fn what_was_flushed_survives_behind_buffers() {
    let mut rng = random(54);
    let layers: Vec<_> = layers().into_iter().filter(|e| e.capabilities.survives_cut).collect();
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    let on = |rng: &mut Rng, dir: &Path| match rng.below(4) {
        0 => " on tiny,command=0.1ms".to_owned(),
        1 => format!(" on tiny,{BUFFER}"),
        _ => drawn_drive(rng, dir).replace(".toml", &format!(".toml,{BUFFER}")),
    };
    each(55, cases(20), draw, on, |_, stack, rng| {
        lives_of(Lives::new(stack, rng.below(1 << 32)), 3);
    });
    for _ in 0..cases(10) {
        let entry = layers[rng.below(layers.len() as u64) as usize];
        alone(entry, |_, _| format!(" on tiny,{BUFFER}"), &mut rng);
    }
}

/// Servers are killed, and disks die as many as may; they are replaced over restarts, and others die.
#[test]
fn what_was_written_survives_killed_servers_and_lost_disks() {
    let draw = |rng: &mut Rng| unhurried(DrawnArray::new, |_| true, rng);
    let on = |rng: &mut Rng, dir: &Path| if rng.one_in(2) { String::new() } else { drawn_drive(rng, dir) };
    each(53, cases(60), draw, on, drives_die);
}

/// The same of drives with queues and buffers, with a flush before each kill: what they do by themselves behind that is lost with the
/// buffers, as where the power goes.
#[test]
fn what_was_flushed_survives_killed_servers_and_lost_disks() {
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    each(56, cases(24), draw, |_, _| format!(" on tiny,{BUFFER}"), drives_die);
}

/// The drives of an array in any order.
pub(crate) fn shuffled(drawn: &DrawnArray, rng: &mut Rng) -> Vec<u64> {
    let mut all: Vec<u64> = (0..u64::from(smrlab_array::parse(&drawn.text).unwrap().disks)).collect();
    for i in (1..all.len()).rev() {
        all.swap(i, rng.below(i as u64 + 1) as usize);
    }
    all
}

/// Before a server ends: at times in order, and else killed, where that loses nothing that was flushed. With what is in drives' buffers a
/// kill loses parts of rows that are on their way from the SSD; with a drive that is dead then, or dies before parity is made good, only
/// a journal or a log keeps what is beside them. A group of `dvs` that is being collected without a journal is lost (docs/device.md), and
/// what leaves an SSD collects at any time.
pub(crate) fn end(device: &Device, drawn: &DrawnArray, stack: &str, rng: &mut Rng) {
    let buffered = power::is_buffered(stack);
    let collects = !drawn.survives_cut() && drawn.text.contains("ssd_write");
    let kept = !collects && (!buffered || drawn.losses() == 0 || drawn.survives_cut_and_loss());
    if rng.one_in(3) || !kept {
        device.close().unwrap();
    } else if buffered {
        device.flush().unwrap();
    }
}

/// Lives of a new array.
fn drives_die(drawn: &DrawnArray, stack: &str, rng: &mut Rng) {
    let dir = scratch();
    let own = power::config(stack, StoreKind::Directory(dir.path().join("store")));
    let checked = Checked::of(Device::open(own).unwrap(), rng.bits());
    die(checked, drawn, (stack, dir.path()), rng);
}

/// Lives of an array with its store in `dir`.
pub(crate) fn die(mut checked: Checked, drawn: &DrawnArray, (stack, dir): (&str, &Path), rng: &mut Rng) {
    let own = || power::config(stack, StoreKind::Directory(dir.join("store")));
    let again = |mut checked: Checked, rng: &mut Rng| {
        checked.write(rng.below(60));
        if rng.one_in(3) {
            return checked;
        }
        end(&checked.device, drawn, stack, rng);
        checked.again(own())
    };
    checked = again(checked, rng);
    checked.check("started again");
    let mut lost = shuffled(drawn, rng);
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
