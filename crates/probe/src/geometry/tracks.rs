//! Where tracks begin: along a track the angle rises by the same from block to block, and at its end it jumps.

use crate::dial::Dial;
use crate::stats::wrap;
use crate::{ProbeError, Result};

/// The least jump that is looked for, in revolutions.
const LEAST: f64 = 0.02;

/// The first block of a track, and by how much the angle jumps there beyond the step from block to block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Boundary {
    pub lba: u64,
    pub jump: f64,
}

/// About how many blocks a revolution has near `lba`: the angle over distances that double.
///
/// # Errors
/// The target's, and where the angle follows no line.
pub(super) fn sectors_near(dial: &mut Dial<'_>, lba: u64) -> Result<f64> {
    let blocks = dial.blocks();
    let repeats = dial.repeats(0.004, 9);
    let mut from = lba;
    for _ in 0..16 {
        let mut last = 0.0;
        let mut step = 1u64;
        loop {
            if from + step >= blocks {
                from = lba.saturating_sub(step);
                break;
            }
            let at = dial.between(from, from + step, repeats)?;
            let at = if at < -0.1 { at + 1.0 } else { at };
            let slack = 0.03 + 4.0 * dial.noise() / (repeats as f64).sqrt();
            if step > 1 && wrap(at - 2.0 * last).abs() > slack {
                break;
            }
            if at > 0.3 {
                return Ok(step as f64 / at);
            }
            if at > 0.15 && step > 1 {
                if from + step + step / 2 >= blocks {
                    break;
                }
                // One step of half the length keeps within half a revolution.
                let third = dial.between(from, from + step + step / 2, repeats)?;
                if wrap(third - 1.5 * at).abs() < slack {
                    return Ok((step + step / 2) as f64 / third);
                }
                break;
            }
            last = at;
            step *= 2;
        }
        from += step + step / 2 + 1;
        if from + 2 >= blocks {
            from = blocks / 2;
        }
    }
    Err(ProbeError::NotADisk(
        "the angle does not rise from block to block: nothing rotates, or a cache hides it (or this host is too busy to tell)".to_owned(),
    ))
}

/// The first boundary behind `lba`, where a revolution has about `sectors` blocks; `None` where none shows before `end`.
///
/// # Errors
/// The target's.
pub(super) fn boundary_after(
    dial: &mut Dial<'_>,
    lba: u64,
    sectors: f64,
    end: u64,
    known: &Jumps,
) -> Result<Option<Boundary>> {
    let least = LEAST.max(5.0 * dial.noise() / 2.0);
    let repeats = dial.repeats(LEAST / 4.0, 9);
    let step = ((sectors * 0.4) as u64).max(1);
    let mut from = lba;
    for _ in 0..8 {
        let to = (from + step).min(end - 1);
        if to <= from {
            return Ok(None);
        }
        let off = wrap(dial.step(from, to, sectors, repeats)? - (to - from) as f64 / sectors);
        // The slope is known to a few per cent.
        if off.abs() > least + 0.03 * (to - from) as f64 / sectors {
            return bisect(dial, from, to, sectors, off, known).map(Some);
        }
        from = to;
    }
    Ok(None)
}

/// The boundary between `lo` and `hi`, over which the angle jumps by `jump`.
fn bisect(
    dial: &mut Dial<'_>,
    mut lo: u64,
    mut hi: u64,
    sectors: f64,
    jump: f64,
    known: &Jumps,
) -> Result<Boundary> {
    let (this, voters) = (Jumps(vec![jump]), voters(dial));
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if this.between(dial, lo, mid, sectors, voters)?.is_some() {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    let like = known.0.iter().copied().find(|j| wrap(j - jump).abs() < 0.02 + 4.0 * dial.noise());
    let jump = match like {
        Some(j) => j,
        None => jump_at(dial, hi, sectors, dial.repeats(0.003, 25))?,
    };
    Ok(Boundary { lba: hi, jump })
}

/// By how much the angle jumps just before `lba`.
pub(super) fn jump_at(dial: &mut Dial<'_>, lba: u64, sectors: f64, repeats: u64) -> Result<f64> {
    Ok(wrap(dial.step(lba - 1, lba, sectors, repeats)? - 1.0 / sectors))
}

/// Where the track behind `expected` begins exactly: at `expected` itself, or up to `window` blocks before or behind it.
pub(super) fn exact(
    dial: &mut Dial<'_>,
    expected: u64,
    window: u64,
    sectors: f64,
    jump: &Jumps,
) -> Result<Option<u64>> {
    let (end, voters) = (dial.blocks(), voters(dial));
    if expected == 0 || expected >= end {
        return Ok(None);
    }
    if jump.between(dial, expected - 1, expected, sectors, voters)?.is_some() {
        return Ok(Some(expected));
    }
    if window == 0 {
        return Ok(None);
    }
    let (mut lo, mut hi) = ((expected - 1).saturating_sub(window), (expected + window).min(end - 1));
    if jump.between(dial, lo, expected - 1, sectors, voters)?.is_some() {
        hi = expected - 1;
    } else if jump.between(dial, expected, hi, sectors, voters)?.is_some() {
        lo = expected;
    } else {
        return Ok(None);
    }
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if jump.between(dial, lo, mid, sectors, 1)?.is_some() {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    // Halving may have been misled once.
    let certain = voters == 1 || jump.between(dial, hi - 1, hi, sectors, voters)?.is_some();
    Ok(certain.then_some(hi))
}

/// Where completions may come much too late, two have to agree.
fn voters(dial: &Dial<'_>) -> usize {
    if dial.noise() > 1e-4 { 2 } else { 1 }
}

/// The jumps that a drive's tracks show, in revolutions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Jumps(pub Vec<f64>);

impl Jumps {
    /// Takes note of a jump that is unlike the ones known.
    pub(super) fn learn(&mut self, jump: f64, slack: f64) {
        if jump.abs() > LEAST / 2.0 && !self.0.iter().any(|j| wrap(j - jump).abs() < slack) {
            self.0.push(jump);
        }
    }

    /// Which of the known jumps lies between two blocks of two tracks at most; `None`: they lie on one track. Repeats
    /// until `voters` agree, and answers `Some` for a jump that is not known.
    pub(super) fn between(
        &self,
        dial: &mut Dial<'_>,
        lo: u64,
        hi: u64,
        sectors: f64,
        voters: usize,
    ) -> Result<Option<f64>> {
        let line = (hi - lo) as f64 / sectors;
        let slack = 4.0 * dial.noise() + 0.004 + 0.02 * line;
        let mut answers: Vec<Option<f64>> = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..9 {
            let off = wrap(dial.step(lo, hi, sectors, 1)? - line);
            seen.push(off);
            let known = self.0.iter().copied().find(|j| wrap(j - off).abs() < slack);
            let none = off.abs() < slack;
            if known.is_some() != none {
                answers.push(known);
                if answers.iter().filter(|a| **a == known).count() >= voters {
                    return Ok(known);
                }
                continue;
            }
            let last = seen.len().checked_sub(2).map(|i| seen[i]);
            if known.is_some() || last.is_some_and(|last| wrap(last - off).abs() < slack) {
                break;
            }
            dial.count_outlier();
        }
        let middle = crate::stats::median_angle(&seen);
        let nearest =
            self.0.iter().copied().min_by(|a, b| wrap(a - middle).abs().total_cmp(&wrap(b - middle).abs()));
        Ok(match nearest {
            Some(j) if wrap(j - middle).abs() < middle.abs() => Some(j),
            None if middle.abs() > LEAST => Some(middle),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN, passes};

    /// Tracks of 50 blocks with a skew of 0.2: one begins at 50, none at the drive's end.
    #[test]
    fn no_track_begins_at_the_drives_end() {
        let mut target = Fake::new(100, |_, lba, _, now| {
            passes((lba / 50) as f64 * 0.2 + (lba % 50 + 1) as f64 / 50.0, now)
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        let mut at = |lba| exact(&mut dial, lba, 2, 50.0, &Jumps(vec![0.2])).unwrap();
        assert_eq!([at(50), at(51), at(100), at(0)], [Some(50), Some(50), None, None]);
    }

    /// Tracks of 50 blocks of which the last is cut. A jump of the angle within two hundredths of a revolution of one that is known is that
    /// one; another is measured.
    #[test]
    fn a_jump_that_is_like_a_known_one_is_that_one() {
        let known = Jumps(vec![0.3, 0.2]);
        for (skew, jump) in [(0.2, 0.2), (0.185, 0.2), (0.215, 0.2), (0.175, 0.175), (0.225, 0.225)] {
            let mut target = Fake::new(980, |_, lba, _, now| {
                passes((lba / 50) as f64 * skew + (lba % 50 + 1) as f64 / 50.0, now)
            });
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let found = boundary_after(&mut dial, 100, 50.0, 980, &known).unwrap().unwrap();
            assert!(found.lba == 150 && (found.jump - jump).abs() < 1e-6, "{skew}: {found:?}");
        }
    }

    /// Blocks one behind the other, from the shortest tracks of which a step is less than half a revolution.
    #[test]
    fn a_revolution_has_as_many_blocks_as_pass_in_it() {
        for sectors in [2, 3, 4, 5, 6, 7, 11, 16, 50, 313, 2000] {
            let mut target =
                Fake::new(16_000, |_, lba, _, now| passes((lba + 1) as f64 / sectors as f64, now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let near = sectors_near(&mut dial, 100).unwrap();
            assert!((near / sectors as f64 - 1.0).abs() < 0.01, "{sectors}: {near}");
        }
    }
}
