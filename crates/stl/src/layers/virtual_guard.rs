//! `virtualguard`: updates in place; the tracks that they would destroy wait in a cache (Shafaei & Desnoyers 2017).
//!
//! Before the first write to a track the next one is copied to a cache of tracks that lie apart; its home is then a virtual guard, and
//! writes to either cost one operation. When the cache is full, one band gets its tracks back (`virtual_guard/clean.rs`). The code calls a track a
//! [row](crate::parts::rows).

mod clean;
mod entry;
mod records;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;

use crate::parts::free_bands::FreeBands;
use crate::parts::live::Live;
use crate::parts::marks::Marks;
use crate::parts::rows::{At, Row, Rows, Span};
use crate::parts::split::ReadRuns;
use crate::{
    Cause, Counted, Dir, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, StepEnd,
    TranslationLayer,
};
use smrlab_disk::{BandId, Bands, DriveModel};
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime, counters};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Whose rows are given back when the cache is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The band of the row that has been away longest.
    Oldest,
    /// The band with the most rows away.
    Fullest,
}

/// What is done in idle time.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// How long the drive must have been idle.
    pub after: SimTime,
    /// Slots that shall be free before it rests.
    pub free: u32,
}

/// Where everything lies.
#[derive(Clone, Debug)]
pub struct Places {
    /// All bands.
    pub bands: Bands,
    /// Data indices of the bands that make room for the cache: no LBA lies there.
    pub hole: Range<u64>,
    /// Blocks that the host sees.
    pub host: Blocks,
    /// First block of each slot of the cache. Slots hold the longest row, and no write to one harms another.
    pub slots: Vec<Pba>,
    /// Rows of a band.
    pub rows: u64,
}

/// A slot that holds a row.
#[derive(Clone, Copy, Debug)]
struct Held {
    row: Row,
    band: u32,
    /// How many rows had gone to the cache before it.
    since: u64,
}

counters! {
    /// Events that are counted.
    struct Counters {
        evicted => "rows_to_guard_cache",
        returned => "rows_given_back",
        cached_writes => "writes_to_guard_cache",
        bands_cleaned => "bands_cleaned",
    }
}

/// See the [module](self) and the registry's page.
pub struct VirtualGuard {
    drive: Arc<DriveModel>,
    rows: Rows,
    places: Places,
    victim: Victim,
    idle: Option<Idle>,
    /// PBAs at home that hold data, wherever their row is now.
    live: Live,
    /// One more than the slot of a row that is away.
    away: Marks,
    held: Vec<Option<Held>>,
    /// Rows in the order in which they went away, with their number; of some of them this is over, but not of the first.
    order: VecDeque<(Row, u64)>,
    /// How many rows of each band are away.
    by_band: Box<[u32]>,
    evictions: u64,
    free: FreeBands,
    /// Something was discarded since the last fence: no write at home may destroy it before that is durable.
    discarded: bool,
    /// The band whose cleaning was begun.
    cleaning: Option<u64>,
    /// What a step in idle time will have changed; else empty.
    step: Vec<Record>,
    counters: Counters,
}

/// The part of a request that lies in one row.
#[derive(Clone, Copy, Debug)]
struct RowPart {
    row: Row,
    /// Where its home is.
    home: Pba,
    blocks: Blocks,
    /// Offset in the host's buffer.
    host: Blocks,
}

/// Parts that lie side by side, as one write; `part` is the first of them with the length of all.
struct RowWrite {
    pba: Pba,
    part: RowPart,
}

impl RowWrite {
    fn goes_on_with(&self, next: &Self) -> bool {
        let blocks = self.part.blocks;
        self.pba + blocks == next.pba && self.part.home + blocks == next.part.home
    }
}

impl VirtualGuard {
    /// Builds the layer.
    pub fn new(drive: Arc<DriveModel>, places: Places, victim: Victim, idle: Option<Idle>) -> Self {
        let (slots, rows) = (places.slots.len(), Rows::of(&drive));
        Self {
            away: Marks::new(rows.count()),
            rows,
            drive,
            victim,
            idle,
            live: Live::default(),
            held: vec![None; slots],
            order: VecDeque::new(),
            by_band: vec![0; places.bands.len() as usize].into(),
            evictions: 0,
            free: FreeBands::new(slots as u32),
            discarded: false,
            cleaning: None,
            step: Vec::new(),
            counters: Counters::default(),
            places,
        }
    }

    /// Slots that stay free for the cleaning of a band: all its rows but the first that is away may have to be copied.
    fn reserve(&self) -> u32 {
        self.places.rows as u32
    }

    #[inline]
    fn slot(&self, row: Row) -> Option<u32> {
        self.away.get(row.0).checked_sub(1)
    }

    /// Where a block is now whose home is `home`, in `row`.
    fn place(&self, row: Row, home: Pba) -> Pba {
        self.place_in(self.slot(row), row, home)
    }

    /// The same where it is known whether the row is in a slot.
    fn place_in(&self, slot: Option<u32>, row: Row, home: Pba) -> Pba {
        match slot {
            Some(slot) => self.places.slots[slot as usize] + (home - self.rows.first(row)),
            None => home,
        }
    }

    #[inline]
    fn part(&self, lba: u64, left: u64, host: u64) -> RowPart {
        let hole = &self.places.hole;
        let data = if lba < hole.start { lba } else { lba + hole.end - hole.start };
        let (_, _, home) = self.places.bands.locate(data);
        let row = self.rows.at(home);
        let blocks = self.rows.end(row).0 - home.0;
        RowPart { row, home, blocks: Blocks(blocks.min(left)), host: Blocks(host) }
    }

    fn parts(&self, lba: Lba, blocks: Blocks, mut each: impl FnMut(RowPart)) {
        let mut done = 0;
        while done < blocks.0 {
            let part = self.part(lba.0 + done, blocks.0 - done, done);
            done += part.blocks.0;
            each(part);
        }
    }

    fn band_of(&self, row: Row) -> u64 {
        self.places.bands.band_of(self.rows.first(row)).expect("a row of data lies in a band").0.0
    }

    /// The rows that a write at home would destroy something of that is needed: at home, and live.
    fn endangered(&self, part: &RowPart, out: &mut Vec<Row>) {
        out.clear();
        let (g, live) = (self.drive.geometry(), self.live.set());
        self.drive.interference().victims(g, part.home, part.blocks, &mut |hit| {
            let mut at = hit.start;
            while at < hit.end {
                let row = self.rows.at(Pba(at));
                let end = self.rows.end(row).0.min(hit.end);
                if self.slot(row).is_none() && live.contains_any(at..end) && !out.contains(&row) {
                    out.push(row);
                }
                at = end;
            }
        });
        out.sort_unstable();
    }

    /// Copies a row to a slot; answers how many of its blocks are live. Its home may be destroyed once that is durable.
    fn evict(&mut self, row: Row, plan: &mut Plan) -> u64 {
        let (_, fence) = self.free.peek(0).expect("a reserve of slots is kept");
        if fence {
            self.fence(plan);
        }
        let (record, moved) = self.copy(row, 0, plan);
        self.apply(&record);
        moved
    }

    /// Plans the copy of a row to the slot that is taken after `ahead` others; answers its record, and how many of its blocks are live.
    fn copy(&self, row: Row, ahead: u32, plan: &mut Plan) -> (Record, u64) {
        let (slot, _) = self.free.peek(ahead).expect("a reserve of slots is kept");
        let (first, live) = (self.rows.first(row), self.live.set());
        let mut span = Span::default();
        let home = At { number: first.0, pba: first, cause: Cause::Clean };
        let moved = span.stage(live, first.0..self.rows.end(row).0, home, plan);
        span.write(self.places.slots[slot as usize], Cause::Clean, plan);
        let record = records::away(row, slot);
        plan.record(record);
        (record, moved)
    }

    fn fence(&mut self, plan: &mut Plan) {
        plan.fence();
        self.durable();
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut done, mut extents) = (0, 0);
        let mut run: Option<RowWrite> = None;
        let mut endangered = Vec::new();
        while done < r.blocks.0 {
            let part = self.part(r.lba.0 + done, r.blocks.0 - done, done);
            (done, extents) = (done + part.blocks.0, extents + 1);
            let slot = self.slot(part.row);
            self.counters.cached_writes += u64::from(slot.is_some());
            if slot.is_none() {
                self.endangered(&part, &mut endangered);
                if !endangered.is_empty() {
                    self.write_run(&mut run, plan);
                    self.keep(&mut endangered, &part, plan);
                }
                if self.discarded {
                    self.write_run(&mut run, plan);
                    self.fence(plan);
                }
            }
            let next = RowWrite { pba: self.place_in(slot, part.row, part.home), part };
            match &mut run {
                Some(run) if run.goes_on_with(&next) => run.part.blocks += part.blocks,
                _ => {
                    self.write_run(&mut run, plan);
                    run = Some(next);
                }
            }
        }
        self.write_run(&mut run, plan);
        plan.set_extents(extents);
    }

    /// Plans the write of what was joined so far.
    fn write_run(&mut self, run: &mut Option<RowWrite>, plan: &mut Plan) {
        if let Some(RowWrite { pba, part }) = run.take() {
            plan.write(Cause::Host, pba, part.blocks, Endpoint::Host(part.host));
            self.live.insert(part.home.span(part.blocks), plan);
        }
    }

    /// Brings the rows away that a write of `part` would harm.
    fn keep(&mut self, endangered: &mut Vec<Row>, part: &RowPart, plan: &mut Plan) {
        let first = plan.ops().len();
        let mut cleaned = false;
        while self.free.len() < self.reserve() + endangered.len() as u32 {
            self.clean(plan);
            cleaned = true;
            // What was away may be at home now.
            self.endangered(part, endangered);
        }
        let (from, mut moved) = (if cleaned { plan.ops().len() } else { first }, 0);
        for &row in endangered.iter() {
            moved += self.evict(row, plan);
        }
        if moved > 0 {
            plan.cleaned("guard", from, Blocks(moved));
            self.fence(plan);
        }
    }

    fn read(&self, r: &HostRequest, plan: &mut Plan) {
        let mut runs = ReadRuns::to_host(0);
        self.parts(r.lba, r.blocks, |part| {
            self.live.zero_rest(part.home.span(part.blocks), part.host, plan);
            runs.push(self.place(part.row, part.home), part.blocks.0, plan);
        });
        let ops = runs.end(plan);
        plan.set_extents(ops.max(1));
    }

    fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut live, mut emptied) = (std::mem::take(&mut self.live), Vec::new());
        let mut gone = 0;
        self.parts(r.lba, r.blocks, |part| {
            gone += live.remove(part.home.span(part.blocks), plan);
            let all = self.rows.first(part.row).0..self.rows.end(part.row).0;
            if self.slot(part.row).is_some() && !live.set().contains_any(all) {
                emptied.push(part.row);
            }
        });
        self.live = live;
        self.discarded |= gone > 0;
        for row in emptied {
            let record = records::home(row);
            plan.record(record);
            self.apply(&record);
        }
    }
}

impl TranslationLayer for VirtualGuard {
    fn host_blocks(&self) -> Blocks {
        self.places.host
    }

    by_operation!();

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        if !matches!(r.op, HostOp::Read | HostOp::Write) {
            return None;
        }
        let part = self.part(r.lba.0, r.blocks.0, 0);
        let here = self.place(part.row, part.home);
        if r.op == HostOp::Read {
            return Some((here, Dir::Read));
        }
        let mut endangered = Vec::new();
        if self.slot(part.row).is_none() {
            self.endangered(&part, &mut endangered);
        }
        let Some(&row) = endangered.first() else { return Some((here, Dir::Write)) };
        if self.free.len() < self.reserve() + endangered.len() as u32 {
            return None;
        }
        let first = self.live.set().next_set(self.rows.first(row).0)?;
        Some((Pba(first), Dir::Read))
    }

    fn background_after(&self) -> Option<SimTime> {
        let idle = self.idle?;
        let all = self.held.len() as u32;
        (self.free.len() < idle.free.min(all)).then_some(idle.after)
    }

    fn background(&mut self, _: SimTime, plan: &mut Plan) {
        let mut step = std::mem::take(&mut self.step);
        self.plan_step(plan, &mut step);
        self.step = step;
    }

    fn background_end(&mut self, end: StepEnd) {
        end.take(&mut self.step).iter().for_each(|r| self.apply(r));
    }

    fn durable(&mut self) {
        self.free.durable();
        self.discarded = false;
    }

    fn recover(&mut self, records: &Records, _: &mut Plan) {
        records.changes().for_each(|r| self.apply(&r));
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.parts(lba, blocks, |part| {
            let lba_of = |pba: u64| lba.0 + part.host.0 + pba - part.home.0;
            for run in self.live.set().runs_in(part.home.span(part.blocks)) {
                out(lba_of(run.start)..lba_of(run.end));
            }
        });
    }

    fn facts(&self) -> Facts<'_> {
        let row = self.places.bands.band(BandId(0)).blocks.0 / self.places.rows;
        let slots = self.held.len() as u64;
        Facts {
            bands: Some(&self.places.bands),
            cache: Some(Blocks(slots * row)),
            cached: Some(Blocks((slots - u64::from(self.free.len())) * row)),
            ..Facts::default()
        }
    }

    fn map_bytes(&self) -> u64 {
        let held = self.held.capacity() * size_of::<Option<Held>>();
        let order = self.order.capacity() * size_of::<(Row, u64)>();
        (self.live.set().bytes() + self.away.bytes() + held + order) as u64 + self.free.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
        out.level("cached_rows", self.held.len() as u64 - u64::from(self.free.len()));
    }
}
