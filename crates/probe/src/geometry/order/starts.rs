//! Measuring: where the tracks of a zone start, and by how much the angle jumps from one to the next.

use super::super::tracks::{Jumps, exact, jump_at};
use super::super::{Measured, Zone};
use crate::Result;
use crate::dial::Dial;
use crate::stats::{turn, wrap};

/// The zone in which the order is looked for, and where its tracks start.
pub(super) struct Starts<'a> {
    pub(super) zone: &'a Zone,
    /// How exactly the spare sectors at a track's end are known, in revolutions; 0 where there are none.
    pub(super) spare_error: f64,
    pub(super) jumps: Jumps,
}

impl Starts<'_> {
    /// The first block of track `n` of the zone.
    fn start(&self, dial: &mut Dial<'_>, n: u64) -> Result<u64> {
        let z = self.zone;
        let slipped = (z.slips as f64 * n as f64 / z.tracks as f64) as u64;
        let expected = z.first_lba + n * z.usable - slipped;
        if n == 0 || z.slips == 0 {
            return Ok(expected);
        }
        let window = (z.slips / 4 + 4).min(z.usable / 8);
        Ok(exact(dial, expected, window, z.sectors_exact, &self.jumps)?.unwrap_or(expected))
    }

    /// The jump before track `n`.
    pub(super) fn jump(&self, dial: &mut Dial<'_>, n: u64, repeats: u64) -> Result<f64> {
        let lba = self.start(dial, n)?;
        jump_at(dial, lba, self.zone.sectors_exact, repeats)
    }

    /// Whether the jump before track `n` is unlike those beside it, by more than `slack`. Where there is noise that is seen
    /// twice, each time next to each other: a busy host is not busy all the time.
    pub(super) fn stands_out(&self, dial: &mut Dial<'_>, n: u64, repeats: u64, slack: f64) -> Result<bool> {
        let beside = [n - 1, n + 1].into_iter().filter(|m| (1..self.zone.tracks).contains(m));
        for m in beside.cycle().take(if dial.noise() > 1e-4 { 4 } else { 1 }) {
            let (this, that) = (self.jump(dial, n, repeats)?, self.jump(dial, m, repeats)?);
            if wrap(this - that).abs() <= slack {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The jumps before the first `count` tracks. All of them once, then all again: what the drive's own cache had of a
    /// boundary is pushed out by the others.
    pub(super) fn jumps(&self, dial: &mut Dial<'_>, count: u64, repeats: u64) -> Result<Vec<f64>> {
        if dial.across() {
            return (1..=count).map(|n| self.jump(dial, n, repeats)).collect();
        }
        dial.tune()?;
        let starts: Vec<u64> = (1..=count).map(|n| self.start(dial, n)).collect::<Result<_, _>>()?;
        let mut ends = vec![[Vec::new(), Vec::new()]; starts.len()];
        for i in 0..repeats {
            for (ends, &lba) in ends.iter_mut().zip(&starts) {
                for (ends, lba) in ends.iter_mut().zip([lba, lba - 1]) {
                    ends.push(dial.angle(lba)?);
                }
            }
            dial.share(i as f64 / repeats as f64 / 2.0);
        }
        let step = 1.0 / self.zone.sectors_exact;
        Ok(ends.iter().map(|[first, last]| wrap(dial.earliest(first) - dial.earliest(last) - step)).collect())
    }

    /// The angle of a track's start behind that of track 0, less `n` times `step`.
    pub(super) fn ahead(&self, dial: &mut Dial<'_>, n: u64, step: f64, repeats: u64) -> Result<f64> {
        let lba = self.start(dial, n)?;
        Ok(wrap(dial.between(self.zone.first_lba, lba, repeats)? - step * n as f64))
    }

    /// What a jump is more than the skew: the angle of the spare sectors at a track's end.
    fn spare(&self) -> f64 {
        (self.zone.sectors_exact - self.zone.usable as f64) / self.zone.sectors_exact
    }

    /// The skew that jumps show, less what lost revolutions count.
    pub(super) fn skew(&self, jumps: &[f64], error: f64, lost: f64) -> Measured {
        let first = jumps.first().copied().unwrap_or(0.0);
        let mean = jumps.iter().map(|j| wrap(j - first)).sum::<f64>() / jumps.len().max(1) as f64;
        // Skews are rounded to whole sectors on every track.
        let rounding = 0.29 / self.zone.sectors_exact;
        let spread = self.spare_error + (error + rounding) / (jumps.len().max(1) as f64).sqrt();
        Measured { value: turn(first + mean - self.spare() - lost), spread }
    }
}

/// The first multiple of `every` before which the jump is like the `first` kind and not like the `other`: there a
/// group of a hybrid layout ends, after as many changes of surface as it has surfaces. `None`: there is none.
pub(super) fn missing(
    dial: &mut Dial<'_>,
    starts: &Starts<'_>,
    every: u64,
    [first, other]: [f64; 2],
) -> Result<Option<u64>> {
    let repeats = dial.repeats(wrap(first - other).abs() / 12.0, 36);
    for k in 2..=65 {
        if k * every >= starts.zone.tracks {
            break;
        }
        let jump = starts.jump(dial, k * every, repeats)?;
        if wrap(jump - first).abs() < wrap(jump - other).abs() {
            return Ok(Some(k));
        }
        dial.share(0.5 + k as f64 / 130.0);
    }
    Ok(None)
}

/// The first track of the zone whose start is not where steps like the first ones bring it; and the step, the more exact
/// the further it goes.
pub(super) fn first_deviation(
    dial: &mut Dial<'_>,
    starts: &Starts<'_>,
    mut step: f64,
    kind: f64,
    slack: f64,
) -> Result<(Measured, Option<u64>)> {
    let repeats = dial.repeats(0.0015, 100);
    let sigma = dial.late(repeats) + 0.5 / starts.zone.sectors_exact;
    let limit = 8.0 * sigma;
    let last = starts.zone.tracks - 1;
    let (mut good, mut n) = (1, 2.min(last));
    loop {
        let mut off = starts.ahead(dial, n, step, repeats)?;
        // A look on the way to the change may have been misled, and the step that brought the tracks up to `good` is not as
        // inexact as that: once more.
        for _ in 0..BISECTIONS {
            if off.abs() <= limit {
                break;
            }
            let (mut lo, mut hi) = (good, n);
            while hi - lo > 1 {
                let mid = lo + (hi - lo) / 2;
                if starts.ahead(dial, mid, step, repeats)?.abs() > limit {
                    hi = mid;
                } else {
                    lo = mid;
                }
            }
            let jump = starts.jump(dial, hi, repeats)?;
            if wrap(jump - kind).abs() > slack.min(limit)
                && starts.stands_out(dial, hi, repeats, slack.min(limit) / 2.0)?
            {
                let spread = sigma / good as f64;
                return Ok((Measured { value: turn(step), spread }, Some(hi)));
            }
            off = starts.ahead(dial, n, step, repeats)?;
        }
        step += off / n as f64;
        good = n;
        if n == last {
            return Ok((Measured { value: turn(step), spread: sigma / n as f64 }, None));
        }
        n = (2 * n).min(last);
    }
}

/// How often the track is looked for at which steps stop being alike.
const BISECTIONS: usize = 3;
