//! The bytes of an array's members: what they are asked for is carried out on plain media.

use crate::{Digest, PlainMedium};
use smrlab_array::{ArrayObserver, Buffers, MemberId, MemberOp, MemberPlan, OpPart, Records, Ticket};
use smrlab_drive::{Observer, TimedPlan};
use smrlab_stl::{Executor, HostBuffer, HostRequest, OpId};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, SimTime};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::ops::Range;

pub(super) fn range(lba: Lba, blocks: Blocks) -> Range<usize> {
    (lba.0 * BLOCK_BYTES) as usize..((lba.0 + blocks.0) * BLOCK_BYTES) as usize
}

/// A request that a member has, with the data of a write and the parts of a read.
pub(super) struct Sent {
    op: MemberOp,
    data: Vec<u8>,
    parts: Vec<OpPart>,
}

/// The bytes of a disk.
pub(super) struct Disk {
    pub(super) medium: PlainMedium,
    pub(super) exec: Executor,
}

/// The bytes of an SSD, and what it has not done.
pub(super) struct Flash {
    pub(super) bytes: Vec<u8>,
    pub(super) queue: VecDeque<Sent>,
}

/// What follows the bytes.
#[derive(Default)]
pub(super) struct Bench {
    pub(super) disks: Vec<Disk>,
    pub(super) ssds: Vec<Flash>,
    /// What drives have and have not done, by their numbers.
    pub(super) sent: BTreeMap<(MemberId, u64), Sent>,
    pub(super) buffers: Buffers,
    pub(super) records: Records,
    /// How many of the records may be there after a cut: those that are durable, or some whole plans more.
    pub(super) may_keep: Vec<usize>,
    pub(super) done: u64,
    pub(super) digest: Digest,
}

impl Bench {
    /// What a member is asked for.
    fn asked(&mut self, op: &MemberOp, plan: &MemberPlan) -> Sent {
        let r = &op.request;
        self.digest.note(&[op.member.0.into(), r.id, r.lba.0, r.blocks.0, r.why as u64, r.fua.into()]);
        self.digest.note_debug(&(r.op, plan.parts(op)));
        let data = match op.request.op {
            HostOp::Write => self.buffers.gather(plan, op),
            HostOp::Read => vec![0x22; op.request.blocks.bytes() as usize],
            _ => Vec::new(),
        };
        Sent { op: *op, data, parts: plan.parts(op).to_vec() }
    }

    /// So many records are durable, and those behind them may be lost.
    pub(super) fn durable(&mut self, records: usize) {
        self.may_keep.clear();
        self.may_keep.push(records);
    }

    /// A member has done what it was asked for: what it read is in `sent.data`.
    fn did(&mut self, sent: &Sent) {
        self.done += 1;
        if sent.op.request.op == HostOp::Read {
            self.buffers.scatter(&sent.op, &sent.parts, &sent.data);
        }
    }

    /// An SSD does its oldest request.
    pub(super) fn flashes(&mut self, ssd: usize) {
        let flash = &mut self.ssds[ssd];
        let Some(mut sent) = flash.queue.pop_front() else { return };
        let at = range(sent.op.request.lba, sent.op.request.blocks);
        match sent.op.request.op {
            HostOp::Write => flash.bytes[at].copy_from_slice(&sent.data),
            HostOp::Read => sent.data.copy_from_slice(&flash.bytes[at]),
            _ => {}
        }
        self.did(&sent);
    }

    /// All SSDs do what they have.
    pub(super) fn flash_all(&mut self) {
        for ssd in 0..self.ssds.len() {
            while !self.ssds[ssd].queue.is_empty() {
                self.flashes(ssd);
            }
        }
    }
}

impl Observer for Bench {
    type Error = Infallible;

    fn dispatched(
        &mut self,
        _: SimTime,
        r: &HostRequest,
        executed: &TimedPlan<'_>,
    ) -> Result<(), Infallible> {
        let mut sent = self.sent.remove(&(executed.member, r.id)).expect("it was sent");
        let host = match r.op {
            HostOp::Write => HostBuffer::Write(&sent.data),
            HostOp::Read => HostBuffer::Read(&mut sent.data),
            _ => HostBuffer::None,
        };
        assert_eq!(executed.plan.refusal(), None);
        let Disk { medium, exec } = &mut self.disks[executed.member.at()];
        let Ok(()) = exec.run(executed.plan, host, medium);
        self.did(&sent);
        Ok(())
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<(), Infallible> {
        let Disk { medium, exec } = &mut self.disks[step.member.at()];
        exec.begin();
        for op in 0..step.done as u32 {
            let Ok(()) = exec.step(step.plan, OpId(op), &mut HostBuffer::None, medium);
        }
        Ok(())
    }
}

impl ArrayObserver for Bench {
    fn began(&mut self, ticket: Ticket, request: &HostRequest) {
        self.buffers.began(ticket, request.id);
    }

    fn issued(
        &mut self,
        _: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        executed: Option<&TimedPlan<'_>>,
    ) -> Result<(), Infallible> {
        assert!(executed.is_none(), "all drives are behind schedulers");
        let sent = self.asked(op, plan);
        self.ssds[op.member.at() - self.disks.len()].queue.push_back(sent);
        Ok(())
    }

    fn sent(&mut self, _: SimTime, op: &MemberOp, number: u64, plan: &MemberPlan) {
        let sent = self.asked(op, plan);
        self.sent.insert((op.member, number), sent);
    }

    fn died(&mut self, member: MemberId) {
        self.sent.retain(|key, _| key.0 != member);
    }

    fn planned(&mut self, _: SimTime, plan: &MemberPlan) {
        self.records.append(plan.records());
        match plan.is_fence() {
            true => self.durable(self.records.len()),
            false => self.may_keep.push(self.records.len()),
        }
        for r in plan.records().iter() {
            self.digest.note(&[r.tag.into()]);
            self.digest.note(r.words);
        }
        self.buffers.planned(plan);
    }
}
