//! Reads: the parts of a request in the order in which they lie on the medium.

use super::SteadyLog;
use crate::parts::split::first_alike;
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
            let mut left = run;
            while !left.is_empty() {
                let (mut run, discarded) = first_alike(&self.discarded, left.clone());
                left.start = run.end;
                if discarded {
                    each(run, None, false);
                    continue;
                }
                while !run.is_empty() {
                    let (_, blocks, offset) = self.holdings.bands().band_at(run.start);
                    let end = run.end.min(run.start + (blocks.end - blocks.start) - offset.0);
                    each(run.start..end, Some(Pba(blocks.start) + offset), false);
                    run.start = end;
                }
            }
        });
    }

    /// Plans a read: its parts are read in the order of their places, wherever the host's buffer wants them.
    pub(super) fn read(&mut self, r: &HostRequest, plan: &mut Plan) {
        let lbas = r.span();
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
