//! Identity of data in an array without bytes: what the host reads, however it is put together, is what it last wrote.
//!
//! Every block that the host writes gets 64 bits of its own; the array's plans move them between the host, their slots and
//! the members as they would move the block, XOR and all, so that what is made from parity is checked too. Below that each
//! drive is followed on its medium by [`Verify`]: it returns what the array wrote to it. A mistake goes unnoticed with a
//! chance of one in 2^64 a block, or as `Verify` says.

use super::Verify;
use super::pages::Hashed;
use crate::error::RunError;
use smrlab_array::plan::Outcome;
use smrlab_array::{End, MemberId, MemberOp, MemberPlan, Staging, Ticket};
use smrlab_drive::Executed;
use smrlab_stl::HostRequest;
use smrlab_units::HostOp;
use smrlab_units::rng::splitmix;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that stand for a block; zeroes: never written.
const BLOCK: usize = 8;
/// Blocks that are kept together: small requests should take one place and little of it for nothing.
const PAGE: u64 = 16;

/// Pages that get their memory together: they stay where they are.
const TOGETHER: usize = 256;

/// What stands for the blocks of a space, as far as that was touched.
#[derive(Default)]
struct Space {
    /// By page: its place among `pages`.
    places: Hashed<u32>,
    pages: Vec<Box<[[u8; PAGE as usize * BLOCK]; TOGETHER]>>,
    touched: usize,
}

impl Space {
    /// Pieces of a range within a page: page, bytes in it, bytes of the range.
    fn pieces(blocks: &Range<u64>) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> + use<> {
        let blocks = blocks.clone();
        (blocks.start / PAGE..blocks.end.div_ceil(PAGE)).map(move |page| {
            let (from, to) = (blocks.start.max(page * PAGE), blocks.end.min((page + 1) * PAGE));
            let bytes = |base: u64| (from - base) as usize * BLOCK..(to - base) as usize * BLOCK;
            (page, bytes(page * PAGE), bytes(blocks.start))
        })
    }

    /// A page that was touched.
    fn page(&self, page: u64) -> Option<&[u8; PAGE as usize * BLOCK]> {
        let place = *self.places.get(page)? as usize;
        Some(&self.pages[place / TOGETHER][place % TOGETHER])
    }

    /// The same, to be changed.
    fn page_mut(&mut self, page: u64) -> Option<&mut [u8; PAGE as usize * BLOCK]> {
        let place = *self.places.get(page)? as usize;
        Some(&mut self.pages[place / TOGETHER][place % TOGETHER])
    }

    fn set(&mut self, blocks: &Range<u64>, data: &[u8]) {
        for (page, to, from) in Self::pieces(blocks) {
            if let Some(old) = self.page_mut(page) {
                old[to].copy_from_slice(&data[from]);
                continue;
            }
            let place = self.touched;
            if place == self.pages.len() * TOGETHER {
                self.pages.push(Box::new([[0; PAGE as usize * BLOCK]; TOGETHER]));
            }
            self.places.insert(page, place as u32);
            self.touched += 1;
            self.pages[place / TOGETHER][place % TOGETHER][to].copy_from_slice(&data[from]);
        }
    }

    fn get(&self, blocks: &Range<u64>) -> Vec<u8> {
        let mut out = vec![0; (blocks.end - blocks.start) as usize * BLOCK];
        for (page, from, to) in Self::pieces(blocks) {
            if let Some(page) = self.page(page) {
                out[to].copy_from_slice(&page[from]);
            }
        }
        out
    }

    fn clear(&mut self, blocks: &Range<u64>) {
        if self.is_empty() {
            return;
        }
        for (page, to, _) in Self::pieces(blocks) {
            if let Some(page) = self.page_mut(page) {
                page[to].fill(0);
            }
        }
    }

    /// Nothing was touched.
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn bytes(&self) -> usize {
        self.places.bytes() + self.pages.len() * TOGETHER * PAGE as usize * BLOCK
    }
}

/// A host request under way.
struct Pending {
    request: HostRequest,
    /// What it writes, or what its reads have brought.
    data: Vec<u8>,
    /// What a read must bring.
    want: Vec<u8>,
    answered: bool,
}

/// Where discarded blocks read as zeroes.
#[derive(Clone, Copy, Debug)]
pub struct Discards {
    /// On a disk.
    pub of_disk: bool,
    /// On the array.
    pub of_array: bool,
}

/// See the [module](self).
pub struct ArrayVerify {
    disks: Vec<Verify>,
    /// What follows a disk of this number; of a spare one more than all.
    fresh: Box<dyn Fn(usize) -> Verify>,
    discards: Discards,
    members: Vec<Space>,
    expected: Space,
    /// Blocks that may hold anything: discarded where that promises nothing.
    vague: Space,
    staging: Staging,
    pending: BTreeMap<u64, Pending>,
    tickets: BTreeMap<Ticket, u64>,
    writes: u64,
    prefills: u64,
    failed: Option<RunError>,
}

impl ArrayVerify {
    /// For an array whose members with the numbers `ssds` are SSDs, and those before them disks, each followed by what `fresh`
    /// makes.
    pub fn new(ssds: Range<usize>, fresh: Box<dyn Fn(usize) -> Verify>, discards: Discards) -> Self {
        Self {
            disks: (0..ssds.start).map(&fresh).collect(),
            fresh,
            discards,
            members: (0..ssds.end).map(|_| Space::default()).collect(),
            expected: Space::default(),
            vague: Space::default(),
            staging: Staging::of_blocks(BLOCK),
            pending: BTreeMap::new(),
            tickets: BTreeMap::new(),
            writes: 0,
            prefills: 0,
            failed: None,
        }
    }

    /// Bytes that all this takes.
    pub fn bytes(&self) -> usize {
        let spaces = self.members.iter().chain([&self.expected, &self.vague]);
        spaces.map(Space::bytes).sum::<usize>() + self.disks.iter().map(Verify::bytes).sum::<usize>()
    }

    /// A request before the run gets a number of its own.
    pub fn prefill(&mut self, request: &HostRequest) -> HostRequest {
        self.prefills += 1;
        let request = request.numbered(u64::MAX / 2 + self.prefills);
        self.arrived(&request);
        self.pending.get_mut(&request.id).into_iter().for_each(|p| p.answered = true);
        request
    }

    /// The host sends a request: what it reads is what was sent before it.
    pub fn arrived(&mut self, request: &HostRequest) {
        let (blocks, n) = (request.lba.span(request.blocks), request.blocks.0 as usize * BLOCK);
        let (mut data, mut want) = (Vec::new(), Vec::new());
        match request.op {
            HostOp::Write => {
                self.writes += 1;
                let mut state = self.writes << 32;
                data = vec![0; n];
                let (each, _) = data.as_chunks_mut::<BLOCK>();
                each.iter_mut().for_each(|block| *block = splitmix(&mut state).to_le_bytes());
                self.expected.set(&blocks, &data);
                self.vague.clear(&blocks);
            }
            HostOp::Read => {
                data = vec![0; n];
                want = self.expected.get(&blocks);
                // What may be anything is not compared.
                if !self.vague.is_empty() {
                    let vague = self.vague.get(&blocks);
                    want.iter_mut().zip(vague).for_each(|(w, v)| *w |= v);
                }
            }
            HostOp::Discard if self.discards.of_array => self.expected.clear(&blocks),
            HostOp::Discard => self.vague.set(&blocks, &vec![u8::MAX; n]),
            _ => {}
        }
        self.pending.insert(request.id, Pending { request: *request, data, want, answered: false });
    }

    /// A member did a request.
    pub fn issued(&mut self, op: &MemberOp, plan: &MemberPlan, executed: Option<&Executed<'_>>) {
        if self.pending.contains_key(&op.request.id) {
            self.tickets.insert(op.buffers, op.request.id);
        }
        if executed.is_some_and(|e| e.plan.refusal().is_some()) {
            return;
        }
        self.follow(op, plan);
        if let (Some(disk), Some(executed)) = (self.disks.get_mut(op.member.at()), executed) {
            let done = disk.served(&op.request, executed);
            self.blame(op.member, done);
        }
    }

    /// A member behind a scheduler did a request that was issued before.
    pub fn dispatched(&mut self, member: MemberId, request: &HostRequest, executed: &Executed<'_>) {
        if let (Some(disk), None) = (self.disks.get_mut(member.at()), executed.plan.refusal()) {
            let done = disk.served(request, executed);
            self.blame(member, done);
        }
    }

    /// Its buffer took a write.
    pub fn accepted(&mut self, member: MemberId, request: &HostRequest) {
        self.disks.get_mut(member.at()).into_iter().for_each(|disk| disk.accepted(request));
    }

    /// It answered a read from such a write.
    pub fn answered_early(&mut self, member: MemberId, read: &HostRequest, write: &HostRequest) {
        if let Some(disk) = self.disks.get(member.at()) {
            let done = disk.answered(read, write);
            self.blame(member, done);
        }
    }

    /// The same without time, before the run.
    pub fn prefilled(&mut self, op: &MemberOp, plan: &MemberPlan, executed: Option<&Executed<'_>>) {
        if self.pending.contains_key(&op.request.id) {
            self.tickets.insert(op.buffers, op.request.id);
        }
        self.follow(op, plan);
        if let (Some(disk), Some(executed)) = (self.disks.get_mut(op.member.at()), executed) {
            disk.prefilled(&op.request, executed.plan);
        }
    }

    fn blame(&mut self, member: MemberId, done: Result<(), RunError>) {
        if let Err(RunError::Verification(text)) = done {
            let text = format!("disk {}: {text}", member.0);
            self.failed.get_or_insert(RunError::Verification(text));
        }
    }

    fn follow(&mut self, op: &MemberOp, plan: &MemberPlan) {
        let blocks = op.request.lba.span(op.request.blocks);
        let space = &mut self.members[op.member.at()];
        let host = self.pending.get_mut(&op.request.id);
        match op.request.op {
            HostOp::Write => {
                let data = self.staging.gather(plan, op, host.map_or(&[], |p| &p.data));
                space.set(&blocks, &data);
            }
            HostOp::Read => {
                let host = host.map_or(&mut [][..], |p| &mut p.data);
                self.staging.scatter(op.buffers, plan.parts(op), &space.get(&blocks), host);
            }
            HostOp::Discard if self.discards.of_disk => space.clear(&blocks),
            _ => {}
        }
    }

    /// A disk took a background step.
    pub fn background(&mut self, member: MemberId, executed: &Executed<'_>) {
        if let Some(disk) = self.disks.get_mut(member.at()) {
            disk.background(executed);
        }
    }

    /// A fresh drive took the place of a dead one.
    pub fn replaced(&mut self, member: MemberId) {
        let fresh = (self.fresh)(self.disks.len());
        if let Some(disk) = self.disks.get_mut(member.at()) {
            *disk = fresh;
            self.members[member.at()] = Space::default();
        }
    }

    /// A plan was carried out.
    pub fn planned(&mut self, plan: &MemberPlan) {
        for delivery in plan.deliveries() {
            let host = self.tickets.get(&delivery.ticket).and_then(|id| self.pending.get_mut(id));
            match (host, delivery.to) {
                (Some(pending), _) => self.staging.deliver(plan, delivery, &mut pending.data),
                // Nothing was asked of a member: its buffer is zeroes as it is.
                (None, End::Host(_)) => {}
                (None, _) => self.staging.deliver(plan, delivery, &mut []),
            }
        }
        for outcome in plan.outcomes() {
            if let Outcome::Ended(ticket) | Outcome::Refused(ticket, _) = *outcome {
                self.staging.end(ticket);
                let id = self.tickets.remove(&ticket);
                self.forget(id);
            }
        }
    }

    /// A request that was answered and is over.
    fn forget(&mut self, id: Option<u64>) {
        if let Some(id) = id.filter(|id| self.pending.get(id).is_some_and(|p| p.answered)) {
            self.pending.remove(&id);
        }
    }

    /// The host has the answer to a request: whether it is the right one.
    ///
    /// # Errors
    /// [`RunError::Verification`], which names the block, or the disk that did not keep what was written to it.
    pub fn done(&mut self, id: u64, refused: bool) -> Result<(), RunError> {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.answered = true;
            let (r, vague) = (pending.request, [u8::MAX; BLOCK]);
            let pairs = pending.data.chunks(BLOCK).zip(pending.want.chunks(BLOCK));
            let reads = r.op == HostOp::Read && !refused && pending.data != pending.want;
            let wrong = pairs.into_iter().position(|(got, want)| reads && got != want && want != vague);
            if let Some(at) = wrong {
                let never = pending.data[at * BLOCK..][..BLOCK] == [0; BLOCK];
                let what = if never { "it was read as never written" } else { "it is other data" };
                let lba = r.lba.0 + at as u64;
                let text = format!(
                    "verify-media: request {id} read LBA {lba} from the array, and not what was last written there: {what}"
                );
                self.failed.get_or_insert(RunError::Verification(text));
            }
            // A request whose work goes on is kept for it.
            if self.tickets.values().all(|of| *of != id) {
                self.pending.remove(&id);
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }
}
