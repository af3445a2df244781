//! Reads, also of what dead disks held.

use super::method::Old;
use super::state::{Missing, State};
use super::{Parity, TooManyDead};
use crate::{End, MemberPlan, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::Blocks;
use std::ops::Range;

impl Parity {
    pub(super) fn read(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        state: &mut State,
        plan: &mut MemberPlan,
    ) -> Result<(), TooManyDead> {
        let span = r.lba.span(r.blocks);
        let rows = self.rows;
        for row in rows.rows_of(span.clone()) {
            let part = rows.within(row, &span);
            let lost = self.lost(row)?;
            for chunk in rows.chunks(&part) {
                let blocks = rows.of_chunk(chunk, &part);
                if lost.contains(chunk) {
                    self.counts.degraded += 1;
                    self.gather(ticket, &Missing { row, chunk, blocks, lost }, &part, state, plan);
                    continue;
                }
                let host = Blocks(rows.of_host(row, chunk, blocks.start) - span.start);
                let (lba, n) = rows.on_member(row, &blocks);
                let own = HostRequest { lba, blocks: n, ..*r };
                plan.ask(ticket, rows.member(row, chunk), own, |p| p.push(n, End::Host(host)));
            }
        }
        Ok(())
    }

    /// Reads what a lost chunk is made from, as far as it is not read anyhow.
    fn gather(
        &self,
        ticket: Ticket,
        wanted: &Missing,
        part: &Range<u64>,
        state: &mut State,
        plan: &mut MemberPlan,
    ) {
        let (rows, row, blocks) = (self.rows, wanted.row, &wanted.blocks);
        let within = |of: &Range<u64>| of.start <= blocks.start && of.end >= blocks.end;
        for share in rows.code().made_of(wanted.chunk, wanted.lost) {
            let role = share.role;
            let by_host = role < rows.data() && within(&rows.of_chunk(role, part));
            let olds = &mut state.needs.olds;
            if by_host || olds.iter().any(|o| o.row == row && o.role == role && within(&o.blocks)) {
                continue;
            }
            let (slot, place) = (olds.len() as u32, rows.on_member(row, blocks));
            plan.read_slot(ticket, rows.member(row, role), Cause::Parity, place, slot);
            olds.push(Old { row, role, blocks: blocks.clone() });
        }
        self.read_images(ticket, wanted, &mut state.needs.olds, plan);
        for blocks in Self::cut_at_images(&state.needs.olds, row, blocks) {
            state.missing.push(Missing { blocks, ..wanted.clone() });
        }
    }

    /// Delivers what dead disks held.
    pub(super) fn deliver(&self, ticket: Ticket, r: &HostRequest, state: &State, plan: &mut MemberPlan) {
        let rows = self.rows;
        for Missing { row, chunk, blocks, lost } in &state.missing {
            let (row, first) = (*row, blocks.start);
            let host = |chunk: u64| rows.of_host(row, chunk, first) - r.lba.0;
            let from = |role: u64| state.slot(row, role, first).unwrap_or_else(|| Term::host(host(role)));
            let shares = rows.code().made_of(*chunk, *lost).into_iter();
            let terms: Vec<Term> = shares
                .map(|share| from(share.role).times(share.times))
                .chain(Self::image_terms(&state.needs.olds, 0, row, first))
                .collect();
            plan.deliver(ticket, Blocks(host(*chunk)), Blocks(blocks.end - first), &terms);
        }
    }
}
