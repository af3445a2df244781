//! What survives a power cut: every change of the log as a record, applied by the same functions.

use super::{BandState, HOST, SteadyLog, Victim};
use crate::{Record, Sink};
use std::ops::Range;

records! {
    /// Band `words[0]`, the next free one, was taken for head `words[1]`.
    OPEN = 1: opened(band: u32, head: usize) -> [u64::from(band), head as u64, 0];
    /// `words[1]` blocks from `words[0]` on were appended at head `words[2]`.
    APPEND = 2: appended(lbas: &Range<u64>, head: usize) -> [lbas.start, lbas.end - lbas.start, head as u64];
    /// The cleaning of band `words[0]` begins.
    BEGIN = 3: begun(band: u32) -> [u64::from(band), 0, 0];
    /// Nothing in band `words[0]` before offset `words[1]` is live any more.
    PASS = 4: passed(band: u32, end: u64) -> [u64::from(band), end, 0];
    /// Band `words[0]` has nothing live and is free.
    FREE = 5: freed(band: u32) -> [u64::from(band), 0, 0];
    /// Blocks `words[0]`, `words[1]` in number, were discarded.
    DISCARD = 6: discarded(lbas: &Range<u64>) -> [lbas.start, lbas.end - lbas.start, 0];
    /// Checkpoint, behind the map: band `words[0]` is in use; where `words[1]` is above 0, by the head of one less.
    BAND = 7;
    /// Checkpoint: band `words[0]` is being cleaned, `words[1]` as [`PASS`] says, and `words[2]` were dead at first.
    VICTIM = 8;
    /// Checkpoint: the debt, as its bits.
    DEBT = 9;
}

impl SteadyLog {
    /// Makes the change that a record tells.
    pub(super) fn apply(&mut self, record: &Record) {
        let [a, b, c] = record.words;
        match record.tag {
            OPEN => {
                let band = self.free.pop();
                debug_assert_eq!(u64::from(band), a, "another band was taken");
                self.taken(band, b as usize);
            }
            APPEND if c as usize == HOST => self.written(a..a + b),
            APPEND => {
                self.counters.moved += b;
                self.append(c as usize, a..a + b);
            }
            BEGIN => self.victim = Some(self.begun(a as u32)),
            PASS => self.pass(b),
            FREE => self.release(a as u32),
            DISCARD => self.forget(a..a + b),
            BAND => self.restore_band(a as u32, b),
            VICTIM => self.victim = Some(Victim { band: a as u32, done: b, dead: c as u32 }),
            DEBT => self.debt = a as i64,
            _ => {
                let known = self.holdings.take(record) || self.free.replay(record);
                debug_assert!(known, "record {} is not steady-log's", record.tag);
            }
        }
        // What became free has a record of its own.
        self.ledger.emptied.clear();
    }

    /// The victim has nothing live any more before this offset.
    fn pass(&mut self, end: u64) {
        self.counters.steps += 1;
        if let Some(victim) = &mut self.victim {
            self.debt -= (end - victim.done) as i64;
            victim.done = end;
        }
    }

    /// A band with nothing live is free.
    pub(super) fn release(&mut self, band: u32) {
        let written = self.holdings.written(band);
        match self.victim.take_if(|victim| victim.band == band) {
            Some(victim) => {
                self.debt -= i64::from(written) - victim.done as i64;
                self.counters.steps += 1;
                self.counters.cleaned += 1;
            }
            None => self.counters.empties += 1,
        }
        self.ledger.ripe -= u32::from(self.ledger.is_ripe(written, 0));
        self.ledger.states[band as usize] = BandState::Free;
        self.holdings.free(band);
        self.free.put(band);
    }

    fn restore_band(&mut self, band: u32, head: u64) {
        let states = &mut self.ledger.states;
        states.resize(states.len().max(band as usize + 1), BandState::Free);
        match head {
            0 => {
                let (written, live) = (self.holdings.written(band), self.holdings.live(band));
                self.ledger.states[band as usize] = BandState::Closed;
                self.ledger.ripe += u32::from(self.ledger.is_ripe(written, live));
            }
            head => {
                if self.holdings.written(band) == 0 {
                    self.holdings.open(band);
                }
                self.ledger.states[band as usize] = BandState::Open;
                self.heads[head as usize - 1] = Some(band);
            }
        }
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        self.free.checkpoint(out);
        self.holdings.checkpoint(out);
        for (band, _) in self.ledger.states.iter().enumerate().filter(|(_, s)| **s != BandState::Free) {
            let head = self.heads.iter().position(|h| *h == Some(band as u32)).map_or(0, |head| head + 1);
            out.push(BAND, [band as u64, head as u64, 0]);
        }
        if let Some(Victim { band, done, dead }) = self.victim {
            out.push(VICTIM, [band.into(), done, dead.into()]);
        }
        out.push(DEBT, [self.debt as u64, 0, 0]);
        for run in self.discarded.runs() {
            out.add(&discarded(&run));
        }
    }
}
