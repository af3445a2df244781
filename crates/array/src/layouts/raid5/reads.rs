//! Reads, also of what a dead disk held.

use super::*;

impl Raid5 {
    pub(super) fn read(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        state: &mut State,
        plan: &mut MemberPlan,
    ) -> bool {
        let span = r.lba.span(r.blocks);
        let base = plan.ops().len();
        for row in self.rows.rows_of(span.clone()) {
            let part = self.rows.within(row, &span);
            let Ok(dead) = self.dead_role(row) else { return false };
            for chunk in self.rows.chunks(&part) {
                let blocks = self.rows.of_chunk(chunk, &part);
                let host = Blocks(
                    row * self.rows.chunk * self.rows.data() + chunk * self.rows.chunk + blocks.start
                        - span.start,
                );
                if dead == Some(chunk) {
                    self.degraded += 1;
                    self.gather(ticket, (row, chunk, &blocks), &part, state, plan);
                    continue;
                }
                let (lba, n) = self.on_member(row, &blocks);
                let own = HostRequest { lba, blocks: n, ..*r };
                plan.ask(ticket, self.member(row, chunk), own, |p| p.push(n, End::Host(host)));
            }
        }
        debug_assert!(plan.ops().len() > base);
        true
    }

    /// Reads what a chunk of a dead disk is made from, as far as the host does not read it anyhow.
    pub(super) fn gather(
        &self,
        ticket: Ticket,
        (row, chunk, blocks): (u64, u64, &Range<u64>),
        part: &Range<u64>,
        state: &mut State,
        plan: &mut MemberPlan,
    ) {
        for role in (0..self.rows.disks).filter(|r| *r != chunk) {
            let own = if role < self.rows.data() { self.rows.of_chunk(role, part) } else { 0..0 };
            if own.start <= blocks.start && own.end >= blocks.end {
                continue;
            }
            let slot = state.olds.len() as u32;
            let place = self.on_member(row, blocks);
            plan.read_slot(ticket, self.member(row, role), Cause::Parity, place, slot);
            state.olds.push(Old { row, role, blocks: blocks.clone() });
        }
        self.read_images(ticket, (row, blocks, Cause::Parity), (0, &mut state.olds), plan);
        let pieces = Self::cut_at_images(&state.olds, row, blocks).into_iter();
        state.missing.extend(pieces.map(|blocks| Old { row, role: chunk, blocks }));
    }

    /// Delivers what dead disks held.
    pub(super) fn deliver(&self, ticket: Ticket, r: &HostRequest, state: &State, plan: &mut MemberPlan) {
        let span = r.lba.span(r.blocks);
        for lost in &state.missing {
            let start = lost.row * self.rows.chunk * self.rows.data();
            let host = |role: u64, at: u64| Blocks(start + role * self.rows.chunk + at - span.start);
            let terms: Vec<Term> = (0..self.rows.disks)
                .filter(|role| *role != lost.role)
                .map(|role| {
                    self.slot(state, lost.row, role, lost.blocks.start)
                        .unwrap_or_else(|| Term::Host(host(role, lost.blocks.start)))
                })
                .chain(Self::image_terms(&state.olds, 0, lost.row, lost.blocks.start))
                .collect();
            let n = Blocks(lost.blocks.end - lost.blocks.start);
            plan.deliver(ticket, host(lost.role, lost.blocks.start), n, &terms);
        }
    }
}
