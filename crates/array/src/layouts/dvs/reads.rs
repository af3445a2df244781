//! Reads of the host's: what a dead disk held is put together from its stripe.

use super::Dvs;
use super::state::{At, Doing, Missing, State};
use crate::layouts::chunks::Lost;
use crate::{End, MemberId, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, Lba};

impl Dvs {
    pub(super) fn read(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<Box<State>, Lost> {
        let mut state = self.begin(Doing::Host(*r), At::Last);
        for (group, lcn, blocks, host) in self.chunks(r.lba.span(r.blocks)) {
            let n = blocks.end - blocks.start;
            let found = self.group(group).and_then(|g| Some((g, g.place(lcn)?)));
            let Some((tables, place)) = found else {
                plan.deliver(ticket, Blocks(host), Blocks(n), &[]);
                continue;
            };
            if self.disks.has(place.disk, group) {
                let at = place.at * self.shape.chunk + blocks.start;
                let lba = Lba(self.shape.start(group) + at);
                let own = HostRequest { lba, blocks: Blocks(n), ..*r };
                let member = MemberId(place.disk as u32);
                plan.ask(ticket, member, own, |p| p.push(Blocks(n), End::Host(Blocks(host))));
                continue;
            }
            let first = state.slots.reads.len() as u32;
            state.slots.chunk(&self.shape, (group, tables), place, blocks, &self.disks)?;
            let slots = first..state.slots.reads.len() as u32;
            state.missing.push(Missing { host, blocks: n, slots });
        }
        state.slots.plan(ticket, Cause::Parity, plan);
        if plan.ops().is_empty() {
            plan.end(ticket);
        }
        Ok(state)
    }
}
