//! Random-access tracks beside the log: a unit that is written again and again gets a place there and is written in place.
//!
//! Places are slots like all others, in the last bands, on tracks so far apart that no write to one harms another. When all
//! are taken a hand goes round: a unit that was not written since the hand passed last goes back to the log.

use super::{LogLayer, records};
use crate::parts::bits::Bits;
use crate::parts::free_bands::FreeBands;
use crate::parts::homes::Live;
use crate::parts::rows::Rows;
use crate::parts::slots::Slots;
use crate::parts::units::{Fill, UnitSpan};
use crate::{AnyRecord, Cause, Counted, Dir, Endpoint, Plan, Record, Sink};
use smrlab_disk::{BandId, DriveModel};
use smrlab_units::{Blocks, Pba, counted, counters};

/// So many places the hand looks at for one write.
const LOOKS: u32 = 16;

counters! {
    /// Events that are counted.
    struct Counters {
        placed => "units_to_random_access",
        demoted => "units_back_to_log",
        refused => "units_without_a_place",
        updated => "units_updated_in_place",
    }
}

/// See the [module](self).
pub struct Raz {
    /// The first band of its tracks; all behind it are so, too.
    band: u32,
    /// Of each track: the number of its first place, and the slot that this is.
    tracks: Vec<(u32, u32)>,
    places: u32,
    free: FreeBands,
    /// Places whose unit was written since the hand passed.
    recent: Bits,
    hand: u32,
    counters: Counters,
}

impl Raz {
    /// Over the last bands of `slots`, this share of them but at least one.
    ///
    /// # Errors
    /// A sentence with the remedy, where no unit fits on a track or no band is left.
    pub fn new(drive: &DriveModel, slots: &Slots, share: f64) -> Result<Self, String> {
        let (rows, unit, bands) = (Rows::of(drive), slots.unit(), slots.band_count());
        let count = ((f64::from(bands) * share).ceil() as u32).max(1);
        let Some(band) = bands.checked_sub(count).filter(|b| *b > 0) else {
            let all = counted(bands.into(), "band");
            return Err(format!("{count} of {all} leave none for the log: use less raz="));
        };
        let (mut tracks, mut places) = (Vec::new(), 0);
        for b in band..bands {
            let all = slots.bands().band(BandId(u64::from(b)));
            let (start, end) = (all.first.0, all.first.0 + all.blocks.0);
            let mut row = rows.at(all.first);
            while rows.first(row).0 < end {
                let first = (rows.first(row).0 - start).div_ceil(unit);
                let behind = (rows.end(row).0.min(end) - start) / unit;
                if first < behind {
                    tracks.push((places, slots.of(b).start + first as u32));
                    places += (behind - first) as u32;
                }
                (0..drive.head_width()).for_each(|_| row = rows.next(row));
            }
        }
        if places == 0 {
            return Err(format!("no track holds a unit of {unit} blocks: use a smaller granularity="));
        }
        let (free, recent) = (FreeBands::new(places), Bits::new(places));
        Ok(Self { band, tracks, places, free, recent, hand: 0, counters: Counters::default() })
    }

    /// Bands that are the log's.
    pub(super) fn bands_before(&self) -> u32 {
        self.band
    }

    fn slot(&self, place: u32) -> u32 {
        let (first, slot) = self.tracks[self.tracks.partition_point(|t| t.0 <= place) - 1];
        slot + place - first
    }

    /// The place that a slot is, if it is one.
    #[inline]
    fn place(&self, slot: u32) -> Option<u32> {
        // Most units are in the log.
        if slot < self.tracks[0].1 {
            return None;
        }
        let (first, at) = self.tracks[self.tracks.partition_point(|t| t.1 <= slot).checked_sub(1)?];
        Some(first + slot - at)
    }

    /// How many places the hand passes, and whether the last one can be given up.
    fn look(&self) -> (u32, bool) {
        let looks = LOOKS.min(self.places);
        // Up to the last place, and on from the first one.
        let first = looks.min(self.places - self.hand);
        let mut passed = self.recent.run_in(self.hand..self.hand + first);
        if passed == first {
            passed += self.recent.run_in(0..looks - first);
        }
        if passed < looks { (passed + 1, true) } else { (looks, false) }
    }

    /// The last place that the hand passes when it passes so many.
    fn last_of(&self, passed: u32) -> u32 {
        (self.hand + passed - 1) % self.places
    }

    /// The hand goes on.
    pub(super) fn pass(&mut self, places: u32) {
        for _ in 0..places {
            self.recent.remove(self.hand);
            self.hand = (self.hand + 1) % self.places;
        }
    }

    pub(super) fn give_up(&mut self, place: u32) {
        self.recent.remove(place);
        self.free.put(place);
    }

    pub(super) fn durable(&mut self) {
        self.free.durable();
    }

    /// Its state as records; where units are is in the log's map.
    pub(super) fn checkpoint(&self, out: &mut dyn Sink) {
        // First, for what the hand passes counts as not written.
        out.add(&records::passed(self.hand));
        self.free.checkpoint(&mut |r: AnyRecord<'_>| out.take(records::of_places(r)));
        for run in self.recent.runs() {
            out.add(&records::recent(&run));
        }
    }

    /// Takes a record of its checkpoint.
    pub(super) fn restore(&mut self, record: &Record) {
        match records::recent_of(record) {
            Some(run) => run.for_each(|place| self.recent.insert(place as u32)),
            None => _ = self.free.replay(&records::free_of(record)),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let tracks = self.tracks.capacity() * size_of::<(u32, u32)>();
        tracks as u64 + self.recent.bytes() + self.free.bytes()
    }

    pub(super) fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
        out.level("units_in_random_access", u64::from(self.places - self.free.len()));
    }
}

impl LogLayer {
    /// The place of a unit on random-access tracks, if it has one.
    #[inline]
    pub(super) fn place_of(&self, unit: u64) -> Option<u32> {
        let raz = self.raz.as_ref()?;
        raz.place(self.homes.slot(unit)?)
    }

    /// Where a unit is that the log holds.
    #[inline]
    pub(super) fn logged(&self, unit: u64) -> Option<Pba> {
        self.pba(unit).filter(|_| self.place_of(unit).is_none())
    }

    /// Plans what of a write from `unit` on goes to random-access tracks; answers the unit behind it.
    ///
    /// # Errors
    /// What is noted of the unit, which goes to the log.
    pub(super) fn write_in_place(
        &mut self,
        span: &UnitSpan,
        unit: u64,
        fill: Fill,
        plan: &mut Plan,
    ) -> Result<u64, (u32, u32)> {
        if self.place_of(unit).is_some() {
            return Ok(self.update_in_place(span, unit, plan));
        }
        let noted = self.noted(unit);
        if self.raz.is_none() || noted.1 == 0 {
            return Err(noted);
        }
        let found = self.find_place(span, plan);
        // A unit that another one made room for may have moved, and cooled down.
        let Some(raz) = self.raz.as_mut().filter(|_| found) else { return Err(self.noted(unit)) };
        let place = raz.free.take(plan);
        let slot = raz.slot(place);
        let (at, g) = (self.slots().pba(slot), span.unit);
        plan.write_pieces(Cause::Host, at, Blocks(g), |out| span.pieces(unit..unit + 1, fill, out));
        plan.record(records::placed(span, unit));
        self.placed(unit, (place, slot));
        self.free_emptied(plan);
        Ok(unit + 1)
    }

    /// Plans the update of the units from `unit` on that lie side by side in their places.
    fn update_in_place(&mut self, span: &UnitSpan, unit: u64, plan: &mut Plan) -> u64 {
        let g = span.unit;
        let at = self.pba(unit).expect("it has a place");
        let beside = |u: u64| self.place_of(u).is_some() && self.pba(u) == Some(at + Blocks((u - unit) * g));
        let end = (unit + 1..span.end).find(|&u| !beside(u)).unwrap_or(span.end);
        let before = if unit == span.first { span.before } else { 0 };
        let behind = if end == span.end { span.behind } else { 0 };
        let (lba, blocks) = (unit * g + before, Blocks((end - unit) * g - before - behind));
        let host = Blocks(lba - span.first * g - span.before);
        plan.write(Cause::Host, at + Blocks(before), blocks, Endpoint::Host(host));
        plan.record(records::updated(lba, blocks));
        self.updated(unit..end);
        end
    }

    /// Makes sure that a place is free: the hand may bring a unit back to the log that is not one of this write.
    fn find_place(&mut self, span: &UnitSpan, plan: &mut Plan) -> bool {
        let Some(raz) = &self.raz else { return false };
        if !raz.free.is_empty() {
            return true;
        }
        let (passed, cold) = raz.look();
        let place = raz.last_of(passed);
        let victim = self.homes.in_slot(raz.slot(place));
        plan.record(records::passed(passed));
        self.hand_on(passed);
        let victim = victim.filter(|v| cold && !(span.first..span.end).contains(&v.unit));
        if let Some(victim) = victim {
            self.demote(victim, place, plan);
        } else {
            self.raz.iter_mut().for_each(|r| r.counters.refused += 1);
        }
        victim.is_some()
    }

    /// Moves a unit from its place to the log.
    fn demote(&mut self, victim: Live, place: u32, plan: &mut Plan) {
        let (first, unit) = (plan.ops().len(), Blocks(self.slots().unit()));
        let op = plan.read_staged(Cause::Defrag, self.slots().pba(victim.slot), unit);
        let head = self.host_head(0, 0);
        let (band, _) = self.open(head, plan);
        let at = self.slots().pba_in(band, self.homes.written(band));
        plan.write(Cause::Defrag, at, unit, Endpoint::Staged(op, Blocks::ZERO));
        plan.record(records::demoted(victim.unit, head));
        self.demoted(victim.unit, place, head);
        plan.cleaned("demotion", first, unit);
        self.make_room(plan);
    }

    /// The hand has passed so many places.
    pub(super) fn hand_on(&mut self, places: u32) {
        self.raz.iter_mut().for_each(|r| r.pass(places));
    }

    /// The host wrote a unit to a place, which is a slot.
    fn placed(&mut self, unit: u64, (place, slot): (u32, u32)) {
        let band = self.slots().band_of(slot);
        if self.homes.written(band) == 0 {
            self.homes.open(band);
            self.homes.skip(band, self.slots().count(band) as usize);
        }
        let (note, _) = self.noted(unit);
        self.clock += 1;
        self.counters.hot_writes += 1;
        if let Some(old) = self.homes.place(Live { unit, slot, note }) {
            self.lost(old);
        }
        if let Some(raz) = &mut self.raz {
            raz.counters.placed += 1;
            raz.recent.insert(place);
        }
    }

    /// As [`placed`](Self::placed), to the next free place.
    pub(super) fn placed_next(&mut self, unit: u64) {
        if let Some(raz) = &mut self.raz {
            let place = raz.free.pop();
            let slot = raz.slot(place);
            self.placed(unit, (place, slot));
        }
    }

    /// The host wrote units that have places.
    pub(super) fn updated(&mut self, units: std::ops::Range<u64>) {
        for unit in units {
            self.clock += 1;
            let place = self.place_of(unit).expect("it has a place");
            if let Some(raz) = &mut self.raz {
                raz.counters.updated += 1;
                raz.recent.insert(place);
            }
        }
    }

    /// The unit of a place is at the end of a head's band, and the place is free.
    pub(super) fn demoted(&mut self, unit: u64, place: u32, head: u32) {
        let band = self.heads[head as usize].expect("its head is open");
        self.homes.append(band, unit, 0);
        self.bands[band as usize].stamp = self.clock;
        self.appended(band);
        if let Some(raz) = &mut self.raz {
            raz.counters.demoted += 1;
            raz.give_up(place);
        }
    }

    /// Where a write would begin whose first unit goes to random-access tracks.
    pub(super) fn first_in_place(&self, span: &UnitSpan) -> Option<(Pba, Dir)> {
        let raz = self.raz.as_ref()?;
        if self.place_of(span.first).is_some() {
            return Some((self.pba(span.first)? + Blocks(span.before), Dir::Write));
        }
        (self.noted(span.first).1 > 0).then_some(())?;
        if let Some((place, _)) = raz.free.peek(0) {
            return Some((self.slots().pba(raz.slot(place)), Dir::Write));
        }
        let (passed, cold) = raz.look();
        let victim = self.homes.in_slot(raz.slot(raz.last_of(passed)))?;
        (cold && !(span.first..span.end).contains(&victim.unit))
            .then(|| (self.slots().pba(victim.slot), Dir::Read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many places on one track.
    fn raz(places: u32) -> Raz {
        let (free, recent) = (FreeBands::new(places), Bits::new(places));
        Raz { band: 1, tracks: vec![(0, 8)], places, free, recent, hand: 0, counters: Counters::default() }
    }

    /// Of four places 0 and 1 were written again: the hand passes them once, and gives up 2, then 3, then 0, which nobody wrote since. Where all
    /// were written it goes round and finds none, but the next time.
    #[test]
    fn the_hand_goes_round_and_passes_what_was_written_again() {
        let mut raz = raz(4);
        let next = |raz: &mut Raz| {
            let (passed, cold) = raz.look();
            let last = raz.last_of(passed);
            raz.pass(passed);
            (last, cold)
        };
        [0, 1].into_iter().for_each(|place| raz.recent.insert(place));
        assert_eq!([(); 3].map(|()| next(&mut raz)), [(2, true), (3, true), (0, true)]);
        (0..4).for_each(|place| raz.recent.insert(place));
        assert_eq!([(); 2].map(|()| next(&mut raz)), [(0, false), (1, true)]);
    }

    /// The hand looks at so many places at most, and on from the last one to the first.
    #[test]
    fn the_hand_passes_so_many_places_at_once_at_most() {
        let n = 3 * LOOKS;
        let mut raz = Raz { hand: n - 3, ..raz(n) };
        let written = |raz: &Raz| raz.recent.runs().iter().map(|run| run.end - run.start).sum::<u64>();
        [n - 3, n - 2, n - 1, 0, 1, 3].into_iter().for_each(|place| raz.recent.insert(place));
        // Five were written, and the sixth was not.
        assert_eq!((raz.look(), raz.last_of(6)), ((6, true), 2));
        raz.pass(6);
        assert_eq!((raz.hand, written(&raz)), (3, 1));
        assert_eq!(raz.look(), (2, true));
        (0..n).for_each(|place| raz.recent.insert(place));
        assert_eq!(raz.look(), (LOOKS, false));
        raz.pass(LOOKS);
        assert_eq!((raz.hand, written(&raz)), (3 + LOOKS, u64::from(n - LOOKS)));
        raz.hand = n - 3;
        assert_eq!(raz.look(), (3 + 3 + 1, true), "the last three and the first three");
    }
}
