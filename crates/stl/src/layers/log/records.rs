//! What survives a power cut: every change of the log as a record, applied by the same functions.

use super::{Band, BandState, LogLayer};
use crate::parts::units::UnitSpan;
use crate::{Record, Sink};
use smrlab_units::{Blocks, Lba, Pba};
use std::ops::Range;

records! {
    /// Band `words[0]`, the next free one, was taken for head `words[1]`.
    OPEN = 1: opened(band: u32, head: u32) -> [u64::from(band), u64::from(head), 0];
    /// The host's units from `words[0]` on were appended at head `words[2]`. The lower half of `words[1]` is their number; bits
    /// 32 to 47 and 48 to 63 say how many blocks of the first and last unit are not the host's.
    APPEND = 2;
    /// `words[1]` units from `words[0]` on moved to head `words[2]`.
    MOVE = 3: moved(unit: u64, units: u64, head: u32) -> [unit, units, u64::from(head)];
    /// The compaction of band `words[0]` begins.
    CLEAN = 4: cleaning(band: u32) -> [u64::from(band), 0, 0];
    /// Band `words[0]` has nothing live and is free.
    FREE = 5: freed(band: u32) -> [u64::from(band), 0, 0];
    /// Blocks `words[0]`, `words[1]` in number, were discarded.
    DISCARD = 6: discarded(lba: Lba, blocks: Blocks) -> [lba.0, blocks.0, 0];
    /// Checkpoint: the host has written `words[0]` units.
    CLOCK = 7;
    /// Checkpoint, behind the map: band `words[0]` was taken for head `words[1]`; its youngest data are of `words[2]`.
    BAND = 8;
    /// The slots up to the one with block `words[0]` are written, more than are known of: nothing is live in the others.
    SKIP = 9;
    /// The host's unit `words[0]` went to the next free place for random access; `words[1]` as the bits of [`APPEND`] say.
    PLACE = 10;
    /// Blocks `words[0]`, `words[1]` in number, were written in their places.
    UPDATE = 11: updated(lba: u64, blocks: Blocks) -> [lba, blocks.0, 0];
    /// Unit `words[0]` moved from its place to head `words[1]`.
    DEMOTE = 12: demoted(unit: u64, head: u32) -> [unit, u64::from(head), 0];
    /// The hand passed `words[0]` places.
    PASS = 13: passed(places: u32) -> [u64::from(places), 0, 0];
    /// Checkpoint: places from `words[0]` up to `words[1]` were written since the hand passed.
    RECENT = 14: recent(places: &Range<u64>) -> [places.start, places.end, 0];
    /// Checkpoint: a record of the free places, with this in its tag beside its own.
    PLACES = 0x1_0000;
}

const HALF: u64 = 0xffff_ffff;

pub(super) fn appended(span: &UnitSpan, units: Range<u64>, head: u32) -> Record {
    let before = if units.start == span.first { span.before } else { 0 };
    let behind = if units.end == span.end { span.behind } else { 0 };
    let count = (units.end - units.start) | before << 32 | behind << 48;
    Record { tag: APPEND, words: [units.start, count, u64::from(head)] }
}

pub(super) fn placed(span: &UnitSpan, unit: u64) -> Record {
    Record { tag: PLACE, ..appended(span, unit..unit + 1, 0) }
}

pub(super) fn recent_of(record: &Record) -> Option<Range<u64>> {
    (record.tag == RECENT).then_some(record.words[0]..record.words[1])
}

pub(super) fn of_places<W>(record: Record<W>) -> Record<W> {
    Record { tag: record.tag | PLACES, ..record }
}

pub(super) fn free_of(record: &Record) -> Record {
    Record { tag: record.tag & !PLACES, ..*record }
}

/// The medium is written up to this block, and perhaps the log knows nothing of it: a host that logs over zones finds write pointers behind a
/// write that was cut. Where the band is open, and not empty, it is appended to from there on.
pub fn skipped(last: Pba) -> Record {
    Record { tag: SKIP, words: [last.0, 0, 0] }
}

impl LogLayer {
    /// Makes the change that a record tells.
    pub(super) fn apply(&mut self, record: &Record) {
        let [a, b, c] = record.words;
        self.change(record, [a, b, c]);
        // What became free has a record of its own.
        self.emptied.clear();
    }

    fn change(&mut self, record: &Record, [a, b, c]: [u64; 3]) {
        match record.tag {
            OPEN => {
                let band = self.free.pop();
                debug_assert_eq!(u64::from(band), a, "another band was taken");
                self.taken(band, b as u32);
            }
            APPEND => {
                let (n, before, behind) = (b & HALF, b >> 32 & 0xffff, b >> 48);
                self.append(self.heads[c as usize].expect("its head is open"), a..a + n, None);
                let g = self.slots().unit();
                if !self.discarded.is_empty() {
                    self.discarded.remove(a * g + before..(a + n) * g - behind);
                }
            }
            PLACE => {
                let (before, behind, g) = (b >> 32 & 0xffff, b >> 48, self.slots().unit());
                self.placed_next(a);
                self.discarded.remove(a * g + before..(a + 1) * g - behind);
            }
            UPDATE => {
                let g = self.slots().unit();
                self.updated(a / g..(a + b).div_ceil(g));
                self.discarded.remove(a..a + b);
            }
            DEMOTE => self.demoted(a, self.place_of(a).expect("it has a place"), b as u32),
            PASS => self.hand_on(a as u32),
            MOVE => self.relocate(self.heads[c as usize].expect("its head is open"), a..a + b),
            CLEAN => self.cleaning = Some(a as u32),
            FREE => self.release(a as u32),
            DISCARD => self.forget(Lba(a), Blocks(b)),
            SKIP => self.skip(Pba(a)),
            CLOCK => self.clock = a,
            BAND => self.restore_band(a as u32, b as u32, c),
            tag if tag == RECENT || tag & PLACES > 0 => self.raz.iter_mut().for_each(|r| r.restore(record)),
            _ => {
                let known = self.homes.take(record)
                    || self.free.replay(record)
                    || self.window.as_mut().is_some_and(|window| window.replay(record));
                debug_assert!(known, "record {} is not the log's", record.tag);
            }
        }
    }

    /// Units of the band being cleaned are at the end of a head's band now.
    fn relocate(&mut self, band: u32, units: Range<u64>) {
        let separate = self.options.separate;
        for unit in units {
            self.counters.relocated += 1;
            if let Some(old) = self.homes.append_with(band, unit, |note| separate.cooled(note)) {
                let stamp = self.bands[old as usize].stamp;
                let target = &mut self.bands[band as usize].stamp;
                *target = stamp.max(*target);
                self.lost(old);
            }
        }
        self.appended(band);
    }

    fn skip(&mut self, last: Pba) {
        let Some((band, offset)) = self.slots().bands().band_of(last) else { return };
        let (band, written) = (band.0 as u32, (offset.0 / self.slots().unit()) as u32 + 1);
        let known = self.homes.written(band);
        let open = self.bands.get(band as usize).is_some_and(|b| b.state == BandState::Open);
        if open && known > 0 && known < written {
            self.homes.skip(band, written as usize);
            self.appended(band);
        }
    }

    pub(super) fn release(&mut self, band: u32) {
        self.ripe -= u32::from(self.is_ripe(band));
        match self.cleaning.take_if(|cleaned| *cleaned == band) {
            Some(_) => self.counters.compactions += 1,
            None => self.counters.empties += 1,
        }
        self.homes.free(band);
        self.hot -= u32::from(self.is_hot(&self.bands[band as usize]));
        self.bands[band as usize].state = BandState::Free;
        self.free.put(band);
    }

    fn restore_band(&mut self, band: u32, head: u32, stamp: u64) {
        let full = self.homes.written(band) == self.slots().count(band);
        let state = if full { BandState::Closed } else { BandState::Open };
        self.bands.resize(self.bands.len().max(band as usize + 1), Band::default());
        self.bands[band as usize] = Band { state, head, stamp };
        match state {
            BandState::Open => self.heads[head as usize] = Some(band),
            _ => {
                self.closed(band);
                self.ripe += u32::from(self.is_ripe(band));
            }
        }
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        out.push(CLOCK, [self.clock, 0, 0]);
        self.free.checkpoint(out);
        self.homes.checkpoint(out);
        for (i, b) in self.bands.iter().enumerate().filter(|(_, b)| b.state != BandState::Free) {
            out.push(BAND, [i as u64, u64::from(b.head), b.stamp]);
        }
        self.raz.iter().for_each(|raz| raz.checkpoint(out));
        self.window.iter().for_each(|window| window.checkpoint(out));
        for run in self.discarded.runs() {
            out.add(&discarded(Lba(run.start), Blocks(run.end - run.start)));
        }
    }
}
