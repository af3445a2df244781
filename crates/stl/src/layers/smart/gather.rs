//! Gathering free rows: a run of used rows between two gaps moves away, and the gaps become one.
//!
//! A row is free for writing only if the `W - 1` rows behind it are free, too. So each gap between used rows has so many that
//! cannot be written, and each that is joined with another gives them back. Rows that move go to the first rows of
//! their pool that can be written: what was not updated for long gathers there.

use super::space::Segment;
use super::{Smart, records};
use crate::parts::rows::{At, Span};
use crate::{Cause, Plan};
use smrlab_units::Blocks;
use std::ops::Range;

/// So many runs of used rows are looked at, and the cheapest to move is taken; more where none of them can be.
const LOOKED_AT: usize = 256;

/// A run of used rows.
struct Run {
    rows: Range<u64>,
    /// Free rows right before it that cannot be written.
    useless_before: u64,
}

/// Used rows, and the gaps between them, that would move together so that more rows can be written.
struct Candidate {
    span: Range<u64>,
    cost: Cost,
}

/// Of moving rows: the cheapest is the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// Some of them have to go to the gap behind, which then ends later but is not joined with the one before.
    fills_gap_behind: bool,
    rows: u64,
}

impl Smart {
    /// Gathers free rows until the pool has its reserve again.
    pub(super) fn gather(&mut self, pool: usize, plan: &mut Plan) {
        while !self.space.has_reserve(pool) {
            let span = self.cheapest(pool).expect("more rows are free than gaps can make useless").span;
            let (first, mut moved) = (plan.ops().len(), 0);
            let behind = self.space.used().next_set(span.end).unwrap_or(u64::MAX);
            // In ascending order: the gap before grows by each of them, and takes those behind.
            let rows: Vec<u64> = self.space.used().runs_in(span).flatten().collect();
            for row in rows {
                let target = self.space.row_outside(pool, row..behind).expect("a reserve of rows is kept");
                moved += self.move_row(pool, row, target, plan);
            }
            plan.cleaned("gathering", first, Blocks(moved));
            self.counters.gatherings += 1;
        }
    }

    /// Moves a track; answers how many live blocks it has.
    fn move_row(&mut self, pool: usize, row: u64, target: u64, plan: &mut Plan) -> u64 {
        let track = u64::from(self.owner.get(row)) - 1;
        let of = self.space.pool(pool);
        let first = of.lba + (track - of.track) * of.length;
        let lbas = first..first + of.length;
        let mut span = Span::default();
        let at = At { number: first, pba: self.pba(row), cause: Cause::Defrag };
        span.stage(self.live.set(), lbas.clone(), at, plan);
        self.space.fence_before(target, plan);
        span.write(self.pba(target), Cause::Defrag, plan);
        let record = records::placed(track, target);
        plan.record(record);
        self.apply(&record);
        self.counters.gathered += 1;
        self.live.set().count_in(lbas)
    }

    /// The cheapest rows to move, from the cursor on.
    fn cheapest(&self, pool: usize) -> Option<Candidate> {
        let of = self.space.pool(pool);
        let start = self.space.segment_at(pool, of.cursor).unwrap_or_else(|next| next);
        let segments = of.segments.iter().cycle().skip(start).take(of.segments.len());
        let mut best: Option<Candidate> = None;
        for (i, candidate) in segments.flat_map(|segment| self.candidates(pool, segment)).enumerate() {
            if let Some(one) = candidate
                && best.as_ref().is_none_or(|best| one.cost < best.cost)
            {
                best = Some(one);
            }
            if i + 1 >= LOOKED_AT && best.is_some() {
                break;
            }
        }
        best
    }

    /// For each run of used rows of a segment, what would join the gap behind it with one before.
    fn candidates(&self, pool: usize, segment: &Segment) -> impl Iterator<Item = Option<Candidate>> {
        let useless = move |gap: u64| gap.min(self.space.width - 1);
        let Segment { rows, bound, .. } = segment.clone();
        let mut used = self.space.used().runs_in(rows.clone()).peekable();
        let (mut runs, mut gap_start) = (Vec::new(), rows.start);
        std::iter::from_fn(move || {
            let run = used.next()?;
            let end = run.end;
            runs.push(Run { useless_before: useless(run.start - gap_start), rows: run });
            gap_start = end;
            let behind = end..used.peek().map_or(rows.end, |next| next.start);
            // Nothing needs a distance from the edge: joined with another gap, the last one gives back all that is useless.
            let at_edge = behind.end == bound;
            let useless_behind = useless(if at_edge { u64::MAX } else { behind.end - end });
            Some(self.joined(pool, &runs, behind, useless_behind))
        })
    }

    /// The last run, or as many of the last ones as have to move together: each gap that is joined gives back its useless rows,
    /// and one gap may have `W - 1` of them.
    fn joined(
        &self,
        pool: usize,
        runs: &[Run],
        behind: Range<u64>,
        useless_behind: u64,
    ) -> Option<Candidate> {
        let (mut rows, mut useless) = (0, useless_behind);
        for run in runs.iter().rev() {
            rows += run.rows.end - run.rows.start;
            useless += run.useless_before;
            if useless >= self.space.width {
                let span = run.rows.start..behind.start;
                let cost = self.cost(pool, rows, run.useless_before, behind)?;
                return Some(Candidate { span, cost });
            }
        }
        None
    }

    /// What it costs to move so many rows; `None`: the pool runs out of rows to write on the way.
    fn cost(&self, pool: usize, rows: u64, useless_before: u64, behind: Range<u64>) -> Option<Cost> {
        // Until the gap before is `W` rows wide, what moves gives nothing back.
        let needed = rows.min(self.space.width - useless_before);
        let writable = self.space.pool(pool).writable;
        let elsewhere = writable - self.space.writable_in(behind);
        (needed <= writable).then_some(Cost { fills_gap_behind: needed > elsewhere, rows })
    }
}
