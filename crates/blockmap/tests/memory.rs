//! Bytes: `bytes()` agrees with an allocator that counts, and the promised bounds hold at 10 M units.
#![allow(unsafe_code)] // An allocator is unsafe by nature; this one counts and passes everything on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use smrlab_blockmap::{BlockSet, UnitMap};
use smrlab_units::rng::splitmix;

thread_local!(static LIVE: Cell<isize> = const { Cell::new(0) });
thread_local!(static PEAK: Cell<isize> = const { Cell::new(0) });

struct Counting;

/// A thread may free what another allocated: the difference is signed.
fn add(bytes: usize) {
    LIVE.set(LIVE.get() + bytes as isize);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        LIVE.set(LIVE.get() - layout.size() as isize);
        add(new);
        unsafe { System.realloc(ptr, layout, new) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Units of a 20 TB drive.
const DRIVE_UNITS: u64 = 20_000_000_000_000 / 4096;
const MANY: u64 = 10_000_000;

/// SplitMix64, below `bound`.
fn random(state: &mut u64, bound: u64) -> u64 {
    ((u128::from(splitmix(state)) * u128::from(bound)) >> 64) as u64
}

/// Runs `work` `count` times on a fresh `T`; checks `bytes` against the allocator on the way, answers the peak.
fn peak_of<T: Default>(count: u64, mut work: impl FnMut(&mut T, u64), bytes: impl Fn(&T) -> usize) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    let mut it = T::default();
    for i in 0..count {
        work(&mut it, i);
        if i % (count / 8) == 0 || i + 1 == count {
            assert_eq!(bytes(&it) as isize, LIVE.get() - before, "after {i} of {count}");
        }
    }
    let peak = PEAK.get() - before;
    drop(it);
    assert_eq!(LIVE.get(), before, "all is given back");
    peak as usize
}

fn scattered_units_cost_at_most_16_bytes(units: u64, of: u64) {
    let mut seed = 1;
    let add = |set: &mut BlockSet, _| {
        let unit = random(&mut seed, of);
        set.insert(unit * 8..unit * 8 + 8);
    };
    let set = per(peak_of(units, add, BlockSet::bytes), units);
    let mut seed = 1;
    let add = |map: &mut UnitMap, i: u64| _ = map.set(random(&mut seed, of), i as u32 | 1);
    let map = per(peak_of(units, add, UnitMap::bytes), units);
    println!("scattered: set {set:.1}, map {map:.1} bytes a unit");
    assert!(set <= 16.0 && map <= 16.0, "set {set}, map {map}");
}

/// As dense as the whole drive's.
#[test]
fn scattered_units_of_a_tenth_of_a_drive_cost_at_most_16_bytes() {
    scattered_units_cost_at_most_16_bytes(MANY / 10, DRIVE_UNITS / 10);
}

#[test]
#[ignore = "13 s"]
fn scattered_units_of_a_drive_cost_at_most_16_bytes() {
    scattered_units_cost_at_most_16_bytes(MANY, DRIVE_UNITS);
}

#[test]
fn every_density_stays_within_the_bound() {
    for one_in in [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 400] {
        let touched = 400_000;
        let mut seed = 7;
        let add = |set: &mut BlockSet, i: u64| {
            let unit = i * one_in + random(&mut seed, one_in);
            set.insert(unit * 8..unit * 8 + 1);
        };
        let set = per(peak_of(touched, add, BlockSet::bytes), touched);
        let mut seed = 7;
        let add =
            |map: &mut UnitMap, i: u64| _ = map.set(i * one_in + random(&mut seed, one_in), 9 + i as u32);
        let map = per(peak_of(touched, add, UnitMap::bytes), touched);
        println!("one in {one_in}: set {set:.2}, map {map:.2} bytes a unit");
        let (set_bound, map_bound) = if one_in == 1 { (2.0, 5.0) } else { (8.0, 16.0) };
        assert!(set <= set_bound && map <= map_bound, "one in {one_in}: set {set}, map {map}");
    }
}

/// A run is one entry, and what continues it makes it longer.
#[test]
fn scattered_runs_cost_as_much_as_scattered_units() {
    let mut seed = 5;
    let add = |set: &mut BlockSet, i: u64| {
        // 64 KiB, and with every second one the 64 KiB behind it.
        let at = random(&mut seed, DRIVE_UNITS / 64) * 64 * 8;
        set.insert(at..at + 128);
        if i % 2 == 1 {
            set.insert(at + 128..at + 256);
        }
    };
    let set = per(peak_of(1 << 20, add, BlockSet::bytes), 1 << 20);
    assert!(set <= 16.0, "{set} bytes a run");
}

#[test]
fn dense_in_random_order_ends_dense() {
    let units = 1 << 20;
    let order = |i: u64| i * 611_953 % units; // odd factor: a permutation
    let set = peak_of(
        units,
        |set: &mut BlockSet, i| _ = set.insert(order(i) * 8..order(i) * 8 + 5),
        BlockSet::bytes,
    );
    assert!(per(set, units) <= 2.0, "{}", per(set, units));
    let map = peak_of(units, |map: &mut UnitMap, i| _ = map.set(order(i), 1 + i as u32), UnitMap::bytes);
    assert!(per(map, units) <= 5.0, "{}", per(map, units));
}

#[test]
fn sequential_ranges_cost_next_to_nothing() {
    let step = 2048; // 1 MiB writes over 2.5 TB
    let bytes = peak_of(
        DRIVE_UNITS / step,
        |set: &mut BlockSet, i| _ = set.insert(i * step..(i + 1) * step),
        |s| s.bytes(),
    );
    assert!(bytes < 700_000, "{bytes}");
    let bytes = peak_of(1_000, |set: &mut BlockSet, _| _ = set.insert(5..DRIVE_UNITS * 8), BlockSet::bytes);
    assert!(bytes < 6_000_000, "{bytes}");
}

#[test]
fn what_is_taken_away_is_given_back() {
    let mut seed = 3;
    let mut set = BlockSet::new();
    set.insert(0..400_000_000);
    let mut gone = Vec::new();
    for _ in 0..200_000 {
        let unit = random(&mut seed, 50_000_000);
        set.remove(unit * 8..unit * 8 + 8);
        gone.push(unit);
    }
    for unit in gone {
        set.insert(unit * 8..unit * 8 + 8);
    }
    assert!(set.runs().eq(std::iter::once(0..400_000_000)));
    assert!(set.bytes() < 200_000, "{}", set.bytes());
    set.remove(0..400_000_000);
    assert!(set.bytes() < 1_000, "{}", set.bytes());
}

fn per(bytes: usize, units: u64) -> f64 {
    bytes as f64 / units as f64
}
