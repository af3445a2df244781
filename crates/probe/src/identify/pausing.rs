//! Drives that clean when they are idle: after how long, in which order, how long a band takes, and where bands end.

use super::bands::{BandSize, View, band_end};
use super::moved::{Places, SMALL, calm, look_once, settled};
use crate::dial::Dial;
use crate::stats::wrap;
use crate::{ProbeError, Result};
use serde::{Deserialize, Serialize};

/// Which of two bands is cleaned first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The one that was written first.
    Oldest,
    /// The one that was written last.
    Newest,
    /// The same one, whichever was written first.
    ByPlace,
}

/// Cleaning in idle time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Seconds without a request before it begins.
    pub after_s: f64,
    /// Seconds that a band takes of which a piece was written.
    pub band_s: f64,
    /// That piece: where only what lies behind it is rewritten, another takes another time.
    #[serde(default)]
    pub piece: u64,
    /// Which band comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
}

/// The shortest and the longest rest, in seconds.
const SHORTEST: f64 = 0.02;
const LONGEST: f64 = 3600.0;

/// How exactly the shortest rest is found: where differences count, and where it only has to be compared.
const FINE: f64 = 0.002;
const COARSE: f64 = 0.01;

/// How much of one band's cleaning is over when the rest ends after which one of two may be home.
const ORDER: [f64; 4] = [0.5, 0.9, 1.1, 1.4];

/// Revolutions that a read takes which waits for cleaning; others take a way over the drive and one.
const WAITS: f64 = 4.0;

/// A piece, and its own angle.
type Spot = (u64, f64);

/// A drive whose cache was empty, and the rest after which it is again.
pub(super) struct Pausing {
    slack: f64,
    /// Seconds after which a few pieces are home.
    rest: f64,
    idle: Idle,
}

impl Pausing {
    /// Waits until the cache is empty, and measures how a drive cleans that is idle; `None` where it does not come to rest.
    pub(super) fn new(dial: &mut Dial<'_>, places: &Places) -> Result<Option<Self>> {
        dial.stage("idle cleaning");
        let none = Idle { after_s: 0.0, band_s: 0.0, piece: 0, order: None };
        let mut out = Self { slack: places.slack(), rest: 10.0, idle: none };
        let (a, b) = (places.native(0), places.native(7));
        let mut empty = false;
        for _ in 0..24 {
            empty = out.home_after(dial, &[a], LONGEST)?[0];
            if empty {
                break;
            }
        }
        if !empty {
            return Ok(None);
        }
        let (one, other) = (out.least(dial, &[a], FINE)?, out.least(dial, &[b], FINE)?);
        let (Some(one), Some(other)) = (one, other) else { return Ok(None) };
        out.rest = 4.0 * (one + other);
        let Some(both) = out.least(dial, &[a, b], FINE)? else { return Ok(None) };
        (out.idle.band_s, out.idle.piece) = ((both - other).max(0.0), a.0);
        out.idle.after_s = (one + other - both).max(0.0);
        for share in ORDER {
            let rest = out.idle.after_s + share * (both - one.max(other));
            out.idle.order = out.order(dial, [a, b], rest)?;
            if out.idle.order.is_some() {
                break;
            }
        }
        Ok(Some(out))
    }

    pub(super) fn idle(&self) -> Idle {
        self.idle
    }

    /// Writes the pieces in turn, so that each lies elsewhere.
    fn write(&self, dial: &mut Dial<'_>, spots: &[Spot]) -> Result<()> {
        for &(lba, home) in spots {
            // Small packets of a log lie close together.
            for _ in 0..64 {
                dial.write(lba, SMALL)?;
                if wrap(settled(dial, lba, self.slack)? - home).abs() > 2.0 * self.slack {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Leaves the drive alone until they are home.
    fn finish(&self, dial: &mut Dial<'_>, spots: &[Spot]) -> Result<()> {
        let mut rest = self.rest;
        while !self.all_home(dial, spots)? && rest <= LONGEST {
            dial.pause(rest * 1e9);
            rest *= 4.0;
        }
        Ok(())
    }

    /// Writes the pieces, leaves the drive alone for `seconds`, and looks which are home; then lets it finish.
    fn home_after(&self, dial: &mut Dial<'_>, spots: &[Spot], seconds: f64) -> Result<Vec<bool>> {
        self.write(dial, spots)?;
        dial.pause(seconds * 1e9);
        let done = self.is_done(dial)?;
        let mut seen = Vec::new();
        for &spot in spots {
            seen.push(done && self.is_home(dial, spot)?);
        }
        self.finish(dial, spots)?;
        Ok(seen)
    }

    /// Whether a read has not to wait for what the drive does with a piece that is on its way home.
    fn is_done(&self, dial: &mut Dial<'_>) -> Result<bool> {
        let lba = dial.random(dial.blocks());
        Ok(dial.read(lba)?.took() < WAITS * dial.period())
    }

    fn all_home(&self, dial: &mut Dial<'_>, spots: &[Spot]) -> Result<bool> {
        for &spot in spots {
            if !self.is_home(dial, spot)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_home(&self, dial: &mut Dial<'_>, (lba, home): Spot) -> Result<bool> {
        let near = |now: f64| wrap(now - home).abs() <= self.slack;
        let (first, _) = look_once(dial, lba)?;
        let (second, quiet) = look_once(dial, lba)?;
        if !(quiet && near(first) && near(second)) {
            return Ok(false);
        }
        // Where a layer times reads that follow each other in its log by itself, a piece there may seem to be home by chance. Only
        // then the head goes elsewhere first: time that passes before the answer would let the drive finish meanwhile.
        let elsewhere = dial.random(dial.blocks());
        dial.read(elsewhere)?;
        Ok(near(look_once(dial, lba)?.0))
    }

    /// The shortest rest after which all of them are home, to the share `exact` of it.
    fn least(&self, dial: &mut Dial<'_>, spots: &[Spot], exact: f64) -> Result<Option<f64>> {
        let all = |dial: &mut Dial<'_>, s: f64| {
            Ok::<_, ProbeError>(!self.home_after(dial, spots, s)?.contains(&false))
        };
        let mut hi = SHORTEST;
        while !all(dial, hi)? {
            hi *= 2.0;
            if hi > LONGEST {
                return Ok(None);
            }
        }
        let mut lo = if hi > SHORTEST { hi / 2.0 } else { 0.0 };
        while hi - lo > exact * hi {
            let mid = (lo + hi) / 2.0;
            if all(dial, mid)? { hi = mid } else { lo = mid }
        }
        Ok(Some(hi))
    }

    /// The rest ends while the first band is at work or soon after it, and the drive is kept busy until that is done: which
    /// one is home?
    fn order(&self, dial: &mut Dial<'_>, [a, b]: [Spot; 2], rest: f64) -> Result<Option<Order>> {
        let mut seen = Vec::new();
        for spots in [[a, b], [b, a]] {
            self.write(dial, &spots)?;
            dial.pause(rest * 1e9);
            calm(dial)?;
            seen.push([self.is_home(dial, spots[0])?, self.is_home(dial, spots[1])?]);
            self.finish(dial, &spots)?;
        }
        Ok(match (seen[0], seen[1]) {
            ([true, false], [true, false]) => Some(Order::Oldest),
            ([false, true], [false, true]) => Some(Order::Newest),
            ([true, false], [false, true]) | ([false, true], [true, false]) => Some(Order::ByPlace),
            _ => None,
        })
    }

    /// What others left in the cache goes home.
    pub(super) fn empty(&self, dial: &mut Dial<'_>) {
        dial.pause((self.rest + 600.0) * 1e9);
    }

    /// The band behind the one of `start`: pieces that are home no later than one alone are cleaned with it.
    pub(super) fn band(&self, dial: &mut Dial<'_>, start: u64, view: View) -> Result<Option<BandSize>> {
        self.empty(dial);
        let mut from = view.piece(start / SMALL * SMALL, SMALL);
        let (mut ends, mut longest) = (Vec::new(), 0.0);
        for _ in 0..2 {
            if from + SMALL > dial.blocks() {
                return Ok(None);
            }
            let lba = view.piece(from, SMALL);
            let first = (lba, settled(dial, lba, self.slack)?);
            let Some(alone) = self.least(dial, &[first], COARSE)? else { return Ok(None) };
            longest = alone - self.idle.after_s;
            let rest = alone + 0.4 * self.idle.band_s.min(longest.max(0.1 * self.idle.band_s));
            let end = band_end(dial, (from, SMALL), &mut |dial, place| {
                let lba = view.piece(place, SMALL);
                let other = (lba, settled(dial, lba, self.slack)?);
                Ok(!self.home_after(dial, &[first, other], rest)?.contains(&false))
            })?;
            let Some(end) = end else { return Ok(None) };
            ends.push(end);
            from = end + SMALL;
        }
        let blocks = ends[1] - ends[0];
        let end = view.end([ends[0], ends[1]]);
        Ok((blocks > 64).then_some(BandSize { blocks, end, spread: 8.0, rewrite_s: longest }))
    }

    /// What cleaning one piece costs, in revolutions, and how exactly that is known.
    pub(super) fn cost(&self, dial: &mut Dial<'_>, lba: u64) -> Result<Option<(f64, f64)>> {
        let spot = (lba, settled(dial, lba, self.slack)?);
        let turns = 1e9 / dial.period();
        let least = self.least(dial, &[spot], COARSE)?;
        Ok(least.map(|s| ((s - self.idle.after_s) * turns, 0.015 * s * turns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN, passes};

    /// Blocks 1000 and 2000 lie in a log at 0.5, and seem to be home, at 0.2, where another read in the log was before; 3000 is home.
    #[test]
    fn a_piece_in_a_log_is_not_home_by_chance() {
        let mut last = 0;
        let mut target = Fake::new(1 << 20, |_, lba, _, now| {
            let log = |lba| lba == 1000 || lba == 2000;
            let angle = if lba == 3000 || log(lba) && log(last) { 0.2 } else { 0.5 };
            last = lba;
            passes(angle, now)
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        let idle = Idle { after_s: 0.0, band_s: 0.0, piece: 0, order: None };
        let pausing = Pausing { slack: 0.02, rest: 1.0, idle };
        dial.read(1000).unwrap();
        assert!(!pausing.is_home(&mut dial, (2000, 0.2)).unwrap());
        assert!(!pausing.all_home(&mut dial, &[(3000, 0.2), (2000, 0.2)]).unwrap());
        assert!(pausing.all_home(&mut dial, &[(3000, 0.2)]).unwrap());
        assert!(!pausing.is_home(&mut dial, (3000, 0.23)).unwrap());
    }

    /// When a drive has answered that begins at `now`: what it cached lies somewhere else than where it belongs.
    fn answered(cached: &mut Vec<u64>, dir: smrlab_units::Dir, lba: u64, now: u64) -> u64 {
        match dir {
            smrlab_units::Dir::Write => {
                cached.retain(|c| *c != lba);
                cached.push(lba);
                now + 1000
            }
            smrlab_units::Dir::Read => {
                passes(lba as f64 / 1000.0 + if cached.contains(&lba) { 0.4 } else { 0.0 }, now)
            }
        }
    }

    /// Asks of a drive that begins to bring pieces home after a second without a request and takes half a second for each; `first` says
    /// which of those that are not home is next, or that all come home at once. It is handed on with two places and their own angles.
    fn ask<T>(
        first: fn(&[u64]) -> usize,
        question: impl FnOnce(&Pausing, &mut Dial<'_>, [Spot; 2]) -> T,
    ) -> T {
        let (mut cached, mut quiet_since) = (Vec::<u64>::new(), 0);
        let mut target = Fake::new(1 << 20, |dir, lba, _, now| {
            let done = (now - quiet_since).saturating_sub(1_000_000_000) / 500_000_000;
            for _ in 0..(done as usize).min(cached.len()) {
                match first(&cached) {
                    usize::MAX => cached.clear(),
                    one => drop(cached.remove(one)),
                }
                if cached.is_empty() {
                    break;
                }
            }
            quiet_since = answered(&mut cached, dir, lba, now);
            quiet_since
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        let idle = Idle { after_s: 0.0, band_s: 0.0, piece: 0, order: None };
        let pausing = Pausing { slack: 0.02, rest: 10.0, idle };
        question(&pausing, &mut dial, [104, 208].map(|lba| (lba, lba as f64 / 1000.0)))
    }

    /// Two pieces, one of which comes home first: the oldest, the newest, the one that lies in front; or both at once.
    #[test]
    fn the_piece_that_is_home_first_tells_the_order() {
        type First = fn(&[u64]) -> usize;
        let orders: [(First, Option<Order>); 4] = [
            (|_| 0, Some(Order::Oldest)),
            (|cached| cached.len() - 1, Some(Order::Newest)),
            (|cached| usize::from(cached[0] > cached[cached.len() - 1]), Some(Order::ByPlace)),
            (|_| usize::MAX, None),
        ];
        for (first, order) in orders {
            ask(first, |pausing, dial, spots| assert_eq!(pausing.order(dial, spots, 1.7).unwrap(), order));
        }
    }

    #[test]
    fn the_shortest_rest_is_found_as_exactly_as_asked() {
        let near = |found: Option<f64>, truth: f64| found.is_some_and(|s| s >= truth && s < truth * 1.0021);
        ask(
            |_| 0,
            |pausing, dial, [a, b]| {
                let one = pausing.least(dial, &[a], FINE).unwrap();
                assert!(near(one, 1.5), "{one:?}");
                let both = pausing.least(dial, &[a, b], FINE).unwrap();
                assert!(near(both, 2.0), "{both:?}");
                assert_eq!(pausing.order(dial, [a, b], 1.7).unwrap(), Some(Order::Oldest));
                assert_eq!(pausing.order(dial, [a, b], 2.1).unwrap(), None, "both are home");
            },
        );
    }

    const BAND: u64 = 520;

    /// What is found of bands of 520 blocks of a drive that begins to clean after a second, up to `late` ms later, and then takes 20 ms for
    /// each band and as much of half a second as lies behind the first piece in it; and what cleaning a piece costs, in revolutions.
    fn in_bands(late: u64, start: u64) -> (Option<BandSize>, f64) {
        let (mut cached, mut quiet_since, mut rng) =
            (Vec::<u64>::new(), 0, smrlab_units::rng::Rng::new(start));
        let mut target = Fake::new(100 * BAND, move |dir, lba, _, mut now| {
            let mut at = quiet_since + 1_000_000_000 + rng.below(1_000_000 * late + 1);
            while let Some(first) = cached.first().filter(|_| at < now).map(|lba| lba / BAND) {
                let behind = cached.iter().filter(|c| *c / BAND == first).map(|c| BAND - c % BAND).max();
                at += 20_000_000 + 500_000_000 * behind.unwrap_or(0) / BAND;
                cached.retain(|c| c / BAND != first);
                // It is waited for.
                now = now.max(at);
            }
            quiet_since = answered(&mut cached, dir, lba, now);
            quiet_since
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        let idle = Idle { after_s: 1.0, band_s: 0.3, piece: 0, order: None };
        let pausing = Pausing { slack: 0.02, rest: 10.0, idle };
        let view = View::new(&dial, None);
        let cost = pausing.cost(&mut dial, start).unwrap().unwrap().0;
        (pausing.band(&mut dial, start, view).unwrap(), cost)
    }

    /// Wherever in a band the search begins: with a piece whose band is rewritten as a whole, or only what little lies behind it. There
    /// a drive that begins a little later now and then is waited for by a share of what bands take, not of what this piece takes.
    #[test]
    fn bands_are_found_from_every_place_in_one() {
        for late in [0, 8] {
            for start in [0, 8, 104, 256, 400, 480, 496, 504] {
                let (found, cost) = in_bands(late, 5 * BAND + start);
                let seen = found.map(|b| (b.blocks, b.end, b.spread));
                assert_eq!(seen, Some((BAND, 7 * BAND, 8.0)), "{late} ms, from {start} on");
                // The second band from its second piece on; a read that waits for four turns at most is not seen to.
                let took = found.map_or(0.0, |b| b.rewrite_s);
                assert!((0.465..0.535).contains(&took), "{late} ms, from {start} on: {took} s");
                let truth = 2.0 + 50.0 * (BAND - start) as f64 / BAND as f64;
                assert!((-2.5..4.5).contains(&(truth - cost)), "{late} ms: {cost} turns for {truth}");
            }
        }
    }
}
