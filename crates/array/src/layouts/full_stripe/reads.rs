//! Reads of the host's: what a dead disk held is put together from its stripe.

use super::FullStripe;
use super::work::{Operation, Purpose, Stage, Wanted, ask};
use crate::layouts::chunks::{Lost, LostPiece, SlotRead};
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
        let mut op =
            Operation { stage: Stage::Last, ..Operation::new(Purpose::Host(*r), self.disks.changes()) };
        match self.plan_read(ticket, r, &mut op, plan) {
            Ok(()) if plan.of(ticket).next().is_none() => {
                self.over(ticket, &op);
                plan.end(ticket);
            }
            Ok(()) => self.operations.put(ticket, op),
            Err(Lost) => {
                self.over(ticket, &op);
                return Err(Lost);
            }
        }
        Ok(())
    }

    fn plan_read(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        op: &mut Operation,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let mut direct = Vec::new();
        for (lcn, blocks, host) in self.chunks(r.span()) {
            let (host, n) = (Blocks(host), Blocks(blocks.end - blocks.start));
            let Some(place) = self.table.place(lcn) else {
                plan.deliver(ticket, host, n, &[]);
                continue;
            };
            let group = u64::from(place.group);
            let cell = self.table.group(group).and_then(|g| g.stripe(place.stripe).nth(place.disk as usize));
            let at = u64::from(cell.ok_or(Lost)?.at);
            if self.has(u64::from(place.disk), group, at) {
                self.pin(op, group);
                let start = self.shape.start(group) + at * self.shape.chunk + blocks.start;
                let from = SlotRead { disk: u64::from(place.disk), start, blocks: n.0 };
                direct.push(Wanted { from, to: End::Host(host) });
                continue;
            }
            let first = op.reads.len() as u32;
            self.read_chunk(op, place, &blocks)?;
            let slots = first..op.reads.len() as u32;
            op.missing.push(LostPiece { host, blocks: n, slots });
        }
        ask(ticket, r, direct, plan);
        self.read_slots(ticket, &r.because(Cause::Parity), op, plan);
        Ok(())
    }
}
