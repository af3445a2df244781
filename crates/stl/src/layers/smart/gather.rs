//! Gathering free rows: a run of used rows between two gaps moves away, and the gaps become one.
//!
//! A row is free for writing only if the `W - 1` rows behind it are free, too. So each gap between used rows has so many that
//! cannot be written, and each that is joined with another gives them back. Rows that move go to the first rows of
//! their pool that can be written: what was not updated for long gathers there.

use super::{Smart, records};
use crate::parts::rows::{At, Span};
use crate::{Cause, Plan};
use smrlab_units::Blocks;
use std::ops::Range;

/// So many runs of used rows are looked at, and the cheapest is taken; more where none of them can be.
const LOOKED_AT: usize = 256;

/// Runs that would move together, and what that costs: the cheapest is the least.
struct Candidate {
    runs: Vec<Range<u64>>,
    cost: Cost,
}

/// Of moving runs of rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// Some have to go to the gap behind them, which then ends later but is not joined with the one before.
    stays_apart: bool,
    rows: u64,
}

impl Smart {
    /// Gathers free rows until the pool has its reserve again.
    pub(super) fn gather(&mut self, pool: usize, plan: &mut Plan) {
        while !self.space.has_reserve(pool) {
            let runs = self.cheapest(pool).expect("more rows are free than gaps can make useless");
            let (first, mut moved) = (plan.ops().len(), 0);
            let behind = runs.last().map_or(0, |run| run.end);
            let behind = self.space.used().next_set(behind).unwrap_or(u64::MAX);
            // In ascending order: the gap before grows by each of them, and takes those behind.
            for row in runs.into_iter().flatten() {
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

    /// The runs of used rows that are cheapest to move so that more rows can be written, from the cursor on.
    fn cheapest(&self, pool: usize) -> Option<Vec<Range<u64>>> {
        let of = self.space.pool(pool);
        let start = self.space.segment_at(pool, of.cursor).unwrap_or_else(|next| next);
        let (mut best, mut seen): (Option<Candidate>, usize) = (None, 0);
        for i in 0..of.segments.len() {
            self.look_at(pool, &of.segments[(start + i) % of.segments.len()], &mut best, &mut seen);
            if seen >= LOOKED_AT && best.is_some() {
                break;
            }
        }
        best.map(|b| b.runs)
    }

    /// Looks at the runs of a segment, with the gaps before and behind each.
    fn look_at(
        &self,
        pool: usize,
        segment: &super::space::Segment,
        best: &mut Option<Candidate>,
        seen: &mut usize,
    ) {
        let most = self.space.width - 1;
        // Runs so far, each with as many rows of the gap before it as are lost there.
        let mut runs: Vec<(u64, Range<u64>)> = Vec::new();
        let mut gap_start = segment.rows.start;
        let mut used = self.space.used().runs_in(segment.rows.clone()).peekable();
        while let Some(run) = used.next() {
            *seen += 1;
            let end = run.end;
            runs.push((most.min(run.start - gap_start), run));
            gap_start = end;
            let next = used.peek().map_or(segment.rows.end, |next| next.start);
            // Nothing needs a distance from the edge.
            let at_edge = used.peek().is_none() && segment.rows.end == segment.bound;
            let lost = if at_edge { most } else { most.min(next - end) };
            self.look_back(pool, &runs, (lost, end..next), best);
            if *seen >= LOOKED_AT && best.is_some() {
                return;
            }
        }
    }

    /// Looks at the last run, or as many of the last ones as have to move together so that the gap before them, with `lost` useless rows
    /// behind them, can be written.
    fn look_back(
        &self,
        pool: usize,
        runs: &[(u64, Range<u64>)],
        (mut lost, behind): (u64, Range<u64>),
        best: &mut Option<Candidate>,
    ) {
        let mut rows = 0;
        for (i, (gap, run)) in runs.iter().enumerate().rev() {
            (lost, rows) = (lost + gap, rows + run.end - run.start);
            let cheaper = |cost: &Cost| best.as_ref().is_none_or(|best| *cost < best.cost);
            if lost >= self.space.width {
                if let Some(cost) = self.cost(pool, *gap, rows, behind).filter(cheaper) {
                    let runs = runs[i..].iter().map(|(_, run)| run.clone()).collect();
                    *best = Some(Candidate { runs, cost });
                }
                return;
            }
            if !cheaper(&Cost { stays_apart: false, rows }) {
                return;
            }
        }
    }

    /// What it costs to move so many rows, which have a gap with `lost` useless rows before and one behind; none if the pool runs
    /// out of rows to write on the way: until the gap before is `W` rows wide, what moves gives nothing back.
    fn cost(&self, pool: usize, lost: u64, rows: u64, behind: Range<u64>) -> Option<Cost> {
        let needed = rows.min(self.space.width - lost);
        let writable = self.space.pool(pool).writable;
        let elsewhere = writable - self.space.writable_in(behind);
        (needed <= writable).then_some(Cost { stays_apart: needed > elsewhere, rows })
    }
}
