//! Where written blocks are: at their own place, or elsewhere.

use super::{Cleaning, Evidence, Mapping};
use crate::Result;
use crate::dial::Dial;
use crate::stats::{median, median_angle, turn, wrap};
use serde::{Deserialize, Serialize};
use smrlab_units::Dir;

/// Blocks written at a place.
pub(super) const SMALL: u64 = 8;
/// Places that are looked at.
const PLACES: u64 = 96;
/// From the places of one look to those of the next in their sequence.
const FURTHER: u64 = 1 << 24;

/// One place: a small piece that was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Spot {
    lba: u64,
    /// Its angle before and after it was written.
    home: f64,
    away: f64,
    /// How long writing it took, from the end of a read of it, in revolutions more than reading it again, and one: what a
    /// conventional drive takes.
    turns: f64,
    /// How long reading it took afterwards, in nanoseconds.
    read: f64,
}

/// The places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Places {
    spots: Vec<Spot>,
    /// Blocks that are never written, and their angles.
    controls: Vec<(u64, f64)>,
    slack: f64,
}

/// Number `i` of a sequence that fills `n` evenly at every length: multiples of the golden ratio.
pub(super) fn spread(i: u64, n: u64) -> u64 {
    let share = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 11;
    ((u128::from(share) * u128::from(n)) >> 53) as u64
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.spots.len()
    }

    /// Whether a write of `blocks` would touch what is looked at again.
    pub(super) fn touches(&self, lba: u64, blocks: u64) -> bool {
        let near = |at: u64| at + SMALL > lba && at < lba + blocks;
        self.spots.iter().any(|s| near(s.lba)) || self.controls.iter().any(|c| near(c.0))
    }

    /// A block that was never written since the probe began, near a share of the drive, and its own angle.
    pub(super) fn native(&self, i: usize) -> (u64, f64) {
        self.controls[i % self.controls.len()]
    }

    /// Turns all angles to those of another clock, by blocks that were never written; a dynamic layer may have moved some.
    pub(super) fn turn_to(&mut self, dial: &mut Dial<'_>) -> Result<()> {
        const LOOKS: usize = 15;
        let mut off = Vec::new();
        for &(lba, before) in self.controls.iter().take(LOOKS) {
            off.push(wrap(settled(dial, lba, self.slack)? - before));
        }
        let off = median_angle(&off);
        for angle in self.controls.iter_mut().map(|c| &mut c.1) {
            *angle = turn(*angle + off);
        }
        for s in &mut self.spots {
            (s.home, s.away) = (turn(s.home + off), turn(s.away + off));
        }
        Ok(())
    }

    /// How far an angle may be from another that is the same.
    pub(super) fn slack(&self) -> f64 {
        self.slack
    }

    fn has_moved(&self, s: &Spot) -> bool {
        wrap(s.away - s.home).abs() > self.slack
    }

    /// The share of places whose block lies elsewhere after it was written.
    pub(super) fn moved_share(&self) -> f64 {
        self.spots.iter().filter(|s| self.has_moved(s)).count() as f64 / self.spots.len().max(1) as f64
    }

    /// The share of places where writing took more revolutions than on a conventional drive.
    pub(super) fn slow_share(&self) -> f64 {
        self.spots.iter().filter(|s| s.turns > 1.8).count() as f64 / self.spots.len().max(1) as f64
    }

    /// The places where writing was slow.
    pub(super) fn slow(&self) -> impl Iterator<Item = u64> {
        self.spots.iter().filter(|s| s.turns > 1.8).map(|s| s.lba)
    }

    /// Whether what was written is read without the disk, though it was pushed out of the drive's read cache.
    pub(super) fn quick_reads(&self, dial: &mut Dial<'_>) -> Result<bool> {
        let times: Vec<f64> = self.spots.iter().map(|s| s.read).collect();
        Ok(median(&times) < dial.period() / 50.0)
    }
}

/// Reads a small piece at many places, writes it (which `written` counts), and reads it again; each `look` at places of its own.
pub(super) fn write_and_look(
    dial: &mut Dial<'_>,
    look: u64,
    written: &mut u64,
    evidence: &mut Vec<Evidence>,
) -> Result<Places> {
    dial.stage("writing and looking where it went");
    let blocks = dial.blocks();
    let slack = 0.02 + 6.0 * dial.noise();
    let mut places = Places { spots: Vec::new(), controls: Vec::new(), slack };
    for i in 0..PLACES {
        let lba = spread(i + 501, blocks - SMALL) / SMALL * SMALL;
        let home = settled(dial, lba, slack)?;
        places.controls.push((lba, home));
    }
    for i in 0..PLACES {
        dial.share(i as f64 / PLACES as f64);
        let lba = spread(i + 1 + (look - 1) * FURTHER, blocks - SMALL) / SMALL * SMALL;
        if places.controls.iter().any(|c| c.0.abs_diff(lba) <= SMALL) {
            continue;
        }
        let home = settled(dial, lba, slack)?;
        // Read again and again the piece takes a revolution, or two where it lies over a boundary without skew.
        dial.access(Dir::Read, lba, SMALL)?;
        let read = (dial.access(Dir::Read, lba, SMALL)?.took() / dial.period()).max(1.0);
        let begin = dial.now();
        *written += 1;
        let end = dial.write(lba, SMALL)?.end;
        let turns = (end.0 as f64 - begin.0 as f64) / dial.period() - read + 1.0;
        let elsewhere = dial.random(blocks);
        dial.read(elsewhere)?;
        if dial.cached() {
            dial.evict()?;
        }
        let t = dial.read_medium(lba)?;
        let read = t.took();
        places.spots.push(Spot { lba, home, away: settled(dial, lba, slack)?, turns, read });
    }
    let points = places.spots.iter().map(|s| (s.lba as f64, s.turns)).collect();
    evidence.push(Evidence {
        test: "write and look".to_owned(),
        did: format!("at {PLACES} places: read 4 KiB, write it again at once, read it from the medium"),
        saw: format!(
            "{:.0} % of the pieces lay elsewhere afterwards; {:.0} % took more than the one revolution of a conventional drive",
            100.0 * places.moved_share(),
            100.0 * places.slow_share()
        ),
        axes: ["LBA".to_owned(), "revolutions of a write".to_owned()],
        points,
    });
    Ok(places)
}

/// Where on the drive the cache is: the head is sent to native blocks along the drive, and from there to cached ones. The
/// way is shortest from where the cache is; `None`: from everywhere alike.
pub(super) fn place(
    dial: &mut Dial<'_>,
    places: &Places,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<f64>> {
    const STEPS: u64 = 33;
    dial.stage("where the cache is");
    let blocks = dial.blocks();
    let moved: Vec<u64> = places.spots.iter().filter(|s| places.has_moved(s)).map(|s| s.lba).collect();
    let mut points = Vec::new();
    for i in 0..STEPS {
        dial.share(i as f64 / STEPS as f64);
        let native = (blocks - 64) / (STEPS - 1) * i + 17;
        let mut times = Vec::new();
        for k in 0..24 {
            if dial.cached() {
                dial.evict()?;
            }
            dial.read(native + k % 5)?;
            let cached = moved[(k as usize * 7 + i as usize) % moved.len()];
            times.push(dial.read(cached)?.took());
        }
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        points.push((native as f64 / blocks as f64, mean / 1e6));
    }
    let least = points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0.0, 0.0));
    let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let found = most > 1.4 * least.1;
    evidence.push(Evidence {
        test: "where the cache is".to_owned(),
        did: "from native blocks along the drive to blocks written lately".to_owned(),
        saw: if found {
            format!("the way is shortest from {:.0} % of the LBAs on: the cache is there", 100.0 * least.0)
        } else {
            "the way is as long from everywhere: the cache is spread over the drive".to_owned()
        },
        axes: ["share of the LBAs".to_owned(), "milliseconds to a block written lately".to_owned()],
        points,
    });
    Ok(found.then_some(least.0))
}

/// How many of the moved places are at their own angle again, at the same as before, and at another.
fn look(dial: &mut Dial<'_>, places: &Places) -> Result<[usize; 3]> {
    let mut seen = [0; 3];
    for s in places.spots.iter().filter(|s| places.has_moved(s)) {
        let now = settled(dial, s.lba, places.slack)?;
        let near = |a: f64| wrap(now - a).abs() <= places.slack;
        seen[if near(s.home) {
            0
        } else if near(s.away) {
            1
        } else {
            2
        }] += 1;
    }
    Ok(seen)
}

/// Leaves the drive alone for an hour, and looks where the blocks are.
pub(super) fn after_rest(
    dial: &mut Dial<'_>,
    places: &Places,
    evidence: &mut Vec<Evidence>,
) -> Result<(Cleaning, Option<Mapping>)> {
    dial.stage("rest");
    dial.pause(3600e9);
    calm(dial)?;
    let [home, away, else_] = look(dial, places)?;
    let all = (home + away + else_).max(1);
    let cleaned = 2 * (home + else_) > all;
    let mapping = cleaned.then_some(if home > else_ { Mapping::Static } else { Mapping::Dynamic });
    evidence.push(Evidence::new(
        "rest",
        "left the drive alone for an hour",
        format!(
            "of {all} blocks that lay elsewhere, {home} were at their own place again, {else_} at a third"
        ),
    ));
    Ok((if cleaned { Cleaning::Aggressive } else { Cleaning::Lazy }, mapping))
}

/// The angle of a block. A read that waits for cleaning ends at any angle; so it is read until it comes after one revolution
/// at the same again. Before each look the head goes elsewhere: some layers time a read that follows another in their log by
/// itself, and what is read there again and again seems to wander.
pub(super) fn settled(dial: &mut Dial<'_>, lba: u64, slack: f64) -> Result<f64> {
    let mut last = f64::INFINITY;
    for _ in 0..400 {
        if !dial.cached() {
            let elsewhere = dial.random(dial.blocks());
            dial.read(elsewhere)?;
            dial.read_medium(lba)?;
        }
        let (now, quiet) = look_once(dial, lba)?;
        if quiet && last.is_finite() && wrap(now - last).abs() <= slack / 2.0 {
            return Ok(now);
        }
        last = now;
    }
    Ok(last)
}

/// The angle of a block, and whether it was read without waiting; where the drive's own cache has to be cheated that is not
/// known, and taken to be so.
pub(super) fn look_once(dial: &mut Dial<'_>, lba: u64) -> Result<(f64, bool)> {
    let mut angles = Vec::new();
    let mut quiet = true;
    for _ in 0..dial.repeats(0.004, 3) {
        if dial.cached() {
            dial.evict()?;
        }
        let t = dial.read_medium(lba)?;
        quiet &= dial.cached() || t.took() < 1.5 * dial.period();
        angles.push(dial.angle_at(t.end));
    }
    Ok((median_angle(&angles), quiet))
}

/// Reads one block until it comes every revolution and no read has to wait for cleaning; a drive that does not come to rest
/// is left alone for a while in between.
pub(super) fn calm(dial: &mut Dial<'_>) -> Result<()> {
    const RUN: usize = 32;
    let lba = dial.random(dial.blocks());
    for _ in 0..12 {
        let mut alike = 0;
        let mut last = 0.0;
        for _ in 0..4000 {
            if dial.cached() {
                dial.evict()?;
            }
            let t = dial.read(lba)?.took();
            alike = if (t / last - 1.0).abs() < 0.03 { alike + 1 } else { 0 };
            last = t;
            if alike == RUN || (dial.cached() && alike == 2) {
                return Ok(());
            }
        }
        dial.pause(600e9);
    }
    Ok(())
}

/// After the cache was filled and cleaned under load: are the blocks back at their own places? And what was never
/// written: does it still lie where it lay?
pub(super) fn after_cleaning(
    dial: &mut Dial<'_>,
    places: &Places,
    evidence: &mut Vec<Evidence>,
) -> Result<Option<Mapping>> {
    dial.stage("mapping");
    calm(dial)?;
    let [home, away, else_] = look(dial, places)?;
    let mut pushed = 0;
    for &(lba, angle) in &places.controls {
        let now = settled(dial, lba, places.slack)?;
        pushed += usize::from(wrap(now - angle).abs() > places.slack);
    }
    evidence.push(Evidence::new(
        "after cleaning",
        "looked at the first blocks again after the cache had been filled and cleaned",
        format!(
            "{home} were at their own place, {away} where they were before, {else_} at a third; of {} blocks never \
             written {pushed} had moved",
            places.controls.len()
        ),
    ));
    // A few of these may have lain in the cache at first, and gone home.
    Ok(if pushed >= 4 && home <= away + else_ {
        Some(Mapping::Dynamic)
    } else if home + else_ < 2 {
        None
    } else if home > else_ {
        Some(Mapping::Static)
    } else {
        Some(Mapping::Dynamic)
    })
}

#[cfg(test)]
mod tests;
