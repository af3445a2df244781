//! Host requests: what the SSD has, what it takes, and what has to wait.

use super::pages;
use super::policy::Wrote;
use super::{Cached, DirtyChange, InnerRequest, SLOT, SsdSlot, Stage, Task};
use crate::plan::Outcome;
use crate::{End, MemberPlan, Phase, Term, Ticket, Work};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp};
use std::ops::Range;

fn meet(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Cached {
    /// A host request comes in.
    pub(super) fn arrive(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        if r.op == HostOp::Flush {
            // The SSD keeps what it has; the disks may not.
            self.probe(plan);
            return self.pass(ticket, &Work::Host(*r), plan);
        }
        let span = r.lba.span(r.blocks);
        let waits = |other: &Ticket| match self.stages.get(*other) {
            Some(Stage::Turn(o, _)) => {
                meet(&o.lba.span(o.blocks), &span) || (self.caches(o) && self.caches(r))
            }
            _ => false,
        };
        if self.waiting.iter().any(waits) || !self.may_begin(r, 0) {
            self.counts.write_waits += u64::from(r.op == HostOp::Write);
            self.stages.put(ticket, Stage::Turn(*r, 0));
            self.waiting.push_back(ticket);
            self.waits_for_room();
            return self.destage_more(plan);
        }
        self.begin(ticket, r, 0, plan);
    }

    /// Whether a request is a write to the SSD.
    pub(super) fn caches(&self, r: &HostRequest) -> bool {
        r.op == HostOp::Write && self.settings.write > 0
    }

    /// Whether the SSD has a place for a page, or has given it one.
    pub(super) fn has_room(&self, page: u64) -> bool {
        self.dirty.get(page).is_some() || self.dirty.len() < self.dirty.room()
    }

    /// Whether nothing under way, nor want of room, keeps a request from going on.
    fn may_begin(&self, r: &HostRequest, done: u64) -> bool {
        let span = r.lba.span(r.blocks);
        let first = (span.start + done) / self.settings.page;
        // A discard takes what is dirty when the disks have done theirs.
        if self.settings.write > 0 && self.changing.meets(&span) {
            return false;
        }
        match r.op {
            HostOp::Read => !self.writing.meets(&span),
            HostOp::Write if self.caches(r) => {
                self.has_room(first) && !self.reading.meets(&span) && !self.writing.meets(&span)
            }
            _ => !self.reading.meets(&span) && !self.writing.meets(&span) && !self.destages(&span),
        }
    }

    /// Whether blocks of these are on their way to the disks, or about to be. Layouts that lock nothing would let a discard
    /// overtake them.
    fn destages(&self, span: &Range<u64>) -> bool {
        self.destaging.iter().any(|group| {
            let all = self.group_request(*group);
            meet(&all.lba.span(all.blocks), span)
        })
    }

    /// Lets those go on that waited.
    pub(super) fn admit(&mut self, plan: &mut MemberPlan) {
        while let Some(&ticket) = self.waiting.front() {
            let Some(Stage::Turn(r, done)) = self.stages.get(ticket).cloned() else {
                self.waiting.pop_front();
                continue;
            };
            if !self.may_begin(&r, done) {
                return;
            }
            self.waiting.pop_front();
            self.begin(ticket, &r, done, plan);
        }
    }

    fn begin(&mut self, ticket: Ticket, r: &HostRequest, done: u64, plan: &mut MemberPlan) {
        match r.op {
            HostOp::Read => self.read(ticket, r, plan),
            HostOp::Write if self.caches(r) => self.write(ticket, r, done, plan),
            _ => {
                if self.settings.write == 0 && (r.op == HostOp::Write || self.settings.discards) {
                    self.forget(r, plan);
                }
                self.changing.add(ticket, r);
                self.take_stripes(ticket, r, plan);
            }
        }
    }

    /// The request needs the disks: a job takes its stripes.
    fn take_stripes(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        self.stages.put(ticket, Stage::Stripes(*r));
        plan.awaited_job(Task::TakeStripes(u64::from(ticket.0)));
    }

    /// What the SSD has of these blocks is out of date.
    fn forget(&mut self, r: &HostRequest, plan: &mut MemberPlan) {
        for (page, within, _) in self.pages(&r.lba.span(r.blocks)) {
            let sectors = pages::mask(&within);
            self.forget_clean(page, sectors);
            if self.dirty.valid(page) & sectors != 0 {
                plan.record(&DirtyChange::Gone(page));
                // More of it may be on its way to its place on the SSD.
                let size = self.settings.page;
                let stay = self.writing.meets(&(page * size..(page + 1) * size));
                if self.dirty.drop_sectors(page, sectors, stay) {
                    self.refused.forget(page);
                } else if let Some(found) = self.dirty.get(page).filter(|p| p.valid != 0) {
                    plan.record(&DirtyChange::of_page(page, found));
                }
            }
        }
    }

    fn forget_clean(&mut self, page: u64, sectors: pages::Mask) {
        if self.clean.get(page).is_some() && self.clean.drop_sectors(page, sectors, false) {
            self.reads.remove(page);
        }
    }

    /// Reads `sectors` of a page from the SSD to where `end` says; `at`: where the page begins in the request.
    fn read_ssd(
        &self,
        ticket: Ticket,
        place: SsdSlot,
        sectors: pages::Mask,
        plan: &mut MemberPlan,
        mut end: impl FnMut(&Range<u64>) -> End,
    ) {
        pages::runs(sectors, |run| {
            let n = Blocks(run.end - run.start);
            let r = HostRequest::new(HostOp::Read, self.on_ssd(place, run.start), n);
            plan.ask(ticket, self.settings.ssd, r, |p| p.push(n, end(&run)));
        });
    }

    fn read(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let span = r.lba.span(r.blocks);
        let all = |(page, within, _): (u64, Range<u64>, u64)| {
            pages::mask(&within) & !(self.dirty.valid(page) | self.clean.valid(page)) == 0
        };
        if !self.pages(&span).all(all) {
            self.counts.read_misses += 1;
            self.reading.add(ticket, r);
            return self.take_stripes(ticket, r, plan);
        }
        self.counts.read_hits += 1;
        for (page, within, at) in self.pages(&span) {
            let host = |run: &Range<u64>| End::Host(Blocks(at + run.start - within.start));
            let wanted = pages::mask(&within);
            let dirty = wanted & self.dirty.valid(page);
            if let Some(found) = self.dirty.get(page) {
                self.read_ssd(ticket, SsdSlot { of_reads: false, slot: found.slot }, dirty, plan, host);
            }
            if wanted != dirty
                && let Some(found) = self.clean.get(page)
            {
                let place = SsdSlot { of_reads: true, slot: found.slot };
                self.read_ssd(ticket, place, wanted & !dirty, plan, host);
                self.reads.hit(page);
            }
        }
        self.stages.put(ticket, Stage::Last);
    }

    /// Writes the blocks from offset `done` on to the SSD, as far as there is room.
    fn write(&mut self, ticket: Ticket, r: &HostRequest, done: u64, plan: &mut MemberPlan) {
        let span = r.lba.0 + done..r.lba.0 + r.blocks.0;
        let mut end = done;
        let mut hit = true;
        for (page, within, at) in self.pages(&span) {
            hit &= self.dirty.get(page).is_some();
            // A stamp of its own keeps the place, whatever is being destaged.
            let stamp = self.stamp();
            if self.dirty.get(page).is_none() && self.dirty.next_is_needed() {
                plan.fence();
                self.dirty.durable();
            }
            let Some(slot) = self.dirty.put(page, 0, stamp) else { break };
            self.forget_clean(page, pages::mask(&within));
            let n = Blocks(within.end - within.start);
            let own = HostRequest {
                lba: self.on_ssd(SsdSlot { of_reads: false, slot }, within.start),
                blocks: n,
                ..*r
            };
            plan.ask(ticket, self.settings.ssd, own, |p| p.push(n, End::Host(Blocks(done + at))));
            end = done + at + n.0;
        }
        self.counts.write_hits += u64::from(hit && done == 0);
        self.writing.add(ticket, r);
        self.stages.put(ticket, Stage::WriteSsd(*r, done..end));
    }

    /// The SSD has these blocks of a write.
    pub(super) fn written(
        &mut self,
        ticket: Ticket,
        r: HostRequest,
        done: &Range<u64>,
        plan: &mut MemberPlan,
    ) {
        for (page, within, _) in self.pages(&(r.lba.0 + done.start..r.lba.0 + done.end)) {
            let whole = self.settings.round && !plan.wants_data();
            let sectors = if whole { 0..self.settings.page } else { within };
            let (stamp, sectors) = (self.stamp(), pages::mask(&sectors));
            let again = self.dirty.valid(page) & sectors != 0;
            self.dirty.put(page, sectors, stamp);
            if let Some(found) = self.dirty.get(page) {
                plan.record(&DirtyChange::of_page(page, found));
            }
            if !self.refused.has(page) {
                self.evict.wrote(Wrote { group: page / self.settings.group, page, again });
            }
        }
        self.writing.remove(ticket);
        if done.end == r.blocks.0 {
            plan.end(ticket);
        } else if self.may_begin(&r, done.end) {
            self.write(ticket, &r, done.end, plan);
        } else {
            self.stages.put(ticket, Stage::Turn(r, done.end));
            self.waiting.push_front(ticket);
            self.waits_for_room();
        }
        self.admit(plan);
        self.destage_more(plan);
    }

    /// A request that needs the disks has the stripes for it, by `job`: the array within begins with it, and of a read what is dirty
    /// is read beside it.
    pub(super) fn start_inner(&mut self, ticket: Ticket, job: Ticket, plan: &mut MemberPlan) {
        let Some(Stage::Stripes(request)) = self.stages.take(ticket) else { return plan.end(job) };
        let outcome = self.ask_inner(ticket, request, plan);
        let mut inner = InnerRequest { request, job, dirty: Vec::new(), done: outcome.is_some() };
        if request.op == HostOp::Read && !matches!(outcome, Some(Outcome::Refused(..))) {
            for (page, within, at) in self.pages(&request.lba.span(request.blocks)) {
                let Some(found) = self.dirty.get(page) else { continue };
                let sectors = found.valid & pages::mask(&within);
                let offset = |block: u64| at + block - within.start;
                let place = SsdSlot { of_reads: false, slot: found.slot };
                self.read_ssd(ticket, place, sectors, plan, |run| End::Slot(SLOT, Blocks(offset(run.start))));
                pages::runs(sectors, |run| inner.dirty.push(offset(run.start)..offset(run.end)));
            }
        }
        if inner.done && !inner.dirty.is_empty() {
            return self.stages.put(ticket, Stage::Inner(inner));
        }
        self.inner_over(ticket, inner, outcome, plan);
    }

    /// A phase of a request that needs the disks is over.
    pub(super) fn inner_phase(&mut self, phase: Phase, inner: InnerRequest, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        if inner.done {
            return self.inner_done(ticket, &inner, plan);
        }
        let outcome = self.within(Some(ticket), plan, |array, own| array.complete(phase, own));
        self.inner_over(ticket, inner, outcome, plan);
    }

    /// The array within went on with such a request, or ended it.
    pub(super) fn inner_over(
        &mut self,
        ticket: Ticket,
        inner: InnerRequest,
        outcome: Option<Outcome>,
        plan: &mut MemberPlan,
    ) {
        match outcome {
            None => self.stages.put(ticket, Stage::Inner(inner)),
            Some(Outcome::Refused(_, why)) => {
                self.over(ticket, plan);
                plan.refuse(ticket, why);
                plan.end(inner.job);
                self.admit(plan);
            }
            Some(_) => self.inner_done(ticket, &inner, plan),
        }
    }

    fn over(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        self.reading.remove(ticket);
        self.changing.remove(ticket);
        if !self.late.is_empty() {
            std::mem::take(&mut self.late).into_iter().for_each(|group| self.evict.touched(group));
            self.destage_more(plan);
        }
    }

    /// The disks have done their part: dirty blocks are laid over a read, and what it brought is cached.
    fn inner_done(&mut self, ticket: Ticket, inner: &InnerRequest, plan: &mut MemberPlan) {
        // Where discarded blocks keep what they held, dirty ones may too.
        if inner.request.op == HostOp::Discard && self.settings.write > 0 && self.settings.discards {
            self.forget(&inner.request, plan);
        }
        self.over(ticket, plan);
        plan.end(inner.job);
        for run in &inner.dirty {
            let at = Blocks(run.start);
            plan.deliver(ticket, at, Blocks(run.end - run.start), &[Term::slot(SLOT, at)]);
        }
        let (r, before) = (&inner.request, plan.ops().len());
        if r.op == HostOp::Read && self.settings.read > 0 && !self.changing.meets(&r.lba.span(r.blocks)) {
            self.fill(ticket, r, plan);
        }
        if plan.ops().len() > before {
            plan.acknowledge(ticket);
            self.stages.put(ticket, Stage::Last);
        } else {
            plan.end(ticket);
        }
        self.admit(plan);
    }

    fn fill(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        for (page, within, at) in self.pages(&r.lba.span(r.blocks)) {
            let sectors = pages::mask(&within) & !self.dirty.valid(page);
            if sectors == 0 {
                continue;
            }
            match self.clean.get(page) {
                Some(_) => self.reads.hit(page),
                None => {
                    if let Some(gone) = self.reads.insert(page) {
                        self.clean.remove(gone);
                    }
                }
            }
            let stamp = self.stamp();
            let Some(slot) = self.clean.put(page, sectors, stamp) else { continue };
            self.counts.fills += 1;
            pages::runs(sectors, |run| {
                let n = Blocks(run.end - run.start);
                let lba = self.on_ssd(SsdSlot { of_reads: true, slot }, run.start);
                let write = HostRequest::new(HostOp::Write, lba, n).because(Cause::Fill);
                let from = Blocks(at + run.start - within.start);
                plan.ask(ticket, self.settings.ssd, write, |p| p.push(n, End::Host(from)));
            });
        }
    }
}
