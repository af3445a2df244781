//! `smart`: a map of tracks; a track is updated in place while the next one is free, and else moves (He & Du 2017).
//!
//! With a head of `W` tracks "next" means the next `W - 1`. A track that moves leaves a gap behind the one before it, so what is updated often soon
//! lies apart. Where too few tracks can be written, short runs of used ones between two gaps move away (`smart/gather.rs`).

mod entry;
mod gather;
mod records;
mod space;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;

use crate::parts::live::Live;
use crate::parts::rows::{At, Row, Rows, Span};
use crate::parts::split::ReadRuns;
use crate::{Cause, Counted, Dir, Endpoint, HostRequest, Plan, Records, Refusal, Sink, TranslationLayer};
use smrlab_blockmap::UnitMap;
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime, counters};
use space::Space;
use std::ops::Range;

counters! {
    /// Events that are counted.
    struct Counters {
        in_place => "tracks_updated_in_place",
        moved => "tracks_moved_by_updates",
        gathered => "tracks_gathered",
        gatherings => "gatherings",
    }
}

/// See the [module](self) and the registry's page. *Tracks* are the host's, *rows* are places for one on the medium.
pub struct Smart {
    rows: Rows,
    space: Space,
    /// Row of a track, and one.
    home: UnitMap,
    /// Track of a row, and one.
    owner: UnitMap,
    /// LBAs that hold data.
    live: Live,
    /// Free rows of a pool, as a share, from which on moved tracks keep their distance.
    spread: f64,
    counters: Counters,
}

/// The part of a request that lies in one track.
#[derive(Clone, Copy, Debug)]
struct TrackPart {
    track: u64,
    /// Pool of rows to which the track belongs.
    pool: usize,
    /// LBA of the track's first block, and blocks in it.
    first: u64,
    length: u64,
    /// The part within the track.
    from: u64,
    blocks: u64,
    /// Offset in the host's buffer.
    host: u64,
}

impl TrackPart {
    /// LBAs of the part.
    fn lbas(&self) -> Range<u64> {
        self.first + self.from..self.first + self.from + self.blocks
    }
}

impl Smart {
    fn new(rows: Rows, space: Space, spread: f64) -> Self {
        Self {
            rows,
            space,
            home: UnitMap::new(),
            owner: UnitMap::new(),
            live: Live::default(),
            spread,
            counters: Counters::default(),
        }
    }

    fn row(&self, track: u64) -> Option<u64> {
        self.home.get(track).checked_sub(1).map(u64::from)
    }

    fn pba(&self, row: u64) -> Pba {
        self.rows.first(Row(row))
    }

    fn part(&self, lba: u64, left: u64, host: u64) -> TrackPart {
        let (pool_no, pool) = self.space.pool_of(lba);
        let (nth, from) = ((lba - pool.lba) / pool.length, (lba - pool.lba) % pool.length);
        TrackPart {
            track: pool.track + nth,
            pool: pool_no,
            first: lba - from,
            length: pool.length,
            from,
            blocks: left.min(pool.length - from),
            host,
        }
    }

    fn parts(&self, lba: Lba, blocks: Blocks, mut each: impl FnMut(&TrackPart)) {
        let mut done = 0;
        while done < blocks.0 {
            let part = self.part(lba.0 + done, blocks.0 - done, done);
            done += part.blocks;
            each(&part);
        }
    }

    /// The row to which a track goes that is written there for the first time, or moves because it was updated.
    fn target(&self, pool: usize, updated: bool) -> Option<u64> {
        let distance = updated && self.space.free_share(pool) > self.spread;
        if updated { self.space.next_row(pool, distance) } else { self.space.first_row(pool) }
    }

    fn write_part(&mut self, part: &TrackPart, plan: &mut Plan) {
        let row = self.row(part.track);
        if let Some(row) = row.filter(|&r| self.space.is_updatable(part.pool, r)) {
            self.space.fence_before(row, plan);
            let at = self.pba(row) + Blocks(part.from);
            plan.write(Cause::Host, at, Blocks(part.blocks), Endpoint::Host(Blocks(part.host)));
            self.counters.in_place += 1;
        } else {
            self.write_elsewhere(part, row, plan);
        }
        self.live.insert(part.lbas(), plan);
        self.gather(part.pool, plan);
    }

    /// Writes a track to another row than it has, with what of it the host does not write.
    fn write_elsewhere(&mut self, part: &TrackPart, row: Option<u64>, plan: &mut Plan) {
        let target = self.target(part.pool, row.is_some()).expect("a reserve of rows is kept");
        let mut span = Span::default();
        let first_op = plan.ops().len();
        let lbas = part.lbas();
        let at = row.map(|row| At { number: part.first, pba: self.pba(row), cause: Cause::Fill });
        if let Some(at) = at {
            span.stage(self.live.set(), part.first..lbas.start, at, plan);
        }
        span.push(part.from..part.from + part.blocks, Endpoint::Host(Blocks(part.host)), plan);
        if let Some(at) = at {
            span.stage(self.live.set(), lbas.end..part.first + part.length, at, plan);
        }
        self.space.fence_before(target, plan);
        span.write(self.pba(target), Cause::Host, plan);
        if plan.ops().len() > first_op + 1 {
            plan.cleaned("track-move", first_op, span.blocks - Blocks(part.blocks));
        }
        let record = if row.is_some() {
            records::moved(part.track, target)
        } else {
            records::placed(part.track, target)
        };
        plan.record(record);
        self.apply(&record);
        self.counters.moved += u64::from(row.is_some());
    }

    fn read(&self, r: &HostRequest, plan: &mut Plan) {
        let mut runs = ReadRuns::to_host(0);
        self.parts(r.lba, r.blocks, |part| {
            let from = Blocks(part.from);
            match self.row(part.track) {
                Some(row) => {
                    self.live.zero_rest(part.lbas(), Blocks(part.host), plan);
                    runs.push(self.pba(row) + from, part.blocks, plan);
                }
                None => {
                    let row = self.space.nominal(part.pool, part.track);
                    runs.push_empty(self.pba(row) + from, part.blocks, plan);
                }
            }
        });
        let ops = runs.end(plan);
        plan.set_extents(ops.max(1));
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut done, mut extents) = (0, 0);
        while done < r.blocks.0 {
            let part = self.part(r.lba.0 + done, r.blocks.0 - done, done);
            (done, extents) = (done + part.blocks, extents + 1);
            self.write_part(&part, plan);
        }
        plan.set_extents(extents);
    }

    fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        let mut done = 0;
        while done < r.blocks.0 {
            let part = self.part(r.lba.0 + done, r.blocks.0 - done, done);
            done += part.blocks;
            self.live.remove(part.lbas(), plan);
            let all = part.first..part.first + part.length;
            if self.row(part.track).is_some() && !self.live.set().contains_any(all) {
                let record = records::emptied(part.track);
                plan.record(record);
                self.apply(&record);
            }
        }
    }
}

impl TranslationLayer for Smart {
    fn host_blocks(&self) -> Blocks {
        self.space.host_blocks()
    }

    by_operation!();

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        if !matches!(r.op, HostOp::Read | HostOp::Write) {
            return None;
        }
        let part = self.part(r.lba.0, r.blocks.0, 0);
        let row = self.row(part.track);
        if r.op == HostOp::Read {
            let row = row.unwrap_or_else(|| self.space.nominal(part.pool, part.track));
            return Some((self.pba(row) + Blocks(part.from), Dir::Read));
        }
        if let Some(row) = row.filter(|&r| self.space.is_updatable(part.pool, r)) {
            return Some((self.pba(row) + Blocks(part.from), Dir::Write));
        }
        let live = self.live.set();
        let lbas = part.lbas();
        let mut kept =
            live.runs_in(part.first..lbas.start).chain(live.runs_in(lbas.end..part.first + part.length));
        if let Some((row, first)) = row.zip(kept.next()) {
            return Some((self.pba(row) + Blocks(first.start - part.first), Dir::Read));
        }
        Some((self.pba(self.target(part.pool, row.is_some())?) + Blocks(part.from), Dir::Write))
    }

    fn durable(&mut self) {
        self.space.durable();
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        records.changes().for_each(|r| self.apply(&r));
        self.space.durable();
        (0..self.space.pools()).for_each(|pool| self.gather(pool, plan));
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.live.set().runs_in(lba.span(blocks)).for_each(out);
    }

    fn map_bytes(&self) -> u64 {
        (self.home.bytes() + self.owner.bytes() + self.live.set().bytes()) as u64 + self.space.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
        out.level("free_tracks_to_write", self.space.writable());
    }
}
