//! Bands of drives that clean when there is no room left: two spots are written in turn.

use super::bands::{BandSize, band_end};
use crate::Result;
use crate::dial::Dial;

const MOST_WRITES: u64 = 60_000;

/// Writes and time until a write at one of `spots` in turn waits for cleaning; `None` where that takes too long.
fn until_cleaned(dial: &mut Dial<'_>, spots: &[u64], size: u64, most: u64) -> Result<Option<(u64, f64)>> {
    let mut longest = 0.0f64;
    for i in 0..most {
        let lba = spots[(i % spots.len() as u64) as usize];
        let t = dial.write(lba, size)?.took() / dial.period();
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

/// Two spots are written in turn until the drive has to clean: if they lie in one band, that is after as many writes and takes
/// as long as for one spot alone; else there is twice as much to do. `None` where one spot alone never waits, or now so and now
/// otherwise.
pub(super) fn two_spots(dial: &mut Dial<'_>, start: u64) -> Result<Option<BandSize>> {
    let size = 256.min(dial.blocks() >> 12).max(16);
    let mut found = None;
    // A spot over a boundary is now cleaned so and now otherwise: then another one is looked for.
    for i in 0..4 {
        let spot = (start / size + 40 * i) * size;
        if spot + size > dial.blocks() {
            break;
        }
        match steady(dial, spot, size)? {
            Alike::Yes => {
                found = Some(spot);
                break;
            }
            Alike::No => {}
            Alike::Never => return Ok(None),
        }
    }
    let Some(start) = found else { return Ok(None) };
    let mut edges = Vec::new();
    let (mut from, mut rewrite) = (start, 0.0);
    for _ in 0..2 {
        let Some((writes, one)) = until_cleaned(dial, &[from], size, MOST_WRITES)? else { return Ok(None) };
        rewrite = one;
        let alone = Alone { from, writes, one, size };
        let Some(end) = band_end(dial, (from, size), &mut |dial, other| alone.together(dial, other))? else {
            return Ok(None);
        };
        edges.push(end);
        from = end + 8;
        if from + size > dial.blocks() {
            break;
        }
        until_cleaned(dial, &[from], size, MOST_WRITES)?;
    }
    let &[first, end] = &edges[..] else { return Ok(None) };
    let rewrite_s = rewrite * dial.period() / 1e9;
    Ok(Some(BandSize { blocks: end - first, end, spread: 8.0, rewrite_s }))
}

/// Whether one spot is cleaned after the same number of writes again and again.
enum Alike {
    Yes,
    No,
    /// It is not cleaned, or after so many writes whatever their size: that is the drive's book-keeping.
    Never,
}

fn steady(dial: &mut Dial<'_>, spot: u64, size: u64) -> Result<Alike> {
    let (mut last, mut alike) = (0.0, 0);
    for _ in 0..8 {
        let Some((writes, _)) = until_cleaned(dial, &[spot], size, MOST_WRITES)? else {
            return Ok(Alike::Never);
        };
        alike = if like(writes as f64, last) { alike + 1 } else { 0 };
        last = writes as f64;
        if alike == 2 {
            break;
        }
    }
    if alike < 2 {
        return Ok(Alike::No);
    }
    for _ in 0..2 {
        let Some((small, _)) = until_cleaned(dial, &[spot], size / 2, MOST_WRITES)? else {
            return Ok(Alike::Never);
        };
        last = last.min(small as f64 / 1.5);
    }
    let Some((again, _)) = until_cleaned(dial, &[spot], size, MOST_WRITES)? else { return Ok(Alike::Never) };
    Ok(if again as f64 <= 1.2 * last { Alike::Yes } else { Alike::Never })
}

fn like(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.15
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
    fn together(&self, dial: &mut Dial<'_>, other: u64) -> Result<bool> {
        let most = 3 * self.writes + 16;
        let seen = until_cleaned(dial, &[self.from, other], self.size, most)?;
        // Each for itself, so that nothing is left for the next time: a spot over a boundary fills two parts of a cache.
        for spot in [other, (other + self.size).min(dial.blocks() - self.size), self.from] {
            until_cleaned(dial, &[spot], self.size, most)?;
        }
        Ok(seen.is_some_and(|(n, t)| like(n as f64, self.writes as f64) && like(t, self.one)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN};

    /// Writes that take `turns(i)`; after which and how long the drive cleaned.
    fn seen(most: u64, turns: impl Fn(u64) -> f64) -> Option<(u64, f64)> {
        let mut i = 0;
        let mut target = Fake::new(1 << 20, |_, _, _, now| {
            i += 1;
            now + (turns(i - 1) * TURN as f64) as u64
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        until_cleaned(&mut dial, &[64], 16, most).unwrap()
    }

    /// A wait is cleaning if it takes more than six turns and twice the longest before; those of the first 17 writes are left over
    /// from what was in the cache.
    #[test]
    fn a_wait_of_more_than_six_turns_and_twice_the_longest_is_cleaning() {
        assert_eq!(seen(100, |i| if i == 50 { 6.5 } else { 1.0 }), Some((50, 6.5)));
        assert_eq!(seen(100, |i| if i == 50 { 5.9 } else { 1.0 }), None);
        assert_eq!(
            seen(100, |i| if i == 16 {
                40.0
            } else if i == 50 {
                6.5
            } else {
                1.0
            }),
            Some((50, 6.5))
        );
        let book_keeping = |i| if i % 10 == 9 { 3.5 } else { 1.0 };
        assert_eq!(seen(100, |i| if i == 50 { 6.9 } else { book_keeping(i) }), None);
        assert_eq!(seen(100, |i| if i == 50 { 7.1 } else { book_keeping(i) }), Some((50, 7.1)));
        assert_eq!(seen(50, |i| if i == 50 { 6.5 } else { 1.0 }), None, "it is not waited for longer");
        // What the two spots have in common is the count, to 15 %.
        assert!(like(114.0, 100.0) && like(86.0, 100.0) && !like(116.0, 100.0) && !like(84.0, 100.0));
    }

    /// After 100 writes three times; then, half as large, after `small` of them, and `again` after as many as these.
    #[test]
    fn who_counts_bytes_is_cleaned_later_where_writes_are_small() {
        for (small, again, bytes) in [
            ([200, 200], 100, true),
            ([200, 200], 120, true),
            ([200, 200], 121, false),
            // Book-keeping comes after so many writes whatever their size; once is enough to see it.
            ([100, 200], 100, false),
            ([200, 100], 100, false),
            ([130, 126], 100, true),
            ([125, 124], 100, false),
        ] {
            let (mut waits, mut writes) = ([100, 100, 100, small[0], small[1], again].into_iter(), 0);
            let mut next = waits.next().unwrap();
            let mut target = Fake::new(1 << 20, |_, _, _, now| {
                writes += 1;
                let cleans = writes > next;
                if cleans {
                    (writes, next) = (0, waits.next().unwrap_or(u64::MAX));
                }
                now + TURN * if cleans { 20 } else { 1 }
            });
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let found = steady(&mut dial, 64, 16).unwrap();
            assert_eq!(matches!(found, Alike::Yes), bytes, "{small:?} {again}");
        }
    }

    /// Of two spots one is cleaned with the other where that comes as often and takes as long as for one alone.
    #[test]
    fn who_is_cleaned_with_another_takes_as_long() {
        for (every, turns, expected) in [(100, 21, true), (100, 41, false), (200, 21, false)] {
            let mut writes = 0;
            let mut target = Fake::new(1 << 20, |_, _, _, now| {
                writes += 1;
                now + TURN * if writes % every == 0 { turns } else { 1 }
            });
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            let alone = Alone { from: 64, writes: 99, one: 21.0, size: 16 };
            assert_eq!(alone.together(&mut dial, 640), Ok(expected), "{every} {turns}");
        }
    }

    /// What is found on a drive of so many blocks from `start` on: bands of 10 000 of which one holds 100 written pieces of 256 blocks and
    /// is then cleaned for 20 turns.
    fn in_bands(blocks: u64, start: u64) -> Option<BandSize> {
        let mut held = std::collections::BTreeMap::<u64, u64>::new();
        let mut target = Fake::new(blocks, |_, lba, blocks, now| {
            let mut turns = 1;
            for band in lba / 10_000..=(lba + blocks - 1) / 10_000 {
                let n = held.entry(band).or_default();
                *n += (lba + blocks).min((band + 1) * 10_000) - lba.max(band * 10_000);
                if *n >= 100 * 256 {
                    (*n, turns) = (0, turns + 20);
                }
            }
            now + turns * TURN
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        two_spots(&mut dial, start).unwrap()
    }

    /// A spot is a 4096th of the drive, from 16 blocks to 256.
    #[test]
    fn spots_are_as_large_as_the_drive_lets_them() {
        for (blocks, size) in [
            (5000, 16),
            (16 << 12, 16),
            (17 << 12, 17),
            ((101 << 12) - 1, 100),
            (256 << 12, 256),
            (1 << 22, 256),
        ] {
            let mut target = Fake::new(blocks, |_, _, _, now| now + TURN);
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            assert_eq!(two_spots(&mut dial, 1000), Ok(None));
            assert_eq!(target.asked[0], (smrlab_units::Dir::Write, 1000 / size * size, size), "{blocks}");
            assert_eq!(target.asked.len() as u64, MOST_WRITES, "it is never cleaned");
        }
    }

    #[test]
    fn two_spots_in_a_band_are_cleaned_as_often_as_one() {
        let band = in_bands(1 << 22, 1_003_000).unwrap();
        assert!(band.blocks.abs_diff(10_000) <= 16, "{band:?}");
        // A spot of which a quarter lies behind the end is cleaned as often, nearly.
        assert!(band.end % 10_000 <= 80, "{band:?}");
        assert!((band.rewrite_s - 0.21).abs() < 1e-9, "{band:?}");
    }

    /// Wherever it ends, nothing behind it is written; a band is told where one more piece fits behind it.
    #[test]
    fn the_drive_may_end_soon_behind_what_is_looked_at() {
        for left in [0, 8, 64, 256, 300, 600, 5000, 9990] {
            assert_eq!(in_bands(1_010_000 + left, 1_003_000), None, "{left}");
            assert!(in_bands(1_020_000 + 512 + left, 1_003_000).is_some(), "{left}");
        }
        // However near to the first band's end the search comes.
        for start in (1_003_000..1_009_500).step_by(41) {
            assert_eq!(in_bands(1_010_200, start), None, "{start}");
        }
        for left in [10, 200, 300, 9000] {
            assert_eq!(in_bands(1_003_000 + left, 1_003_000), None, "{left}");
        }
    }
}
