//! Algorithm V.1: blocks of the host go to the head of the cache ring.

use super::pieces::Fills;
use super::section::Section;
use super::work::Work;
use super::{Rules, records};
use crate::parts::split::ReadRuns;
use crate::{Cause, Endpoint, OpId, Plan};
use smrlab_units::Blocks;
use std::ops::Range;

impl Section {
    /// Algorithm V.1 for blocks of one S-block: room, then one write for each place that lies in one piece.
    pub(super) fn write(
        &mut self,
        x: u32,
        span: Range<u64>,
        host: (Range<u64>, u64),
        rules: &Rules,
        work: &mut Work,
        plan: &mut Plan,
    ) -> u32 {
        let most = self.cache.longest(rules.granularity);
        let (mut at, mut ops) = (span.start, 0);
        self.see_fences(work);
        self.fetch_ahead(0);
        while at < span.end {
            let end = (at + most).min(span.end);
            self.make_room(end - at, rules, work, plan);
            let given = host.0.start.max(at)..host.0.end.min(end);
            let fills = ((at..end) != given).then(|| self.stage_fills(x, at..end, &given, work, plan));
            while at < end {
                let (pba, side) = self.cache.laid.at(self.cache.ring.head());
                let n = side.0.min(end - at);
                self.spend_blocks(n, work, plan);
                let from = Blocks(host.1 + (at.max(host.0.start) - host.0.start));
                match &fills {
                    None => plan.write(Cause::Host, pba, Blocks(n), Endpoint::Host(from)),
                    Some(f) => plan.write_pieces(Cause::Host, pba, Blocks(n), |out| {
                        f.pieces(at..at + n, &given, host.1 + (given.start - host.0.start), out);
                    }),
                };
                let word = (self.first + u64::from(x)) * rules.size + at;
                let skipped = given.start.saturating_sub(at).min(n) << 32;
                let left_over = (at + n).saturating_sub(given.end).min(n) << 48;
                Self::record(plan, records::PUT, [word, n | skipped | left_over, 0]);
                let hit = self.put(x, at, n);
                work.counters.write_hits += u64::from(hit > 0);
                work.counters.write_misses += u64::from(hit == 0);
                at += n;
                ops += 1;
            }
        }
        self.fetch_ahead(1);
        ops
    }

    /// Reads what completes the units around `given`.
    #[cold]
    fn stage_fills(
        &self,
        x: u32,
        span: Range<u64>,
        given: &Range<u64>,
        work: &mut Work,
        plan: &mut Plan,
    ) -> Fills {
        let mut stage = |gap: Range<u64>, plan: &mut Plan| {
            let first = plan.ops().len();
            if !gap.is_empty() && !self.holds(x, gap.start) {
                // Units are cached as a whole, so nothing in the gap is.
                return vec![(Endpoint::Zero, gap.end - gap.start)];
            }
            if !gap.is_empty() {
                let mut runs = ReadRuns::staged(Cause::Fill);
                self.read_runs(x, gap.start, gap.end - gap.start, &mut work.parts, &mut runs, plan);
                runs.end(plan);
            }
            let staged = |i: usize| Endpoint::Staged(OpId((first + i) as u32), Blocks::ZERO);
            plan.ops()[first..].iter().enumerate().map(|(i, o)| (staged(i), o.blocks.0)).collect()
        };
        let before = stage(span.start..given.start, plan);
        let behind = stage(given.end..span.end, plan);
        Fills { start: span.start, before, behind }
    }
}
