//! Reads, also of what dead disks held.

use super::method::RowRead;
use super::operation::{LostPiece, Operation, ReadOp, slot_term};
use super::{Parity, TooManyDead};
use crate::{End, MemberPlan, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::Blocks;
use std::ops::Range;

impl Parity {
    /// Reads what the host wants, and for chunks that are lost what they are made from.
    pub(super) fn start_read(
        &mut self,
        ticket: Ticket,
        request: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<(), TooManyDead> {
        let (rows, span, changes) = (self.rows, request.span(), self.disks.changes());
        let mut op = ReadOp { request: *request, changes, extra: Vec::new(), lost: Vec::new() };
        for row in rows.rows_of(span.clone()) {
            let part = rows.within(row, &span);
            let lost = self.lost(row)?;
            for chunk in rows.chunks(&part) {
                let blocks = rows.of_chunk(chunk, &part);
                if lost.contains(chunk) {
                    self.counts.degraded += 1;
                    self.read_survivors(
                        ticket,
                        &LostPiece { row, chunk, blocks, lost },
                        &part,
                        &mut op,
                        plan,
                    );
                    continue;
                }
                let host = Blocks(rows.of_host(row, chunk, blocks.start) - span.start);
                let (lba, n) = rows.on_member(row, &blocks);
                let own = HostRequest { lba, blocks: n, ..*request };
                plan.ask(ticket, rows.member(row, chunk), own, |p| p.push(n, End::Host(host)));
            }
        }
        self.operations.put(ticket, Operation::Read(op));
        Ok(())
    }

    /// Reads what a lost chunk is made from, but for what the host reads of its row anyhow (`part`).
    fn read_survivors(
        &self,
        ticket: Ticket,
        wanted: &LostPiece,
        part: &Range<u64>,
        op: &mut ReadOp,
        plan: &mut MemberPlan,
    ) {
        let (rows, row, blocks) = (self.rows, wanted.row, &wanted.blocks);
        let within = |of: &Range<u64>| of.start <= blocks.start && of.end >= blocks.end;
        for share in rows.code().made_of(wanted.chunk, wanted.lost) {
            let role = share.role;
            let by_host = role < rows.data() && within(&rows.of_chunk(role, part));
            if by_host || op.extra.iter().any(|o| o.row == row && o.role == role && within(&o.blocks)) {
                continue;
            }
            let (slot, place) = (op.extra.len() as u32, rows.on_member(row, blocks));
            plan.read_slot(ticket, rows.member(row, role), Cause::Parity, place, slot);
            op.extra.push(RowRead { row, role, blocks: blocks.clone() });
        }
        self.read_images(ticket, wanted, &mut op.extra, plan);
        for blocks in Self::cut_at_images(&op.extra, row, blocks) {
            op.lost.push(LostPiece { blocks, ..wanted.clone() });
        }
    }

    /// All is read: makes what dead disks held.
    pub(super) fn deliver_lost(&self, ticket: Ticket, op: &ReadOp, plan: &mut MemberPlan) {
        let rows = self.rows;
        for LostPiece { row, chunk, blocks, lost } in &op.lost {
            let (row, first) = (*row, blocks.start);
            let host = |chunk: u64| rows.of_host(row, chunk, first) - op.request.lba.0;
            let from =
                |role: u64| slot_term(&op.extra, row, role, first).unwrap_or_else(|| Term::host(host(role)));
            let shares = rows.code().made_of(*chunk, *lost).into_iter();
            let terms: Vec<Term> = shares
                .map(|share| from(share.role).times(share.times))
                .chain(Self::image_terms(&op.extra, 0, row, first))
                .collect();
            plan.deliver(ticket, Blocks(host(*chunk)), Blocks(blocks.end - first), &terms);
        }
    }
}
