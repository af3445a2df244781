//! How fast the disk turns, and whether it has a cache that hides that.

use super::Measured;
use crate::ProbeError;
use crate::dial::Dial;
use crate::stats::{line, median};

/// Revolutions over which the speed is measured, at least and at most.
const LONG: u64 = 256;
const LONGEST: u64 = 4096;
/// The slowest and the fastest disk in nanoseconds a revolution: 300 to 60 000 revolutions a minute.
const PERIODS: std::ops::Range<f64> = 1e6..2e8;

/// Measures the revolution and sets the dial by it; the answer is in revolutions a minute. `quick` is content with
/// less exactness where the host is noisy.
///
/// # Errors
/// The target's, and [`ProbeError::NotADisk`].
pub(crate) fn find(dial: &mut Dial<'_>, quick: bool) -> Result<Measured, ProbeError> {
    dial.stage("rotation");
    let blocks = dial.blocks();
    if blocks < 64 {
        return Err(ProbeError::NotADisk(format!("{blocks} blocks are too few, at least 64 are needed")));
    }
    let typical = far_reads(dial)?;
    find_cache(dial, typical)?;
    let block = dial.random(blocks / 2) + blocks / 4;
    let rough = rough_period(dial, block)?;
    refine(dial, block, rough, if quick { LONGEST / 4 } else { LONGEST })
}

/// The median time of reads far from each other.
fn far_reads(dial: &mut Dial<'_>) -> Result<f64, ProbeError> {
    let blocks = dial.blocks();
    let mut times = Vec::new();
    for _ in 0..24 {
        let lba = dial.random(blocks);
        times.push(dial.read(lba)?.took());
    }
    let m = median(&times);
    if m < 2e5 {
        return Err(ProbeError::NotADisk(format!(
            "reads far from each other take {:.3} ms, less than any disk needs (a flash device, or served with --timing none?)",
            m / 1e6
        )));
    }
    Ok(m)
}

/// A block read twice: does the second read take a revolution, or nothing? And how many reads elsewhere push it out?
fn find_cache(dial: &mut Dial<'_>, typical: f64) -> Result<(), ProbeError> {
    let blocks = dial.blocks();
    let mut again = Vec::new();
    for _ in 0..5 {
        let lba = dial.random(blocks);
        dial.read(lba)?;
        again.push(dial.read(lba)?.took());
    }
    let hit = median(&again);
    if hit > typical / 8.0 {
        return Ok(());
    }
    let limit = (2.0 * hit + 5e4).min(typical / 4.0);
    let mut reads = 1;
    while reads <= 4096 {
        if pushes_out(dial, limit, reads)? {
            let (mut lo, mut hi) = (reads / 2, reads);
            while hi - lo > 1 {
                let mid = lo + (hi - lo) / 2;
                if pushes_out(dial, limit, mid)? { hi = mid } else { lo = mid }
            }
            // Some room, because segments may be replaced at random.
            dial.set_cache(limit, hi + hi / 8 + 1);
            return Ok(());
        }
        reads *= 2;
    }
    Err(ProbeError::NotADisk("repeated reads are always answered from a cache: switch it off".to_owned()))
}

/// Whether so many reads elsewhere push a block out of the drive's cache.
fn pushes_out(dial: &mut Dial<'_>, limit: f64, reads: u64) -> Result<bool, ProbeError> {
    let lba = dial.random(dial.blocks());
    dial.read(lba)?;
    dial.set_cache(limit, reads);
    dial.evict()?;
    Ok(dial.read(lba)?.took() > limit)
}

/// From reads of one block after the one behind it: nearly a revolution each.
fn rough_period(dial: &mut Dial<'_>, block: u64) -> Result<f64, ProbeError> {
    let mut ends = Vec::new();
    for i in 0..24 {
        ends.push(dial.read_medium(block - i)?.end.0 as f64);
    }
    let steps: Vec<f64> = ends.windows(2).map(|w| w[1] - w[0]).collect();
    Ok(median(&steps))
}

/// From reads of one block further and further apart: the number of revolutions between them is known each time from
/// what is known so far.
fn refine(dial: &mut Dial<'_>, block: u64, rough: f64, longest: u64) -> Result<Measured, ProbeError> {
    let mut period = rough;
    let start = dial.read_medium(block)?.end.0 as f64;
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
        let (_, slope, standard, _) = line(&points);
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
        return Err(ProbeError::NotADisk(
            "the times between reads of the same block are not multiples of a revolution (or this host is too busy to tell)"
                .to_owned(),
        ));
    }
    dial.set_period(period, deviation);
    let rpm = 60e9 / period;
    Ok(Measured { value: rpm, spread: rpm * error / period })
}
