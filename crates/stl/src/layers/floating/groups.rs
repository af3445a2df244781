//! Groups of tracks, their places, and which of these are free.
//!
//! A place is room for one unit; they are numbered by address. In a group of `n` places of which `s` are spare the host has
//! units `0..n - s`. At first unit `k` is in place `k + k s / (n - s)`, so that the free places lie evenly between the others.

use smrlab_disk::{DriveModel, TrackNo};
use smrlab_units::{Blocks, Pba};
use std::collections::{BTreeMap, BTreeSet};

/// A group of tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// First place and first unit.
    place: u64,
    unit: u64,
    places: u32,
    units: u32,
}

impl Group {
    /// Where unit `k` of the group is at first, counted from the group's first place.
    fn home(&self, k: u32) -> u32 {
        let (k, spare, units) = (u64::from(k), u64::from(self.places - self.units), u64::from(self.units));
        (k + k * spare / units) as u32
    }
}

/// What became of a group of which a unit has moved.
#[derive(Clone, Debug)]
struct Changed {
    /// Places of the units that are not where they were at first.
    moved: BTreeMap<u32, u32>,
    free: BTreeSet<u32>,
}

/// Bytes of a tree with so many entries: a node has room for eleven, and several are two thirds full on the average.
pub(super) fn tree<T>(entries: usize) -> usize {
    let nodes = if entries > 11 { entries.div_ceil(7) } else { entries.min(1) };
    nodes * (11 * size_of::<T>() + 16)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Blocks in a unit.
    pub(super) unit: u64,
    groups: Vec<Group>,
    changed: BTreeMap<usize, Changed>,
}

impl Groups {
    /// Of `tracks` tracks each, with units of `unit` blocks, a share of `spare` of which is free.
    ///
    /// # Errors
    /// A sentence with the remedy: a group of tracks has no room for a unit and a spare one, or for too many.
    pub(super) fn new(drive: &DriveModel, tracks: u64, unit: u64, spare: f64) -> Result<Self, String> {
        let geometry = drive.geometry();
        let all = drive.counted_blocks().0 / unit;
        let (mut groups, mut place, mut units) = (Vec::new(), 0, 0);
        for first in (0..geometry.tracks()).step_by(tracks as usize) {
            let next = first + tracks;
            let end = match next < geometry.tracks() {
                true => geometry.track_start(TrackNo(next)).0.div_ceil(unit).min(all),
                false => all,
            };
            if end == place {
                continue;
            }
            let places =
                u32::try_from(end - place).map_err(|_| "too many units in a group: use a larger unit=")?;
            let wanted = ((f64::from(places) * spare).round() as u32).max(1);
            // The last tracks may be too few.
            let units_here = if places > wanted { places - wanted } else { places };
            groups.push(Group { place, unit: units, places, units: units_here });
            (place, units) = (end, units + u64::from(units_here));
        }
        if groups.iter().all(|g| g.places == g.units) {
            return Err("no group has room for two units: use a smaller unit= or a larger group=".to_owned());
        }
        Ok(Self { unit, groups, changed: BTreeMap::new() })
    }

    /// Units of the host's.
    pub(super) fn units(&self) -> u64 {
        self.groups.last().map_or(0, |g| g.unit + u64::from(g.units))
    }

    fn group_of(&self, unit: u64) -> (usize, u32) {
        let i = self.groups.partition_point(|g| g.unit <= unit) - 1;
        (i, (unit - self.groups[i].unit) as u32)
    }

    /// The place of a unit.
    pub(super) fn place(&self, unit: u64) -> u64 {
        let (i, k) = self.group_of(unit);
        let moved = self.changed.get(&i).and_then(|c| c.moved.get(&k).copied());
        self.groups[i].place + u64::from(moved.unwrap_or_else(|| self.groups[i].home(k)))
    }

    /// First block of a place.
    pub(super) fn pba(&self, place: u64) -> Pba {
        Pba(place * self.unit)
    }

    /// First block of a unit.
    pub(super) fn at(&self, unit: u64) -> Pba {
        self.pba(self.place(unit))
    }

    /// The places that are free in the group of a unit, ascending.
    pub(super) fn free(&mut self, unit: u64) -> impl Iterator<Item = u64> + '_ {
        let (i, _) = self.group_of(unit);
        let first = self.groups[i].place;
        self.changed(i).free.iter().map(move |&place| first + u64::from(place))
    }

    fn changed(&mut self, i: usize) -> &mut Changed {
        let group = self.groups[i];
        self.changed.entry(i).or_insert_with(|| {
            let mut free: BTreeSet<u32> = (0..group.places).collect();
            (0..group.units).for_each(|k| _ = free.remove(&group.home(k)));
            Changed { moved: BTreeMap::new(), free }
        })
    }

    /// A unit is in another place of its group from now on; answers the one that it left.
    pub(super) fn put(&mut self, unit: u64, place: u64) -> u64 {
        let left = self.place(unit);
        let (i, k) = self.group_of(unit);
        let group = self.groups[i];
        let own = |place: u64| (place - group.place) as u32;
        let changed = self.changed(i);
        changed.free.remove(&own(place));
        changed.free.insert(own(left));
        match own(place) == group.home(k) {
            true => changed.moved.remove(&k),
            false => changed.moved.insert(k, own(place)),
        };
        left
    }

    /// Units that are not where they were at first, and their places.
    pub(super) fn moved(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.changed.iter().flat_map(|(&i, changed)| {
            let group = self.groups[i];
            changed
                .moved
                .iter()
                .map(move |(&k, &place)| (group.unit + u64::from(k), group.place + u64::from(place)))
        })
    }

    /// Takes up the places of a checkpoint: they may have been given in any order.
    pub(super) fn set(&mut self, unit: u64, place: u64) {
        let (i, k) = self.group_of(unit);
        let group = self.groups[i];
        let own = (place - group.place) as u32;
        self.changed(i).moved.insert(k, own);
    }

    /// All places were taken up: finds the free ones.
    pub(super) fn settle(&mut self) {
        for (&i, changed) in &mut self.changed {
            let group = self.groups[i];
            changed.free = (0..group.places).collect();
            for k in 0..group.units {
                let place = changed.moved.get(&k).copied().unwrap_or_else(|| group.home(k));
                changed.free.remove(&place);
            }
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        let of = |c: &Changed| tree::<(u32, u32)>(c.moved.len()) + tree::<u32>(c.free.len());
        let within: usize = self.changed.values().map(of).sum();
        let changed = tree::<(usize, Changed)>(self.changed.len());
        (self.groups.len() * size_of::<Group>() + changed + within) as u64
    }

    /// Blocks of the host's.
    pub(super) fn host_blocks(&self) -> Blocks {
        Blocks(self.units() * self.unit)
    }
}
