//! What survives a power cut: the ring, the places of regions and the cursor, as records that are applied by the same functions.

use super::{Cursor, ERegion};
use crate::parts::extents::Extent;
use crate::parts::ring::Ring;
use crate::{Record, Sink};
use std::ops::Range;

records! {
    /// `words[1]` blocks from LBA `words[0]` on were written at the head of the ring.
    APPEND = 1: appended(lba: u64, blocks: u64) -> [lba, blocks, 0];
    /// Of region `words[0]` the blocks from offset `words[1]` up to `words[2]` are in the spare place.
    REFRESH = 2: refreshed(region: u64, part: &Range<u64>) -> [region, part.start, part.end];
    /// `words[1]` blocks from LBA `words[0]` on were discarded.
    FORGET = 3: forgotten(lba: u64, blocks: u64) -> [lba, blocks, 0];
    /// Checkpoint: the ring's tail is at `words[0]`, `words[1]` positions are used.
    RING = 4;
    /// Checkpoint: an entry: first LBA, blocks, position.
    ENTRY = 5;
    /// Checkpoint: the ring holds the newest copy: first LBA, blocks, position.
    CACHED = 6;
    /// Checkpoint: region `words[0]` is in place `words[1]`.
    PLACE = 7;
    /// Checkpoint: the cursor's region and offset, and the spare place.
    CURSOR = 8;
}

impl ERegion {
    /// Makes the change that a record tells.
    pub(super) fn apply(&mut self, record: &Record) {
        let [a, b, c] = record.words;
        match record.tag {
            // Whatever the ring holds holds data, though the power went between two records of a write or of a discard.
            APPEND => {
                self.append(a, b);
                self.live.add(a..a + b);
            }
            REFRESH => self.refresh(a, b..c),
            FORGET => {
                self.forget(a..a + b);
                self.trim();
            }
            RING => self.ring = Ring::with(self.ring.size(), a, b),
            ENTRY => _ = self.tally.begin(a, b, c),
            CACHED => {
                self.hold(Extent { lba: a, blocks: b, packet: self.tally.entry_at(c, &self.ring), at: c })
            }
            PLACE => self.place[a as usize] = b as u32,
            CURSOR => (self.cursor, self.spare) = (Cursor { region: a, done: b }, c as u32),
            _ => {
                let taken = self.live.take(record);
                debug_assert!(taken.is_some(), "record {} is not e-region's", record.tag);
                if let Some((discarded, false)) = taken {
                    self.forget(discarded);
                    self.trim();
                }
            }
        }
    }

    /// Blocks were written at the head of the ring; answers whether it is known that it held all of them, and so that they hold data.
    pub(super) fn append(&mut self, lba: u64, blocks: u64) -> bool {
        let at = self.ring.head();
        self.ring.push(blocks);
        self.safe = self.safe.saturating_sub(blocks);
        let packet = self.tally.begin(lba, blocks, at);
        let held = self.supersede(Extent { lba, blocks, packet, at });
        self.trim();
        held
    }

    /// The ring holds the newest copy of these blocks. Positions go on at the beginning of the ring behind its end.
    fn hold(&mut self, e: Extent) {
        let room = self.ring.size() - e.at;
        let first = e.blocks.min(room);
        self.cached.replace(Extent { blocks: first, ..e }, |_| ());
        if first < e.blocks {
            self.cached.replace(Extent { lba: e.lba + first, blocks: e.blocks - first, at: 0, ..e }, |_| ());
        }
        self.tally.count(&e, true);
    }

    /// The ring holds the newest copy of these blocks, and perhaps an older one; answers whether it is known to have had one of all of
    /// them.
    fn supersede(&mut self, e: Extent) -> bool {
        if e.at + e.blocks > self.ring.size() {
            self.forget(e.lba..e.lba + e.blocks);
            self.hold(e);
            return false;
        }
        // What is written again is mostly written as it was: then the map is looked at once, and what a region holds stays the same.
        let mut as_it_was = false;
        self.cached.replace(e, |old| {
            as_it_was = (old.lba, old.blocks) == (e.lba, e.blocks);
            if as_it_was { self.tally.pass_on(&old, e.packet) } else { self.tally.count(&old, false) }
        });
        if !as_it_was {
            self.tally.count(&e, true);
        }
        as_it_was
    }

    /// The ring's copies of these blocks are not needed any more.
    fn forget(&mut self, lbas: Range<u64>) {
        self.cached.remove(lbas, |old| self.tally.count(&old, false));
    }

    /// Entries at the tail of which nothing is needed are over.
    fn trim(&mut self) {
        while let Some(over) = self.tally.pop_over() {
            self.ring.pop(over.blocks.into());
        }
    }

    /// A part of a region was written to the spare place.
    pub(super) fn refresh(&mut self, region: u64, part: Range<u64>) {
        let (base, mut held) = (region * self.places.region, std::mem::take(&mut self.held));
        self.cached.take(base + part.start..base + part.end, &mut held);
        self.refreshed(region, part, &held);
        self.held = held;
    }

    /// The same where these extents were taken off the map, all that it had there.
    pub(super) fn refreshed(&mut self, region: u64, part: Range<u64>, held: &[Extent]) {
        self.tally.release(region, held);
        self.counters.refreshed += part.end - part.start;
        self.cursor = Cursor { region, done: part.end };
        if part.end == self.places.region {
            std::mem::swap(&mut self.place[region as usize], &mut self.spare);
            self.cursor = Cursor { region: (region + 1) % self.tally.in_region.len() as u64, done: 0 };
            self.spare_needed = true;
            self.counters.regions += 1;
        }
        self.trim();
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        self.live.checkpoint(out);
        let note = |tag, words| Record { tag, words };
        out.add(&note(RING, [self.ring.tail(), self.ring.used(), 0]));
        for e in &self.tally.entries {
            out.add(&note(ENTRY, [e.lba, e.blocks.into(), e.at]));
        }
        let host = self.tally.in_region.len() as u64 * self.places.region;
        for e in self.cached.within(0..host) {
            out.add(&note(CACHED, [e.lba, e.blocks, e.at]));
        }
        for (region, &place) in self.place.iter().enumerate().filter(|(r, p)| *r != **p as usize) {
            out.add(&note(PLACE, [region as u64, u64::from(place), 0]));
        }
        out.add(&note(CURSOR, [self.cursor.region, self.cursor.done, u64::from(self.spare)]));
    }
}
