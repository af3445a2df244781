//! The order of surfaces, from the jumps of the angle between tracks: a change of the cylinder and a change of the head
//! have skews of their own, and where each comes says in which order tracks fill the surfaces.

use super::tracks::{Jumps, exact, jump_at};
use super::zones::turn_error;
use super::{Measured, Zone};
use crate::ProbeError;
use crate::dial::{Dial, LOST};
use crate::stats::{median_angle, turn, wrap};
use serde::{Deserialize, Serialize};

/// Boundaries that are looked at one by one; more than twice the surfaces of any drive.
const FIRST: u64 = 130;

/// In which order tracks fill the surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Order {
    /// All surfaces of a cylinder before the next cylinder.
    Cylinder {
        /// Surfaces.
        surfaces: u64,
    },
    /// One whole surface after the other, to and fro.
    Surface {
        /// Surfaces.
        surfaces: u64,
    },
    /// Groups of cylinders, one surface after the other within each.
    Hybrid {
        /// Surfaces.
        surfaces: u64,
        /// Cylinders in a group.
        group_cylinders: u64,
    },
}

/// What the jumps between tracks show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skews {
    /// In which order tracks fill the surfaces.
    pub order: Order,
    /// Angle from a track's first sector to the next one's where the cylinder changes, in revolutions.
    pub cylinder: Measured,
    /// The same where the surface changes; absent where that was not seen.
    pub track: Option<Measured>,
    /// Tracks over which the cylinder skews add up to a revolution (the paper's n).
    pub period_tracks: f64,
}

/// The zone in which the order is looked for, and where its tracks are.
struct Place<'a> {
    zone: &'a Zone,
    /// How exactly the spare sectors at a track's end are known, in revolutions; 0 where there are none.
    spare_error: f64,
    jumps: Jumps,
}

impl Place<'_> {
    /// The first block of track `n` of the zone.
    fn start(&self, dial: &mut Dial<'_>, n: u64) -> Result<u64, ProbeError> {
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
    fn jump(&self, dial: &mut Dial<'_>, n: u64, repeats: u64) -> Result<f64, ProbeError> {
        let lba = self.start(dial, n)?;
        jump_at(dial, lba, self.zone.sectors_exact, repeats)
    }

    /// Whether the jump before track `n` is unlike those beside it, by more than `slack`. Where there is noise that is seen
    /// twice, each time next to each other: a busy host is not busy all the time.
    fn stands_out(&self, dial: &mut Dial<'_>, n: u64, repeats: u64, slack: f64) -> Result<bool, ProbeError> {
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
    fn jumps(&self, dial: &mut Dial<'_>, count: u64, repeats: u64) -> Result<Vec<f64>, ProbeError> {
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
    fn ahead(&self, dial: &mut Dial<'_>, n: u64, step: f64, repeats: u64) -> Result<f64, ProbeError> {
        let lba = self.start(dial, n)?;
        Ok(wrap(dial.between(self.zone.first_lba, lba, repeats)? - step * n as f64))
    }

    /// What a jump is more than the skew: the angle of the spare sectors at a track's end.
    fn spare(&self) -> f64 {
        (self.zone.sectors_exact - self.zone.usable as f64) / self.zone.sectors_exact
    }

    /// The skew that jumps show, less what lost revolutions count.
    fn skew(&self, jumps: &[f64], error: f64, lost: f64) -> Measured {
        let first = jumps.first().copied().unwrap_or(0.0);
        let mean = jumps.iter().map(|j| wrap(j - first)).sum::<f64>() / jumps.len().max(1) as f64;
        // Skews are rounded to whole sectors on every track.
        let rounding = 0.29 / self.zone.sectors_exact;
        let spread = self.spare_error + (error + rounding) / (jumps.len().max(1) as f64).sqrt();
        Measured { value: turn(first + mean - self.spare() - lost), spread }
    }
}

/// Finds order and skews in the zone with the most tracks.
///
/// # Errors
/// The target's, and where no zone is large enough.
pub(super) fn find(dial: &mut Dial<'_>, zones: &[Zone], jumps: &Jumps) -> Result<Skews, ProbeError> {
    dial.stage("skew and order of surfaces");
    let Some(zone) = zones.iter().max_by_key(|z| z.tracks).filter(|z| z.tracks >= 4) else {
        return Err(ProbeError::Unclear("all zones have fewer than four tracks".to_owned()));
    };
    let lost = if dial.across() { LOST } else { 0.0 };
    let spares = zone.sectors_exact > zone.usable as f64;
    let spare_error = if spares { turn_error(dial, zone.usable) } else { 0.0 };
    let place = Place { zone, spare_error, jumps: jumps.clone() };
    // Each look over a boundary costs pushing it out of the drive's own cache; the mean of all of them counts.
    let want = if dial.across() && dial.cached() { 0.003 } else { 0.0015 };
    let repeats = dial.repeats(want, 36);
    let count = FIRST.min(zone.tracks - 1);
    let mut seen = place.jumps(dial, count, repeats)?;
    let sigma = dial.late(repeats);
    let slack = (6.0 * sigma).max(2.2 / zone.sectors_exact);
    let like = |kind: f64| move |j: &f64| wrap(j - kind).abs() <= slack;
    // What is unlike the first is measured again: completions that came much too late are not a kind of their own.
    let unlike: Vec<usize> = (1..seen.len()).filter(|&i| !like(seen[0])(&seen[i])).collect();
    let again = if dial.noise() > 1e-4 { unlike } else { Vec::new() };
    for i in again {
        seen[i] = place.jump(dial, i as u64 + 1, 3 * repeats)?;
        // Two of a kind beside each other would not: with more than one surface kinds take turns at once.
        if !like(seen[0])(&seen[i]) && !place.stands_out(dial, i as u64 + 1, repeats, slack / 2.0)? {
            seen[i] = seen[0];
        }
    }
    let first_kind: Vec<f64> = seen.iter().copied().filter(like(seen[0])).collect();
    let first_skew = place.skew(&first_kind, sigma, lost);
    if let Some(surfaces) = passes(zones) {
        return Ok(Skews::new(Order::Surface { surfaces }, first_skew, None));
    }
    if let Some(n) = seen.iter().position(|j| !like(seen[0])(j)) {
        let second: Vec<f64> = seen.iter().copied().filter(like(seen[n])).collect();
        let every = n as u64 + 1;
        let other = place.skew(&second, sigma, lost);
        return Ok(match missing(dial, &place, every, [seen[0], seen[n]])? {
            // Every cylinder ends alike.
            None => Skews::new(Order::Cylinder { surfaces: every }, other, Some(first_skew)),
            Some(m) => Skews::new(hybrid(m, every, zones), first_skew, Some(other)),
        });
    }
    for _ in 0..TRIES {
        let (step, far) = first_deviation(dial, &place, first_skew.value, seen[0], slack)?;
        let Some(every) = far else {
            return Ok(Skews::new(Order::Surface { surfaces: 1 }, step, None));
        };
        let kinds = [median_angle(&seen), place.jump(dial, every, dial.repeats(0.0015, 100))?];
        let surfaces = missing(dial, &place, every, kinds)?.unwrap_or(1);
        let mut heads = Vec::new();
        for k in 1..surfaces.max(2) {
            heads.push(place.jump(dial, k * every, repeats)?);
        }
        let head = place.skew(&heads, sigma, lost);
        // What led here may have been the host, busy for a while: then it does not look like a kind of its own any more.
        if wrap(head.value - step.value).abs() > slack / 2.0 {
            return Ok(Skews::new(hybrid(surfaces, every, zones), step, Some(head)));
        }
    }
    Ok(Skews::new(Order::Surface { surfaces: 1 }, first_skew, None))
}

/// How often a change of surface that is none may turn up.
const TRIES: usize = 3;

impl Skews {
    fn new(order: Order, cylinder: Measured, track: Option<Measured>) -> Self {
        let period_tracks = 1.0 / wrap(cylinder.value).abs().max(1e-9);
        Self { order, cylinder, track, period_tracks }
    }
}

/// Groups as large as the drive are whole surfaces.
fn hybrid(surfaces: u64, group_cylinders: u64, zones: &[Zone]) -> Order {
    let tracks: u64 = zones.iter().map(|z| z.tracks).sum();
    if surfaces * group_cylinders >= tracks {
        Order::Surface { surfaces }
    } else {
        Order::Hybrid { surfaces, group_cylinders }
    }
}

/// How often the drive is gone through from one side to the other, where the zones show it: they come again in reverse.
fn passes(zones: &[Zone]) -> Option<u64> {
    let sizes: Vec<u64> = zones.iter().map(|z| z.usable).collect();
    let turns = (1..sizes.len().saturating_sub(1))
        .filter(|&i| (sizes[i] > sizes[i - 1]) != (sizes[i + 1] > sizes[i]))
        .count();
    let palindrome = turns == 0 || {
        let turn = (1..sizes.len() - 1).find(|&i| (sizes[i] > sizes[i - 1]) != (sizes[i + 1] > sizes[i]));
        turn.is_some_and(|t| (1..=t.min(sizes.len() - 1 - t)).all(|d| sizes[t - d] == sizes[t + d]))
    };
    (turns > 0 && palindrome).then_some(turns as u64 + 1)
}

/// The first multiple of `every` before which the jump is like the `first` kind and not like the `other`: there a
/// group of a hybrid layout ends, after as many changes of surface as it has surfaces. `None`: there is none.
fn missing(
    dial: &mut Dial<'_>,
    place: &Place<'_>,
    every: u64,
    [first, other]: [f64; 2],
) -> Result<Option<u64>, ProbeError> {
    let repeats = dial.repeats(wrap(first - other).abs() / 12.0, 36);
    for k in 2..=65 {
        if k * every >= place.zone.tracks {
            break;
        }
        let jump = place.jump(dial, k * every, repeats)?;
        if wrap(jump - first).abs() < wrap(jump - other).abs() {
            return Ok(Some(k));
        }
        dial.share(0.5 + k as f64 / 130.0);
    }
    Ok(None)
}

/// The first track of the zone whose start is not where steps like the first ones bring it; and the step, the more exact
/// the further it goes.
fn first_deviation(
    dial: &mut Dial<'_>,
    place: &Place<'_>,
    mut step: f64,
    kind: f64,
    slack: f64,
) -> Result<(Measured, Option<u64>), ProbeError> {
    let repeats = dial.repeats(0.0015, 100);
    let sigma = dial.late(repeats) + 0.5 / place.zone.sectors_exact;
    let limit = 8.0 * sigma;
    let last = place.zone.tracks - 1;
    let (mut good, mut n) = (1, 2.min(last));
    loop {
        let mut off = place.ahead(dial, n, step, repeats)?;
        // A look on the way to the change may have been misled, and the step that brought the tracks up to `good` is not as
        // inexact as that: once more.
        for _ in 0..BISECTIONS {
            if off.abs() <= limit {
                break;
            }
            let (mut lo, mut hi) = (good, n);
            while hi - lo > 1 {
                let mid = lo + (hi - lo) / 2;
                if place.ahead(dial, mid, step, repeats)?.abs() > limit {
                    hi = mid;
                } else {
                    lo = mid;
                }
            }
            let jump = place.jump(dial, hi, repeats)?;
            if wrap(jump - kind).abs() > slack.min(limit)
                && place.stands_out(dial, hi, repeats, slack.min(limit) / 2.0)?
            {
                let spread = sigma / good as f64;
                return Ok((Measured { value: turn(step), spread }, Some(hi)));
            }
            off = place.ahead(dial, n, step, repeats)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::fakes::{self, Fake, TURN};

    fn zone(usable: u64, tracks: u64) -> Zone {
        Zone {
            first_lba: 0,
            blocks: usable * tracks,
            first_track: 0,
            tracks,
            usable,
            sectors: usable,
            sectors_exact: usable as f64,
            slips: 0,
            jump: 0.1,
        }
    }

    /// Zones that come again in reverse tell how often the drive is gone through; what only falls, or is no mirror of itself, does not.
    #[test]
    fn passes_are_counted_where_zones_come_again() {
        let of = |sizes: &[u64]| super::passes(&sizes.iter().map(|n| zone(*n, 10)).collect::<Vec<_>>());
        assert_eq!(of(&[300, 200, 100]), None);
        assert_eq!(of(&[300, 200, 100, 200, 300]), Some(2));
        assert_eq!(of(&[300, 200, 100, 200, 300, 200, 100]), Some(3));
        assert_eq!(of(&[300, 200, 100, 150, 300]), None);
    }

    /// Groups that leave nothing of the drive are whole surfaces.
    #[test]
    fn a_group_as_large_as_the_drive_is_a_surface() {
        let zones = [zone(100, 30), zone(90, 30)];
        assert_eq!(hybrid(4, 14, &zones), Order::Hybrid { surfaces: 4, group_cylinders: 14 });
        assert_eq!(hybrid(4, 15, &zones), Order::Surface { surfaces: 4 });
    }

    /// A disk of 100 sectors a track whose track `n` starts at `start(n)`; what is found of its order.
    fn found(tracks: u64, start: impl Fn(u64) -> f64) -> Skews {
        let mut target = Fake::new(100 * tracks, |_, lba, blocks, now| {
            let last = lba + blocks - 1;
            fakes::passes(start(last / 100) + (last % 100 + 1) as f64 / 100.0, now)
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        find(&mut dial, &[zone(100, tracks)], &Jumps(vec![0.1, 0.2])).unwrap()
    }

    /// Skews that differ by less than 2.2 sectors are one kind: they are rounded on each track. By 3 sectors they are two.
    #[test]
    fn skews_of_two_sectors_more_are_the_same_kind() {
        let every = |n: u64, more: f64| 0.1 * n as f64 + more * (n / 4) as f64;
        let (one, two) = (found(400, |n| every(n, 0.019)), found(400, |n| every(n, 0.03)));
        assert_ne!(one.order, Order::Cylinder { surfaces: 4 });
        assert_eq!(two.order, Order::Cylinder { surfaces: 4 });
        assert!((two.cylinder.value - 0.13).abs() < 0.002 && (two.track.unwrap().value - 0.1).abs() < 0.002);
        assert!((two.period_tracks - 1.0 / 0.13).abs() < 0.2, "{}", two.period_tracks);
        let surfaces = found(400, |n| every(n, 0.0));
        assert_eq!((surfaces.order, surfaces.track), (Order::Surface { surfaces: 1 }, None));
        // Three surfaces of groups of ten tracks: two changes of surface, then the next group begins with a step like all others.
        let grouped = found(400, |n| 0.1 * n as f64 + 0.05 * (n / 10 - n / 30) as f64);
        assert_eq!(grouped.order, Order::Hybrid { surfaces: 3, group_cylinders: 10 });
        assert!((grouped.track.unwrap().value - 0.15).abs() < 0.002);
    }
}
