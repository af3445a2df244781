//! The bytes of member requests: gathered, carried out, scattered, and kept for the host.

use crate::carry::Bytes;
use crate::error::{DeviceError, Result};
use crate::ledger::Ledger;
use crate::queue::{refused, stopped};
use crate::stats::Events;
use smrlab_array::plan::Outcome;
use smrlab_array::{ArrayObserver, MemberId, MemberOp, MemberPlan, Staging, Ticket};
use smrlab_drive::{Executed, Served};
use smrlab_stl::{Cause, HostBuffer, Refusal};
use smrlab_units::{HostOp, SimTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request of the host's.
pub(super) struct Pending {
    pub(super) op: HostOp,
    /// What it writes, or what its reads have brought.
    pub(super) data: Vec<u8>,
    /// When it was acknowledged, or why it was not done.
    pub(super) done: Option<(SimTime, Option<Refusal>)>,
    /// A read met this, and there is no other copy.
    pub(super) failed: Option<DeviceError>,
    /// Its thread has its answer; the work goes on.
    pub(super) answered: bool,
}

/// Does with member requests what is to be done beside timing them.
pub(super) struct Carry {
    pub(super) disks: Vec<Bytes>,
    pub(super) staging: Staging,
    pub(super) pending: BTreeMap<u64, Pending>,
    /// The host requests whose works are under way.
    pub(super) tickets: BTreeMap<Ticket, u64>,
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) events: Arc<Events>,
    /// A disk that fails can be done without.
    pub(super) redundant: bool,
    /// What the request that was issued last met.
    pub(super) fault: Option<(MemberId, u64, HostOp, DeviceError)>,
    /// Disks that are being thrown out.
    pub(super) doomed: Vec<MemberId>,
    /// Why nothing more is done.
    pub(super) broken: Option<DeviceError>,
}

impl Carry {
    fn carry_out(&mut self, op: &MemberOp, plan: &MemberPlan, executed: &Executed<'_>) -> Result<()> {
        let disk = &mut self.disks[op.member.at()];
        let (all, why) = ((executed.done, true), op.request.why);
        let host = self.pending.get_mut(&op.request.id);
        match op.request.op {
            HostOp::Write => {
                let data = self.staging.gather(plan, op, host.map_or(&[], |p| &p.data));
                disk.carry_out(executed.plan, all, why, HostBuffer::Write(&data))
            }
            HostOp::Read => {
                let mut out = vec![0; op.request.blocks.bytes() as usize];
                disk.carry_out(executed.plan, all, why, HostBuffer::Read(&mut out))?;
                let host = host.map_or(&mut [][..], |p| &mut p.data);
                self.staging.scatter(op.ticket, plan.parts(op), &out, host);
                Ok(())
            }
            HostOp::Flush | HostOp::Discard => disk.carry_out(executed.plan, all, why, HostBuffer::None),
        }
    }

    fn throw_out(&mut self, member: MemberId, e: &DeviceError) {
        if !self.doomed.contains(&member) {
            self.doomed.push(member);
            self.events.push("disk-failed", None, format!("disk {} is thrown out: {e}", member.0));
        }
    }

    /// The work of this ticket is over.
    fn over(&mut self, ticket: Ticket) {
        self.staging.end(ticket);
        if let Some(id) = self.tickets.remove(&ticket)
            && self.pending.get(&id).is_some_and(|p| p.answered)
        {
            self.pending.remove(&id);
        }
    }

    /// What became of a request, once that is known.
    pub(super) fn answer(&mut self, id: u64) -> Option<Result<(SimTime, Vec<u8>)>> {
        let working = self.tickets.values().any(|t| *t == id);
        let pending = self.pending.get_mut(&id).filter(|p| p.done.is_some())?;
        let (ack, refusal) = pending.done?;
        let (failed, op) = (pending.failed.take(), pending.op);
        pending.answered = true;
        let data = match op {
            HostOp::Read if working => pending.data.clone(),
            HostOp::Read => std::mem::take(&mut pending.data),
            _ => Vec::new(),
        };
        if !working {
            self.pending.remove(&id);
        }
        Some(match (failed, refusal) {
            (Some(e), _) => Err(e),
            (None, Some(Refusal::Lost)) => {
                Err(DeviceError::new(libc::EIO, "too many disks of the array are dead: the data are lost"))
            }
            (None, Some(why)) => Err(refused(why)),
            (None, None) => Ok((ack, data)),
        })
    }
}

impl ArrayObserver for Carry {
    fn issued(
        &mut self,
        _: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        _: &Served,
        executed: Option<&Executed<'_>>,
    ) {
        if self.pending.contains_key(&op.request.id) {
            self.tickets.insert(op.ticket, op.request.id);
        }
        if let Some(executed) = executed.filter(|e| e.plan.refusal().is_none())
            && let Err(e) = self.carry_out(op, plan, executed)
        {
            self.fault = Some((op.member, op.request.id, op.request.op, e));
        }
    }

    fn answered(&mut self) -> bool {
        let Some((member, id, op, e)) = self.fault.take() else { return true };
        if self.redundant && e.errno() == libc::EIO {
            self.throw_out(member, &e);
            return false;
        }
        match self.pending.get_mut(&id).filter(|_| op == HostOp::Read) {
            Some(pending) => pending.failed = Some(e),
            None => _ = self.broken.get_or_insert(stopped(&e)),
        }
        true
    }

    fn background(&mut self, member: MemberId, step: &Executed<'_>) {
        let (disk, done) = (&mut self.disks[member.at()], (step.done, step.whole));
        let done = disk.carry_out(step.plan, done, Cause::Host, HostBuffer::None);
        match done {
            Err(e) if self.redundant && e.errno() == libc::EIO => self.throw_out(member, &e),
            Err(e) => _ = self.broken.get_or_insert(stopped(&e)),
            Ok(()) => {}
        }
    }

    fn planned(&mut self, _: SimTime, plan: &MemberPlan) {
        for delivery in plan.deliveries() {
            let host = self.tickets.get(&delivery.ticket).and_then(|id| self.pending.get_mut(id));
            if let Some(pending) = host {
                self.staging.deliver(plan, delivery, &mut pending.data);
            }
        }
        if let Some(ledger) = &self.ledger {
            let kept = plan.records().iter().try_for_each(|record| ledger.keep(*record));
            if let Err(e) = kept {
                self.broken.get_or_insert(stopped(&e));
            }
        }
        for outcome in plan.outcomes() {
            match *outcome {
                Outcome::Ended(ticket) | Outcome::Refused(ticket, _) => self.over(ticket),
                Outcome::Acknowledged(_) => {}
            }
        }
    }
}
