//! Reads of the host's: what a dead disk held is put together from its stripe.

use super::FullStripe;
use super::work::{Operation, ReadOp, Wanted, ask};
use crate::layouts::chunks::{Lost, LostPiece};
use crate::{End, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::Blocks;

impl FullStripe {
    pub(super) fn read(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let mut op = ReadOp::new(*r, self.disks.changes());
        match self.plan_read(ticket, r, &mut op, plan) {
            Ok(()) if plan.of(ticket).next().is_none() => {
                self.over(ticket, &op.reads);
                plan.end(ticket);
            }
            Ok(()) => self.operations.put(ticket, Operation::Read(op)),
            Err(Lost) => {
                self.over(ticket, &op.reads);
                return Err(Lost);
            }
        }
        Ok(())
    }

    fn plan_read(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        op: &mut ReadOp,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let mut direct = Vec::new();
        for (lcn, blocks, host) in self.chunks(r.span()) {
            let (host, n) = (Blocks(host), Blocks(blocks.end - blocks.start));
            let Some(cell) = self.table.place(lcn) else {
                plan.deliver(ticket, host, n, &[]);
                continue;
            };
            let (group, place) = (u64::from(cell.group), self.place(cell)?);
            let segments = self.segments(group);
            if segments.has(place) {
                let from = segments.blocks(place, &blocks);
                direct.push(Wanted { from, to: End::Host(host) });
                self.pin(&mut op.reads, group);
                continue;
            }
            let slots = self.read_chunk(&mut op.reads, cell, &blocks)?.slots;
            op.missing.push(LostPiece { host, blocks: n, slots });
        }
        ask(ticket, r, direct, plan);
        self.read_slots(ticket, &r.because(Cause::Parity), &op.reads, plan);
        Ok(())
    }
}
