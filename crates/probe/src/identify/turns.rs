//! Bands of drives that clean when there is no room left: two spots are written in turn.

use super::bands::{BandSize, band_end};
use crate::ProbeError;
use crate::dial::Dial;

const MOST_WRITES: u64 = 60_000;

/// Writes and time until a write at one of `spots` in turn waits for cleaning; `None` where that takes too long.
fn until_cleaned(
    dial: &mut Dial<'_>,
    spots: &[u64],
    size: u64,
    most: u64,
) -> Result<Option<(u64, f64)>, ProbeError> {
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
pub(super) fn two_spots(dial: &mut Dial<'_>, start: u64) -> Result<Option<BandSize>, ProbeError> {
    let size = 256.min(dial.blocks() >> 12).max(16);
    let mut found = None;
    // A spot over a boundary is now cleaned so and now otherwise: then another one is looked for.
    for i in 0..4 {
        let spot = (start / size + 40 * i) * size;
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
        until_cleaned(dial, &[from], size, MOST_WRITES)?;
    }
    let rewrite_s = rewrite * dial.period() / 1e9;
    Ok(Some(BandSize { blocks: edges[1] - edges[0], end: edges[1], spread: 8.0, rewrite_s }))
}

/// Whether one spot is cleaned after the same number of writes again and again.
enum Alike {
    Yes,
    No,
    /// It is not cleaned, or after so many writes whatever their size: that is the drive's book-keeping.
    Never,
}

fn steady(dial: &mut Dial<'_>, spot: u64, size: u64) -> Result<Alike, ProbeError> {
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
    fn together(&self, dial: &mut Dial<'_>, other: u64) -> Result<bool, ProbeError> {
        let most = 3 * self.writes + 16;
        let seen = until_cleaned(dial, &[self.from, other], self.size, most)?;
        // Each for itself, so that nothing is left for the next time: a spot over a boundary fills two parts of a cache.
        for spot in [other, (other + self.size).min(dial.blocks() - self.size), self.from] {
            until_cleaned(dial, &[spot], self.size, most)?;
        }
        Ok(seen.is_some_and(|(n, t)| like(n as f64, self.writes as f64) && like(t, self.one)))
    }
}
