//! Least access times: from a block read to the first one elsewhere that the head still catches. What the disk turns
//! meanwhile is the time of overhead, seek and settle together; the same on one track is the overhead alone.

use super::order::Order;
use super::{Skews, Zone};
use crate::ProbeError;
use crate::dial::Dial;
use crate::stats::{earliest, median, turn, wrap};
use serde::{Deserialize, Serialize};
use smrlab_units::Dir;

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
    fn same_track(&self, dial: &mut Dial<'_>, cylinder: u64) -> Result<Option<(Spot, Spot)>, ProbeError> {
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
#[derive(Clone, Copy, Debug)]
struct Spot {
    lba: u64,
    sectors: f64,
}

/// Measures the curve of reads, and of writes where `destroy` allows them.
///
/// # Errors
/// The target's.
pub(super) fn find(
    dial: &mut Dial<'_>,
    zones: &[Zone],
    skews: &Skews,
    destroy: bool,
) -> Result<Seeks, ProbeError> {
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
        let mut curve = Vec::new();
        for (k, &d) in distances.iter().enumerate() {
            dial.share((i as f64 + k as f64 / distances.len() as f64) / dirs.len() as f64);
            let time = access.over(dial, &map, most, d)? - overhead;
            curve.push((d, time.max(0.0)));
        }
        if dir == Dir::Read {
            out.read_overhead_ns = overhead.max(0.0);
            out.read = curve;
            if let Some((a, b)) = map.switch() {
                out.head_switch_ns = Some((access.least(dial, a, b)? - overhead).max(0.0));
            }
        } else {
            out.write_overhead_ns = Some(overhead.max(0.0));
            out.write = curve;
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
    /// The mean of the least times over `d` of `most` cylinders there and back, from a quarter and from the middle of what there
    /// is room for. Both in turn: what the drive's own cache has of one is pushed out together with the other.
    fn over(self, dial: &mut Dial<'_>, map: &Map<'_>, most: u64, d: u64) -> Result<f64, ProbeError> {
        let room = most - d;
        let mut searches = Vec::new();
        for (from, to) in [(room / 4, room / 4 + d), (room / 2 + d, room / 2)] {
            let Some(start) = map.blocks(from).first().copied() else { continue };
            searches.push(map.blocks(to).into_iter().map(|to| Search::new(start, to)).collect::<Vec<_>>());
        }
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
        let least = |group: &Vec<Search>| group.iter().map(|s| s.found(dial)).fold(f64::INFINITY, f64::min);
        let times: Vec<f64> = searches.iter().map(least).filter(|t| t.is_finite()).collect();
        Ok(median(&times))
    }

    /// The least time from sending an access to `to` until it begins, with the head at `from`, in nanoseconds.
    fn least(self, dial: &mut Dial<'_>, from: Spot, to: Spot) -> Result<f64, ProbeError> {
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
    fn trip(
        self,
        dial: &mut Dial<'_>,
        from: Spot,
        to: Spot,
        when: Option<f64>,
    ) -> Result<(f64, f64), ProbeError> {
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
}

impl Search {
    fn new(from: Spot, to: Spot) -> Self {
        Self { from, to, sent: None, took: Vec::new(), whole: 0.0, lo: 0.0, hi: 1.0, votes: [0; 2] }
    }

    /// One trip, where one is still needed.
    fn goes_on(&mut self, access: Access, dial: &mut Dial<'_>) -> Result<bool, ProbeError> {
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

    /// In nanoseconds; the access begins a sector before it ends.
    fn found(&self, dial: &Dial<'_>) -> f64 {
        let late = (self.lo + self.hi) / 2.0;
        (earliest(&self.took, dial.early()) - late - 1.0 / self.to.sectors) * dial.period()
    }
}
