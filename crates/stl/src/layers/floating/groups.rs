//! Groups of tracks, their places, and which of these are free.
//!
//! A place is room for one unit; they are numbered by address. In a group of `n` places of which `s` are spare the host has
//! units `0..n - s`. At first unit `k` is in place `k + k s / (n - s)`, so that the free places lie evenly between the others.

use smrlab_blockmap::{BlockSet, UnitMap};
use smrlab_disk::{DriveModel, TrackNo};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// A group of tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// First place and first unit.
    place: u64,
    unit: u64,
    places: u32,
    units: u32,
    /// Its free places are known by themselves.
    looked_at: bool,
}

impl Group {
    /// Where unit `k` of the group is at first, counted from the group's first place.
    fn home(&self, k: u32) -> u32 {
        let (k, spare, units) = (u64::from(k), u64::from(self.places - self.units), u64::from(self.units));
        (k + k * spare / units) as u32
    }

    /// Calls `each` with the runs of `units` that lie side by side at first, and the place of the first one of each.
    fn homes(&self, units: Range<u64>, each: &mut impl FnMut(Range<u64>, u64)) {
        let (spare, own) = (u64::from(self.places - self.units), u64::from(self.units));
        let (mut k, end) = (units.start - self.unit, units.end - self.unit);
        while k < end {
            // So many free places lie before it. The next one lies before the first unit of which that makes one more.
            let free = k * spare / own;
            let next = if spare == 0 { end } else { ((free + 1) * own).div_ceil(spare).min(end) };
            each(self.unit + k..self.unit + next, self.place + k + free);
            k = next;
        }
    }

    /// All its places.
    fn all(&self) -> Range<u64> {
        self.place..self.place + u64::from(self.places)
    }
}

/// See the [module](self).
pub(super) struct Groups {
    /// Blocks in a unit.
    pub(super) unit: u64,
    groups: Vec<Group>,
    /// Of units that are not where they were at first: their place in the group, plus one.
    moved: UnitMap,
    /// Free places of the groups that were looked at.
    free: BlockSet,
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
            groups.push(Group { place, unit: units, places, units: units_here, looked_at: false });
            (place, units) = (end, units + u64::from(units_here));
        }
        if groups.iter().all(|g| g.places == g.units) {
            return Err("no group has room for two units: use a smaller unit= or a larger group=".to_owned());
        }
        Ok(Self { unit, groups, moved: UnitMap::new(), free: BlockSet::new() })
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
        let group = &self.groups[i];
        group.place + u64::from(self.moved.get(unit).checked_sub(1).unwrap_or_else(|| group.home(k)))
    }

    /// Calls `each` with runs of `units` that lie side by side, and the place of the first one of each. Two runs may lie side by
    /// side, too.
    pub(super) fn runs(&self, units: Range<u64>, mut each: impl FnMut(Range<u64>, u64)) {
        let (mut i, mut unit) = (self.group_of(units.start).0, units.start);
        while unit < units.end {
            let group = &self.groups[i];
            let end = units.end.min(group.unit + u64::from(group.units));
            for (moved, place) in self.moved.runs_in(unit..end) {
                group.homes(unit..moved.start, &mut each);
                unit = moved.end;
                moved.for_each(|unit| each(unit..unit + 1, group.place + u64::from(place) - 1));
            }
            group.homes(unit..end, &mut each);
            (i, unit) = (i + 1, end);
        }
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
        let i = self.look_at(unit);
        self.free.runs_in(self.groups[i].all()).flatten()
    }

    /// The group of a unit, whose free places are known from here on.
    fn look_at(&mut self, unit: u64) -> usize {
        let (i, _) = self.group_of(unit);
        if !self.groups[i].looked_at {
            self.groups[i].looked_at = true;
            self.find_free(i);
        }
        i
    }

    fn find_free(&mut self, i: usize) {
        let group = self.groups[i];
        self.free.insert(group.all());
        for unit in group.unit..group.unit + u64::from(group.units) {
            let place = self.place(unit);
            self.free.remove(place..place + 1);
        }
    }

    /// A unit is in another place of its group from now on; answers the one that it left.
    pub(super) fn put(&mut self, unit: u64, place: u64) -> u64 {
        let left = self.place(unit);
        self.look_at(unit);
        self.free.remove(place..place + 1);
        self.free.insert(left..left + 1);
        self.set(unit, place);
        left
    }

    /// Units that are not where they were at first, and their places.
    pub(super) fn moved(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let units = self.moved.runs_in(0..self.units()).flat_map(|(units, _)| units);
        units.map(|unit| (unit, self.place(unit)))
    }

    /// Takes up the places of a checkpoint: they may have been given in any order.
    pub(super) fn set(&mut self, unit: u64, place: u64) {
        let (i, k) = self.group_of(unit);
        let own = (place - self.groups[i].place) as u32;
        self.moved.set(unit, if own == self.groups[i].home(k) { 0 } else { own + 1 });
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(&*self.groups) + self.moved.bytes() + self.free.bytes()) as u64
    }

    /// Blocks of the host's.
    pub(super) fn host_blocks(&self) -> Blocks {
        Blocks(self.units() * self.unit)
    }
}
