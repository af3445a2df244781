//! Writes that go to their bands past the log: those that follow a stream from the beginning of a band on.

use super::{At, Bypass, PersistentCache, records};
use crate::{Cause, Endpoint, Plan, Record};
use smrlab_units::Blocks;
use std::ops::Range;

impl PersistentCache {
    /// How many blocks from `at` go to their band directly: see [`Bypass`].
    pub(super) fn direct(&self, at: u64, end: u64, fua: bool) -> u64 {
        let Some(written) = &self.written else { return 0 };
        let (band, offset) = self.layout.native_of(at);
        let host = self.layout.host(band);
        let each_band = self.o.bypass == Bypass::EachBand;
        if fua && !each_band || self.jobs.iter().any(|j| j.band == band) || written.contains_any(at..host.end)
        {
            return 0;
        }
        let cached = |span| self.log.map.within(span).next().is_some();
        let goes_on = offset == 0
            || self.next_of(band) == Some(at)
            || each_band && (written.contains(at - 1) || cached(at - 1..at));
        if goes_on && !(each_band && cached(at..host.end)) { end.min(host.end) - at } else { 0 }
    }

    pub(super) fn write_directly(&mut self, span: Range<u64>, host: u64, plan: &mut Plan) {
        let (band, offset) = self.layout.native_of(span.start);
        if self.next_of(band) != Some(span.start) || offset == 0 || self.forgot_behind {
            plan.record(Record { tag: records::OPEN, words: [band as u64, offset, 0] });
            plan.fence();
            self.open_stream(band, offset);
        }
        let blocks = Blocks(span.end - span.start);
        let home = self.layout.home(span.start);
        plan.write(Cause::Host, home, blocks, Endpoint::Host(Blocks(host)));
        plan.record(Record { tag: records::DIRECT, words: [span.start, blocks.0, 0] });
        self.counters.bypassed_blocks += blocks.0;
        self.written_directly(span);
    }

    /// A band of which nothing lies natively from `offset` on is about to be written from there: what is not cached of that reads as
    /// zeroes until it is written, whatever the writes damage.
    pub(super) fn open_stream(&mut self, band: usize, offset: u64) {
        let mut host = self.layout.host(band);
        host.start += offset;
        let cached: Vec<_> = self.log.map.within(host.clone()).collect();
        self.discarded.insert(host.clone());
        for e in cached {
            self.discarded.remove(e.lba..e.lba + e.blocks);
        }
        if self.o.bypass != Bypass::EachBand {
            self.streams.clear();
        }
        self.set_next(band, host.start);
        self.forgot_behind = false;
    }

    /// The next block of the stream that is written directly to a band.
    fn next_of(&self, band: usize) -> Option<u64> {
        let at = self.streams.binary_search_by_key(&band, |s| s.0).ok()?;
        Some(self.streams[at].1)
    }

    pub(super) fn set_next(&mut self, band: usize, next: u64) {
        match self.streams.binary_search_by_key(&band, |s| s.0) {
            Ok(at) => self.streams[at].1 = next,
            Err(at) => self.streams.insert(at, (band, next)),
        }
    }

    pub(super) fn written_directly(&mut self, span: Range<u64>) {
        self.log.kill(span.clone());
        self.log.trim();
        self.forget_natively(span.clone());
        if let Some(written) = &mut self.written {
            written.insert(span.clone());
        }
        let (band, next) = self.layout.native_of(span.end - 1);
        self.at = At::Native { band, next: next + 1 };
        if self.o.bypass == Bypass::EachBand && span.end == self.layout.host(band).end {
            self.streams.retain(|s| s.0 != band);
        } else if self.next_of(band).is_some() {
            self.set_next(band, span.end);
        }
    }
}
