//! Recording zones: where tracks stop having the same number of sectors, in few steps a zone.

use super::Zone;
use super::lines::Lines;
use super::tracks::{Boundary, Jumps, boundary_after, exact, sectors_near};
use crate::dial::Dial;
use crate::stats::wrap;
use crate::{ProbeError, Result};

/// Finds zones one after the other; remembers what the last one was like.
pub(super) struct Finder {
    pub jumps: Jumps,
    /// Sectors in a revolution near the front, about.
    sectors: f64,
    zones: Vec<Zone>,
    /// Where spare sectors are in doubt, they stay so.
    quick: bool,
    /// Where no boundary shows by itself.
    lines: Option<Lines>,
}

/// A zone whose first tracks were measured.
struct Start {
    first: u64,
    /// Blocks on a track.
    usable: u64,
    /// Sectors in a revolution, spares included.
    sectors: f64,
}

impl Finder {
    /// Goes on behind `known` zones.
    pub(super) fn new(dial: &mut Dial<'_>, known: &[Zone], quick: bool) -> Result<Self> {
        let from = known.last().map_or(0, |z| z.end());
        let sectors = match known.last() {
            Some(z) => z.sectors as f64,
            None => sectors_near(dial, from)?,
        };
        let mut jumps = Jumps::default();
        let front = known.first().map_or(sectors, |z| z.sectors as f64);
        let mut lines = None;
        if boundary_after(dial, 0, front, dial.blocks(), &jumps)?.is_none() {
            dial.set_across(true);
            if boundary_after(dial, 0, front, dial.blocks(), &jumps)?.is_none() {
                dial.set_across(false);
                lines = Some(match known.first() {
                    Some(z) => Lines::known(z.jump),
                    None => Lines::find(dial)?,
                });
            }
        }
        for z in known {
            jumps.learn(z.jump, 0.01 + 4.0 * dial.noise());
        }
        Ok(Self { jumps, sectors, zones: known.to_vec(), quick, lines })
    }

    /// Whether tracks are counted where no boundary shows by itself.
    pub(super) fn counted(&self) -> bool {
        self.lines.is_some()
    }

    /// The zones found.
    pub(super) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Finds the next zone; `false` at the end of the drive.
    pub(super) fn next(&mut self, dial: &mut Dial<'_>) -> Result<bool> {
        let first = self.zones.last().map_or(0, Zone::end);
        let blocks = dial.blocks();
        if first >= blocks {
            return Ok(false);
        }
        dial.share(first as f64 / blocks as f64);
        if let Some(lines) = &mut self.lines {
            let (usable, tracks, end) = lines.zone(dial, first, self.sectors)?;
            self.jumps = Jumps(vec![lines.skew]);
            self.sectors = usable as f64;
            self.push(first, tracks, end, &Start { first, usable, sectors: self.sectors });
            return Ok(end < blocks);
        }
        let Some(start) = self.start(dial, first)? else {
            self.remainder(first, blocks)?;
            return Ok(false);
        };
        let (tracks, end) = self.last_track(dial, &start)?;
        self.push(first, tracks, end, &start);
        self.sectors = start.sectors;
        Ok(end < blocks)
    }

    /// What is left is less than a track that ends: it counts as one track of the last zone.
    fn remainder(&mut self, first: u64, blocks: u64) -> Result<()> {
        let Some(last) = self.zones.last_mut() else {
            return Err(ProbeError::Unclear(
                "no track boundary shows: tracks follow each other without skew, or all data is on one"
                    .to_owned(),
            ));
        };
        last.tracks += 1;
        last.blocks += blocks - first;
        Ok(())
    }

    /// A zone like the one before is its continuation: a doubtful measurement had cut it.
    fn push(&mut self, first: u64, tracks: u64, end: u64, s: &Start) {
        let jump = self.jumps.0.first().copied().unwrap_or(0.0);
        let slips = (tracks * s.usable).saturating_sub(end - first);
        if let Some(z) = self.zones.last_mut().filter(|z| z.usable == s.usable) {
            z.tracks += tracks;
            z.blocks += end - first;
            z.slips += slips;
            return;
        }
        let first_track = self.zones.last().map_or(0, |z| z.first_track + z.tracks);
        self.zones.push(Zone {
            first_lba: first,
            blocks: end - first,
            first_track,
            tracks,
            usable: s.usable,
            sectors: s.sectors.round() as u64,
            sectors_exact: s.sectors,
            slips,
            jump,
        });
    }

    /// About how many sectors a revolution has from `first` on, the start of a track: over less than half of what it was
    /// before, which is not likely to be more than a track.
    fn sectors_from(&self, dial: &mut Dial<'_>, first: u64) -> Result<f64> {
        let steps = (self.sectors * 0.4) as u64;
        if steps < 2 || first + steps >= dial.blocks() {
            return Ok(self.sectors);
        }
        let turned = dial.between(first, first + steps, dial.repeats(0.003, 16))?;
        let turned = if turned < -0.1 { turned + 1.0 } else { turned };
        Ok(if turned > 0.1 { steps as f64 / turned } else { self.sectors })
    }

    /// The end of the track from `at`, if it lies `length` blocks behind, `window` more or less: in fewer looks than where
    /// nothing is known of it. Its jump is one of those known.
    fn told(&self, dial: &mut Dial<'_>, at: u64, length: u64, window: u64) -> Result<Option<Boundary>> {
        if self.jumps.0.is_empty() {
            return Ok(None);
        }
        // Of tracks that are shorter than the window it may be one that lies before.
        let found = exact(dial, at + length, window, length as f64, &self.jumps)?.filter(|lba| *lba > at);
        Ok(found.zip(self.jumps.0.first()).map(|(lba, &jump)| Boundary { lba, jump }))
    }

    /// Measures the first tracks from `first`, which is the start of a track. `None`: no boundary up to the end.
    fn start(&mut self, dial: &mut Dial<'_>, first: u64) -> Result<Option<Start>> {
        let end = dial.blocks();
        let slack = 0.01 + 4.0 * dial.noise();
        let mut at = first;
        let mut tracks: Vec<(u64, Boundary)> = Vec::new();
        // Zones differ by little from the one before.
        let last = self.zones.last().map(|z| z.usable);
        let mut guess = match last {
            Some(length) => self.told(dial, at, length, length / 256 + 4)?,
            None => None,
        };
        let mut near = self.sectors;
        if guess.is_none() {
            near = self.sectors_from(dial, first)?;
            // Spare sectors make a track shorter than the turn, which is known to a per cent.
            guess = self.told(dial, at, near.round() as u64, near as u64 / 32)?;
        }
        // Where completions may come much too late, two tracks have to agree.
        let most = if dial.noise() > 1e-4 { 8 } else { 3 };
        for _ in 0..most {
            let found = match (guess.take(), tracks.last()) {
                (None, Some(t)) => self.told(dial, at, length(t), 4)?,
                (guess, _) => guess,
            };
            let found = match found {
                Some(b) => Some(b),
                None => boundary_after(dial, at, near, end, &self.jumps)?,
            };
            let Some(b) = found else { break };
            tracks.push((at, b));
            self.jumps.learn(b.jump, slack);
            at = b.lba;
            if most > 3 && tracks.len() >= 3 && full_track(&tracks, 0).is_some() || alike(&tracks) {
                break;
            }
        }
        let full = full_track(&tracks, 0).or(full_track(&tracks, 4)).or(tracks.first());
        let Some(&(start, b)) = full else { return Ok(None) };
        let usable = b.lba - start;
        let turns = if self.quick { &TURNS[..1] } else { &TURNS };
        let sectors = full_turn(dial, start, b.lba, turns)?;
        Ok(Some(Start { first, usable, sectors }))
    }

    /// How many tracks the zone has, and where it ends. Tests tracks at distances that double, then halves the gap: a
    /// track belongs to the zone if it begins where it must and is as long as the others.
    fn last_track(&mut self, dial: &mut Dial<'_>, s: &Start) -> Result<(u64, u64)> {
        let end = dial.blocks();
        let most = (end - s.first).div_ceil(s.usable);
        let mut good = (0u64, s.first);
        let mut bad = most;
        if let Some(guess) = self.zones.last().map(|z| z.tracks).filter(|n| *n > 1 && *n < most) {
            if let Some(at) = self.belongs(dial, s, good, guess - 1)? {
                good = (guess - 1, at);
                if self.belongs(dial, s, good, guess)?.is_none() {
                    bad = guess;
                }
            } else {
                bad = guess - 1;
            }
        }
        let mut step = 1;
        while bad == most && good.0 + step < most {
            match self.belongs(dial, s, good, good.0 + step)? {
                Some(at) => good = (good.0 + step, at),
                None => bad = good.0 + step,
            }
            step *= 2;
        }
        while bad - good.0 > 1 {
            let mid = good.0 + (bad - good.0) / 2;
            match self.belongs(dial, s, good, mid)? {
                Some(at) => good = (mid, at),
                None => bad = mid,
            }
        }
        let tracks = good.0 + 1;
        if good.1 + s.usable >= end {
            return Ok((tracks, end));
        }
        let window = slip_window(1);
        let next = exact(dial, good.1 + s.usable, window, s.sectors, &self.jumps)?.filter(|b| *b > good.1);
        Ok((tracks, next.unwrap_or(good.1 + s.usable).min(end)))
    }

    /// Where track `n` of the zone begins, if it does: it and the next boundary are where they must be, but for slipped
    /// sectors. `from`: the nearest track before that is known to belong.
    fn belongs(&mut self, dial: &mut Dial<'_>, s: &Start, from: (u64, u64), n: u64) -> Result<Option<u64>> {
        let end = dial.blocks();
        let expected = from.1 + (n - from.0) * s.usable;
        if expected >= end {
            return Ok(None);
        }
        // More than this many slipped sectors show as a new zone of the same kind, and are joined to it again.
        let window = slip_window(n - from.0).min(s.usable / 8);
        let Some(at) = exact(dial, expected, window, s.sectors, &self.jumps)? else { return Ok(None) };
        if at > expected {
            return Ok(None);
        }
        if at + s.usable >= end {
            return Ok(Some(at));
        }
        let next = exact(dial, at + s.usable, slip_window(1), s.sectors, &self.jumps)?;
        Ok(next.filter(|b| (at + 1..=at + s.usable).contains(b)).map(|_| at))
    }
}

/// Whether the first two tracks are equally long.
fn alike(tracks: &[(u64, Boundary)]) -> bool {
    tracks.len() == 2 && length(&tracks[0]) == length(&tracks[1])
}

fn length(&(start, end): &(u64, Boundary)) -> u64 {
    end.lba - start
}

/// A full track among the first ones of a zone, of which another is as long but for `slack` blocks: slipped sectors make some
/// a little shorter, a boundary that was missed by a block makes one longer, and the zone may end after any of them.
fn full_track(tracks: &[(u64, Boundary)], slack: u64) -> Option<&(u64, Boundary)> {
    let twice = |t: &(u64, Boundary)| {
        tracks.iter().filter(|other| length(other).abs_diff(length(t)) <= slack).count() > 1
    };
    tracks.iter().filter(|t| twice(t)).max_by_key(|t| length(t))
}

/// Slipped sectors to be reckoned with over so many tracks.
fn slip_window(tracks: u64) -> u64 {
    2 + tracks / 256
}

/// How often a full turn is measured, and where it is in doubt whether it has spare sectors.
const TURNS: [u64; 2] = [12, 36];

fn turn_repeats(dial: &Dial<'_>, usable: u64, most: u64) -> u64 {
    dial.repeats(0.2 / usable as f64, most)
}

/// The error of a full turn, measured in two halves, in revolutions.
pub(super) fn turn_error(dial: &Dial<'_>, usable: u64) -> f64 {
    1.5 * dial.late(turn_repeats(dial, usable, TURNS[0]))
}

/// Sectors in a revolution of the track from `first` up to `next`: what its blocks leave of the turn is spare. Without
/// significant spare it is the blocks themselves.
fn full_turn(dial: &mut Dial<'_>, first: u64, next: u64, turns: &[u64]) -> Result<f64> {
    let usable = next - first;
    let steps = next - 1 - first;
    if steps == 0 {
        return Ok(usable as f64);
    }
    for &most in turns {
        let repeats = turn_repeats(dial, usable, most);
        // In two halves, neither of which is more than half a revolution; all three blocks in turn, so that what the drive's
        // own cache has of them is pushed out at once.
        let blocks = [next - 1, first + steps / 2, first];
        let mut ends = [const { Vec::new() }; 3];
        for _ in 0..repeats {
            for (ends, lba) in ends.iter_mut().zip(blocks) {
                ends.push(dial.angle(lba)?);
            }
        }
        let [last, mid, begin] = ends.map(|e| dial.earliest(&e));
        let turned = |a: f64| if wrap(a) < 0.0 { wrap(a) + 1.0 } else { wrap(a) };
        let share = turned(mid - begin) + turned(last - mid);
        let sectors = steps as f64 / share.max(1e-6);
        let error = 1.5 * dial.late(repeats) * sectors;
        let spare = sectors - usable as f64;
        if spare >= 0.6 + 4.0 * error {
            return Ok(sectors);
        }
        if spare < 0.6 + 1.5 * error {
            break;
        }
    }
    Ok(usable as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN, passes};

    #[test]
    fn a_boundary_that_was_missed_by_a_block_does_not_make_a_zone_of_its_own() {
        let track = |start, lba| (start, Boundary { lba, jump: 0.1 });
        let seen = [track(0, 513), track(513, 1024), track(1024, 1536), track(1536, 2048)];
        assert_eq!(full_track(&seen[..3], 0), None);
        assert_eq!(full_track(&seen, 0).map(length), Some(512));
        assert_eq!(full_track(&seen[..2], 4).map(length), Some(513));
    }

    /// A slipped sector in 256 tracks, and two more.
    #[test]
    fn slipped_sectors_are_looked_for_the_further_the_wider() {
        assert_eq!([1, 255, 256, 2560].map(slip_window), [2, 2, 3, 12]);
    }

    /// Tracks of 100 blocks on which one or two sectors are spare, and on which none is.
    #[test]
    fn a_spare_sector_is_seen() {
        for sectors in [100, 101, 102] {
            let mut target =
                Fake::new(1 << 20, |_, lba, _, now| passes((lba % 100) as f64 / f64::from(sectors), now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            assert_eq!(full_turn(&mut dial, 500, 600, &TURNS).unwrap().round(), f64::from(sectors));
        }
    }

    /// So it is on the shortest tracks; one of a block says nothing.
    #[test]
    fn spare_sectors_of_the_shortest_tracks_are_seen() {
        for usable in 1..6u64 {
            for spare in [0, 1, 2] {
                let sectors = if usable == 1 { 1 } else { usable + spare };
                let mut target = Fake::new(1 << 20, |_, lba, _, now| {
                    passes((lba % usable) as f64 / (usable + spare) as f64, now)
                });
                let mut quiet = Quiet;
                let mut dial = Dial::new(&mut target, &mut quiet);
                dial.set_period(TURN as f64, 0.0);
                let found = full_turn(&mut dial, 5 * usable, 6 * usable, &TURNS).unwrap();
                assert_eq!(found.round(), sectors as f64, "{usable} {spare}");
            }
        }
    }

    /// Ten tracks of 100 blocks and some of 90 with a skew of 0.2, of which the last one is cut: after a block, in the middle, before its last.
    #[test]
    fn a_last_track_that_is_cut_is_a_track() {
        for (whole, cut) in [(5, 1), (5, 45), (5, 89), (1, 40), (8, 0)] {
            let blocks = 1000 + 90 * whole + cut;
            let angle = |lba: u64| match lba {
                ..1000 => 0.2 * (lba / 100) as f64 + (lba % 100 + 1) as f64 / 100.0,
                _ => 0.2 * (10 + (lba - 1000) / 90) as f64 + ((lba - 1000) % 90 + 1) as f64 / 90.0,
            };
            let mut target = Fake::new(blocks, |_, lba, _, now| passes(angle(lba), now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let mut finder = Finder::new(&mut dial, &[], false).unwrap();
            while finder.next(&mut dial).unwrap() {}
            let seen: Vec<_> =
                finder.zones().iter().map(|z| (z.first_lba, z.usable, z.tracks, z.blocks)).collect();
            let tracks = whole + u64::from(cut > 0);
            assert_eq!(seen, [(0, 100, 10, 1000), (1000, 90, tracks, blocks - 1000)], "{whole} and {cut}");
        }
    }

    /// Zones of any tracks, of a few blocks each and of one: what is found is the drive, from its first block to its last, a zone behind the
    /// other, or it is said that it does not show.
    #[test]
    fn zones_are_the_drive_whatever_its_tracks_are() {
        let (mut rng, mut found) = (smrlab_units::rng::Rng::new(3), 0);
        for round in 0..600 {
            let skew = rng.below(40) as f64 / 40.0;
            let kinds: Vec<(u64, u64)> =
                (0..1 + rng.below(3)).map(|_| (1 + rng.below(40), 1 + rng.below(20))).collect();
            let tracks: Vec<u64> = kinds.iter().flat_map(|&(n, usable)| vec![usable; n as usize]).collect();
            let mut angles = Vec::new();
            for (n, &usable) in tracks.iter().enumerate() {
                angles.extend((1..=usable).map(|i| n as f64 * skew + i as f64 / usable as f64));
            }
            let blocks = angles.len() as u64;
            let mut target = Fake::new(blocks, |_, lba, n, now| passes(angles[(lba + n - 1) as usize], now));
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, if round % 3 == 0 { 2e-4 * TURN as f64 } else { 0.0 });
            let Ok(mut finder) = Finder::new(&mut dial, &[], false) else { continue };
            let mut looks = 0;
            let end = loop {
                looks += 1;
                assert!(looks <= blocks + 1, "{kinds:?} {skew}: it comes to an end");
                match finder.next(&mut dial) {
                    Ok(true) => {}
                    end => break end,
                }
            };
            let mut at = 0;
            for zone in finder.zones() {
                assert!(zone.first_lba == at && zone.blocks > 0, "{kinds:?} {skew}: {zone:?}");
                at = zone.end();
            }
            found += u32::from(end.is_ok());
            assert!(end.is_err() || at == blocks, "{kinds:?} {skew}: {at} of {blocks}");
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn a_zone_that_goes_on_is_one() {
        let mut finder =
            Finder { jumps: Jumps::default(), sectors: 100.0, zones: Vec::new(), quick: false, lines: None };
        let of = |usable| Start { first: 0, usable, sectors: usable as f64 };
        finder.push(0, 10, 999, &of(100));
        finder.push(999, 5, 1497, &of(100));
        finder.push(1497, 2, 1677, &of(90));
        finder.push(1677, 4, 1997, &of(80));
        // What is left at the end is a track of the last zone.
        finder.remainder(1997, 2050).unwrap();
        let seen: Vec<_> =
            finder.zones().iter().map(|z| (z.first_track, z.tracks, z.blocks, z.slips)).collect();
        assert_eq!(seen, [(0, 15, 1497, 3), (15, 2, 180, 0), (17, 5, 373, 0)]);
        finder.zones.clear();
        assert!(finder.remainder(0, 50).is_err());
    }
}
