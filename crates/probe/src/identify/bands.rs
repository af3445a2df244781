//! How large bands are.

use super::Evidence;
use super::moved::{Places, SMALL};
use crate::ProbeError;
use crate::dial::Dial;
use crate::stats::median;
use serde::Serialize;
use smrlab_units::Dir;

/// The size of bands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BandSize {
    /// Blocks of the host in a band.
    pub blocks: u64,
    /// Standard error, in blocks.
    pub spread: f64,
    /// How long a rewrite takes, in seconds.
    pub rewrite_s: f64,
}

/// The most blocks that a band can have, and the least that are looked for.
const MOST: u64 = 1 << 21;

/// The time of one write of `blocks` from `lba` on, in revolutions, after the head was brought there.
fn write(dial: &mut Dial<'_>, lba: u64, blocks: u64) -> Result<f64, ProbeError> {
    dial.read(lba)?;
    let begin = dial.now();
    dial.access(Dir::Write, lba, blocks)?;
    let end = dial.flush()?.end;
    Ok((end.0 as f64 - begin.0 as f64) / dial.period())
}

/// Of a drive that rewrites in place.
///
/// Where every write costs the same, the band is rewritten as a whole: a write over a boundary costs twice as much, and so
/// the boundaries are found by halving. Else the cost depends on the place in the band: its period along
/// the drive is the band.
pub(super) fn in_place(
    dial: &mut Dial<'_>,
    places: &Places,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<BandSize>, ProbeError> {
    dial.stage("bands");
    let Some(start) = places.slow().nth(places.slow().count() / 2) else { return Ok(None) };
    let mut costs = Vec::new();
    for i in 0..5 {
        costs.push(write(dial, start + i * SMALL, SMALL)?);
    }
    let one = median(&costs);
    let mut alike = 0;
    for i in 1..=12 {
        let lba = (start + i * (1 << 14)) % (dial.blocks() - SMALL);
        alike += u32::from((write(dial, lba, SMALL)? / one - 1.0).abs() < 0.1);
    }
    let whole = if alike >= 9 && one > 1.8 { whole_bands(dial, start, one)? } else { None };
    let found = match whole {
        Some(blocks) => Some(BandSize { blocks, spread: 1.0, rewrite_s: one * dial.period() / 1e9 }),
        None => period(dial, start, evidence)?,
    };
    if let Some(band) = found {
        evidence.push(Evidence {
            test: "bands",
            did: "writes of growing length, and writes along the drive".to_owned(),
            saw: format!(
                "what is rewritten together has {} blocks; that takes {:.2} s",
                band.blocks, band.rewrite_s
            ),
            axes: ["", ""],
            points: Vec::new(),
        });
    }
    Ok(found)
}

/// The distance between two boundaries behind `start`, at each of which the cost of a write doubles.
fn whole_bands(dial: &mut Dial<'_>, start: u64, one: f64) -> Result<Option<u64>, ProbeError> {
    let Some(first) = doubling(dial, start, one)? else { return Ok(None) };
    // From a little behind it on: a write of a whole band reads nothing.
    let mut costs = Vec::new();
    for i in 1..6 {
        costs.push(write(dial, first + i * SMALL, SMALL)?);
    }
    let Some(second) = doubling(dial, first + SMALL, median(&costs))? else { return Ok(None) };
    // A band that is read and written takes two revolutions and a little a track; less than three tracks are no band.
    let near = dial.between(first, first + 16, dial.repeats(0.0005, 25))?.abs().max(1e-6) / 16.0;
    let tracks = (second - first) as f64 * near;
    Ok((tracks > 2.5 && one > 1.5 * tracks && one < 3.5 * tracks + 3.0).then_some(second - first))
}

/// The first block behind `start` that a write of 4 KiB and more does not reach without costing twice as much as `one`.
fn doubling(dial: &mut Dial<'_>, start: u64, one: f64) -> Result<Option<u64>, ProbeError> {
    // Long writes take time of their own.
    let end = dial.blocks();
    let costly = |dial: &mut Dial<'_>, from: u64, to: u64| -> Result<bool, ProbeError> {
        let own = (to - from) as f64 / 1000.0;
        Ok(write(dial, from, to - from)? > 1.6 * one + own.min(0.2 * one))
    };
    let mut step = 64;
    while !costly(dial, start, (start + step).min(end))? {
        step *= 2;
        if step > MOST || start + step > end {
            return Ok(None);
        }
    }
    let (mut lo, mut hi) = (start + step / 2, start + step);
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if costly(dial, start, mid)? { hi = mid } else { lo = mid }
    }
    Ok(Some(hi - 1))
}

/// The period of the cost along the drive: sampled at points that are further and further apart, until it repeats.
fn period(
    dial: &mut Dial<'_>,
    start: u64,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<BandSize>, ProbeError> {
    const STEPS: u64 = 1200;
    let blocks = dial.blocks();
    let mut step = 2 * SMALL;
    while start + step * STEPS < blocks && step * STEPS < 8 * MOST {
        let mut costs = Vec::new();
        for i in 0..STEPS {
            costs.push(write(dial, start + i * step, SMALL)?.round());
        }
        if let Some(lag) = repeats_after(&costs) {
            let top = costs.iter().copied().fold(0.0, f64::max);
            let points =
                costs.iter().enumerate().map(|(i, c)| ((start + i as u64 * step) as f64, *c)).collect();
            evidence.push(Evidence {
                test: "cost along the drive",
                did: format!("a write of 4 KiB every {step} blocks"),
                saw: format!("what a write costs repeats after {} blocks", lag as u64 * step),
                axes: ["LBA", "revolutions of a write"],
                points,
            });
            let blocks = lag as u64 * step;
            let rewrite_s = top * dial.period() / 1e9;
            return Ok(Some(BandSize { blocks, spread: step as f64 / 2.0, rewrite_s }));
        }
        step *= 4;
    }
    Ok(None)
}

/// The least distance after which a sequence that is not constant repeats, at least twice.
fn repeats_after(costs: &[f64]) -> Option<usize> {
    let n = costs.len();
    let off =
        |lag: usize| (0..n - lag).map(|i| (costs[i + lag] - costs[i]).abs()).sum::<f64>() / (n - lag) as f64;
    let off: Vec<f64> = (0..=n / 2).map(off).collect();
    let mean = off[1..].iter().sum::<f64>() / (off.len() - 1) as f64;
    if mean < 0.2 {
        return None;
    }
    let risen = (1..off.len()).find(|&lag| off[lag] > mean)?;
    let first = (risen..off.len()).find(|&lag| off[lag] < 0.3 * mean)?;
    let end = (first..off.len()).find(|&lag| off[lag] >= 0.3 * mean)?;
    (first..end).min_by(|&a, &b| off[a].total_cmp(&off[b])).filter(|&lag| lag >= 8)
}

/// Writes and time until a write at one of `spots` in turn waits for cleaning; `None` where that takes too long.
fn until_cleaned(
    dial: &mut Dial<'_>,
    spots: &[u64],
    size: u64,
    most: u64,
) -> Result<Option<(u64, f64)>, ProbeError> {
    let mut longest = 0.0f64;
    for i in 0..most {
        let lba = spots[(i % spots.len() as u64) as usize];
        let t = dial.access(Dir::Write, lba, size)?.took() / dial.period();
        // The first ones may wait for what was left in the cache; and the cache's own book-keeping stalls again and again.
        if i > 16 && t > 6.0 && t > 2.0 * longest {
            return Ok(Some((i, t)));
        }
        if i > 16 || t <= 6.0 {
            longest = longest.max(t);
        }
    }
    Ok(None)
}

/// Of a drive with a cache on the disk. Two spots are written in turn until the drive has to clean: if they lie in one band,
/// that is after as many writes and takes as long as for one spot alone; else there is twice as much to do.
pub(super) fn cleaned(
    dial: &mut Dial<'_>,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<BandSize>, ProbeError> {
    const MOST_WRITES: u64 = 60_000;
    dial.stage("bands");
    let blocks = dial.blocks();
    let size = 256.min(blocks >> 12).max(8);
    let start = blocks / 3 / size * size;
    // The first time what others left in the cache is cleaned too.
    if until_cleaned(dial, &[start], size, MOST_WRITES)?.is_none() {
        return Ok(None);
    }
    let Some((_, one)) = until_cleaned(dial, &[start], size, MOST_WRITES)? else { return Ok(None) };
    let mut edges = Vec::new();
    let (mut from, mut rewrite) = (start, one);
    for _ in 0..2 {
        let Some((writes, one)) = until_cleaned(dial, &[from], size, MOST_WRITES)? else { return Ok(None) };
        rewrite = one;
        let alone = Alone { from, writes, one, size };
        let mut step = size;
        while alone.together(dial, from + step)? {
            step *= 2;
            if step > MOST || from + step + size > blocks {
                return Ok(None);
            }
        }
        let (mut lo, mut hi) = (from + step / 2, from + step);
        while hi - lo > 8 {
            let mid = lo + (hi - lo) / 2;
            if alone.together(dial, mid)? { lo = mid } else { hi = mid }
        }
        // The last spot that is wholly in the band ends where the next band begins.
        edges.push(lo + size);
        from = lo + size + 8;
        until_cleaned(dial, &[from], size, MOST_WRITES)?;
    }
    let band =
        BandSize { blocks: edges[1] - edges[0], spread: 8.0, rewrite_s: rewrite * dial.period() / 1e9 };
    evidence.push(Evidence {
        test: "two spots",
        did: "two spots at growing distance written in turn until the drive had to clean".to_owned(),
        saw: format!(
            "spots less than {} blocks apart are cleaned together; cleaning takes {:.2} s",
            band.blocks, band.rewrite_s
        ),
        axes: ["", ""],
        points: Vec::new(),
    });
    Ok(Some(band))
}

/// What cleaning is like when only one spot was written.
struct Alone {
    from: u64,
    writes: u64,
    /// Revolutions of the write that waits for it.
    one: f64,
    size: u64,
}

impl Alone {
    /// Whether the spot at `other` is cleaned with this one.
    fn together(&self, dial: &mut Dial<'_>, other: u64) -> Result<bool, ProbeError> {
        let most = 3 * self.writes + 16;
        let seen = until_cleaned(dial, &[self.from, other], self.size, most)?;
        // Each for itself, so that nothing is left for the next time: a spot over a boundary fills two parts of a cache.
        for spot in [other, (other + self.size).min(dial.blocks() - self.size), self.from] {
            until_cleaned(dial, &[spot], self.size, most)?;
        }
        let like = |a: f64, b: f64| (a / b - 1.0).abs() < 0.15;
        Ok(seen.is_some_and(|(n, t)| like(n as f64, self.writes as f64) && like(t, self.one)))
    }
}
