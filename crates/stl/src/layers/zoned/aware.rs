//! `host-aware`: zones that prefer sequential writes, in front of which the log of a drive-managed drive takes what is out of order.

use super::table::{Table, ZoneState};
use super::zones::Zones;
use super::{STATE, condition, record};
use crate::layers::persistent_cache::PersistentCache;
use crate::{Counted, Facts, HostRequest, Plan, Records, Refusal, Sink, StepEnd, TranslationLayer};
use smrlab_units::{
    Blocks, Dir, HostOp, Lba, Pba, SimTime, Zone, ZoneAction, ZoneCondition, ZoneLimits, ZoneStatistics,
    forward,
};
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

/// See the entry's page.
pub(super) struct HostAware {
    /// Where data are, and how they come home; its native bands are the zones.
    cache: PersistentCache,
    zones: Zones,
    limits: ZoneLimits,
    resets: u64,
    /// Zones of which the log holds blocks, as of this many bands that went home.
    non_sequential: BTreeSet<u64>,
    at_home: u64,
}

impl HostAware {
    pub(super) fn new(cache: PersistentCache, table: Table, limits: ZoneLimits) -> Self {
        let zones = Zones::new(table);
        Self { cache, zones, limits, resets: 0, non_sequential: BTreeSet::new(), at_home: 0 }
    }

    /// Whether a request may be done.
    fn allowed(table: &Table, r: &HostRequest, zeroes: bool) -> Result<(), (Refusal, Lba)> {
        match r.op {
            HostOp::Append => Err((Refusal::Unsupported, r.lba)),
            HostOp::Read => table.may_read(r.lba, r.blocks, zeroes),
            HostOp::Write | HostOp::Discard => table.may_change(r.lba, r.blocks),
            HostOp::Flush | HostOp::Zone(_) => Ok(()),
        }
    }

    /// Does to the zones what a request does, unless it is refused.
    fn judge(table: &mut Table, r: &HostRequest, zeroes: bool) -> Result<(), (Refusal, Lba)> {
        if let HostOp::Zone(action) = r.op {
            return table.act(action, r, &mut |_, _| {});
        }
        Self::allowed(table, r, zeroes)?;
        if r.op == HostOp::Write {
            table.count_write(r.lba);
            table.wrote_anywhere(r.lba, r.blocks);
        }
        Ok(())
    }

    /// Whether blocks of a zone with a write pointer are out of order.
    fn is_non_sequential(&self, zone: u64) -> bool {
        self.zones.done.state(zone).is_some() && self.cache.holds(self.zones.done.shape.span(zone))
    }

    /// Forgets zones whose blocks went home or were discarded.
    fn leave_non_sequential(&mut self) {
        let mut zones = std::mem::take(&mut self.non_sequential);
        zones.retain(|zone| self.is_non_sequential(*zone));
        self.non_sequential = zones;
        self.at_home = self.cache.bands_cleaned();
    }

    /// These zones were written.
    fn count_non_sequential(&mut self, written: RangeInclusive<u64>) {
        if self.at_home != self.cache.bands_cleaned() {
            self.leave_non_sequential();
        }
        let mut left = false;
        for zone in written {
            if self.is_non_sequential(zone) {
                self.non_sequential.insert(zone);
                left = true;
            }
        }
        let zones = self.non_sequential.len() as u32;
        let recommended = self.limits.preferred.map_or(u32::MAX, |p| p.non_sequential);
        self.zones.done.count_non_sequential(zones, left && zones > recommended);
    }

    /// Does something with zones. What a zone held that is reset is discarded: no read brings it, and no cleaning moves it.
    fn act(&mut self, action: ZoneAction, r: &HostRequest, plan: &mut Plan) {
        let mut changed = Vec::new();
        if let Err((why, at)) = self.zones.done.act(action, r, &mut |zone, state| changed.push((zone, state)))
        {
            self.zones.done.refused(r.op, why);
            return plan.refuse(why, at);
        }
        for (zone, state) in changed {
            plan.record(record(zone, state));
            if action == ZoneAction::Reset {
                let span = self.zones.done.shape.span(zone);
                plan.reset_zone(span.clone());
                let (lba, blocks) = (Lba(span.start), Blocks(span.end - span.start));
                self.cache.discard(&HostRequest::new(HostOp::Discard, lba, blocks), plan);
                self.resets += 1;
            }
        }
        self.leave_non_sequential();
    }
}

impl TranslationLayer for HostAware {
    forward! { cache:
        fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)>;
        fn background_after(&self) -> Option<SimTime>;
        fn background(&mut self, now: SimTime, plan: &mut Plan);
        fn background_end(&mut self, end: StepEnd);
        fn durable(&mut self);
        fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>));
    }

    fn host_blocks(&self) -> Blocks {
        Blocks(self.zones.done.shape.blocks)
    }

    fn submit(&mut self, now: SimTime, r: &HostRequest, plan: &mut Plan) {
        if let HostOp::Zone(action) = r.op {
            return self.act(action, r, plan);
        }
        if let Err((why, at)) = Self::allowed(&self.zones.done, r, self.limits.unrestricted_reads) {
            return plan.refuse(why, at);
        }
        self.cache.submit(now, r, plan);
        if r.op == HostOp::Write {
            self.zones.done.count_write(r.lba);
            self.zones.done.wrote_anywhere(r.lba, r.blocks);
            let (first, last) = (r.lba.0, r.lba.0 + r.blocks.0 - 1);
            self.count_non_sequential(
                self.zones.done.shape.zone_of(first)..=self.zones.done.shape.zone_of(last),
            );
        } else if r.op == HostOp::Discard {
            self.leave_non_sequential();
        }
    }

    /// Zone commands are of whole zones, and keep their order with whatever is in them.
    fn admit(&mut self, r: &HostRequest) -> Result<Range<u64>, (Refusal, Lba)> {
        let table = self.zones.admitting();
        let judged = Self::judge(table, r, self.limits.unrestricted_reads);
        judged.inspect_err(|(why, _)| table.refused(r.op, *why))?;
        let HostOp::Zone(_) = r.op else { return Ok(r.span()) };
        let (shape, span) = (&self.zones.done.shape, r.span());
        let last = span.end.max(span.start + 1) - 1;
        Ok(shape.span(shape.zone_of(span.start)).start..shape.span(shape.zone_of(last)).end)
    }

    fn power_lost(&mut self) {
        self.zones.power_lost();
    }

    /// Write pointers need no records of their own: they follow from those of the data.
    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        let table = &mut self.zones.done;
        let others = records.changes().filter(|r| {
            if let Some(span) = PersistentCache::written_by(r) {
                table.wrote_anywhere(Lba(span.start), Blocks(span.end - span.start));
            }
            if r.tag == STATE {
                let [zone, written, number] = r.words;
                table.restore(zone, ZoneState { condition: condition(number), written });
            }
            r.tag != STATE
        });
        self.cache.recover(&others.collect(), plan);
        self.zones.done.close_open();
        self.zones.done.count_anew();
        let zones = 0..=self.zones.done.shape.zone_of(self.zones.done.shape.blocks - 1);
        self.non_sequential = zones.filter(|zone| self.is_non_sequential(*zone)).collect();
        self.at_home = self.cache.bands_cleaned();
        self.zones.done.count_non_sequential(self.non_sequential.len() as u32, false);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.zones.done.used().for_each(|(zone, state)| out.add(&record(zone, state)));
        self.cache.checkpoint(out);
    }

    fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        self.zones.known().report(from, &mut |zone| {
            let non_sequential = self.is_non_sequential(self.zones.done.shape.zone_of(zone.start.0));
            out(&Zone { non_sequential, ..*zone })
        });
    }

    fn readable(&self, lba: Lba, blocks: Blocks) -> Result<(), (Refusal, Lba)> {
        self.zones.known().may_read(lba, blocks, self.limits.unrestricted_reads)
    }

    fn fail_zone(&mut self, zone: Lba, condition: ZoneCondition, plan: &mut Plan) -> bool {
        self.zones.fail(zone, condition, plan)
    }

    fn facts(&self) -> Facts<'_> {
        let known = self.zones.known();
        // Which blocks are out of order shows when they are written.
        let ZoneStatistics { most_non_sequential, over_recommended, .. } = self.zones.done.statistics;
        let statistics = ZoneStatistics { most_non_sequential, over_recommended, ..known.statistics };
        let (zone_counts, zone_statistics) = (Some(known.counts()), Some(statistics));
        Facts { zones: Some(self.limits), zone_counts, zone_statistics, ..self.cache.facts() }
    }

    fn map_bytes(&self) -> u64 {
        self.zones.bytes() + self.cache.map_bytes()
    }

    fn counters(&self, out: &mut Counted) {
        self.cache.counters(out);
        out.count("zone_resets", self.resets);
        self.zones.levels(out);
    }
}
