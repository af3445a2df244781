//! The drive's own cache: how many segments it has, and how far it reads ahead.

use crate::Result;
use crate::dial::Dial;
use serde::{Deserialize, Serialize};

/// The drive's own read cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardCache {
    /// Whether repeated reads are answered by it.
    pub present: bool,
    /// Places far from each other of which it keeps the data at the same time.
    pub segments: u64,
    /// Blocks behind a read one that it has after some revolutions of rest.
    pub read_ahead: u64,
}

/// The most segments and the longest read-ahead that are looked for.
const MOST_SEGMENTS: u64 = 4096;
const LONGEST: u64 = 1 << 18;

/// Measures the cache.
///
/// # Errors
/// The target's.
pub(super) fn find(dial: &mut Dial<'_>) -> Result<BoardCache> {
    dial.stage("on-board cache");
    if !dial.cached() {
        return Ok(BoardCache { present: false, segments: 0, read_ahead: 0 });
    }
    let segments = largest(1, MOST_SEGMENTS, |n| keeps(dial, n))?;
    let read_ahead = largest(0, LONGEST, |n| reads_ahead(dial, n))?;
    Ok(BoardCache { present: true, segments, read_ahead })
}

/// The largest number from `least` on for which `holds`, which does not hold for larger ones.
fn largest(least: u64, most: u64, mut holds: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    let (mut lo, mut hi) = (least, least.max(1));
    while hi < most && holds(hi)? {
        lo = hi;
        hi *= 2;
    }
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if holds(mid)? { lo = mid } else { hi = mid }
    }
    Ok(lo)
}

/// Whether the first of `n` places is still there after the others were read.
fn keeps(dial: &mut Dial<'_>, n: u64) -> Result<bool> {
    let mut hits = 0;
    for _ in 0..3 {
        dial.evict()?;
        let blocks = dial.blocks();
        let (first, step) = (dial.random(blocks / 4), blocks / 2 / n.max(1));
        for i in 0..n {
            dial.read(first + i * step)?;
        }
        hits += u32::from(dial.hit(first)?);
    }
    Ok(hits >= 2)
}

/// Whether the block `n` behind a read one is there.
fn reads_ahead(dial: &mut Dial<'_>, n: u64) -> Result<bool> {
    let mut hits = 0;
    for _ in 0..3 {
        dial.evict()?;
        let blocks = dial.blocks();
        let lba = dial.random(blocks / 2);
        if lba + n >= blocks {
            return Ok(false);
        }
        dial.read(lba)?;
        dial.pause((4.0 + n as f64 / 100.0).min(400.0) * dial.period());
        hits += u32::from(dial.hit(lba + n)?);
    }
    Ok(hits >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;
    use crate::dial::{Eviction, FAR};
    use crate::fakes::{Fake, TURN, passes};

    /// Five segments, each of a block that was read and the 100 behind it; the one that was used longest ago goes.
    #[test]
    fn segments_and_what_is_read_ahead_are_counted_to_the_block() {
        let mut held = Vec::<u64>::new();
        let mut target = Fake::new(1 << 24, |_, lba, _, now| {
            let hit = held.iter().position(|s| (*s..=s + 100).contains(&lba));
            let segment = hit.map_or(lba, |i| held.remove(i));
            held.push(segment);
            if held.len() > 5 {
                held.remove(0);
            }
            if hit.is_some() { now + 1000 } else { passes(lba as f64 / 1000.0, now) }
        });
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        dial.set_cache(50_000.0, Eviction { reads: 5, stride: FAR });
        let found = find(&mut dial).unwrap();
        assert_eq!(found, BoardCache { present: true, segments: 5, read_ahead: 100 });
    }

    /// Whatever the largest number is, it is found, and nothing is asked for that is as large as the bound.
    #[test]
    fn the_largest_number_is_found_below_the_bound() {
        for (least, most) in [(0, 64), (1, 64), (1, 100)] {
            for truth in least..130 {
                let mut asked = 0;
                let found = largest(least, most, |n| {
                    asked = asked.max(n);
                    Ok(n <= truth)
                });
                // Doubling ends at the first power of two from the bound on.
                assert_eq!(found, Ok(truth.min(most.next_power_of_two() - 1)), "{least} {most}");
                assert!(asked < most.next_power_of_two() && (truth < least.max(1) || asked > 0), "{asked}");
            }
        }
    }

    /// Two of three tries have to hit; one segment there is anyway.
    #[test]
    fn a_single_hit_is_chance() {
        for hits in 0..4 {
            let mut reads = 0;
            let mut target = Fake::new(1 << 20, |_, _, _, now| {
                reads += 1;
                // Of each try the second read shows whether the cache has it.
                now + if reads % 2 == 0 && reads % 6 / 2 < hits { 1000 } else { TURN }
            });
            let mut quiet = Quiet;
            let mut dial = Dial::new(&mut target, &mut quiet);
            dial.set_period(TURN as f64, 0.0);
            dial.set_cache(50_000.0, Eviction::default());
            let (kept, ahead) = (keeps(&mut dial, 1), reads_ahead(&mut dial, 1));
            assert_eq!([kept, ahead], [Ok(hits >= 2), Ok(hits >= 2)], "{hits} of 3");
            if hits == 0 {
                assert_eq!(
                    find(&mut dial).unwrap(),
                    BoardCache { present: true, segments: 1, read_ahead: 0 }
                );
            }
        }
    }

    #[test]
    fn nothing_is_read_ahead_behind_the_drives_end() {
        let mut target = Fake::new(2, |_, _, _, now| now + 1000);
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        dial.set_cache(50_000.0, Eviction::default());
        assert_eq!([reads_ahead(&mut dial, 2), reads_ahead(&mut dial, 1)], [Ok(false), Ok(true)]);
        let none = BoardCache { present: false, segments: 0, read_ahead: 0 };
        assert_eq!(find(&mut Dial::new(&mut target, &mut Quiet)).unwrap(), none);
    }
}
