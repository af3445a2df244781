//! Writes: chunks become stripes behind the append pointers, and hold once these are written.

use super::records::Event;
use super::table::{Cell, Holds, Opened, Stream, Stripe};
use super::work::{Operation, Purpose, WriteOp, WritePhase};
use super::{FullStripe, Stripes, Task};
use crate::layouts::chunks::{Chunk, Lost, missing, pieces};
use crate::layouts::segments::ChunkPlace;
use crate::part::Parts;
use crate::{Array as _, End, MemberId, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, ZoneAction};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a cell of a stripe is written for.
struct Written<'a> {
    stripe: &'a Stripe,
    cell: Cell,
    why: Cause,
}

impl FullStripe {
    /// Begins a write of the host's or a discard, of which parts of chunks are zeroes that are written.
    pub(super) fn start_write(
        &mut self,
        ticket: Ticket,
        purpose: Purpose,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        if self.options.stripes == Stripes::Wait && !self.claim(ticket, &purpose) {
            let mut op = WriteOp::new(purpose, self.disks.changes());
            op.phase = WritePhase::AwaitTurn;
            self.operations.put(ticket, Operation::Write(op));
            self.parked.push_back(ticket);
            return Ok(());
        }
        let (runs, host) = match &purpose {
            Purpose::Host(r) => (vec![r.span()], r.op == HostOp::Write),
            Purpose::Runs(runs) => (runs.clone(), true),
            Purpose::Collect(_) => return Err(Lost),
        };
        if !host {
            runs.iter().for_each(|run| self.unmap(run, plan));
        }
        let mut op = WriteOp::new(purpose, self.disks.changes());
        if let Err(lost) = self.prepare(&mut op, &runs, host) {
            self.over(ticket, &op.reads);
            return Err(lost);
        }
        self.first_phase(ticket, op, Cause::Fill, plan);
        Ok(())
    }

    /// Chunks that a discard takes as a whole hold nothing any more.
    fn unmap(&mut self, run: &Range<u64>, plan: &mut MemberPlan) {
        for (lcn, part, _) in self.chunks(run.clone()) {
            if part == (0..self.shape.chunk) && self.table.place(lcn).is_some() {
                self.table.unmap(lcn);
                plan.record(Event::Unmap(lcn));
            }
        }
    }

    /// What is written to each chunk, with what must be read for it.
    fn prepare(&mut self, op: &mut WriteOp, runs: &[Range<u64>], host: bool) -> Result<(), Lost> {
        let mut base = 0;
        for run in runs {
            for (lcn, new, offset) in self.chunks(run.clone()) {
                let at = base + offset;
                // What the first run of a chunk leaves to be read holds the gaps before the others too.
                if let Some(chunk) = op.left.back_mut().filter(|c| c.lcn == lcn) {
                    chunk.more.push((new, at));
                    continue;
                }
                let place = self.table.place(lcn);
                if !host && place.is_none() {
                    continue;
                }
                let old = match (missing(self.shape.chunk, &new), place) {
                    (Some(range), Some(place)) => Some(self.read_chunk(&mut op.reads, place, &range)?),
                    _ => None,
                };
                self.counts.fills += u64::from(old.is_some());
                op.left.push_back(Chunk { lcn, new, host: host.then_some(at), more: Vec::new(), old });
            }
            base += run.end - run.start;
        }
        Ok(())
    }

    /// Reads what a work has to read, or writes at once.
    pub(super) fn first_phase(&mut self, ticket: Ticket, op: WriteOp, why: Cause, plan: &mut MemberPlan) {
        if op.reads.slots.reads.is_empty() {
            return self.write(ticket, op, plan);
        }
        let like = HostRequest::new(HostOp::Read, Lba(0), Blocks(0)).because(why);
        self.read_slots(ticket, &like, &op.reads, plan);
        self.operations.put(ticket, Operation::Write(op));
    }

    /// Writes as many of the chunks that are left as there is room for; where there is none the work waits for a free group.
    pub(super) fn write(&mut self, ticket: Ticket, mut op: WriteOp, plan: &mut MemberPlan) {
        if op.left.is_empty() {
            self.over(ticket, &op.reads);
            plan.end(ticket);
            return self.go_on(plan);
        }
        let stream = if op.is_collection() { Stream::Cold } else { Stream::Host };
        while !op.left.is_empty() {
            let Some(stripe) = self.stripe(stream, &op, plan) else { break };
            let n = stripe.cells.iter().filter(|c| matches!(c.holds, Holds::Chunk(_))).count();
            op.chunks.extend(op.left.drain(..n));
            op.stripes.push(stripe);
        }
        if op.stripes.is_empty() && self.stuck {
            return self.refuse(ticket, &op, plan);
        }
        if op.stripes.is_empty() {
            op.phase = WritePhase::AwaitRoom;
            // It has what it read: groups that hold nothing else are room, for others that wait too.
            let pins = std::mem::take(&mut op.reads.pins);
            self.operations.put(ticket, Operation::Write(op));
            self.parked.push_back(ticket);
            pins.iter().for_each(|group| self.table.unpin(*group));
            return if pins.is_empty() { self.collect_more(plan) } else { self.go_on(plan) };
        }
        op.phase = WritePhase::WriteStripes;
        self.plan_writes(ticket, &op, plan);
        self.operations.put(ticket, Operation::Write(op));
        self.collect_more(plan);
    }

    /// The next stripe of a work, in a group that is opened for it where there is none.
    fn stripe(&mut self, stream: Stream, op: &WriteOp, plan: &mut MemberPlan) -> Option<Stripe> {
        let most = self.shape.disks as usize - 1;
        let lcns: Vec<u64> = op.left.iter().take(most).map(|c| c.lcn).collect();
        let full = self.options.stripes != Stripes::Variable;
        if let Some(stripe) = self.table.append(stream, &lcns, full) {
            return Some(stripe);
        }
        if let Some(opened) = self.table.open(stream) {
            self.opened(opened, plan);
            return self.table.append(stream, &lcns, full);
        }
        self.table.append_anywhere(stream, &lcns, full)
    }

    /// A group is about to be filled: what it held is needed no more, and a disk that is rebuilt gets all of it from here on.
    fn opened(&mut self, opened: Opened, plan: &mut MemberPlan) {
        let Opened { group, was_used, needed } = opened;
        if needed {
            plan.fence();
            self.table.durable();
        }
        plan.record(Event::Opened(group));
        if self.disks.rebuild().is_some() {
            self.shape.units_of(group).for_each(|unit| self.disks.filled(unit, plan));
        }
        if was_used && self.zones.is_empty() {
            self.resets.push(group);
        }
    }

    /// Plans the writes of a work's stripes: consecutive chunks of a disk with the same cause are one request.
    fn plan_writes(&mut self, ticket: Ticket, op: &WriteOp, plan: &mut MemberPlan) {
        let (shape, before) = (self.shape, plan.ops().len());
        for group in std::mem::take(&mut self.resets) {
            let (at, blocks) = (Lba(shape.start(group)), Blocks(shape.length * shape.chunk));
            let reset = HostRequest::new(HostOp::Discard, at, blocks).because(Cause::Clean);
            self.disks.answering().for_each(|disk| plan.ask(ticket, disk, reset, |_| {}));
        }
        let of: BTreeMap<u64, &Chunk> = op.chunks.iter().map(|c| (c.lcn, c)).collect();
        let (like, own) = match &op.purpose {
            Purpose::Host(r) => (*r, Cause::Host),
            Purpose::Collect(_) => (HostRequest::new(HostOp::Write, Lba(0), Blocks(0)), Cause::Clean),
            Purpose::Runs(_) => (HostRequest::new(HostOp::Write, Lba(0), Blocks(0)), Cause::Host),
        };
        for disk in 0..shape.disks {
            let cells = op.stripes.iter().filter_map(|stripe| {
                let cell = stripe.cells[disk as usize];
                let why = match cell.holds {
                    Holds::Nothing => return None,
                    Holds::Parity => Cause::Parity,
                    Holds::Pad => Cause::Fill,
                    Holds::Chunk(_) | Holds::Dead => own,
                };
                let there = self.segments(stripe.group).has(ChunkPlace { disk, at: u64::from(cell.at) });
                there.then_some(Written { stripe, cell, why })
            });
            let cells: Vec<Written<'_>> = cells.collect();
            let follows = |a: &Written<'_>, b: &Written<'_>| {
                (a.stripe.group, a.why, a.cell.at + 1) == (b.stripe.group, b.why, b.cell.at)
            };
            for run in cells.chunk_by(follows) {
                let (group, at) = (run[0].stripe.group, u64::from(run[0].cell.at) * shape.chunk);
                let blocks = Blocks(run.len() as u64 * shape.chunk);
                self.advance(ticket, disk, group, at..at + blocks.0, plan);
                let lba = Lba(shape.start(group) + at);
                let write = HostRequest { op: HostOp::Write, lba, blocks, why: run[0].why, ..like };
                plan.ask(ticket, MemberId(disk as u32), write, |out| {
                    run.iter().for_each(|written| parts(shape.chunk, written, &of, out));
                });
            }
        }
        if plan.ops().len() == before {
            // All disks of its stripes are dead: what is left to do is as good as done.
            self.disks
                .answering()
                .take(1)
                .for_each(|disk| plan.ask(ticket, disk, HostRequest::flush(), |_| {}));
        }
    }

    /// A zone is written on; where it holds what was freed it is reset before.
    pub(super) fn advance(
        &mut self,
        ticket: Ticket,
        disk: u64,
        group: u64,
        blocks: Range<u64>,
        plan: &mut MemberPlan,
    ) {
        let Some(zone) = self.zones.get_mut(disk as usize).and_then(|zones| zones.get_mut(group as usize))
        else {
            return;
        };
        if blocks.start == 0 && zone.written > 0 && !zone.anywhere {
            let (at, size) = (Lba(self.shape.start(group)), Blocks(self.shape.spacing));
            let reset = HostRequest::new(HostOp::Zone(ZoneAction::Reset), at, size);
            plan.ask(ticket, MemberId(disk as u32), reset.because(Cause::Metadata), |_| {});
            self.counts.resets += 1;
        }
        zone.written = blocks.end;
    }

    /// A phase of a write is over: plans the next one. `untaken`: why a member did not take something.
    pub(super) fn go_on_with_write(
        &mut self,
        ticket: Ticket,
        op: WriteOp,
        untaken: Option<Refusal>,
        plan: &mut MemberPlan,
    ) {
        match op.phase {
            WritePhase::ReadOld => self.write(ticket, op, plan),
            WritePhase::WriteStripes
                if untaken.is_some_and(|why| why != Refusal::Lost)
                    || (op.changes != self.disks.changes() && self.disks.too_many()) =>
            {
                self.turned_down(ticket, &op, plan);
            }
            WritePhase::WriteStripes => self.written(ticket, op, plan),
            WritePhase::AwaitTurn | WritePhase::AwaitRoom => {
                self.operations.put(ticket, Operation::Write(op));
            }
        }
    }

    /// The same work once more, of which nothing was written yet.
    pub(super) fn begin_again(&mut self, ticket: Ticket, purpose: &Purpose, plan: &mut MemberPlan) {
        match purpose {
            Purpose::Host(r) => self.start_host(ticket, r, plan),
            Purpose::Runs(runs) => self.start_runs(ticket, runs, plan),
            Purpose::Collect(_) => self.collected(ticket, plan),
        }
    }

    /// The writes are done: the new stripes hold.
    fn written(&mut self, ticket: Ticket, mut op: WriteOp, plan: &mut MemberPlan) {
        for stripe in std::mem::take(&mut op.stripes) {
            let wide = stripe.cells.iter().filter(|c| matches!(c.holds, Holds::Chunk(_))).count() as u64;
            *(if wide + 1 == self.shape.disks { &mut self.counts.full } else { &mut self.counts.partial }) +=
                1;
            self.counts.padded += stripe.cells.iter().filter(|c| c.holds == Holds::Pad).count() as u64;
            let moved = match &op.purpose {
                Purpose::Collect(from) => Some(from),
                _ => None,
            };
            let stripe = self.table.written(stripe, |table, lcn| {
                moved.is_none_or(|from| table.place(lcn) == from.get(&lcn).copied())
            });
            plan.record(Event::Stripe(stripe.group, stripe.cells));
        }
        if op.is_collection() {
            self.counts.moved += op.chunks.len() as u64;
        }
        op.chunks.clear();
        if op.left.is_empty() && op.is_collection() {
            self.over(ticket, &op.reads);
            return self.collected(ticket, plan);
        }
        self.write(ticket, op, plan);
    }

    /// Works that waited go on: those for whose stripes there is room again, and rebuilds of groups that nothing is on its way to.
    pub(super) fn go_on(&mut self, plan: &mut MemberPlan) {
        for ticket in std::mem::take(&mut self.parked) {
            match self.operations.take(ticket) {
                Some(Operation::Rebuild(op)) => self.rebuild(ticket, op.unit, plan),
                Some(Operation::Write(op)) if op.phase == WritePhase::AwaitTurn => {
                    self.begin_again(ticket, &op.purpose, plan);
                }
                Some(Operation::Write(op)) if self.stuck => self.refuse(ticket, &op, plan),
                Some(Operation::Write(op)) => self.write(ticket, op, plan),
                Some(Operation::Read(_)) | None => {}
            }
        }
    }

    /// The members did not take all of a work's stripes, and what is missing cannot be made again: they hold nothing.
    fn turned_down(&mut self, ticket: Ticket, op: &WriteOp, plan: &mut MemberPlan) {
        op.stripes.iter().for_each(|stripe| self.table.given_up(stripe.group));
        if !op.is_collection() {
            return self.refuse(ticket, op, plan);
        }
        // The next write that finds no room lets it be tried again; those that wait for what would have been free are refused.
        (self.victim, self.collecting) = (None, false);
        self.over(ticket, &op.reads);
        plan.end(ticket);
        for ticket in std::mem::take(&mut self.parked) {
            match self.operations.take(ticket) {
                Some(Operation::Write(op)) if op.phase == WritePhase::AwaitRoom => {
                    self.refuse(ticket, &op, plan);
                }
                Some(other) => {
                    self.operations.put(ticket, other);
                    self.parked.push_back(ticket);
                }
                None => {}
            }
        }
    }

    /// A work cannot be done.
    pub(super) fn refuse(&mut self, ticket: Ticket, op: &WriteOp, plan: &mut MemberPlan) {
        self.over(ticket, &op.reads);
        plan.refuse(ticket, Refusal::Lost);
    }

    /// Begins to empty groups where few are free.
    pub(super) fn collect_more(&mut self, plan: &mut MemberPlan) {
        if !self.collecting && !self.stuck && self.table.is_short() && self.table.victim().is_some() {
            self.collecting = true;
            plan.job(Task::Collect(0));
        }
    }
}

/// The parts of one cell, each with the same terms throughout.
fn parts(chunk: u64, written: &Written<'_>, of: &BTreeMap<u64, &Chunk>, out: &mut Parts<'_>) {
    let chunks: Vec<&Chunk> = match written.cell.holds {
        Holds::Chunk(lcn) => of.get(&lcn).copied().into_iter().collect(),
        Holds::Parity => {
            let cells = written.stripe.cells.iter();
            cells
                .filter_map(|c| if let Holds::Chunk(lcn) = c.holds { of.get(&lcn).copied() } else { None })
                .collect()
        }
        Holds::Pad | Holds::Dead | Holds::Nothing => return out.push(Blocks(chunk), End::Zero),
    };
    pieces(chunk, &chunks, out);
}
