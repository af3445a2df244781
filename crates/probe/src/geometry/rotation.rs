//! How fast the disk turns, and whether it has a cache that hides that.

use super::Measured;
use crate::dial::{Dial, Eviction, FAR};
use crate::stats::{line, median, median_angle, spread, wrap};
use crate::{ProbeError, Result};

/// Revolutions over which the speed is measured, at least and at most.
const LONG: u64 = 256;
const LONGEST: u64 = 4096;
/// Reads of blocks far from each other.
const FAR_READS: u64 = 24;
/// How often they are tried, and the least nanoseconds of which a disk needs more for most of them.
const ROUNDS: u64 = 8;
const LEAST: f64 = 2e5;
/// Reads of one block that tell the host's noise.
const NOISY_READS: u64 = 64;
/// The slowest and the fastest disk in nanoseconds a revolution: 300 to 60 000 revolutions a minute.
const PERIODS: std::ops::Range<f64> = 1e6..2e8;
/// How far, in revolutions, a completion may be from where the turns so far let it be expected.
const NEAR: f64 = 0.1;
const HIDDEN: &str = "repeated reads are always answered from a cache: switch it off";
const NO_MULTIPLE: &str = "the times between reads of the same block are not multiples of a revolution (or this host is too busy to tell)";

/// Measures the revolution and sets the dial by it; the answer is in revolutions a minute. `quick` is content with
/// less exactness where the host is noisy.
///
/// # Errors
/// The target's, and [`ProbeError::NotADisk`].
pub(crate) fn find(dial: &mut Dial<'_>, quick: bool) -> Result<Measured> {
    dial.stage("rotation");
    let blocks = dial.blocks();
    let typical = far_reads(dial, |dial, _| dial.random(blocks))?;
    find_cache(dial, median(&typical))?;
    let block = dial.random(blocks / 2) + blocks / 4;
    let rough = rough_period(dial, block)?;
    refine(dial, block, rough, if quick { LONGEST / 4 } else { LONGEST })
}

/// Whether a target is large enough, and reads far from each other take as long as a disk needs for them. A busy host makes
/// many reads of a target without timing slow, but not all: as long as some are too fast for a disk, others are tried.
///
/// # Errors
/// The target's, and [`ProbeError::NotADisk`].
pub(crate) fn plausible(dial: &mut Dial<'_>) -> Result<()> {
    let blocks = dial.blocks();
    for round in 0..ROUNDS {
        let shift = round * blocks / (2 * FAR_READS * ROUNDS);
        let place = |i: u64| (i * 7 % FAR_READS * 2 + 1) * blocks / (2 * FAR_READS) + shift;
        let mut times = far_reads(dial, |_, i| place(i))?;
        times.sort_by(f64::total_cmp);
        if times[times.len() / 4] >= LEAST {
            break;
        }
    }
    Ok(())
}

/// The times of reads far from each other, `place` being the block of each.
fn far_reads(dial: &mut Dial<'_>, place: impl Fn(&mut Dial<'_>, u64) -> u64) -> Result<Vec<f64>> {
    let blocks = dial.blocks();
    if blocks < 64 {
        return Err(ProbeError::NotADisk(format!("{blocks} blocks are too few, at least 64 are needed")));
    }
    let mut times = Vec::new();
    for i in 0..FAR_READS {
        let lba = place(dial, i);
        times.push(dial.read(lba)?.took());
    }
    let m = median(&times);
    if m < LEAST {
        return Err(ProbeError::NotADisk(format!(
            "reads far from each other take {:.3} ms, less than any disk needs (a flash device, or served with --timing none?)",
            m / 1e6
        )));
    }
    Ok(times)
}

/// A block read twice: does the second read take a revolution, or nothing? And how many reads elsewhere push it out?
fn find_cache(dial: &mut Dial<'_>, typical: f64) -> Result<()> {
    let blocks = dial.blocks();
    let mut again = Vec::new();
    for _ in 0..5 {
        let lba = dial.random(blocks);
        dial.read(lba)?;
        for _ in 0..4 {
            again.push(dial.read(lba)?.took());
        }
    }
    let hit = median(&again);
    if hit > typical / 8.0 {
        return Ok(());
    }
    let limit = (2.0 * hit + 8.0 * spread(&again) + 5e4).min(typical / 4.0);
    let far = Eviction { reads: 0, stride: FAR };
    let found = match least_reads(dial, limit, far)? {
        Some(eviction) => Some(nearer(dial, limit, eviction)?),
        None => least_reads(dial, limit, Eviction::default())?,
    };
    let Some(eviction) = found else {
        return Err(ProbeError::NotADisk(HIDDEN.to_owned()));
    };
    dial.set_cache(limit, eviction);
    Ok(())
}

/// The fewest reads of the kind that push a block out of the drive's cache, and some more, because segments may be replaced
/// at random.
fn least_reads(dial: &mut Dial<'_>, limit: f64, kind: Eviction) -> Result<Option<Eviction>> {
    // Of a drive that its cache holds nearly, single blocks are pushed out by chance.
    let most = 4096.min(dial.blocks() / 16);
    let mut reads = 1;
    while reads <= most {
        if pushes_out(dial, limit, Eviction { reads, ..kind })? {
            let (mut lo, mut hi) = (reads / 2, reads);
            while hi - lo > 1 {
                let mid = lo + (hi - lo) / 2;
                if pushes_out(dial, limit, Eviction { reads: mid, ..kind })? { hi = mid } else { lo = mid }
            }
            return Ok(Some(Eviction { reads: hi + hi / 8 + 1, ..kind }));
        }
        reads *= 2;
    }
    Ok(None)
}

/// As many reads closer to each other, as long as that is faster: too close ones are parts of one stream to the drive.
fn nearer(dial: &mut Dial<'_>, limit: f64, mut best: Eviction) -> Result<Eviction> {
    let mut least = f64::INFINITY;
    let mut stride = best.stride;
    while stride > 0 {
        let eviction = Eviction { stride, ..best };
        let begin = dial.now();
        for _ in 0..3 {
            if !pushes_out(dial, limit, eviction)? {
                return Ok(best);
            }
        }
        let took = dial.now().since(begin).0 as f64;
        if took < least {
            (best, least) = (eviction, took);
        }
        stride /= 2;
    }
    Ok(best)
}

/// Whether such reads elsewhere push a block out of the drive's cache, twice: a single answer from the cache may come late.
fn pushes_out(dial: &mut Dial<'_>, limit: f64, eviction: Eviction) -> Result<bool> {
    dial.set_cache(limit, eviction);
    for _ in 0..2 {
        let lba = dial.random(dial.blocks());
        dial.read(lba)?;
        dial.evict()?;
        if dial.hit(lba)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The longest period at which all reads of one block end at the same angle, whatever was read in between: the drive's own
/// cache may answer neighbours, and how many revolutions lie between two reads is not known.
fn rough_period(dial: &mut Dial<'_>, block: u64) -> Result<f64> {
    let start = dial.read_medium(block)?.end;
    let mut ends = Vec::new();
    let hits = dial.quality().cache_hits;
    for _ in 0..40 {
        if dial.cached() {
            dial.evict()?;
        }
        // At any moment of the slowest disk's turn.
        let rest = dial.random(PERIODS.end as u64) as f64;
        dial.pause(rest);
        ends.push(dial.read_medium(block)?.end.since(start).0 as f64);
    }
    if dial.quality().cache_hits > hits + 40 {
        return Err(ProbeError::NotADisk(HIDDEN.to_owned()));
    }
    let span = ends.last().copied().unwrap_or(PERIODS.end);
    let alike = |period: f64| {
        let (sin, cos) = ends.iter().fold((0.0, 0.0), |(s, c), t| {
            let (sin, cos) = (std::f64::consts::TAU * t / period).sin_cos();
            (s + sin, c + cos)
        });
        f64::hypot(sin, cos) / ends.len() as f64
    };
    // Steps of a tenth of what can be told apart, from the slowest disk on.
    let step = 0.1 / span;
    let frequency = |i: u32| 1.0 / PERIODS.end + f64::from(i) * step;
    let steps = ((1.0 / PERIODS.start - 1.0 / PERIODS.end) / step) as u32;
    let Some(first) = (0..steps).find(|&i| alike(1.0 / frequency(i)) > 0.85) else {
        return Err(ProbeError::NotADisk(NO_MULTIPLE.to_owned()));
    };
    let best =
        (first..first + 20).max_by(|&a, &b| alike(1.0 / frequency(a)).total_cmp(&alike(1.0 / frequency(b))));
    Ok(1.0 / frequency(best.unwrap_or(first)))
}

/// From reads of one block further and further apart: the number of revolutions between them is known each time from
/// what is known so far.
fn refine(dial: &mut Dial<'_>, block: u64, rough: f64, longest: u64) -> Result<Measured> {
    let mut period = rough;
    let start = typical_end(dial, block, rough)?;
    let mut points = vec![(0.0, 0.0)];
    let (mut apart, mut known, mut error) = (1u64, 0.0, 0.0);
    // The first steps tell the revolution itself: what lies between two reads one after the other.
    while apart <= longest {
        for _ in 0..3 {
            if dial.cached() {
                dial.evict()?;
            }
            let since = dial.now().0 as f64 - start;
            // Anywhere in the revolution, so that a target that does not turn is found out.
            let early = 0.1 + dial.random(800) as f64 / 1000.0;
            dial.pause((known + apart as f64 - early) * period - since);
            let at = dial.read_medium(block)?.end.0 as f64 - start;
            let turns = (at / period).round();
            points.push((turns, at));
        }
        // One that came much too late would tilt the line, and then all turns be miscounted.
        let near: Vec<_> = points.iter().copied().filter(|p| (p.1 / period - p.0).abs() < NEAR).collect();
        let (_, slope, standard, _) = line(if 2 * near.len() > points.len() { &near } else { &points });
        (period, error) = (slope, standard);
        known = points.last().map_or(0.0, |p| p.0);
        if !PERIODS.contains(&period) {
            break;
        }
        dial.share(apart as f64 / longest as f64);
        if apart >= LONG && 3.0 * error < 3e-6 * period {
            break;
        }
        apart *= 2;
    }
    let (origin, _, _, deviation) = line(&points);
    let off = points.iter().filter(|p| (p.1 - origin - period * p.0).abs() > 0.1 * period).count();
    if !PERIODS.contains(&period) || off * 4 > points.len() {
        return Err(ProbeError::NotADisk(NO_MULTIPLE.to_owned()));
    }
    dial.set_period(period, deviation);
    if deviation > 1e-5 * period {
        let noise = noise(dial, block)?;
        dial.set_period(period, noise);
    }
    dial.mark(block)?;
    let rpm = 60e9 / period;
    Ok(Measured { value: rpm, spread: rpm * error / period })
}

/// The end of a read of the block that came as late in the turn as others do, in nanoseconds.
fn typical_end(dial: &mut Dial<'_>, block: u64, rough: f64) -> Result<f64> {
    let mut ends = Vec::new();
    for _ in 0..5 {
        if dial.cached() {
            dial.evict()?;
        }
        ends.push(dial.read_medium(block)?.end.0 as f64);
    }
    let last = ends[ends.len() - 1];
    let turned = |end: f64| wrap((end - last) / rough);
    let middle = median_angle(&ends.iter().copied().map(turned).collect::<Vec<_>>());
    let off = |end: f64| wrap(turned(end) - middle).abs();
    Ok(ends.iter().copied().min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(last))
}

/// The deviation of the completions of one block.
fn noise(dial: &mut Dial<'_>, block: u64) -> Result<f64> {
    let angles = (0..NOISY_READS).map(|_| dial.angle(block)).collect::<Result<Vec<_>, _>>()?;
    let middle = median_angle(&angles);
    Ok(spread(&angles.iter().map(|a| wrap(a - middle)).collect::<Vec<_>>()) * dial.period())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN, passes};

    /// Of the periods at which reads end alike the likeliest is taken: within half a step of the true one, a step being a tenth of
    /// what the span of all reads tells apart.
    #[test]
    fn the_likeliest_of_the_periods_is_taken() {
        for angle in [0.0, 0.3, 0.7] {
            let mut target = Fake::new(1 << 20, |_, _, _, now| passes(angle, now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            let found = rough_period(&mut dial, 1000).unwrap();
            let step = 0.1 / target.now as f64;
            let off = (1.0 / found - 1.0 / TURN as f64).abs();
            assert!(off < 0.8 * step, "{found} ns, {} steps off", off / step);
        }
    }

    /// Where every fourth read or more ends elsewhere it is no disk, or the host too busy to tell.
    #[test]
    fn what_seldom_ends_at_its_angle_does_not_turn() {
        let of = |each: u64| {
            let mut reads = 0;
            let mut target = Fake::new(1 << 20, |_, lba, _, now| {
                reads += 1;
                passes(lba as f64 / 1000.0 + if reads % each == 0 { 0.3 } else { 0.0 }, now)
            });
            refine(&mut Dial::new(&mut target, &mut Quiet), 1000, TURN as f64, LONGEST).map(|m| m.value)
        };
        for (each, turns) in [(2, false), (3, false), (6, true), (9, true)] {
            match of(each) {
                Ok(rpm) => assert!(turns && (rpm - 6000.0).abs() < 6.0, "{rpm} rpm at {each}"),
                Err(e) => assert!(!turns && e.to_string().contains("not multiples"), "{each}: {e}"),
            }
        }
    }

    /// Of the 28 moments by which the speed is measured seven may be anything, eight may not.
    #[test]
    fn a_quarter_of_the_moments_may_be_off() {
        for off in 0..10 {
            let mut reads = 0;
            let mut target = Fake::new(1 << 20, |_, lba, _, now| {
                reads += 1;
                // Behind the five that tell the typical one.
                passes(lba as f64 / 1000.0 + if (33 - off..33).contains(&reads) { 0.3 } else { 0.0 }, now)
            });
            let found = refine(&mut Dial::new(&mut target, &mut Quiet), 1000, TURN as f64, LONGEST);
            assert_eq!(found.is_ok(), off <= 7, "{off} are off: {found:?}");
        }
    }

    /// A cache that reads of one stride pass by, as a stream, loses a block to reads anywhere.
    #[test]
    fn a_cache_that_keeps_streams_out_is_pushed_out_of_by_reads_anywhere() {
        let (mut held, mut last, mut stride) = (std::collections::VecDeque::new(), 0, 0);
        let mut target = Fake::new(1 << 26, |_, lba, _, now| {
            let (before, again) = (stride, held.contains(&lba));
            (stride, last) = (lba as i64 - last, lba as i64);
            if again {
                return now + 1000;
            }
            if stride != before {
                held.push_back(lba);
                held.drain(..held.len().saturating_sub(10));
            }
            passes(lba as f64 / 1000.0, now)
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        find_cache(&mut dial, TURN as f64).unwrap();
        let lba = 12_345;
        dial.read(lba).unwrap();
        assert!(dial.cached() && dial.hit(lba).unwrap());
        dial.evict().unwrap();
        assert!(!dial.hit(lba).unwrap());
    }

    /// Of five reads of a block that is counted which ends in the middle of all: 0.305 of a turn, and 0.32 where the last one is late.
    /// Completions that come up to 2 us late leave the speed uncertain by little, in revolutions a minute; what is uncertain is told.
    #[test]
    fn the_error_of_the_speed_is_in_its_own_unit() {
        let mut late = 0;
        let mut target = Fake::new(1 << 20, |_, lba, _, now| {
            late = (late + 700) % 2000;
            passes(lba as f64 / 1000.0, now) + late
        });
        let mut quiet = Quiet;
        let found = find(&mut Dial::new(&mut target, &mut quiet), false).unwrap();
        assert!((found.value - 6000.0).abs() < 6.0 * found.spread, "{found:?}");
        assert!(found.spread > 1e-7 && found.spread < 1e-3, "{found:?}");
    }

    /// A cache of the ten blocks read last loses one by ten others; an eighth more and one are read to be sure.
    #[test]
    fn what_pushes_out_of_a_cache_has_room_to_spare() {
        let mut held = std::collections::VecDeque::new();
        let mut target = Fake::new(1 << 26, |_, lba, _, now| {
            if held.contains(&lba) {
                return now + 1000;
            }
            held.push_back(lba);
            held.drain(..held.len().saturating_sub(10));
            passes(lba as f64 / 1000.0, now)
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        find_cache(&mut dial, TURN as f64).unwrap();
        let before = dial.quality().requests;
        dial.evict().unwrap();
        assert_eq!((dial.cached(), dial.quality().requests - before), (true, 10 + 10 / 8 + 1));
    }

    #[test]
    fn the_read_in_the_middle_of_several_is_the_typical_one() {
        for (angles, middle) in [([305, 320, 280, 900, 310], 305), ([290, 320, 280, 600, 400], 320)] {
            let mut next = angles.into_iter();
            let mut target =
                Fake::new(1 << 20, |_, _, _, now| passes(f64::from(next.next().unwrap()) / 1000.0, now));
            let end = typical_end(&mut Dial::new(&mut target, &mut Quiet), 1000, TURN as f64).unwrap();
            assert_eq!(end as u64 % TURN, TURN * middle / 1000);
        }
    }

    /// Two sets of 24 reads of a disk that ends each after half a turn, and of a chip: 64 blocks are enough to tell.
    #[test]
    fn what_is_too_small_or_too_fast_is_no_disk() {
        let of = |blocks, ns| {
            let mut target = Fake::new(blocks, |_, _, _, now| now + ns);
            plausible(&mut Dial::new(&mut target, &mut Quiet)).is_ok()
        };
        assert_eq!([of(64, 5_000_000), of(63, 5_000_000)], [true, false]);
        assert_eq!([of(64, 200_000), of(64, 199_999)], [true, false]);
    }

    /// Of the first 48 reads of a chip a host is late with two of three, then it has time; a disk's cache has a third at any time.
    #[test]
    fn a_busy_host_does_not_make_a_chip_a_disk() {
        let of = |busy: u64, late: u64| {
            let mut reads = 0;
            let mut target = Fake::new(1 << 20, |_, _, _, now| {
                reads += 1;
                now + if reads <= busy && reads % 3 < late { 5_000_000 } else { 50_000 }
            });
            plausible(&mut Dial::new(&mut target, &mut Quiet)).is_ok()
        };
        assert_eq!([of(48, 2), of(0, 0), of(u64::MAX, 2)], [false, false, true]);
    }

    /// As long as some reads are too fast other places are read: at odd shares of the drive, in each round an eighth of the way to the next.
    #[test]
    fn each_round_of_reads_is_elsewhere() {
        let mut reads = 0;
        let mut target = Fake::new(48 << 10, |_, _, _, now| {
            reads += 1;
            now + if reads % 3 == 0 { 50_000 } else { 5_000_000 }
        });
        plausible(&mut Dial::new(&mut target, &mut Quiet)).unwrap();
        let read: Vec<u64> = target.asked.iter().map(|a| a.1).collect();
        let mut each: Vec<Vec<u64>> = read.chunks(24).map(<[u64]>::to_vec).collect();
        each.iter_mut().for_each(|round| round.sort_unstable());
        let places = |round: u64| (0..24).map(|i| (2 * i + 1) * 1024 + 128 * round).collect::<Vec<_>>();
        assert_eq!(each, (0..8).map(places).collect::<Vec<_>>());
        assert!(read.windows(2).all(|w| w[0].abs_diff(w[1]) > 8 << 10), "far from each other: {read:?}");
    }
}
