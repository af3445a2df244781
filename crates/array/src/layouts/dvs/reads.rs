//! Reads of the host's: what a dead disk held is made from the rest of its stripe.

use super::Dvs;
use super::operation::{Operation, ReadOp};
use crate::layouts::chunks::{Lost, LostPiece, Slots};
use crate::{End, MemberId, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, Lba};

impl Dvs {
    /// Reads what the host wants, and for chunks that are lost the rest of their stripes.
    pub(super) fn begin_read(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let before = plan.ops().len();
        let changes = self.disks.changes();
        let mut op = ReadOp { request: *r, changes, slots: Slots::default(), lost: Vec::new() };
        for (group, lcn, blocks, host) in self.chunks(r.span()) {
            let n = blocks.end - blocks.start;
            let found = self.source(group).and_then(|source| Some((source, source.tables.place(lcn)?)));
            let Some((source, place)) = found else {
                plan.deliver(ticket, Blocks(host), Blocks(n), &[]);
                continue;
            };
            let segments = source.segments();
            if segments.has(place) {
                let from = segments.blocks(place, &blocks);
                let own = HostRequest { lba: Lba(from.start), blocks: Blocks(n), ..*r };
                let member = MemberId(from.disk as u32);
                plan.ask(ticket, member, own, |p| p.push(Blocks(n), End::Host(Blocks(host))));
                continue;
            }
            let slots = source.read(place, blocks, &mut op.slots)?.slots;
            op.lost.push(LostPiece { host: Blocks(host), blocks: Blocks(n), slots });
        }
        op.slots.plan(ticket, Cause::Parity, plan);
        match plan.ops().len() > before {
            true => self.operations.put(ticket, Operation::Read(op)),
            false => plan.end(ticket),
        }
        Ok(())
    }
}
