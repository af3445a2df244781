//! What host requests do on the SSD: reads of what it has, writes as far as there is room, and what reads bring from the disks.

use super::pages::{self, Mask};
use super::policy::Wrote;
use super::{Cached, DirtyChange, Stage};
use crate::{End, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

impl Cached {
    /// Asks the SSD for `like`, but of these sectors of a place, run by run; `end` says where the bytes of a run are or go.
    pub(super) fn ask_ssd(
        &self,
        ticket: Ticket,
        like: &HostRequest,
        (slot, sectors): (u64, Mask),
        plan: &mut MemberPlan,
        mut end: impl FnMut(&Range<u64>) -> End,
    ) {
        let place = self.settings.base + slot * self.settings.page;
        pages::runs(sectors, |run| {
            let (lba, blocks) = (Lba(place + run.start), Blocks(run.end - run.start));
            let request = HostRequest { lba, blocks, ..*like };
            plan.ask(ticket, self.settings.ssd, request, |p| p.push(blocks, end(&run)));
        });
    }

    /// A read: from the SSD where that has all of it, else from the disks.
    pub(super) fn read(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let missing =
            |part: &pages::Part| part.mask() & !(self.dirty.valid(part.page) | self.clean.valid(part.page));
        if self.parts(&r.span()).any(|part| missing(&part) != 0) {
            self.counts.read_misses += 1;
            self.reading.add(ticket, r);
            return self.take_stripes(ticket, r, plan);
        }
        self.counts.read_hits += 1;
        let read = HostRequest::new(HostOp::Read, r.lba, r.blocks);
        for part in self.parts(&r.span()) {
            let to_host = |run: &Range<u64>| End::Host(Blocks(part.in_range(run).start));
            let dirty = part.mask() & self.dirty.valid(part.page);
            let clean = part.mask() & !dirty;
            if let Some(found) = self.dirty.get(part.page) {
                self.ask_ssd(ticket, &read, (found.slot, dirty), plan, to_host);
            }
            if let Some(found) = self.clean.get(part.page).filter(|_| clean != 0) {
                self.ask_ssd(ticket, &read, (found.slot, clean), plan, to_host);
                self.read_policy.hit(part.page);
            }
        }
        self.stages.put(ticket, Stage::Last);
    }

    /// Writes the blocks from offset `done` on to the SSD, as far as there is room.
    pub(super) fn write(&mut self, ticket: Ticket, r: &HostRequest, done: u64, plan: &mut MemberPlan) {
        let (mut end, mut hit) = (done, true);
        for part in self.parts(&(r.lba.0 + done..r.span().end)) {
            let there = self.dirty.get(part.page).is_some();
            hit &= there;
            // A stamp of its own keeps the place, whatever is being destaged.
            let stamp = self.stamp();
            if !there && self.dirty.next_is_needed() {
                plan.fence();
                self.dirty.durable();
            }
            let Some(found) = self.dirty.put(part.page, 0, stamp) else { break };
            self.forget_clean(part.page, part.mask());
            self.ask_ssd(ticket, r, (found.slot, part.mask()), plan, |_| End::Host(Blocks(done + part.at)));
            end = done + part.in_range(&part.within).end;
        }
        self.counts.write_hits += u64::from(hit && done == 0);
        self.writing.add(ticket, r);
        self.stages.put(ticket, Stage::WriteSsd(*r, done..end));
    }

    /// The SSD has the blocks of a write at these offsets.
    pub(super) fn written(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        done: &Range<u64>,
        plan: &mut MemberPlan,
    ) {
        for part in self.parts(&(r.lba.0 + done.start..r.lba.0 + done.end)) {
            let (page, stamp) = (part.page, self.stamp());
            let whole = self.settings.round && !plan.wants_data();
            let behind = self.inner.host_blocks().0 - page * self.settings.page;
            let sectors = if whole { pages::mask(&(0..self.settings.page.min(behind))) } else { part.mask() };
            let again = self.dirty.valid(page) & sectors != 0;
            if let Some(found) = self.dirty.put(page, sectors, stamp) {
                plan.record(DirtyChange::of_page(page, &found));
            }
            if !self.refused.has(page) {
                self.destage_policy.wrote(Wrote { group: page / self.settings.group, page, again });
            }
        }
        self.writing.remove(ticket);
        if done.end == r.blocks.0 {
            plan.end(ticket);
        } else if self.may_begin(r, done.end) {
            self.write(ticket, r, done.end, plan);
        } else {
            self.waiting.push_front(ticket);
            self.wait(ticket, r, done.end);
        }
        self.admit(plan);
        self.destage_more(plan);
    }

    /// What the SSD has of these blocks is out of date.
    pub(super) fn forget(&mut self, r: &HostRequest, plan: &mut MemberPlan) {
        for part in self.parts(&r.span()) {
            let (page, sectors) = (part.page, part.mask());
            self.forget_clean(page, sectors);
            if self.dirty.valid(page) & sectors == 0 {
                continue;
            }
            plan.record(DirtyChange::Gone(page));
            // More of it may be on its way to its place on the SSD.
            let stay = self.writing.meets(&self.settings.page_span(page));
            if self.dirty.drop_sectors(page, sectors, stay) {
                self.refused.forget(page);
            } else if let Some(found) = self.dirty.get(page).filter(|p| p.valid != 0) {
                plan.record(DirtyChange::of_page(page, found));
            }
        }
    }

    pub(super) fn forget_clean(&mut self, page: u64, sectors: Mask) {
        if self.clean.drop_sectors(page, sectors, false) {
            self.read_policy.remove(page);
        }
    }

    /// The read cache takes what a read brought from the disks.
    pub(super) fn fill(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let write = HostRequest::new(HostOp::Write, r.lba, r.blocks).because(Cause::Fill);
        for part in self.parts(&r.span()) {
            let sectors = part.mask() & !self.dirty.valid(part.page);
            if sectors == 0 {
                continue;
            }
            if self.clean.get(part.page).is_some() {
                self.read_policy.hit(part.page);
            } else if let Some(gone) = self.read_policy.insert(part.page) {
                self.clean.remove(gone);
            }
            let stamp = self.stamp();
            let Some(found) = self.clean.put(part.page, sectors, stamp) else { continue };
            self.counts.fills += 1;
            let from_host = |run: &Range<u64>| End::Host(Blocks(part.in_range(run).start));
            self.ask_ssd(ticket, &write, (found.slot, sectors), plan, from_host);
        }
    }
}
