//! Writes: what is read before, and what is written then.

use super::method::{self, Method, RowWrite, SegmentPlan};
use super::operation::{Operation, WriteOp, WritePhase, slot_term};
use super::{Parity, TooManyDead};
use crate::{End, MemberId, MemberPlan, Term, Ticket};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

impl Parity {
    /// Decides how the parities of each row follow, and plans the reads for that.
    pub(super) fn start_write(
        &mut self,
        ticket: Ticket,
        request: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<(), TooManyDead> {
        let mut op = self.new_write(ticket, *request);
        for row in op.rows.clone() {
            self.plan_row(row, &mut op)?;
        }
        if op.plan.reads.is_empty() {
            self.begin_writing(op, plan);
            return Ok(());
        }
        self.read_old(&op, plan);
        self.wait(op);
        Ok(())
    }

    /// Decides how the parities of a row follow, which is the next one of a write.
    pub(super) fn plan_row(&mut self, row: u64, op: &mut WriteOp) -> Result<(), TooManyDead> {
        let (part, lost) = (self.rows.within(row, &op.span()), self.lost(row)?);
        let reads = op.plan.reads.len();
        let write = RowWrite { row, part, lost };
        method::plan(&self.rows, &write, self.options.preference, &mut op.plan);
        self.log_row(row, op);
        self.counts.degraded += u64::from(lost.count() > 0);
        match op.plan.segments.last().and_then(|p| p.method) {
            _ if op.plan.reads.len() == reads => self.counts.full += 1,
            Some(Method::Modify) => self.counts.modified += 1,
            _ => self.counts.reconstructed += 1,
        }
        Ok(())
    }

    /// Reads what its parities need, each into the slot of its place in the list.
    pub(super) fn read_old(&self, op: &WriteOp, plan: &mut MemberPlan) {
        for (slot, old) in op.plan.reads.iter().enumerate() {
            let (member, place) =
                (self.rows.member(old.row, old.role), self.rows.on_member(old.row, &old.blocks));
            plan.read_slot(op.ticket, member, Cause::Parity, place, slot as u32);
        }
    }

    /// A phase of a write is over: plans the next one.
    pub(super) fn go_on_with_write(&mut self, op: Box<WriteOp>, plan: &mut MemberPlan) {
        // Not more than three ways: a jump by a table costs each write more than two comparisons.
        match op.phase {
            WritePhase::ReadOld => self.begin_writing(op, plan),
            WritePhase::WriteRows => self.rows_written(op, plan),
            WritePhase::AwaitPlaces | WritePhase::WriteJournal => self.go_on_with_journal(op, plan),
        }
    }

    #[cold]
    fn go_on_with_journal(&mut self, op: Box<WriteOp>, plan: &mut MemberPlan) {
        if op.phase == WritePhase::AwaitPlaces {
            return self.wait(op);
        }
        self.journal_holds(&op, plan);
        let rows = op.journalled.clone();
        self.write_rows(op, rows, plan);
    }

    /// All that a write needs is read: its rows are written, or go to the journal first.
    fn begin_writing(&mut self, op: Box<WriteOp>, plan: &mut MemberPlan) {
        let rows = op.rows.clone();
        self.dirty(&op.request, plan);
        match self.options.journal {
            true => self.enter_journal(op, rows.start, plan),
            false => self.write_rows(op, rows, plan),
        }
    }

    /// Rows are written: the next ones go to the journal, or the write is over. It is refused where too many disks died meanwhile.
    fn rows_written(&mut self, mut op: Box<WriteOp>, plan: &mut MemberPlan) {
        if self.options.journal {
            self.free_places(&mut op.places, plan);
            let next = op.journalled.end;
            if next < op.rows.end {
                return self.enter_journal(op, next, plan);
            }
        }
        self.log_written(&op, plan);
        if op.changes != self.disks.changes() && op.rows.clone().any(|row| self.lost(row).is_err()) {
            plan.refuse(op.ticket, Refusal::Lost);
        } else {
            self.clean(&op.request, plan);
            plan.end(op.ticket);
        }
        self.pool.push(op);
    }

    /// Writes these rows to the disks; where all that have something of them are dead, that is done already.
    fn write_rows(&mut self, mut op: Box<WriteOp>, rows: Range<u64>, plan: &mut MemberPlan) {
        op.phase = WritePhase::WriteRows;
        let before = plan.ops().len();
        for row in rows {
            self.write_chunks(row, &op, plan);
            self.write_parities(row, &op, plan);
        }
        match plan.ops().len() > before {
            true => self.wait(op),
            false => self.rows_written(op, plan),
        }
    }

    /// Writes the host's data in a row.
    pub(super) fn write_chunks(&self, row: u64, op: &WriteOp, plan: &mut MemberPlan) {
        let (rows, span) = (self.rows, op.span());
        let part = rows.within(row, &span);
        for chunk in rows.chunks(&part).filter(|chunk| self.has(rows.disk(row, *chunk), row)) {
            let blocks = rows.of_chunk(chunk, &part);
            let host = Blocks(rows.of_host(row, chunk, blocks.start) - span.start);
            let (lba, n) = rows.on_member(row, &blocks);
            let own = HostRequest { lba, blocks: n, ..op.request };
            plan.ask(op.ticket, rows.member(row, chunk), own, |p| p.push(n, End::Host(host)));
        }
    }

    /// Writes the parities of a row, or what they lack from now on to the log.
    pub(super) fn write_parities(&self, row: u64, op: &WriteOp, plan: &mut MemberPlan) {
        let segments = op.segments_of(row);
        let Some(SegmentPlan { lost, .. }) = segments.first() else { return };
        let log = op.logged.iter().find(|l| l.row == row);
        for parity in self.rows.code().parities_without(*lost) {
            if !self.has(self.rows.disk(row, parity), row) {
                continue;
            }
            match log {
                Some(log) => self.write_image(*log, op, plan),
                None => self.write_parity(parity, segments, op, plan),
            }
        }
    }

    /// Writes a parity of a row, adjacent segments as one.
    fn write_parity(&self, parity: u64, segments: &[SegmentPlan], op: &WriteOp, plan: &mut MemberPlan) {
        for run in segments.chunk_by(|a, b| a.segment.hi == b.segment.lo) {
            let blocks = run[0].segment.lo..run[run.len() - 1].segment.hi;
            let (lba, n) = self.rows.on_member(run[0].row, &blocks);
            let own = HostRequest { lba, blocks: n, why: Cause::Parity, ..op.request };
            plan.ask(op.ticket, self.rows.member(run[0].row, parity), own, |out| {
                for segment in run {
                    let end = out.sum(&self.parity_terms(parity, segment, op));
                    out.push(segment.segment.blocks(), end);
                }
            });
        }
    }

    /// What a parity of a segment is the sum of; where the old one was not read, what is to be added to it.
    pub(super) fn parity_terms(&self, parity: u64, of: &SegmentPlan, op: &WriteOp) -> Vec<Term> {
        let (rows, code, row, lost) = (self.rows, self.rows.code(), of.row, of.lost);
        let (written, lo) = (of.segment.chunks.clone(), of.segment.lo);
        let old = |role: u64| slot_term(&op.plan.reads, row, role, lo);
        let mut terms = Vec::new();
        for chunk in 0..rows.data() {
            let times = code.times(parity, chunk);
            let is_written = written.contains(&chunk);
            if is_written {
                terms.push(Term::host(rows.of_host(row, chunk, lo) - op.request.lba.0).times(times));
            }
            match of.method {
                Some(Method::Modify) if is_written => terms.extend(old(chunk).map(|t| t.times(times))),
                Some(Method::Reconstruct | Method::Decode) if !is_written && !lost.contains(chunk) => {
                    terms.extend(old(chunk).map(|t| t.times(times)));
                }
                Some(Method::Decode) if !is_written => {
                    let shares = code.made_of(chunk, lost).into_iter();
                    terms.extend(shares.filter_map(|s| Some(old(s.role)?.times(times * s.times))));
                }
                _ => {}
            }
        }
        if of.method == Some(Method::Modify) {
            terms.extend(old(parity));
        }
        terms
    }

    /// The rows that a range of the host's blocks covers as a whole.
    pub(super) fn whole_rows(&self, r: &HostRequest) -> Range<u64> {
        let (row, span) = (self.rows.host_blocks(), r.span());
        span.start.div_ceil(row)..span.end / row
    }

    /// Rows of which data and parity are being changed by a request, where that is to be remembered.
    pub(super) fn changing(&self, r: &HostRequest) -> Option<Range<u64>> {
        match r.op {
            HostOp::Write if self.options.intent => Some(self.rows.rows_of(r.span())),
            HostOp::Discard if self.options.intent || self.options.journal => Some(self.whole_rows(r)),
            _ => None,
        }
    }

    /// The parity of these rows may not fit from here on.
    fn dirty(&self, r: &HostRequest, plan: &mut MemberPlan) {
        self.changing(r).into_iter().for_each(|rows| self.intent.dirty(rows, plan));
    }

    /// It fits again.
    pub(super) fn clean(&mut self, r: &HostRequest, plan: &mut MemberPlan) {
        self.changing(r).into_iter().for_each(|rows| self.intent.clean(rows, plan));
    }

    /// Discards reach the disks where they take whole rows: then data and parity stay in step whatever a disk makes of it.
    pub(super) fn start_discard(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let whole = self.whole_rows(r);
        // What disks make of parity and of blocks that their logs are about is anybody's guess.
        if self.options.mixed || whole.is_empty() || self.disks.degraded() || self.logs.has(whole.clone()) {
            return plan.end(ticket);
        }
        self.dirty(r, plan);
        let (lba, blocks) =
            (Lba(whole.start * self.rows.chunk), Blocks((whole.end - whole.start) * self.rows.chunk));
        for disk in 0..self.rows.disks {
            plan.ask(ticket, MemberId(disk as u32), HostRequest { lba, blocks, ..*r }, |_| {});
        }
        self.operations.put(ticket, Operation::Simple(*r));
    }
}
