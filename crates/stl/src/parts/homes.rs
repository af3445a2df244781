//! Where every unit is, which unit every slot was written with, and how many live units each band has.
//!
//! *Home* maps a unit to its slot; the *owner* of a slot is the unit last written there. A slot is live if its owner's home
//! is the slot, so a unit that moves costs one change of the home map and a count, and nothing at the place that it left.
//! Memory: at most 5 bytes a mapped unit and 4 bytes a slot of the bands in use, 8 where a note goes with each unit.

use super::slots::Slots;
use crate::{Record, Sink};
use smrlab_blockmap::{Hints, UnitMap};
use std::ops::Range;

/// Checkpoint: the first `words[1]` slots of band `words[0]` are written; what is live in them follows.
const WRITTEN: u32 = 0x4801;
/// Checkpoint: the lower halves of the words are a unit and its slot, the upper ones its note and how many units follow
/// each other so.
const LIVE: u32 = 0x4802;
const HALF: u64 = 0xffff_ffff;

/// So many hints later the home of a unit is near, which the map brings in steps, and its note can be hinted at.
const APART: usize = 12;

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
    /// Units that were hinted at, where they have notes.
    hints: Hints,
}

impl Homes {
    /// Without any unit. `noted`: a number goes with each unit.
    pub fn new(slots: Slots, noted: bool) -> Self {
        let (home, hints) = Default::default();
        Self { slots, home, rows: Vec::new(), fills: Vec::new(), noted, owned: 0, hints }
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
        if !self.noted {
            return;
        }
        let earlier = self.hints.add(unit)(APART);
        if let Some(slot) = self.slot(earlier) {
            let band = self.slots.band_of(slot);
            let index = (slot - self.slots.of(band).start) as usize;
            smrlab_blockmap::prefetch(&self.rows[band as usize].notes, index);
        }
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
#[path = "homes_tests.rs"]
mod tests;
