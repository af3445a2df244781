//! Writes: what is read before, and what is written then.

use super::method::{self, Method, Planned, Written};
use super::state::{Doing, State, Writing};
use super::{Parity, TooManyDead};
use crate::{End, MemberId, MemberPlan, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

impl Parity {
    /// Plans a write, and its reads where it needs some; answers whether it goes on.
    pub(super) fn start_write(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        state: &mut State,
        plan: &mut MemberPlan,
    ) -> Result<bool, TooManyDead> {
        let span = r.lba.span(r.blocks);
        for row in self.rows.rows_of(span.clone()) {
            let (part, lost) = (self.rows.within(row, &span), self.lost(row)?);
            let olds = state.needs.olds.len();
            let write = Written { row, part, lost };
            method::plan(&self.rows, &write, self.options.preference, &mut state.needs);
            self.log_row(row, state);
            self.counts.degraded += u64::from(lost.count() > 0);
            match state.needs.planned.last().and_then(|p| p.method) {
                _ if state.needs.olds.len() == olds => self.counts.full += 1,
                Some(Method::Modify) => self.counts.modified += 1,
                _ => self.counts.reconstructed += 1,
            }
        }
        if state.needs.olds.is_empty() {
            return Ok(self.begin_writes(ticket, r, state, plan));
        }
        for (slot, old) in state.needs.olds.iter().enumerate() {
            let (member, place) =
                (self.rows.member(old.row, old.role), self.rows.on_member(old.row, &old.blocks));
            plan.read_slot(ticket, member, Cause::Parity, place, slot as u32);
        }
        Ok(true)
    }

    /// A phase of a write is over; answers whether it goes on.
    pub(super) fn write_on(
        &mut self,
        ticket: Ticket,
        (r, at): (&HostRequest, Writing),
        state: &mut State,
        plan: &mut MemberPlan,
    ) -> bool {
        match at {
            Writing::Olds => self.begin_writes(ticket, r, state, plan),
            Writing::Room => true,
            Writing::Journal => {
                self.kept(r, state, plan);
                self.write(ticket, r, state.batch.clone(), state, plan)
            }
            Writing::Disks => self.written(ticket, r, state, plan),
        }
    }

    /// What a write needed is read: its rows are written, or go to the journal first.
    fn begin_writes(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        state: &mut State,
        plan: &mut MemberPlan,
    ) -> bool {
        let rows = self.rows.rows_of(r.lba.span(r.blocks));
        self.dirty(r, plan);
        if self.options.journal {
            self.journal(ticket, rows.start, state, plan);
            return true;
        }
        self.write(ticket, r, rows, state, plan)
    }

    /// Rows are written: the next ones follow where they go through the journal, or all is done.
    fn written(&mut self, ticket: Ticket, r: &HostRequest, state: &mut State, plan: &mut MemberPlan) -> bool {
        self.give(&mut state.places, plan);
        if self.options.journal && state.batch.end < self.rows.rows_of(r.lba.span(r.blocks)).end {
            self.journal(ticket, state.batch.end, state, plan);
            return true;
        }
        self.logged(state, plan);
        self.clean(r, plan);
        false
    }

    /// Writes these rows; where all the disks that have something of them are dead, that is done already.
    fn write(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        of: Range<u64>,
        state: &mut State,
        plan: &mut MemberPlan,
    ) -> bool {
        let (rows, span) = (self.rows, r.lba.span(r.blocks));
        state.doing = Doing::Write(*r, Writing::Disks);
        let base = plan.ops().len();
        for row in of {
            let part = rows.within(row, &span);
            for chunk in rows.chunks(&part) {
                let blocks = rows.of_chunk(chunk, &part);
                let host = Blocks(rows.of_host(row, chunk, blocks.start) - span.start);
                let (lba, n) = rows.on_member(row, &blocks);
                if self.has(rows.disk(row, chunk), row) {
                    let own = HostRequest { lba, blocks: n, ..*r };
                    plan.ask(ticket, rows.member(row, chunk), own, |p| p.push(n, End::Host(host)));
                }
            }
            let planned = state.parity_of(row);
            let lost = planned.first().map_or_else(Default::default, |p| p.lost);
            for parity in rows.code().parities_without(lost) {
                if planned.is_empty() || !self.has(rows.disk(row, parity), row) {
                    continue;
                }
                match state.logged.iter().find(|l| l.row == row) {
                    Some(log) => self.write_image(ticket, r, *log, state, plan),
                    None => self.write_parity(ticket, r, parity, planned, state, plan),
                }
            }
        }
        plan.ops().len() > base || self.written(ticket, r, state, plan)
    }

    /// Writes a parity of a row, adjacent segments as one.
    fn write_parity(
        &self,
        ticket: Ticket,
        r: &HostRequest,
        parity: u64,
        planned: &[Planned],
        state: &State,
        plan: &mut MemberPlan,
    ) {
        for run in planned.chunk_by(|a, b| a.segment.hi == b.segment.lo) {
            let blocks = run[0].segment.lo..run[run.len() - 1].segment.hi;
            let (lba, n) = self.rows.on_member(run[0].row, &blocks);
            let own = HostRequest { lba, blocks: n, why: Cause::Parity, ..*r };
            plan.ask(ticket, self.rows.member(run[0].row, parity), own, |out| {
                for planned in run {
                    let end = out.sum(&self.parity_terms(r, parity, planned, state));
                    out.push(planned.segment.blocks(), end);
                }
            });
        }
    }

    /// What a parity of a segment is the sum of; where the old one was not read, what is to be added to it.
    pub(super) fn parity_terms(
        &self,
        r: &HostRequest,
        parity: u64,
        planned: &Planned,
        state: &State,
    ) -> Vec<Term> {
        let (rows, code, row, lost) = (self.rows, self.rows.code(), planned.row, planned.lost);
        let (written, lo) = (planned.segment.chunks.clone(), planned.segment.lo);
        let old = |role: u64| state.slot(row, role, lo);
        let mut terms = Vec::new();
        for chunk in 0..rows.data() {
            let times = code.times(parity, chunk);
            let is_written = written.contains(&chunk);
            if is_written {
                terms.push(Term::host(rows.of_host(row, chunk, lo) - r.lba.0).times(times));
            }
            match planned.method {
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
        if planned.method == Some(Method::Modify) {
            terms.extend(old(parity));
        }
        terms
    }

    /// The rows that a range of the host's blocks covers as a whole.
    fn whole_rows(&self, r: &HostRequest) -> Range<u64> {
        let (row, span) = (self.rows.host_blocks(), r.lba.span(r.blocks));
        span.start.div_ceil(row)..span.end / row
    }

    /// Rows of which data and parity are being changed by a request, where that is to be remembered.
    pub(super) fn changing(&self, r: &HostRequest) -> Option<Range<u64>> {
        match r.op {
            HostOp::Write if self.options.intent => Some(self.rows.rows_of(r.lba.span(r.blocks))),
            HostOp::Discard if self.options.intent || self.options.journal => Some(self.whole_rows(r)),
            _ => None,
        }
    }

    /// The parity of these rows may not fit from here on.
    fn dirty(&self, r: &HostRequest, plan: &mut MemberPlan) {
        self.changing(r).into_iter().for_each(|rows| self.intent.dirty(rows, plan));
    }

    /// It fits again.
    pub(super) fn clean(&self, r: &HostRequest, plan: &mut MemberPlan) {
        self.changing(r).into_iter().for_each(|rows| self.intent.clean(rows, plan));
    }

    /// Discards reach the disks where they take whole rows: then data and parity stay in step whatever a disk makes of it. Answers
    /// whether some do.
    pub(super) fn discard(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) -> bool {
        let whole = self.whole_rows(r);
        // What disks make of parity and of blocks that their logs are about is anybody's guess.
        if self.options.mixed || whole.is_empty() || self.disks.degraded() || self.logs.has(whole.clone()) {
            return false;
        }
        self.dirty(r, plan);
        let (lba, blocks) =
            (Lba(whole.start * self.rows.chunk), Blocks((whole.end - whole.start) * self.rows.chunk));
        for disk in 0..self.rows.disks {
            plan.ask(ticket, MemberId(disk as u32), HostRequest { lba, blocks, ..*r }, |_| {});
        }
        true
    }
}
