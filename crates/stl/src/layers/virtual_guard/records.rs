//! What survives a power cut: where each row is, as records that are applied by the same functions.

use super::{Held, VirtualGuard};
use crate::parts::rows::Row;
use crate::{Record, Sink};

records! {
    /// Row `words[0]` went to slot `words[1]`, the next free one.
    AWAY = 1: away(row: Row, slot: u32) -> [row.0, u64::from(slot), 0];
    /// Row `words[0]` is at home again, or holds nothing.
    HOME = 2: home(row: Row) -> [row.0, 0, 0];
    /// The cleaning of band `words[0]` begins.
    CLEAN = 3: cleaning(band: u64) -> [band, 0, 0];
    /// Checkpoint: row `words[0]` is in slot `words[1]`; they come in the order in which they went there.
    HELD = 4;
}

impl VirtualGuard {
    /// Makes the change that a record tells.
    pub(super) fn apply(&mut self, record: &Record) {
        let [a, b, _] = record.words;
        match record.tag {
            AWAY => {
                let slot = self.free.pop();
                debug_assert_eq!(u64::from(slot), b, "another slot was taken");
                self.counters.evicted += 1;
                self.hold(Row(a), slot);
            }
            HELD => self.hold(Row(a), b as u32),
            HOME => self.give_back(Row(a)),
            CLEAN => self.cleaning = Some(a),
            _ => {
                let known = self.live.take(record).is_some() || self.free.replay(record);
                debug_assert!(known, "record {} is not virtualguard's", record.tag);
            }
        }
    }

    fn hold(&mut self, row: Row, slot: u32) {
        self.away.set(row.0, slot + 1);
        let band = self.band_of(row) as u32;
        self.held[slot as usize] = Some(Held { row, band, since: self.evictions });
        if self.order.len() > 2 * self.held.len() {
            let order = std::mem::take(&mut self.order);
            self.order = order.into_iter().filter(|went| self.is_held(went)).collect();
        }
        self.order.push_back((row, self.evictions));
        self.evictions += 1;
        self.by_band[band as usize] += 1;
    }

    fn give_back(&mut self, row: Row) {
        let slot = self.slot(row).expect("the row is away");
        self.away.set(row.0, 0);
        let Held { band, .. } = self.held[slot as usize].take().expect("what is away is in a slot");
        self.free.put(slot);
        // So that the first of them is away, and nobody has to look for it.
        while self.order.front().is_some_and(|went| !self.is_held(went)) {
            self.order.pop_front();
        }
        self.counters.returned += 1;
        let left = &mut self.by_band[band as usize];
        *left -= 1;
        if *left == 0 {
            self.counters.bands_cleaned += 1;
            self.cleaning.take_if(|c| *c == band.into());
        }
    }

    /// Whether a row is still where it went then.
    pub(super) fn is_held(&self, &(row, since): &(Row, u64)) -> bool {
        self.slot(row).is_some_and(|slot| self.held[slot as usize].is_some_and(|h| h.since == since))
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        self.live.checkpoint(out);
        self.free.checkpoint(out);
        let mut held: Vec<(u64, Row, u64)> = Vec::new();
        for (slot, h) in self.held.iter().enumerate() {
            held.extend(h.map(|h| (h.since, h.row, slot as u64)));
        }
        held.sort_unstable();
        for (_, row, slot) in held {
            out.push(HELD, [row.0, slot, 0]);
        }
        if let Some(band) = self.cleaning {
            out.add(&cleaning(band));
        }
    }
}
