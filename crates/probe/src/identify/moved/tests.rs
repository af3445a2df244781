//! What follows from where blocks lie, by hand.

use super::*;
use crate::Quiet;
use crate::fakes::{Fake, TURN, passes};

/// Ten pieces that lay elsewhere after they were written, and 20 blocks that never were.
fn places() -> Places {
    let spot = |i: u64| Spot { lba: 10_000 * i, home: 0.2, away: 0.5, turns: 1.0, read: 0.0 };
    Places {
        spots: (0..10).map(spot).collect(),
        controls: (0..20).map(|i| (1_000_000 + 1000 * i, 0.3)).collect(),
        slack: 0.02,
    }
}

/// What `work` says of a drive on which blocks lie at these angles.
fn on<T>(angle: impl Fn(u64) -> f64, work: impl FnOnce(&mut Dial<'_>) -> T) -> T {
    let mut target = Fake::new(1 << 21, |_, lba, _, now| passes(angle(lba), now));
    let mut quiet = Quiet;
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.set_period(TURN as f64, 0.0);
    work(&mut dial)
}

/// So many of the pieces are home and at a third place, the others where they were; so many of the others have moved.
fn lies(home: u64, third: u64, pushed: u64) -> impl Fn(u64) -> f64 {
    move |lba| match (lba / 10_000, lba) {
        (_, 1_000_000..1_020_000) => {
            if (lba - 1_000_000) / 1000 < pushed {
                0.7
            } else {
                0.3
            }
        }
        (i, _) if i < home => 0.2,
        (i, _) if i < home + third => 0.8,
        _ => 0.5,
    }
}

fn rest(home: u64, third: u64) -> (Cleaning, Option<Mapping>) {
    on(lies(home, third, 0), |dial| after_rest(dial, &places(), &mut Vec::new()).unwrap())
}

/// More than half of the pieces have left where they were: cleaned; most of them home: a static mapping.
#[test]
fn what_a_rest_brings_home_is_told_by_the_most() {
    assert_eq!(rest(0, 0), (Cleaning::Lazy, None));
    assert_eq!(rest(3, 2), (Cleaning::Lazy, None));
    assert_eq!(rest(4, 2), (Cleaning::Aggressive, Some(Mapping::Static)));
    assert_eq!(rest(2, 4), (Cleaning::Aggressive, Some(Mapping::Dynamic)));
    assert_eq!(rest(3, 3), (Cleaning::Aggressive, Some(Mapping::Dynamic)));
}

fn cleaned(home: u64, third: u64, pushed: u64) -> Option<Mapping> {
    on(lies(home, third, pushed), |dial| after_cleaning(dial, &places(), &mut Vec::new()).unwrap())
}

/// Four blocks that were never written moved, and no more than half came home: dynamic. Fewer than two that left: unknown.
#[test]
fn what_cleaning_moves_tells_the_mapping() {
    assert_eq!(cleaned(6, 0, 0), Some(Mapping::Static));
    assert_eq!(cleaned(2, 0, 3), Some(Mapping::Static));
    assert_eq!(cleaned(2, 0, 4), Some(Mapping::Dynamic));
    assert_eq!(cleaned(5, 0, 4), Some(Mapping::Dynamic));
    assert_eq!(cleaned(6, 0, 4), Some(Mapping::Static));
    assert_eq!(cleaned(1, 0, 3), None);
    assert_eq!(cleaned(1, 1, 0), Some(Mapping::Dynamic));
}

/// Another clock is a turn of all angles: of those of moved pieces as of the others; five of fifteen that moved do not mislead.
#[test]
fn angles_are_turned_to_another_clock() {
    let mut known = places();
    on(
        |lba| if (1_000_000..1_005_000).contains(&lba) { 0.1 } else { lies(0, 0, 0)(lba) + 0.6 },
        |dial| known.turn_to(dial).unwrap(),
    );
    let near = |a: f64, b: f64| wrap(a - b).abs() < 1e-9;
    assert!(known.controls.iter().all(|c| near(c.1, 0.9)), "{:?}", known.controls);
    assert!(known.spots.iter().all(|s| near(s.home, 0.8) && near(s.away, 0.1)), "{:?}", known.spots);
}

#[test]
fn shares_count_what_moved_and_what_was_slow() {
    let mut p = places();
    (p.spots[0].away, p.spots[1].away) = (0.219, 0.221);
    (p.spots[2].turns, p.spots[3].turns) = (1.79, 1.81);
    // Half a turn is the farthest: 0.995 and 0.005 are a hundredth apart.
    (p.spots[4].home, p.spots[4].away) = (0.995, 0.005);
    assert_eq!((p.moved_share(), p.slow_share()), (0.8, 0.1));
    assert_eq!(p.slow().collect::<Vec<_>>(), [30_000]);
    // Pieces that were written and blocks that never were, each with seven behind it, are left alone.
    for at in [10_000, 1_003_000] {
        assert!(p.touches(at + 7, 1) && p.touches(at - 7, 8), "{at}");
        assert!(!p.touches(at - 8, 8) && !p.touches(at + 8, 1), "{at}");
    }
}

/// Reads of written pieces take way more the further the head comes from the place of the cache, at a quarter of the drive.
#[test]
fn the_cache_lies_where_the_way_to_it_is_shortest() {
    let seen = |way: f64| {
        let mut head = 0;
        let mut target = Fake::new(1 << 21, |_, lba, _, now| {
            let far = (head as f64 - f64::from(1 << 19)).abs() / f64::from(1 << 21);
            head = lba;
            now + if lba % 10_000 == 0 { (4e6 + way * far) as u64 } else { 4_000_000 }
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        place(&mut dial, &places(), &mut Vec::new()).unwrap()
    };
    assert!((seen(8e6).unwrap() - 0.25).abs() < 0.01, "{:?}", seen(8e6));
    assert_eq!(seen(2e6), None, "a way that differs by less than two fifths is none");
}

/// The same where the drive's own cache has what was read: each time from the disk, 4 ms and more.
#[test]
fn what_the_drives_own_cache_has_is_pushed_out_on_the_way() {
    let mut held = std::collections::VecDeque::new();
    let mut target = Fake::new(1 << 21, |_, lba, _, now| {
        if held.contains(&lba) {
            return now + 1000;
        }
        held.push_back(lba);
        if held.len() > 50 {
            held.pop_front();
        }
        now + 4_000_000
    });
    let (mut quiet, mut seen) = (Quiet, Vec::new());
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.set_period(TURN as f64, 0.0);
    dial.set_cache(50_000.0, crate::dial::Eviction { reads: 60, stride: crate::dial::FAR });
    assert_eq!(place(&mut dial, &places(), &mut seen), Ok(None));
    assert!(seen[0].points.iter().all(|p| p.1 == 4.0), "{:?}", seen[0].points);
}

/// A sequence that fills 1000 places evenly: each hundred of its first hundred numbers has one in each ten places, nearly.
#[test]
fn places_are_spread_over_the_whole_drive() {
    let mut of: Vec<u64> = (0..100).map(|i| spread(i, 1000)).collect();
    of.sort_unstable();
    assert!(of.windows(2).all(|w| w[1] - w[0] <= 20), "{of:?}");
    assert!(of[0] < 20 && of[99] > 980, "{of:?}");
}
