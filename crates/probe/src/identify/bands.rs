//! How large bands are.

use super::Evidence;
use super::moved::SMALL;
use crate::Result;
use crate::dial::Dial;
use crate::stats::median;
use serde::{Deserialize, Serialize};

/// The size of bands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandSize {
    /// Blocks of the host in a band.
    pub blocks: u64,
    /// Where the next one begins.
    pub end: u64,
    /// Standard error, in blocks.
    pub spread: f64,
    /// How long a rewrite takes, in seconds.
    pub rewrite_s: f64,
}

/// The most blocks that a band can have.
const MOST: u64 = 1 << 21;

/// The band at a place, and of what length bands are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandAt {
    /// Near this LBA.
    pub lba: u64,
    /// Blocks of the host in the band there.
    pub blocks: u64,
}

/// Which way the tracks of a band overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Toward {
    /// Each damages the one of higher LBAs behind it: the front of a band is what is dear.
    Higher,
    /// The other way.
    Lower,
}

impl Toward {
    /// From what cleaning or rewriting costs at the front and at the end of a band, in revolutions.
    pub(super) fn of(front: f64, end: f64, evidence: &mut Vec<Evidence>) -> Option<Self> {
        let (found, follows) = if front > 1.3 * end {
            (Some(Self::Higher), "tracks overlap towards higher LBAs")
        } else if end > 1.3 * front {
            (Some(Self::Lower), "tracks overlap towards lower LBAs")
        } else {
            (None, "that is too alike to tell which way tracks overlap")
        };
        evidence.push(Evidence::new(
            "direction",
            "a piece at the front of a band, and one at its end",
            format!("rewriting takes {front:.1} and {end:.1} revolutions: {follows}"),
        ));
        found
    }
}

/// Pieces counted from the end of the drive towards which tracks overlap: what is cleaned with a piece costs no more than it,
/// as long as it lies on that side of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    blocks: u64,
    lower: bool,
}

impl View {
    pub(super) fn new(dial: &Dial<'_>, toward: Option<Toward>) -> Self {
        Self { blocks: dial.blocks(), lower: toward == Some(Toward::Lower) }
    }

    /// The first block of the piece of `size` blocks at `place`, and the place of the one from there.
    pub(super) fn piece(self, place: u64, size: u64) -> u64 {
        if self.lower { self.blocks.saturating_sub(place + size) } else { place }
    }

    /// The block behind the band between two places.
    pub(super) fn end(self, [near, far]: [u64; 2]) -> u64 {
        if self.lower { self.blocks - near } else { far }
    }
}

/// Distances between pieces whose cleaning is compared, and how many.
const LEANING: [u64; 3] = [1 << 12, 1 << 14, 1 << 16];
const LEANING_PIECES: u64 = 9;

/// Which way tracks overlap, from what cleaning a piece costs at growing LBAs (revolutions, and their error): within a band it
/// falls towards the side to which they do, and only at its end it jumps. `None`: it costs the same everywhere.
pub(super) fn leaning(
    dial: &mut Dial<'_>,
    start: u64,
    cost: &mut dyn FnMut(&mut Dial<'_>, u64) -> Result<Option<(f64, f64)>>,
) -> Result<Option<Toward>> {
    for step in LEANING {
        let (mut up, mut down, mut last) = (0, 0, None);
        for i in 0..LEANING_PIECES {
            let lba = start + i * step;
            if lba + SMALL > dial.blocks() {
                break;
            }
            let Some((now, error)) = cost(dial, lba)? else { return Ok(None) };
            if let Some(last) = last.replace(now) {
                up += u64::from(now - last > error);
                down += u64::from(last - now > error);
            }
        }
        // One jump or two among them.
        let (most, least) = (up.max(down), up.min(down));
        if most >= LEANING_PIECES / 2 && most > 2 * least {
            return Ok(Some(if down > up { Toward::Higher } else { Toward::Lower }));
        }
    }
    Ok(None)
}

/// Of a drive that rewrites in place: from what writes cost at both ends of a band.
pub(super) fn toward(
    dial: &mut Dial<'_>,
    band: &BandSize,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<Toward>> {
    let inset = (band.blocks / 16).max(SMALL);
    let mut costs = Vec::new();
    for lba in [band.end - band.blocks + inset, band.end - inset - SMALL] {
        costs.push(write(dial, lba, SMALL)?);
    }
    Ok(Toward::of(costs[0], costs[1], evidence))
}

/// The end of the band in which `from` lies: spots of `size` blocks are moved away from there until they are not cleaned with
/// it any more. The last one that is ends where the next band begins.
pub(super) fn band_end(
    dial: &mut Dial<'_>,
    (from, size): (u64, u64),
    together: &mut dyn FnMut(&mut Dial<'_>, u64) -> Result<bool>,
) -> Result<Option<u64>> {
    let blocks = dial.blocks();
    let (mut lo, mut step) = (from, size);
    if from + step + size > blocks {
        return Ok(None);
    }
    while together(dial, from + step)? {
        lo = from + step;
        step = (step + step / 2) / 8 * 8 + 8;
        if step > MOST || from + step + size > blocks {
            return Ok(None);
        }
    }
    let mut hi = from + step;
    while hi - lo > 8 {
        let mid = lo + (hi - lo) / 16 * 8;
        if together(dial, mid)? { lo = mid } else { hi = mid }
    }
    Ok(Some(lo + size))
}

/// The time of one write of `blocks` from `lba` on, in revolutions, after the head was brought there.
fn write(dial: &mut Dial<'_>, lba: u64, blocks: u64) -> Result<f64> {
    dial.read(lba)?;
    let begin = dial.now();
    let end = dial.write(lba, blocks)?.end;
    Ok((end.0 as f64 - begin.0 as f64) / dial.period())
}

/// Of a drive that rewrites in place; near `start`, where writing was slow.
///
/// Where every write costs the same, the band is rewritten as a whole: a write over a boundary costs twice as much, and so
/// the boundaries are found by halving. Else the cost depends on the place in the band: its period along
/// the drive is the band.
pub(super) fn in_place(
    dial: &mut Dial<'_>,
    start: u64,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<BandSize>> {
    let mut costs = Vec::new();
    let start = start.min(dial.blocks().saturating_sub(5 * SMALL));
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
    Ok(match whole {
        Some((blocks, end)) => {
            Some(BandSize { blocks, end, spread: 1.0, rewrite_s: one * dial.period() / 1e9 })
        }
        None => period(dial, start, evidence)?,
    })
}

/// The distance between two boundaries behind `start`, at each of which the cost of a write doubles.
fn whole_bands(dial: &mut Dial<'_>, start: u64, one: f64) -> Result<Option<(u64, u64)>> {
    let Some(first) = doubling(dial, start, one)? else { return Ok(None) };
    // What is left of the drive may be too short for a band.
    if first + 6 * SMALL > dial.blocks() {
        return Ok(None);
    }
    // From a little behind it on: a write of a whole band reads nothing.
    let mut costs = Vec::new();
    for i in 1..6 {
        costs.push(write(dial, first + i * SMALL, SMALL)?);
    }
    let Some(second) = doubling(dial, first + SMALL, median(&costs))? else { return Ok(None) };
    // A band that is read and written takes two revolutions and a little a track; less than three tracks are no band.
    let near = dial.between(first, first + 16, dial.repeats(0.0005, 25))?.abs().max(1e-6) / 16.0;
    let tracks = (second - first) as f64 * near;
    Ok((tracks > 2.5 && one > 1.5 * tracks && one < 3.5 * tracks + 3.0).then_some((second - first, second)))
}

/// The first block behind `start` that a write of 4 KiB and more does not reach without costing twice as much as `one`.
fn doubling(dial: &mut Dial<'_>, start: u64, one: f64) -> Result<Option<u64>> {
    // Long writes take time of their own.
    let end = dial.blocks();
    let costly = |dial: &mut Dial<'_>, from: u64, to: u64| -> Result<bool> {
        let own = (to - from) as f64 / 1000.0;
        Ok(write(dial, from, to - from)? > 1.6 * one + own.min(0.2 * one))
    };
    let (mut lo, mut step) = (start, 64);
    while !costly(dial, start, (start + step).min(end))? {
        lo = start + step;
        step *= 2;
        if step > MOST || start + step > end {
            return Ok(None);
        }
    }
    let mut hi = (start + step).min(end);
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if costly(dial, start, mid)? { hi = mid } else { lo = mid }
    }
    Ok(Some(hi - 1))
}

/// The period of the cost along the drive: sampled at points that are further and further apart, until it repeats.
fn period(dial: &mut Dial<'_>, start: u64, evidence: &mut Vec<Evidence>) -> Result<Option<BandSize>> {
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
                test: "cost along the drive".to_owned(),
                did: format!("a write of 4 KiB every {step} blocks"),
                saw: format!("what a write costs repeats after {} blocks", lag as u64 * step),
                axes: ["LBA".to_owned(), "revolutions of a write".to_owned()],
                points,
            });
            let blocks = lag as u64 * step;
            let rewrite_s = top * dial.period() / 1e9;
            let end = start + jump(&costs, lag) as u64 * step;
            return Ok(Some(BandSize { blocks, end, spread: step as f64 / 2.0, rewrite_s }));
        }
        step *= 4;
    }
    Ok(None)
}

/// Where in the second period the largest step is: a boundary.
fn jump(costs: &[f64], lag: usize) -> usize {
    let step = |i: &usize| (costs[*i] - costs[*i - 1]).abs();
    (lag..2 * lag).filter(|i| *i > 0).max_by(|a, b| step(a).total_cmp(&step(b))).unwrap_or(lag)
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

#[cfg(test)]
mod tests;
