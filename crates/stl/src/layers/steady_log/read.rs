//! Reads: the parts of a request in the order in which they lie on the medium.

use super::SteadyLog;
use crate::{Cause, HostRequest, Plan};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// A part of a read that lies in one piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pba: Pba,
    blocks: u64,
    /// Its first block within the request.
    host: u64,
}

impl SteadyLog {
    /// Calls `each` with the blocks of `lbas` that lie side by side, in order; where, and whether they hold data. Discarded blocks
    /// lie nowhere; what was never written lies where it would be on a drive that was filled in order.
    pub(super) fn for_places(&self, lbas: Range<u64>, mut each: impl FnMut(Range<u64>, Option<Pba>, bool)) {
        self.holdings.locate(lbas, |run, pba| {
            if pba.is_some() {
                return each(run, pba, true);
            }
            let mut at = run.start;
            while at < run.end {
                let zero = self.discarded.next_set(at).unwrap_or(run.end).min(run.end);
                while at < zero {
                    let (_, blocks, offset) = self.holdings.bands().band_at(at);
                    let end = zero.min(at + (blocks.end - blocks.start) - offset.0);
                    each(at..end, Some(Pba(blocks.start) + offset), false);
                    at = end;
                }
                let end = self.discarded.next_unset(zero).min(run.end);
                if end > zero {
                    each(zero..end, None, false);
                }
                at = end;
            }
        });
    }

    /// Plans a read: its parts are read in the order of their places, wherever the host's buffer wants them.
    pub(super) fn read(&mut self, r: &HostRequest, plan: &mut Plan) {
        let lbas = r.lba.span(r.blocks);
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        self.for_places(lbas.clone(), |run, pba, holds| {
            let (host, blocks) = (run.start - lbas.start, run.end - run.start);
            if !holds {
                plan.zero_to_host(Blocks(host), Blocks(blocks));
            }
            let Some(pba) = pba else { return };
            match pieces.last_mut() {
                Some(last) if last.pba + Blocks(last.blocks) == pba && last.host + last.blocks == host => {
                    last.blocks += blocks;
                }
                _ => pieces.push(Piece { pba, blocks, host }),
            }
        });
        if pieces.len() > 1 {
            pieces.sort_unstable_by_key(|p| p.pba);
        }
        for p in &pieces {
            plan.read_to_host(Cause::Host, p.pba, Blocks(p.blocks), Blocks(p.host));
        }
        plan.set_extents((pieces.len() as u32).max(1));
        self.pieces = pieces;
    }
}
