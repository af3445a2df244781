//! Bands of drives that never clean a piece that is written again: the log's oldest pieces are cleaned when it is full, and
//! what goes with them shows.

use super::bands::{BandSize, View, band_end};
use super::fill::{CacheSize, Limit};
use super::moved::{Places, SMALL};
use crate::Result;
use crate::dial::Dial;
use crate::stats::median;

/// A log into which one piece, the filler, is written again and again: its old copies die, but the log grows as long as
/// an older piece lives.
pub(super) struct Tail {
    filler: u64,
    /// Another one, that is written once: what is cleaned after the pieces.
    marker: u64,
    size: u64,
    /// Writes that fill the log.
    fills: u64,
}

impl Tail {
    /// Of a drive that was [drained](drain); `None` where the log does not fill.
    pub(super) fn new(dial: &mut Dial<'_>, places: &Places, cache: CacheSize) -> Result<Option<Self>> {
        let (size, fills) = large(cache);
        let (filler, marker) = (places.native(11).0, places.native(17).0);
        let out = Self { filler, marker, size, fills };
        // Until what others left is cleaned, no two times are alike.
        let mut last = 0.0;
        for _ in 0..24 {
            let Some(waited) = out.cleaned(dial, &[])? else { return Ok(None) };
            if (waited / last - 1.0f64).abs() < 0.02 {
                return Ok(Some(out));
            }
            last = waited;
        }
        Ok(None)
    }

    /// Writes the pieces and the marker, then the filler until the log was full and is clean again: how long was waited for
    /// that, in revolutions.
    fn cleaned(&self, dial: &mut Dial<'_>, spots: &[u64]) -> Result<Option<f64>> {
        for &lba in spots.iter().chain([&self.marker]) {
            dial.write(lba, SMALL)?;
        }
        let period = dial.period();
        let mut times = Vec::new();
        for _ in 0..64 {
            times.push(dial.write(self.filler, self.size)?.took());
        }
        let usual = median(&times);
        let mut waits = Vec::new();
        for _ in 0..self.fills + (self.fills / 3).max(200) {
            waits.push((dial.write(self.filler, self.size)?.took() - usual).max(0.0) / period);
        }
        let waited = cleaning(&waits, self.fills as usize);
        if waited < 1.0 {
            return Ok(None);
        }
        Ok(Some(waited))
    }

    /// The band behind the one of `start`: with a piece that is cleaned with another, the same is seen as with that one alone.
    pub(super) fn band(&self, dial: &mut Dial<'_>, start: u64, view: View) -> Result<Option<BandSize>> {
        let mut from = view.piece(start / SMALL * SMALL, SMALL);
        let (mut ends, mut longest) = (Vec::new(), 0.0);
        for _ in 0..2 {
            if from + 2 * SMALL > dial.blocks() {
                return Ok(None);
            }
            let [first, next] = [from, from + SMALL].map(|place| view.piece(place, SMALL));
            let Some(alone) = self.cleaned(dial, &[first, next])? else { return Ok(None) };
            longest = alone / 2.0;
            let end = band_end(dial, (from, SMALL), &mut |dial, place| {
                let seen = self.cleaned(dial, &[first, view.piece(place, SMALL)])?;
                Ok(seen.is_some_and(|waited| waited < 1.25 * alone))
            })?;
            let Some(end) = end else { return Ok(None) };
            ends.push(end);
            from = end + SMALL;
        }
        let rewrite_s = longest * dial.period() / 1e9;
        let blocks = ends[1] - ends[0];
        Ok((blocks > 64).then_some(BandSize {
            blocks,
            end: view.end([ends[0], ends[1]]),
            spread: 8.0,
            rewrite_s,
        }))
    }

    /// What cleaning one piece (and the marker) costs, in revolutions, and how exactly that is known.
    pub(super) fn cost(&self, dial: &mut Dial<'_>, lba: u64) -> Result<Option<(f64, f64)>> {
        Ok(self.cleaned(dial, &[lba])?.map(|turns| (turns, 0.01 * turns + 0.5)))
    }
}

/// Blocks of a large write, and how many of them fill the cache.
fn large(cache: CacheSize) -> (u64, u64) {
    let size = 8 * cache.write_blocks;
    (size, if cache.limit == Some(Limit::Bytes) { cache.blocks / size } else { cache.writes })
}

/// Writes one piece until nothing older is left to be cleaned.
pub(super) fn drain(dial: &mut Dial<'_>, places: &Places, cache: CacheSize) -> Result<()> {
    const RUN: usize = 512;
    let (lba, (size, fills)) = (places.native(3).0, large(cache));
    let mut writes = 0;
    while writes < 12 * fills + 4096 {
        let mut times = Vec::with_capacity(RUN);
        for _ in 0..RUN {
            times.push(dial.write(lba, size)?.took());
        }
        writes += RUN as u64;
        let waits = times.iter().filter(|t| **t > 1.5 * least(&times)).count();
        if writes > fills + fills / 3 && waits < RUN / 32 {
            break;
        }
    }
    Ok(())
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::MAX, f64::min)
}

/// Waits that come alone and at equal distances: the drive's book-keeping.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Journal {
    /// One of them, and the distance.
    at: usize,
    every: usize,
    /// How long each is.
    wait: f64,
}

/// The book-keeping among waits while there is room.
fn regular(waits: &[f64]) -> Option<Journal> {
    let at: Vec<usize> = waits.iter().enumerate().filter(|w| *w.1 > 0.5).map(|w| w.0).collect();
    // What comes close together is cleaning.
    let mut steps: Vec<usize> = at.windows(2).map(|w| w[1] - w[0]).filter(|step| *step >= 16).collect();
    steps.sort_unstable();
    let every = *steps.get(steps.len() / 2)?;
    let at = at.windows(2).find(|w| w[1] - w[0] == every).map(|w| w[0])?;
    let each: Vec<f64> = waits.iter().skip(at % every).step_by(every).copied().collect();
    Some(Journal { at, every, wait: median(&each) })
}

/// What of the waits is cleaning, where `fills` writes fill the log: as long as there is room, only the drive's book-keeping makes writes wait.
fn cleaning(waits: &[f64], fills: usize) -> f64 {
    let journal = regular(&waits[..fills * 4 / 5]);
    waits.iter().enumerate().map(|(i, w)| (w - own(journal, i)).max(0.0)).sum()
}

/// What of the wait of write `i` is book-keeping; the rest is cleaning, which may begin at the same write.
fn own(journal: Option<Journal>, i: usize) -> f64 {
    journal.filter(|j| i.abs_diff(j.at) % j.every == 0).map_or(0.0, |j| j.wait)
}

#[cfg(test)]
mod tests {
    use super::super::bands::Toward;
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN};
    use smrlab_units::Dir;
    use std::collections::BTreeSet;

    const BAND: u64 = 520;

    /// A log of 400 writes and bands of 520 blocks: 400 writes of the filler behind the pieces each band that has one is cleaned, in ten
    /// revolutions. What the search begins with lies at the edge of a band, which the piece beside it is not to leave.
    fn in_bands(blocks: u64, toward: Toward, start: u64) -> Option<BandSize> {
        let (mut dirty, mut behind) = (BTreeSet::new(), 0);
        let mut target = Fake::new(blocks, |dir, lba, n, now| {
            assert_eq!(dir, Dir::Write);
            if n == SMALL {
                behind = 0;
                dirty.insert(lba / BAND);
            } else {
                behind += 1;
            }
            let cleaned = if behind == 400 { std::mem::take(&mut dirty).len() as u64 } else { 0 };
            now + TURN / 3 + 10 * TURN * cleaned
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        let tail = Tail { filler: 3 * BAND, marker: 0, size: 64, fills: 400 };
        let view = View::new(&dial, Some(toward));
        tail.band(&mut dial, start, view).unwrap()
    }

    #[test]
    fn bands_are_found_from_their_first_piece_on() {
        for (toward, start, end) in
            [(Toward::Higher, 5 * BAND, 7 * BAND), (Toward::Lower, 5 * BAND - SMALL, 4 * BAND)]
        {
            let found = in_bands(4000 * BAND, toward, start).unwrap();
            // What cleaning a band takes, and the marker's with it, is that of two.
            assert_eq!((found.blocks, found.end, found.rewrite_s), (BAND, end, 0.1), "{toward:?}");
        }
    }

    /// Wherever the drive ends behind a band: nothing there is written, and a band is told where the search gets behind it.
    #[test]
    fn the_drive_may_end_soon_behind_a_band() {
        // The search comes right to the band's end, and finds it.
        for left in [8, 9, 16, 23] {
            assert_eq!(in_bands(6 * BAND + left, Toward::Higher, 6 * BAND - 488), None, "{left}");
        }
        for left in (1..200).step_by(9) {
            assert_eq!(in_bands(6 * BAND + left, Toward::Higher, 5 * BAND), None, "{left}");
            let two = in_bands(7 * BAND + 300 + left, Toward::Higher, 5 * BAND);
            assert_eq!(two.map(|b| (b.blocks, b.end)), Some((BAND, 7 * BAND)), "{left}");
        }
    }

    #[test]
    fn cleaning_that_begins_with_the_book_keeping_is_told_from_it() {
        let mut waits: Vec<f64> = (0..2000).map(|i| if i % 240 == 22 { 36.0 } else { 0.0 }).collect();
        let journal = regular(&waits[..1220]);
        assert_eq!(journal, Some(Journal { at: 22, every: 240, wait: 36.0 }));
        waits[1462] += 31.7;
        assert_eq!(
            [22, 23, 262].map(|i| own(Some(Journal { at: 262, every: 240, wait: 5.0 }), i)),
            [5.0, 0.0, 5.0]
        );
        let left = |i: usize| waits[i] - own(journal, i);
        assert!(
            (0..2000).map(left).sum::<f64>() - 31.7 < 1e-9 && left(1462) > 31.0,
            "cleaning, and that alone"
        );
        assert_eq!(regular(&[0.0; 50]), None);
    }

    /// Bands that are cleaned one after the other at equal distances are no book-keeping: that waits while there is room, too. It waits each time,
    /// so that what begins to wait where half of its places are over has waited for something else.
    #[test]
    fn cleaning_at_equal_distances_is_not_taken_for_the_book_keeping() {
        let with = |journal: f64, band: f64| {
            let book = |i: usize| if i % 100 == 10 { journal } else { 0.0 };
            let clean = |i: usize| if i >= 1000 && i.is_multiple_of(20) { band } else { 0.0 };
            let waits: Vec<f64> = (0..1600).map(|i| book(i) + clean(i)).collect();
            cleaning(&waits, 1000)
        };
        for journal in [0.0, 4.0] {
            let waited = with(journal, 3.0);
            assert!((waited - 90.0).abs() < 1e-9, "30 bands of 3 revolutions: {waited}");
            assert_eq!(with(journal, 0.0), 0.0);
        }
        let from = |first: usize| -> Vec<f64> {
            (0..1000).map(|i| if i >= first && i % 100 == 10 { 5.0 } else { 0.0 }).collect()
        };
        let wait = |first| regular(&from(first)).map(|j| j.wait);
        assert_eq!([10, 310, 610, 810].map(wait), [Some(5.0), Some(5.0), Some(0.0), Some(0.0)]);
    }

    /// The middle one of the steps is the distance: neither a wait between two nor one that was left out makes another of it.
    #[test]
    fn a_wait_that_does_not_belong_does_not_hide_the_book_keeping() {
        let mut waits = vec![0.0; 1300];
        for i in (10..1300).step_by(100) {
            waits[i] = 5.0;
        }
        (waits[330], waits[910]) = (5.0, 0.0);
        assert_eq!(regular(&waits), Some(Journal { at: 10, every: 100, wait: 5.0 }));
        // What comes within 16 writes is cleaning, however often it comes.
        (20..40).for_each(|i| waits[i] = 0.6);
        assert_eq!(regular(&waits).map(|j| j.every), Some(100));
    }
}
