//! Reads of units wherever they are, and discards.

use super::{LogLayer, records};
use crate::parts::split::{ReadRuns, first_alike};
use crate::parts::units::UnitSpan;
use crate::{HostRequest, Plan};
use smrlab_units::{Blocks, Lba};
use std::ops::Range;

impl LogLayer {
    /// Units that were never written are read from where they would be on a drive that was filled in order.
    pub(super) fn read(&self, r: &HostRequest, plan: &mut Plan) {
        let mut runs = ReadRuns::to_host(0);
        let mut left = r.span();
        while !left.is_empty() {
            let (run, discarded) = first_alike(&self.discarded, left.clone());
            left.start = run.end;
            match discarded {
                true => runs.zeroes(run.end - run.start, plan),
                false => self.read_blocks(run, r.lba, &mut runs, plan),
            }
        }
        let extents = runs.end(plan);
        plan.set_extents(extents.max(1));
    }

    #[inline]
    fn read_blocks(&self, blocks: Range<u64>, first: Lba, runs: &mut ReadRuns, plan: &mut Plan) {
        let g = self.slots().unit();
        let mut at = blocks.start;
        while at < blocks.end {
            let (unit, within) = (at / g, at % g);
            let n = (g - within).min(blocks.end - at);
            let pba = self.pba(unit).unwrap_or_else(|| {
                plan.zero_to_host(Blocks(at - first.0), Blocks(n));
                self.slots().pba(unit as u32)
            });
            runs.push(pba + Blocks(within), n, plan);
            at += n;
        }
    }

    pub(super) fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        plan.record(records::discarded(r.lba, r.blocks));
        self.forget(r.lba, r.blocks);
        self.free_emptied(plan);
    }

    /// A unit dies with the last of its blocks, so that only what is discarded counts, and not in how many commands.
    pub(super) fn forget(&mut self, lba: Lba, blocks: Blocks) {
        self.discarded.insert(lba.span(blocks));
        let g = self.slots().unit();
        let span = UnitSpan::of(lba, blocks, g);
        let ends = span.kept().into_iter().flatten().map(|(unit, _)| unit);
        let ends: Vec<u64> = ends.filter(|u| self.discarded.contains_all(u * g..(u + 1) * g)).collect();
        for unit in span.whole().chain(ends) {
            let place = self.place_of(unit);
            match (self.homes.remove(unit), place, &mut self.raz) {
                (_, Some(place), Some(raz)) => raz.give_up(place),
                (Some(old), ..) => self.lost(old),
                _ => {}
            }
        }
    }
}
