//! `zoned`: a host-managed drive, which refuses what is out of order; with `host-aware` (`zoned/aware.rs`) one that takes it into a log.
//!
//! Zones lie apart on the medium (`zoned/places.rs`). What a request may do is asked of the state machine of zones (`zoned/table.rs`) when it arrives;
//! then it is one operation a zone.

mod aware;
mod aware_entry;
mod entry;
mod places;
mod statistics;
mod table;
mod zones;

pub use aware_entry::ENTRY as ENTRY_HOST_AWARE;
pub use entry::ENTRY;
pub(crate) use entry::model;

use crate::{
    Cause, Counted, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, TranslationLayer,
};
use places::Places;
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime, Zone, ZoneAction, ZoneCondition, ZoneLimits};
use std::ops::Range;
use table::{Table, ZoneState, at_rest};
use zones::Zones;

/// `words` = zone, written blocks, condition.
const STATE: u32 = 0x5a01;

/// See the entry's page.
struct Zoned {
    places: Places,
    zones: Zones,
    limits: ZoneLimits,
    /// Zones were reset, which is perhaps not durable: what they held may not be written over before it is.
    reset: bool,
    resets: u64,
}

/// The record of a zone's state: what is open will be closed after a power cut.
fn record(zone: u64, state: ZoneState) -> Record {
    Record { tag: STATE, words: [zone, state.written, at_rest(state) as u64] }
}

/// What the host can see of a zone's state after a power cut, by its number.
fn condition(number: u64) -> ZoneCondition {
    use ZoneCondition::{Closed, Empty, Full, Offline, ReadOnly};
    [Empty, Full, ReadOnly, Offline].into_iter().find(|c| *c as u64 == number).unwrap_or(Closed)
}

impl Zoned {
    fn new(places: Places, table: Table, limits: ZoneLimits) -> Self {
        Self { places, zones: Zones::new(table), limits, reset: false, resets: 0 }
    }

    /// The blocks of all zones of which `range` has a block, with the gaps behind them.
    fn zones_around(&self, range: &Range<u64>) -> Range<u64> {
        let shape = &self.zones.done.shape;
        shape.slot(shape.zone_of(range.start)).start..shape.slot(shape.zone_of(range.end - 1)).end
    }

    /// Where an append to the zone that begins at `lba` goes.
    ///
    /// # Errors
    /// No zone with a write pointer begins there.
    fn append_at(table: &Table, lba: Lba) -> Result<Lba, (Refusal, Lba)> {
        let zone = table.shape.zone_of(lba.0);
        let span = table.shape.span(zone);
        if span.start != lba.0 || table.state(zone).is_none() {
            return Err((Refusal::NotAtPointer, lba));
        }
        // Behind a zone that is written to its end another one begins: its own condition refuses.
        Ok(Lba(Some(table.readable(zone)).filter(|at| *at < span.end).unwrap_or(lba.0)))
    }

    /// Does to the zones what a request does, unless it is refused; answers whether it changes one that has a write pointer.
    fn judge(table: &mut Table, r: &HostRequest, zeroes: bool) -> Result<bool, (Refusal, Lba)> {
        let at = match r.op {
            HostOp::Flush | HostOp::Discard => return Ok(false),
            HostOp::Read => return table.may_read(r.lba, r.blocks, zeroes).map(|()| false),
            HostOp::Zone(action) => return table.act(action, r, &mut |_, _| {}).map(|()| true),
            HostOp::Append => Self::append_at(table, r.lba)?,
            HostOp::Write => r.lba,
        };
        table.may_write(at, r.blocks)?;
        Ok(table.wrote(at, r.blocks).is_some())
    }

    /// Calls `each` with the parts of a range that lie in one zone, or in the gap behind it: zone, first block, blocks.
    fn by_zone(&self, range: Range<u64>, mut each: impl FnMut(u64, u64, u64)) {
        let mut at = range.start;
        while at < range.end {
            let zone = self.zones.done.shape.zone_of(at);
            let end = self.zones.done.shape.slot(zone).end.min(range.end);
            each(zone, at, end - at);
            at = end;
        }
    }

    fn read(&self, lba: Lba, blocks: Blocks, plan: &mut Plan) {
        self.by_zone(lba.span(blocks), |zone, first, blocks| {
            let held = self.zones.done.readable(zone).saturating_sub(first).min(blocks);
            let mut at = first;
            while at < first + held {
                let (pba, n) = self.places.place(at, first + held - at);
                plan.read_to_host(Cause::Host, pba, Blocks(n), Blocks(at - lba.0));
                at += n;
            }
            if held < blocks {
                plan.zero_to_host(Blocks(first + held - lba.0), Blocks(blocks - held));
            }
        });
    }

    fn write(&mut self, lba: Lba, blocks: Blocks, plan: &mut Plan) {
        if let Err((why, at)) = self.zones.done.may_write(lba, blocks) {
            return plan.refuse(why, at);
        }
        if self.reset {
            plan.fence();
            self.reset = false;
        }
        let mut done = 0;
        while done < blocks.0 {
            let (pba, n) = self.places.place(lba.0 + done, blocks.0 - done);
            plan.write(Cause::Host, pba, Blocks(n), Endpoint::Host(Blocks(done)));
            done += n;
        }
        if let Some(zone) = self.zones.done.wrote(lba, blocks)
            && let Some(state) = self.zones.done.state(zone)
        {
            plan.record(record(zone, state));
        }
    }

    fn append(&mut self, lba: Lba, blocks: Blocks, plan: &mut Plan) {
        let at = match Self::append_at(&self.zones.done, lba) {
            Ok(at) => at,
            Err((why, at)) => return plan.refuse(why, at),
        };
        self.write(at, blocks, plan);
        if plan.refusal().is_none() {
            plan.appended(at);
        }
    }

    fn act(&mut self, action: ZoneAction, r: &HostRequest, plan: &mut Plan) {
        let mut changed = Vec::new();
        if let Err((why, at)) = self.zones.done.act(action, r, &mut |zone, state| changed.push((zone, state)))
        {
            return plan.refuse(why, at);
        }
        for (zone, state) in changed {
            if action == ZoneAction::Reset {
                self.reset = true;
                self.resets += 1;
                plan.reset_zone(self.zones.done.shape.span(zone));
            }
            plan.record(record(zone, state));
        }
    }
}

impl TranslationLayer for Zoned {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.zones.done.shape.blocks)
    }

    fn submit(&mut self, _: SimTime, r: &HostRequest, plan: &mut Plan) {
        match r.op {
            HostOp::Read => match self.zones.done.may_read(r.lba, r.blocks, self.limits.unrestricted_reads) {
                Ok(()) => self.read(r.lba, r.blocks, plan),
                Err((why, at)) => plan.refuse(why, at),
            },
            HostOp::Write => self.write(r.lba, r.blocks, plan),
            HostOp::Append => self.append(r.lba, r.blocks, plan),
            HostOp::Zone(action) => self.act(action, r, plan),
            HostOp::Flush | HostOp::Discard => {}
        }
        if let Some(why) = plan.refusal() {
            self.zones.done.refused(r.op, why);
        }
    }

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        let table = &self.zones.done;
        let place = |lba: Lba| self.places.place(lba.0, r.blocks.0).0;
        match r.op {
            HostOp::Read => {
                let mut first = None;
                self.by_zone(r.span(), |zone, at, _| {
                    first = first.or((at < table.readable(zone)).then_some(Lba(at)));
                });
                let read = table.may_read(r.lba, r.blocks, self.limits.unrestricted_reads).is_ok();
                first.filter(|_| read).map(|lba| (place(lba), Dir::Read))
            }
            HostOp::Write | HostOp::Append => {
                let at = if r.op == HostOp::Append { Self::append_at(table, r.lba).ok()? } else { r.lba };
                table.may_write(at, r.blocks).is_ok().then(|| (place(at), Dir::Write))
            }
            HostOp::Flush | HostOp::Discard | HostOp::Zone(_) => None,
        }
    }

    fn admit(&mut self, r: &HostRequest) -> Result<Range<u64>, (Refusal, Lba)> {
        let table = self.zones.admitting();
        let changes = Self::judge(table, r, self.limits.unrestricted_reads);
        let changes = changes.inspect_err(|(why, _)| table.refused(r.op, *why))?;
        let span = r.span();
        if !changes {
            return Ok(span);
        }
        Ok(self.zones_around(&span))
    }

    fn power_lost(&mut self) {
        self.zones.power_lost();
    }

    fn durable(&mut self) {
        self.reset = false;
    }

    fn recover(&mut self, records: &Records, _: &mut Plan) {
        for r in records.changes::<Record>().filter(|r| r.tag == STATE) {
            let [zone, written, number] = r.words;
            if self.zones.done.state(zone).is_some() {
                self.zones.done.restore(zone, ZoneState { condition: condition(number), written });
            }
        }
        self.zones.done.count_anew();
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.zones.done.used().for_each(|(zone, state)| out.add(&record(zone, state)));
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.by_zone(lba.span(blocks), |zone, first, blocks| {
            let end = self.zones.known().readable(zone).min(first + blocks);
            if end > first {
                out(first..end);
            }
        });
    }

    fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        self.zones.known().report(from, out);
    }

    fn readable(&self, lba: Lba, blocks: Blocks) -> Result<(), (Refusal, Lba)> {
        self.zones.known().may_read(lba, blocks, self.limits.unrestricted_reads)
    }

    fn fail_zone(&mut self, zone: Lba, condition: ZoneCondition, plan: &mut Plan) -> bool {
        self.zones.fail(zone, condition, plan)
    }

    fn facts(&self) -> Facts<'_> {
        let known = self.zones.known();
        let (zone_counts, zone_statistics) = (Some(known.counts()), Some(known.statistics));
        let (bands, zones) = (Some(&self.places.bands), Some(self.limits));
        Facts { bands, zones, zone_counts, zone_statistics, ..Facts::default() }
    }

    fn map_bytes(&self) -> u64 {
        self.zones.bytes() + self.places.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        out.count("zone_resets", self.resets);
        out.count("zones_closed_for_others", self.zones.known().evicted);
        self.zones.levels(out);
    }
}
