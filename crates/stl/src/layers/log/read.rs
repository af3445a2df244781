//! Reads of units wherever they are, and discards.

use super::LogLayer;
use crate::parts::split::ReadRuns;
use crate::parts::units::UnitSpan;
use crate::{HostRequest, Plan};
use smrlab_units::{Blocks, Lba};
use std::ops::Range;

impl LogLayer {
    /// Units that were never written are read from where they would be on a drive that was filled in order.
    pub(super) fn read(&self, r: &HostRequest, plan: &mut Plan) {
        let mut runs = ReadRuns::to_host(0);
        let (mut at, end) = (r.lba.0, r.lba.0 + r.blocks.0);
        while at < end {
            let zero = self.discarded.next_set(at).unwrap_or(end).min(end);
            self.read_blocks(at..zero, r.lba, &mut runs, plan);
            at = self.discarded.next_unset(zero).min(end);
            if at > zero {
                runs.zeroes(at - zero, plan);
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

    /// A unit dies with the last of its blocks, so that only what is discarded counts, and not in how many commands.
    pub(super) fn discard(&mut self, lba: Lba, blocks: Blocks) {
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
