//! Zones of drives whose tracks follow each other too closely for a single boundary to show: no lost revolution, and a skew
//! below what one look tells. Over many tracks it adds up.
//!
//! A track of `n` blocks takes `1 + skew` revolutions from its start to the next one's, so that angles over long distances
//! tell `n / (1 + skew)`. One such number fits any `n`; but tracks have whole numbers of blocks everywhere on the drive, and
//! only one skew makes whole numbers of all (as the lines of a vernier meet in one place). Where the slope changes, a zone
//! ends: after a whole number of tracks, which the two lines through the angles on both sides tell.

use super::tracks::sectors_near;
use crate::dial::Dial;
use crate::stats::{median, median_angle, turn, wrap};
use crate::{ProbeError, Result};

/// Places on the drive at which the skew is looked for.
const PLACES: u64 = 12;
/// Tracks over which a slope is measured.
const LONG: u64 = 4096;
/// The largest skew that may have been overlooked, in revolutions.
const MOST: f64 = 0.035;
/// Fewer tracks than these are not told from each other.
const FEW: u64 = 32;
/// Places on each side of a zone's end from which it is told.
const MOST_PLACES: u64 = 128;
/// Tracks before a block that is looked at where others are, too: a slope that is another one by chance leads to the same
/// angle at one distance, but not at all of them.
const BEFORE: [u64; 4] = [0, 23, 151, 1009];
/// Tracks from one block to the next where many are read: the head has some time for the way back.
const APART: f64 = 1.6;
/// What a disk turns while a head goes to a track nearby, more or less.
const SOON: f64 = 0.25;

/// Tracks of `usable` blocks each from block `first` on.
#[derive(Clone, Copy, Debug)]
struct TrackStretch {
    first: u64,
    usable: u64,
    skew: f64,
}

impl TrackStretch {
    /// The angle of a block's end, in revolutions from where the first track starts; whole ones are left out.
    fn angle(&self, lba: u64) -> f64 {
        let at = lba - self.first;
        (at / self.usable) as f64 * self.skew + (at % self.usable + 1) as f64 / self.usable as f64
    }

    /// Where track `n` starts.
    fn start(&self, n: u64) -> u64 {
        self.first + n * self.usable
    }
}

/// A zone: blocks on a track, tracks, the block behind it.
pub(super) type Found = (u64, u64, u64);

/// What such a drive does not tell.
pub(super) const UNTOLD: &str = "no track boundary shows by itself: tracks were counted from the skew that adds up over \
     many, so that changes of surface like other steps, slipped sectors and spare ones are not told";

/// See the [module](self).
pub(super) struct Lines {
    /// From a track's start to the next one's, in revolutions over a whole one.
    pub skew: f64,
    /// Blocks on a track of the zone to come, where the last one's end told them.
    next: Option<u64>,
    /// When the period was last taken anew, in seconds.
    tuned: f64,
}

impl Lines {
    /// With the skew of zones found before.
    pub(super) fn known(skew: f64) -> Self {
        Self { skew, next: None, tuned: 0.0 }
    }

    /// Finds the skew from slopes all over the drive.
    ///
    /// # Errors
    /// The target's, and [`ProbeError::Unclear`] where no skew or more than one fits.
    pub(super) fn find(dial: &mut Dial<'_>) -> Result<Self> {
        let blocks = dial.blocks();
        let mut each = Vec::new();
        for i in 0..PLACES {
            dial.share(i as f64 / PLACES as f64);
            let at = blocks * (2 * i + 1) / (2 * PLACES);
            let near = sectors_near(dial, at)?;
            let (turn, tracks) = blocks_a_turn(dial, at, near, blocks / PLACES / 2)?;
            // A zone that ends too early leaves the slope too uncertain.
            if tracks as f64 > 0.2 * near {
                each.push(turn);
            }
        }
        vernier(&each).map(Self::known).ok_or_else(|| {
            ProbeError::Unclear(
                "no track boundary shows, and no skew that adds up over many tracks: all data is on one, or all \
                 tracks are equally long"
                    .to_owned(),
            )
        })
    }

    /// The zone from `first`, the start of a track; `near`: about how many blocks a revolution has there.
    ///
    /// # Errors
    /// The target's, and [`ProbeError::Unclear`] where the zone has too few tracks.
    pub(super) fn zone(&mut self, dial: &mut Dial<'_>, first: u64, near: f64) -> Result<Found> {
        let end = dial.blocks();
        let usable = match self.next.take() {
            Some(n) => n,
            None => self.whole(dial, first, near)?,
        };
        let mut run = TrackStretch { first, usable, skew: self.skew };
        let tracks = (end - first).div_ceil(usable);
        // The longer that is ago, the more exact the period is anyway.
        if dial.now().as_secs_f64() > 1.5 * self.tuned {
            dial.tune()?;
            self.tuned = dial.now().as_secs_f64();
        }
        let mut origin = offset(dial, &run, first)?;
        let (mut good, mut step, mut from) = (0, LONG / 2, 0);
        loop {
            let bad = (good + step).min(tracks);
            let last = if bad == tracks { end - 1 } else { run.start(bad) };
            if let Some(off) = on_line(dial, &run, origin, run.start(good), last)? {
                // The further, the more exact; from slopes it is known over fewer.
                if bad - from > LONG {
                    run.skew += off / (bad - from) as f64;
                    self.skew = run.skew;
                }
                if bad == tracks {
                    return Ok((usable, tracks, end));
                }
                (good, step) = (bad, bad);
                continue;
            }
            let (lo, hi) = between(dial, &run, origin, good, bad)?;
            let next = self.whole(dial, run.start(hi), usable as f64)?;
            if next != usable {
                let tracks = ends(dial, &run, origin, next, [lo, hi])?;
                self.next = Some(next);
                return Ok((usable, tracks, run.start(tracks)));
            }
            // A doubtful look is no end; the line is taken anew from there.
            (good, step, from) = (hi, hi, hi);
            origin = offset(dial, &run, run.start(hi))?;
        }
    }

    /// Blocks on a track from `at` on.
    fn whole(&self, dial: &mut Dial<'_>, at: u64, near: f64) -> Result<u64> {
        let room = dial.blocks() - at;
        let (mut usable, mut most) = (0.0f64, 0);
        for _ in 0..3 {
            // One that came much too late ends it too early.
            let (turn, tracks) = blocks_a_turn(dial, at, near, room)?;
            if tracks > most {
                (usable, most) = (turn * (1.0 + self.skew), tracks);
            }
            if most >= LONG {
                break;
            }
        }
        if most >= FEW / 2 && (usable - usable.round()).abs() < 0.25 {
            return Ok(usable.round() as u64);
        }
        Err(ProbeError::Unclear(format!(
            "from LBA {at} on tracks cannot be counted: no boundary shows, and the zone has few of them"
        )))
    }
}

/// How far the angle of a block may be from where it is expected.
fn tolerance(dial: &Dial<'_>) -> f64 {
    0.02 + 6.0 * dial.noise()
}

/// Blocks to the `n`th place before another: backwards, so that nothing is read ahead of.
fn back(run: &TrackStretch, n: u64) -> u64 {
    (n as f64 * APART * run.usable as f64) as u64
}

/// The block from `lba` on that the head comes to soon.
fn soon(dial: &Dial<'_>, run: &TrackStretch, origin: f64, lba: u64) -> u64 {
    let wait = turn(dial.angle_at(dial.now()) + SOON - origin - run.angle(lba));
    lba + (wait * run.usable as f64) as u64
}

/// The angle of a block less what the run says.
fn off(dial: &mut Dial<'_>, run: &TrackStretch, lba: u64) -> Result<f64> {
    Ok(wrap(dial.angle(lba)? - run.angle(lba)))
}

/// The same of the block and some behind it: their median.
fn offset(dial: &mut Dial<'_>, run: &TrackStretch, lba: u64) -> Result<f64> {
    let last = dial.blocks() - 1;
    let offs = (0..5)
        .rev()
        .map(|i| off(dial, run, (lba + back(run, i)).min(last)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(median_angle(&offs))
}

/// Whether blocks behind `good` up to `lba` are where the run goes on; about how far they deviate.
fn on_line(dial: &mut Dial<'_>, run: &TrackStretch, origin: f64, good: u64, lba: u64) -> Result<Option<f64>> {
    let limit = tolerance(dial);
    let mut offs = Vec::new();
    for tracks in BEFORE {
        let Some(at) = lba.checked_sub(tracks * run.usable).filter(|at| *at > good) else { break };
        // Single ones may have come much too late.
        for tries in 0.. {
            let off = wrap(off(dial, run, (at - back(run, tries)).max(good))? - origin);
            if off.abs() <= limit {
                offs.push(off);
                break;
            }
            if tries == 2 {
                return Ok(None);
            }
        }
    }
    Ok(Some(median(&offs)))
}

/// Two tracks not far from each other, of which the first is on the line and the second is not.
fn between(
    dial: &mut Dial<'_>,
    run: &TrackStretch,
    origin: f64,
    good: u64,
    mut bad: u64,
) -> Result<(u64, u64)> {
    loop {
        let mut lo = good;
        while bad - lo > 8 {
            let mid = lo + (bad - lo) / 2;
            if on_line(dial, run, origin, run.start(good), run.start(mid))?.is_some() {
                lo = mid;
            } else {
                bad = mid;
            }
        }
        // One that came much too late may have been where it was expected by chance.
        if lo == good || on_line(dial, run, origin, run.start(good), run.start(lo))?.is_some() {
            return Ok((lo, bad));
        }
        bad = lo;
    }
}

/// After how many tracks the run goes over to tracks of `next` blocks: before track `bad`, and not much before `good`, which
/// was near enough to the run's line. The lines before and behind meet there.
fn ends(
    dial: &mut Dial<'_>,
    run: &TrackStretch,
    origin: f64,
    next: u64,
    [good, bad]: [u64; 2],
) -> Result<u64> {
    // By so much a boundary one track later turns what is behind it.
    let each = (1.0 + run.skew) * (1.0 - run.usable as f64 / next as f64);
    let doubt = (1.5 * tolerance(dial) / each.abs()).ceil() as u64 + 8;
    let before = good.saturating_sub(doubt);
    let guess = (before + bad) / 2;
    let behind = TrackStretch { first: run.start(guess), usable: next, skew: run.skew };
    // The angle where that starts.
    let start = origin + guess as f64 * run.skew;
    let room =
        [before, (dial.blocks() - run.start(bad)) / next].map(|tracks| tracks.saturating_sub(2) / 2 + 1);
    let mut offs = [Vec::new(), Vec::new()];
    let mut want = dial.repeats(0.06 * each.abs(), 256);
    loop {
        // Backwards, so that nothing is read ahead of; near the boundary, so that errors of the skew do not add up.
        let steps = room.map(|room| room.min(want).min(MOST_PLACES));
        for i in offs[0].len() as u64..want {
            let first = run.start((before - 2 * (i % steps[0])).saturating_sub(1));
            let first = soon(dial, run, origin, first);
            offs[0].push(off(dial, run, first)?);
            let second = run.start(bad) + 2 * (steps[1] - 1 - i % steps[1]) * next;
            let second = soon(dial, &behind, start, second).min(dial.blocks() - 1);
            offs[1].push(wrap(off(dial, &behind, second)? - guess as f64 * run.skew));
        }
        let [a, b] = offs.each_ref().map(|o| dial.earliest(o));
        let tracks = guess as f64 + wrap(b - a) / each;
        if (tracks - tracks.round()).abs() < 0.25 || want >= 1024 {
            return Ok(tracks.round().clamp(1.0, bad as f64) as u64);
        }
        want *= 2;
    }
}

/// Blocks in a revolution from `at` on, over as many tracks as the zone and `room` blocks let it, and how many these were.
/// Distances double, so that how many revolutions lie between is known from the step before.
fn blocks_a_turn(dial: &mut Dial<'_>, at: u64, near: f64, room: u64) -> Result<(f64, u64)> {
    let reference = dial.angle(at)?;
    let (mut slope, mut tracks) = (1.0 / near, 0);
    let mut next = 1;
    while next <= LONG {
        let d = (next as f64 * near) as u64;
        if d >= room {
            break;
        }
        let mut found = None;
        for i in 0..3 {
            let d = d - i;
            let off = wrap(dial.angle(at + d)? - reference - d as f64 * slope);
            // The first step is known to a few per cent.
            if off.abs() < if tracks < 8 { 0.1 } else { tolerance(dial) } {
                found = Some(off / d as f64);
                break;
            }
        }
        let Some(more) = found else { break };
        slope += more;
        (tracks, next) = (next, 2 * next);
    }
    // Few tracks need angles that are the more exact.
    let repeats = dial.repeats(0.05 * tracks as f64 / near, 200);
    if repeats > 3 && tracks > 0 {
        let d = (tracks as f64 * near) as u64;
        slope += wrap(dial.between(at, at + d, repeats)? - d as f64 * slope) / d as f64;
    }
    Ok((1.0 / slope, tracks))
}

/// How near to a whole number is near enough.
const WHOLE: f64 = 0.06;
/// The share of drives without any skew at which one may be found all the same.
const CHANCE: f64 = 0.03;

/// How many of so many skews make whole numbers of three quarters of `places` numbers by chance.
fn by_chance(places: usize, skews: f64) -> f64 {
    let (n, hits) = (places as i32, (places * 3 / 4 + 1) as i32);
    let ways = |k: i32| (1..=k).map(|i| f64::from(n - k + i) / f64::from(i)).product::<f64>();
    let p = 2.0 * WHOLE;
    skews * (hits..=n).map(|k| ways(k) * p.powi(k) * (1.0 - p).powi(n - k)).sum::<f64>()
}

/// The skew that makes whole numbers of all the blocks a turn; the least of several. `None`: there is none, they are too
/// much alike to tell, or so few that one is sure to fit.
fn vernier(each: &[f64]) -> Option<f64> {
    let largest = each.iter().copied().fold(0.0, f64::max);
    // A quarter of the places may have been misled.
    let misfit = |skew: f64| {
        let mut off: Vec<f64> =
            each.iter().map(|n| n * (1.0 + skew)).map(|n| (n - n.round()).abs()).collect();
        off.sort_unstable_by(f64::total_cmp);
        off.get(off.len() * 3 / 4).copied().unwrap_or(1.0)
    };
    let step = 0.01 / largest;
    let steps = (MOST / step) as i64;
    // Neighbours within a window of what is near enough see the same numbers.
    if by_chance(each.len(), 2.0 * MOST * largest / (2.0 * WHOLE)) > CHANCE {
        return None;
    }
    let near = |i: &i64| i.abs();
    let mut fits: Vec<i64> = (-steps..=steps).filter(|i| misfit(*i as f64 * step) < WHOLE).collect();
    fits.sort_by_key(near);
    let first = *fits.first()?;
    // Its neighbours fit, too: the best of them.
    let best = (first - 60..=first + 60)
        .min_by(|a, b| misfit(*a as f64 * step).total_cmp(&misfit(*b as f64 * step)))
        .map(|i| i as f64 * step)?;
    let mut whole: Vec<u64> = each.iter().map(|n| (n * (1.0 + best)).round() as u64).collect();
    let skew = median(&each.iter().zip(&whole).map(|(n, whole)| *whole as f64 / n - 1.0).collect::<Vec<_>>());
    whole.sort_unstable();
    whole.dedup();
    (whole.len() > 2).then_some(skew)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN, passes};

    #[test]
    fn one_skew_makes_whole_numbers_of_all() {
        let turns = |sizes: &[u64], skew: f64| {
            sizes.iter().map(|n| *n as f64 / (1.0 + skew) + 0.004).collect::<Vec<_>>()
        };
        let sizes = [3832, 3760, 3608, 3400, 3144, 2904, 2640, 2400, 2136, 2000];
        for skew in [0.001, -0.002, 0.0] {
            let found = vernier(&turns(&sizes, skew)).unwrap();
            assert!((found - skew).abs() < 3e-6, "{found} for {skew}");
        }
        assert_eq!(vernier(&turns(&[3832, 3760], 0.001)), None, "two sizes fit several skews");
        let mut odd = turns(&sizes, 0.001);
        odd.iter_mut().enumerate().for_each(|(i, n)| *n += 0.3 * i as f64 % 1.0);
        assert_eq!(vernier(&odd), None, "no skew fits");
        assert_eq!(vernier(&turns(&sizes[..4], 0.001)), None, "one fits any four numbers");
        let mut misled = turns(&sizes, 0.001);
        (misled[2], misled[7]) = (misled[2] + 0.4, misled[7] - 0.3);
        assert!((vernier(&misled).unwrap() - 0.001).abs() < 3e-6, "two of ten were misled");
    }

    /// Of several skews that fit the least is meant, of whichever sign: all of 1000 blocks fit each thousandth.
    #[test]
    fn the_least_skew_that_fits_is_found() {
        let sizes = [4000.0, 3800.0, 3600.0, 3400.0, 3200.0, 3000.0, 2800.0, 2600.0, 2400.0, 2200.0];
        for skew in [0.0004, -0.0004, 0.0, 0.002, -0.002] {
            let turns = sizes.map(|n: f64| n / (1.0 + skew));
            let found = vernier(&turns).unwrap();
            assert!((found - skew).abs() < 3e-6, "{found} for {skew}");
        }
    }

    /// Half a step beyond the last one that is near enough from the largest skew nothing fits, and half a step before it that skew does:
    /// on both sides.
    #[test]
    fn the_largest_skew_is_looked_for_on_both_sides() {
        let sizes =
            [4001.0, 3989.0, 3967.0, 3697.0, 3511.0, 3307.0, 3109.0, 2903.0, 2707.0, 2503.0, 2311.0, 2111.0];
        // Of the ten best of twelve the worst is that of the third size.
        let near = WHOLE / 0.01 * sizes[0] / sizes[2];
        for sign in [1.0, -1.0] {
            for (beyond, fits) in [(near - 0.5, true), (near + 0.5, false)] {
                // By so many steps, of a hundredth of the largest number there is, the true skew is more than none.
                let largest = |last: f64| sizes[0] - sign * 0.01 * (last + beyond);
                let last = (0..20_000).map(f64::from).find(|i| (MOST * 100.0 * largest(*i)).floor() <= *i);
                let largest = largest(last.unwrap());
                let skew = sizes[0] / largest - 1.0;
                let found = vernier(&sizes.map(|n| n / (1.0 + skew)));
                let near = found.is_some_and(|found| (found - skew).abs() < 3e-6);
                assert_eq!(near, fits, "{found:?} for {skew}");
            }
        }
    }

    /// Sixteen tracks of a drive's last zone are enough to count their blocks, fewer are not.
    #[test]
    fn few_tracks_are_counted_where_there_are_sixteen() {
        let run = TrackStretch { first: 0, usable: 100, skew: 0.002 };
        for tracks in [1, 8, 15, 16, 17, 31, 32, 33, 500] {
            let mut target = Fake::new(100 * tracks, |_, lba, _, now| passes(run.angle(lba), now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let found = Lines::known(0.002).whole(&mut dial, 0, 99.8);
            match found {
                Ok(usable) => assert!(tracks >= 16 && usable == 100, "{usable} of {tracks} tracks"),
                Err(e) => {
                    assert!(tracks < 16 && e.to_string().contains("cannot be counted"), "{tracks}: {e}")
                }
            }
        }
    }

    /// The same where other zones lie before: what is left behind the place counts, and nothing behind the drive's end is asked for.
    #[test]
    fn tracks_are_counted_up_to_the_end_of_the_drive() {
        let run = TrackStretch { first: 5000, usable: 100, skew: 0.002 };
        for tracks in [1, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 500] {
            let mut target = Fake::new(5000 + 100 * tracks, |_, lba, _, now| passes(run.angle(lba), now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let found = Lines::known(0.002).whole(&mut dial, 5000, 99.8);
            assert_eq!(found.ok(), (tracks >= 16).then_some(100), "{tracks} tracks");
        }
    }

    /// Tracks of 100 blocks with a skew of 0.002; from track 3000 on everything lies 0.1 revolutions further, as behind slipped sectors.
    /// That is no end of the zone: the line is taken up again behind it, and from there on all is on it.
    #[test]
    fn a_line_that_moves_aside_is_taken_up_again() {
        let run = TrackStretch { first: 0, usable: 100, skew: 0.002 };
        // What is known of the skew becomes exact over the tracks since then.
        for skew in [0.002, 0.002_001, 0.001_999] {
            let mut target = Fake::new(100 * 9000, |_, lba, _, now| {
                passes(run.angle(lba) + if lba < 300_000 { 0.0 } else { 0.1 }, now)
            });
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let mut lines = Lines { skew, next: None, tuned: 1e9 };
            assert_eq!(lines.zone(&mut dial, 0, 99.8).unwrap(), (100, 9000, 900_000));
            assert!((lines.skew - 0.002).abs() < 5e-8, "{} from {skew}", lines.skew);
            assert!(dial.quality().requests < 3000, "{} requests", dial.quality().requests);
        }
    }

    /// Tracks of 50 blocks up to the drive's end: what is measured over as many blocks as are left does not look at the one behind them.
    #[test]
    fn revolutions_are_measured_within_the_room_there_is() {
        for tracks in 1..40 {
            let mut target = Fake::new(2000, |_, lba, _, now| passes((lba + 1) as f64 / 50.0, now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let room = 50 * tracks;
            let (turn, over) = blocks_a_turn(&mut dial, 2000 - room, 50.0, room).unwrap();
            let most = (tracks - 1).checked_ilog2().map_or(0, |n| 1 << n);
            assert!((turn - 50.0).abs() < 1e-6 && over == most, "{tracks} tracks: {turn} over {over}");
        }
    }
}
