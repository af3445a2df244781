//! `e-region`: all writes go to a ring on the medium, and a cursor brings them home region after region (Hall et al. 2012).
//!
//! The cursor reads a region and what the ring holds of it, and writes it to the spare place; the place that the region had
//! is the next spare one. It goes on in idle time, and after writes, the more the fuller the ring is.

mod entry;
mod records;
mod refresh;
mod tally;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;

use crate::parts::bucketed::BucketedExtents;
use crate::parts::extents::Extent;
use crate::parts::live::Live;
use crate::parts::ring::{Laid, Ring};
use crate::parts::split::ReadRuns;
use crate::{
    Cause, Counted, Dir, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, StepEnd,
    TranslationLayer,
};
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime, counters};
use std::ops::Range;
use tally::{Entry, Tally};

/// What can be chosen about the layer.
#[derive(Clone, Copy, Debug)]
pub struct ERegionOptions {
    /// Blocks that the cursor brings home in one step.
    pub step: u64,
    /// The share of the ring in use from which on each write is followed by a step.
    pub pace: f64,
    /// How long the drive must have been idle before the next step; `None`: no steps in idle time.
    pub idle: Option<SimTime>,
}

/// Where everything lies.
#[derive(Clone, Debug)]
pub struct Places {
    /// The ring.
    pub ring: Laid,
    /// First block of each place for a region: one more than there are regions.
    pub regions: Vec<Pba>,
    /// Blocks in a region.
    pub region: u64,
    /// Blocks behind a written one that the write destroys.
    pub guard: u64,
}

/// How far the cursor is: regions before it were looked at, and so many blocks of its own are in the spare place.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    region: u64,
    done: u64,
}

counters! {
    /// Events that are counted.
    struct Counters {
        refreshed => "blocks_refreshed",
        regions => "regions_refreshed",
        moved => "blocks_moved_in_ring",
    }
}

/// See the [module](self) and the registry's page.
pub struct ERegion {
    options: ERegionOptions,
    places: Places,
    ring: Ring,
    /// The newest copies of blocks in the ring: `at` is the position, `packet` the number of the entry.
    cached: BucketedExtents,
    tally: Tally,
    /// The place of each region, and the one that is free.
    place: Vec<u32>,
    spare: u32,
    cursor: Cursor,
    /// LBAs that hold data.
    live: Live,
    /// Positions ahead of the head that nothing durable refers to.
    safe: u64,
    /// Positions in use from which on so many steps follow each write.
    paces: [u64; refresh::MOST_STEPS],
    /// The spare place may still be what the state at the last fence refers to.
    spare_needed: bool,
    step: Vec<Record>,
    /// What of a step holds data, what is read from the ring, and what the ring holds; kept for their memory.
    live_runs: Vec<Range<u64>>,
    newer: Vec<refresh::Part>,
    held: Vec<Extent>,
    counters: Counters,
}

impl ERegion {
    /// Builds the layer.
    pub fn new(places: Places, options: ERegionOptions) -> Self {
        let regions = places.regions.len() - 1;
        let ring = Ring::new(places.ring.size());
        Self {
            options,
            safe: ring.free(),
            paces: refresh::paces(ring.size(), options.pace),
            ring,
            cached: BucketedExtents::default(),
            tally: Tally::new(regions, places.region),
            place: (0..regions as u32).collect(),
            spare: regions as u32,
            cursor: Cursor::default(),
            live: Live::default(),
            spare_needed: false,
            step: Vec::new(),
            live_runs: Vec::new(),
            newer: Vec::new(),
            held: Vec::new(),
            counters: Counters::default(),
            places,
        }
    }

    /// The longest entry.
    fn longest(&self) -> u64 {
        self.ring.size() / 8
    }

    /// Where a block is that the ring does not hold, and how many blocks of its region follow there.
    fn home(&self, lba: u64) -> (Pba, u64) {
        let (region, offset) = self.tally.by_region.div_rem_wide(lba);
        let moved = region == self.cursor.region && offset < self.cursor.done;
        let (place, end) = match moved {
            true => (self.spare, self.cursor.done),
            false => (self.place[region as usize], self.places.region),
        };
        (self.places.regions[place as usize] + Blocks(offset), end - offset)
    }

    /// Calls `each` with the runs of blocks that lie side by side: LBAs, and first block.
    // One copy for all who ask: in place, requests went through 2 KB more of code, of 32 that the first cache holds.
    fn for_runs(&self, lbas: Range<u64>, each: &mut dyn FnMut(Range<u64>, Pba)) {
        let mut at = lbas.start;
        for e in self.cached.within(lbas.clone()) {
            self.for_homes(at..e.lba, each);
            at = e.lba + e.blocks;
            self.for_places(&e, &mut *each);
        }
        self.for_homes(at..lbas.end, each);
    }

    /// Calls `each` with the parts of an extent of the ring that lie side by side.
    #[inline]
    fn for_places(&self, e: &Extent, mut each: impl FnMut(Range<u64>, Pba)) {
        let (mut lba, mut position, last) = (e.lba, e.at, e.lba + e.blocks);
        while lba < last {
            let (pba, n) = self.places.ring.at(position);
            let end = last.min(lba + n.0);
            each(lba..end, pba);
            position = self.ring.wrap(position + (end - lba));
            lba = end;
        }
    }

    /// The same for blocks that it does not hold.
    fn for_homes(&self, mut lbas: Range<u64>, each: &mut dyn FnMut(Range<u64>, Pba)) {
        while !lbas.is_empty() {
            let (pba, n) = self.home(lbas.start);
            let end = lbas.end.min(lbas.start + n);
            each(lbas.start..end, pba);
            lbas.start = end;
        }
    }

    fn read(&self, r: &HostRequest, plan: &mut Plan) {
        let mut runs = ReadRuns::to_host(0);
        let lbas = r.span();
        self.for_runs(lbas.clone(), &mut |run, pba| runs.push(pba, run.end - run.start, plan));
        let ops = runs.end(plan);
        self.live.zero_rest(lbas, Blocks::ZERO, plan);
        plan.set_extents(ops.max(1));
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut done, mut extents) = (0, 0);
        while done < r.blocks.0 {
            let lba = r.lba.0 + done;
            let n = (r.blocks.0 - done).min(self.longest());
            self.fence_before(n, plan);
            extents += self.plan_append(n, plan, |from| (Cause::Host, Endpoint::Host(Blocks(done + from))));
            plan.record(records::appended(lba, n));
            let held = self.append(lba, n);
            if !held {
                self.live.insert(lba..lba + n, plan);
            }
            done += n;
            self.make_room(plan);
        }
        plan.set_extents(extents);
    }

    /// Plans the write of `n` blocks at the head of the ring: an operation for each part that lies in one piece.
    fn plan_append(&self, n: u64, plan: &mut Plan, source: impl Fn(u64) -> (Cause, Endpoint)) -> u32 {
        let (mut from, mut position, mut ops) = (0, self.ring.head(), 0);
        while from < n {
            let (pba, room) = self.places.ring.at(position);
            let part = room.0.min(n - from);
            let (cause, source) = source(from);
            plan.write(cause, pba, Blocks(part), source);
            position = self.ring.wrap(position + part);
            (from, ops) = (from + part, ops + 1);
        }
        ops
    }

    /// Fences where a write of `n` blocks at the head goes over, or destroys, what was needed at the last fence.
    fn fence_before(&mut self, n: u64, plan: &mut Plan) {
        if n + self.places.guard > self.safe {
            plan.fence();
            self.durable();
        }
    }

    /// The blocks of an entry of which it holds the newest copy.
    fn needed(&self, entry: &Entry) -> Vec<Extent> {
        let here = |e: &Extent| e.at == self.ring.wrap(entry.at + (e.lba - entry.lba));
        self.cached.within(entry.lba..entry.lba + u64::from(entry.blocks)).filter(here).collect()
    }

    /// Blocks that must be free whenever a write begins.
    fn room(&self) -> u64 {
        self.longest() + self.places.guard
    }

    fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        self.live.remove(r.span(), plan);
        let record = records::forgotten(r.lba.0, r.blocks.0);
        plan.record(record);
        self.apply(&record);
    }
}

impl TranslationLayer for ERegion {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.tally.in_region.len() as u64 * self.places.region)
    }

    by_operation!();

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        match r.op {
            HostOp::Write => Some((self.places.ring.pba(self.ring.head()), Dir::Write)),
            HostOp::Read => {
                let mut first = None;
                self.for_runs(r.lba.0..r.lba.0 + 1, &mut |_, pba| first = Some((pba, Dir::Read)));
                first
            }
            _ => None,
        }
    }

    fn background_after(&self) -> Option<SimTime> {
        self.options.idle.filter(|_| self.has_step())
    }

    fn background(&mut self, _: SimTime, plan: &mut Plan) {
        if let Some(step) = self.next_step() {
            let record = self.plan_step(&step, plan);
            self.step.push(record);
        }
    }

    fn background_end(&mut self, end: StepEnd) {
        end.take(&mut self.step).iter().for_each(|r| self.apply(r));
    }

    fn durable(&mut self) {
        self.safe = self.ring.free();
        self.spare_needed = false;
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        records.changes().for_each(|r| self.apply(&r));
        self.durable();
        self.make_room_for(self.room(), plan);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.live.set().runs_in(lba.span(blocks)).for_each(out);
    }

    fn prefetch(&self, r: &HostRequest) {
        self.cached.prefetch(r.lba.0);
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            cache: Some(Blocks(self.ring.size())),
            cached: Some(Blocks(self.tally.in_ring)),
            ..Facts::default()
        }
    }

    fn map_bytes(&self) -> u64 {
        let entries = self.tally.entries.capacity() * size_of::<Entry>();
        let regions = self.tally.in_region.capacity() * 8;
        (self.live.set().bytes() + entries + regions) as u64 + self.cached.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
        out.level("cached_blocks", self.tally.in_ring);
    }
}
