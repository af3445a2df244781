//! Several clients at once, of stacks that are drawn: each reads what it wrote, drives die and are replaced meanwhile, and what
//! clients wrote over each other is the same from whatever drives are left.

use crate::arrays::{Checked, scratch};
use crate::drawn_stacks::{BUFFER, drawn_drive, each, end, shuffled, unhurried};
use crate::power;
use smrlab_device::Device;
use smrlab_device::config::StoreKind;
use smrlab_testkit::{DrawnArray, Rng, cases};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

const CLIENTS: u64 = 3;
/// Blocks that belong to one client, and to the next one behind them; every fourth such run belongs to all.
const RUN: u64 = 5;
const BLOCK: u64 = 512;

/// Who writes to these blocks, less than [`CLIENTS`] where it is one.
fn owner(run: u64) -> u64 {
    run % (CLIENTS + 1)
}

fn bytes(blocks: Range<u64>) -> Range<usize> {
    (blocks.start * BLOCK) as usize..(blocks.end * BLOCK) as usize
}

/// Does `requests`, in runs of its own and in those of all; `plain` is what its own are to hold.
fn client(device: &Device, me: u64, plain: &mut [u8], requests: u64, rng: &mut Rng) {
    let blocks = device.size() / BLOCK;
    for i in 0..requests {
        let mut run = rng.below(blocks.div_ceil(RUN));
        while owner(run) != me && owner(run) != CLIENTS {
            run = rng.below(blocks.div_ceil(RUN));
        }
        let end = ((run + 1) * RUN).min(blocks);
        let from = run * RUN + rng.below(end - run * RUN);
        let range = from..from + 1 + rng.below(end - from);
        let (at, len, fua) = (range.start * BLOCK, (range.end - range.start) * BLOCK, rng.one_in(9));
        let own = owner(run) == me;
        match rng.below(9) {
            0 => device.flush().unwrap(),
            1 => {
                device.zero(at, len, fua).unwrap();
                plain[bytes(range)].fill(0);
            }
            2..5 => {
                let mut got = vec![0xee; len as usize];
                device.read(at, &mut got).unwrap();
                assert!(
                    !own || got == plain[bytes(range.clone())],
                    "client {me} reads others' data at {range:?}"
                );
                // One write's, or another one's.
                assert!(
                    got.chunks(BLOCK as usize).all(|b| b.iter().all(|byte| *byte == b[0])),
                    "{range:?} is mixed"
                );
            }
            _ => {
                let stamp = (me * 80 + i % 79 + 1) as u8;
                device.write(at, &vec![stamp; len as usize], fua).unwrap();
                plain[bytes(range)].fill(stamp);
            }
        }
    }
}

/// All clients at once, and `meanwhile`. Afterwards `checked` holds what each has written, and of what belongs to all what is read.
fn at_once(checked: &mut Checked, requests: u64, rng: &mut Rng, meanwhile: impl FnOnce(&Device)) {
    let device = checked.device.clone();
    let before = checked.plain.clone();
    let work = |me: u64, mut rng: Rng| {
        let mut plain = before.clone();
        client(&device, me, &mut plain, requests, &mut rng);
        plain
    };
    let seeds: Vec<Rng> = (0..CLIENTS).map(|_| Rng::new(rng.bits())).collect();
    let wrote: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..).zip(seeds).map(|(me, rng)| scope.spawn(move || work(me, rng))).collect();
        meanwhile(&device);
        all.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let blocks = device.size() / BLOCK;
    for run in 0..blocks.div_ceil(RUN) {
        let range = run * RUN..((run + 1) * RUN).min(blocks);
        let part = &mut checked.plain[bytes(range.clone())];
        match wrote.get(owner(run) as usize) {
            Some(plain) => part.copy_from_slice(&plain[bytes(range)]),
            None => device.read(range.start * BLOCK, part).unwrap(),
        }
    }
}

/// Lives of an array.
fn lives(drawn: &DrawnArray, stack: &str, rng: &mut Rng) {
    let dir = scratch();
    let own = || power::config(stack, StoreKind::Directory(dir.path().join("store")));
    let mut checked = Checked::of(Device::open(own()).unwrap(), rng.bits());
    let disks = shuffled(drawn, rng);
    let (lost, others) = disks.split_at(drawn.losses());
    at_once(&mut checked, 1 + rng.below(60), rng, Device::housekeeping);
    checked.check("written by several");
    let wait = Duration::from_micros(rng.below(3000));
    at_once(&mut checked, 1 + rng.below(60), rng, |device| {
        for disk in lost {
            std::thread::sleep(wait);
            let (served, clock) = device.array().unwrap();
            served.fail(clock, *disk).unwrap();
        }
    });
    checked.check("drives died");
    at_once(&mut checked, 1 + rng.below(60), rng, |device| {
        for disk in lost {
            std::thread::sleep(wait);
            let (served, clock) = device.array().unwrap();
            served.replace(clock, *disk).unwrap();
            (0..10).for_each(|_| device.housekeeping());
        }
    });
    checked.check("being rebuilt");
    if rng.one_in(2) {
        end(&checked.device, drawn, stack, rng);
        checked = checked.again(own());
        checked.check("started again");
    }
    for disk in lost {
        checked.rebuilt(*disk as usize, rng.below(2));
    }
    for disk in others.iter().take(lost.len()) {
        let (served, clock) = checked.device.array().unwrap();
        served.fail(clock, *disk).unwrap();
    }
    checked.check("others are dead");
}

#[test]
fn clients_read_what_they_wrote_whatever_dies() {
    let draw = |rng: &mut Rng| unhurried(DrawnArray::durable, DrawnArray::survives_cut, rng);
    let on = |rng: &mut Rng, dir: &Path| match rng.below(4) {
        0 => String::new(),
        1 => drawn_drive(rng, dir),
        2 => " on tiny,command=0.1ms".to_owned(),
        _ => format!(" on tiny,{BUFFER}"),
    };
    each(61, cases(24), draw, on, lives);
}
