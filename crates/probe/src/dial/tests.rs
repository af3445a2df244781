//! Outliers, caches and steps of made-up drives.

use super::*;
use crate::Quiet;
use crate::fakes::{Fake, TURN, passes};

/// With noise of 0.01 revolutions, what lies more than 0.09 from the earliest is an outlier; of two nobody can say which one is.
#[test]
fn outliers_are_counted_where_there_are_more_than_two() {
    let mut target = Fake::new(100, |_, _, _, now| now + 1);
    let mut quiet = Quiet;
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.set_period(TURN as f64, 0.01 * TURN as f64);
    dial.earliest(&[0.2, 0.6]);
    assert_eq!(dial.quality().outliers, 0);
    dial.earliest(&[0.2, 0.2, 0.28, 0.5, 0.2]);
    assert_eq!(dial.quality().outliers, 1);
    dial.earliest(&[0.2, 0.2, 0.3, 0.2, 0.2]);
    assert_eq!(dial.quality().outliers, 2);
}

/// The end of the last request is that of a flush, too: what is measured from there leaves a pause out that came before it.
#[test]
fn a_flush_is_a_request() {
    let mut target = Fake::new(100, |_, _, _, now| now + 1000);
    let mut quiet = Quiet;
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.access(Dir::Write, 5, 1).unwrap();
    assert_eq!(dial.now(), SimTime(1000));
    dial.pause(5e6);
    assert_eq!(dial.now(), SimTime(1000), "a pause is none");
    assert_eq!(dial.flush().unwrap().end, SimTime(5_001_000));
    assert_eq!(dial.now(), SimTime(5_001_000));
    assert_eq!(dial.write(5, 1).unwrap(), Timing { start: SimTime(5_001_000), end: SimTime(5_002_000) });
    assert_eq!(dial.now(), SimTime(5_002_000));
}

/// A write is over when it is on the medium; an angle is that of the block named last, from the one named first.
#[test]
fn writes_take_their_flush_along_and_angles_have_a_sign() {
    let mut target = Fake { flush: 700, ..Fake::new(100, |_, _, _, now| now + 1000) };
    let mut quiet = Quiet;
    let written = Dial::new(&mut target, &mut quiet).write(5, 1).unwrap();
    assert_eq!(written, Timing { start: SimTime(0), end: SimTime(1700) });
    let mut target = Fake::new(100, |_, lba, _, now| passes(lba as f64 / 100.0, now));
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.set_period(TURN as f64, 0.0);
    for (from, to, turned) in [(10, 30, 0.2), (30, 10, -0.2), (10, 90, -0.2), (90, 10, 0.2)] {
        assert!((dial.between(from, to, 2).unwrap() - turned).abs() < 1e-9, "{from} to {to}");
    }
}

#[test]
fn two_sittings_add_up_and_the_noise_is_the_last_that_was_measured() {
    let of = |n: u64, noise_ns| Quality {
        requests: n,
        cache_hits: 2 * n,
        outliers: 3 * n,
        noise_ns,
        seconds: n as f64,
    };
    let both = |noise_ns| Quality { requests: 11, cache_hits: 22, outliers: 33, noise_ns, seconds: 11.0 };
    assert_eq!(of(10, 5.0).and(of(1, 7.0)), both(7.0));
    assert_eq!(of(10, 5.0).and(of(1, 0.0)), both(5.0));
}

/// A cache of four blocks: a block that was read lately takes 1 us, from the disk it ends at its angle.
#[test]
fn what_the_cache_has_is_pushed_out_before_the_medium_is_asked() {
    let mut held = Vec::new();
    let mut target = Fake::new(1 << 24, |_, lba, _, now| {
        if held.contains(&lba) {
            return now + 1000;
        }
        held.push(lba);
        if held.len() > 4 {
            held.remove(0);
        }
        passes(0.25, now)
    });
    let mut quiet = Quiet;
    let mut dial = Dial::new(&mut target, &mut quiet);
    dial.set_period(TURN as f64, 0.0);
    dial.set_cache(50_000.0, Eviction { reads: 4, stride: FAR });
    let lba = 1 << 23;
    assert_eq!(dial.angle(lba).unwrap(), 0.25);
    assert_eq!((dial.quality().requests, dial.quality().cache_hits), (1, 0));
    // Answered at once, then four others, and once more.
    assert_eq!(dial.angle(lba).unwrap(), 0.25);
    assert_eq!((dial.quality().requests, dial.quality().cache_hits), (7, 1));
    assert!(dial.hit(lba).unwrap());
    assert_eq!(target.asked[2..6].iter().filter(|a| a.1.abs_diff(lba) < ASIDE).count(), 0);
    let apart: Vec<u64> = target.asked[2..6].windows(2).map(|w| w[1].1.abs_diff(w[0].1)).collect();
    assert_eq!(apart, [FAR; 3], "one stride from one to the next");
}

/// A read over the boundary that the drive's buffer answers says nothing of a lost revolution.
#[test]
fn a_read_over_a_boundary_that_a_buffer_answers_is_left_out() {
    let buffered = |share: u64| {
        let mut n = 0;
        let mut target = Fake::new(1 << 24, move |_, lba, blocks, now| {
            if blocks == 1 {
                return passes(lba as f64 / 100.0, now);
            }
            n += 1;
            if n % share == 0 { passes((lba + blocks) as f64 / 100.0, now + TURN) } else { now + 1000 }
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        dial.set_cache(50_000.0, Eviction { reads: 1, stride: FAR });
        dial.set_across(true);
        dial.step(1000, 1010, 100.0, 6).unwrap()
    };
    // A block further than the last one, and a lost revolution, in all that count: one of one, two of two or one of three.
    assert!((wrap(buffered(1) - 0.11 - LOST)).abs() < 1e-9, "{}", buffered(1));
    assert!((wrap(buffered(3) - 0.11 - LOST)).abs() < 1e-9, "{}", buffered(3));
    assert_eq!(buffered(100), 0.1, "none counts: what the distance says");
}
