//! Writes and discards of the host's.

use super::records::{Change, Chunk};
use super::table::outward;
use super::{DRIVE, DmZoned, Doing, Piece, Wait, Writing};
use crate::{End, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, ZoneAction};
use std::ops::Range;

impl DmZoned {
    /// What a write's first and last unit have beside it: chunk and blocks.
    fn beside(&self, r: &HostRequest) -> [Piece; 2] {
        let (size, span) = (self.table.shape.size, r.span());
        let whole = outward(&span);
        [whole.start..span.start, span.end..whole.end].map(|blocks| {
            let chunk = blocks.start.min(span.end - 1) / size;
            Piece { chunk, blocks: blocks.start - chunk * size..blocks.end - chunk * size, host: 0 }
        })
    }

    /// Plans the reads that complete a write's first and last unit, where something is valid beside it.
    pub(super) fn fill(&mut self, ticket: Ticket, request: HostRequest, plan: &mut MemberPlan) {
        let mut writing = Writing::new(request, self.pieces(&request).collect());
        for (slot, beside) in self.beside(&request).into_iter().enumerate() {
            let run = self.table.runs(beside.chunk, beside.blocks.clone()).into_iter().next();
            if let Some((zone, _)) = run.filter(|_| !beside.blocks.is_empty()) {
                let place = (
                    self.table.shape.at(zone, beside.blocks.start),
                    Blocks(beside.blocks.end - beside.blocks.start),
                );
                plan.read_slot(ticket, DRIVE, Cause::Fill, place, slot as u32);
                writing.filled[slot] = true;
            }
        }
        match writing.filled {
            [false, false] => self.write(ticket, writing, plan),
            _ => self.works.put(ticket, Doing::Filling(writing)),
        }
    }

    /// A free random zone, or a free sequential one.
    pub(super) fn allocate(&mut self, sequential: bool, plan: &mut MemberPlan) -> Option<u32> {
        let reserved = self.table.shape.reserved as usize;
        let zone = match sequential {
            true if self.table.free_sequential.len() <= reserved => None,
            true => self.table.take_sequential(),
            false => {
                self.few |= self.few_are_free();
                self.table.take_random()
            }
        }?;
        if self.table.take_needed(zone) {
            plan.fence();
        }
        Some(zone)
    }

    /// The zone to which whole units of a chunk are written now; `None`: there is none before some is free.
    fn place(&mut self, chunk: u64, blocks: &Range<u64>, plan: &mut MemberPlan) -> Option<u32> {
        let of = self.table.chunk(chunk);
        let to = match of.data {
            Some(data)
                if !self.table.shape.is_sequential(data) || self.table.pointer(data) == blocks.start =>
            {
                return Some(data);
            }
            Some(_) if of.buffer.is_some() => return of.buffer,
            Some(_) => Chunk { buffer: Some(self.allocate(false, plan)?), ..of },
            None => {
                let first = blocks.start == 0 && self.options.sequential_first;
                let sequential = if first { self.allocate(true, plan) } else { None };
                Chunk { data: Some(sequential.or_else(|| self.allocate(false, plan))?), buffer: None }
            }
        };
        self.change(&Change::Mapped { chunk, to }, plan);
        to.buffer.or(to.data)
    }

    /// Plans the writes of all pieces that can be written.
    pub(super) fn write(&mut self, ticket: Ticket, mut writing: Writing, plan: &mut MemberPlan) {
        if self.committing {
            return self.park(ticket, writing, Wait::Commit);
        }
        let mut wait = None;
        for piece in std::mem::take(&mut writing.left) {
            if self.awaits_reclaim(piece.chunk) {
                wait = Some(Wait::Reclaim);
            } else if let Some(zone) = self.place(piece.chunk, &outward(&piece.blocks), plan) {
                self.writing.insert(piece.chunk);
                self.write_piece(ticket, &writing, (&piece, zone), plan);
                writing.doing.push((piece, zone));
                continue;
            } else {
                wait = Some(Wait::Zone);
            }
            writing.left.push_back(piece);
        }
        match wait.filter(|_| writing.doing.is_empty()) {
            Some(why) => self.park(ticket, writing, why),
            None => self.works.put(ticket, Doing::Writing(writing)),
        }
    }

    fn write_piece(
        &mut self,
        ticket: Ticket,
        writing: &Writing,
        (piece, zone): (&Piece, u32),
        plan: &mut MemberPlan,
    ) {
        let (whole, request) = (outward(&piece.blocks), writing.request);
        let sequential = self.table.shape.is_sequential(zone);
        if sequential {
            self.reset(ticket, zone, whole.start, plan);
            self.table.point(zone, whole.end);
        }
        *(if sequential { &mut self.counters.at_pointer } else { &mut self.counters.random }) +=
            piece.blocks.end - piece.blocks.start;
        let blocks = Blocks(whole.end - whole.start);
        let part = HostRequest { lba: self.table.shape.at(zone, whole.start), blocks, ..request };
        let beside = |slot: usize| match writing.filled[slot] {
            true => End::Slot(slot as u32, Blocks::ZERO),
            false => End::Zero,
        };
        plan.ask(ticket, DRIVE, part, |out| {
            let mut push = |blocks: Range<u64>, end| {
                if !blocks.is_empty() {
                    out.push(Blocks(blocks.end - blocks.start), end);
                }
            };
            push(whole.start..piece.blocks.start, beside(0));
            push(piece.blocks.clone(), End::Host(Blocks(piece.host)));
            push(piece.blocks.end..whole.end, beside(1));
        });
    }

    /// A zone that is written from `from` on, and holds more than that, was free: what it holds is nothing any more.
    pub(super) fn reset(&mut self, ticket: Ticket, zone: u32, from: u64, plan: &mut MemberPlan) {
        if self.table.pointer(zone) != from {
            debug_assert_eq!(from, 0, "a write of zone {zone} that is not at its pointer");
            let (lba, blocks) = (self.table.shape.at(zone, 0), Blocks(self.table.shape.size));
            let reset = HostRequest::new(HostOp::Zone(ZoneAction::Reset), lba, blocks);
            plan.ask(ticket, DRIVE, reset.because(Cause::Metadata), |_| {});
            self.table.point(zone, 0);
            self.counters.resets += 1;
        }
    }

    /// The writes of a phase are done.
    pub(super) fn written(&mut self, ticket: Ticket, mut writing: Writing, plan: &mut MemberPlan) {
        for (Piece { chunk, blocks, .. }, zone) in std::mem::take(&mut writing.doing) {
            self.writing.remove(&chunk);
            self.stuck = false;
            self.change_and_settle(&Change::Wrote { chunk, zone, blocks }, chunk, plan);
        }
        match writing.left.is_empty() {
            true => plan.end(ticket),
            false => self.write(ticket, writing, plan),
        }
    }

    /// Discards what is not in a chunk that is being reclaimed; that waits.
    pub(super) fn discard(&mut self, ticket: Ticket, mut writing: Writing, plan: &mut MemberPlan) {
        if self.committing {
            return self.park(ticket, writing, Wait::Commit);
        }
        for piece in std::mem::take(&mut writing.left) {
            let Piece { chunk, blocks, .. } = piece.clone();
            if self.awaits_reclaim(chunk) {
                writing.left.push_back(piece);
            } else if self.table.chunk(chunk) != Chunk::default() {
                self.change_and_settle(&Change::Discarded { chunk, blocks }, chunk, plan);
            }
        }
        if writing.left.is_empty() {
            self.works.remove(ticket);
            return plan.end(ticket);
        }
        self.park(ticket, writing, Wait::Reclaim);
    }
}
