//! Ways of a made-up disk, worked out by hand.

use super::*;
use crate::Quiet;
use crate::dial::{Eviction, FAR};
use crate::fakes::{Fake, TURN, passes};

fn zone(tracks: u64) -> Zone {
    Zone {
        first_lba: 0,
        blocks: 100 * tracks,
        first_track: 0,
        tracks,
        usable: 100,
        sectors: 100,
        sectors_exact: 100.0,
        slips: 0,
        jump: 0.0,
    }
}

/// A head that takes 0.3 turns to what lies elsewhere: the time until it is there is found, on a noisy host too.
#[test]
fn the_time_until_the_head_is_there_is_found() {
    for noise in [0.0, 0.001] {
        let (mut last, mut n) = (0, 0u64);
        let mut target = Fake::new(1 << 20, |_, lba, _, now| {
            let way = if lba == last { 0 } else { TURN * 3 / 10 };
            last = lba;
            n += 1;
            // Late by some thousandths of a turn, now and then.
            let late = if noise > 0.0 { n % 3 * TURN / 2000 } else { 0 };
            passes(lba as f64 / 100.0, now + way) + late
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, noise * TURN as f64);
        let access = Access { dir: Dir::Read, completions: 3 };
        let spot = |lba| Spot { lba, sectors: 100.0 };
        let found = access.least(&mut dial, spot(1000), spot(5050)).unwrap() / TURN as f64;
        // The block that is read begins a hundredth before it ends.
        assert!((found - 0.29).abs() < 0.012, "{found} turns with noise {noise}");
    }
}

/// The same on a host of which two completions, one after the other, come most of a turn late: they pass for lost turns, of which the
/// search makes sure.
#[test]
fn late_completions_do_not_shorten_a_way() {
    for late in 3..45 {
        let (mut last, mut n) = (0, 0u64);
        let mut target = Fake::new(1 << 20, |_, lba, _, now| {
            let way = if lba == last { 0 } else { TURN * 3 / 10 };
            last = lba;
            n += u64::from(lba == 5050);
            let more = if lba == 5050 && [late, late + 1].contains(&n) { TURN * 9 / 10 } else { 0 };
            passes(lba as f64 / 100.0, now + way) + n % 3 * TURN / 2000 + more
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.001 * TURN as f64);
        let spot = |lba| Spot { lba, sectors: 100.0 };
        let access = Access { dir: Dir::Read, completions: 3 };
        let found = access.least(&mut dial, spot(1000), spot(5050)).unwrap() / TURN as f64;
        assert!((found - 0.29).abs() < 0.02, "{found} turns with two late ones from {late} on");
    }
}

/// Each distance is measured once, the longest last; from one to the next the way is less than twice as long, but for the shortest.
#[test]
fn distances_go_up_to_the_longest() {
    for most in (0..3000).chain([100_000, 10_000_000]) {
        let all = distances(most);
        assert_eq!(all.last().copied(), (most > 0).then_some(most));
        assert!(all.first().is_none_or(|d| *d == 1), "{most}: {all:?}");
        assert!(all.windows(2).all(|d| d[0] < d[1] && d[1] <= 2 * d[0]), "{most}: {all:?}");
    }
}

/// Two tracks of a cylinder where there are two surfaces, the last and the first of two passes where they come in groups.
#[test]
fn the_surface_changes_where_there_are_two() {
    let zones = [zone(100)];
    let of = |order| Map::new(&zones, order).switch().map(|(a, b)| [a.lba / 100, b.lba / 100]);
    assert_eq!(of(Order::Cylinder { surfaces: 1 }), None);
    assert_eq!(of(Order::Cylinder { surfaces: 2 }), Some([0, 1]));
    assert_eq!(of(Order::Hybrid { surfaces: 2, group_cylinders: 10 }), Some([9, 10]));
    assert_eq!(of(Order::Hybrid { surfaces: 2, group_cylinders: 100 }), None);
}

/// A cache that keeps the track that was read: then the two blocks of a track lie most of a turn apart, else one right before the
/// other.
#[test]
fn blocks_of_one_track_are_not_those_that_a_cache_keeps() {
    let zones = [zone(100)];
    let map = Map::new(&zones, Order::Surface { surfaces: 1 });
    for keeps in [true, false] {
        let mut held = None;
        let mut target = Fake::new(1 << 24, |_, lba, _, now| {
            let hit = held == Some(if keeps { lba / 100 } else { lba });
            held = Some(if keeps { lba / 100 } else { lba });
            if hit { now + 1000 } else { passes(lba as f64 / 100.0, now) }
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        dial.set_cache(50_000.0, Eviction { reads: 1, stride: FAR });
        let (a, b) = map.same_track(&mut dial, 7).unwrap().unwrap();
        assert_eq!(b.lba as i64 - a.lba as i64, if keeps { 86 } else { -2 });
        assert_eq!((a.lba / 100, b.lba / 100), (7, 7));
    }
}

/// Of a hundred tracks ten sectors were slipped: by the fiftieth track half of them, so that its middle lies five blocks earlier.
#[test]
fn slipped_sectors_shift_the_middle_of_a_track() {
    let slipped = Zone { first_lba: 7000, blocks: 9990, slips: 10, ..zone(100) };
    let middles = |zone: &Zone| [0, 50, 99].map(|index| middle(zone, index).lba - 7000);
    assert_eq!(middles(&slipped), [50, 5045, 9941]);
    assert_eq!(middles(&Zone { slips: 0, blocks: 10_000, ..slipped }), [50, 5050, 9950]);
    assert_eq!(
        middle(&Zone { blocks: 30, tracks: 1, ..slipped }, 0).lba,
        7029,
        "no further than the last block"
    );
}

/// A straight curve is looked at in each part of the way. Times that are off by what measuring them is off do not make it looked at more
/// closely, those that are off by more do.
#[test]
fn noise_is_no_jump_of_a_curve() {
    let looked = |noise: f64, spread: f64| {
        let turn = TURN as f64;
        let mut target = Fake::new(1 << 20, |_, _, _, now| now + 1);
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(turn, 0.0);
        let time = |d: u64| [1e6 + 1000.0 * d as f64 + noise * turn * ((d % 7) as f64 / 3.0 - 1.0); 2];
        let mut points = [1, 4097].map(|d| (d, time(d))).to_vec();
        refine(&mut dial, &mut points, spread * turn, [0.0, 1.0], |_, d| Ok((d, time(d)))).unwrap();
        assert!(points.is_sorted_by_key(|p| p.0));
        points.len()
    };
    let straight = looked(0.0, 0.01);
    assert!((16..=40).contains(&straight), "{straight}");
    assert_eq!(looked(0.01, 0.01), straight);
    assert!(looked(0.05, 0.005) > 2 * straight);
}
