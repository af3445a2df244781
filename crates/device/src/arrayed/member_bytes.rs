//! The bytes of member requests: gathered, carried out, scattered, and kept for the host.

use super::ssd::SsdBytes;
use crate::error::{DeviceError, Result};
use crate::ledger::Ledger;
use crate::one_drive::stopped;
use crate::plan_bytes::Bytes;
use crate::stats::Events;
use crate::store::Store;
use crate::table::{Requests, part};
use smrlab_array::plan::Outcome;
use smrlab_array::{ArrayObserver, Chosen, Done, MemberId, MemberOp, MemberPlan, OpPart, Staging, Ticket};
use smrlab_drive::{Buffered, Observer, TimedPlan};
use smrlab_stl::{Cause, HostBuffer, HostRequest, Refusal};
use smrlab_units::{HostOp, SimTime};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// A request that a drive behind a scheduler has and has not done.
pub(super) struct Sent {
    op: MemberOp,
    /// Where what it reads goes.
    parts: Vec<OpPart>,
    /// What it writes.
    data: Vec<u8>,
}

/// Does with member requests what is to be done beside timing them.
pub(super) struct MemberBytes {
    pub(super) disks: Vec<Bytes>,
    pub(super) ssds: Vec<SsdBytes>,
    /// Which disks are dead: they are not made durable.
    pub(super) dead: Vec<bool>,
    /// What drives behind schedulers have, by disk and number.
    pub(super) sent: BTreeMap<(MemberId, u64), Sent>,
    /// Requests that change what members hold.
    pub(super) changes: u64,
    /// How often everything was made durable in the middle of the array's work.
    pub(super) fences: u64,
    pub(super) staging: Staging,
    /// The host's.
    pub(super) requests: Requests,
    /// Which of them are served by works that are under way.
    pub(super) hosts: BTreeMap<Ticket, u64>,
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) events: Arc<Events>,
    /// A disk that fails can be done without.
    pub(super) redundant: bool,
    /// Members have SSDs of their own: what is under way there has to fit what is elsewhere, too.
    pub(super) nested: bool,
    /// What the request that was issued last met.
    pub(super) fault: Option<(MemberId, u64, HostOp, DeviceError)>,
    /// Disks that are being thrown out.
    pub(super) doomed: Vec<MemberId>,
    /// Why nothing more is done.
    pub(super) broken: Option<DeviceError>,
}

impl MemberBytes {
    /// Of the disks and SSDs of an array.
    pub(super) fn new(
        (disks, ssds): (Vec<Bytes>, Vec<Arc<dyn Store>>),
        ledger: Option<Arc<Ledger>>,
        events: Arc<Events>,
        array: &Chosen,
    ) -> Self {
        Self {
            dead: vec![false; disks.len()],
            disks,
            ssds: ssds.into_iter().map(SsdBytes::new).collect(),
            sent: BTreeMap::new(),
            changes: 0,
            fences: 0,
            staging: Staging::default(),
            requests: Requests::default(),
            hosts: BTreeMap::new(),
            ledger,
            events,
            redundant: array.capabilities().losses > 0,
            nested: array.is_nested(),
            fault: None,
            doomed: Vec::new(),
            broken: None,
        }
    }

    /// A fresh disk is in the place of a dead one.
    pub(super) fn renew(&mut self, member: MemberId, disk: Bytes) {
        (self.disks[member.at()], self.dead[member.at()]) = (disk, false);
        self.sent.retain(|key, _| key.0 != member);
    }

    /// What a write puts on its member; nothing of other requests.
    fn gathered(&self, op: &MemberOp, plan: &MemberPlan) -> Vec<u8> {
        if op.request.op != HostOp::Write {
            return Vec::new();
        }
        self.staging.gather(plan, op, self.requests.data(op.request.id).unwrap_or_default())
    }

    /// Moves the bytes of a request: `data` of a write, to `parts` of a read. `executed`: by a drive, else by an SSD.
    fn carry_out(
        &mut self,
        op: &MemberOp,
        executed: Option<&TimedPlan<'_>>,
        (data, parts): (&[u8], &[OpPart]),
    ) -> Result<()> {
        match op.request.op {
            HostOp::Write => self.on_member(op, executed, HostBuffer::Write(data)),
            HostOp::Read => {
                let mut out = vec![0; op.request.blocks.bytes() as usize];
                self.on_member(op, executed, HostBuffer::Read(&mut out))?;
                self.scatter(op, parts, &out);
                Ok(())
            }
            _ => self.on_member(op, executed, HostBuffer::None),
        }
    }

    fn on_member(
        &mut self,
        op: &MemberOp,
        executed: Option<&TimedPlan<'_>>,
        host: HostBuffer<'_>,
    ) -> Result<()> {
        let Some(executed) = executed else {
            return self.ssds[op.member.at() - self.disks.len()].carry_out(&op.request, host);
        };
        if let smrlab_stl::Outcome::Refused { why, lba } = executed.plan.outcome() {
            return Err(DeviceError::refused(why, Some(lba)));
        }
        let all = (executed.done, true);
        self.disks[op.member.at()].carry_out(executed.plan, all, op.request.why, host)
    }

    fn scatter(&mut self, op: &MemberOp, parts: &[OpPart], data: &[u8]) {
        let host = self.requests.data_mut(op.request.id).unwrap_or_default();
        self.staging.scatter(op.buffers, parts, data, host);
    }

    /// A member gets a request: whose it is, and that its array is at work, is known before its bytes move.
    fn begins(&mut self, op: &MemberOp) {
        if self.requests.needs(op.request.id) {
            self.hosts.insert(op.buffers, op.request.id);
        }
        let changes = matches!(op.request.op, HostOp::Write | HostOp::Discard | HostOp::Zone(_));
        self.changes += u64::from(changes);
        if changes
            && (self.nested || op.member.at() < self.disks.len())
            && let Err(e) = self.at_work()
        {
            self.broken.get_or_insert(stopped(&e));
        }
    }

    /// Notes that disks are being written.
    fn at_work(&mut self) -> Result<()> {
        let goes_on = self.ledger.as_ref().map_or(Ok(false), |ledger| ledger.at_work())?;
        if goes_on { self.fence() } else { Ok(()) }
    }

    /// Makes durable what members did.
    pub(super) fn sync_members(&self) -> Result<()> {
        for (disk, dead) in self.disks.iter().zip(&self.dead) {
            if !dead {
                disk.medium.sync()?;
            }
        }
        self.ssds.iter().try_for_each(|ssd| ssd.store().sync())
    }

    /// Makes durable what members did and what the array recorded.
    fn fence(&mut self) -> Result<()> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let upto = ledger.position();
        self.sync_members()?;
        self.fences += 1;
        ledger.sync(upto)
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
        self.hosts.remove(&ticket).into_iter().for_each(|id| self.requests.release(id));
    }

    /// The array has done with a request of the host's, or refused it.
    pub(super) fn answer(&mut self, done: &Done) {
        let answer = match (&self.broken, done.refusal) {
            (Some(e), _) => Err(e.clone()),
            (None, None) => Ok(done.ack),
            (None, Some(Refusal::Lost)) => {
                Err(DeviceError::new(libc::EIO, "too many disks of the array are dead: the data are lost"))
            }
            (None, Some(why)) => Err(DeviceError::refused(why, None)),
        };
        self.requests.answer(done.request.id, answer);
    }
}

impl Observer for MemberBytes {
    type Error = Infallible;

    fn dispatched(
        &mut self,
        _: SimTime,
        request: &HostRequest,
        executed: &TimedPlan<'_>,
    ) -> std::result::Result<(), Infallible> {
        if let Some(Sent { op, parts, data, .. }) = self.sent.remove(&(executed.member, request.id))
            && let Err(e) = self.carry_out(&op, Some(executed), (&data, &parts))
        {
            self.fault = Some((op.member, op.request.id, op.request.op, e));
        }
        Ok(())
    }

    fn answered(
        &mut self,
        &Buffered { member, request: read, .. }: &Buffered<'_>,
        write: &HostRequest,
    ) -> std::result::Result<(), Infallible> {
        let Some(Sent { op, parts, .. }) = self.sent.remove(&(member, read.id)) else { return Ok(()) };
        match self.sent.get(&(member, write.id)).map(|sent| part(&sent.data, write, read).to_vec()) {
            Some(data) => self.scatter(&op, &parts, &data),
            None => {
                let e = DeviceError::input("what was to be read from a drive's buffer is not there");
                self.broken.get_or_insert(stopped(&e));
            }
        }
        Ok(())
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> std::result::Result<(), Infallible> {
        let (disk, done) = (&mut self.disks[step.member.at()], (step.done, step.whole));
        match disk.carry_out(step.plan, done, Cause::Host, HostBuffer::None) {
            Err(e) if self.redundant && e.errno() == libc::EIO => self.throw_out(step.member, &e),
            Err(e) => _ = self.broken.get_or_insert(stopped(&e)),
            Ok(()) => {}
        }
        Ok(())
    }
}

impl ArrayObserver for MemberBytes {
    fn issued(
        &mut self,
        _: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        executed: Option<&TimedPlan<'_>>,
    ) -> std::result::Result<(), Infallible> {
        self.begins(op);
        let data = self.gathered(op, plan);
        if let Err(e) = self.carry_out(op, executed, (&data, plan.parts(op))) {
            self.fault = Some((op.member, op.request.id, op.request.op, e));
        }
        Ok(())
    }

    fn sent(&mut self, _: SimTime, op: &MemberOp, number: u64, plan: &MemberPlan) {
        self.begins(op);
        let data = self.gathered(op, plan);
        let sent = Sent { op: *op, parts: plan.parts(op).to_vec(), data };
        self.sent.insert((op.member, number), sent);
    }

    fn throws_out(&mut self) -> bool {
        let Some((member, id, op, e)) = self.fault.take() else { return false };
        if self.redundant && e.errno() == libc::EIO && member.at() < self.disks.len() {
            self.throw_out(member, &e);
            return true;
        }
        if op != HostOp::Read || !self.requests.failed(id, &e) {
            self.broken.get_or_insert(stopped(&e));
        }
        false
    }

    fn died(&mut self, member: MemberId) {
        self.dead.get_mut(member.at()).into_iter().for_each(|dead| *dead = true);
    }

    fn planned(&mut self, _: SimTime, plan: &MemberPlan) {
        for delivery in plan.deliveries() {
            let host = self.hosts.get(&delivery.ticket).and_then(|id| self.requests.data_mut(*id));
            self.staging.deliver(plan, delivery, host);
        }
        if let Some(ledger) = &self.ledger
            && let Err(e) = ledger.keep(plan.records())
        {
            self.broken.get_or_insert(stopped(&e));
        }
        if plan.is_fence()
            && let Err(e) = self.fence()
        {
            self.broken.get_or_insert(stopped(&e));
        }
        for outcome in plan.outcomes() {
            match *outcome {
                Outcome::Ended(ticket) | Outcome::Refused(ticket, _) => self.over(ticket),
                Outcome::Acknowledged(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;
    use smrlab_array::End;
    use smrlab_units::{Blocks, Lba};

    /// An array acknowledges a write and then writes its data once more: the thread that brought them has its answer by then.
    #[test]
    fn the_data_of_a_write_stay_until_its_work_is_over() {
        let store: Arc<dyn Store> = Arc::new(Memory::new(1 << 20).unwrap());
        let array = smrlab_array::parse("striped,disks=2").unwrap();
        let mut bytes = MemberBytes::new((Vec::new(), vec![store.clone()]), None, Arc::default(), &array);
        let (now, ticket, data) = (SimTime::ZERO, Ticket(3), [7; 512]);
        let request = HostRequest::new(HostOp::Write, Lba(0), Blocks(1)).numbered(9);
        bytes.requests.enter(&request, &HostBuffer::Write(&data));
        let ask = |bytes: &mut MemberBytes, lba| {
            let mut plan = MemberPlan::new(true);
            let own = HostRequest { lba: Lba(lba), ..request };
            plan.ask(ticket, MemberId(0), own, |p| p.push(Blocks(1), End::Host(Blocks(0))));
            let Ok(()) = bytes.issued(now, &plan.ops()[0], &plan, None);
        };
        ask(&mut bytes, 0);
        bytes.answer(&Done { request, arrival: now, start: now, ack: now, ops: 0, refusal: None });
        assert!(bytes.requests.hear(9, &mut HostBuffer::Write(&data)).is_some_and(|answer| answer.is_ok()));
        ask(&mut bytes, 5);
        let mut there = [0; 512];
        store.read(5 * 512, &mut there).unwrap();
        assert_eq!(there, data);
        let mut plan = MemberPlan::new(true);
        plan.end(ticket);
        bytes.planned(now, &plan);
        assert!(bytes.requests.data(9).is_none());
    }
}
