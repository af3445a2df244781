//! `cargo bench -p smrlab-blockmap`: CPU ns for one operation (median of five rounds), and bytes.

use std::hint::black_box;
use std::time::Instant;

use smrlab_blockmap::{BlockSet, UnitMap};
use smrlab_units::rng::splitmix;

const DRIVE_UNITS: u64 = 20_000_000_000_000 / 4096;
const MANY: usize = 10_000_000;
const ROUND: usize = 1_000_000;
/// How far ahead the engine hints.
const AHEAD: usize = 16;

fn random_units(seed: u64, count: usize, bound: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = || ((u128::from(splitmix(&mut state)) * u128::from(bound)) >> 64) as u64;
    (0..count).map(|_| next()).collect()
}

/// ns that this thread has had a processor for; the time of day where Linux does not say.
fn cpu_ns(start: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let on_cpu = stat.split(' ').next().and_then(|n| n.parse().ok());
    on_cpu.unwrap_or(start.elapsed().as_nanos() as f64)
}

/// Times `op` over five rounds of `keys` and prints the median.
fn rounds(name: &str, keys: &[u64], mut op: impl FnMut(&[u64])) {
    let start = Instant::now();
    let mut times: Vec<f64> = keys
        .chunks(keys.len() / 5)
        .map(|chunk| {
            let before = cpu_ns(start);
            op(chunk);
            (cpu_ns(start) - before) / chunk.len() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<58}{:>8.1} ns", times[times.len() / 2]);
}

fn block_set() {
    let keys = random_units(1, MANY, DRIVE_UNITS);
    let mut set = BlockSet::new();
    let insert = |set: &mut BlockSet, keys: &[u64]| {
        for (i, unit) in keys.iter().enumerate() {
            if let Some(ahead) = keys.get(i + AHEAD) {
                set.prefetch(ahead * 8);
            }
            black_box(set.insert(unit * 8..unit * 8 + 8));
        }
    };
    rounds("BlockSet insert 4 KiB, 0 to 10 M scattered over 20 TB", &keys, |keys| insert(&mut set, keys));
    println!("{:<58}{:>8.1} bytes/unit", "", set.bytes() as f64 / MANY as f64);
    let more = random_units(2, ROUND, DRIVE_UNITS);
    rounds("BlockSet insert new 4 KiB into 10 M, prefetched", &more, |keys| insert(&mut set, keys));
    let more = random_units(3, ROUND, DRIVE_UNITS);
    rounds("BlockSet insert new 4 KiB into 11 M, no prefetch", &more, |keys| {
        for unit in keys {
            black_box(set.insert(unit * 8..unit * 8 + 8));
        }
    });
    let again: Vec<u64> = random_units(4, ROUND, MANY as u64).iter().map(|i| keys[*i as usize]).collect();
    rounds("BlockSet insert again (present), prefetched", &again, |keys| insert(&mut set, keys));
    let mut dense = BlockSet::new();
    let keys = random_units(5, MANY, 2_500_000);
    rounds("BlockSet insert 4 KiB at random in 10 GB, prefetched", &keys, |keys| insert(&mut dense, keys));
    let mut seq = BlockSet::new();
    let keys: Vec<u64> = (0..MANY as u64).collect();
    rounds("BlockSet insert 4 KiB in sequence", &keys, |keys| insert(&mut seq, keys));
}

fn unit_map() {
    let keys = random_units(1, MANY, DRIVE_UNITS);
    let mut map = UnitMap::new();
    let set = |map: &mut UnitMap, keys: &[u64]| {
        for (i, unit) in keys.iter().enumerate() {
            if let Some(ahead) = keys.get(i + AHEAD) {
                map.prefetch(*ahead);
            }
            black_box(map.set(*unit, i as u32 | 1));
        }
    };
    rounds("UnitMap set, 0 to 10 M scattered over 20 TB", &keys, |keys| set(&mut map, keys));
    println!("{:<58}{:>8.1} bytes/unit", "", map.bytes() as f64 / MANY as f64);
    let again: Vec<u64> = random_units(4, ROUND, MANY as u64).iter().map(|i| keys[*i as usize]).collect();
    rounds("UnitMap set again (present), prefetched", &again, |keys| set(&mut map, keys));
    let mut dense = UnitMap::new();
    let keys = random_units(5, MANY, 2_500_000);
    rounds("UnitMap set at random in 10 GB, prefetched", &keys, |keys| set(&mut dense, keys));
}

fn main() {
    block_set();
    unit_map();
}
