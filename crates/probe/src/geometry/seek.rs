//! Least access times: from a block read to the first one elsewhere that the head still catches. What the disk turns
//! meanwhile is the time of overhead, seek and settle together; the same on one track is the overhead alone.

use super::order::Order;
use super::{Skews, Zone};
use crate::Result;
use crate::dial::Dial;
use crate::stats::{earliest, median, turn, wrap};
use serde::{Deserialize, Serialize};
use smrlab_units::{Dir, SimTime};

/// How long seeks take, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seeks {
    /// From the end of a read to the least time at which a read on the same track can begin.
    pub read_overhead_ns: f64,
    /// Standard error of all times here.
    pub spread_ns: f64,
    /// Cylinders and time of a read, overhead excluded; the mean of both directions.
    pub read: Vec<(u64, f64)>,
    /// The same for writes, where they were allowed.
    pub write: Vec<(u64, f64)>,
    /// Reads by direction: towards higher LBAs, and back.
    #[serde(default)]
    pub read_by_direction: [Vec<(u64, f64)>; 2],
    /// Writes by direction.
    #[serde(default)]
    pub write_by_direction: [Vec<(u64, f64)>; 2],
    /// From the end of a read to the least time at which a write on the same track can begin.
    pub write_overhead_ns: Option<f64>,
    /// Change of the surface on one cylinder, for a read.
    pub head_switch_ns: Option<f64>,
}

/// Where the tracks of one surface are.
struct Map<'a> {
    zones: &'a [Zone],
    order: Order,
    /// Cylinders of the first surface, zone by zone.
    cylinders: Vec<u64>,
}

impl<'a> Map<'a> {
    fn new(zones: &'a [Zone], order: Order) -> Self {
        let each = match order {
            Order::Cylinder { surfaces } | Order::Hybrid { surfaces, .. } => surfaces.max(1),
            Order::Surface { .. } => 1,
        };
        let all: u64 = zones.iter().map(|z| z.tracks).sum();
        let mut left = if let Order::Surface { surfaces } = order { all / surfaces.max(1) } else { u64::MAX };
        let mut cylinders = Vec::new();
        for z in zones {
            let n = (z.tracks / each).min(left);
            left -= n;
            cylinders.push(n);
        }
        Self { zones, order, cylinders }
    }

    fn len(&self) -> u64 {
        self.cylinders.iter().sum()
    }

    /// Blocks in the middle of the cylinder's tracks that may lie on the first surface. Of a cylinder layout these are two:
    /// whether odd cylinders go through the surfaces backwards does not show in the angles.
    fn blocks(&self, cylinder: u64) -> Vec<Spot> {
        let mut first = 0;
        for (zone, &n) in self.zones.iter().zip(&self.cylinders) {
            if cylinder < first + n {
                let rel = cylinder - first;
                return match self.order {
                    Order::Surface { .. } => vec![middle(zone, rel)],
                    Order::Cylinder { surfaces: 1 } => vec![middle(zone, rel)],
                    Order::Cylinder { surfaces: s } => {
                        vec![middle(zone, rel * s), middle(zone, rel * s + s - 1)]
                    }
                    Order::Hybrid { surfaces, group_cylinders: w } => {
                        vec![middle(zone, rel / w * w * surfaces + rel % w)]
                    }
                };
            }
            first += n;
        }
        Vec::new()
    }

    /// Two blocks of one track: the second is right before the first, which the disk has just passed. Where the drive's own
    /// cache keeps what passes, it is one that the head comes to only after most of a turn.
    fn same_track(&self, dial: &mut Dial<'_>, cylinder: u64) -> Result<Option<(Spot, Spot)>> {
        let Some(spot) = self.blocks(cylinder).first().copied() else { return Ok(None) };
        let at = |lba| Spot { lba, ..spot };
        let before = at(spot.lba.saturating_sub(2));
        // An answer from the cache may come late once.
        for _ in 0..if dial.cached() { 3 } else { 0 } {
            dial.evict()?;
            dial.read_medium(spot.lba)?;
            if dial.hit(before.lba)? {
                let far = (spot.sectors * 7.0 / 16.0) as u64;
                return Ok(Some((at(spot.lba - far.min(spot.lba)), at(spot.lba + far))));
            }
        }
        Ok(Some((spot, before)))
    }

    /// Blocks of two tracks on one cylinder between which the surface changes.
    fn switch(&self) -> Option<(Spot, Spot)> {
        let zone = self.zones.iter().max_by_key(|z| z.tracks)?;
        match self.order {
            Order::Cylinder { surfaces } if surfaces > 1 => Some((middle(zone, 0), middle(zone, 1))),
            Order::Hybrid { group_cylinders: w, surfaces } if surfaces > 1 && zone.tracks > w => {
                Some((middle(zone, w - 1), middle(zone, w)))
            }
            _ => None,
        }
    }
}

/// The block in the middle of track `index` of a zone, as far as slipped sectors let it be told.
fn middle(zone: &Zone, index: u64) -> Spot {
    let slipped = (zone.slips as f64 * index as f64 / zone.tracks as f64) as u64;
    let lba = (zone.first_lba + index * zone.usable + zone.usable / 2 - slipped).min(zone.end() - 1);
    Spot { lba, sectors: zone.sectors_exact }
}

/// A block, and the sectors in a revolution there.
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    lba: u64,
    sectors: f64,
}

/// Measures the curve of reads, and of writes where `destroy` allows them.
///
/// # Errors
/// The target's.
pub(super) fn find(dial: &mut Dial<'_>, zones: &[Zone], skews: &Skews, destroy: bool) -> Result<Seeks> {
    dial.stage("seeks");
    let map = Map::new(zones, skews.order);
    let most = map.len().saturating_sub(1);
    let [often, each] = ERRORS.map(|e| dial.repeats(e, 96) as usize);
    let distances = distances(most);
    let dirs: &[Dir] = if destroy { &[Dir::Read, Dir::Write] } else { &[Dir::Read] };
    let mut out = Seeks::default();
    for (i, &dir) in dirs.iter().enumerate() {
        let access = Access { dir, completions: each };
        let Some((block, other)) = map.same_track(dial, most / 2)? else { continue };
        let overhead = Access { dir, completions: often }.least(dial, block, other)?;
        let over = |dial: &mut Dial<'_>, d| -> Result<Point> {
            Ok((d, access.over(dial, &map, most, d)?.map(|time| (time - overhead).max(0.0))))
        };
        let mut points = Vec::new();
        for (k, &d) in distances.iter().enumerate() {
            dial.share((i as f64 + k as f64 / distances.len() as f64 / 2.0) / dirs.len() as f64);
            points.push(over(dial, d)?);
        }
        let spread = dial.period() * (2.0 * FINEST + dial.late(each as u64));
        let share = [i as f64 + 0.5, i as f64 + 1.0].map(|done| done / dirs.len() as f64);
        refine(dial, &mut points, spread, share, over)?;
        let curve = points.iter().map(|&(d, [a, b])| (d, (a + b) / 2.0)).collect();
        let ways = [0, 1].map(|way| points.iter().map(|&(d, each)| (d, each[way])).collect());
        if dir == Dir::Read {
            out.read_overhead_ns = overhead.max(0.0);
            (out.read, out.read_by_direction) = (curve, ways);
            if let Some((a, b)) = map.switch() {
                out.head_switch_ns = Some((access.least(dial, a, b)? - overhead).max(0.0));
            }
        } else {
            out.write_overhead_ns = Some(overhead.max(0.0));
            (out.write, out.write_by_direction) = (curve, ways);
        }
    }
    out.spread_ns = dial.period() * (2.0 * FINEST + dial.late(each as u64));
    Ok(out)
}

/// About six a decade, from 1 to `most`.
fn distances(most: u64) -> Vec<u64> {
    let mut out = Vec::new();
    let mut d = 1.0f64;
    while (d as u64) < most {
        let n = d as u64;
        if out.last() != Some(&n) {
            out.push(n);
        }
        d *= 1.4678;
    }
    if most > 0 {
        out.push(most);
    }
    out
}

/// A distance in cylinders, and the times there and back in nanoseconds.
type Point = (u64, [f64; 2]);

/// Parts of the whole way in each of which a curve is looked at.
const PARTS: u64 = 16;
/// What a curve may be off between two points that nobody looked between, in revolutions, and what it may be off at the end:
/// roots of mean squares over random accesses.
const OFF: [f64; 2] = [0.25, 4e-3];
/// Milliseconds after which a curve is taken as it is, and those from the beginning of the sitting.
const REFINED: [u64; 2] = [300_000, 900_000];

/// Measures between the points of a curve where straight lines do not tell what lies there: curves of real drives have jumps. The
/// worst place comes first.
fn refine(
    dial: &mut Dial<'_>,
    points: &mut Vec<Point>,
    spread: f64,
    share: [f64; 2],
    over: impl Fn(&mut Dial<'_>, u64) -> Result<Point>,
) -> Result<()> {
    let Some(&(most, _)) = points.last() else { return Ok(()) };
    let begun = dial.now();
    let until = (begun + SimTime::from_ms(REFINED[0])).min(SimTime::from_ms(REFINED[1]));
    // Times the share of random accesses that go so far.
    let doubt = |off: f64, from: u64, to: u64| {
        let (all, middle) = (most as f64, (from + to) as f64 / 2.0);
        off * off * (to - from) as f64 * 2.0 * (all - middle) / (all * all)
    };
    let [unseen, fine] = OFF.map(|off| off * dial.period());
    let mut doubts: Vec<f64> = points.windows(2).map(|w| doubt(unseen, w[0].0, w[1].0)).collect();
    while dial.now() < until {
        let worst = doubts.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let Some((i, _)) = worst.filter(|d| *d.1 > fine * fine) else { return Ok(()) };
        let [(from, a), (to, b)] = [points[i], points[i + 1]];
        if to - from < 2 {
            doubts[i] = 0.0;
            continue;
        }
        let done = (dial.now() - begun).0 as f64 / (until - begun).0 as f64;
        dial.share(share[0] + done * (share[1] - share[0]));
        let (middle, found) = over(dial, (from + to) / 2)?;
        let off = (0..2).map(|way| (found[way] - (a[way] + b[way]) / 2.0).abs()).fold(0.0, f64::max);
        let off = if off < 3.0 * spread { 0.0 } else { off };
        let of = |from, to| doubt(if (to - from) * PARTS > most { unseen } else { off }, from, to);
        points.insert(i + 1, (middle, found));
        doubts.splice(i..=i, [of(from, middle), of(middle, to)]);
    }
    Ok(())
}

/// To what share of a revolution times are measured where there is no noise.
const FINEST: f64 = 1e-4;

/// To what share of a revolution completions are to be known: that of the overhead, which all others are compared with, and
/// of the others.
const ERRORS: [f64; 2] = [3e-4, 1.25e-3];

#[derive(Clone, Copy)]
struct Access {
    dir: Dir,
    /// Of so many completions the earliest is taken.
    completions: usize,
}

impl Access {
    /// The least times over `d` of `most` cylinders there and back, from a quarter and from the middle of what there is room
    /// for. Both in turn: what the drive's own cache has of one is pushed out together with the other.
    fn over(self, dial: &mut Dial<'_>, map: &Map<'_>, most: u64, d: u64) -> Result<[f64; 2]> {
        let room = most - d;
        let ways = [(room / 4, room / 4 + d), (room / 2 + d, room / 2)];
        let mut searches = ways.map(|(from, to)| {
            let start = map.blocks(from).first().copied();
            let search = |start| map.blocks(to).into_iter().map(move |to| Search::new(start, to)).collect();
            start.map_or_else(Vec::new, search)
        });
        let mut going = true;
        while going {
            going = false;
            if dial.cached() {
                dial.evict()?;
            }
            for search in searches.iter_mut().flatten() {
                going |= search.goes_on(self, dial)?;
            }
        }
        Ok(searches.map(|way| way.iter().map(|s| s.found(dial)).fold(f64::INFINITY, f64::min)))
    }

    /// The least time from sending an access to `to` until it begins, with the head at `from`, in nanoseconds.
    fn least(self, dial: &mut Dial<'_>, from: Spot, to: Spot) -> Result<f64> {
        let mut search = Search::new(from, to);
        loop {
            if dial.cached() {
                dial.evict()?;
            }
            if !search.goes_on(self, dial)? {
                return Ok(search.found(dial));
            }
        }
    }

    /// Reads `from`, waits until the moment of the turn `when` (at once without it), goes to `to`: when it was sent, and how
    /// long it took, in turns.
    fn trip(self, dial: &mut Dial<'_>, from: Spot, to: Spot, when: Option<f64>) -> Result<(f64, f64)> {
        let mut tries = 0;
        loop {
            // The drive may have read ahead of the last access up to this one.
            if tries > 0 {
                dial.evict()?;
            }
            let begin = dial.read_medium(from.lba)?.end;
            if let Some(when) = when {
                let wait = turn(when - dial.angle_at(begin));
                dial.pause(wait * dial.period());
            }
            let t = match self.dir {
                Dir::Read => dial.read(to.lba)?,
                Dir::Write => dial.write(to.lba, 1)?,
            };
            tries += 1;
            // What the drive's own cache answers says nothing of the way.
            if tries == 3 || !dial.is_hit(t) {
                return Ok((dial.angle_at(t.start), t.took() / dial.period()));
            }
        }
    }
}

/// The search for the least time from sending an access to `to` until it begins, with the head at `from`.
///
/// Sent later and later in the turn, the access ends at the same time, until the head comes too late and a turn is lost:
/// what it could be late is what it had waited. When it was sent is known exactly; when it ended, from the earliest of
/// all completions.
#[derive(Default)]
struct Search {
    from: Spot,
    to: Spot,
    /// The moment of the turn at which it was sent first.
    sent: Option<f64>,
    /// The turns of each trip as if it had been sent at that moment, and about how many these are.
    took: Vec<f64>,
    whole: f64,
    /// Between what it could be late and what was too late, in turns.
    lo: f64,
    hi: f64,
    /// How often the head was in time and too late for what is tried.
    votes: [u32; 2],
    /// What is too late was tried again.
    sure: bool,
}

impl Search {
    fn new(from: Spot, to: Spot) -> Self {
        Self { from, to, hi: 1.0, ..Self::default() }
    }

    /// One trip, where one is still needed.
    fn goes_on(&mut self, access: Access, dial: &mut Dial<'_>) -> Result<bool> {
        let noisy = dial.noise() > 1e-4;
        let first = if noisy { 5 } else { 1 };
        if self.took.len() < first {
            let (sent, took) = access.trip(dial, self.from, self.to, self.sent)?;
            self.sent.get_or_insert(sent);
            self.took.push(took);
            self.whole = median(&self.took);
            return Ok(true);
        }
        let (open, sent) = (self.hi - self.lo > FINEST, self.sent.unwrap_or(0.0));
        if !open && noisy && !self.sure {
            return self.make_sure(access, dial, sent);
        }
        if !open && self.took.len() >= access.completions {
            return Ok(false);
        }
        // When it is known, it is only looked at more often when the access ends.
        let mid = if open { (self.lo + self.hi) / 2.0 } else { self.lo / 2.0 };
        let t = access.trip(dial, self.from, self.to, Some(sent + mid))?.1 + mid;
        self.took.push(self.whole + wrap(t - self.whole));
        if !open {
            return Ok(true);
        }
        // A completion may come much too late, and if it is that of the first block, the drive has read ahead meanwhile.
        let missed = t - self.whole >= 0.5;
        self.votes[usize::from(missed)] += 1;
        if self.votes[usize::from(missed)] == if noisy { 2 } else { 1 } {
            *if missed { &mut self.hi } else { &mut self.lo } = mid;
            self.votes = [0; 2];
        }
        Ok(true)
    }

    /// Completions that came much too late may have passed for lost turns: a little later than what is too late the head has
    /// to be too late again.
    fn make_sure(&mut self, access: Access, dial: &mut Dial<'_>, sent: f64) -> Result<bool> {
        let later = self.hi + 3.0 * dial.noise();
        let missed = later >= 1.0 || {
            let t = access.trip(dial, self.from, self.to, Some(sent + later))?.1 + later;
            t - self.whole >= 0.5
        };
        if missed {
            self.sure = true;
        } else {
            (self.lo, self.hi) = (later, 1.0);
        }
        Ok(true)
    }

    /// In nanoseconds; the access begins a sector before it ends.
    fn found(&self, dial: &Dial<'_>) -> f64 {
        let late = (self.lo + self.hi) / 2.0;
        (earliest(&self.took, dial.early()) - late - 1.0 / self.to.sectors) * dial.period()
    }
}

#[cfg(test)]
mod tests;
