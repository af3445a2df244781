//! The order of surfaces, from the jumps of the angle between tracks: a change of the cylinder and a change of the head
//! have skews of their own, and where each comes says in which order tracks fill the surfaces.
//!
//! [`starts`] measures, [`decide`] says what was measured means; here is what is measured when.

mod decide;
mod starts;

use super::tracks::Jumps;
use super::zones::turn_error;
use super::{Measured, Zone};
use crate::dial::{Dial, LOST};
use crate::stats::{median_angle, wrap};
use crate::{ProbeError, Result};
use decide::{Kinds, hybrid, passes};
use serde::{Deserialize, Serialize};
use starts::{Starts, first_deviation, missing};

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

/// Finds order and skews in the zone with the most tracks.
///
/// # Errors
/// The target's, and where no zone is large enough.
pub(super) fn find(dial: &mut Dial<'_>, zones: &[Zone], jumps: &Jumps) -> Result<Skews> {
    dial.stage("skew and order of surfaces");
    let Some(zone) = zones.iter().max_by_key(|z| z.tracks).filter(|z| z.tracks >= 4) else {
        return Err(ProbeError::Unclear("all zones have fewer than four tracks".to_owned()));
    };
    let spares = zone.sectors_exact > zone.usable as f64;
    let spare_error = if spares { turn_error(dial, zone.usable) } else { 0.0 };
    Search::begin(dial, Starts { zone, spare_error, jumps: jumps.clone() })?.end(dial, zones)
}

/// The jumps before the first tracks, and how exactly they are known.
struct Search<'a> {
    starts: Starts<'a>,
    /// The jump before track `i + 1`, in revolutions.
    seen: Vec<f64>,
    /// Looks at each of them.
    repeats: u64,
    /// The error of one.
    sigma: f64,
    /// By how much two of one kind may differ.
    slack: f64,
    /// What a lost revolution counts.
    lost: f64,
}

impl<'a> Search<'a> {
    /// Measures the jumps before the first tracks; what is unlike the first is measured again.
    fn begin(dial: &mut Dial<'_>, starts: Starts<'a>) -> Result<Self> {
        let lost = if dial.across() { LOST } else { 0.0 };
        // Each look over a boundary costs pushing it out of the drive's own cache; the mean of all of them counts.
        let want = if dial.across() && dial.cached() { 0.003 } else { 0.0015 };
        let repeats = dial.repeats(want, 36);
        let mut seen = starts.jumps(dial, FIRST.min(starts.zone.tracks - 1), repeats)?;
        let sigma = dial.late(repeats);
        let slack = (6.0 * sigma).max(2.2 / starts.zone.sectors_exact);
        // Completions that came much too late are not a kind of their own.
        let again: Vec<usize> = match dial.noise() > 1e-4 {
            true => Kinds { seen: &seen, slack }.unlike_the_first().collect(),
            false => Vec::new(),
        };
        for i in again {
            let track = i as u64 + 1;
            seen[i] = starts.jump(dial, track, 3 * repeats)?;
            // Two of a kind beside each other would not: with more than one surface kinds take turns at once.
            let unlike = wrap(seen[i] - seen[0]).abs() > slack;
            if unlike && !starts.stands_out(dial, track, repeats, slack / 2.0)? {
                seen[i] = seen[0];
            }
        }
        Ok(Self { starts, seen, repeats, sigma, slack, lost })
    }

    fn kinds(&self) -> Kinds<'_> {
        Kinds { seen: &self.seen, slack: self.slack }
    }

    /// The skew that jumps show.
    fn skew(&self, jumps: &[f64]) -> Measured {
        self.starts.skew(jumps, self.sigma, self.lost)
    }

    /// The order, by the first of these that holds: zones that come again in reverse, a second kind of jump among those that were
    /// measured, a second kind further on, nothing of these.
    fn end(self, dial: &mut Dial<'_>, zones: &[Zone]) -> Result<Skews> {
        let first_skew = self.skew(&self.kinds().of(self.seen[0]));
        if let Some(surfaces) = passes(zones) {
            return Ok(Skews::new(Order::Surface { surfaces }, first_skew, None));
        }
        let second = self.kinds().unlike_the_first().next();
        match second {
            Some(n) => self.by_second_kind(dial, n, first_skew, zones),
            None => self.by_deviation(dial, first_skew, zones),
        }
    }

    /// Jump `n` is the first of a second kind.
    fn by_second_kind(
        &self,
        dial: &mut Dial<'_>,
        n: usize,
        first_skew: Measured,
        zones: &[Zone],
    ) -> Result<Skews> {
        let (first, second) = (self.seen[0], self.seen[n]);
        let every = n as u64 + 1;
        let other = self.skew(&self.kinds().of(second));
        Ok(match missing(dial, &self.starts, every, [first, second])? {
            // Every cylinder ends alike.
            None => Skews::new(Order::Cylinder { surfaces: every }, other, Some(first_skew)),
            Some(m) => Skews::new(hybrid(m, every, zones), first_skew, Some(other)),
        })
    }

    /// All that were measured are of one kind: a track far behind them may start where the steps between these do not bring it.
    fn by_deviation(&self, dial: &mut Dial<'_>, first_skew: Measured, zones: &[Zone]) -> Result<Skews> {
        for _ in 0..TRIES {
            let (step, far) =
                first_deviation(dial, &self.starts, first_skew.value, self.seen[0], self.slack)?;
            let Some(every) = far else {
                return Ok(Skews::new(Order::Surface { surfaces: 1 }, step, None));
            };
            let there = self.starts.jump(dial, every, dial.repeats(0.0015, 100))?;
            let surfaces =
                missing(dial, &self.starts, every, [median_angle(&self.seen), there])?.unwrap_or(1);
            let mut heads = Vec::new();
            for k in 1..surfaces.max(2) {
                heads.push(self.starts.jump(dial, k * every, self.repeats)?);
            }
            let head = self.skew(&heads);
            // What led here may have been the host, busy for a while: then it does not look like a kind of its own any more.
            if wrap(head.value - step.value).abs() > self.slack / 2.0 {
                return Ok(Skews::new(hybrid(surfaces, every, zones), step, Some(head)));
            }
        }
        Ok(Skews::new(Order::Surface { surfaces: 1 }, first_skew, None))
    }
}

/// How often a change of surface that is none may turn up.
const TRIES: usize = 3;

impl Skews {
    fn new(order: Order, cylinder: Measured, track: Option<Measured>) -> Self {
        let period_tracks = 1.0 / wrap(cylinder.value).abs().max(1e-9);
        Self { order, cylinder, track, period_tracks }
    }
}

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
        let of = |sizes: &[u64]| passes(&sizes.iter().map(|n| zone(*n, 10)).collect::<Vec<_>>());
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
        sought(tracks, start).unwrap()
    }

    fn sought(tracks: u64, start: impl Fn(u64) -> f64) -> Result<Skews> {
        let mut target = Fake::new(100 * tracks, |_, lba, blocks, now| {
            let last = lba + blocks - 1;
            fakes::passes(start(last / 100) + (last % 100 + 1) as f64 / 100.0, now)
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        find(&mut dial, &[zone(100, tracks)], &Jumps(vec![0.1, 0.2]))
    }

    /// Three steps are enough to be told from one another, two are not.
    #[test]
    fn a_zone_has_four_tracks() {
        assert_eq!(found(4, |n| 0.1 * n as f64).order, Order::Surface { surfaces: 1 });
        let e = sought(3, |n| 0.1 * n as f64).unwrap_err().to_string();
        assert!(e.contains("fewer than four tracks"), "{e}");
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

    /// Groups of three tracks on up to 65 surfaces are told from cylinders of three: the end of a group is looked for so far.
    #[test]
    fn surfaces_are_counted_up_to_65() {
        for surfaces in [2, 30, 64, 65, 66] {
            let grouped = found(600, |n| 0.1 * n as f64 + 0.05 * (n / 3 - n / (3 * surfaces)) as f64);
            let hybrid = Order::Hybrid { surfaces, group_cylinders: 3 };
            let order = if surfaces > 65 { Order::Cylinder { surfaces: 3 } } else { hybrid };
            assert_eq!(grouped.order, order, "{surfaces}");
        }
    }
}
