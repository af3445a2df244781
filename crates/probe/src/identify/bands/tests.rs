//! Bands of made-up drives, worked out by hand.

use super::*;
use crate::Quiet;
use crate::fakes::{Fake, TURN, passes};
use smrlab_units::Dir;

/// What `work` says of a drive on which a write of so many blocks from an LBA on takes so many turns, and 200 blocks pass in one.
fn on<T>(blocks: u64, turns: impl Fn(u64, u64) -> f64, work: impl FnOnce(&mut Dial<'_>) -> T) -> T {
    let mut target = Fake::new(blocks, |dir, lba, n, now| match dir {
        Dir::Read => passes((lba + n) as f64 / 200.0, now),
        Dir::Write => now + (turns(lba, n) * TURN as f64) as u64,
    });
    let mut quiet = Quiet;
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.set_period(TURN as f64, 0.0);
    work(&mut dial)
}

/// Bands of 20 tracks of 200 blocks: each that a write touches takes 42 turns, more or less.
fn whole(lba: u64, blocks: u64, share: f64) -> f64 {
    let bands = (lba + blocks - 1) / 4000 - lba / 4000 + 1;
    let more = if (lba >> 14).is_multiple_of(2) { share } else { -share };
    bands as f64 * 42.0 * (1.0 + more)
}

fn in_bands(turns: impl Fn(u64, u64) -> f64) -> Option<BandSize> {
    on(1 << 20, turns, |dial| in_place(dial, 101_000, &mut Vec::new()).unwrap())
}

/// Costs alike to a tenth are those of bands that are rewritten as a whole.
#[test]
fn writes_that_cost_alike_rewrite_whole_bands() {
    let found = in_bands(|lba, n| whole(lba, n, 0.0)).unwrap();
    assert_eq!((found.blocks, found.end % 4000, found.spread), (4000, 0, 1.0));
    assert!((found.rewrite_s - 0.42).abs() < 1e-9, "{found:?}");
    assert_eq!(in_bands(|lba, n| whole(lba, n, 0.04)).map(|b| b.blocks), Some(4000));
    assert_eq!(in_bands(|lba, n| whole(lba, n, 0.06)).filter(|b| b.spread == 1.0), None);
}

/// The search begins at so many blocks before the end of a band: that is found as exactly as one that is far away.
#[test]
fn a_band_that_ends_at_once_is_as_long_as_others() {
    for before in [4, 10, 24, 33, 40, 63, 64, 65, 1000] {
        let found = on(
            1 << 20,
            |lba, n| whole(lba, n, 0.0),
            |dial| in_place(dial, 104_000 - 8 - before, &mut Vec::new()).unwrap().unwrap(),
        );
        assert_eq!((found.blocks, found.end % 4000), (4000, 0), "{before} blocks before");
    }
}

/// Tracks of 4 blocks, 10 of them in a band: it is shorter than the first stretch that is written over.
#[test]
fn a_band_may_be_shorter_than_the_first_look() {
    let turns = |lba: u64, n: u64| 21.0 * ((lba + n - 1) / 40 - lba / 40 + 1) as f64;
    let mut target = Fake::new(1 << 20, |dir, lba, n, now| match dir {
        Dir::Read => passes((lba + n) as f64 / 4.0, now),
        Dir::Write => now + (turns(lba, n) * TURN as f64) as u64,
    });
    let mut quiet = Quiet;
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.set_period(TURN as f64, 0.0);
    for before in [12, 20, 39] {
        assert_eq!(doubling(&mut dial, 4000 - before, 21.0), Ok(Some(4000)), "{before} blocks before");
    }
}

/// Nine of twelve writes along the drive are enough to say that they cost alike; eight are not.
#[test]
fn a_quarter_of_the_writes_may_cost_something_else() {
    let of = |odd: u64| {
        in_bands(|lba, n| {
            let place = lba.wrapping_sub(101_000) >> 14;
            let far = (lba.wrapping_sub(101_000)).is_multiple_of(1 << 14);
            whole(lba, n, 0.0) * if far && (1..=odd).contains(&place) { 2.0 } else { 1.0 }
        })
        .is_some_and(|b| b.spread == 1.0)
    };
    assert_eq!([of(3), of(4)], [true, false]);
}

/// What costs far less or more than reading and writing its tracks is no rewriting of a band: a journal, or a stall.
#[test]
fn a_band_takes_two_turns_a_track_and_a_little() {
    let of = |each: f64| in_bands(|lba, n| whole(lba, n, 0.0) / 42.0 * each).map(|b| b.blocks);
    assert_eq!((of(29.0), of(31.0)), (None, Some(4000)));
    assert_eq!((of(72.0), of(75.0)), (Some(4000), None));
    assert_eq!(of(1.7), None, "less than two turns are no rewriting");
}

/// The cost falls by a turn each 100 blocks and begins anew after 3200: the band is the period, and its edge the jump.
#[test]
fn a_cost_that_depends_on_the_place_repeats_with_the_band() {
    let found = in_bands(|lba, _| 34.0 - (lba % 3200 / 100) as f64).unwrap();
    assert!(found.blocks == 3200 && found.end % 3200 < 16, "{found:?}");
    assert!((found.rewrite_s - 0.34).abs() < 1e-9 && found.spread == 8.0, "{found:?}");
}

/// A period of 32 whose second half is alike but for a step more: the best distance is 64, and 32 is not near enough.
#[test]
fn the_best_of_several_periods_is_taken() {
    let of = |n: usize, f: &dyn Fn(usize) -> f64| repeats_after(&(0..n).map(f).collect::<Vec<_>>());
    let saw = |i: usize| (i % 32) as f64;
    assert_eq!(of(400, &saw), Some(32));
    assert_eq!(of(400, &|i| saw(i) + 20.0 * (i / 32 % 2) as f64), Some(64));
    assert_eq!(of(400, &|_| 7.0), None, "what is constant has no period");
    assert_eq!(of(400, &|i| (i % 6) as f64), None, "so short ones are no bands");
    // Its neighbours are near enough, too.
    let ramp = |i: usize| (i % 200) as f64;
    assert_eq!(of(1200, &ramp), Some(200));
    assert_eq!(jump(&(0..400).map(ramp).collect::<Vec<_>>(), 200), 200);
    assert_eq!(jump(&(0..400).map(|i| ramp(i + 150)).collect::<Vec<_>>(), 200), 250);
}

/// Bands end at 5000 and at the drive's end, where there is no piece behind them that could be cleaned alone.
#[test]
fn the_end_of_a_band_is_the_last_piece_that_is_cleaned_with_the_first() {
    let end = |from: u64, band: u64, blocks: u64| {
        on(
            blocks,
            |_, _| 1.0,
            |dial| {
                band_end(dial, (from, 8), &mut |dial, at| {
                    assert!(at + 8 <= dial.blocks(), "{at} is behind the end");
                    Ok(at + 8 <= band)
                })
                .unwrap()
            },
        )
    };
    assert_eq!(end(0, 5000, 1 << 20), Some(5000));
    assert_eq!(end(2504, 5000, 1 << 20), Some(5000));
    assert_eq!(end(0, 6000, 6000), None);
    assert_eq!(end(0, 1 << 30, 1 << 31), None, "bands have two million blocks at most");
}

/// Five of eight steps down tell; as many up and down do not, nor steps within the error.
#[test]
fn tracks_lean_to_where_pieces_become_cheaper() {
    let of = |blocks: u64, cost: &dyn Fn(u64) -> f64| {
        on(
            blocks,
            |_, _| 1.0,
            |dial| leaning(dial, 0, &mut |_, lba| Ok(Some((cost(lba / (1 << 12)), 0.5)))).unwrap(),
        )
    };
    let blocks = 1 << 22;
    assert_eq!(of(blocks, &|i| 100.0 - i as f64), Some(Toward::Higher));
    assert_eq!(of(blocks, &|i| 100.0 + i as f64), Some(Toward::Lower));
    assert_eq!(of(blocks, &|i| 100.0 - 0.02 * i as f64), None, "within the error");
    assert_eq!(of(blocks, &|i| 100.0 - (i % 5) as f64), Some(Toward::Higher), "one jump up among them");
    assert_eq!(of(blocks, &|i| (i % 2) as f64 + (i / 4 % 2) as f64 + (i / 16 % 2) as f64), None);
    // Five pieces at the drive's end: four steps are enough, three are not.
    assert_eq!(of((4 << 12) + 8, &|i| 100.0 - i as f64), Some(Toward::Higher));
    assert_eq!(of((4 << 12) + 7, &|i| 100.0 - i as f64), None);
}

#[test]
fn a_direction_takes_three_tenths_more_at_one_end() {
    let of = |front, end| Toward::of(front, end, &mut Vec::new());
    assert_eq!((of(13.1, 10.0), of(10.0, 13.1)), (Some(Toward::Higher), Some(Toward::Lower)));
    assert_eq!((of(12.9, 10.0), of(10.0, 12.9)), (None, None));
    // From the higher end the near end is what lies behind the band.
    let lower = View { blocks: 1000, lower: true };
    assert_eq!((lower.piece(100, 8), lower.end([100, 300])), (892, 900));
    let higher = View { blocks: 1000, lower: false };
    assert_eq!((higher.piece(100, 8), higher.end([100, 300])), (100, 300));
}

/// A boundary between `start` and the drive's end is found wherever it lies, and nothing behind the end is written.
#[test]
fn boundaries_are_found_up_to_the_end_of_the_drive() {
    for left in [9, 63, 64, 65, 127, 128, 129, 500, 512, 513] {
        for before in [1, 2, 8, left / 2, left - 1] {
            let (start, end) = (40_000 - left, 40_000 - before);
            let cost = |lba: u64, n: u64| if lba < end && lba + n > end { 20.0 } else { 10.0 };
            let found = on(40_000, cost, |dial| doubling(dial, start, 10.0).unwrap());
            // Steps are doubled from 64 on: the last one that lies on the drive has to reach over the boundary.
            let last = (0..).map(|i| 64u64 << i).take_while(|step| *step <= left.max(64)).last().unwrap_or(0);
            let there = start + last.min(left) > end;
            assert_eq!(
                found,
                there.then_some(end),
                "{left} blocks before the end, a boundary {before} before it"
            );
        }
    }
}

/// The longest stretch that is written has two million blocks: a boundary within it is found, one behind it is not.
#[test]
fn a_boundary_is_looked_for_within_the_longest_band() {
    for (end, there) in [(MOST - 1, true), (MOST, false)] {
        let cost = |lba: u64, n: u64| if lba < end && lba + n > end { 20.0 } else { 10.0 };
        let found = on(1 << 23, cost, |dial| doubling(dial, 0, 10.0).unwrap());
        assert_eq!(found, there.then_some(end));
    }
}

/// A write costs twice as much, give or take what a host adds: from 1.4 to 1.8 of it, by how long the write is itself.
#[test]
fn a_boundary_is_told_from_noise() {
    let of = |n: u64, more: f64| {
        on(
            1 << 20,
            |_, _| 10.0 * more,
            |dial| {
                // What lies before is left out: the first look is over a boundary or not.
                doubling(dial, (1 << 20) - n, 10.0).unwrap().is_some()
            },
        )
    };
    assert_eq!([1.65, 1.68].map(|more| of(64, more)), [true, true]);
    assert_eq!([1.59, 1.6].map(|more| of(64, more)), [false, false]);
    // A thousand blocks take a turn themselves; of more than two turns no more is taken off.
    let long = |more: f64| {
        let cost = |_: u64, n: u64| if n > 8000 { 10.0 * more } else { 10.0 };
        on(1 << 14, cost, |dial| doubling(dial, 0, 10.0).unwrap())
    };
    assert_eq!([1.79, 1.81].map(long), [None, Some(8000)]);
}

/// Bands that show in what a write costs at a place: from sampling at 16 blocks to sampling at 4096, as far as the drive goes.
#[test]
fn periods_of_every_length_are_found() {
    let of = |blocks: u64, start: u64, band: u64| {
        let cost = |lba: u64, _: u64| 2.0 + 30.0 * ((lba % band) as f64 / band as f64);
        on(blocks, cost, |dial| period(dial, start, &mut Vec::new()).unwrap())
    };
    for (band, step) in [
        (1600, 16),
        (8000, 16),
        (32_000, 64),
        (128_000, 256),
        (409_600, 1024),
        (1 << 20, 4096),
        (2_048_000, 4096),
    ] {
        let found = of(1 << 24, 5000, band).unwrap();
        assert!(found.blocks.abs_diff(band) <= step, "{band}: {found:?}");
        assert_eq!(found.spread, step as f64 / 2.0, "{band}");
        assert!((found.end % band).min(band - found.end % band) <= step, "{band}: {found:?}");
    }
    // With one block less there is no room for 1200 of them.
    assert!(of(5000 + 16 * 1200 + 1, 5000, 1600).is_some() && of(5000 + 16 * 1200, 5000, 1600).is_none());
    assert_eq!(of(1 << 26, 0, 1 << 24), None, "no bands are as long");
}

/// Whole bands that begin so near the drive's end that writes along it begin anew at its front.
#[test]
fn whole_bands_are_found_near_the_end_of_the_drive() {
    for blocks in [120_000, 130_001, 150_007] {
        for before in [9000, 12_345] {
            let found = on(
                blocks,
                |lba, n| whole(lba, n, 0.0),
                |dial| in_place(dial, blocks - before, &mut Vec::new()).unwrap(),
            );
            assert_eq!(found.map(|b| (b.blocks, b.end % 4000)), Some((4000, 0)), "{blocks} {before}");
        }
    }
}

/// However little is left behind the place or behind the boundary that is found first: no band, and nothing behind the end is written.
#[test]
fn the_drive_may_end_soon_behind_a_boundary() {
    for left in (1..200).step_by(3) {
        for before in [8, 16, 40, 500] {
            let found = on(
                120_000 + left,
                |lba, n| whole(lba, n, 0.0),
                |dial| in_place(dial, 120_000 - before, &mut Vec::new()).unwrap(),
            );
            assert_eq!(found, None, "{left} {before}");
        }
        let at = |dial: &mut Dial<'_>| in_place(dial, 120_000 - left, &mut Vec::new()).unwrap();
        assert_eq!(on(120_000, |lba, n| whole(lba, n, 0.0), at), None, "{left}");
    }
}

/// The end of a band as it is defined, on drives of any size: where the last piece ends that is cleaned with the first.
#[test]
fn ends_of_bands_are_found_wherever_a_piece_behind_them_fits() {
    let mut rng = smrlab_units::rng::Rng::new(7);
    let (mut none, mut some) = (0, 0);
    for _ in 0..3000 {
        let size = [8, 16, 64][rng.below(3) as usize];
        let from = 8 * rng.below(500);
        let most = 1 << rng.below(17);
        let band = from + size + 8 * rng.below(most);
        let blocks = band + rng.below(band);
        let found = on(
            blocks,
            |_, _| 1.0,
            |dial| {
                band_end(dial, (from, size), &mut |dial, at| {
                    assert!(at + size <= dial.blocks(), "{at} is behind the end");
                    Ok(at + size <= band)
                })
                .unwrap()
            },
        );
        // Steps grow by half and a little.
        let mut step = size;
        while from + step + size <= band {
            step = (step + step / 2) / 8 * 8 + 8;
        }
        let there = from + step + size <= blocks;
        assert_eq!(found, there.then_some(band), "{from} {size} {band} {blocks}");
        (none, some) = (none + u32::from(!there), some + u32::from(there));
    }
    assert!(none > 300 && some > 1000, "{none} {some}");
}
