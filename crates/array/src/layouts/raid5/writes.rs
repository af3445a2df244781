//! Writes: what is read before, and what is written then.

use super::*;

impl Raid5 {
    /// Plans a write: `false` where too many disks are dead.
    pub(super) fn plan_write(&mut self, r: &HostRequest, state: &mut State) -> bool {
        let span = r.lba.span(r.blocks);
        for row in self.rows.rows_of(span.clone()) {
            let part = self.rows.within(row, &span);
            let Ok(dead) = self.dead_role(row) else { return false };
            let olds = state.olds.len();
            let to = (&mut state.planned, &mut state.olds);
            write::plan(&self.rows, (row, &part), dead, self.options.preference, to);
            self.log_row(row, state);
            self.degraded += u64::from(dead.is_some());
            match state.planned.last().and_then(|p| p.method) {
                _ if state.olds.len() == olds => self.full += 1,
                Some(Method::Modify) => self.modified += 1,
                _ => self.reconstructed += 1,
            }
        }
        true
    }

    pub(super) fn read_olds(&self, ticket: Ticket, state: &State, plan: &mut MemberPlan) {
        for (slot, old) in state.olds.iter().enumerate() {
            let place = self.on_member(old.row, &old.blocks);
            plan.read_slot(ticket, self.member(old.row, old.role), Cause::Parity, place, slot as u32);
        }
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
    pub(super) fn dirty(&self, r: &HostRequest, plan: &mut MemberPlan) {
        if let Some(rows) = self.changing(r) {
            plan.record(Record { tag: DIRTY, words: [rows.start, rows.end, 0] });
        }
    }

    /// It fits again.
    pub(super) fn clean(&self, r: &HostRequest, plan: &mut MemberPlan) {
        if let Some(rows) = self.changing(r) {
            plan.record(Record { tag: CLEAN, words: [rows.start, rows.end, 0] });
        }
    }

    /// What a write needed is read: its rows are written, or go to the journal first.
    pub(super) fn begin_writes(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        state: &mut State,
        plan: &mut MemberPlan,
    ) {
        let rows = self.rows.rows_of(r.lba.span(r.blocks));
        self.dirty(r, plan);
        match self.options.journal {
            true => self.journal(ticket, rows.start, state, plan),
            false => self.write(ticket, r, rows, state, plan),
        }
    }

    /// Rows that went through the journal are written: the next ones follow; `false`: there are none.
    pub(super) fn next_batch(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        state: &mut State,
        plan: &mut MemberPlan,
    ) -> bool {
        self.give(&mut state.places, plan);
        let more = state.batch.end < self.rows.rows_of(r.lba.span(r.blocks)).end;
        if more {
            self.journal(ticket, state.batch.end, state, plan);
        }
        more
    }

    /// The writes of these rows.
    pub(super) fn write(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        of: Range<u64>,
        state: &mut State,
        plan: &mut MemberPlan,
    ) {
        let span = r.lba.span(r.blocks);
        let rows = self.rows;
        if self.options.journal {
            state.at = At::Writes;
        }
        let base = plan.ops().len();
        for row in of {
            let part = rows.within(row, &span);
            for chunk in rows.chunks(&part) {
                let blocks = rows.of_chunk(chunk, &part);
                let host = Blocks((row * rows.data() + chunk) * rows.chunk + blocks.start - span.start);
                let (lba, n) = self.on_member(row, &blocks);
                if self.has(rows.disk(row, chunk), row) {
                    let own = HostRequest { lba, blocks: n, ..*r };
                    plan.ask(ticket, self.member(row, chunk), own, |p| p.push(n, End::Host(host)));
                }
            }
            if self.has(rows.disk(row, rows.data()), row) {
                match state.logged.iter().find(|l| l.0 == row) {
                    Some(log) => self.write_image(ticket, r, *log, state, plan),
                    None => self.write_parity(ticket, r, row, state, plan),
                }
            }
        }
        // All the disks that it would write are dead: nothing is left to wait for.
        if plan.ops().len() == base {
            self.give(&mut state.places, plan);
            plan.end(ticket);
        }
    }

    /// Writes the parity of a row, adjacent segments as one.
    pub(super) fn write_parity(
        &self,
        ticket: Ticket,
        r: &HostRequest,
        row: u64,
        state: &State,
        plan: &mut MemberPlan,
    ) {
        for run in state.parity_of(row).chunk_by(|a, b| a.segment.hi == b.segment.lo) {
            let blocks = run[0].segment.lo..run[run.len() - 1].segment.hi;
            let (lba, n) = self.on_member(row, &blocks);
            let parity = HostRequest { lba, blocks: n, why: Cause::Parity, ..*r };
            plan.ask(ticket, self.member(row, self.rows.data()), parity, |out| {
                for planned in run {
                    let end = out.xor(&self.parity_terms(r, planned, state));
                    out.push(Blocks(planned.segment.hi - planned.segment.lo), end);
                }
            });
        }
    }

    pub(super) fn parity_terms(&self, r: &HostRequest, planned: &Planned, state: &State) -> Vec<Term> {
        let (row, segment) = (planned.row, &planned.segment);
        let start = row * self.rows.chunk * self.rows.data();
        let host = |chunk: u64| Term::Host(Blocks(start + chunk * self.rows.chunk + segment.lo - r.lba.0));
        let mut terms: Vec<Term> = segment.chunks.clone().map(host).collect();
        let old = |role: u64| self.slot(state, row, role, segment.lo);
        match planned.method {
            Some(Method::Modify) => {
                terms.extend(segment.chunks.clone().chain([self.rows.data()]).filter_map(old));
            }
            Some(Method::Reconstruct) => {
                let others = (0..self.rows.data()).filter(|c| !segment.chunks.contains(c));
                terms.extend(others.filter_map(old));
            }
            None => {}
        }
        terms
    }
}
