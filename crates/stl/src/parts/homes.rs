//! Where every unit is, which unit every slot was written with, and how many live units each band has.
//!
//! *Home* maps a unit to its slot; the *owner* of a slot is the unit last written there. A slot is live if its owner's home
//! is the slot, so a unit that moves costs one change of the home map and a count, and nothing at the place that it left.
//! Memory: at most 5 bytes a mapped unit and 4 bytes a slot of the bands in use, 8 where a note goes with each unit.

use super::slots::Slots;
use crate::{Record, Sink};
use smrlab_blockmap::UnitMap;
use std::ops::Range;

/// Checkpoint: the first `words[1]` slots of band `words[0]` are written; what is live in them follows.
const WRITTEN: u32 = 0x4801;
/// Checkpoint: the lower halves of the words are a unit and its slot, the upper ones its note and how many units follow
/// each other so.
const LIVE: u32 = 0x4802;
const HALF: u64 = 0xffff_ffff;

/// What a band holds.
#[derive(Clone, Debug, Default)]
struct Row {
    /// Of each slot written so far: the unit.
    owners: Vec<u32>,
    /// Of each slot written so far: its note, where notes are kept.
    notes: Vec<u32>,
    /// Sum of the notes of live units.
    weight: u64,
}

/// What a cleaning asks of every band: by itself, because all of them are gone through for each one.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    live: u32,
    /// Slots of a band that can be cleaned; 0 of others.
    slots: u32,
}

/// A live unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The unit.
    pub unit: u64,
    /// Where it is.
    pub slot: u32,
    /// Its note; 0 where none are kept.
    pub note: u32,
}

/// See the [module](self).
pub struct Homes {
    slots: Slots,
    /// Slot of a unit and one, so that 0 says that it has none.
    home: UnitMap,
    rows: Vec<Row>,
    /// As many as rows.
    fills: Vec<Fill>,
    noted: bool,
    owned: u64,
}

impl Homes {
    /// Without any unit. `noted`: a number goes with each unit.
    pub fn new(slots: Slots, noted: bool) -> Self {
        Self { slots, home: UnitMap::new(), rows: Vec::new(), fills: Vec::new(), noted, owned: 0 }
    }

    /// The slots.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Where a unit is.
    #[inline]
    pub fn slot(&self, unit: u64) -> Option<u32> {
        self.home.get(unit).checked_sub(1)
    }

    /// How many units have a home.
    pub fn mapped(&self) -> u64 {
        self.home.len()
    }

    /// How many slots of a band are written.
    #[inline]
    pub fn written(&self, band: u32) -> u32 {
        self.rows.get(band as usize).map_or(0, |r| r.owners.len() as u32)
    }

    /// How many units of a band are live.
    #[inline]
    pub fn live(&self, band: u32) -> u32 {
        self.fills.get(band as usize).map_or(0, |f| f.live)
    }

    /// Sum of the notes of a band's live units.
    #[inline]
    pub fn weight(&self, band: u32) -> u64 {
        self.rows.get(band as usize).map_or(0, |r| r.weight)
    }

    /// A live unit with its note.
    #[inline]
    pub fn find(&self, unit: u64) -> Option<Live> {
        let slot = self.slot(unit)?;
        let note = if self.noted { self.note(self.slots.band_of(slot), slot) } else { 0 };
        Some(Live { unit, slot, note })
    }

    #[inline]
    fn note(&self, band: u32, slot: u32) -> u32 {
        let index = (slot - self.slots.of(band).start) as usize;
        self.rows[band as usize].notes[index]
    }

    /// A band is written from its first slot on.
    pub fn open(&mut self, band: u32) {
        let i = band as usize;
        if i >= self.rows.len() {
            self.rows.resize_with(i + 1, Row::default);
            self.fills.resize_with(i + 1, Fill::default);
        }
        debug_assert!(self.fills[i].live == 0 && self.rows[i].owners.is_empty(), "band {band} is in use");
        let slots = self.slots.count(band) as usize;
        self.rows[i].owners = Vec::with_capacity(slots);
        self.owned += slots as u64;
        if self.noted {
            self.rows[i].notes = Vec::with_capacity(slots);
        }
    }

    /// Writes `unit` to the next slot of an open band; answers the band that it left.
    ///
    /// # Panics
    /// When the band was not opened.
    #[inline]
    pub fn append(&mut self, band: u32, unit: u64, note: u32) -> Option<u32> {
        self.append_with(band, unit, |_| note)
    }

    /// As [`append`](Self::append); the new note follows from the one that the unit had, 0 where it had none.
    #[inline]
    pub fn append_with(&mut self, band: u32, unit: u64, note: impl FnOnce(u32) -> u32) -> Option<u32> {
        let row = &mut self.rows[band as usize];
        let slot = self.slots.of(band).start + row.owners.len() as u32;
        debug_assert!(slot < self.slots.of(band).end, "band {band} is full");
        row.owners.push(unit as u32);
        self.fills[band as usize].live += 1;
        let old = self.home.set(unit, slot + 1);
        if !self.noted {
            return self.leave(old);
        }
        let before = old.checked_sub(1).map_or(0, |old| self.note(self.slots.band_of(old), old));
        let (note, row) = (note(before), &mut self.rows[band as usize]);
        row.notes.push(note);
        row.weight += u64::from(note);
        self.leave(old)
    }

    /// Whether units get nothing but a home, and none of these has one.
    pub fn are_new(&self, units: Range<u64>) -> bool {
        !self.noted && self.home.runs_in(units).next().is_none()
    }

    /// Writes units that [are new](Self::are_new) to the next slots of an open band.
    ///
    /// # Panics
    /// When the band was not opened.
    pub fn append_new(&mut self, band: u32, units: Range<u64>) {
        debug_assert!(self.are_new(units.clone()));
        let row = &mut self.rows[band as usize];
        let slot = self.slots.of(band).start + row.owners.len() as u32;
        row.owners.extend(units.clone().map(|unit| unit as u32));
        self.fills[band as usize].live += (units.end - units.start) as u32;
        debug_assert!(row.owners.len() as u32 <= self.slots.count(band), "band {band} is full");
        let first = units.start;
        self.home.set_each(units, |unit| slot + 1 + (unit - first) as u32);
    }

    /// The unit has no home any more; answers the band that it left.
    pub fn remove(&mut self, unit: u64) -> Option<u32> {
        let old = self.home.set(unit, 0);
        self.leave(old)
    }

    #[inline]
    fn leave(&mut self, old: u32) -> Option<u32> {
        let slot = old.checked_sub(1)?;
        let band = self.slots.band_of(slot);
        if self.noted {
            let note = self.note(band, slot);
            self.rows[band as usize].weight -= u64::from(note);
        }
        self.fills[band as usize].live -= 1;
        Some(band)
    }

    /// A band is full: from now on it can be cleaned, until it is [freed](Self::free).
    pub fn close(&mut self, band: u32) {
        self.fills[band as usize].slots = self.slots.count(band);
    }

    /// Of the bands that can be cleaned the one with the least share of live units, the first of equals; `None`: nothing is dead in
    /// any of them.
    pub fn emptiest(&self) -> Option<u32> {
        let (mut found, mut least) = (None, (1, 1));
        for (band, fill) in (0..).zip(&self.fills) {
            let own = (u64::from(fill.live), u64::from(fill.slots));
            if own.0 * least.1 < least.0 * own.1 {
                (found, least) = (Some(band), own);
            }
        }
        found
    }

    /// Forgets what was written to a band, all of which must be dead.
    ///
    /// # Panics
    /// When something in it is live.
    pub fn free(&mut self, band: u32) {
        assert_eq!(self.live(band), 0, "band {band} is freed with live units");
        self.rows[band as usize] = Row::default();
        self.fills[band as usize] = Fill::default();
        self.owned -= u64::from(self.slots.count(band));
    }

    /// The live units of a band, in the order of their slots.
    pub fn live_in(&self, band: u32) -> impl Iterator<Item = Live> + '_ {
        let first = self.slots.of(band).start;
        let row = self.rows.get(band as usize);
        let owners = row.map_or(&[][..], |r| &r.owners);
        owners.iter().enumerate().filter_map(move |(i, &unit)| {
            let slot = first + i as u32;
            let note = if self.noted { row.map_or(0, |r| r.notes[i]) } else { 0 };
            (self.home.get(u64::from(unit)) == slot + 1).then_some(Live { unit: u64::from(unit), slot, note })
        })
    }

    /// The bands in use as records, from which [`take`](Self::take) makes the same map.
    pub fn checkpoint(&self, out: &mut dyn Sink) {
        for (band, row) in self.rows.iter().enumerate().filter(|(_, r)| r.owners.capacity() > 0) {
            out.push(WRITTEN, [band as u64, row.owners.len() as u64, 0]);
            let live: Vec<Live> = self.live_in(band as u32).collect();
            let follows = |a: &Live, b: &Live| (a.unit + 1, a.slot + 1, a.note) == (b.unit, b.slot, b.note);
            for run in live.chunk_by(follows) {
                let (first, n) = (run[0], run.len() as u64);
                let words = [first.unit | u64::from(first.note) << 32, u64::from(first.slot) | n << 32, 0];
                out.push(LIVE, words);
            }
        }
    }

    /// Takes a record of a checkpoint's; `false`: it is not one.
    pub fn take(&mut self, record: &Record) -> bool {
        let [a, b, _] = record.words;
        match record.tag {
            WRITTEN => {
                self.open(a as u32);
                self.skip(a as u32, b as usize);
            }
            LIVE => {
                let (first, slot, n) = (a & HALF, (b & HALF) as u32, b >> 32);
                if self.are_new(first..first + n) {
                    self.restore_new(first..first + n, slot);
                    return true;
                }
                (0..n).for_each(|i| {
                    let (unit, slot) = (first + i, slot + i as u32);
                    self.restore(Live { unit, slot, note: (a >> 32) as u32 });
                });
            }
            _ => return false,
        }
        true
    }

    /// The first `written` slots of an open band are written, with nothing that is live in those that were not.
    pub fn skip(&mut self, band: u32, written: usize) {
        let row = &mut self.rows[band as usize];
        // No unit has this number: there are fewer units than slots, and fewer slots than this.
        row.owners.resize(written, u32::MAX);
        if self.noted {
            row.notes.resize(written, 0);
        }
    }

    /// A unit goes to a slot that counts as written, wherever in its band; answers the band that it left.
    pub fn place(&mut self, live: Live) -> Option<u32> {
        let old = self.restore(live);
        self.leave(old)
    }

    /// The live unit in a slot.
    pub fn in_slot(&self, slot: u32) -> Option<Live> {
        let band = self.slots.band_of(slot);
        let index = (slot - self.slots.of(band).start) as usize;
        let unit = u64::from(*self.rows.get(band as usize)?.owners.get(index)?);
        self.find(unit).filter(|live| live.slot == slot)
    }

    /// A written slot holds a live unit; answers the home that it had.
    fn restore(&mut self, live: Live) -> u32 {
        let band = self.slots.band_of(live.slot);
        let index = (live.slot - self.slots.of(band).start) as usize;
        let row = &mut self.rows[band as usize];
        row.owners[index] = live.unit as u32;
        self.fills[band as usize].live += 1;
        if self.noted {
            row.notes[index] = live.note;
            row.weight += u64::from(live.note);
        }
        self.home.set(live.unit, live.slot + 1)
    }

    /// Written slots of a band, from `slot` on, hold units that [are new](Self::are_new).
    fn restore_new(&mut self, units: Range<u64>, slot: u32) {
        let band = self.slots.band_of(slot);
        let (index, n) = ((slot - self.slots.of(band).start) as usize, (units.end - units.start) as usize);
        let row = &mut self.rows[band as usize];
        row.owners[index..index + n].iter_mut().zip(units.clone()).for_each(|(own, unit)| *own = unit as u32);
        self.fills[band as usize].live += n as u32;
        let first = units.start;
        self.home.set_each(units, |unit| slot + 1 + (unit - first) as u32);
    }

    /// Which blocks of `blocks` lie in units that have a home, ascending.
    pub fn allocated(&self, blocks: Range<u64>, out: &mut dyn FnMut(Range<u64>)) {
        let unit = self.slots.unit();
        let units = blocks.start / unit..blocks.end.div_ceil(unit);
        let mut open: Option<Range<u64>> = None;
        for (run, _) in self.home.runs_in(units) {
            let run = (run.start * unit).max(blocks.start)..(run.end * unit).min(blocks.end);
            match &mut open {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => {
                    if let Some(last) = open.replace(run) {
                        out(last);
                    }
                }
            }
        }
        open.into_iter().for_each(out);
    }

    /// A hint that a unit will be looked up soon.
    #[inline]
    pub fn prefetch(&self, unit: u64) {
        self.home.prefetch(unit);
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        let a_slot = if self.noted { 8 } else { 4 };
        self.home.bytes() as u64
            + self.slots.bytes()
            + self.owned * a_slot
            + (self.rows.capacity() * size_of::<Row>() + self.fills.capacity() * size_of::<Fill>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::tests::tiny;
    use super::*;
    use crate::Records;
    use smrlab_disk::geometry::GeometrySpec;
    use smrlab_disk::{BandLayout, Bands, Geometry, ZoneSpec};

    fn live(h: &Homes, band: u32) -> Vec<u64> {
        h.live_in(band).map(|l| l.unit).collect()
    }

    #[test]
    fn a_unit_lives_where_it_was_written_last() {
        let mut h = Homes::new(tiny(3, 8), true);
        h.open(0);
        h.open(1);
        assert_eq!(h.append(0, 7, 2), None);
        assert_eq!(h.append(0, 9, 3), None);
        assert_eq!((h.live(0), h.weight(0), h.written(0)), (2, 5, 2));
        assert_eq!(h.append(1, 7, 4), Some(0));
        assert_eq!((live(&h, 0), live(&h, 1)), (vec![9], vec![7]));
        assert_eq!((h.live(0), h.weight(0), h.weight(1)), (1, 3, 4));
        assert_eq!(h.find(7).unwrap().slot, h.slots().of(1).start);
        assert_eq!(h.remove(9), Some(0));
        assert_eq!((h.slot(9), h.live(0), h.mapped()), (None, 0, 1));
        h.free(0);
        h.open(0);
        assert_eq!(h.written(0), 0);
    }

    /// In two bands of some 1200 and 900 slots: also where runs begin and end within leaves of the map, which have 1024 units, and where some of a
    /// leaf is there already.
    #[test]
    fn new_units_together_are_as_one_by_one() {
        let new = || Homes::new(tiny(40, 1), false);
        let (mut together, mut single) = (new(), new());
        for h in [&mut together, &mut single] {
            (0..2).for_each(|band| h.open(band));
        }
        for (band, units) in [(0, 5..6), (0, 1000..2100), (1, 6..9), (1, 2100..2400)] {
            assert!(together.are_new(units.clone()));
            together.append_new(band, units.clone());
            units.for_each(|unit| assert_eq!(single.append(band, unit, 0), None));
            assert_eq!(together.bytes(), single.bytes());
            assert_eq!(
                (together.live(band), together.written(band)),
                (single.live(band), single.written(band))
            );
        }
        assert!((0..2).all(|band| live(&together, band) == live(&single, band)));
        assert!((0..4000).all(|unit| together.slot(unit) == single.slot(unit)));
        assert_eq!(together.mapped(), single.mapped());
        let mut taken = new();
        let mut records = Records::default();
        together.checkpoint(&mut records);
        assert!(records.changes().all(|r| taken.take(&r)));
        assert_eq!((taken.mapped(), taken.live(0), taken.written(1)), (1404, 1101, 303));
        assert!((0..2).all(|band| live(&taken, band) == live(&single, band)));
        assert!((0..4000).all(|unit| taken.slot(unit) == single.slot(unit)));
        assert!(!together.are_new(2399..2500) && together.are_new(9..1000) && !together.are_new(9..1001));
        assert!(!Homes::new(tiny(40, 1), true).are_new(0..1), "notes go with each unit");
    }

    #[test]
    fn a_checkpoint_makes_the_same_map() {
        let mut h = Homes::new(tiny(3, 8), true);
        h.open(0);
        h.open(2);
        for (band, unit, note) in [(0, 3, 1), (0, 4, 1), (0, 5, 2), (2, 3, 7)] {
            h.append(band, unit, note);
        }
        let (mut records, mut again) = (Records::default(), Records::default());
        h.checkpoint(&mut records);
        let mut other = Homes::new(tiny(3, 8), true);
        assert!(records.changes().all(|r| other.take(&r)) && !other.take(&Record::default()));
        other.checkpoint(&mut again);
        assert_eq!(records, again);
        assert_eq!(records.len(), 2 + 3, "bands and runs of like notes");
        for band in 0..3 {
            assert_eq!((live(&h, band), h.written(band)), (live(&other, band), other.written(band)));
        }
    }

    /// Two bands of 24 units and two of 12.
    #[test]
    fn the_emptiest_band_is_the_first_with_the_least_share_of_live_units() {
        let spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(8, 64), ZoneSpec::plain(8, 32)]);
        let geometry = Geometry::new(spec).unwrap();
        let layout = BandLayout { tracks: 3, head_width: 2, random_access: 0 };
        let mut h = Homes::new(Slots::new(Bands::new(&geometry, layout).unwrap(), 8).unwrap(), false);
        for band in 0..4 {
            h.open(band);
            (0..h.slots().count(band)).for_each(|i| _ = h.append(band, u64::from(100 * band + i), 0));
        }
        assert_eq!([0, 1, 2, 3].map(|band| h.live(band)), [24, 24, 12, 12]);
        h.remove(100);
        assert_eq!(h.emptiest(), None, "none is closed");
        [0, 2, 3].into_iter().for_each(|band| h.close(band));
        assert_eq!(h.emptiest(), None, "nothing is dead in those that are closed");
        h.close(1);
        assert_eq!(h.emptiest(), Some(1));
        h.remove(300);
        assert_eq!(h.emptiest(), Some(3), "11 of 12 are less than 23 of 24");
        h.remove(101);
        assert_eq!(h.emptiest(), Some(1), "22 of 24 are as many, and come first");
        (301..312).for_each(|unit| _ = h.remove(unit));
        assert_eq!(h.emptiest(), Some(3));
        h.free(3);
        assert_eq!(h.emptiest(), Some(1));
        h.open(3);
        assert_eq!(h.emptiest(), Some(1), "an open band is not cleaned");
    }

    #[test]
    fn a_note_follows_from_the_one_before() {
        let mut h = Homes::new(tiny(3, 8), true);
        h.open(0);
        h.open(1);
        h.append(0, 7, 40);
        assert_eq!(h.append_with(1, 7, |note| note / 2), Some(0));
        assert_eq!((h.find(7).unwrap().note, h.weight(0), h.weight(1)), (20, 0, 20));
        h.append_with(1, 8, |note| note + 3);
        assert_eq!(h.weight(1), 23, "one that had no home had no note");
    }

    #[test]
    fn allocated_blocks_are_those_of_mapped_units_within_the_question() {
        let mut h = Homes::new(tiny(3, 8), false);
        h.open(0);
        for unit in [5, 6, 8] {
            h.append(0, unit, 0);
        }
        let mut out = Vec::new();
        h.allocated(42..70, &mut |r| out.push(r));
        assert_eq!(out, [42..56, 64..70]);
    }
}
