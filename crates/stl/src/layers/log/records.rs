//! What survives a power cut: every change of the log as a record, applied by the same functions.

use super::{Band, LogLayer, State};
use crate::Record;
use crate::parts::homes::Live;
use crate::parts::units::UnitSpan;
use smrlab_units::{Blocks, Lba};
use std::ops::Range;

/// Band `words[0]`, the next free one, was taken for head `words[1]`.
const OPEN: u32 = 1;
/// The host's units from `words[0]` on were appended at head `words[2]`. The lower half of `words[1]` is their number; bits
/// 32 to 47 and 48 to 63 say how many blocks of the first and last unit are not the host's.
const APPEND: u32 = 2;
/// `words[1]` units from `words[0]` on moved to head `words[2]`.
const MOVE: u32 = 3;
/// The compaction of band `words[0]` begins.
const CLEAN: u32 = 4;
/// Band `words[0]` has nothing live and is free.
const FREE: u32 = 5;
/// Blocks `words[0]`, `words[1]` in number, were discarded.
const DISCARD: u32 = 6;
/// Checkpoint: the first `words[0]` bands were taken; the host has written `words[1]` units.
const TAKEN: u32 = 7;
/// Checkpoint: band `words[0]` (lower half) was taken for the head in the upper half; `words[1]` slots of it are written;
/// its youngest data are of `words[2]`.
const BAND: u32 = 8;
/// Checkpoint: the lower halves of the words are a unit and its slot, the upper ones its note and how many units follow
/// each other so.
const LIVE: u32 = 9;

const HALF: u64 = 0xffff_ffff;

pub(super) fn opened(band: u32, head: u32) -> Record {
    Record { tag: OPEN, words: [u64::from(band), u64::from(head), 0] }
}

pub(super) fn appended(span: &UnitSpan, units: Range<u64>, head: u32) -> Record {
    let before = if units.start == span.first { span.before } else { 0 };
    let behind = if units.end == span.end { span.behind } else { 0 };
    let count = (units.end - units.start) | before << 32 | behind << 48;
    Record { tag: APPEND, words: [units.start, count, u64::from(head)] }
}

pub(super) fn moved(unit: u64, units: u64, head: u32) -> Record {
    Record { tag: MOVE, words: [unit, units, u64::from(head)] }
}

pub(super) fn cleaning(band: u32) -> Record {
    Record { tag: CLEAN, words: [u64::from(band), 0, 0] }
}

pub(super) fn freed(band: u32) -> Record {
    Record { tag: FREE, words: [u64::from(band), 0, 0] }
}

pub(super) fn discarded(lba: Lba, blocks: Blocks) -> Record {
    Record { tag: DISCARD, words: [lba.0, blocks.0, 0] }
}

impl LogLayer {
    /// Makes the change that a record tells.
    pub(super) fn apply(&mut self, record: &Record) {
        let [a, b, c] = record.words;
        match record.tag {
            OPEN => {
                let band = self.free.pop();
                debug_assert_eq!(u64::from(band), a, "another band was taken");
                self.taken(band, b as u32);
            }
            APPEND => {
                let (n, before, behind) = (b & HALF, b >> 32 & 0xffff, b >> 48);
                self.append(self.heads[c as usize].expect("its head is open"), a..a + n);
                let g = self.slots().unit();
                if !self.discarded.is_empty() {
                    self.discarded.remove(a * g + before..(a + n) * g - behind);
                }
            }
            MOVE => self.relocate(self.heads[c as usize].expect("its head is open"), a..a + b),
            CLEAN => {
                self.cleaning = Some(a as u32);
                self.counters.empties += u64::from(self.homes.live(a as u32) == 0);
            }
            FREE => self.release(a as u32),
            DISCARD => self.discard(Lba(a), Blocks(b)),
            TAKEN => {
                self.free.restart(a as u32);
                self.bands = vec![Band::default(); a as usize];
                self.clock = b;
            }
            BAND => self.restore_band(a as u32, (a >> 32) as u32, b as u32, c),
            LIVE => {
                for i in 0..(b >> 32) {
                    let (unit, slot) = ((a & HALF) + i, (b & HALF) as u32 + i as u32);
                    self.restore(Live { unit, slot, note: (a >> 32) as u32 });
                }
            }
            _ => debug_assert!(false, "record {} is not the log's", record.tag),
        }
    }

    /// Units of the band being cleaned are at the end of a head's band now.
    fn relocate(&mut self, band: u32, units: Range<u64>) {
        for unit in units {
            let note = self.homes.find(unit).map_or(0, |old| old.note);
            let (note, _) = self.cooled(note);
            self.counters.relocated += 1;
            if let Some(old) = self.homes.append(band, unit, note) {
                let stamp = self.bands[old as usize].stamp;
                let target = &mut self.bands[band as usize].stamp;
                *target = stamp.max(*target);
                self.lost(old);
            }
        }
        self.appended(band);
    }

    /// A band is free; one of a checkpoint was so before.
    fn release(&mut self, band: u32) {
        if self.bands[band as usize].state == State::Closed {
            self.ripe -= u32::from(self.is_ripe(band));
            self.counters.compactions += 1;
            self.homes.free(band);
            self.bands[band as usize].state = State::Free;
        }
        self.free.put(band);
        self.cleaning = None;
    }

    fn restore_band(&mut self, band: u32, head: u32, written: u32, stamp: u64) {
        self.homes.open(band);
        self.homes.skip(band, written);
        let state = if written < self.slots().count(band) { State::Open } else { State::Closed };
        self.bands[band as usize] = Band { state, head, stamp };
        match state {
            State::Open => self.heads[head as usize] = Some(band),
            // Until its live units follow it is as dead as can be.
            _ => self.ripe += u32::from(self.is_ripe(band)),
        }
    }

    fn restore(&mut self, live: Live) {
        let band = self.slots().band_of(live.slot);
        let closed = self.bands[band as usize].state == State::Closed;
        let was_ripe = closed && self.is_ripe(band);
        self.homes.restore(live);
        self.ripe -= u32::from(was_ripe && !self.is_ripe(band));
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn FnMut(Record)) {
        let mut record = |tag, words| out(Record { tag, words });
        record(TAKEN, [u64::from(self.free.ever_taken()), self.clock, 0]);
        for (i, b) in self.bands.iter().enumerate().filter(|(_, b)| b.state != State::Free) {
            let head = u64::from(b.head) << 32;
            record(BAND, [i as u64 | head, u64::from(self.homes.written(i as u32)), b.stamp]);
            let mut run: Option<(Live, u64)> = None;
            let mut live = |(first, n): (Live, u64)| {
                let note = u64::from(first.note) << 32;
                record(LIVE, [first.unit | note, u64::from(first.slot) | n << 32, 0]);
            };
            for l in self.homes.live_in(i as u32) {
                match &mut run {
                    Some((first, n))
                        if (first.unit + *n, u64::from(first.slot) + *n, first.note)
                            == (l.unit, u64::from(l.slot), l.note) =>
                    {
                        *n += 1;
                    }
                    _ => run.replace((l, 1)).into_iter().for_each(&mut live),
                }
            }
            run.into_iter().for_each(live);
        }
        self.free.freed().for_each(|band| record(FREE, [u64::from(band), 0, 0]));
        for run in self.discarded.runs() {
            record(DISCARD, [run.start, run.end - run.start, 0]);
        }
    }
}
