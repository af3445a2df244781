//! Moving what is live in a band: it is read in as few operations as it lies in, and written in one.

use super::homes::{Homes, Live};
use crate::{Cause, Endpoint, OpId, Piece, Plan};
use smrlab_units::{Blocks, Pba};

/// A live unit, and where the plan has it staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The unit as it was.
    pub live: Live,
    /// The read that brought it.
    op: OpId,
    /// Its offset in what that read brought, in blocks.
    offset: u64,
}

/// Plans the reads of all live units of a band, neighbours in one operation; the units are in the order of their slots.
pub fn stage(homes: &Homes, band: u32, cause: Cause, plan: &mut Plan) -> Vec<Staged> {
    let (slots, unit) = (homes.slots(), homes.slots().unit());
    let live: Vec<Live> = homes.live_in(band).collect();
    let mut staged = Vec::with_capacity(live.len());
    for run in live.chunk_by(|a, b| a.slot + 1 == b.slot) {
        let op = plan.read_staged(cause, slots.pba(run[0].slot), Blocks(run.len() as u64 * unit));
        staged.extend(run.iter().zip(0..).map(|(&live, i)| Staged { live, op, offset: i * unit }));
    }
    staged
}

/// Plans one write of `units` to the slot at `pba` and those behind it.
pub fn write(homes: &Homes, pba: Pba, units: &[Staged], cause: Cause, plan: &mut Plan) {
    let unit = homes.slots().unit();
    plan.write_pieces(cause, pba, Blocks(units.len() as u64 * unit), |out| {
        let follows = |a: &Staged, b: &Staged| a.op == b.op && a.offset + unit == b.offset;
        out.extend(units.chunk_by(follows).map(|run| Piece {
            blocks: Blocks(run.len() as u64 * unit),
            end: Endpoint::Staged(run[0].op, Blocks(run[0].offset)),
        }));
    });
}

/// The units that follow each other, as first unit and number: a record each.
pub fn runs(units: &[Staged]) -> impl Iterator<Item = (u64, u64)> + '_ {
    units.chunk_by(|a, b| a.live.unit + 1 == b.live.unit).map(|run| (run[0].live.unit, run.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::super::slots::tests::tiny;
    use super::*;

    #[test]
    fn live_runs_are_read_each_and_written_together() {
        let mut homes = Homes::new(tiny(3, 2), false);
        homes.open(0);
        homes.open(1);
        for unit in [5, 6, 9, 7, 8] {
            homes.append(0, unit, 0);
        }
        homes.append(1, 9, 0);
        let mut plan = Plan::new(true, false);
        let staged = stage(&homes, 0, Cause::Defrag, &mut plan);
        let start = homes.slots().pba_in(0, 0);
        let ops: Vec<_> = plan.ops().iter().map(|o| (o.pba, o.blocks)).collect();
        assert_eq!(ops, [(start, Blocks(4)), (start + Blocks(6), Blocks(4))]);
        assert_eq!(runs(&staged).collect::<Vec<_>>(), [(5, 4)]);
        write(&homes, homes.slots().pba_in(1, 1), &staged[1..], Cause::Defrag, &mut plan);
        assert_eq!(plan.ops()[2].pba, homes.slots().pba_in(1, 1));
        let pieces: Vec<_> = plan.pieces(OpId(2)).iter().map(|p| (p.blocks, p.end)).collect();
        let part = |op, at, n| (Blocks(n), Endpoint::Staged(OpId(op), Blocks(at)));
        assert_eq!(pieces, [part(0, 2, 2), part(1, 0, 4)]);
    }
}
