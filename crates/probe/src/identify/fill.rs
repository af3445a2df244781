//! Writes until it breaks: how much the cache holds.

use super::Evidence;
use super::moved::spread;
use crate::ProbeError;
use crate::dial::Dial;
use crate::stats::median;
use serde::Serialize;
use smrlab_units::Dir;

/// How much fits into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheSize {
    /// Blocks written before the first stall.
    pub blocks: u64,
    /// Writes before the first stall.
    pub writes: u64,
    /// Blocks in each of them.
    pub write_blocks: u64,
}

/// Writes whose mean time is compared.
const CHUNK: usize = 240;
/// The most writes, and the longest time in nanoseconds.
const MOST: u64 = 4_000_000;
const LONGEST: f64 = 12.0 * 3600e9;

/// Writes evenly over the drive until a write takes very much longer than the ones before.
pub(super) fn until_it_breaks(
    dial: &mut Dial<'_>,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<CacheSize>, ProbeError> {
    dial.stage("filling the cache");
    let blocks = dial.blocks();
    // So that a cache of half a per cent takes thousands of writes, and one of five per cent not millions.
    let size = (blocks >> 21).next_power_of_two().clamp(8, 512);
    let begin = dial.now().0 as f64;
    let (mut times, mut means) = (Vec::new(), Vec::new());
    let (mut points, mut sum) = (Vec::new(), 0.0);
    for i in 0..MOST {
        // Behind the places that were written before, which are looked at again afterwards.
        let lba = spread(i + 1001, blocks / size - 1) * size + size / 2;
        let t = dial.access(Dir::Write, lba, size)?.took();
        times.push(t);
        sum += t;
        if times.len() % CHUNK == 0 {
            let mean = sum / CHUNK as f64;
            points.push(((i + 1) as f64, mean / 1e6));
            if let Some(at) = broken(&times, &means, mean) {
                let writes = at as u64;
                // Some more, so that there is something to see of cleaning.
                for k in 0..writes / 4 {
                    let lba = spread(i + 1002 + k, blocks / size - 1) * size + size / 2;
                    dial.access(Dir::Write, lba, size)?;
                }
                evidence.push(filled(size, points, Some(writes)));
                return Ok(Some(CacheSize { blocks: writes * size, writes, write_blocks: size }));
            }
            means.push(mean);
            sum = 0.0;
            dial.share(0.5);
            if dial.now().0 as f64 - begin > LONGEST {
                break;
            }
        }
    }
    evidence.push(filled(size, points, None));
    Ok(None)
}

/// Which write was the first slow one, if the last chunk's mean is very much above those before, or three of them are well
/// above. The first chunks do not count: what was in the drive before is put away in them.
fn broken(times: &[f64], means: &[f64], mean: f64) -> Option<usize> {
    let usual = |until: usize| {
        let from = until.saturating_sub(24).max(until.min(4));
        (until >= from + 3).then(|| median(&means[from..until]))
    };
    let last = means.len();
    if usual(last).is_some_and(|m| mean > 4.0 * m) {
        let (old, new) = times.split_at(times.len() - CHUNK);
        let most = old.iter().skip(4 * CHUNK).copied().fold(0.0, f64::max);
        return Some(last * CHUNK + new.iter().position(|t| *t > 1.3 * most).unwrap_or(0));
    }
    let high = usual(last.checked_sub(2)?)? * 1.5;
    (mean > high && means[last - 2..].iter().all(|m| *m > high)).then_some((last - 2) * CHUNK)
}

fn filled(size: u64, points: Vec<(f64, f64)>, writes: Option<u64>) -> Evidence {
    Evidence {
        test: "writes until it breaks",
        did: format!("writes of {} KiB evenly over the drive, one after the other", size / 2),
        saw: match writes {
            Some(n) => format!("write {} was the first to wait for cleaning", n + 1),
            None => "no write had to wait".to_owned(),
        },
        axes: ["write", "milliseconds, mean of 240"],
        points,
    }
}
