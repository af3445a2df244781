//! Writes and discards, and the tables that follow them.

use super::destage::Destage;
use super::group::{self, Cell};
use super::journal::{self, Event};
use super::state::{At, Doing, State};
use super::victim::Seen;
use super::{Dvs, Stripes};
use crate::layouts::chunks::{Chunk, Lost, missing};
use crate::{MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeSet;
use std::ops::Range;

impl Dvs {
    /// What is written to each group, with what must be read for it.
    pub(super) fn prepare(&mut self, r: &HostRequest, host: bool) -> Result<Box<State>, Lost> {
        let mut state = self.begin(Doing::Host(*r), At::Olds);
        self.prepare_run(&mut state, r.lba.span(r.blocks), 0, host)?;
        self.pack(&mut state, false)?;
        Ok(state)
    }

    /// Several runs, of which the host's buffer holds one after the other.
    pub(super) fn prepare_runs(&mut self, runs: &[Range<u64>]) -> Result<Box<State>, Lost> {
        let mut state = self.begin(Doing::Runs, At::Olds);
        let mut at = 0;
        for run in runs {
            self.prepare_run(&mut state, run.clone(), at, true)?;
            at += run.end - run.start;
        }
        state.runs = runs.to_vec();
        self.pack(&mut state, false)?;
        Ok(state)
    }

    /// Begins a write of several runs whose groups' tables the SSD has.
    pub(super) fn write_runs(&mut self, ticket: Ticket, runs: &[Range<u64>], plan: &mut MemberPlan) {
        let touched: BTreeSet<u64> = runs.iter().flat_map(|r| self.groups_of(r)).collect();
        touched.into_iter().for_each(|group| self.touch(group..group + 1));
        match self.prepare_runs(runs) {
            Ok(mut state) => {
                self.first_phase(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            Err(Lost) => plan.refuse(ticket, Refusal::Lost),
        }
    }

    fn prepare_run(&mut self, state: &mut State, run: Range<u64>, at: u64, host: bool) -> Result<(), Lost> {
        for (group, lcn, new, offset) in self.chunks(run) {
            // What the first run of a chunk leaves to be read holds the gaps before the others too.
            let last = state.destages.last_mut().filter(|d| d.group == group);
            if let Some(chunk) = last.and_then(|d| d.chunks.last_mut()).filter(|c| c.lcn == lcn) {
                chunk.more.push((new, at + offset));
                continue;
            }
            let place = self.group(group).and_then(|g| g.place(lcn));
            // Nothing is left there to discard.
            if !host && place.is_none() {
                continue;
            }
            let old = match (missing(self.shape.chunk, &new), place, self.group(group)) {
                (Some(range), Some(place), Some(tables)) => {
                    Some(state.slots.chunk(&self.shape, (group, tables), place, range, &self.disks)?)
                }
                _ => None,
            };
            self.counts.fills += u64::from(old.is_some());
            let chunk = Chunk { lcn, new, host: host.then_some(at + offset), more: Vec::new(), old };
            match state.destages.last_mut().filter(|d| d.group == group) {
                Some(destage) => destage.chunks.push(chunk),
                None => {
                    let mut destage = self.destage(group, false);
                    destage.chunks.push(chunk);
                    state.destages.push(destage);
                }
            }
        }
        Ok(())
    }

    pub(super) fn pack(&mut self, state: &mut State, collect: bool) -> Result<(), Lost> {
        let fill = self.options.stripes == Stripes::Fill;
        for destage in &mut state.destages {
            destage.fresh = destage.chunks.len();
            let shape = self.shape;
            let tables = self.groups.begin(destage.group, &shape);
            let packer = &mut self.packer;
            destage.prepare(&shape, tables, (collect, fill), (&mut state.slots, packer), &self.disks)?;
        }
        Ok(())
    }

    /// Chunks that a discard takes as a whole hold nothing any more.
    pub(super) fn unmap(&mut self, now: SimTime, r: &HostRequest, plan: &mut MemberPlan) {
        for (group, lcn, part, _) in self.chunks(r.lba.span(r.blocks)) {
            let whole = part == (0..self.shape.chunk);
            if whole && self.group(group).is_some_and(|g| g.place(lcn).is_some()) {
                self.unlist(group);
                self.group_mut(group).unmap(lcn);
                self.list(group);
                self.table_changed(now, group);
                plan.record(&Event::Unmap { group, lcn });
            }
        }
    }

    pub(super) fn start_write(
        &mut self,
        now: SimTime,
        ticket: Ticket,
        r: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<Box<State>, Lost> {
        let host = r.op == HostOp::Write;
        if !host {
            self.unmap(now, r, plan);
        }
        let mut state = self.prepare(r, host)?;
        self.first_phase(ticket, &mut state, plan);
        Ok(state)
    }

    pub(super) fn first_phase(&mut self, ticket: Ticket, state: &mut State, plan: &mut MemberPlan) {
        if state.destages.is_empty() {
            plan.end(ticket);
        } else if state.slots.reads.is_empty() {
            self.write(ticket, state, plan);
        } else {
            state.slots.plan(ticket, Cause::Fill, plan);
        }
    }

    /// Writes what is prepared; a collection has its chunks in the journal first.
    pub(super) fn write(&mut self, ticket: Ticket, state: &mut State, plan: &mut MemberPlan) {
        let open = |d: &&Destage| d.collect && d.journal.is_none();
        if self.options.journal && state.destages.iter().any(|d| open(&d)) {
            let mut collected = 0;
            let fits = state.destages.iter().position(|d| {
                collected += u64::from(d.collect);
                collected > journal::PLACES
            });
            let rest = state.destages.split_off(fits.unwrap_or(state.destages.len()));
            state.rest.splice(0..0, rest);
            let count = state.destages.iter().filter(open).count();
            return self.journal(ticket, state, count, plan);
        }
        state.at = At::Writes;
        let request = match state.doing {
            Doing::Host(r) => r,
            Doing::Runs | Doing::Task(_) => HostRequest::new(HostOp::Write, Lba(0), Blocks(0)),
        };
        let before = plan.ops().len();
        for destage in &state.destages {
            destage.write(&self.shape, ticket, &request, &self.disks, plan);
            if destage.collect {
                let moved = Blocks((destage.chunks.len() - destage.fresh) as u64 * self.shape.chunk);
                plan.cleaning("group-collection", ticket, moved);
            }
        }
        if plan.ops().len() == before {
            // All disks of its stripes are dead.
            self.refuse(ticket, state.doing, plan);
            state.destages.clear();
        }
    }

    /// The writes are done: the new stripes hold.
    pub(super) fn commit(&mut self, now: SimTime, state: &State, plan: &mut MemberPlan) {
        for destage in &state.destages {
            let group = destage.group;
            self.unlist(group);
            if destage.collect {
                let shape = self.shape;
                self.group_mut(group).reset(&shape);
                plan.record(&Event::Reset(group));
            }
            if let Some(place) = destage.journal {
                self.places.give(place);
            }
            let (disks, tables) = (self.shape.disks as usize, self.group_mut(group));
            for stripe in destage.stripes.chunks(disks) {
                plan.record(&Event::Stripe(group, stripe.into()));
                tables.append(stripe);
            }
            self.list(group);
            self.table_changed(now, group);
            self.count(destage, matches!(state.doing, Doing::Task(_)));
        }
    }

    pub(super) fn count(&mut self, destage: &Destage, background: bool) {
        let counts = &mut self.counts;
        let nothing = |s: &[Cell]| s.iter().any(|c| c.holds() == group::Holds::Nothing);
        for stripe in destage.stripes.chunks(self.shape.disks as usize) {
            *(if nothing(stripe) { &mut counts.partial } else { &mut counts.full }) += 1;
        }
        if !destage.collect {
            counts.filled += (destage.chunks.len() - destage.fresh) as u64;
        }
        if destage.collect {
            counts.moved += (destage.chunks.len() - destage.fresh) as u64;
            *(if background { &mut counts.background } else { &mut counts.foreground }) += 1;
        }
    }

    /// Where the group stands among those worth collecting.
    pub(super) fn rank(&self, group: u64) -> Option<(u64, std::cmp::Reverse<u64>)> {
        self.options.idle?;
        let tables = self.group(group)?;
        let (accesses, last) = self.touched[group as usize];
        let seen = Seen { accesses: u64::from(accesses), last, ..tables.seen() };
        let share = seen.obsolete as f64 / (seen.obsolete + seen.live).max(1) as f64;
        let worth = seen.obsolete > 0 && share >= self.options.obsolete;
        worth.then_some(((self.options.victim)(&seen), std::cmp::Reverse(group)))
    }

    /// A request of the host's touches these groups.
    pub(super) fn touch(&mut self, groups: Range<u64>) {
        if self.options.idle.is_none() {
            return;
        }
        self.touches += 1;
        for group in groups {
            self.unlist(group);
            if self.group(group).is_some() {
                let (accesses, last) = &mut self.touched[group as usize];
                (*accesses, *last) = (accesses.saturating_add(1), self.touches);
            }
            self.list(group);
        }
    }

    pub(super) fn unlist(&mut self, group: u64) {
        if let Some(rank) = self.rank(group) {
            self.victims.remove(&rank);
        }
    }

    pub(super) fn list(&mut self, group: u64) {
        if let Some(rank) = self.rank(group) {
            self.victims.insert(rank);
        }
    }
}
